// Rearrange.cpp - pads, flips, rolls and grids.

#include "frontends/Checked.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// `pad` has pairs of numbers, the innermost dimension's first.
static LogicalResult importPad(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(std::string mode, c.text("mode", "constant"));
  ASSIGN_OR_FAIL(Dims pads, c.integers("pad", std::nullopt));
  ASSIGN_OR_FAIL(double value, c.number("value", 0));
  int64_t pairs = pads.size() / 2, rank = self.rank();
  if (pads.size() % 2 || pairs > rank)
    return c.error("pads shape " + str(self.dims) + " by " + str(pads));
  Dims low(rank, 0), high(rank, 0);
  for (int64_t i = 0; i < pairs; ++i) {
    low[rank - 1 - i] = pads[2 * i];
    high[rank - 1 - i] = pads[2 * i + 1];
  }
  if (mode == "reflect")
    return c.set(padWithSelf(c, self, low, high, PadMode::Reflect));
  if (mode == "replicate")
    return c.set(padWithSelf(c, self, low, high, PadMode::Edge));
  if (mode == "circular")
    return c.set(padWithSelf(c, self, low, high, PadMode::Wrap));
  if (mode != "constant")
    return c.unsupported("padding by mode '" + mode + "'");
  return c.set(pad(c, self, low, high, value));
}
static Register padOp("pad", importPad);
static Register constantPad("constant_pad_nd", importPad);

/// Padding operators with a fixed mode.
static LogicalResult padBy(Call &c, PadMode mode) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Dims pads, c.integers("padding", std::nullopt));
  int64_t pairs = pads.size() / 2, rank = self.rank();
  if (pads.size() % 2 || pairs > rank)
    return c.error("pads shape " + str(self.dims) + " by " + str(pads));
  Dims low(rank, 0), high(rank, 0);
  for (int64_t i = 0; i < pairs; ++i) {
    low[rank - 1 - i] = pads[2 * i];
    high[rank - 1 - i] = pads[2 * i + 1];
  }
  return c.set(padWithSelf(c, self, low, high, mode));
}
static LogicalResult importReflect(Call &c) {
  return padBy(c, PadMode::Reflect);
}
static Register reflect1d("reflection_pad1d", importReflect);
static Register reflect2d("reflection_pad2d", importReflect);
static Register reflect3d("reflection_pad3d", importReflect);
static LogicalResult importReplicate(Call &c) {
  return padBy(c, PadMode::Edge);
}
static Register replicate1d("replication_pad1d", importReplicate);
static Register replicate2d("replication_pad2d", importReplicate);
static Register replicate3d("replication_pad3d", importReplicate);

/// Reverses the order along each of `dims`.
static FailureOr<Val> flipped(Call &c, Val x, ArrayRef<int64_t> dims) {
  for (int64_t dim : dims)
    if (int64_t size = x.dims[dim]) {
      ASSIGN_OR_FAIL(x, strided(c, x, dim, size - 1, -1, size));
    }
  return x;
}
static LogicalResult importFlip(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(Dims list, c.integers("dims", std::nullopt));
  ASSIGN_OR_FAIL(Dims dims, c.axes(list, x.rank()));
  return c.set(flipped(c, x, dims));
}
static Register flip("flip", importFlip);

static LogicalResult flipOne(Call &c, int64_t dim) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(dim, c.axis(dim, x.rank()));
  return c.set(flipped(c, x, {dim}));
}
static LogicalResult importFliplr(Call &c) { return flipOne(c, 1); }
static Register fliplr("fliplr", importFliplr);
static LogicalResult importFlipud(Call &c) { return flipOne(c, 0); }
static Register flipud("flipud", importFlipud);

/// Rotates by quarter turns, from the first of two dimensions to the second.
static LogicalResult importRot90(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t turns, c.integer("k", 1));
  ASSIGN_OR_FAIL(Dims dims, c.integers("dims", Dims{0, 1}));
  if (dims.size() != 2)
    return c.error("turns over " + str(dims));
  for (int64_t &dim : dims) {
    ASSIGN_OR_FAIL(dim, c.axis(dim, x.rank()));
  }
  turns = ((turns % 4) + 4) % 4;
  if (turns == 0)
    return c.set(x);
  if (turns == 2)
    return c.set(flipped(c, x, dims));
  ASSIGN_OR_FAIL(Val y, flipped(c, x, {turns == 1 ? dims[1] : dims[0]}));
  Dims perm(nn::firstDims(x.rank()));
  std::swap(perm[dims[0]], perm[dims[1]]);
  return c.set(transpose(c, y, perm));
}
static Register rot90("rot90", importRot90);

/// Shifts elements; those that leave at one end return at the other.
static LogicalResult importRoll(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Dims shifts, c.integers("shifts", std::nullopt));
  ASSIGN_OR_FAIL(Dims dims, c.integers("dims", Dims()));
  Val x = self;
  if (dims.empty()) {
    auto count = checkedNumElements(self.dims);
    if (!count)
      return c.error("the number of elements is too large");
    ASSIGN_OR_FAIL(x, reshaped(c, x, {*count}));
    dims.push_back(0);
  }
  if (dims.size() != shifts.size())
    return c.error("rolls " + str(dims) + " by " + str(shifts));
  for (auto [entry, shift] : llvm::zip(dims, shifts)) {
    ASSIGN_OR_FAIL(int64_t dim, c.axis(entry, x.rank()));
    int64_t size = x.dims[dim];
    int64_t low = size ? ((shift % size) + size) % size : 0;
    if (low == 0)
      continue;
    ASSIGN_OR_FAIL(Val end, strided(c, x, dim, size - low, 1, low));
    ASSIGN_OR_FAIL(Val start, strided(c, x, dim, 0, 1, size - low));
    ASSIGN_OR_FAIL(x, concat(c, {end, start}, dim));
  }
  return c.set(reshaped(c, x, self.dims));
}
static Register roll("roll", importRoll);

/// Makes grids from vectors; the first vector counts rows ("ij") or columns
/// ("xy").
static LogicalResult importMeshgrid(Call &c) {
  ASSIGN_OR_FAIL(SmallVector<Val> vectors, c.tensors("tensors"));
  ASSIGN_OR_FAIL(std::string order, c.text("indexing", "ij"));
  // For "xy", the second vector goes down, the first one across.
  const bool isTurned = order == "xy" && vectors.size() > 1;
  if (isTurned)
    std::swap(vectors[0], vectors[1]);
  Dims dims;
  for (const Val &v : vectors)
    dims.push_back(v.rank() ? v.dims[0] : 1);
  for (auto [i, v] : llvm::enumerate(vectors)) {
    Dims row(dims.size(), 1);
    row[i] = dims[i];
    ASSIGN_OR_FAIL(v, reshaped(c, v, row));
    ASSIGN_OR_FAIL(v, expand(c, v, dims));
  }
  if (isTurned)
    std::swap(vectors[0], vectors[1]);
  return setList(c, vectors);
}
static Register meshgrid("meshgrid", importMeshgrid);
