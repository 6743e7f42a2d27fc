// Rotary.cpp - RotaryEmbedding (operator set 23).

#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The table's rows for each position, [B or 1, T, 1, R / 2].
static FailureOr<Val> anglesOf(Node &n, int i, int64_t time, int64_t half) {
  Val table = n.input(i);
  if (n.has(3)) {
    ASSIGN_OR_FAIL(table, gather(n, table, n.input(3), 0));
  } else if (table.rank() == 2) {
    ASSIGN_OR_FAIL(table, unsqueeze(n, table, {0}));
  }
  if (table.rank() != 3 || table.dims[1] != time || table.dims[2] < half)
    return n.error("a table of shape " + str(table.dims) + " for " +
                   Twine(time) + " positions of " + Twine(half) + " angles");
  ASSIGN_OR_FAIL(table, slice(n, table, 2, 0, half, 1));
  return unsqueeze(n, table, {2});
}

/// The first and second elements of the rotated pairs: halves, or neighbours.
static FailureOr<std::pair<Val, Val>> pairsOf(Node &n, const Val &x,
                                              int64_t half, bool interleaved) {
  int64_t step = interleaved ? 2 : 1, second = interleaved ? 1 : half;
  ASSIGN_OR_FAIL(Val a, strided(n, x, 3, 0, step, half));
  ASSIGN_OR_FAIL(Val b, strided(n, x, 3, second, step, half));
  return std::pair(a, b);
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
  int64_t half = turned / 2;
  bool interleaved = n.intAttr("interleaved", 0);
  ASSIGN_OR_FAIL(Val cosine, anglesOf(n, 1, x.dims[1], half));
  ASSIGN_OR_FAIL(Val sine, anglesOf(n, 2, x.dims[1], half));
  ASSIGN_OR_FAIL(auto pairs, pairsOf(n, x, half, interleaved));
  auto [a, b] = pairs;
  ASSIGN_OR_FAIL(Val ac, multiply(n, {a, cosine}));
  ASSIGN_OR_FAIL(Val bs, multiply(n, {b, sine}));
  ASSIGN_OR_FAIL(Val as, multiply(n, {a, sine}));
  ASSIGN_OR_FAIL(Val bc, multiply(n, {b, cosine}));
  ASSIGN_OR_FAIL(Val first, subtract(n, {ac, bs}));
  ASSIGN_OR_FAIL(Val second, add(n, {as, bc}));
  Val y;
  if (interleaved) {
    ASSIGN_OR_FAIL(first, unsqueeze(n, first, {4}));
    ASSIGN_OR_FAIL(second, unsqueeze(n, second, {4}));
    ASSIGN_OR_FAIL(y, concat(n, {first, second}, 4));
    ASSIGN_OR_FAIL(y,
                   reshaped(n, y, {x.dims[0], x.dims[1], x.dims[2], turned}));
  } else {
    ASSIGN_OR_FAIL(y, concat(n, {first, second}, 3));
  }
  if (turned < size) {
    ASSIGN_OR_FAIL(Val rest, slice(n, x, 3, turned, size, 1));
    ASSIGN_OR_FAIL(y, concat(n, {y, rest}, 3));
  }
  return n.set(given.size() == 4 ? transpose(n, y, {0, 2, 1, 3})
                                 : reshaped(n, y, given));
}
static Register rotary("RotaryEmbedding", importRotary);
