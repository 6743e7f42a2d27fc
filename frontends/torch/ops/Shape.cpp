// Shape.cpp - views and copies: tensors reshaped, split and joined.

#include "frontends/common/ops/Shape.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/torch/Importer.h"
#include "frontends/torch/ops/Shape.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

//===----------------------------------------------------------------------===//
// Copies and casts
//===----------------------------------------------------------------------===//

/// The graph ignores memory formats and devices.
static LogicalResult importSelf(Call &c) { return c.set(c.tensor("self")); }
static Register cloneOp("clone", importSelf);
static Register contiguous("contiguous", importSelf);
static Register liftFreshCopy("lift_fresh_copy", importSelf);
static Register liftFresh("lift_fresh", importSelf);

static LogicalResult importDetach(Call &c) {
  return c.set(c.importer.forward.detached(c.tensor("self"), c.loc));
}
static Register detach("detach", importDetach);

/// run_decompositions() makes an alias of a detach(), and of a slice that
/// covers all elements. The exporter's note distinguishes them; without it the
/// gradient is unknown.
static LogicalResult importAlias(Call &c) {
  const Val self = c.tensor("self");
  StringRef origin = c.data.origin;
  if (origin.ends_with(".detach"))
    return importDetach(c);
  if (origin.empty() && self.isTensor() && isFloat(self.type))
    return c.unsupported("an alias without the exporter's note of what it was, "
                         "which may be a detach()");
  return c.set(self);
}
static Register alias("alias", importAlias);

/// A copy in another type, if `dtype` is given.
static LogicalResult importTo(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", self.type));
  return c.set(castTo(c, self, type));
}
static Register to("to", importTo);
static Register toCopy("_to_copy", importTo);

static LogicalResult importTypeAs(Call &c) {
  return c.set(castTo(c, c.tensor("self"), c.tensor("other").type));
}
static Register typeAs("type_as", importTypeAs);

/// Sets the new value of `self` to `src`.
static LogicalResult importCopy(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Val value, castTo(c, c.tensor("src"), self.type));
  return c.set(expand(c, value, self.dims));
}
static Register copy("copy", importCopy);

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static LogicalResult importView(Call &c) {
  ASSIGN_OR_FAIL(Dims dims, c.integers("size", std::nullopt));
  return c.set(viewed(c, c.tensor("self"), dims));
}
static Register view("view", importView);
static Register unsafeView("_unsafe_view", importView);

static LogicalResult importReshape(Call &c) {
  ASSIGN_OR_FAIL(Dims dims, c.integers("shape", std::nullopt));
  return c.set(viewed(c, c.tensor("self"), dims));
}
static Register reshapeOp("reshape", importReshape);

static LogicalResult importViewAs(Call &c) {
  return c.set(reshaped(c, c.tensor("self"), c.tensor("other").dims));
}
static Register viewAs("view_as", importViewAs);
static Register reshapeAs("reshape_as", importViewAs);

static LogicalResult importRavel(Call &c) {
  return c.set(viewed(c, c.tensor("self"), {-1}));
}
static Register ravel("ravel", importRavel);

/// Accepts only a reshape of the same elements: strides of dimensions of size 1
/// don't matter.
static LogicalResult importAsStrided(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Dims dims, c.integers("size", std::nullopt));
  ASSIGN_OR_FAIL(Dims strides, c.integers("stride", std::nullopt));
  ASSIGN_OR_FAIL(int64_t offset, c.integer("storage_offset", 0));
  auto before = checkedNumElements(self.dims), after = checkedNumElements(dims);
  bool same =
      before && before == after && offset == 0 && dims.size() == strides.size();
  int64_t stride = 1;
  for (size_t i = dims.size(); same && i-- > 0; stride *= dims[i])
    same = dims[i] == 1 || strides[i] == stride;
  if (!same)
    return c.unsupported("a view of shape " + str(self.dims) + " as " +
                         str(dims) + " with strides of " + str(strides));
  return c.set(reshaped(c, self, dims));
}
static Register asStrided("as_strided", importAsStrided);

