// Rotary.cpp - RotaryEmbedding (operator set 23).

#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The table's numbers for each position and rotated column, [B or 1, T, 1, R],
/// in the type of sums of them. The table has one for each pair.
static FailureOr<Value> tableOf(Node &n, int i, const Val &x, int64_t half,
                                bool interleaved) {
  Val table = n.input(i);
  if (n.has(3)) {
    ASSIGN_OR_FAIL(table, gather(n, table, n.input(3), 0));
  } else if (table.rank() == 2) {
    ASSIGN_OR_FAIL(table, unsqueeze(n, table, {0}));
  }
  if (table.rank() != 3 || table.type != x.type ||
      (table.dims[0] != 1 && table.dims[0] != x.dims[0]) ||
      table.dims[1] != x.dims[1] || table.dims[2] < half)
    return n.error("a table of shape " + str(table.dims) + " for " +
                   Twine(x.dims[1]) + " positions of " + Twine(half) +
                   " angles");
  ASSIGN_OR_FAIL(table, slice(n, table, 2, 0, half, 1));
  const int64_t columns[] = {table.dims[0], table.dims[1], 1, 2 * half};
  if (interleaved) {
    ASSIGN_OR_FAIL(table, unsqueeze(n, table, {3}));
    ASSIGN_OR_FAIL(table, concat(n, {table, table}, 3));
  } else {
    ASSIGN_OR_FAIL(table, concat(n, {table, table}, 2));
  }
  ASSIGN_OR_FAIL(table, reshaped(n, table, columns));
  ASSIGN_OR_FAIL(Value numbers, n.materialise(table));
  return nn::convertTo(n.b, n.loc, numbers,
                       nn::accumulationType(getElementTypeOrSelf(numbers)));
}

static LogicalResult importRotary(Node &n) {
  Val x = n.input(0);
  const Dims given(x.dims);
  int64_t heads = n.intAttr("num_heads", 0);
  if (x.rank() == 4) { // [B, H, T, D]
    ASSIGN_OR_FAIL(x, transpose(n, x, {0, 2, 1, 3}));
  } else if (x.rank() == 3 && heads > 0 && x.dims[2] % heads == 0) {
    ASSIGN_OR_FAIL(
        x, reshaped(n, x, {x.dims[0], x.dims[1], heads, x.dims[2] / heads}));
  } else {
    return n.error("an input of shape " + str(x.dims) + " and " + Twine(heads) +
                   " heads");
  }
  int64_t size = x.dims[3], turned = n.intAttr("rotary_embedding_dim", 0);
  if (turned == 0)
    turned = size;
  if (turned < 0 || turned > size || turned % 2)
    return n.error("turns " + Twine(turned) + " of " + Twine(size) +
                   " channels");
  if (failed(checkFloats(n, x)))
    return failure();
  bool interleaved = n.intAttr("interleaved", 0);
  ASSIGN_OR_FAIL(Value cos, tableOf(n, 1, x, turned / 2, interleaved));
  ASSIGN_OR_FAIL(Value sin, tableOf(n, 2, x, turned / 2, interleaved));
  if (cos.getType() != sin.getType())
    return n.error("tables of cosines and sines for different samples");
  ASSIGN_OR_FAIL(Value input, n.materialise(x));
  Val y = nn::RotaryEmbeddingOp::create(n.b, n.loc, input, cos, sin,
                                        interleaved, /*transposed=*/false);
  return n.set(given.size() == 4 ? transpose(n, y, {0, 2, 1, 3})
                                 : reshaped(n, y, given));
}
static Register rotary("RotaryEmbedding", importRotary);
