// Gather.cpp - elements chosen by index.

#include "frontends/common/ops/Gather.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Scatter.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/ops/Gather.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

LogicalResult tmc::torch_import::checkTableGradients(Call &c) {
  c.ignore({"sparse"});
  ASSIGN_OR_FAIL(bool byFrequency, c.flag("scale_grad_by_freq", false));
  if (byFrequency)
    return c.unsupported("gradients divided by how often an index occurs "
                         "(scale_grad_by_freq)");
  return success();
}

/// The row `padding_idx` gets no gradient from this lookup.
static LogicalResult importEmbedding(Call &c) {
  if (failed(checkTableGradients(c)))
    return failure();
  ASSIGN_OR_FAIL(int64_t padding, c.integer("padding_idx", -1));
  return c.set(
      gather(c, c.tensor("weight"), c.tensor("indices"), 0,
             padding >= 0 ? std::optional<int64_t>(padding) : std::nullopt));
}
static Register embedding("embedding", importEmbedding);

static LogicalResult importIndexSelect(Call &c) {
  ASSIGN_OR_FAIL(int64_t dim, c.integer("dim", std::nullopt));
  return c.set(gather(c, c.tensor("self"), c.tensor("index"), dim));
}
static Register indexSelect("index_select", importIndexSelect);

static LogicalResult importGather(Call &c) {
  ASSIGN_OR_FAIL(int64_t dim, c.integer("dim", std::nullopt));
  return c.set(gatherElements(c, c.tensor("self"), c.tensor("index"), dim));
}
static Register gatherOp("gather", importGather);

/// The same for indices that broadcast to all other dimensions; without a
/// dimension, over all elements as one row.
static LogicalResult importTakeAlong(Call &c) {
  Val self = c.tensor("self"), indices = c.tensor("indices");
  if (!c.has("dim")) {
    ASSIGN_OR_FAIL(self, viewed(c, self, {-1}));
    ASSIGN_OR_FAIL(indices, viewed(c, indices, {-1}));
  }
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 0, self.rank()));
  if (self.rank() != indices.rank() || self.dims.empty())
    return c.error("indices of shape " + str(indices.dims) + " of shape " +
                   str(self.dims));
  Dims own(self.dims), theirs(indices.dims);
  own[dim] = theirs[dim] = 1;
  auto common = broadcastShape(own, theirs);
  if (!common)
    return c.error("indices of shape " + str(indices.dims) + " of shape " +
                   str(self.dims));
  own = theirs = *common;
  own[dim] = self.dims[dim];
  theirs[dim] = indices.dims[dim];
  ASSIGN_OR_FAIL(self, expand(c, self, own));
  ASSIGN_OR_FAIL(indices, expand(c, indices, theirs));
  return c.set(gatherElements(c, self, indices, dim));
}
static Register takeAlong("take_along_dim", importTakeAlong);

/// Indexes all elements as one row.
static LogicalResult importTake(Call &c) {
  ASSIGN_OR_FAIL(Val row, viewed(c, c.tensor("self"), {-1}));
  return c.set(gather(c, row, c.tensor("index"), 0));
}
static Register take("take", importTake);

namespace {
/// Indices of some dimensions, which broadcast together: if those dimensions
/// are moved to the front, the indices are rows of places.
struct Indices {
  Dims perm;      ///< The indexed dimensions, then the others.
  Dims common;    ///< The common shape of the indices.
  Val places;     ///< [common..., number of indexed dimensions]
  int64_t at = 0; ///< The position of the common dimensions in self[indices].
};
} // namespace