static LogicalResult importFlatten(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t first, c.dim("start_dim", 0, self.rank()));
  ASSIGN_OR_FAIL(int64_t last, c.dim("end_dim", -1, self.rank()));
  if (first > last)
    return c.error("flattens dimensions " + Twine(first) + " to " +
                   Twine(last));
  ArrayRef<int64_t> dims(self.dims);
  if (dims.empty())
    return c.set(reshaped(c, self, {1}));
  auto count = checkedNumElements(dims.slice(first, last - first + 1));
  if (!count)
    return c.error("the number of elements is too large");
  Dims flat(dims.take_front(first));
  flat.push_back(*count);
  flat.append(dims.begin() + last + 1, dims.end());
  return c.set(reshaped(c, self, flat));
}
static Register flatten("flatten", importFlatten);

static LogicalResult importUnflatten(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  ASSIGN_OR_FAIL(Dims sizes, c.integers("sizes", std::nullopt));
  if (self.dims.empty())
    return c.error("unflattens shape " + str(self.dims));
  // One of the sizes may be -1, which `viewed` infers.
  Dims dims(ArrayRef<int64_t>(self.dims).take_front(dim));
  dims.append(sizes.begin(), sizes.end());
  dims.append(self.dims.begin() + dim + 1, self.dims.end());
  return c.set(viewed(c, self, dims));
}
static Register unflatten("unflatten", importUnflatten);

/// Only dimensions of size 1 are removed.
static LogicalResult importSqueeze(Call &c) {
  const Val self = c.tensor("self");
  if (!c.has("dim"))
    return c.set(squeeze(c, self, std::nullopt));
  ASSIGN_OR_FAIL(Dims list, c.integers("dim", std::nullopt));
  if (self.dims.empty())
    return c.set(self);
  ASSIGN_OR_FAIL(Dims axes, c.axes(list, self.rank()));
  llvm::erase_if(axes, [&](int64_t axis) { return self.dims[axis] != 1; });
  return c.set(squeeze(c, self, axes));
}
static Register squeezeOp("squeeze", importSqueeze);

static LogicalResult importUnsqueeze(Call &c) {
  ASSIGN_OR_FAIL(int64_t dim, c.integer("dim", std::nullopt));
  return c.set(unsqueeze(c, c.tensor("self"), {dim}));
}
static Register unsqueezeOp("unsqueeze", importUnsqueeze);

static LogicalResult importPermute(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Dims perm, c.integers("dims", std::nullopt));
  for (int64_t &dim : perm) {
    ASSIGN_OR_FAIL(dim, c.axis(dim, self.rank()));
  }
  return c.set(transpose(c, self, perm));
}
static Register permute("permute", importPermute);

static LogicalResult swap(Call &c, int64_t a, int64_t b) {
  const Val self = c.tensor("self");
  if (self.dims.empty())
    return c.set(self);
  Dims perm(nn::firstDims(self.rank()));
  std::swap(perm[a], perm[b]);
  return c.set(transpose(c, self, perm));
}

static LogicalResult importTranspose(Call &c) {
  int64_t rank = c.tensor("self").rank();
  ASSIGN_OR_FAIL(int64_t a, c.dim("dim0", std::nullopt, rank));
  ASSIGN_OR_FAIL(int64_t b, c.dim("dim1", std::nullopt, rank));
  return swap(c, a, b);
}
static Register transposeOp("transpose", importTranspose);
static Register swapDims("swapdims", importTranspose);

static LogicalResult importSwapAxes(Call &c) {
  int64_t rank = c.tensor("self").rank();
  ASSIGN_OR_FAIL(int64_t a, c.dim("axis0", std::nullopt, rank));
  ASSIGN_OR_FAIL(int64_t b, c.dim("axis1", std::nullopt, rank));
  return swap(c, a, b);
}
static Register swapAxes("swapaxes", importSwapAxes);

/// Transposes the matrices over the last two dimensions.
static LogicalResult importMatrixTransposed(Call &c) {
  int64_t rank = c.tensor("self").rank();
  if (rank < 2)
    return c.error("transposes shape " + str(c.tensor("self").dims));
  return swap(c, rank - 2, rank - 1);
}
static Register matrixT("mT", importMatrixTransposed);
static Register matrixH("mH", importMatrixTransposed); // of real numbers
static Register adjoint("adjoint", importMatrixTransposed);

