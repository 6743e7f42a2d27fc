// NarrowRules.cpp - ways to grow a graph in 8 and 16 bits. A rule narrows
// values, computes with them, and offers the results widened, so that the other
// rules go on from there.

#include "test/unit/passes/RandomGraph.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/Scales.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using nn::tensorType;

namespace {

/// Builds in a type of a rule's own.
class Narrow {
public:
  explicit Narrow(GraphBuilder &g) : Narrow(g, anyType(g)) {}
  Narrow(GraphBuilder &g, Type element) : g(g), element(element) {}

  static Type anyType(GraphBuilder &g) {
    const Type types[] = {g.b.getBF16Type(), g.b.getF16Type(),
                          Float8E4M3FNType::get(g.b.getContext()),
                          Float8E5M2Type::get(g.b.getContext())};
    return types[g.random.below(4)];
  }

  /// From the graph's type or f32, rounded; and back, exactly.
  Value down(Value x) {
    return arith::TruncFOp::create(g.b, g.loc, typeLike(x, element), x);
  }
  Value up(Value x) {
    return arith::ExtFOp::create(g.b, g.loc, typeLike(x, g.element()), x);
  }
  Value constant(Value like, double value) {
    return nn::splat(g.b, g.loc, like.getType(), value);
  }
  void offer(Value x) { g.add(up(x)); }

private:
  GraphBuilder &g;
  Type element;

  RankedTensorType typeLike(Value x, Type to) {
    return RankedTensorType::get(tensorType(x).getShape(), to);
  }
};

} // namespace

/// One more op in a chain. `other` gives values of the type of its argument.
static Value step(GraphBuilder &g, Narrow &n, Value x,
                  llvm::function_ref<Value(Value)> other) {
  OpBuilder &b = g.b;
  Location loc = g.loc;
  switch (g.random.below(10)) {
  case 0:
    return nn::add(b, loc, x, other(x));
  case 1:
    return nn::sub(b, loc, other(x), x);
  case 2:
    return nn::mul(b, loc, x, other(x));
  case 3:
    return nn::mul(b, loc, x, n.constant(x, 0.7));
  case 4:
    return nn::div(b, loc, x, n.constant(x, 3));
  case 5:
    return math::TanhOp::create(b, loc, x);
  case 6:
    return math::ExpOp::create(b, loc, math::TanhOp::create(b, loc, x));
  case 7:
    return arith::MaximumFOp::create(b, loc, x, other(x));
  case 8: {
    Value below =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, other(x));
    return arith::SelectOp::create(b, loc, below, x, n.constant(x, 0.25));
  }
  default:
    return math::SqrtOp::create(b, loc, math::AbsFOp::create(b, loc, x));
  }
}

/// A chain of pointwise ops, some of whose values others use too.
static void chain(GraphBuilder &g) {
  Narrow n(g);
  Value wide = g.pick();
  Value x = n.down(g.squash(wide));
  for (int64_t i = 0, e = g.random.between(1, 5); i < e; ++i) {
    x = step(g, n, x, [&](Value) { return n.down(g.squash(g.like(wide))); });
    if (g.random.below(3) == 0)
      n.offer(x);
  }
  n.offer(x);
}

/// From one narrow type to another, and f32 on the way.
static void requantize(GraphBuilder &g) {
  Narrow first(g), second(g), single(g, g.b.getF32Type());
  Value x = g.squash(g.pick());
  if (!g.options.f32)
    x = single.down(x);
  x = first.down(x);
  x = arith::ExtFOp::create(
      g.b, g.loc, g.tensor(tensorType(x).getShape(), g.b.getF32Type()), x);
  x = nn::add(g.b, g.loc, x, single.constant(x, 0.3));
  x = second.down(x);
  second.offer(x);
}

/// A row's statistics: sums are made in f32 and rounded once.
static void rowStatistics(GraphBuilder &g) {
  Narrow n(g);
  Value x = g.pick();
  RankedTensorType type = tensorType(x);
  if (!type.getRank() || (g.options.batchSafe && type.getRank() < 2))
    return g.add(g.squash(x));
  x = n.down(g.squash(x));
  auto kind = nn::ReduceKind(g.random.below(3));
  Value row = nn::ReduceOp::create(g.b, g.loc, x, kind,
                                   ArrayRef<int64_t>{type.getRank() - 1});
  if (g.random.coin())
    n.offer(row);
  row = nn::mul(g.b, g.loc, row, n.constant(row, 0.3));
  n.offer(nn::sub(g.b, g.loc, x,
                  nn::broadcastLeading(g.b, g.loc, row, tensorType(x))));
}

/// What only moves elements, of one or two bytes each.
static void movement(GraphBuilder &g) {
  Narrow n(g);
  Value x = g.pick(2);
  x = n.down(g.squash(x));
  auto shape = tensorType(x).getShape();
  switch (g.random.below(shape[1] > 1 ? 4 : 3)) {
  case 0:
    x = nn::TransposeOp::create(g.b, g.loc, x, ArrayRef<int64_t>{1, 0});
    break;
  case 1:
    x = nn::reshapeTo(g.b, g.loc, x, {shape[0] * shape[1]});
    break;
  case 2:
    x = nn::ConcatOp::create(g.b, g.loc, ValueRange{x, x}, 1);
    break;
  default:
    x = nn::SliceOp::create(
        g.b, g.loc,
        RankedTensorType::get({shape[0], shape[1] - 1},
                              tensorType(x).getElementType()),
        x, ArrayRef<int64_t>{0, 1}, ArrayRef<int64_t>{1, 1});
    break;
  }
  n.offer(step(g, n, x, [](Value like) { return like; }));
}

