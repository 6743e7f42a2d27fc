// Shape.cpp - ops that only move elements, except reduce: reshape, slice, pad,
// concat, transpose, broadcast, reduce, copy, iota.

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "runtime/kernels/Movement.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

//===----------------------------------------------------------------------===//
// nn.reduce
//===----------------------------------------------------------------------===//

/// True if `dims` ascend, are distinct and lie in [0, rank).
static bool areAscendingDims(ArrayRef<int64_t> dims, int64_t rank) {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim < 0 || dim >= rank || (i && dims[i - 1] >= dim))
      return false;
  return true;
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> loc,
                                         Adaptor op,
                                         SmallVectorImpl<Type> &results) {
  auto input = cast<RankedTensorType>(op.getInput().getType());
  if (!areAscendingDims(op.getDims(), input.getRank())) // C1
    return emitOptionalError(loc, "reduces over [", op.getDims(),
                             "], which aren't distinct, ascending dimensions "
                             "of ",
                             input);
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    if (!llvm::is_contained(op.getDims(), dim))
      shape.push_back(input.getDimSize(dim));
  results.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}

/// The dimensions of `type` outside `dims`, in order.
static SmallVector<int64_t> otherDims(RankedTensorType type,
                                      ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!llvm::is_contained(dims, dim))
      kept.push_back(dim);
  return kept;
}

int64_t ReduceOp::getFlops() { return tensorType(getInput()).getNumElements(); }

bool ReduceOp::isLinear() { return getKind() == ReduceKind::Sum; }

SmallVector<Value> ReduceOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                      ArrayRef<bool> wanted) {
  RankedTensorType type = tensorType(getInput());
  SmallVector<int64_t> kept = otherDims(type, getDims());
  Value dy = broadcastTo(b, getLoc(), grads[0], type, kept);
  if (getKind() == ReduceKind::Sum)
    return {dy};
  // The gradient of an extremum goes to the elements that equal it, in equal
  // parts, as in PyTorch's amax and amin.
  Value extremum = broadcastTo(b, getLoc(), getResult(), type, kept);
  Value hit = arith::CmpFOp::create(b, getLoc(), arith::CmpFPredicate::OEQ,
                                    getInput(), extremum);
  Value one = arith::UIToFPOp::create(b, getLoc(), type, hit);
  Value count = reduceSum(b, getLoc(), one, getDims());
  Value share =
      broadcastTo(b, getLoc(), div(b, getLoc(), grads[0], count), type, kept);
  return {mul(b, getLoc(), one, share)};
}

OpCuts ReduceOp::getCuts() {
  OpCuts cuts(*this, "it takes an extremum over the batch");
  RankedTensorType type = tensorType(getInput());
  for (auto [i, dim] : llvm::enumerate(otherDims(type, getDims())))
    cuts.add(dim, Rejoin::concat(i));
  if (getKind() == ReduceKind::Sum)
    for (int64_t dim : getDims())
      cuts.add(dim, Rejoin::sum());
  return cuts;
}

//===----------------------------------------------------------------------===//
// nn.broadcast
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  RankedTensorType input = tensorType(getInput()),
                   result = tensorType(getResult());
  if (int64_t(getDims().size()) != input.getRank() ||
      !areAscendingDims(getDims(), result.getRank())) // C1
    return emitOpError("maps the dimensions of ")
           << input << " to [" << getDims() << "] of " << result;
  if (input.getElementType() != result.getElementType()) // C2
    return emitOpError("changes the element type from ")
           << input.getElementType() << " to " << result.getElementType();
  for (auto [i, dim] : llvm::enumerate(getDims()))
    if (input.getDimSize(i) != result.getDimSize(dim)) // C2
      return emitOpError("stretches dimension ")
             << i << " from " << input.getDimSize(i) << " to "
             << result.getDimSize(dim);
  return success();
}

int64_t BroadcastOp::getFlops() { return 0; }

SmallVector<Value> BroadcastOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                         ArrayRef<bool> wanted) {
  return {reduceSum(b, getLoc(), grads[0],
                    otherDims(tensorType(getResult()), getDims()))};
}

OpCuts BroadcastOp::getCuts() {
  OpCuts cuts(*this, "it repeats the batch");
  for (auto [i, dim] : llvm::enumerate(getDims()))
    cuts.add(i, Rejoin::concat(dim));
  for (int64_t dim : otherDims(tensorType(getResult()), getDims()))
    cuts.add(OpCut::kWhole, Rejoin::concat(dim));
  return cuts;
}

