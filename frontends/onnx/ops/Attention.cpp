// Attention.cpp - attention as one operator (operator set 23).

#include "frontends/common/ops/Attention.h"
#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Norm.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/onnx/Importer.h"

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
    return swapHeads(n, x);
  int64_t heads = n.intAttr(headsAttr, 0);
  if (v.rank() != 3 || heads < 1 || v.dims[2] % heads)
    return n.error("input " + Twine(i) + " has shape " + str(v.dims) + " and " +
                   Twine(heads) + " heads");
  return n.reshape(x, {v.dims[0], v.dims[1], heads, v.dims[2] / heads});
}

/// Keys or values, preceded by those of earlier steps, [B, T, H, D]; the
/// concatenation is a result of the operator as well.
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

/// The mask of `keys` keys; keys beyond the mask's size aren't seen.
static FailureOr<Val> maskOf(Node &n, int64_t keys) {
  const Val mask = n.input(3);
  int64_t named = mask.rank() ? mask.dims.back() : 1;
  if (mask.isAbsent() || named == 1 || named >= keys)
    return mask;
  Dims rest(mask.dims);
  rest.back() = keys - named;
  Val unseen(mask.type == ElementType::Bool
                 ? Array::splatInt(ElementType::Bool, rest, 0)
                 : Array::splat(mask.type, rest, -INFINITY));
  return concat(n, {mask, unseen}, mask.rank() - 1);
}

static LogicalResult importAttention(Node &n) {
  const Val q = n.input(0);
  Attention attention;
  attention.softcap = n.floatAttr("softcap", 0);
  ASSIGN_OR_FAIL(attention.query, headsOf(n, 0, "q_num_heads"));
  ASSIGN_OR_FAIL(attention.key, headsOf(n, 1, "kv_num_heads"));
  ASSIGN_OR_FAIL(attention.value, headsOf(n, 2, "kv_num_heads"));
  int64_t fresh = nn::tensorType(attention.key).getDimSize(1);
  ASSIGN_OR_FAIL(attention.key, withPast(n, attention.key, 4, 1));
  ASSIGN_OR_FAIL(attention.value, withPast(n, attention.value, 5, 2));
  attention.offset = nn::tensorType(attention.key).getDimSize(1) - fresh;
  ASSIGN_OR_FAIL(attention.mask,
                 maskOf(n, nn::tensorType(attention.key).getDimSize(1)));
  attention.lengths = n.input(6);
  attention.causal = n.intAttr("is_causal", 0);
  if (int64_t left = n.intAttr("left_window_size", -1); left >= 0)
    attention.left = left;
  if (int64_t right = n.intAttr("right_window_size", -1); right >= 0)
    attention.right = right;
  if (double scale = n.floatAttr("scale", 0))
    attention.scale = scale;
  if (n.isUsed(3)) {
    int64_t stage = n.intAttr("qk_matmul_output_mode", 0);
    if (stage < 0 || stage > 3)
      return n.error("qk_matmul_output_mode is " + Twine(stage));
    ASSIGN_OR_FAIL(Val scores,
                   scoresOf(n, attention, static_cast<Scores>(stage)));
    if (failed(n.set(3, scores)))
      return failure();
  }
  ASSIGN_OR_FAIL(Value out, attend(n, attention));
  if (q.rank() == 4)
    return n.set(swapHeads(n, out));
  auto dims = nn::tensorType(out).getShape();
  return n.set(n.reshape(out, {dims[0], dims[1], dims[2] * dims[3]}));
}
static Register attentionOp("Attention", importAttention);

//===----------------------------------------------------------------------===//
// Attention with parts of the model's own
//===----------------------------------------------------------------------===//

/// `x` after the body in attribute `name`, if there is one.
static FailureOr<Val> modified(Node &n, StringRef name, const Val &x) {
  const auto *body = n.attribute(name);
  if (!body)
    return x;
  ASSIGN_OR_FAIL(SmallVector<Val> made, n.reader.importBody(n, body->g(), {x}));
  if (made.size() != 1 || made[0].dims != x.dims || made[0].type != x.type)
    return n.error(name + " makes something of another shape or type");
  return made[0];
}

/// A body may change scores in any way, so all scores are kept in memory.
static LogicalResult importFlexAttention(Node &n) {
  const Val q = n.input(0);
  if (failed(checkFloats(n, q)))
    return failure();
  if (q.rank() != 4 || n.input(1).rank() != 4 || n.input(2).rank() != 4)
    return n.error("queries of shape " + str(q.dims));
  double scale = n.floatAttr("scale", 1 / std::sqrt(double(q.dims[3])));
  if (!n.attribute("score_mod") && !n.attribute("prob_mod")) {
    Attention attention;
    ASSIGN_OR_FAIL(attention.query, headsOf(n, 0, ""));
    ASSIGN_OR_FAIL(attention.key, headsOf(n, 1, ""));
    ASSIGN_OR_FAIL(attention.value, headsOf(n, 2, ""));
    attention.scale = scale;
    ASSIGN_OR_FAIL(Value out, attend(n, attention));
    return n.set(swapHeads(n, out));
  }
  ElementType wide =
      q.type == ElementType::F64 ? ElementType::F64 : ElementType::F32;
  if (int64_t number = n.intAttr("softmax_precision", 0)) {
    auto given = typeOfNumber(number);
    if (!given || !isFloat(*given))
      return n.unsupported("a softmax of element type number " + Twine(number));
    wide = *given;
  }
  ASSIGN_OR_FAIL(Val k, repeatHeads(n, n.input(1), q.dims[1]));
  ASSIGN_OR_FAIL(Val v, repeatHeads(n, n.input(2), q.dims[1]));
  ASSIGN_OR_FAIL(k, transpose(n, k, {0, 1, 3, 2}));
  ASSIGN_OR_FAIL(Val scores, matmul(n, q, k));
  ASSIGN_OR_FAIL(scores, castTo(n, scores, wide));
  ASSIGN_OR_FAIL(scores,
                 multiply(n, {scores, Val(Array::splat(wide, {}, scale))}));
  ASSIGN_OR_FAIL(scores, modified(n, "score_mod", scores));
  ASSIGN_OR_FAIL(Val shares, softmax(n, scores, 3, /*log=*/false));
  ASSIGN_OR_FAIL(shares, modified(n, "prob_mod", shares));
  ASSIGN_OR_FAIL(Val values, castTo(n, v, wide));
  ASSIGN_OR_FAIL(Val y, matmul(n, shares, values));
  return n.set(castTo(n, y, v.type));
}
static Register flexAttention("ai.onnx.preview", "FlexAttention",
                              importFlexAttention);
