// Rotary.cpp - nn.rotary_embedding.

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "runtime/kernels/RotaryEmbedding.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// True if each row of `type` has one of `table`, in the order of both, where
/// rows of the table may repeat.
static bool hasRowsOf(RankedTensorType table, RankedTensorType type) {
  if (table.getRank() != type.getRank())
    return false;
  for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim)
    if (table.getDimSize(dim) != 1 &&
        table.getDimSize(dim) != type.getDimSize(dim))
      return false;
  return true;
}

LogicalResult
RotaryEmbeddingOp::inferReturnTypes(MLIRContext *context,
                                    std::optional<Location> loc, Adaptor op,
                                    SmallVectorImpl<Type> &results) {
  RankedTensorType type = tensorType(op.getInput()),
                   table = tensorType(op.getCos());
  if (type.getRank() < 1 || type.getRank() > 4) // C1
    return emitOptionalError(loc, "rotates the rows of ", type);
  if (op.getSin().getType() != table || !hasRowsOf(table, type) ||
      table.getElementType() != accumulationType(type.getElementType())) // C2
    return emitOptionalError(loc, "rotates ", type, " by cosines of type ",
                             table, " and sines of type ",
                             op.getSin().getType());
  int64_t rotated = table.getShape().back();
  if (rotated % 2 || rotated > type.getShape().back()) // C3
    return emitOptionalError(loc, "rotates ", rotated, " columns of ", type);
  const int64_t heads = op.getHeads(), dim = type.getRank() - 2;
  if (heads < 0 || (heads > 0 && (dim < 0 || heads > type.getDimSize(dim) ||
                                  table.getDimSize(dim) != 1))) // C4
    return emitOptionalError(loc, "rotates ", heads, " heads of ", type,
                             " by a table of type ", table);
  results.push_back(type);
  return success();
}

int64_t RotaryEmbeddingOp::getRotatedElements() {
  SmallVector<int64_t> shape(tensorType(getInput()).getShape());
  shape.back() = tensorType(getCos()).getShape().back();
  if (getHeads())
    shape[shape.size() - 2] = getHeads();
  return llvm::product_of(shape);
}

int64_t RotaryEmbeddingOp::getFlops() { return 3 * getRotatedElements(); }

/// True if only `op` reads the bytes of its operand, which the result then
/// takes over.
static bool isInPlace(RotaryEmbeddingOp op) {
  Value value = op.getInput();
  while (value.hasOneUse()) {
    Operation *maker = value.getDefiningOp();
    if (!maker)
      return false;
    if (!isa<ReshapeOp>(maker))
      return !isa<ViewOpInterface>(maker);
    value = maker->getOperand(0);
  }
  return false;
}

int64_t RotaryEmbeddingOp::getBytesMoved() {
  const int64_t bytes = sumOfTensorBytes(*this);
  if (!isInPlace(*this))
    return bytes;
  RankedTensorType type = tensorType(getInput());
  return bytes - 2 * (type.getNumElements() - getRotatedElements()) *
                     (type.getElementTypeBitWidth() / 8);
}

/// The sum of `x`, which has the rows of an input, over the rows that share one
/// of `table`.
static Value sumToTable(OpBuilder &b, Location loc, Value x,
                        RankedTensorType table) {
  SmallVector<int64_t> shared;
  for (int64_t dim = 0; dim + 1 < table.getRank(); ++dim)
    if (table.getDimSize(dim) == 1)
      shared.push_back(dim);
  return reshapeTo(b, loc, reduceSum(b, loc, x, shared), table.getShape());
}

/// The part of `x` that is rotated, in the element type of `table`: its first
/// columns, as many as `table` has, of the first `heads`, if that is positive.
static Value rotatedPart(OpBuilder &b, Location loc, Value x,
                         RankedTensorType table, int64_t heads) {
  RankedTensorType type = tensorType(x);
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = table.getShape().back();
  if (heads)
    shape[shape.size() - 2] = heads;
  if (ArrayRef(shape) != type.getShape())
    x = SliceOp::create(b, loc, type.clone(shape), x,
                        SmallVector<int64_t>(shape.size(), 0),
                        SmallVector<int64_t>(shape.size(), 1));
  return convertTo(b, loc, x, table.getElementType());
}

