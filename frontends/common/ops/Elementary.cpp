#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Activation.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

FailureOr<Val> tmc::frontend::ceilOf(Site &s, const Val &x) {
  if (!isFloat(x.type))
    return x;
  return (-(-Expression(s, x)).of(floorOf)).value();
}

FailureOr<Val> tmc::frontend::truncated(Site &s, const Val &in) {
  if (!isFloat(in.type))
    return in;
  Expression x(s, in);
  return (-(-x).of(floorOf)).when(x < 0, x.of(floorOf)).value();
}

FailureOr<Val> tmc::frontend::rounded(Site &s, const Val &in) {
  if (!isFloat(in.type))
    return in;
  Expression x(s, in), below = x.of(floorOf);
  Expression rest = x - below, above = below + 1;
  Expression isEven = (below * 0.5).of(floorOf) * 2 == below;
  Expression isDown = rest < 0.5, isHalf = rest == rest.number(0.5);
  return below.when(isDown | (isHalf & isEven), above).value();
}

/// `a` minus the truncated multiple of `b`, with the sign of `a`. If the
/// multiple is 0, the result is `a`, even for an infinite `b`.
static Expression rest(const Expression &a, const Expression &b) {
  Expression times = (a / b).of(truncated);
  return a - times.number(0).when(times == times.number(0), times * b);
}

/// For floats, exact only if the quotient is exact.
FailureOr<Val> tmc::frontend::remainder(Site &s, Operands two) {
  if (two.size() != 2 || !isFloat(two[0].type) || s.allFoldable(two))
    return wholeRemainder(s, two);
  return rest(Expression(s, two[0]), Expression(s, two[1])).value();
}

FailureOr<Val> tmc::frontend::floorModulo(Site &s, Operands two) {
  if (two.size() != 2 || !isFloat(two[0].type))
    return wholeModulo(s, two);
  Expression a(s, two[0]), b(s, two[1]), left = rest(a, b);
  Expression isOther = ((left < 0) & (b > 0)) | ((left > 0) & (b < 0));
  return (left + b).when(isOther, left).value();
}

FailureOr<Val> tmc::frontend::signOf(Site &s, const Val &in) {
  Expression x(s, in);
  if (!isFloat(in.type)) {
    auto number = [&](int64_t value) {
      return Expression(s, Val(Array::splatInt(in.type, {}, value)));
    };
    Expression isBelow = x.with(less, number(0));
    return number(-1)
        .when(isBelow, number(1).when(x.with(greater, number(0)), number(0)))
        .value();
  }
  return x.number(-1).when(x < 0, x.number(1).when(x > 0, x.number(0))).value();
}

FailureOr<Val> tmc::frontend::isInfinite(Site &s, const Val &in, bool positive,
                                         bool negative) {
  Expression x(s, in);
  Expression above = x == x.number(INFINITY), below = x == x.number(-INFINITY);
  if (positive && negative)
    return (above | below).value();
  if (positive || negative)
    return (positive ? above : below).value();
  return Val(Array::splatInt(ElementType::Bool, in.dims, 0));
}

//===----------------------------------------------------------------------===//
// Exponentials and logarithms
//===----------------------------------------------------------------------===//

/// Near zero it uses t = tanh(x / 2): 2 t / (1 - t), which loses no digits
/// there.
FailureOr<Val> tmc::frontend::exponentialMinusOne(Site &s, const Val &in) {
  Expression x(s, in), size = x.of(absolute);
  Expression isNear = size < 0.5;
  Expression t = (x.when(isNear, x.number(0)) * 0.5).of(hyperbolicTangent);
  return (t * 2 / (1 - t)).when(isNear, x.of(exponential) - 1).value();
}

FailureOr<Val> tmc::frontend::exponentialOf(Site &s, double base,
                                            const Val &in) {
  return (Expression(s, in) * std::log(base)).of(exponential).value();
}

FailureOr<Val> tmc::frontend::logarithmOf(Site &s, double base, const Val &in) {
  return (Expression(s, in).of(logarithm) * (1 / std::log(base))).value();
}