/// The indices of true elements in a known mask: a vector for each dimension.
static FailureOr<SmallVector<Val>> placesOf(Call &c, const Val &mask) {
  if (!c.foldable(mask))
    return c.unsupported("a choice by a mask, whose size isn't known");
  ASSIGN_OR_FAIL(Array array, c.arrayOf(mask));
  SmallVector<std::vector<int64_t>> places(std::max<int64_t>(mask.rank(), 1));
  Dims at(mask.rank(), 0);
  for (int64_t chosen : array.ints()) {
    for (int64_t d = 0; chosen && d < mask.rank(); ++d)
      places[d].push_back(at[d]);
    for (int64_t d = mask.rank(); d-- > 0;) {
      if (++at[d] < mask.dims[d])
        break;
      at[d] = 0;
    }
  }
  SmallVector<Val> values;
  for (std::vector<int64_t> &list : places) {
    int64_t count = list.size();
    values.push_back(
        Val(Array::ofInts(ElementType::I64, {count}, std::move(list))));
  }
  return values;
}

/// The choice of self[indices]; nothing if there are no indices.
static FailureOr<std::optional<Indices>> indicesOf(Call &c, const Val &self) {
  ASSIGN_OR_FAIL(SmallVector<Val> given, c.tensors("indices"));
  SmallVector<std::pair<int64_t, Val>> indexed;
  int64_t dim = 0;
  for (const Val &v : given) {
    if (v.isAbsent()) {
      ++dim;
      continue;
    }
    SmallVector<Val> places{v};
    if (v.type == ElementType::Bool) {
      ASSIGN_OR_FAIL(places, placesOf(c, v));
    }
    for (const Val &place : places)
      indexed.push_back({dim++, place});
  }
  if (indexed.empty())
    return std::optional<Indices>();
  if (indexed.back().first >= self.rank())
    return c.error("chooses along " + Twine(indexed.back().first + 1) +
                   " dimensions of shape " + str(self.dims));
  Indices result;
  for (const auto &[d, v] : indexed) {
    auto joined = broadcastShape(result.common, v.dims);
    if (!joined)
      return c.error("indices of shape " + str(v.dims) + " don't fit " +
                     str(result.common));
    result.common = *joined;
    result.perm.push_back(d);
  }
  // The common dimensions replace adjacent indexed dimensions at their place;
  // otherwise they come first.
  int64_t first = indexed[0].first, last = indexed.back().first;
  bool areTogether = last - first + 1 == static_cast<int64_t>(indexed.size());
  result.at = areTogether ? first : 0;
  for (int64_t d = 0; d < self.rank(); ++d)
    if (!llvm::is_contained(result.perm, d))
      result.perm.push_back(d);
  SmallVector<Val> columns;
  for (const auto &[d, v] : indexed) {
    ASSIGN_OR_FAIL(Val wide, castTo(c, v, ElementType::I64));
    ASSIGN_OR_FAIL(wide, expand(c, wide, result.common));
    ASSIGN_OR_FAIL(
        wide, unsqueeze(c, wide, {static_cast<int64_t>(result.common.size())}));
    columns.push_back(wide);
  }
  ASSIGN_OR_FAIL(result.places, concat(c, columns, result.common.size()));
  return std::optional<Indices>(result);
}

/// The permutation that moves the first `moved` dimensions behind the next
/// `at`.
static Dims behind(int64_t rank, int64_t moved, int64_t at) {
  Dims perm;
  for (int64_t i = 0; i < at; ++i)
    perm.push_back(moved + i);
  for (int64_t i = 0; i < moved; ++i)
    perm.push_back(i);
  for (int64_t i = moved + at; i < rank; ++i)
    perm.push_back(i);
  return perm;
}