/// A product with a parameter, both rounded to 16 bits.
static void product(GraphBuilder &g) {
  Narrow n(g, g.random.coin() ? Type(g.b.getBF16Type()) : g.b.getF16Type());
  if (g.options.batchSafe) // It might sum over the batch, and round that.
    return g.add(g.squash(g.pick()));
  Value x = n.down(g.squash(g.pick(2)));
  int64_t depth = tensorType(x).getDimSize(1);
  Value w = n.down(g.param({depth, g.size()}));
  n.offer(nn::MatmulOp::create(g.b, g.loc, x, w));
}

/// What a convolution makes of an image of 16 bits, and then perhaps a pool or
/// a batch norm, by parameters and statistics of 16 bits or f32.
static void image(GraphBuilder &g) {
  // Steps with f16 are for losses that are scaled; few are.
  Narrow n(g, g.random.below(16) ? Type(g.b.getBF16Type()) : g.b.getF16Type());
  Narrow single(g, g.b.getF32Type());
  Value x = n.down(g.squash(g.pick(4)));
  const bool last = g.random.coin();
  const SmallVector<int64_t> ones{1, 1}, border{1, 1, 1, 1}, window{3, 3};
  // A graph of f32 has what is rounded as it is read.
  auto given = [&](SmallVector<int64_t> shape, Narrow &type) {
    Value value = g.param(shape);
    return g.options.f32 && &type == &single ? value : type.down(value);
  };
  auto channels = [&] { return tensorType(x).getDimSize(last ? 3 : 1); };
  x = nn::ConvOp::create(
      g.b, g.loc, x,
      given({g.size(), channels(), 3, 3}, g.random.coin() ? n : single), ones,
      border, ones, last, 1);
  switch (g.random.below(g.options.batchSafe ? 3 : 4)) {
  case 0:
    break;
  case 1:
    x = nn::MaxPoolOp::create(g.b, g.loc, x, ones, border, ones, last, window);
    break;
  case 2:
    x = nn::AvgPoolOp::create(g.b, g.loc, x, ones, border, ones, last, window,
                              g.random.coin());
    break;
  default: {
    if (tensorType(x).getNumElements() < 2 * channels())
      break; // one number has no variance
    SmallVector<Value> vectors;
    for (int i = 0; i < 4; ++i)
      vectors.push_back(given({channels()}, single));
    Value variance = math::AbsFOp::create(g.b, g.loc, vectors[3]);
    x = nn::BatchNormOp::create(g.b, g.loc, x, vectors[0], vectors[1],
                                vectors[2], variance, g.b.getF64FloatAttr(0.1),
                                g.b.getF64FloatAttr(0.1),
                                last ? g.b.getUnitAttr() : nullptr)
            .getResult();
  }
  }
  n.offer(x);
}

/// Codes with a scale of the whole tensor, and what they stand for. They have
/// no derivative: a sum keeps what is before them trained.
static void quantized(GraphBuilder &g) {
  Value x = g.squash(g.pick());
  if (g.options.batchSafe) // All samples share the scale.
    return g.add(x);
  Value trained = x;
  Narrow single(g, g.b.getF32Type());
  if (!g.options.f32)
    x = single.down(x);
  Type format = Float8E4M3FNType::get(g.b.getContext());
  if (g.random.coin())
    format = Float8E5M2Type::get(g.b.getContext());
  x = nn::DetachOp::create(g.b, g.loc, x);
  Value codes, one;
  RankedTensorType type = tensorType(x).clone(format);
  if (type.getRank() > 1 && g.random.coin()) { // in both orders; back again
    auto op = nn::QuantizeBothOp::create(
        g.b, g.loc, type, RankedTensorType::get({}, g.b.getF32Type()),
        nn::turnedType(type), Type(), Type(), x, Value());
    SmallVector<int64_t> order =
        llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    std::swap(order.end()[-1], order.end()[-2]);
    codes = g.random.coin()
                ? op.getCodes()
                : nn::TransposeOp::create(g.b, g.loc, op.getTurned(), order)
                      .getResult();
    one = op.getScale();
  } else {
    auto op = nn::QuantizeOp::create(g.b, g.loc, x, format);
    codes = op.getCodes();
    one = op.getScale();
  }
  Value wide = arith::ExtFOp::create(g.b, g.loc, tensorType(x), codes);
  Value scale = nn::broadcastTo(g.b, g.loc, one, tensorType(x), {});
  Value y = nn::mul(g.b, g.loc, wide, scale);
  g.add(nn::add(g.b, g.loc, trained, g.options.f32 ? y : single.up(y)));
}

/// Inputs that are narrow from the start.
static void narrowInput(GraphBuilder &g) {
  Narrow n(g);
  SmallVector<int64_t> shape = g.shape(g.random.between(1, 3));
  Value x = g.batch(g.tensor(shape, Narrow::anyType(g)));
  g.add(g.squash(n.up(x)));
}

ArrayRef<Rule> tmc::test::narrowRules() {
  static const Rule rules[] = {chain,       chain,         chain,   requantize,
                               movement,    rowStatistics, product, quantized,
                               narrowInput, image};
  return rules;
}
