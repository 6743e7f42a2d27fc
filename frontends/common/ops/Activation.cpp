#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Pointwise.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

static FailureOr<Val> activation(Site &s, const Val &in,
                                 llvm::function_ref<Value(Value)> build) {
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  if (failed(checkFloats(s, in)))
    return failure();
  return Val(build(x));
}

static Value compare(Site &s, arith::CmpFPredicate predicate, Value x,
                     Value y) {
  return arith::CmpFOp::create(s.b, s.loc, predicate, x, y);
}

static Value select(Site &s, Value condition, Value x, Value y) {
  return arith::SelectOp::create(s.b, s.loc, condition, x, y);
}

static Value atLeast(Site &s, Value x, double y) {
  return arith::MaximumFOp::create(s.b, s.loc, x, s.like(x, y));
}

static Value atMost(Site &s, Value x, double y) {
  return arith::MinimumFOp::create(s.b, s.loc, x, s.like(x, y));
}

FailureOr<Val> tmc::frontend::relu(Site &s, const Val &x) {
  // Models compute sizes with relu, so constants are folded.
  if (s.foldable(x))
    return clamp(s, x, 0, std::nullopt);
  return activation(s, x, [&](Value x) { return atLeast(s, x, 0); });
}

/// -|x| without a kink of its own at 0, where it is x.
static Value minusSize(Site &s, Value x) {
  Value isPositive = compare(s, arith::CmpFPredicate::OGT, x, s.like(x, 0));
  return select(s, isPositive, arith::NegFOp::create(s.b, s.loc, x), x);
}

/// 1 / (1 + exp(-x)), computed from the exponential of -|x|, which can't
/// overflow: with exp(-x) the derivatives of the parts are 0 and infinity far
/// below zero.
static Value sigmoidOf(Site &s, Value x) {
  Value e = math::ExpOp::create(s.b, s.loc, minusSize(s, x));
  Value one = s.like(x, 1);
  Value isPositive = compare(s, arith::CmpFPredicate::OGT, x, s.like(x, 0));
  Value below = nn::add(s.b, s.loc, one, e);
  return nn::div(s.b, s.loc, select(s, isPositive, one, e), below);
}

FailureOr<Val> tmc::frontend::sigmoid(Site &s, const Val &x) {
  return activation(s, x, [&](Value x) { return sigmoidOf(s, x); });
}

FailureOr<Val> tmc::frontend::swish(Site &s, const Val &x, double alpha) {
  return activation(s, x, [&](Value x) {
    Value inner = alpha == 1 ? x : nn::scale(s.b, s.loc, x, alpha);
    return nn::mul(s.b, s.loc, x, sigmoidOf(s, inner));
  });
}

FailureOr<Val> tmc::frontend::gelu(Site &s, const Val &x, bool tanh) {
  return activation(s, x, [&](Value x) -> Value {
    return nn::GeluOp::create(s.b, s.loc, x, tanh);
  });
}

// At 0 the gradient is the slope, as in PyTorch.
FailureOr<Val> tmc::frontend::leakyRelu(Site &s, const Val &x, double slope) {
  return activation(s, x, [&](Value x) {
    Value positive = compare(s, arith::CmpFPredicate::OGT, x, s.like(x, 0));
    return select(s, positive, x, nn::scale(s.b, s.loc, x, slope));
  });
}

FailureOr<Val> tmc::frontend::prelu(Site &s, const Val &x, const Val &slopes) {
  ASSIGN_OR_FAIL(Dims shape, commonShape(s, {x, slopes}));
  if (shape != x.dims)
    return s.error("a slope of shape " + str(slopes.dims) +
                   " doesn't fit an input of shape " + str(x.dims));
  ASSIGN_OR_FAIL(Value slope, s.broadcast(slopes, shape));
  return activation(s, x, [&](Value x) {
    Value positive = compare(s, arith::CmpFPredicate::OGT, x, s.like(x, 0));
    return select(s, positive, x, nn::mul(s.b, s.loc, x, slope));
  });
}