/// self[i, j, ...]: tensors of indices or masks for some dimensions.
static LogicalResult importIndex(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(SmallVector<Val> given, c.tensors("indices"));
  // One tensor of indices is a lookup along its dimension.
  auto isGiven = [](const Val &v) { return !v.isAbsent(); };
  auto only = llvm::find_if(given, isGiven);
  if (llvm::count_if(given, isGiven) == 1 && only->type != ElementType::Bool &&
      only - given.begin() < self.rank())
    return c.set(gather(c, self, *only, only - given.begin()));
  ASSIGN_OR_FAIL(std::optional<Indices> indices, indicesOf(c, self));
  if (!indices)
    return c.set(self);
  ASSIGN_OR_FAIL(Val front, transpose(c, self, indices->perm));
  ASSIGN_OR_FAIL(Val y, gatherSlices(c, front, indices->places));
  return c.set(
      transpose(c, y, behind(y.rank(), indices->common.size(), indices->at)));
}
static Register indexOp("index", importIndex);
static Register unsafeIndex("_unsafe_index", importIndex);

//===----------------------------------------------------------------------===//
// Writes to chosen places
//===----------------------------------------------------------------------===//

/// self with values at self[indices], or with values added there.
static LogicalResult importIndexPut(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Val values, castTo(c, c.tensor("values"), self.type));
  ASSIGN_OR_FAIL(bool adds, c.flag("accumulate", false));
  ASSIGN_OR_FAIL(SmallVector<Val> given, c.tensors("indices"));
  auto isGiven = [](const Val &v) { return !v.isAbsent(); };
  // A scalar where a mask is true is a select.
  if (given.size() == 1 && given[0].type == ElementType::Bool &&
      !c.foldable(given[0]) && values.dims.empty()) {
    Dims wide(given[0].dims);
    wide.resize(self.rank(), 1);
    ASSIGN_OR_FAIL(Val mask, reshaped(c, given[0], wide));
    if (adds) {
      ASSIGN_OR_FAIL(values, add(c, {self, values}));
    }
    return c.set(where(c, mask, values, self));
  }
  if (llvm::none_of(given, isGiven))
    return c.unsupported("writes without indices");
  ASSIGN_OR_FAIL(std::optional<Indices> indices, indicesOf(c, self));
  ASSIGN_OR_FAIL(Val front, transpose(c, self, indices->perm));
  int64_t count = indices->places.dims.back();
  // The values in the shape of self[indices], then with the indices in front.
  Dims rest(ArrayRef<int64_t>(front.dims).drop_front(count)), shape;
  int64_t common = indices->common.size(), at = indices->at;
  shape.append(rest.begin(), rest.begin() + at);
  shape.append(indices->common.begin(), indices->common.end());
  shape.append(rest.begin() + at, rest.end());
  if (broadcastShape(values.dims, shape) != shape)
    return c.error("writes shape " + str(values.dims) + " to places of shape " +
                   str(shape));
  ASSIGN_OR_FAIL(values, expand(c, values, shape));
  Dims perm = behind(shape.size(), at, common);
  ASSIGN_OR_FAIL(values, transpose(c, values, perm));
  ASSIGN_OR_FAIL(Val y, scatterSlices(c, front, indices->places, values,
                                      adds ? Joining::Add : Joining::Replace));
  Dims back(indices->perm.size());
  for (auto [i, dim] : llvm::enumerate(indices->perm))
    back[dim] = i;
  return c.set(transpose(c, y, back));
}
static Register indexPut("index_put", importIndexPut);
static Register unsafeIndexPut("_unsafe_index_put", importIndexPut);

/// self with src, a tensor or a number, at index along dim.
static LogicalResult scatterBy(Call &c, Joining how, bool withOld) {
  const Val self = c.tensor("self");
  const Val index = c.tensor("index");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  ASSIGN_OR_FAIL(Val source, castTo(c, c.tensor(c.has("src") ? "src" : "value"),
                                    self.type));
  if (!c.has("src") || source.dims.empty()) {
    ASSIGN_OR_FAIL(source, expand(c, source, index.dims));
  }
  // Only as many elements as there are indices are used.
  for (int64_t d = 0; d < source.rank() && d < index.rank(); ++d)
    if (source.dims[d] > index.dims[d]) {
      ASSIGN_OR_FAIL(source, strided(c, source, d, 0, 1, index.dims[d]));
    }
  return c.set(scatterElements(c, self, index, source, dim, how, withOld));
}

