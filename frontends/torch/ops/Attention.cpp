// Attention.cpp - scaled dot-product attention as one operator.

#include "frontends/common/ops/Attention.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// `dims` with at most four entries: those before the last three are merged.
static FailureOr<Dims> asFour(Call &c, ArrayRef<int64_t> dims) {
  if (dims.size() <= 4)
    return Dims(dims);
  auto count = checkedNumElements(dims.drop_back(3));
  if (!count)
    return c.error("the number of elements is too large");
  Dims four{*count};
  four.append(dims.end() - 3, dims.end());
  return four;
}

/// [B, H, T, D], or with fewer or more dimensions before T, as [B, T, H, D].
static FailureOr<Value> headsOf(Call &c, const char *name) {
  Val v = c.tensor(name);
  if (v.rank() < 2)
    return c.unsupported("'" + Twine(name) + "' of shape " + str(v.dims));
  ASSIGN_OR_FAIL(Dims dims, asFour(c, v.dims));
  dims.insert(dims.begin(), 4 - dims.size(), 1);
  // [N, T, D] is N samples of one head.
  if (v.rank() == 3)
    std::swap(dims[0], dims[1]);
  ASSIGN_OR_FAIL(v, reshaped(c, v, dims));
  ASSIGN_OR_FAIL(Value x, c.materialise(v));
  return swapHeads(c, x);
}

static LogicalResult importAttention(Call &c) {
  const Val q = c.tensor("query"), k = c.tensor("key"), v = c.tensor("value");
  if (failed(checkFloats(c, q)))
    return failure();
  auto outer = [](const Val &v) {
    return ArrayRef<int64_t>(v.dims).drop_back(3);
  };
  bool fit = k.rank() == q.rank() && v.rank() == q.rank();
  if (!fit || (q.rank() > 4 && (outer(k) != outer(q) || outer(v) != outer(q))))
    return c.unsupported("queries of shape " + str(q.dims) + " and keys of " +
                         str(k.dims));
  Attention attention;
  ASSIGN_OR_FAIL(attention.query, headsOf(c, "query"));
  ASSIGN_OR_FAIL(attention.key, headsOf(c, "key"));
  ASSIGN_OR_FAIL(attention.value, headsOf(c, "value"));
  ASSIGN_OR_FAIL(attention.causal, c.flag("is_causal", false));
  ASSIGN_OR_FAIL(attention.dropout, c.number("dropout_p", 0));
  ASSIGN_OR_FAIL(bool grouped, c.flag("enable_gqa", false));
  int64_t heads = nn::tensorType(attention.query).getDimSize(2);
  int64_t keyHeads = nn::tensorType(attention.key).getDimSize(2);
  // A single head of keys is broadcast.
  if (!grouped && heads != keyHeads && keyHeads != 1)
    return c.error(Twine(heads) + " heads of queries and " + Twine(keyHeads) +
                   " of keys");
  if (c.has("scale")) {
    ASSIGN_OR_FAIL(attention.scale, c.number("scale", std::nullopt));
  }
  attention.mask = c.tensor("attn_mask");
  if (int64_t rank = attention.mask.rank(); rank > 4) {
    bool isWhole = rank == q.rank() && outer(attention.mask) == outer(q);
    if (!isWhole && llvm::any_of(outer(attention.mask),
                                 [](int64_t dim) { return dim != 1; }))
      return c.unsupported("a mask of shape " + str(attention.mask.dims));
    ASSIGN_OR_FAIL(Dims four, asFour(c, attention.mask.dims));
    ASSIGN_OR_FAIL(attention.mask, reshaped(c, attention.mask, four));
  }
  if (attention.mask.rank() == 3 && q.rank() == 3) {
    Dims dims(attention.mask.dims);
    dims.insert(dims.begin() + 1, 1);
    ASSIGN_OR_FAIL(attention.mask, reshaped(c, attention.mask, dims));
  }
  ASSIGN_OR_FAIL(Value out, attend(c, attention));
  Dims dims(q.dims);
  dims.back() = v.dims.back();
  return c.set(c.reshape(swapHeads(c, out), dims));
}
static Register attention("scaled_dot_product_attention", importAttention);