//===----------------------------------------------------------------------===//
// nn.transpose
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  auto input = cast<RankedTensorType>(op.getInput().getType());
  SmallVector<int64_t> sorted(op.getPerm());
  llvm::sort(sorted);
  if (sorted != firstDims(input.getRank())) // C1
    return emitOptionalError(loc, "[", op.getPerm(),
                             "] is no permutation of the dimensions of ",
                             input);
  SmallVector<int64_t> shape;
  for (int64_t dim : op.getPerm())
    shape.push_back(input.getDimSize(dim));
  results.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}

static SmallVector<int64_t> inverse(ArrayRef<int64_t> perm) {
  SmallVector<int64_t> result(perm.size());
  for (auto [i, dim] : llvm::enumerate(perm))
    result[dim] = i;
  return result;
}

int64_t TransposeOp::getFlops() { return 0; }

SmallVector<Value> TransposeOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                         ArrayRef<bool> wanted) {
  return {TransposeOp::create(b, getLoc(), grads[0], inverse(getPerm()))};
}

OpCuts TransposeOp::getCuts() {
  OpCuts cuts(*this, "it moves a part of the batch");
  for (auto [to, from] : llvm::enumerate(getPerm()))
    cuts.add(from, Rejoin::concat(to));
  return cuts;
}

KernelCall TransposeOp::getKernel(ArrayRef<MemRefType> inputs,
                                  Backend backend) {
  return KernelCall::of<Transpose>(
      getContext(),
      {.type = runtimeType(getResult().getType()),
       .shape = tensorType(getInput()).getShape().vec(),
       .perm = getPerm().vec()},
      backend);
}

//===----------------------------------------------------------------------===//
// nn.reshape
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  RankedTensorType input = tensorType(getInput()),
                   result = tensorType(getResult());
  if (input.getElementType() != result.getElementType() ||
      input.getNumElements() != result.getNumElements()) // C1
    return emitOpError("reads the ")
           << input.getNumElements() << " elements of " << input << " as "
           << result;
  return success();
}

int64_t ReshapeOp::getFlops() { return 0; }
int64_t ReshapeOp::getBytesMoved() { return 0; }

SmallVector<Value> ReshapeOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                       ArrayRef<bool> wanted) {
  return {reshapeTo(b, getLoc(), grads[0], tensorType(getInput()).getShape())};
}

/// A piece of a dimension is its outer part. It lies in one piece for each
/// element of the dimensions before it. So the result is cut along the
/// dimension that begins at the same place.
OpCuts ReshapeOp::getCuts() {
  OpCuts cuts(*this,
              "it moves the batch inside a dimension that begins with another");
  ArrayRef<int64_t> from = tensorType(getInput()).getShape();
  ArrayRef<int64_t> to = tensorType(getResult()).getShape();
  int64_t before = 1;
  for (auto [dim, size] : llvm::enumerate(from)) {
    int64_t outer = 1;
    for (auto [toDim, toSize] : llvm::enumerate(to)) {
      if (outer == before)
        cuts.add(dim, Rejoin::concat(toDim));
      outer *= toSize;
    }
    before *= size;
  }
  return cuts;
}

MemRefType ReshapeOp::viewOf(MemRefType source) {
  auto shape = tensorType(getResult()).getShape();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(source.getStridesAndOffset(strides, offset)))
    return {};
  // Walks both shapes from the inside, matching groups of dimensions that hold
  // the same elements; inside a group of the source, memory must be contiguous.
  SmallVector<int64_t> result(shape.size());
  int64_t i = source.getRank() - 1, j = shape.size() - 1;
  while (j >= 0) {
    while (i >= 0 && source.getDimSize(i) == 1 && shape[j] != 1)
      --i;
    if (shape[j] == 1) {
      result[j] =
          j + 1 < int64_t(shape.size()) ? result[j + 1] * shape[j + 1] : 1;
      --j;
      continue;
    }
    if (i < 0)
      return {};
    int64_t stride = strides[i], have = source.getDimSize(i), need = 1;
    // Merges source dimensions until the group covers shape[j].
    while (have % shape[j] != 0 || have < shape[j]) {
      if (--i < 0)
        return {};
      if (source.getDimSize(i) == 1)
        continue;
      if (strides[i] != stride * have)
        return {};
      have *= source.getDimSize(i);
    }
    // Divides the group among result dimensions.
    while (j >= 0 && need < have) {
      if (have % (need * shape[j]) != 0) {
        // The group ends inside this dimension: adds more of the source.
        if (--i < 0)
          return {};
        if (source.getDimSize(i) == 1)
          continue;
        if (strides[i] != stride * have)
          return {};
        have *= source.getDimSize(i);
        continue;
      }
      result[j] = stride * need;
      need *= shape[j];
      --j;
    }
    --i;
  }
  return MemRefType::get(shape, source.getElementType(),
                         StridedLayoutAttr::get(getContext(), offset, result),
                         source.getMemorySpace());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput()))
    return splat.resizeSplat(cast<ShapedType>(getType()));
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput()))
    return dense.reshape(cast<ShapedType>(getType()));
  return {};
}

