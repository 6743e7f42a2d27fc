#include "frontends/common/ops/Attention.h"
#include "frontends/common/Importer.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Norm.h"
#include "frontends/common/ops/Random.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// True if a constant mask of [T, S] is the causal one.
static bool saysCausal(const Array &mask) {
  std::vector<int64_t> allowed = mask.ints();
  int64_t rows = mask.dims()[0], columns = mask.dims()[1];
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t s = 0; s < columns; ++s)
      if ((allowed[t * columns + s] != 0) != (s <= t + columns - rows))
        return false;
  return true;
}

/// The mask in the form of nn.attention: repeated dimensions have size 1,
/// except the last. Null if the mask allows every key, or if it is causal,
/// which sets `causal`.
static FailureOr<Value> maskOf(Site &s, const Val &mask,
                               ArrayRef<int64_t> scores, bool &causal) {
  auto fit = broadcastShape(mask.dims, scores);
  if (!fit || ArrayRef<int64_t>(*fit) != scores)
    return s.error("a mask of shape " + str(mask.dims) +
                   " doesn't fit scores of shape " + str(scores));
  Dims dims(4, 1);
  for (int64_t i = 0; i < mask.rank(); ++i)
    dims[4 - mask.rank() + i] = mask.dims[i];
  dims[3] = scores[3];
  if (!s.foldable(mask)) {
    ASSIGN_OR_FAIL(Value value, s.broadcast(mask, dims));
    return value;
  }
  ASSIGN_OR_FAIL(Array array, s.arrayOf(mask));
  Array wide = array.broadcastTo(scores).compressed();
  Dims kept;
  Array part = wide.unrepeated(kept);
  bool isBool = mask.type == ElementType::Bool;
  if (part.rank() == 0) {
    double value = part.reshaped({}).floats()[0];
    if (isBool ? value != 0 : value == 0)
      return Value();
  }
  if (isBool && kept == Dims{2, 3} && saysCausal(part)) {
    causal = true;
    return Value();
  }
  Dims compact(4, 1);
  for (int64_t dim : kept)
    compact[dim] = scores[dim];
  compact[3] = scores[3];
  Array small = wide;
  for (int64_t dim = 0; dim < 3; ++dim)
    if (compact[dim] == 1)
      small = small.sliced(dim, 0, 1, 1);
  return s.materialise(Val(small));
}

Value tmc::frontend::swapHeads(Site &s, Value x) {
  return nn::TransposeOp::create(s.b, s.loc, x, Dims{0, 2, 1, 3});
}

FailureOr<Val> tmc::frontend::repeatHeads(Site &s, const Val &x,
                                          int64_t heads) {
  if (x.rank() != 4 || x.dims[1] < 1 || heads % x.dims[1])
    return s.error("heads of shape " + str(x.dims) + " for " + Twine(heads));
  const Dims d = x.dims;
  int64_t groups = d[1], each = heads / groups;
  if (each == 1)
    return x;
  ASSIGN_OR_FAIL(Val y, reshaped(s, x, {d[0], groups, 1, d[2], d[3]}));
  ASSIGN_OR_FAIL(y, expand(s, y, {d[0], groups, each, d[2], d[3]}));
  return reshaped(s, y, {d[0], heads, d[2], d[3]});
}

namespace {
/// The attributes of nn.attention about positions, relative to its own t + S -
/// T.
struct Positions {
  bool causal = false;
  int64_t window = 0;
};
} // namespace

/// The distance to the farthest key that a query sees after its own position.
static std::optional<int64_t> rightOf(const Attention &a) {
  return !a.causal ? a.right : a.right ? std::min<int64_t>(*a.right, 0) : 0;
}

/// A table [T, S] of the keys within the bounds of `a`; absent without bounds.
static FailureOr<Val> tableOf(Site &s, const Attention &a, int64_t queries,
                              int64_t keys) {
  std::optional<int64_t> low, high = rightOf(a);
  if (!a.left && !high)
    return Val();
  if (a.left)
    low = a.offset - *a.left;
  if (high)
    *high += a.offset;
  return band(s, queries, keys, low, high);
}

/// Combines `mask`, booleans or numbers, with the booleans of `table`; both may
/// be absent.
static FailureOr<Val> masked(Site &s, const Val &mask, const Val &table) {
  if (table.isAbsent())
    return mask;
  if (mask.isAbsent())
    return table;
  if (mask.type == ElementType::Bool)
    return conjunction(s, {mask, table});
  return where(s, table, mask, Val(Array::splat(mask.type, {}, -INFINITY)));
}