static LogicalResult importT(Call &c) {
  int64_t rank = c.tensor("self").rank();
  if (rank > 2)
    return c.error("transposes shape " + str(c.tensor("self").dims));
  return rank < 2 ? c.set(c.tensor("self")) : swap(c, 0, 1);
}
static Register t("t", importT);
static Register hermitian("matrix_H", importT);

/// Reverses the order of the dimensions.
static LogicalResult importReversed(Call &c) {
  Dims perm(nn::firstDims(c.tensor("self").rank()));
  std::reverse(perm.begin(), perm.end());
  return c.set(transpose(c, c.tensor("self"), perm));
}
static Register numpyT("numpy_T", importReversed);

static LogicalResult importMoveDim(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Dims from, c.integers("source", std::nullopt));
  ASSIGN_OR_FAIL(Dims to, c.integers("destination", std::nullopt));
  if (from.size() != to.size())
    return c.error("moves " + str(from) + " to " + str(to));
  Dims perm(self.rank(), -1), rest;
  for (auto [a, z] : llvm::zip(from, to)) {
    ASSIGN_OR_FAIL(a, c.axis(a, self.rank()));
    ASSIGN_OR_FAIL(z, c.axis(z, self.rank()));
    if (perm[z] != -1)
      return c.error("moves two dimensions to " + Twine(z));
    perm[z] = a;
  }
  int64_t next = 0;
  for (int64_t &entry : perm)
    if (entry == -1) {
      while (llvm::is_contained(from, next))
        ++next;
      entry = next++;
    }
  return c.set(transpose(c, self, perm));
}
static Register moveDim("movedim", importMoveDim);
static Register moveAxis("moveaxis", importMoveDim);

FailureOr<Val> tmc::torch_import::expandedTo(Call &c, const Val &x, Dims dims) {
  int64_t added = static_cast<int64_t>(dims.size()) - x.rank();
  if (added < 0)
    return c.error("expands shape " + str(x.dims) + " to " + str(dims));
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim == -1 && static_cast<int64_t>(i) >= added)
      dim = x.dims[i - added];
  if (broadcastShape(x.dims, dims) != dims)
    return c.error("expands shape " + str(x.dims) + " to " + str(dims));
  return expand(c, x, dims);
}
static LogicalResult importExpand(Call &c) {
  ASSIGN_OR_FAIL(Dims dims, c.integers("size", std::nullopt));
  return c.set(expandedTo(c, c.tensor("self"), dims));
}
static Register expandOp("expand", importExpand);
static Register broadcastTo("broadcast_to", importExpand);

static LogicalResult importExpandAs(Call &c) {
  return c.set(expand(c, c.tensor("self"), c.tensor("other").dims));
}
static Register expandAs("expand_as", importExpandAs);

/// Expands all tensors to their common shape.
static LogicalResult importBroadcastTensors(Call &c) {
  ASSIGN_OR_FAIL(SmallVector<Val> values, c.tensors("tensors"));
  Dims common;
  for (const Val &v : values) {
    auto joined = broadcastShape(common, v.dims);
    if (!joined)
      return c.error("shapes " + str(common) + " and " + str(v.dims) +
                     " don't fit together");
    common = *joined;
  }
  for (Val &v : values) {
    ASSIGN_OR_FAIL(v, expand(c, v, common));
  }
  return setList(c, values);
}
static Register broadcastTensors("broadcast_tensors", importBroadcastTensors);

/// The shorter one of `times` and the shape gets ones in front.
static LogicalResult repeated(Call &c, Dims times) {
  const Val self = c.tensor("self");
  Dims dims(self.dims);
  if (times.size() > dims.size())
    dims.insert(dims.begin(), times.size() - dims.size(), 1);
  times.insert(times.begin(), dims.size() - times.size(), 1);
  ASSIGN_OR_FAIL(Val wide, reshaped(c, self, dims));
  return c.set(tile(c, wide, times));
}
static LogicalResult importRepeat(Call &c) {
  ASSIGN_OR_FAIL(Dims times, c.integers("repeats", std::nullopt));
  if (times.size() < c.tensor("self").dims.size())
    return c.error("repeats shape " + str(c.tensor("self").dims) + " by " +
                   str(times));
  return repeated(c, times);
}
static Register repeat("repeat", importRepeat);
static LogicalResult importTile(Call &c) {
  ASSIGN_OR_FAIL(Dims times, c.integers("dims", std::nullopt));
  return repeated(c, times);
}
static Register tileOp("tile", importTile);

