// Attention.cpp - attention as one operator (operator set 23).

#include "frontends/common/ops/Attention.h"
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

static LogicalResult importAttention(Node &n) {
  const Val q = n.input(0);
  if (n.has(4) || n.has(5))
    return n.unsupported("keys and values of the past");
  for (int i = 1; i < n.numOutputs(); ++i)
    if (n.isUsed(i))
      return n.unsupported("output " + Twine(i));
  if (n.floatAttr("softcap", 0) != 0)
    return n.unsupported("a soft cap of the scores");
  Attention attention;
  ASSIGN_OR_FAIL(attention.query, headsOf(n, 0, "q_num_heads"));
  ASSIGN_OR_FAIL(attention.key, headsOf(n, 1, "kv_num_heads"));
  ASSIGN_OR_FAIL(attention.value, headsOf(n, 2, "kv_num_heads"));
  attention.mask = n.input(3);
  attention.causal = n.intAttr("is_causal", 0);
  if (double scale = n.floatAttr("scale", 0))
    attention.scale = scale;
  ASSIGN_OR_FAIL(Value out, attend(n, attention));
  return n.set(q.rank() == 4 ? swapHeads(n, out) : n.reshape(out, q.dims));
}
static Register attentionOp("Attention", importAttention);
