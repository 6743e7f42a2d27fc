// Activation.cpp - activation functions, in terms of arith and math.

#include "frontends/onnx/ops/Pointwise.h"

#include <limits>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// Activations are applied to what a step computes; of constants none is known,
/// so they aren't folded.
static LogicalResult activation(Node &n,
                                llvm::function_ref<Value(Value)> build) {
  ASSIGN_OR_FAIL(Value x, n.value(0));
  if (!isFloat(n.input(0).type))
    return n.unsupported("elements of type " + nameOf(n.input(0).type));
  return n.set(build(x));
}

static Value compare(Node &n, arith::CmpFPredicate predicate, Value x,
                     Value y) {
  return arith::CmpFOp::create(n.b, n.loc, predicate, x, y);
}

static Value select(Node &n, Value condition, Value x, Value y) {
  return arith::SelectOp::create(n.b, n.loc, condition, x, y);
}

static Value maximum(Node &n, Value x, double y) {
  return arith::MaximumFOp::create(n.b, n.loc, x, like(n.b, n.loc, x, y));
}

static Value minimum(Node &n, Value x, double y) {
  return arith::MinimumFOp::create(n.b, n.loc, x, like(n.b, n.loc, x, y));
}

static LogicalResult importRelu(Node &n) {
  return activation(n, [&](Value x) { return maximum(n, x, 0); });
}
static Register relu("Relu", importRelu);

static Value sigmoidOf(Node &n, Value x) {
  Value e =
      math::ExpOp::create(n.b, n.loc, arith::NegFOp::create(n.b, n.loc, x));
  Value one = like(n.b, n.loc, x, 1);
  return nn::div(n.b, n.loc, one, nn::add(n.b, n.loc, one, e));
}

static LogicalResult importSigmoid(Node &n) {
  return activation(n, [&](Value x) { return sigmoidOf(n, x); });
}
static Register sigmoid("Sigmoid", importSigmoid);

static LogicalResult importSwish(Node &n) {
  double alpha = n.floatAttr("alpha", 1);
  return activation(n, [&](Value x) {
    Value inner = alpha == 1 ? x : nn::scale(n.b, n.loc, x, alpha);
    return nn::mul(n.b, n.loc, x, sigmoidOf(n, inner));
  });
}
static Register swish("Swish", importSwish);

static LogicalResult importGelu(Node &n) {
  bool tanh = n.stringAttr("approximate", "none") == "tanh";
  return activation(n, [&](Value x) -> Value {
    return nn::GeluOp::create(n.b, n.loc, x, tanh);
  });
}
static Register gelu("Gelu", importGelu);

static LogicalResult importLeakyRelu(Node &n) {
  double alpha = n.floatAttr("alpha", 0.01);
  return activation(n, [&](Value x) {
    Value positive =
        compare(n, arith::CmpFPredicate::OGE, x, like(n.b, n.loc, x, 0));
    return select(n, positive, x, nn::scale(n.b, n.loc, x, alpha));
  });
}
static Register leakyRelu("LeakyRelu", importLeakyRelu);

static LogicalResult importPRelu(Node &n) {
  ASSIGN_OR_FAIL(Dims shape, commonShape(n, {n.input(0), n.input(1)}));
  if (shape != n.input(0).dims)
    return n.error("a slope of shape " + str(n.input(1).dims) +
                   " doesn't fit an input of shape " + str(n.input(0).dims));
  ASSIGN_OR_FAIL(Value slope, n.broadcast(n.input(1), shape));
  return activation(n, [&](Value x) {
    Value positive =
        compare(n, arith::CmpFPredicate::OGE, x, like(n.b, n.loc, x, 0));
    return select(n, positive, x, nn::mul(n.b, n.loc, x, slope));
  });
}
static Register prelu("PRelu", importPRelu);

/// scale * (x > 0 ? x : alpha * (exp(x) - 1)).
static LogicalResult exponentialUnit(Node &n, double alpha, double scale) {
  return activation(n, [&](Value x) {
    Value zero = like(n.b, n.loc, x, 0);
    Value positive = compare(n, arith::CmpFPredicate::OGT, x, zero);
    // The unused branch must not overflow: its gradient would be NaN.
    Value below = minimum(n, x, 0);
    Value e = nn::sub(n.b, n.loc, math::ExpOp::create(n.b, n.loc, below),
                      like(n.b, n.loc, x, 1));
    Value y = select(n, positive, x, nn::scale(n.b, n.loc, e, alpha));
    return scale == 1 ? y : nn::scale(n.b, n.loc, y, scale);
  });
}