static FailureOr<Joining> joiningOf(Call &c, const std::string &name) {
  if (name == "add" || name == "sum")
    return Joining::Add;
  if (name == "multiply" || name == "prod")
    return Joining::Multiply;
  if (name == "mean")
    return Joining::Mean;
  if (name == "amax")
    return Joining::Max;
  if (name == "amin")
    return Joining::Min;
  return c.unsupported("updates joined by '" + name + "'");
}

static LogicalResult importScatter(Call &c) {
  ASSIGN_OR_FAIL(std::string reduce, c.text("reduce", ""));
  Joining how = Joining::Replace;
  if (!reduce.empty()) {
    ASSIGN_OR_FAIL(how, joiningOf(c, reduce));
  }
  return scatterBy(c, how, true);
}
static Register scatterOp("scatter", importScatter);

static LogicalResult importScatterAdd(Call &c) {
  return scatterBy(c, Joining::Add, true);
}
static Register scatterAdd("scatter_add", importScatterAdd);

static LogicalResult importScatterReduce(Call &c) {
  ASSIGN_OR_FAIL(std::string reduce, c.text("reduce", ""));
  ASSIGN_OR_FAIL(bool withOld, c.flag("include_self", true));
  ASSIGN_OR_FAIL(Joining how, joiningOf(c, reduce));
  return scatterBy(c, how, withOld);
}
static Register scatterReduce("scatter_reduce", importScatterReduce);

static LogicalResult importIndexReduce(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  ASSIGN_OR_FAIL(Val source, castTo(c, c.tensor("source"), self.type));
  ASSIGN_OR_FAIL(std::string reduce, c.text("reduce", ""));
  ASSIGN_OR_FAIL(bool withOld, c.flag("include_self", true));
  ASSIGN_OR_FAIL(Joining how, joiningOf(c, reduce));
  return c.set(
      scatterEntries(c, self, c.tensor("index"), source, dim, how, withOld));
}
static Register indexReduce("index_reduce", importIndexReduce);

/// Writes the elements of `source`, in order, to the places of self where
/// `mask` is true. A mask that repeats along the last dimensions chooses rows
/// of these.
static LogicalResult importMaskedScatter(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Val source, castTo(c, c.tensor("source"), self.type));
  ASSIGN_OR_FAIL(Val mask, castTo(c, c.tensor("mask"), ElementType::Bool));
  ASSIGN_OR_FAIL(mask, expand(c, mask, self.dims));
  Val chosen = mask;
  if (mask.isTensor())
    if (auto repeated = mask.value.getDefiningOp<nn::BroadcastOp>())
      if (repeated.getDims() ==
          ArrayRef<int64_t>(nn::firstDims(repeated.getDims().size())))
        chosen = Val(repeated.getInput());
  ArrayRef<int64_t> dims(self.dims);
  auto rows = checkedNumElements(dims.take_front(chosen.rank()));
  auto width = checkedNumElements(dims.drop_front(chosen.rank()));
  auto given = checkedNumElements(source.dims);
  if (!rows || !width || !given || *width < 1 || *given < *width ||
      *given % *width)
    return c.error("elements of shape " + str(source.dims) + " for shape " +
                   str(self.dims));
  // The number of chosen rows before each row.
  ASSIGN_OR_FAIL(Val flags, reshaped(c, chosen, {*rows}));
  ASSIGN_OR_FAIL(flags, castTo(c, flags, ElementType::F32));
  CumulativeSum before;
  before.exclusive = true;
  ASSIGN_OR_FAIL(Val places, cumulativeSum(c, flags, before));
  ASSIGN_OR_FAIL(places, castTo(c, places, ElementType::I64));
  int64_t last = *given / *width - 1;
  ASSIGN_OR_FAIL(
      places,
      minimum(c, {places, Val(Array::splatInt(ElementType::I64, {}, last))}));
  ASSIGN_OR_FAIL(Val table, reshaped(c, source, {last + 1, *width}));
  ASSIGN_OR_FAIL(Val taken, gather(c, table, places, 0));
  ASSIGN_OR_FAIL(taken, reshaped(c, taken, self.dims));
  return c.set(where(c, mask, taken, self));
}
static Register maskedScatter("masked_scatter", importMaskedScatter);