/// The mask of `a` with its bounds, except the bounds that `said` expresses.
static FailureOr<Val> maskWithBounds(Site &s, const Attention &a,
                                     int64_t queries, int64_t keys,
                                     Positions &said) {
  std::optional<int64_t> right = rightOf(a);
  if (!a.left && !right)
    return a.mask;
  int64_t shift = a.offset - (keys - queries);
  bool isCausal = right && *right + shift == 0;
  if (isCausal && (!a.left || *a.left >= shift)) {
    said.causal = true;
    said.window = a.left ? *a.left - shift + 1 : 0;
    return a.mask;
  }
  if (shift == 0 && a.left && right && *a.left == *right && *right > 0) {
    said.window = *right + 1;
    return a.mask;
  }
  ASSIGN_OR_FAIL(Val table, tableOf(s, a, queries, keys));
  return masked(s, a.mask, table);
}

static double scaleOf(const Attention &a) {
  int64_t size = nn::tensorType(a.query).getShape()[3];
  return a.scale.value_or(1 / std::sqrt(static_cast<double>(size)));
}

/// The keys that exist in each sample, by its length, and that lie within the
/// bounds of `a`: [B, 1, T, S].
static FailureOr<Val> tableOfLengths(Site &s, const Attention &a,
                                     int64_t queries, int64_t keys) {
  if (isFloat(a.lengths.type) || a.lengths.rank() != 1)
    return s.error("lengths of shape " + str(a.lengths.dims));
  ASSIGN_OR_FAIL(Val wide, castTo(s, a.lengths, ElementType::I64));
  ASSIGN_OR_FAIL(wide, reshaped(s, wide, {a.lengths.dims[0], 1, 1, 1}));
  Expression length(s, wide);
  Expression key = length.other(Val(iota({1, 1, 1, keys}, 3)));
  Expression query = length.other(Val(iota({1, 1, queries, 1}, 2)));
  Expression place = query + (length - static_cast<double>(queries));
  Expression seen = key.with(less, length);
  if (std::optional<int64_t> right = rightOf(a))
    seen = seen & key.with(lessOrEqual, place + static_cast<double>(*right));
  if (a.left)
    seen =
        seen & key.with(greaterOrEqual, place - static_cast<double>(*a.left));
  return seen.value();
}

/// Moves the lengths and bounds of `a` into the mask, if it has lengths.
static FailureOr<Attention> withoutLengths(Site &s, Attention a) {
  if (a.lengths.isAbsent())
    return a;
  ASSIGN_OR_FAIL(Val table,
                 tableOfLengths(s, a, nn::tensorType(a.query).getShape()[1],
                                nn::tensorType(a.key).getShape()[1]));
  ASSIGN_OR_FAIL(a.mask, masked(s, a.mask, table));
  a.lengths = Val();
  a.causal = false;
  a.left = a.right = std::nullopt;
  return a;
}

/// The softmax of each row of `scores`; zeros for a row that has only -inf.
static FailureOr<Val> sharesOf(Site &s, const Val &scores, bool mayBeEmpty) {
  if (!mayBeEmpty)
    return softmax(s, scores, 3, false);
  Val none(Array::splat(scores.type, {}, -INFINITY));
  Val zero(Array::splat(scores.type, {}, 0));
  ASSIGN_OR_FAIL(Val most, reduceMax(s, scores, {3}, /*keep=*/true));
  ASSIGN_OR_FAIL(Val isEmpty, equals(s, {most, none}));
  ASSIGN_OR_FAIL(Val safe, where(s, isEmpty, zero, scores));
  ASSIGN_OR_FAIL(Val shares, softmax(s, safe, 3, false));
  return where(s, isEmpty, zero, shares);
}

FailureOr<Val> tmc::frontend::scoresOf(Site &s, const Attention &given,
                                       Scores stage) {
  ASSIGN_OR_FAIL(Attention a, withoutLengths(s, given));
  auto type = nn::tensorType(a.query);
  ArrayRef<int64_t> qd = type.getShape();
  int64_t keys = nn::tensorType(a.key).getShape()[1];
  ElementType element = elementTypeOf(type.getElementType());
  ASSIGN_OR_FAIL(Val k, repeatHeads(s, Val(swapHeads(s, a.key)), qd[2]));
  Val q(swapHeads(s, a.query));
  ASSIGN_OR_FAIL(k, transpose(s, k, {0, 1, 3, 2}));
  ASSIGN_OR_FAIL(Val scores, matmul(s, q, k));
  ASSIGN_OR_FAIL(
      scores,
      multiply(s, {scores, Val(Array::splat(element, {}, scaleOf(a)))}));
  if (stage == Scores::Raw)
    return scores;
  if (a.softcap != 0) {
    Val cap(Array::splat(element, {}, a.softcap));
    ASSIGN_OR_FAIL(scores, divide(s, {scores, cap}));
    ASSIGN_OR_FAIL(scores, hyperbolicTangent(s, scores));
    ASSIGN_OR_FAIL(scores, multiply(s, {scores, cap}));
  }
  if (stage == Scores::Capped)
    return scores;
  Val low(Array::splat(element, {}, -INFINITY));
  bool isChoice = a.mask.type == ElementType::Bool && !a.mask.isAbsent();
  if (isChoice) {
    ASSIGN_OR_FAIL(scores, where(s, a.mask, scores, low));
  } else if (!a.mask.isAbsent()) {
    ASSIGN_OR_FAIL(scores, add(s, {scores, a.mask}));
  }
  ASSIGN_OR_FAIL(Val table, tableOf(s, a, qd[1], keys));
  if (!table.isAbsent()) {
    ASSIGN_OR_FAIL(scores, where(s, table, scores, low));
  }
  if (stage == Scores::Biased)
    return scores;
  return sharesOf(s, scores, isChoice || !table.isAbsent());
}

