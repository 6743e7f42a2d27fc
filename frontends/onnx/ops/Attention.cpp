// Attention.cpp - attention as one operator (operator set 23).

#include "frontends/common/ops/Attention.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/onnx/Node.h"

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
    return swapHeads(n, x);
  int64_t heads = n.intAttr(headsAttr, 0);
  if (v.rank() != 3 || heads < 1 || v.dims[2] % heads)
    return n.error("input " + Twine(i) + " has shape " + str(v.dims) + " and " +
                   Twine(heads) + " heads");
  return n.reshape(x, {v.dims[0], v.dims[1], heads, v.dims[2] / heads});
}

/// Keys or values with those of earlier steps before them, [B, T, H, D]; both
/// are results of the operator, too.
static FailureOr<Value> withPast(Node &n, Value now, int past, int present) {
  Val whole(now);
  if (n.has(past)) {
    ASSIGN_OR_FAIL(Value before, headsOf(n, past, ""));
    ASSIGN_OR_FAIL(whole, concat(n, {Val(before), whole}, 1));
  }
  ASSIGN_OR_FAIL(Value value, n.materialise(whole));
  if (n.isUsed(present) && failed(n.set(present, Val(swapHeads(n, value)))))
    return failure();
  return value;
}

static LogicalResult importAttention(Node &n) {
  const Val q = n.input(0);
  if (n.has(6))
    return n.unsupported("sequences of several lengths");
  if (n.isUsed(3))
    return n.unsupported("output 3");
  Attention attention;
  attention.softcap = n.floatAttr("softcap", 0);
  ASSIGN_OR_FAIL(attention.query, headsOf(n, 0, "q_num_heads"));
  ASSIGN_OR_FAIL(attention.key, headsOf(n, 1, "kv_num_heads"));
  ASSIGN_OR_FAIL(attention.value, headsOf(n, 2, "kv_num_heads"));
  int64_t fresh = nn::tensorType(attention.key).getDimSize(1);
  ASSIGN_OR_FAIL(attention.key, withPast(n, attention.key, 4, 1));
  ASSIGN_OR_FAIL(attention.value, withPast(n, attention.value, 5, 2));
  attention.offset = nn::tensorType(attention.key).getDimSize(1) - fresh;
  attention.mask = n.input(3);
  attention.causal = n.intAttr("is_causal", 0);
  if (int64_t left = n.intAttr("left_window_size", -1); left >= 0)
    attention.left = left;
  if (int64_t right = n.intAttr("right_window_size", -1); right >= 0)
    attention.right = right;
  if (double scale = n.floatAttr("scale", 0))
    attention.scale = scale;
  ASSIGN_OR_FAIL(Value out, attend(n, attention));
  if (q.rank() == 4)
    return n.set(swapHeads(n, out));
  auto dims = nn::tensorType(out).getShape();
  return n.set(n.reshape(out, {dims[0], dims[1], dims[2] * dims[3]}));
}
static Register attentionOp("Attention", importAttention);
