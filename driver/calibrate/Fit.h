// Fit.h - from measured launches to a roofline for each family of kernels.
//
// A family's times, for each type of products, are explained by three numbers
// (see target/Target.h):
//
//     seconds ~ launch + max(flops / F, bytes / B)
//
//      log s |            . /
//            |        . ./ .
//            |  . . _./
//            | _.__/
//            +----------- log work
//
// The fit minimises the sum of squared log errors, weighted by the time spent.
// A grid search is refined around its best point: three parameters, no
// derivatives, the same answer for the same measurements.

#ifndef TMC_DRIVER_CALIBRATE_FIT_H
#define TMC_DRIVER_CALIBRATE_FIT_H

#include "compiler/target/Target.h"

#include <map>
#include <string>
#include <vector>

namespace tmc {

/// One launch of a measured step.
struct MeasuredLaunch {
  std::string family; // The kernel's class, "Fused" for generated ones.
  double flops = 0, bytes = 0;
  double seconds = 0; // Time of one run.
  ProductType products = ProductType::F32;
};

/// By family, and by the type of products.
using MeasuredFamilies =
    std::map<std::string, std::map<ProductType, std::vector<MeasuredLaunch>>>;

/// The roofline that explains `launches`, which are of one family. Rates stay
/// within a factor of a thousand of the fastest one measured. If no launch has
/// work of a kind (a copy has no operations), the rate of that kind bounds
/// nothing.
Roofline fitRoofline(const std::vector<MeasuredLaunch> &launches);

/// Replaces the rates of `target` by measured ones, family by family and type
/// by type. The rates of a type that no launch of a family has stay: a card's
/// published rates are closer to the truth than any rate of another type.
void fitFamilies(const MeasuredFamilies &launches, Target &target);

/// Sum of predicted over sum of measured seconds.
double predictedRatio(const Roofline &roofline,
                      const std::vector<MeasuredLaunch> &launches);

} // namespace tmc

#endif // TMC_DRIVER_CALIBRATE_FIT_H
