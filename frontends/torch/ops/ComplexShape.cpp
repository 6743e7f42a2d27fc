// ComplexShape.cpp - complex numbers reshaped, split, joined and written.
//
// Most operators count dimensions from the front, or from an end that is passed
// to them: with the dimension of pairs hidden (Call::hidden), their importers
// for floats work.

#include "frontends/Checked.h"
#include "frontends/common/Importer.h"
#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Importer.h"
#include "frontends/torch/ops/Complex.h"
#include "frontends/torch/ops/Shape.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// Imports the call as for floats, with the dimension of pairs hidden.
static LogicalResult importCounted(Call &c) {
  for (const std::string &name : c.data.reads())
    if (!c.reader.isComplex(name) && isFloat(c.importer.lookup(name).type))
      return c.unsupported("complex numbers beside floats");
  c.hidden = 1;
  return importerOf(c.data.op())(c);
}
static RegisterComplex narrow("narrow", importCounted);
static RegisterComplex split("split", importCounted);
static RegisterComplex splitWithSizes("split_with_sizes", importCounted);
static RegisterComplex chunk("chunk", importCounted);
static RegisterComplex unbind("unbind", importCounted);
static RegisterComplex cat("cat", importCounted);
static RegisterComplex stack("stack", importCounted);
static RegisterComplex flatten("flatten", importCounted);
static RegisterComplex unflatten("unflatten", importCounted);
static RegisterComplex squeezeOp("squeeze", importCounted);
static RegisterComplex flip("flip", importCounted);
static RegisterComplex sum("sum", importCounted);
static RegisterComplex mean("mean", importCounted);
static RegisterComplex copy("copy", importCounted);

/// Zeros, also for uninitialized memory.
static LogicalResult importZeros(Call &c) {
  c.ignore({"dtype"}); // For both sizes, f32 is computed.
  const bool isLike = !c.has("size");
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Dims dims, c.integers("size", self.dims));
  // The result is complex, but the tensor whose shape it takes may be real.
  if (!isLike || !c.isComplex("self"))
    dims.push_back(2);
  if (!c.reader.isComplex(c.data.makes()[0]))
    dims.pop_back();
  if (!checkedNumElements(dims))
    return c.error("asks for the shape " + str(dims));
  return c.set(Val(Array::splat(ElementType::F32, dims, 0)));
}
static RegisterComplex zeros("zeros", importZeros);
static RegisterComplex zerosLike("zeros_like", importZeros);
static RegisterComplex newZeros("new_zeros", importZeros);
static RegisterComplex empty("empty", importZeros);
static RegisterComplex emptyLike("empty_like", importZeros);
static RegisterComplex newEmpty("new_empty", importZeros);

static LogicalResult importSelf(Call &c) { return c.set(c.tensor("self")); }
static RegisterComplex cloneOp("clone", importSelf);
static RegisterComplex contiguous("contiguous", importSelf);
static RegisterComplex resolveConjugate("resolve_conj", importSelf);

/// To another device, or to complex numbers of another size.
static LogicalResult importTo(Call &c) {
  auto isOne = [&](const std::string &made) {
    return c.reader.isComplex(made);
  };
  if (!c.isComplex("self") || !llvm::all_of(c.data.makes(), isOne))
    return c.unsupported("complex numbers");
  return c.set(c.tensor("self"));
}
static RegisterComplex to("to", importTo);
static RegisterComplex toCopy("_to_copy", importTo);

static LogicalResult importDetach(Call &c) {
  return c.set(c.importer.forward.detached(c.tensor("self"), c.loc));
}
static RegisterComplex detach("detach", importDetach);

/// The number of dimensions that PyTorch counts.
static int64_t rankOf(const Val &z) { return z.rank() - 1; }

static LogicalResult viewedAs(Call &c, const char *name) {
  ASSIGN_OR_FAIL(Dims dims, c.integers(name, std::nullopt));
  dims.push_back(2);
  return c.set(viewed(c, c.tensor("self"), dims));
}
static LogicalResult importView(Call &c) { return viewedAs(c, "size"); }
static RegisterComplex viewOp("view", importView);
static LogicalResult importReshape(Call &c) { return viewedAs(c, "shape"); }
static RegisterComplex reshapeOp("reshape", importReshape);

static LogicalResult importUnsqueeze(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, rankOf(self) + 1));
  return c.set(unsqueeze(c, self, {dim}));
}
static RegisterComplex unsqueezeOp("unsqueeze", importUnsqueeze);

static LogicalResult importTranspose(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t a, c.dim("dim0", std::nullopt, rankOf(self)));
  ASSIGN_OR_FAIL(int64_t b, c.dim("dim1", std::nullopt, rankOf(self)));
  Dims perm(nn::firstDims(self.rank()));
  std::swap(perm[a], perm[b]);
  return c.set(transpose(c, self, perm));
}
static RegisterComplex transposeOp("transpose", importTranspose);

static LogicalResult importPermute(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Dims perm, c.integers("dims", std::nullopt));
  for (int64_t &dim : perm) {
    ASSIGN_OR_FAIL(dim, c.axis(dim, rankOf(self)));
  }
  perm.push_back(rankOf(self));
  return c.set(transpose(c, self, perm));
}
static RegisterComplex permuteOp("permute", importPermute);

static LogicalResult importExpand(Call &c) {
  ASSIGN_OR_FAIL(Dims dims, c.integers("size", std::nullopt));
  dims.push_back(2);
  return c.set(expandedTo(c, c.tensor("self"), dims));
}
static RegisterComplex expandOp("expand", importExpand);

static LogicalResult importSlice(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 0, rankOf(self)));
  ASSIGN_OR_FAIL(int64_t start, c.integer("start", 0));
  ASSIGN_OR_FAIL(int64_t end, c.integer("end", INT64_MAX));
  ASSIGN_OR_FAIL(int64_t step, c.integer("step", 1));
  if (rankOf(self) < 1 || step < 1)
    return c.error("slices in steps of " + Twine(step));
  return c.set(slice(c, self, dim, start, end, step));
}
static RegisterComplex sliceOp("slice", importSlice);

static LogicalResult importSelect(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, rankOf(self)));
  ASSIGN_OR_FAIL(int64_t at, c.integer("index", std::nullopt));
  if (rankOf(self) < 1)
    return c.error("selects from a number");
  ASSIGN_OR_FAIL(at, c.axis(at, self.dims[dim]));
  ASSIGN_OR_FAIL(Val piece, strided(c, self, dim, at, 1, 1));
  return c.set(squeeze(c, piece, Dims{dim}));
}
static RegisterComplex selectOp("select", importSelect);

/// Only one tensor of indices, for the first dimension.
static LogicalResult importIndex(Call &c) {
  ASSIGN_OR_FAIL(SmallVector<Val> given, c.tensors("indices"));
  if (given.size() != 1 || given[0].isAbsent() ||
      given[0].type == ElementType::Bool || rankOf(c.tensor("self")) < 1)
    return c.unsupported("complex numbers by several indices");
  return c.set(gather(c, c.tensor("self"), given[0], 0));
}
static RegisterComplex indexOp("index", importIndex);