/// Repeats each entry along `dim` `repeats` times.
static LogicalResult importRepeatInterleave(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t times, c.integer("repeats", std::nullopt));
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  Dims apart(self.dims), wide(self.dims), dims(self.dims);
  auto size =
      self.dims.empty() ? std::nullopt : checkedMul(self.dims[dim], times);
  if (times < 1 || !size)
    return c.error("repeats shape " + str(self.dims) + " " + Twine(times) +
                   " times");
  apart.insert(apart.begin() + dim + 1, 1);
  wide.insert(wide.begin() + dim + 1, times);
  dims[dim] = *size;
  ASSIGN_OR_FAIL(Val y, reshaped(c, self, apart));
  ASSIGN_OR_FAIL(y, expand(c, y, wide));
  return c.set(reshaped(c, y, dims));
}
static Register repeatInterleave("repeat_interleave", importRepeatInterleave);

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

static LogicalResult importSlice(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 0, self.rank()));
  ASSIGN_OR_FAIL(int64_t start, c.integer("start", 0));
  ASSIGN_OR_FAIL(int64_t end, c.integer("end", INT64_MAX));
  ASSIGN_OR_FAIL(int64_t step, c.integer("step", 1));
  if (self.dims.empty() || step < 1)
    return c.error("slices shape " + str(self.dims) + " in steps of " +
                   Twine(step));
  return c.set(slice(c, self, dim, start, end, step));
}
static Register sliceOp("slice", importSlice);

static LogicalResult importSelect(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  ASSIGN_OR_FAIL(int64_t at, c.integer("index", std::nullopt));
  if (self.dims.empty())
    return c.error("selects from shape " + str(self.dims));
  ASSIGN_OR_FAIL(at, c.axis(at, self.dims[dim]));
  ASSIGN_OR_FAIL(Val piece, slice(c, self, dim, at, at + 1, 1));
  return c.set(squeeze(c, piece, Dims{dim}));
}
static Register selectOp("select", importSelect);

static LogicalResult importNarrow(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  ASSIGN_OR_FAIL(int64_t start, c.integer("start", std::nullopt));
  ASSIGN_OR_FAIL(int64_t length, c.integer("length", std::nullopt));
  if (self.dims.empty() || start < 0 ||
      !fitsWithin(start, length, self.dims[dim]))
    return c.error("takes " + Twine(length) + " of shape " + str(self.dims));
  return c.set(slice(c, self, dim, start, start + length, 1));
}
static Register narrow("narrow", importNarrow);

static LogicalResult pieces(Call &c, int64_t dim, ArrayRef<int64_t> lengths) {
  ASSIGN_OR_FAIL(SmallVector<Val> parts,
                 cut(c, c.tensor("self"), dim, lengths));
  return setList(c, parts);
}

static LogicalResult importSplit(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 0, self.rank()));
  if (self.dims.empty())
    return c.error("splits shape " + str(self.dims));
  if (c.has("split_sizes")) {
    ASSIGN_OR_FAIL(Dims lengths, c.integers("split_sizes", std::nullopt));
    return pieces(c, dim, lengths);
  }
  ASSIGN_OR_FAIL(Dims lengths, c.integers("split_size", std::nullopt));
  if (lengths.size() != 1)
    return pieces(c, dim, lengths);
  if (lengths[0] < 1)
    return c.error("splits into pieces of " + Twine(lengths[0]));
  ASSIGN_OR_FAIL(lengths, evenPieces(c, self.dims[dim], lengths[0]));
  return pieces(c, dim, lengths);
}
static Register split("split", importSplit);
static Register splitWithSizes("split_with_sizes", importSplit);
static Register unsafeSplit("unsafe_split", importSplit);
static Register unsafeSizes("unsafe_split_with_sizes", importSplit);

