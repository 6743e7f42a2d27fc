// ProfileLaunches.h - the launches of a measured step, from its profile.

#ifndef TMC_DRIVER_CALIBRATE_PROFILELAUNCHES_H
#define TMC_DRIVER_CALIBRATE_PROFILELAUNCHES_H

#include "compiler/support/Failure.h"
#include "driver/calibrate/Fit.h"

#include <string>
#include <vector>

namespace tmc {

/// The type in which a kernel of a card multiplies, by its object (Prices.h).
/// Kernels without products are f32.
ProductType productsOf(const std::string &object);

/// Reads the trainer's profile of a step. `launches` has the launches of other
/// runs of the step, or is empty; each keeps its fastest run. A time of zero
/// doesn't count, because the clock didn't see the launch. Launches that ran
/// together are one, with the work of all.
Expected<void> keepFastest(const std::string &profile,
                           std::vector<MeasuredLaunch> &launches);

} // namespace tmc

#endif // TMC_DRIVER_CALIBRATE_PROFILELAUNCHES_H
