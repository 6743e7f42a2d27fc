// Fit.h - from measured launches to a roofline for each family of kernels.
//
// A family's times are explained by three numbers (see target/Target.h):
//
//     seconds ~ launch + max(flops / F, bytes / B)
//
//      log s |            . /      The fit minimises the sum of squared log
//            |        . ./ .       errors, weighted by the time spent, by a
//            grid |  . . _./            search that is refined around its best
//            point: | _.__/               three parameters, no derivatives, the
//            same
//            +----------- log work answer for the same measurements.

#ifndef TMC_COMPILER_CALIBRATE_FIT_H
#define TMC_COMPILER_CALIBRATE_FIT_H

#include "compiler/target/Target.h"

#include <map>
#include <string>
#include <vector>

namespace tmc {

/// One launch of a measured step.
struct MeasuredLaunch {
  std::string family; // The kernel's class, "Fused" for generated ones.
  double flops = 0, bytes = 0;
  double seconds = 0; // Of one run.
};

/// The roofline that explains `launches`, which are of one family. Rates stay
/// within a factor of a thousand of the fastest that was seen; of what no
/// launch asks for (a copy has no operations) the rate bounds nothing.
Roofline fitRoofline(const std::vector<MeasuredLaunch> &launches);

/// Puts what was measured of f32, by family, in the place of what `target` says
/// of it. What it says of products of other types, which nobody measured,
/// stays: a card's published rates are nearer to them than any rate of f32.
void fitFamilies(
    const std::map<std::string, std::vector<MeasuredLaunch>> &launches,
    Target &target);

/// Sum of predicted over sum of measured seconds.
double predictedRatio(const Roofline &roofline,
                      const std::vector<MeasuredLaunch> &launches);

} // namespace tmc

#endif // TMC_COMPILER_CALIBRATE_FIT_H