Expression tmc::frontend::logSumOf(const Expression &a, const Expression &b,
                                   double base) {
  const double unit = std::log(base);
  Expression isFirst = a.with(greaterOrEqual, b);
  Expression larger = a.when(isFirst, b), smaller = b.when(isFirst, a);
  Expression isFinite = larger.of(absolute) < HUGE_VALF;
  Expression apart = (smaller - larger).when(isFinite, larger.number(0));
  return larger + (apart * unit).of(softplus) / unit;
}

//===----------------------------------------------------------------------===//
// Circles and hyperbolas
//===----------------------------------------------------------------------===//

Expression tmc::frontend::rootOf(const Expression &x, double order) {
  Expression isZero = x == 0, inside = x.number(1).when(isZero, x);
  Expression root = order == 2 ? inside.of(squareRoot)
                               : inside.with(power, x.number(1 / order));
  return x.number(0).when(isZero, root);
}

FailureOr<Val> tmc::frontend::logAddExp(Site &s, const Val &a, const Val &b) {
  return logSumOf(Expression(s, a), Expression(s, b), M_E).value();
}

FailureOr<Val> tmc::frontend::logSigmoid(Site &s, const Val &x) {
  return (-(-Expression(s, x)).of(softplus)).value();
}

FailureOr<Val> tmc::frontend::tangent(Site &s, const Val &in) {
  Expression x(s, in);
  return (x.of(sine) / x.of(cosine)).value();
}

/// atan(x / sqrt((1 - x) (1 + x))), plus or minus pi / 2 at the ends.
FailureOr<Val> tmc::frontend::arcSine(Site &s, const Val &in) {
  Expression x(s, in);
  Expression other = ((1 - x) * (x + 1)).of(squareRoot);
  return (x / other).of(arcTangent).value();
}

/// 2 atan(sqrt((1 - x) / (1 + x))).
FailureOr<Val> tmc::frontend::arcCosine(Site &s, const Val &in) {
  Expression x(s, in);
  return (((1 - x) / (x + 1)).of(squareRoot).of(arcTangent) * 2).value();
}

/// Near zero it uses t = tanh(x / 2): 2 t / (1 - t * t).
FailureOr<Val> tmc::frontend::hyperbolicSine(Site &s, const Val &in) {
  Expression x(s, in), isNear = x.of(absolute) < 1;
  Expression t = (x.when(isNear, x.number(0)) * 0.5).of(hyperbolicTangent);
  Expression far = (x.of(exponential) - (-x).of(exponential)) * 0.5;
  return (t * 2 / (1 - t * t)).when(isNear, far).value();
}

FailureOr<Val> tmc::frontend::hyperbolicCosine(Site &s, const Val &in) {
  Expression x(s, in);
  return ((x.of(exponential) + (-x).of(exponential)) * 0.5).value();
}

/// log(a + sqrt(a * a + 1)) with a = |x|, by log1p.
FailureOr<Val> tmc::frontend::inverseHyperbolicSine(Site &s, const Val &in) {
  Expression x(s, in), a = x.of(absolute), square = a * a;
  Expression y = (a + square / ((square + 1).of(squareRoot) + 1)).of(log1p);
  return (-y).when(x < 0, y).value();
}

FailureOr<Val> tmc::frontend::inverseHyperbolicCosine(Site &s, const Val &in) {
  Expression above = Expression(s, in) - 1;
  return (above + (above * (above + 2)).of(squareRoot)).of(log1p).value();
}

FailureOr<Val> tmc::frontend::inverseHyperbolicTangent(Site &s, const Val &in) {
  Expression x(s, in);
  return ((x.of(log1p) - (-x).of(log1p)) * 0.5).value();
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

FailureOr<Val> tmc::frontend::celu(Site &s, const Val &in, double alpha) {
  Expression x(s, in), isAbove = x > 0;
  Expression below = x.number(0).when(isAbove, x) * (1 / alpha);
  return x.when(isAbove, below.of(exponentialMinusOne) * alpha).value();
}

FailureOr<Val> tmc::frontend::thresholded(Site &s, const Val &in,
                                          double threshold, double otherwise) {
  Expression x(s, in);
  return x.when(x > threshold, x.number(otherwise)).value();
}

FailureOr<Val> tmc::frontend::shrunk(Site &s, const Val &in, double limit,
                                     double bias) {
  Expression x(s, in);
  Expression low = (x + bias).when(x < -limit, x.number(0));
  return (x - bias).when(x > limit, low).value();
}