namespace {
/// reshape(reshape(x)) is one reshape.
struct MergeReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<ReshapeOp>();
    if (!inner)
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getInput());
    return success();
  }
};
} // namespace

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<MergeReshapes>(context);
}

//===----------------------------------------------------------------------===//
// nn.slice and nn.pad
//===----------------------------------------------------------------------===//

/// Checks that the box (`small`, from `begin` in steps) lies inside `large`.
static LogicalResult verifyBox(Operation *op, RankedTensorType small,
                               RankedTensorType large, ArrayRef<int64_t> begin,
                               ArrayRef<int64_t> steps) {
  int64_t rank = large.getRank();
  if (small.getRank() != rank || int64_t(begin.size()) != rank ||
      int64_t(steps.size()) != rank ||
      small.getElementType() != large.getElementType() ||
      llvm::any_of(begin, [](int64_t b) { return b < 0; }) ||
      llvm::any_of(steps, [](int64_t s) { return s <= 0; })) // C1
    return op->emitOpError("wants an offset and a positive step for each "
                           "dimension of ")
           << large << ", and has [" << begin << "] and [" << steps << "] for "
           << small;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t size = small.getDimSize(dim);
    int64_t last = begin[dim] + (size - 1) * steps[dim];
    if (size > 0 && last >= large.getDimSize(dim)) // C2
      return op->emitOpError("reaches element ")
             << last << " of dimension " << dim << ", which has "
             << large.getDimSize(dim);
  }
  return success();
}

LogicalResult SliceOp::verify() {
  return verifyBox(*this, tensorType(getResult()), tensorType(getInput()),
                   getOffsets(), getSteps());
}

int64_t SliceOp::getFlops() { return 0; }
int64_t SliceOp::getBytesMoved() { return 0; }

SmallVector<Value> SliceOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                     ArrayRef<bool> wanted) {
  return {PadOp::create(b, getLoc(), getInput().getType(), grads[0],
                        getOffsets(), getSteps())};
}

/// A dimension of a box is cut if the box has all of it.
static OpCuts boxCuts(Operation *op) {
  OpCuts cuts(op, "it takes a part of the batch");
  RankedTensorType from = tensorType(op->getOperand(0)),
                   to = tensorType(op->getResult(0));
  for (int64_t dim = 0; dim < from.getRank(); ++dim)
    if (from.getDimSize(dim) == to.getDimSize(dim))
      cuts.add(dim, Rejoin::concat(dim));
  return cuts;
}

OpCuts SliceOp::getCuts() { return boxCuts(*this); }

MemRefType SliceOp::viewOf(MemRefType source) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(source.getStridesAndOffset(strides, offset)))
    return {};
  for (int64_t dim = 0; dim < source.getRank(); ++dim) {
    offset += getOffsets()[dim] * strides[dim];
    strides[dim] *= getSteps()[dim];
  }
  return MemRefType::get(tensorType(getResult()).getShape(),
                         source.getElementType(),
                         StridedLayoutAttr::get(getContext(), offset, strides),
                         source.getMemorySpace());
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  return getInput().getType() == getType() ? getInput() : OpFoldResult();
}

LogicalResult PadOp::verify() {
  return verifyBox(*this, tensorType(getInput()), tensorType(getResult()),
                   getLow(), getSteps());
}

int64_t PadOp::getFlops() { return 0; }

SmallVector<Value> PadOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                   ArrayRef<bool> wanted) {
  return {SliceOp::create(b, getLoc(), getInput().getType(), grads[0], getLow(),
                          getSteps())};
}