/// Attention in separate ops, which keep all scores: for values whose heads
/// differ in size from the keys' heads.
static FailureOr<Value> attendInPieces(Site &s, const Attention &a) {
  ASSIGN_OR_FAIL(Val shares, scoresOf(s, a, Scores::Shares));
  ASSIGN_OR_FAIL(Dropout kept, dropout(s, shares, a.dropout));
  ASSIGN_OR_FAIL(Val v,
                 repeatHeads(s, Val(swapHeads(s, a.value)), shares.dims[1]));
  ASSIGN_OR_FAIL(Val y, matmul(s, kept.y, v));
  ASSIGN_OR_FAIL(Value out, s.materialise(y));
  return swapHeads(s, out);
}

/// A mask or bias in the form of nn.attention, for queries of `type`.
static FailureOr<Value> addedTo(Site &s, Val x, RankedTensorType type,
                                ArrayRef<int64_t> scores, bool &causal) {
  if (x.type != ElementType::Bool) {
    if (x.type != elementTypeOf(type.getElementType()))
      return s.error("a mask of type " + nameOf(x.type));
    ASSIGN_OR_FAIL(
        x, castTo(s, x,
                  elementTypeOf(nn::accumulationType(type.getElementType()))));
  }
  return maskOf(s, x, scores, causal);
}

FailureOr<Value> tmc::frontend::attend(Site &s, const Attention &given) {
  ASSIGN_OR_FAIL(Attention a, withoutLengths(s, given));
  auto qType = nn::tensorType(a.query), kType = nn::tensorType(a.key);
  ArrayRef<int64_t> qd = qType.getShape(), kd = kType.getShape();
  auto vType = nn::tensorType(a.value);
  if (kType.getShape().drop_back() != vType.getShape().drop_back() ||
      kType.getElementType() != vType.getElementType() ||
      qType.getElementType() != kType.getElementType() || qd[0] != kd[0] ||
      qd[3] != kd[3] || kd[2] == 0 || qd[2] % kd[2])
    return s.error("queries of shape " + str(qd) + ", keys of " + str(kd) +
                   " and values of " + str(nn::tensorType(a.value).getShape()) +
                   " (batch, time, heads, size)");
  if (kType != vType)
    return attendInPieces(s, a);
  const Dims scores{qd[0], qd[2], qd[1], kd[1]};
  // A mask gets no gradient, a bias gets one.
  Val trained;
  if (a.mask.isTensor() && isFloat(a.mask.type) &&
      s.importer.forward.isTrained(a.mask.value))
    trained = std::exchange(a.mask, Val());
  Positions positions;
  ASSIGN_OR_FAIL(Val allowed, maskWithBounds(s, a, qd[1], kd[1], positions));
  bool causal = positions.causal;
  Value mask, bias;
  if (!trained.isAbsent()) {
    ASSIGN_OR_FAIL(bias, addedTo(s, trained, qType, scores, causal));
  }
  if (!allowed.isAbsent()) {
    ASSIGN_OR_FAIL(mask, addedTo(s, allowed, qType, scores, causal));
  }
  Value seed, samples;
  int64_t stream = 0;
  if (a.dropout != 0) {
    if (!(a.dropout > 0 && a.dropout < 1))
      return s.unsupported("dropout of " + std::to_string(a.dropout));
    seed = s.importer.forward.seed();
    samples = s.importer.forward.samples();
    if (!seed || !samples)
      return failure();
    if (qd[0] % s.importer.forward.batch)
      return s.unsupported("dropout in " + Twine(qd[0]) +
                           " rows for a batch of " +
                           Twine(s.importer.forward.batch));
    stream = s.importer.forward.nextStream();
  }
  return nn::AttentionOp::create(s.b, s.loc, a.query, a.key, a.value, mask,
                                 /*groups=*/Value(), /*prefix=*/Value(), seed,
                                 samples, bias, s.b.getF64FloatAttr(scaleOf(a)),
                                 causal ? s.b.getUnitAttr() : UnitAttr(),
                                 s.b.getF64FloatAttr(a.softcap),
                                 s.b.getI64IntegerAttr(positions.window),
                                 s.b.getF64FloatAttr(a.dropout),
                                 s.b.getI64IntegerAttr(stream),
                                 /*exact=*/UnitAttr(), /*tf32=*/UnitAttr())
      .getOut();
}
