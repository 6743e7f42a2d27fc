#include "frontends/common/ops/Gamma.h"
#include "frontends/common/Importer.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Expression.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

//===----------------------------------------------------------------------===//
// Gamma
//===----------------------------------------------------------------------===//

/// Stirling's series needs an argument of this size.
static constexpr double kSteps = 8;

namespace {
/// An argument x, moved to the range where the series hold:
///
///   x < 1/2:  y = 1 - x (the reflection), else y = x
///   y < 8:    z = y + 8, else z = y
///
/// The branches that aren't taken hold a number whose gradient is finite.
struct Shifted {
  Expression isReflected, isSmall;
  Expression small; ///< y if it is small, else 1.
  Expression z;
  Expression angle; ///< pi times the fraction of x if it is reflected.
};
} // namespace

static Shifted shifted(const Expression &x) {
  Expression isReflected = x < 0.5;
  Expression y = (1 - x).when(isReflected, x);
  Expression isSmall = y < kSteps;
  Expression part = (x - x.of(floorOf)).when(isReflected, x.number(0.5));
  return {isReflected, isSmall, y.when(isSmall, y.number(1)),
          (y + kSteps).when(isSmall, y), part * M_PI};
}

/// Source: Abramowitz and Stegun, 6.1.15, 6.1.17, 6.1.41.
FailureOr<Val> tmc::frontend::logGamma(Site &s, const Val &in) {
  Expression x(s, in);
  Shifted at = shifted(x);
  Expression inverse = 1 / at.z, square = inverse * inverse;
  Expression series =
      inverse *
      (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
  Expression y = (at.z - 0.5) * at.z.of(logarithm) - at.z +
                 0.5 * std::log(2 * M_PI) + series;
  Expression product = at.small;
  for (double i = 1; i < kSteps; ++i)
    product = product * (at.small + i);
  y = (y - product.of(logarithm)).when(at.isSmall, y);
  Expression reflected =
      std::log(M_PI) - at.angle.of(sine).of(absolute).of(logarithm) - y;
  return reflected.when(at.isReflected, y).value();
}

/// Source: Abramowitz and Stegun, 6.3.5, 6.3.7, 6.3.18.
FailureOr<Val> tmc::frontend::digamma(Site &s, const Val &in) {
  Expression x(s, in);
  Shifted at = shifted(x);
  Expression inverse = 1 / at.z, square = inverse * inverse;
  Expression series =
      square *
      (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square / 240)));
  Expression y = at.z.of(logarithm) - 0.5 * inverse - series;
  Expression sum = 1 / at.small;
  for (double i = 1; i < kSteps; ++i)
    sum = sum + 1 / (at.small + i);
  y = (y - sum).when(at.isSmall, y);
  Expression slope = at.angle.of(cosine) / at.angle.of(sine) * M_PI;
  return (y - slope).when(at.isReflected, y).value();
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// A fit of log(erfc(x) / t) + x^2 by powers of t = 1 / (1 + x / 2). Source:
/// Numerical Recipes, 2nd edition, section 6.2 (fractional error 1.2e-7).
static constexpr double kErrorFit[] = {
    -1.26551223, 1.00002368,  0.37409196, 0.09678418,  -0.18628806,
    0.27886807,  -1.13520398, 1.48851587, -0.82215223, 0.17087277};

/// The gradient is that of the function, not of its fit: y + slope * (x - x),
/// where only the first x has a gradient.
FailureOr<Val> tmc::frontend::complementaryError(Site &s, const Val &in) {
  Val fixed = s.importer.forward.detached(in, s.loc);
  Expression live(s, in), x(s, fixed), size = x.of(absolute);
  Expression t = 1 / (size * 0.5 + 1);
  Expression fit = t.number(0);
  for (double factor : llvm::reverse(kErrorFit))
    fit = fit * t + factor;
  Expression square = x * x;
  Expression y = t * (fit - square).of(exponential);
  y = (2 - y).when(x < 0, y);
  // An infinity minus itself is NaN.
  Expression isFinite = size < HUGE_VALF;
  Expression zero = (live - x).when(isFinite, x.number(0));
  Expression slope = (-square).of(exponential) * (-2 / std::sqrt(M_PI));
  return (y + slope * zero).value();
}
