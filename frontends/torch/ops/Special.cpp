// Special.cpp - functions of one or two operands, composed of others in forms
// whose gradients are finite wherever PyTorch's are.

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Gamma.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/ops/Pointwise.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

namespace {
/// The operands `self` and another, of one type of floats.
struct Pair {
  Expression x, y;
};
} // namespace

static FailureOr<Pair> pairOf(Call &c, const char *other) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", other}));
  for (Val &v : operands.values)
    if (!isFloat(v.type)) {
      ASSIGN_OR_FAIL(v, castTo(c, v, ElementType::F32));
    }
  return Pair{Expression(c, operands.values[0]),
              Expression(c, operands.values[1])};
}

/// `self` as floats.
static FailureOr<Val> floatsOf(Call &c) {
  const Val x = c.tensor("self");
  return isFloat(x.type) ? FailureOr<Val>(x) : castTo(c, x, ElementType::F32);
}

static FailureOr<Val> logAddExpOf(Site &s, Operands two) {
  return logAddExp(s, two[0], two[1]);
}

static Expression isAtLeast(const Expression &a, const Expression &b) {
  return a.with(greaterOrEqual, b);
}

/// `x` where it isn't 0, else 1: a safe divisor.
static Expression nonzero(const Expression &x) {
  return x.number(1).when(x == 0, x);
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

static LogicalResult importLogAddExp(Call &c) {
  ASSIGN_OR_FAIL(Pair both, pairOf(c, "other"));
  return c.set(both.x.with(logAddExpOf, both.y).value());
}
static Register logAddExpOp("logaddexp", importLogAddExp);
/// log2(2^x + 2^y).
static LogicalResult importLogAddExp2(Call &c) {
  ASSIGN_OR_FAIL(Pair both, pairOf(c, "other"));
  Expression sum = (both.x * M_LN2).with(logAddExpOf, both.y * M_LN2);
  return c.set((sum / M_LN2).value());
}
static Register logAddExp2("logaddexp2", importLogAddExp2);

/// x * log(y), and 0 where x is 0.
static LogicalResult importXLogY(Call &c) {
  ASSIGN_OR_FAIL(Pair both, pairOf(c, "other"));
  Expression isZero = both.x == 0;
  Expression inside = both.y.number(1).when(isZero, both.y);
  return c.set(
      both.x.number(0).when(isZero, both.x * inside.of(logarithm)).value());
}
static Register xlogy("xlogy", importXLogY);
static Register specialXlogy("special_xlogy", importXLogY);

/// sqrt(x^2 + y^2), without a gradient at 0.
static LogicalResult importHypot(Call &c) {
  ASSIGN_OR_FAIL(Pair both, pairOf(c, "other"));
  return c.set(rootOf(both.x * both.x + both.y * both.y).value());
}
static Register hypotOp("hypot", importHypot);

/// The angle of (x, y), which are `other` and `self`: computed from the smaller
/// over the larger.
static LogicalResult importAtan2(Call &c) {
  ASSIGN_OR_FAIL(Pair both, pairOf(c, "other"));
  const Expression &y = both.x, &x = both.y;
  Expression isFlat = isAtLeast(x.of(absolute), y.of(absolute));
  Expression sign = y.number(-1).when(y < 0, y.number(1));
  Expression flat = (y / nonzero(x)).of(arcTangent);
  flat = (flat + sign * M_PI).when(x < 0, flat);
  Expression below = y.number(1).when(isFlat, y);
  Expression steep = sign * M_PI_2 - (x / below).of(arcTangent);
  return c.set(flat.when(isFlat, steep).value());
}
static Register atan2Op("atan2", importAtan2);
static Register arctan2("arctan2", importAtan2);

/// The absolute value of x with the sign of y; -0 counts as positive.
static LogicalResult importCopysign(Call &c) {
  ASSIGN_OR_FAIL(Pair both, pairOf(c, "other"));
  Expression size = both.x.of(absolute);
  return c.set((-size).when(both.y < 0, size).value());
}
static Register copysignOp("copysign", importCopysign);

/// 0 below 0, 1 above, `values` at it.
static LogicalResult importHeaviside(Call &c) {
  ASSIGN_OR_FAIL(Pair both, pairOf(c, "values"));
  Expression step = both.x.number(1).when(both.x > 0, both.x.number(0));
  return c.set(both.y.when(both.x == 0, step).value());
}
static Register heaviside("heaviside", importHeaviside);

/// The larger or smaller one; if one is NaN, the other.
static LogicalResult numberOf(Call &c, Expression::Two choose) {
  ASSIGN_OR_FAIL(Pair both, pairOf(c, "other"));
  Expression chosen = both.x.with(choose, both.y);
  chosen = both.x.when(both.y.of(isNaN), chosen);
  return c.set(both.y.when(both.x.of(isNaN), chosen).value());
}
static LogicalResult importFmax(Call &c) { return numberOf(c, maximum); }
static Register fmaxOp("fmax", importFmax);
static LogicalResult importFmin(Call &c) { return numberOf(c, minimum); }
static Register fminOp("fmin", importFmin);

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

/// log(x / (1 - x)), with x clamped between eps and 1 - eps if eps is given.
static LogicalResult importLogit(Call &c) {
  ASSIGN_OR_FAIL(Val self, floatsOf(c));
  if (c.has("eps")) {
    ASSIGN_OR_FAIL(double eps, c.number("eps", std::nullopt));
    ASSIGN_OR_FAIL(self, clamp(c, self, eps, 1 - eps));
  }
  Expression x(c, self);
  return c.set((x / (1 - x)).of(logarithm).value());
}
static Register logit("logit", importLogit);
static Register specialLogit("special_logit", importLogit);

/// `function` of floats.
static LogicalResult ofFloats(Call &c, Expression::One function) {
  ASSIGN_OR_FAIL(Val self, floatsOf(c));
  return c.set(function(c, self));
}
static LogicalResult importLgamma(Call &c) { return ofFloats(c, logGamma); }
static Register lgammaOp("lgamma", importLgamma);
static Register specialGammaln("special_gammaln", importLgamma);
static LogicalResult importDigamma(Call &c) { return ofFloats(c, digamma); }
static Register digammaOp("digamma", importDigamma);
static Register specialDigamma("special_digamma", importDigamma);
static Register specialPsi("special_psi", importDigamma);
static LogicalResult importErfc(Call &c) {
  return ofFloats(c, complementaryError);
}
static Register erfcOp("erfc", importErfc);
static Register specialErfc("special_erfc", importErfc);

static LogicalResult importFrac(Call &c) {
  Expression x(c, c.tensor("self"));
  return c.set((x - x.of(truncated)).value());
}
static Register frac("frac", importFrac);

/// sin(pi x) / (pi x), and 1 at 0.
static LogicalResult importSinc(Call &c) {
  ASSIGN_OR_FAIL(Val self, floatsOf(c));
  Expression x(c, self), angle = nonzero(x) * M_PI;
  return c.set(x.number(1).when(x == 0, angle.of(sine) / angle).value());
}
static Register sinc("sinc", importSinc);
static Register specialSinc("special_sinc", importSinc);

static LogicalResult scaled(Call &c, double factor) {
  ASSIGN_OR_FAIL(Val self, floatsOf(c));
  return c.set((Expression(c, self) * factor).value());
}
static LogicalResult importDeg2rad(Call &c) { return scaled(c, M_PI / 180); }
static Register deg2rad("deg2rad", importDeg2rad);
static LogicalResult importRad2deg(Call &c) { return scaled(c, 180 / M_PI); }
static Register rad2deg("rad2deg", importRad2deg);

/// Replaces NaN and infinities by numbers: by default 0 and the largest of the
/// type.
static LogicalResult importNanToNum(Call &c) {
  const Val self = c.tensor("self");
  if (!isFloat(self.type))
    return c.set(self);
  double largest = self.type == ElementType::F16    ? 65504
                   : self.type == ElementType::BF16 ? 0x1.FEp127
                   : self.type == ElementType::F32  ? 0x1.FFFFFEp127
                                                    : 0x1.FFFFFFFFFFFFFp1023;
  ASSIGN_OR_FAIL(double nan, c.number("nan", 0));
  ASSIGN_OR_FAIL(double high, c.number("posinf", largest));
  ASSIGN_OR_FAIL(double low, c.number("neginf", -largest));
  Expression x(c, self), y = x.number(nan).when(x.of(isNaN), x);
  auto infinite = [](bool positive) {
    return [positive](Site &s, const Val &v) {
      return isInfinite(s, v, positive, !positive);
    };
  };
  y = x.number(high).when(x.of(infinite(true)), y);
  return c.set(x.number(low).when(x.of(infinite(false)), y).value());
}
static Register nanToNum("nan_to_num", importNanToNum);

//===----------------------------------------------------------------------===//
// With a slope below 0
//===----------------------------------------------------------------------===//

/// One slope, or one for each channel.
static LogicalResult importPrelu(Call &c) {
  const Val x = c.tensor("self");
  Val slope = c.tensor("weight");
  if (slope.rank() == 1 && x.rank() > 1) {
    if (slope.dims[0] != 1 && slope.dims[0] != x.dims[1])
      return c.error(Twine(slope.dims[0]) + " slopes for shape " + str(x.dims));
    Dims dims(x.rank() - 1, 1);
    dims[0] = slope.dims[0];
    ASSIGN_OR_FAIL(slope, reshaped(c, slope, dims));
  }
  return c.set(prelu(c, x, slope));
}
static Register preluOp("prelu", importPrelu);
static Register preluKernel("_prelu_kernel", importPrelu);
