// Random.cpp - dropout, and random numbers. The step's seed replaces a node's
// own, which isn't read.

#include "frontends/common/ops/Random.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/onnx/Model.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The draws depend on the step's seed, its number and the sample.
static constexpr const char *kSeed = "seed";

static LogicalResult importDropout(Node &n) {
  const Val in = n.input(0);
  n.ignore({kSeed, "ratio"}); // Used only by sets whose nodes drop nothing.
  double p = 0.5;
  if (n.has(1)) {
    ASSIGN_OR_FAIL(Array ratio, n.array(1));
    if (ratio.size() != 1)
      return n.error("a ratio of shape " + str(ratio.dims()));
    p = shortest(ratio.floats()[0]);
  }
  bool training = false;
  if (n.has(2)) {
    ASSIGN_OR_FAIL(Dims flag, n.ints(2));
    training = flag.size() == 1 && flag[0];
  }
  ASSIGN_OR_FAIL(Dropout result, dropout(n, in, training ? p : 0));
  if (failed(n.set(result.y)))
    return failure();
  return n.isUsed(1) ? n.set(1, result.kept) : success();
}
static Register dropoutOp("Dropout", importDropout);

/// The float type in the node's attribute, or `otherwise`.
static FailureOr<ElementType> typeOf(Node &n, ElementType otherwise) {
  int64_t number = n.intAttr("dtype", 0);
  if (!number)
    return otherwise;
  auto type = typeOfNumber(number);
  if (!type)
    return n.unsupported("elements of type number " + Twine(number));
  return *type;
}

/// The shape of input 0, or of the attribute.
static FailureOr<std::pair<Dims, ElementType>> drawn(Node &n, bool isLike) {
  n.ignore({kSeed});
  ElementType type =
      isLike && isFloat(n.input(0).type) ? n.input(0).type : ElementType::F32;
  ASSIGN_OR_FAIL(type, typeOf(n, type));
  if (!isFloat(type))
    return n.error("random numbers of type " + nameOf(type));
  Dims dims = isLike ? n.input(0).dims : n.intsAttr("shape").value_or(Dims());
  for (int64_t dim : dims)
    if (dim < 1)
      return n.error("random numbers of shape " + str(dims));
  return std::pair(dims, type);
}

/// `x` times `scale` plus `shift`.
static LogicalResult setMoved(Node &n, Value x, double scale, double shift,
                              ElementType type) {
  Val y(x);
  ASSIGN_OR_FAIL(y, multiply(n, {y, Val(Array::splat(y.type, {}, scale))}));
  ASSIGN_OR_FAIL(y, add(n, {y, Val(Array::splat(y.type, {}, shift))}));
  return n.set(castTo(n, y, type));
}

static LogicalResult drawUniform(Node &n, bool isLike) {
  ASSIGN_OR_FAIL(auto what, drawn(n, isLike));
  ASSIGN_OR_FAIL(Value u, uniform(n, what.first));
  double low = n.floatAttr("low", 0), high = n.floatAttr("high", 1);
  return setMoved(n, u, high - low, low, what.second);
}
static LogicalResult importUniform(Node &n) { return drawUniform(n, false); }
static Register randomUniform("RandomUniform", importUniform);
static LogicalResult importUniformLike(Node &n) { return drawUniform(n, true); }
static Register randomUniformLike("RandomUniformLike", importUniformLike);

static LogicalResult drawNormal(Node &n, bool isLike) {
  ASSIGN_OR_FAIL(auto what, drawn(n, isLike));
  ASSIGN_OR_FAIL(Value x, normal(n, what.first));
  return setMoved(n, x, n.floatAttr("scale", 1), n.floatAttr("mean", 0),
                  what.second);
}
static LogicalResult importNormal(Node &n) { return drawNormal(n, false); }
static Register randomNormal("RandomNormal", importNormal);
static LogicalResult importNormalLike(Node &n) { return drawNormal(n, true); }
static Register randomNormalLike("RandomNormalLike", importNormalLike);

/// One with the probability in the input, else zero.
static LogicalResult importBernoulli(Node &n) {
  const Val p = n.input(0);
  n.ignore({kSeed});
  if (failed(checkFloats(n, p)))
    return failure();
  ASSIGN_OR_FAIL(ElementType type, typeOf(n, p.type));
  ASSIGN_OR_FAIL(Value u, uniform(n, p.dims));
  ASSIGN_OR_FAIL(Val share, castTo(n, p, ElementType::F32));
  ASSIGN_OR_FAIL(Val y, less(n, {Val(u), share}));
  return n.set(castTo(n, y, type));
}
static Register bernoulli("Bernoulli", importBernoulli);
