// Attention.cpp - attention as one operator (operator set 23).

#include "frontends/onnx/ops/Pointwise.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// Input `i` as [B, T, H, D], from [B, H, T, D] or [B, T, H * D].
static FailureOr<Value> headsOf(Node &n, int i, StringRef headsAttr) {
  const Val v = n.input(i);
  if (!isFloat(v.type))
    return n.unsupported("elements of type " + nameOf(v.type));
  ASSIGN_OR_FAIL(Value x, n.value(i));
  if (v.rank() == 4)
    return Value(nn::TransposeOp::create(n.b, n.loc, x, Dims{0, 2, 1, 3}));
  int64_t heads = n.intAttr(headsAttr, 0);
  if (v.rank() != 3 || heads < 1 || v.dims[2] % heads)
    return n.error("input " + Twine(i) + " has shape " + str(v.dims) + " and " +
                   Twine(heads) + " heads");
  return n.reshape(x, {v.dims[0], v.dims[1], heads, v.dims[2] / heads});
}

/// What a constant mask of [T, S] says.
static bool saysCausal(const Array &mask) {
  std::vector<int64_t> allowed = mask.ints();
  int64_t rows = mask.dims()[0], columns = mask.dims()[1];
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t s = 0; s < columns; ++s)
      if ((allowed[t * columns + s] != 0) != (s <= t + columns - rows))
        return false;
  return true;
}

/// The mask as nn.attention takes it: dimensions that repeat are 1, except the
/// last. Null where it allows everything, or where it is `causal`.
static FailureOr<Value> maskOf(Node &n, ArrayRef<int64_t> scores,
                               bool &causal) {
  const Val mask = n.input(3);
  auto fit = broadcastShape(mask.dims, scores);
  if (!fit || ArrayRef<int64_t>(*fit) != scores)
    return n.error("a mask of shape " + str(mask.dims) +
                   " doesn't fit scores of shape " + str(scores));
  Dims dims(4, 1);
  for (int64_t i = 0; i < mask.rank(); ++i)
    dims[4 - mask.rank() + i] = mask.dims[i];
  dims[3] = scores[3];
  if (!n.foldable(3)) {
    ASSIGN_OR_FAIL(Value value, n.broadcast(mask, dims));
    return value;
  }
  ASSIGN_OR_FAIL(Array array, n.array(3));
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
  return n.materialise(Val(small));
}

static LogicalResult importAttention(Node &n) {
  const Val q = n.input(0), k = n.input(1), v = n.input(2);
  if (n.has(4) || n.has(5))
    return n.unsupported("keys and values of the past");
  for (int i = 1; i < n.numOutputs(); ++i)
    if (n.isUsed(i))
      return n.unsupported("output " + Twine(i));
  if (n.floatAttr("softcap", 0) != 0)
    return n.unsupported("a soft cap of the scores");
  ASSIGN_OR_FAIL(Value query, headsOf(n, 0, "q_num_heads"));
  ASSIGN_OR_FAIL(Value key, headsOf(n, 1, "kv_num_heads"));
  ASSIGN_OR_FAIL(Value value, headsOf(n, 2, "kv_num_heads"));
  auto qType = nn::tensorType(query), kType = nn::tensorType(key);
  ArrayRef<int64_t> qd = qType.getShape(), kd = kType.getShape();
  if (kType != value.getType() || q.type != k.type || qd[0] != kd[0] ||
      qd[3] != kd[3] || kd[2] == 0 || qd[2] % kd[2])
    return n.error("queries of shape " + str(q.dims) + ", keys of " +
                   str(k.dims) + " and values of " + str(v.dims));
  bool causal = n.intAttr("is_causal", 0);
  if (causal && qd[1] != kd[1])
    return n.unsupported("a causal mask for " + Twine(qd[1]) + " queries and " +
                         Twine(kd[1]) + " keys");
  Value mask;
  if (n.has(3)) {
    bool isMask = n.input(3).type == ElementType::Bool;
    if (!isMask && n.input(3).type != q.type)
      return n.error("a mask of type " + nameOf(n.input(3).type));
    ASSIGN_OR_FAIL(mask, maskOf(n, {qd[0], qd[2], qd[1], kd[1]}, causal));
  }
  double scale = n.floatAttr("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(qd[3]));
  auto attention = nn::AttentionOp::create(
      n.b, n.loc, query, key, value, mask, Value(), Value(),
      n.b.getF64FloatAttr(scale), causal ? n.b.getUnitAttr() : UnitAttr(),
      n.b.getF64FloatAttr(0), n.b.getI64IntegerAttr(0));
  Value out = attention.getOut();
  if (q.rank() == 4)
    return n.set(nn::TransposeOp::create(n.b, n.loc, out, Dims{0, 2, 1, 3}));
  return n.set(n.reshape(out, q.dims));
}
static Register attention("Attention", importAttention);