static LogicalResult importElu(Node &n) {
  return exponentialUnit(n, n.floatAttr("alpha", 1), 1);
}
static Register elu("Elu", importElu);

static LogicalResult importSelu(Node &n) {
  return exponentialUnit(n, n.floatAttr("alpha", 1.67326319217681884765625),
                         n.floatAttr("gamma", 1.05070102214813232421875));
}
static Register selu("Selu", importSelu);

/// log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), which can't overflow.
static Value softplusOf(Node &n, Value x) {
  Value negative =
      arith::NegFOp::create(n.b, n.loc, math::AbsFOp::create(n.b, n.loc, x));
  Value tail = math::Log1pOp::create(n.b, n.loc,
                                     math::ExpOp::create(n.b, n.loc, negative));
  return nn::add(n.b, n.loc, maximum(n, x, 0), tail);
}

static LogicalResult importSoftplus(Node &n) {
  return activation(n, [&](Value x) { return softplusOf(n, x); });
}
static Register softplus("Softplus", importSoftplus);

static LogicalResult importMish(Node &n) {
  return activation(n, [&](Value x) {
    return nn::mul(n.b, n.loc, x,
                   math::TanhOp::create(n.b, n.loc, softplusOf(n, x)));
  });
}
static Register mish("Mish", importMish);

static LogicalResult importSoftsign(Node &n) {
  return activation(n, [&](Value x) {
    Value d = nn::add(n.b, n.loc, math::AbsFOp::create(n.b, n.loc, x),
                      like(n.b, n.loc, x, 1));
    return nn::div(n.b, n.loc, x, d);
  });
}
static Register softsign("Softsign", importSoftsign);

static Value hardSigmoidOf(Node &n, Value x, double alpha, double beta) {
  Value y = nn::add(n.b, n.loc, nn::scale(n.b, n.loc, x, alpha),
                    like(n.b, n.loc, x, beta));
  return minimum(n, maximum(n, y, 0), 1);
}

static LogicalResult importHardSigmoid(Node &n) {
  double alpha = n.floatAttr("alpha", 0.2), beta = n.floatAttr("beta", 0.5);
  return activation(n,
                    [&](Value x) { return hardSigmoidOf(n, x, alpha, beta); });
}
static Register hardSigmoid("HardSigmoid", importHardSigmoid);

static LogicalResult importHardSwish(Node &n) {
  return activation(n, [&](Value x) {
    return nn::mul(n.b, n.loc, x, hardSigmoidOf(n, x, 1.0 / 6, 0.5));
  });
}
static Register hardSwish("HardSwish", importHardSwish);

/// A bound of Clip: a scalar known when the model is compiled, or nothing.
static FailureOr<std::optional<double>> bound(Node &n, int i) {
  if (!n.has(i))
    return std::optional<double>();
  ASSIGN_OR_FAIL(Array array, n.array(i));
  if (array.size() != 1)
    return n.error("a bound of shape " + str(array.dims()));
  return std::optional<double>(array.floats()[0]);
}

static LogicalResult importClip(Node &n) {
  ASSIGN_OR_FAIL(std::optional<double> low, bound(n, 1));
  ASSIGN_OR_FAIL(std::optional<double> high, bound(n, 2));
  if (n.foldable(0)) {
    ASSIGN_OR_FAIL(Array x, n.array(0));
    auto clip = [&](double v) {
      v = low ? std::max(v, *low) : v;
      return high ? std::min(v, *high) : v;
    };
    if (isFloat(x.type()))
      return n.set(Array::mapFloats(x.type(), {x},
                                    [&](Doubles v) { return clip(v[0]); }));
    return n.set(Array::mapInts(x.type(), {x}, [&](Ints v) {
      return static_cast<int64_t>(clip(static_cast<double>(v[0])));
    }));
  }
  ASSIGN_OR_FAIL(Value x, n.value(0));
  bool isFloats = isFloat(n.input(0).type);
  if (low) {
    Value l = like(n.b, n.loc, x, *low);
    x = isFloats ? Value(arith::MaximumFOp::create(n.b, n.loc, x, l))
                 : Value(arith::MaxSIOp::create(n.b, n.loc, x, l));
  }
  if (high) {
    Value h = like(n.b, n.loc, x, *high);
    x = isFloats ? Value(arith::MinimumFOp::create(n.b, n.loc, x, h))
                 : Value(arith::MinSIOp::create(n.b, n.loc, x, h));
  }
  return n.set(x);
}
static Register clip("Clip", importClip);