SmallVector<Value> RotaryEmbeddingOp::buildVjp(OpBuilder &b,
                                               ArrayRef<Value> grads,
                                               ArrayRef<bool> wanted) {
  Location loc = getLoc();
  SmallVector<Value> result(3);
  Value dy = grads[0];
  if (wanted[0])
    result[0] = RotaryEmbeddingOp::create(b, loc, dy, getCos(), getSin(),
                                          getInterleaved(), !getTransposed(),
                                          getHeads());
  if (!wanted[1] && !wanted[2])
    return result;
  RankedTensorType table = tensorType(getCos());
  Value x = rotatedPart(b, loc, getInput(), table, getHeads());
  dy = rotatedPart(b, loc, dy, table, getHeads());
  if (wanted[1])
    result[1] = sumToTable(b, loc, mul(b, loc, dy, x), table);
  if (wanted[2]) {
    // A quarter turn puts x[b] in the place of x[a], with the sign of the rule.
    // The adjoint multiplies sin[a] by x[a] for y[b], so dy is turned there.
    Value &turned = getTransposed() ? dy : x;
    Value zeros = splat(b, loc, table, 0), ones = splat(b, loc, table, 1);
    turned = RotaryEmbeddingOp::create(b, loc, turned, zeros, ones,
                                       getInterleaved(), /*transposed=*/false);
    result[2] = sumToTable(b, loc, mul(b, loc, dy, x), table);
  }
  return result;
}

OpCuts RotaryEmbeddingOp::getCuts() {
  OpCuts cuts(*this, "it rotates a part or pairs of the batch, or its angles "
                     "depend on the batch otherwise than its rows");
  const int64_t rank = tensorType(getInput()).getRank();
  // Rows from `heads` on aren't rotated.
  const int64_t rows = getHeads() ? rank - 2 : rank - 1;
  for (int64_t dim = 0; dim < rows; ++dim) {
    const bool areShared = tensorType(getCos()).getDimSize(dim) == 1;
    const int64_t angles = areShared ? OpCut::kWhole : dim;
    cuts.add({dim, angles, angles}, Rejoin::concat(dim));
  }
  return cuts;
}

bool RotaryEmbeddingOp::acceptsStrides(unsigned index) { return index == 0; }

SmallVector<std::pair<unsigned, unsigned>> RotaryEmbeddingOp::getOverwrites() {
  return {{0, 0}};
}

SmallVector<unsigned> RotaryEmbeddingOp::getActivations() { return {0}; }

KernelCall RotaryEmbeddingOp::getKernel(ArrayRef<MemRefType> inputs,
                                        Backend backend) {
  RankedTensorType type = tensorType(getInput()), table = tensorType(getCos());
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)inputs[0].getStridesAndOffset(strides, offset);
  // The rows' dimensions, the innermost one last; outer ones may be missing.
  RotaryDims rows{1, 1, 1}, steps{0, 0, 0}, tableSteps{0, 0, 0};
  int64_t RotaryDims::*const places[] = {
      &RotaryDims::inner, &RotaryDims::middle, &RotaryDims::outer};
  int64_t tableStride = table.getShape().back();
  for (int64_t dim = type.getRank() - 2, i = 0; dim >= 0; --dim, ++i) {
    rows.*places[i] = type.getDimSize(dim);
    steps.*places[i] = strides[dim];
    tableSteps.*places[i] = table.getDimSize(dim) == 1 ? 0 : tableStride;
    tableStride *= table.getDimSize(dim);
  }
  return KernelCall::of<RotaryEmbedding>(
      getContext(),
      {.type = runtimeType(type),
       .rows = rows,
       .columns = type.getShape().back(),
       .rotated = table.getShape().back(),
       .heads = getHeads() ? int64_t(getHeads()) : rows.inner,
       .strides = steps,
       .tableStrides = tableSteps,
       .interleaved = getInterleaved(),
       .transposed = getTransposed()},
      backend);
}