/// Splits into `sections` pieces, of which the first are larger by one if the
/// size doesn't divide, or before each of some indices.
static LogicalResult splitAlong(Call &c, int64_t dim) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(dim, c.axis(dim, self.rank()));
  int64_t size = self.dims[dim];
  Dims lengths;
  if (c.has("sections")) {
    ASSIGN_OR_FAIL(int64_t count, c.integer("sections", std::nullopt));
    if (count < 1 || count != static_cast<int64_t>(c.data.makes().size()))
      return c.error("splits shape " + str(self.dims) + " into " +
                     Twine(count));
    for (int64_t i = 0; i < count; ++i)
      lengths.push_back(size / count + (i < size % count));
    return pieces(c, dim, lengths);
  }
  ASSIGN_OR_FAIL(Dims places, c.integers("indices", std::nullopt));
  places.push_back(size);
  int64_t from = 0;
  for (int64_t place : places) {
    int64_t to = std::clamp<int64_t>(place < 0 ? place + size : place, 0, size);
    lengths.push_back(std::max<int64_t>(to - from, 0));
    from = std::max(from, to);
  }
  return pieces(c, dim, lengths);
}
static LogicalResult importTensorSplit(Call &c) {
  ASSIGN_OR_FAIL(int64_t dim, c.integer("dim", 0));
  return splitAlong(c, dim);
}
static Register tensorSplit("tensor_split", importTensorSplit);
static LogicalResult importHsplit(Call &c) {
  return splitAlong(c, c.tensor("self").rank() == 1 ? 0 : 1);
}
static Register hsplit("hsplit", importHsplit);
static LogicalResult importVsplit(Call &c) { return splitAlong(c, 0); }
static Register vsplit("vsplit", importVsplit);
static LogicalResult importDsplit(Call &c) { return splitAlong(c, 2); }
static Register dsplit("dsplit", importDsplit);

static LogicalResult importChunk(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 0, self.rank()));
  ASSIGN_OR_FAIL(int64_t count, c.integer("chunks", std::nullopt));
  if (self.dims.empty() || count < 1)
    return c.error("cuts shape " + str(self.dims) + " into " + Twine(count));
  int64_t size = self.dims[dim];
  ASSIGN_OR_FAIL(
      Dims lengths,
      evenPieces(c, size, std::max<int64_t>((size - 1) / count + 1, 1)));
  return pieces(c, dim, lengths);
}
static Register chunk("chunk", importChunk);
static Register unsafeChunk("unsafe_chunk", importChunk);

static LogicalResult importUnbind(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 0, self.rank()));
  if (self.dims.empty())
    return c.error("unbinds shape " + str(self.dims));
  ASSIGN_OR_FAIL(Dims lengths, evenPieces(c, self.dims[dim], 1));
  ASSIGN_OR_FAIL(SmallVector<Val> parts, cut(c, self, dim, lengths));
  for (Val &part : parts) {
    ASSIGN_OR_FAIL(part, squeeze(c, part, Dims{dim}));
  }
  return setList(c, parts);
}
static Register unbind("unbind", importUnbind);

/// The operands of a join are promoted to one type.
static FailureOr<SmallVector<Val>> joined(Call &c) {
  ASSIGN_OR_FAIL(SmallVector<Val> parts, c.tensors("tensors"));
  if (parts.empty())
    return c.error("joins nothing");
  ElementType type = parts[0].type;
  for (const Val &part : parts)
    type = promoteTypes(type, part.type);
  for (Val &part : parts) {
    ASSIGN_OR_FAIL(part, castTo(c, part, type));
  }
  return parts;
}

static LogicalResult importCat(Call &c) {
  ASSIGN_OR_FAIL(SmallVector<Val> parts, joined(c));
  // PyTorch skips vectors without elements, for any shape of the others.
  llvm::erase_if(parts, [](const Val &v) { return v.dims == Dims{0}; });
  ASSIGN_OR_FAIL(int64_t dim,
                 c.dim("dim", 0, parts.empty() ? 1 : parts[0].rank()));
  return c.set(concat(c, parts, dim));
}
static Register cat("cat", importCat);
static Register concatOp("concat", importCat);
static Register concatenate("concatenate", importCat);

