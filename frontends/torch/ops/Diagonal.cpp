// Diagonal.cpp - diagonals of matrices, and matrices made from diagonals.

#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

namespace {
/// A diagonal of the matrices over two dimensions.
struct Diagonal {
  int64_t offset = 0; ///< The distance to the right of the main one.
  int64_t first = 0, second = 1;
};
} // namespace

static FailureOr<int64_t> offsetOf(Call &c, const char *name) {
  ASSIGN_OR_FAIL(int64_t offset, c.integer(name, 0));
  if (offset < -kMaxFoldElements || offset > kMaxFoldElements)
    return c.error("a diagonal " + Twine(offset) + " off");
  return offset;
}

/// The arguments, for matrices over two of `rank` dimensions.
static FailureOr<Diagonal> diagonalOf(Call &c, int64_t rank, int64_t first,
                                      int64_t second) {
  Diagonal d;
  ASSIGN_OR_FAIL(d.offset, offsetOf(c, "offset"));
  ASSIGN_OR_FAIL(d.first, c.dim("dim1", first, rank));
  ASSIGN_OR_FAIL(d.second, c.dim("dim2", second, rank));
  if (rank < 2 || d.first == d.second)
    return c.error("a diagonal over dimensions " + Twine(d.first) + " and " +
                   Twine(d.second) + " of " + Twine(rank));
  return d;
}

/// The permutation that moves two of `rank` dimensions to the end.
static Dims toTheEnd(int64_t rank, int64_t first, int64_t second) {
  Dims perm;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != first && dim != second)
      perm.push_back(dim);
  perm.append({first, second});
  return perm;
}

/// The elements of diagonals, along a last dimension: in the flattened matrix,
/// the distance between them is the row length plus one.
static FailureOr<Val> taken(Call &c, const Val &x, const Diagonal &d) {
  ASSIGN_OR_FAIL(Val m, transpose(c, x, toTheEnd(x.rank(), d.first, d.second)));
  int64_t rows = x.dims[d.first], columns = x.dims[d.second];
  int64_t low = std::max<int64_t>(-d.offset, 0);
  int64_t right = std::max<int64_t>(d.offset, 0);
  int64_t length = std::max<int64_t>(std::min(rows - low, columns - right), 0);
  Dims flat(ArrayRef<int64_t>(m.dims).drop_back(2));
  flat.push_back(rows * columns);
  ASSIGN_OR_FAIL(m, reshaped(c, m, flat));
  return strided(c, m, m.rank() - 1, length ? low * columns + right : 0,
                 columns + 1, length);
}

/// Matrices over two dimensions of the result that have the last dimension of
/// `x` as a diagonal, and zeros elsewhere.
static FailureOr<Val> embedded(Call &c, const Val &x, const Diagonal &d) {
  int64_t last = x.rank() - 1;
  Dims low(x.rank(), 0), high(x.rank(), 0);
  (d.offset > 0 ? low : high)[last] = std::abs(d.offset);
  ASSIGN_OR_FAIL(Val row, pad(c, x, low, high, 0));
  int64_t size = row.dims[last];
  ASSIGN_OR_FAIL(row, unsqueeze(c, row, {last}));
  Dims dims(row.dims);
  dims[last] = size;
  ASSIGN_OR_FAIL(Val wide, expand(c, row, dims));
  ASSIGN_OR_FAIL(Val chosen, band(c, size, size, d.offset, d.offset));
  ASSIGN_OR_FAIL(Val y,
                 where(c, chosen, wide, Val(Array::splat(x.type, {}, 0))));
  Dims perm = toTheEnd(y.rank(), d.first, d.second), back(perm.size());
  for (auto [i, dim] : llvm::enumerate(perm))
    back[dim] = static_cast<int64_t>(i);
  return transpose(c, y, back);
}

static LogicalResult importDiagonal(Call &c) {
  const Val self = c.tensor(c.has("A") ? "A" : "self");
  bool isLinalg = c.has("A");
  ASSIGN_OR_FAIL(Diagonal d, diagonalOf(c, self.rank(), isLinalg ? -2 : 0,
                                        isLinalg ? -1 : 1));
  return c.set(taken(c, self, d));
}
static Register diagonalOp("diagonal", importDiagonal);
static Register linalgDiagonal("linalg_diagonal", importDiagonal);

static LogicalResult importDiagEmbed(Call &c) {
  const Val self = c.tensor("self");
  if (self.dims.empty())
    return c.error("a number has no diagonal");
  ASSIGN_OR_FAIL(Diagonal d, diagonalOf(c, self.rank() + 1, -2, -1));
  return c.set(embedded(c, self, d));
}
static Register diagEmbed("diag_embed", importDiagEmbed);

/// A vector becomes a diagonal matrix, a matrix its diagonal.
static LogicalResult importDiag(Call &c) {
  const Val self = c.tensor("self");
  Diagonal d;
  ASSIGN_OR_FAIL(d.offset, offsetOf(c, "diagonal"));
  if (self.rank() != 1 && self.rank() != 2)
    return c.error("a diagonal of shape " + str(self.dims));
  return c.set(self.rank() == 1 ? embedded(c, self, d) : taken(c, self, d));
}
static Register diag("diag", importDiag);

static LogicalResult importDiagflat(Call &c) {
  Diagonal d;
  ASSIGN_OR_FAIL(d.offset, offsetOf(c, "offset"));
  ASSIGN_OR_FAIL(Val row, viewed(c, c.tensor("self"), {-1}));
  return c.set(embedded(c, row, d));
}
static Register diagflat("diagflat", importDiagflat);

static LogicalResult importTrace(Call &c) {
  const Val self = c.tensor("self");
  if (self.rank() != 2)
    return c.error("the trace of shape " + str(self.dims));
  ASSIGN_OR_FAIL(Val row, taken(c, self, {}));
  return c.set(reduceSum(c, row, Dims{0}, false));
}
static Register trace("trace", importTrace);

/// Puts matrices along the diagonal of one matrix.
static LogicalResult importBlockDiag(Call &c) {
  ASSIGN_OR_FAIL(SmallVector<Val> parts, c.tensors("tensors"));
  if (parts.empty())
    return c.error("joins nothing");
  int64_t columns = 0, before = 0;
  for (Val &part : parts) {
    if (part.rank() > 2)
      return c.error("a block of shape " + str(part.dims));
    Dims dims(2 - part.rank(), 1);
    dims.append(part.dims.begin(), part.dims.end());
    ASSIGN_OR_FAIL(part, reshaped(c, part, dims));
    columns += dims[1];
  }
  for (Val &part : parts) {
    int64_t width = part.dims[1];
    ASSIGN_OR_FAIL(part,
                   pad(c, part, {0, before}, {0, columns - before - width}, 0));
    before += width;
  }
  return c.set(concat(c, parts, 0));
}
static Register blockDiag("block_diag", importBlockDiag);