/// self with alpha * source added to its entries along dim.
static LogicalResult importIndexAdd(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  ASSIGN_OR_FAIL(double alpha, c.number("alpha", 1));
  ASSIGN_OR_FAIL(Val source, castTo(c, c.tensor("source"), self.type));
  if (alpha != 1) {
    ASSIGN_OR_FAIL(
        source, multiply(c, {source, Val(Array::splat(self.type, {}, alpha))}));
  }
  return c.set(
      scatterEntries(c, self, c.tensor("index"), source, dim, Joining::Add));
}
static Register indexAdd("index_add", importIndexAdd);

static LogicalResult importIndexCopy(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  ASSIGN_OR_FAIL(Val source, castTo(c, c.tensor("source"), self.type));
  return c.set(scatterEntries(c, self, c.tensor("index"), source, dim,
                              Joining::Replace));
}
static Register indexCopy("index_copy", importIndexCopy);

/// self with `value`, a number, at its entries along dim.
static LogicalResult importIndexFill(Call &c) {
  const Val self = c.tensor("self"), index = c.tensor("index");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  ASSIGN_OR_FAIL(Val value, castTo(c, c.tensor("value"), self.type));
  if (self.dims.empty() || index.rank() > 1)
    return c.error("writes into shape " + str(self.dims));
  ASSIGN_OR_FAIL(Val places, viewed(c, index, {-1}));
  Dims dims(self.dims);
  dims[dim] = places.dims[0];
  ASSIGN_OR_FAIL(value, expand(c, value, dims));
  return c.set(scatterEntries(c, self, places, value, dim, Joining::Replace));
}
static Register indexFill("index_fill", importIndexFill);

/// `src` in place of a slice of self.
static LogicalResult importSliceScatter(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 0, self.rank()));
  ASSIGN_OR_FAIL(int64_t start, c.integer("start", 0));
  ASSIGN_OR_FAIL(int64_t step, c.integer("step", 1));
  c.ignore({"end"}); // The piece's size determines it.
  ASSIGN_OR_FAIL(Val piece, castTo(c, c.tensor("src"), self.type));
  if (self.dims.empty() || start == INT64_MIN)
    return c.error("writes into shape " + str(self.dims));
  int64_t size = self.dims[dim];
  start = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
  return c.set(replaceSlice(c, self, piece, dim, start, step));
}
static Register sliceScatter("slice_scatter", importSliceScatter);

static LogicalResult importSelectScatter(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  ASSIGN_OR_FAIL(int64_t at, c.integer("index", std::nullopt));
  if (self.dims.empty())
    return c.error("writes into a number");
  ASSIGN_OR_FAIL(at, c.axis(at, self.dims[dim]));
  ASSIGN_OR_FAIL(Val piece, castTo(c, c.tensor("src"), self.type));
  ASSIGN_OR_FAIL(piece, unsqueeze(c, piece, {dim}));
  return c.set(replaceSlice(c, self, piece, dim, at, 1));
}
static Register selectScatter("select_scatter", importSelectScatter);

//===----------------------------------------------------------------------===//
// One-hot
//===----------------------------------------------------------------------===//

static LogicalResult importOneHot(Call &c) {
  ASSIGN_OR_FAIL(int64_t classes, c.integer("num_classes", -1));
  if (classes < 1)
    return c.unsupported("as many classes as the data have");
  return c.set(
      oneHot(c, c.tensor("self"), classes, -1, ElementType::I64, 1, 0));
}
static Register oneHotOp("one_hot", importOneHot);