/// The operands of a tree of additions whose inner sums have no other use.
static void collectAddends(Value sum, SmallVectorImpl<Value> &addends) {
  auto add = sum.getDefiningOp<arith::AddFOp>();
  if (add && sum.hasOneUse()) {
    collectAddends(add.getLhs(), addends);
    collectAddends(add.getRhs(), addends);
    return;
  }
  addends.push_back(sum);
}

namespace {
/// A sum of pads that fill a tensor side by side is a concatenation: the
/// gradient of a tensor all parts of which were sliced. Other addends stay.
struct SumOfPadsIsConcat : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    SmallVector<Value> addends;
    if (!type)
      return failure();
    collectAddends(op.getLhs(), addends);
    collectAddends(op.getRhs(), addends);
    SmallVector<PadOp> pads;
    SmallVector<Value> others;
    for (Value addend : addends) {
      if (auto pad = addend.getDefiningOp<PadOp>())
        pads.push_back(pad);
      else
        others.push_back(addend);
    }
    if (pads.size() < 2)
      return failure();
    std::optional<int64_t> dim = commonDim(pads, type);
    if (!dim)
      return failure();
    llvm::sort(pads, [&](PadOp a, PadOp b) {
      return a.getLow()[*dim] < b.getLow()[*dim];
    });
    int64_t at = 0;
    SmallVector<Value> inputs;
    for (PadOp pad : pads) {
      if (pad.getLow()[*dim] != at)
        return failure();
      inputs.push_back(pad.getInput());
      at += tensorType(pad.getInput()).getDimSize(*dim);
    }
    if (at != type.getDimSize(*dim))
      return failure();
    Value sum = ConcatOp::create(rewriter, op.getLoc(), inputs, *dim);
    for (Value other : others)
      sum = add(rewriter, op.getLoc(), sum, other);
    rewriter.replaceOp(op, sum);
    return success();
  }

private:
  /// The only dimension along which the pads add elements.
  static std::optional<int64_t> commonDim(ArrayRef<PadOp> pads,
                                          RankedTensorType type) {
    std::optional<int64_t> found;
    for (PadOp pad : llvm::to_vector(pads)) // Accessors aren't const.
      for (int64_t dim = 0; dim < type.getRank(); ++dim) {
        int64_t size = tensorType(pad.getInput()).getDimSize(dim);
        if (pad.getSteps()[dim] != 1)
          return std::nullopt;
        if (size == type.getDimSize(dim))
          continue;
        if (found && *found != dim)
          return std::nullopt;
        found = dim;
      }
    return found;
  }
};
} // namespace

void PadOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                        MLIRContext *context) {
  patterns.add<SumOfPadsIsConcat>(context);
}

OpCuts PadOp::getCuts() { return boxCuts(*this); }

KernelCall PadOp::getKernel(ArrayRef<MemRefType> inputs, Backend backend) {
  return KernelCall::of<Pad>(
      getContext(),
      {.type = runtimeType(getResult().getType()),
       .shape = tensorType(getInput()).getShape().vec(),
       .outShape = tensorType(getResult()).getShape().vec(),
       .low = getLow().vec(),
       .step = getSteps().vec()},
      backend);
}

//===----------------------------------------------------------------------===//
// nn.concat
//===----------------------------------------------------------------------===//

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> loc,
                                         Adaptor op,
                                         SmallVectorImpl<Type> &results) {
  if (op.getInputs().empty()) // C1
    return emitOptionalError(loc, "puts no operand beside none");
  auto first = cast<RankedTensorType>(op.getInputs()[0].getType());
  int64_t dim = op.getDim();
  if (dim < 0 || dim >= first.getRank()) // C1
    return emitOptionalError(loc, "dimension ", dim, " is none of ", first);
  SmallVector<int64_t> shape(first.getShape());
  shape[dim] = 0;
  for (Value input : op.getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    bool fits = type.getRank() == first.getRank() &&
                type.getElementType() == first.getElementType();
    for (int64_t i = 0; fits && i < type.getRank(); ++i)
      fits = i == dim || type.getDimSize(i) == first.getDimSize(i);
    if (!fits) // C1
      return emitOptionalError(loc, type, " doesn't fit beside ", first,
                               " along dimension ", dim);
    shape[dim] += type.getDimSize(dim);
  }
  results.push_back(RankedTensorType::get(shape, first.getElementType()));
  return success();
}