FailureOr<Val> tmc::frontend::exponentialUnit(Site &s, const Val &x,
                                              double alpha, double scale) {
  return activation(s, x, [&](Value x) {
    Value zero = s.like(x, 0);
    Value positive = compare(s, arith::CmpFPredicate::OGT, x, zero);
    // The unused branch must not overflow: its gradient would be NaN.
    Value below = select(s, positive, zero, x);
    Value raised = math::ExpOp::create(s.b, s.loc, below);
    Value e = nn::sub(s.b, s.loc, raised, s.like(x, 1));
    Value y = select(s, positive, x, nn::scale(s.b, s.loc, e, alpha));
    return scale == 1 ? y : nn::scale(s.b, s.loc, y, scale);
  });
}

/// log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), which can't overflow. At 0
/// the slopes of the parts are 0 and 1/2: -|x| is computed as x there.
static Value softplusOf(Site &s, Value x) {
  Value tail = math::Log1pOp::create(
      s.b, s.loc, math::ExpOp::create(s.b, s.loc, minusSize(s, x)));
  return nn::add(s.b, s.loc, atLeast(s, x, 0), tail);
}

FailureOr<Val> tmc::frontend::softplus(Site &s, const Val &x) {
  return activation(s, x, [&](Value x) { return softplusOf(s, x); });
}

FailureOr<Val> tmc::frontend::mish(Site &s, const Val &x) {
  return activation(s, x, [&](Value x) {
    return nn::mul(s.b, s.loc, x,
                   math::TanhOp::create(s.b, s.loc, softplusOf(s, x)));
  });
}

FailureOr<Val> tmc::frontend::softsign(Site &s, const Val &x) {
  return activation(s, x, [&](Value x) {
    Value size = math::AbsFOp::create(s.b, s.loc, x);
    Value d = nn::add(s.b, s.loc, size, s.like(x, 1));
    return nn::div(s.b, s.loc, x, d);
  });
}

static Value hardSigmoidOf(Site &s, Value x, double alpha, double beta) {
  Value slope = nn::scale(s.b, s.loc, x, alpha);
  Value y = nn::add(s.b, s.loc, slope, s.like(x, beta));
  return atMost(s, atLeast(s, y, 0), 1);
}

FailureOr<Val> tmc::frontend::hardSigmoid(Site &s, const Val &x, double alpha,
                                          double beta) {
  return activation(s, x,
                    [&](Value x) { return hardSigmoidOf(s, x, alpha, beta); });
}

FailureOr<Val> tmc::frontend::hardSwish(Site &s, const Val &x) {
  return activation(s, x, [&](Value x) {
    return nn::mul(s.b, s.loc, x, hardSigmoidOf(s, x, 1.0 / 6, 0.5));
  });
}

FailureOr<Val> tmc::frontend::clamp(Site &s, const Val &in,
                                    std::optional<double> low,
                                    std::optional<double> high) {
  if (s.foldable(in)) {
    ASSIGN_OR_FAIL(Array x, s.arrayOf(in));
    auto clip = [&](double v) {
      v = low ? std::max(v, *low) : v;
      return high ? std::min(v, *high) : v;
    };
    if (isFloat(x.type()))
      return Val(
          mapFloats(x.type(), {x}, [&](Doubles v) { return clip(v[0]); }));
    return Val(mapInts(x.type(), {x}, [&](Ints v) {
      return static_cast<int64_t>(clip(static_cast<double>(v[0])));
    }));
  }
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  bool isFloats = isFloat(in.type);
  if (low) {
    Value l = s.like(x, *low);
    x = isFloats ? Value(arith::MaximumFOp::create(s.b, s.loc, x, l))
                 : Value(arith::MaxSIOp::create(s.b, s.loc, x, l));
  }
  if (high) {
    Value h = s.like(x, *high);
    x = isFloats ? Value(arith::MinimumFOp::create(s.b, s.loc, x, h))
                 : Value(arith::MinSIOp::create(s.b, s.loc, x, h));
  }
  return Val(x);
}