FailureOr<Val> tmc::torch_import::stacked(Call &c, ArrayRef<Val> parts,
                                          int64_t axis) {
  SmallVector<Val> wide;
  for (const Val &part : parts) {
    ASSIGN_OR_FAIL(Val v, unsqueeze(c, part, {axis}));
    wide.push_back(v);
  }
  return concat(c, wide, axis);
}

static LogicalResult importStack(Call &c) {
  ASSIGN_OR_FAIL(SmallVector<Val> parts, joined(c));
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 0, parts[0].rank() + 1));
  return c.set(stacked(c, parts, dim));
}
static Register stack("stack", importStack);

/// `x` with at least `rank` dimensions, in NumPy's order: new ones in front,
/// except the third, which is last.
static FailureOr<Val> atLeast(Call &c, const Val &x, int64_t rank) {
  Dims dims(x.dims);
  if (dims.empty())
    dims.push_back(1);
  if (rank >= 2 && dims.size() == 1)
    dims.insert(dims.begin(), 1);
  if (rank >= 3 && dims.size() == 2)
    dims.push_back(1);
  return reshaped(c, x, dims);
}

static LogicalResult widened(Call &c, int64_t rank) {
  if (!c.has("tensors"))
    return c.set(atLeast(c, c.tensor("self"), rank));
  ASSIGN_OR_FAIL(SmallVector<Val> values, c.tensors("tensors"));
  for (Val &v : values) {
    ASSIGN_OR_FAIL(v, atLeast(c, v, rank));
  }
  return setList(c, values);
}
static LogicalResult importAtLeast1(Call &c) { return widened(c, 1); }
static Register atLeast1("atleast_1d", importAtLeast1);
static LogicalResult importAtLeast2(Call &c) { return widened(c, 2); }
static Register atLeast2("atleast_2d", importAtLeast2);
static LogicalResult importAtLeast3(Call &c) { return widened(c, 3); }
static Register atLeast3("atleast_3d", importAtLeast3);

/// Joins along dimension `dim` of tensors with enough dimensions, or vectors
/// along the first.
static LogicalResult stackAlong(Call &c, int64_t dim) {
  ASSIGN_OR_FAIL(SmallVector<Val> parts, joined(c));
  bool areVectors = dim == 1 && parts[0].rank() < 2;
  // hstack() joins vectors; vstack() turns vectors into rows.
  int64_t rank = dim == 0 ? 2 : dim == 1 ? 1 : 3;
  for (Val &part : parts) {
    ASSIGN_OR_FAIL(part, atLeast(c, part, rank));
  }
  return c.set(concat(c, parts, areVectors ? 0 : dim));
}
static LogicalResult importVstack(Call &c) { return stackAlong(c, 0); }
static Register vstack("vstack", importVstack);
static Register rowStack("row_stack", importVstack);
static LogicalResult importHstack(Call &c) { return stackAlong(c, 1); }
static Register hstack("hstack", importHstack);
static LogicalResult importDstack(Call &c) { return stackAlong(c, 2); }
static Register dstack("dstack", importDstack);

/// Turns vectors into columns.
static LogicalResult importColumnStack(Call &c) {
  ASSIGN_OR_FAIL(SmallVector<Val> parts, joined(c));
  for (Val &part : parts)
    if (part.rank() < 2) {
      ASSIGN_OR_FAIL(part, viewed(c, part, {-1, 1}));
    }
  return c.set(concat(c, parts, 1));
}
static Register columnStack("column_stack", importColumnStack);

static LogicalResult importTril(Call &c) {
  ASSIGN_OR_FAIL(int64_t diagonal, c.integer("diagonal", 0));
  return c.set(triangle(c, c.tensor("self"), false, diagonal));
}
static Register tril("tril", importTril);

static LogicalResult importTriu(Call &c) {
  ASSIGN_OR_FAIL(int64_t diagonal, c.integer("diagonal", 0));
  return c.set(triangle(c, c.tensor("self"), true, diagonal));
}
static Register triu("triu", importTriu);