int64_t ConcatOp::getFlops() { return 0; }

SmallVector<Value> ConcatOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                      ArrayRef<bool> wanted) {
  SmallVector<Value> result(getNumOperands());
  SmallVector<int64_t> offsets(tensorType(getResult()).getRank(), 0);
  SmallVector<int64_t> steps(offsets.size(), 1);
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    if (wanted[i])
      result[i] = SliceOp::create(b, getLoc(), input.getType(), grads[0],
                                  offsets, steps);
    offsets[getDim()] += tensorType(input).getDimSize(getDim());
  }
  return result;
}

OpCuts ConcatOp::getCuts() {
  OpCuts cuts(*this,
              "it concatenates along the batch, or its operands hold the "
              "batch in different dimensions");
  for (int64_t dim = 0; dim < tensorType(getResult()).getRank(); ++dim)
    if (dim != int64_t(getDim()))
      cuts.add(SmallVector<int64_t>(getNumOperands(), dim),
               Rejoin::concat(dim));
  return cuts;
}

KernelCall ConcatOp::getKernel(ArrayRef<MemRefType> inputs, Backend backend) {
  RankedTensorType out = tensorType(getResult());
  int64_t dim = getDim();
  std::vector<int64_t> inner;
  for (Value input : getInputs())
    inner.push_back(
        llvm::product_of(tensorType(input).getShape().drop_front(dim)));
  return KernelCall::of<Concat>(
      getContext(),
      {.type = runtimeType(out),
       .outer = llvm::product_of(out.getShape().take_front(dim)),
       .inner = std::move(inner)},
      backend);
}

//===----------------------------------------------------------------------===//
// nn.copy
//===----------------------------------------------------------------------===//

LogicalResult CopyOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc, Adaptor op,
                                       SmallVectorImpl<Type> &results) {
  results.push_back(op.getInput().getType());
  return success();
}

int64_t CopyOp::getFlops() { return 0; }

SmallVector<Value> CopyOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                    ArrayRef<bool> wanted) {
  return {grads[0]};
}

OpCuts CopyOp::getCuts() { return pointwiseCuts(*this); }

bool CopyOp::acceptsStrides(unsigned index) { return true; }

KernelCall CopyOp::getKernel(ArrayRef<MemRefType> inputs, Backend backend) {
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)inputs[0].getStridesAndOffset(strides, offset);
  RankedTensorType out = tensorType(getResult());
  std::vector<int64_t> dense(out.getRank());
  int64_t stride = 1;
  for (int64_t dim = out.getRank() - 1; dim >= 0; --dim) {
    dense[dim] = stride;
    stride *= out.getDimSize(dim);
  }
  return KernelCall::of<Copy>(
      getContext(),
      {.type = runtimeType(out),
       .shape = out.getShape().vec(),
       .inStrides = {strides.begin(), strides.end()},
       .outStrides = std::move(dense),
       .inOffset = 0, // The operand's pointer already includes its offset.
       .outOffset = 0},
      backend);
}

//===----------------------------------------------------------------------===//
// nn.detach
//===----------------------------------------------------------------------===//

LogicalResult DetachOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> loc,
                                         Adaptor op,
                                         SmallVectorImpl<Type> &results) {
  results.push_back(op.getInput().getType());
  return success();
}

int64_t DetachOp::getFlops() { return 0; }

OpCuts DetachOp::getCuts() { return pointwiseCuts(*this); }

//===----------------------------------------------------------------------===//
// nn.iota
//===----------------------------------------------------------------------===//

LogicalResult IotaOp::verify() {
  if (int64_t(getDim()) < 0 ||
      int64_t(getDim()) >= tensorType(getResult()).getRank()) // C1
    return emitOpError("counts along dimension ")
           << getDim() << " of " << getResult().getType();
  return success();
}

int64_t IotaOp::getFlops() { return 0; }

/// Along `dim` a piece would begin at another number.
OpCuts IotaOp::getCuts() {
  OpCuts cuts(*this, "it has no operand");
  for (int64_t dim = 0; dim < tensorType(getResult()).getRank(); ++dim)
    if (dim != int64_t(getDim()))
      cuts.add(ArrayRef<int64_t>(), Rejoin::concat(dim));
  return cuts;
}
