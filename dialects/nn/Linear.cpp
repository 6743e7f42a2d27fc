// Linear.cpp - nn.matmul, nn.embedding and its gradient: products with
// matrices, explicit or one-hot.

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"
#include "dialects/nn/Scales.h"

#include "runtime/kernels/Embedding.h"
#include "runtime/kernels/Matmul.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

//===----------------------------------------------------------------------===//
// nn.matmul
//===----------------------------------------------------------------------===//

/// The dimensions of a factor as the product reads it: {rows, columns}.
static std::pair<int64_t, int64_t> matrixDims(ShapedType type,
                                              bool transposed) {
  int64_t rows = type.getShape().drop_back().back();
  int64_t cols = type.getShape().back();
  return transposed ? std::pair(cols, rows) : std::pair(rows, cols);
}

/// The shape of the product of valid operands.
static SmallVector<int64_t> productShape(Value lhs, Value rhs,
                                         bool transposeLhs, bool transposeRhs) {
  ShapedType left = tensorType(lhs);
  SmallVector<int64_t> shape(left.getShape().drop_back(2));
  shape.push_back(matrixDims(left, transposeLhs).first);
  shape.push_back(matrixDims(tensorType(rhs), transposeRhs).second);
  return shape;
}

void MatmulOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                     Value rhs, bool transposeLhs, bool transposeRhs,
                     Type resultElement) {
  if (!resultElement)
    resultElement = tensorType(lhs).getElementType();
  auto result = RankedTensorType::get(
      productShape(lhs, rhs, transposeLhs, transposeRhs), resultElement);
  build(builder, state, result, lhs, rhs, Value(), Value(), Value(), Value(),
        transposeLhs, transposeRhs, /*tf32=*/false);
}

void MatmulOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                     Value rhs, Value bias, Value acc, bool transposeLhs,
                     bool transposeRhs) {
  Value like = bias ? bias : acc ? acc : lhs;
  auto result =
      RankedTensorType::get(productShape(lhs, rhs, transposeLhs, transposeRhs),
                            tensorType(like).getElementType());
  build(builder, state, result, lhs, rhs, bias, acc, Value(), Value(),
        transposeLhs, transposeRhs, /*tf32=*/false);
}

/// Whether f32 elements of `type` are rounded to the 16-bit elements of
/// `other`.
static bool isReadAs(RankedTensorType type, RankedTensorType other) {
  return type.getElementType().isF32() && other.getElementTypeBitWidth() == 16;
}

/// The element type of the narrower factor.
static Type narrowerOf(Value x, Value w) {
  RankedTensorType left = tensorType(x), right = tensorType(w);
  bool isLeft = left.getElementTypeBitWidth() <= right.getElementTypeBitWidth();
  return (isLeft ? left : right).getElementType();
}

LogicalResult MatmulOp::verify() {
  RankedTensorType lhs = tensorType(getLhs()), rhs = tensorType(getRhs());
  RankedTensorType result = tensorType(getResult());
  if (lhs.getRank() < 2 || lhs.getRank() != rhs.getRank()) // C1
    return emitOpError("operands must share a rank of at least 2, but are ")
           << lhs << " and " << rhs;
  bool bothOf8Bits =
      lhs.getElementTypeBitWidth() == 8 && rhs.getElementTypeBitWidth() == 8;
  if (lhs.getElementType() != rhs.getElementType() && !bothOf8Bits &&
      !isReadAs(lhs, rhs) && !isReadAs(rhs, lhs)) // C1
    return emitOpError("element types differ: ")
           << lhs.getElementType() << " and " << rhs.getElementType();
  if (getTf32() &&
      !(lhs.getElementType().isF32() && rhs.getElementType().isF32())) // C1
    return emitOpError("rounds ") << lhs.getElementType() << " and "
                                  << rhs.getElementType() << " to tf32";
  if (lhs.getShape().drop_back(2) != rhs.getShape().drop_back(2)) // C2
    return emitOpError("batch dimensions differ: ") << lhs << " and " << rhs;
  int64_t k = matrixDims(lhs, getTransposeLhs()).second;
  auto [kRhs, n] = matrixDims(rhs, getTransposeRhs());
  if (k != kRhs) // C3
    return emitOpError("contracts ")
           << k << " columns of the left operand with " << kRhs
           << " rows of the right one";
  SmallVector<int64_t> shape =
      productShape(getLhs(), getRhs(), getTransposeLhs(), getTransposeRhs());
  if (result.getShape() != ArrayRef<int64_t>(shape)) // C6
    return emitOpError("has a result of type ")
           << result << " for " << lhs << " and " << rhs;
  if (Value bias = getBias()) // C4
    if (bias.getType() != RankedTensorType::get({n}, result.getElementType()))
      return emitOpError("the bias is ")
             << bias.getType() << " where a row of the result has " << n
             << " elements of " << result.getElementType();
  if (Value acc = getAcc()) // C5
    if (acc.getType() != result)
      return emitOpError("accumulates a result of type ")
             << result << " onto " << acc.getType();
  for (auto [factor, scale] :
       {std::pair(getLhs(), getLhsScale()), {getRhs(), getRhsScale()}}) // C7
    if (scale &&
        (!bothOf8Bits || !scaleBlockOf(tensorType(factor), tensorType(scale))))
      return emitOpError("multiplies ")
             << factor.getType() << " by scales of type " << scale.getType();
  if (hasPackedScales()) { // C8
    RankedTensorType left = tensorType(getLhsScale()),
                     right = tensorType(getRhsScale());
    if (getTransposeLhs() || !getTransposeRhs() || !arePacked(left) ||
        !arePacked(right) ||
        (scaleBlockOf(lhs, left)->rows > 1 &&
         scaleBlockOf(rhs, right)->rows > 1))
      return emitOpError("has no product of packed scales of types ")
             << left << " and " << right;
  }
  return success();
}

bool MatmulOp::hasPackedScales() {
  return getLhsScale() && (arePacked(tensorType(getLhsScale())) ||
                           arePacked(tensorType(getRhsScale())));
}

int64_t MatmulOp::getFlops() {
  auto [m, k] = matrixDims(tensorType(getLhs()), getTransposeLhs());
  return 2 * k * tensorType(getResult()).getNumElements();
}

SmallVector<Value> MatmulOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                      ArrayRef<bool> wanted) {
  Value dy = grads[0], x = getLhs(), w = getRhs();
  bool tx = getTransposeLhs(), tw = getTransposeRhs();
  // y = x·w: dx = dy·wᵀ and dw = xᵀ·dy; a transposed operand swaps the order.
  auto matmul = [&](Value l, Value r, bool tl, bool tr, Value of) -> Value {
    return MatmulOp::create(b, getLoc(), l, r, tl, tr,
                            tensorType(of).getElementType());
  };
  // dy is multiplied in the same type as the factors.
  auto dyLike = [&](Value factor) {
    Type type = tensorType(factor).getElementType();
    return convertTo(b, getLoc(), dy, type.isF32() ? narrowerOf(x, w) : type);
  };
  SmallVector<Value> result(getNumOperands());
  if (wanted[0])
    result[0] = tx ? matmul(w, dyLike(w), tw, true, x)
                   : matmul(dyLike(w), w, false, !tw, x);
  if (wanted[1])
    result[1] = tw ? matmul(dyLike(x), x, true, tx, w)
                   : matmul(x, dyLike(x), !tx, false, w);
  unsigned next = 2;
  if (getBias()) {
    if (wanted[next])
      result[next] =
          reduceSum(b, getLoc(), dy, firstDims(tensorType(dy).getRank() - 1));
    ++next;
  }
  if (getAcc())
    result[next] = dy;
  return result;
}

OpCuts MatmulOp::getCuts() {
  OpCuts cuts(*this,
              "its operands hold the batch in dimensions that don't meet");
  const int64_t column = tensorType(getLhs()).getRank() - 1, row = column - 1;
  auto add = [&](int64_t lhs, int64_t rhs, int64_t bias, int64_t acc,
                 Rejoin result) {
    SmallVector<int64_t> operands{lhs, rhs};
    if (getBias())
      operands.push_back(bias);
    if (getAcc())
      operands.push_back(acc);
    if (getLhsScale()) {
      std::optional<int64_t> left = scaleCutBy(tensorType(getLhs()),
                                               tensorType(getLhsScale()), lhs),
                             right = scaleCutBy(tensorType(getRhs()),
                                                tensorType(getRhsScale()), rhs);
      if (!left || !right)
        return;
      operands.append({*left, *right});
    }
    cuts.add(operands, result);
  };
  constexpr int64_t whole = OpCut::kWhole, first = OpCut::kOnFirst;
  for (int64_t dim = 0; dim < row; ++dim)
    add(dim, dim, whole, dim, Rejoin::concat(dim));
  add(getTransposeLhs() ? column : row, whole, whole, row, Rejoin::concat(row));
  add(whole, getTransposeRhs() ? row : column, 0, column,
      Rejoin::concat(column));
  add(getTransposeLhs() ? row : column, getTransposeRhs() ? column : row, first,
      first, Rejoin::sum());
  return cuts;
}

SmallVector<unsigned> MatmulOp::getFactors() { return {0, 1}; }
SmallVector<unsigned> MatmulOp::getRoundedResults() { return {0}; }
bool MatmulOp::mayKeepSums() { return true; }
bool MatmulOp::takesTF32() { return true; }
bool MatmulOp::roundsAsRead(unsigned factor, bool onCard) { return !onCard; }
SmallVector<unsigned> MatmulOp::getAddends() {
  return llvm::to_vector(
      llvm::seq<unsigned>(2, 2 + bool(getBias()) + bool(getAcc())));
}
bool MatmulOp::takesCodes(bool onCard, bool inBlocks) {
  auto [m, k] = matrixDims(tensorType(getLhs()), getTransposeLhs());
  int64_t n = tensorType(getResult()).getShape().back();
  if (!onCard)
    return true;
  if (inBlocks)
    return tensorType(getLhs()).getRank() == 2 &&
           Matmul::fitsBlocks(m, n, k, DType::BF16);
  return Matmul::fitsCodes(n, k, DType::BF16);
}
unsigned MatmulOp::getSummedDim(unsigned factor) {
  bool isLast = factor == 0 ? !getTransposeLhs() : getTransposeRhs();
  return tensorType(getLhs()).getRank() - (isLast ? 1 : 2);
}
void MatmulOp::setCodes(ValueRange codes, ValueRange scales) {
  getLhsMutable().assign(codes[0]);
  getRhsMutable().assign(codes[1]);
  getLhsScaleMutable().assign(scales[0]);
  getRhsScaleMutable().assign(scales[1]);
}

int64_t MatmulOp::getAccumulator() {
  return getAcc() ? 2 + int64_t(bool(getBias())) : -1;
}

KernelCall MatmulOp::getKernel(ArrayRef<MemRefType> inputs, Backend backend) {
  auto [m, k] = matrixDims(tensorType(getLhs()), getTransposeLhs());
  RankedTensorType out = tensorType(getResult());
  int64_t batch = llvm::product_of(out.getShape().drop_back(2));
  Matmul::Params p{.lhs = runtimeType(getLhs().getType()),
                   .rhs = runtimeType(getRhs().getType()),
                   .out = runtimeType(out),
                   .batch = batch,
                   .m = m,
                   .n = out.getShape().back(),
                   .k = k,
                   .transposeLhs = getTransposeLhs(),
                   .transposeRhs = getTransposeRhs(),
                   .bias = bool(getBias()),
                   .tf32 = getTf32()};
  if (getLhsScale()) {
    ScaleBlock lhs =
        *scaleBlockOf(tensorType(getLhs()), tensorType(getLhsScale()));
    ScaleBlock rhs =
        *scaleBlockOf(tensorType(getRhs()), tensorType(getRhsScale()));
    p.scaled = true;
    p.lhsBlockRows = lhs.rows;
    p.lhsBlockColumns = lhs.columns;
    p.rhsBlockRows = rhs.rows;
    p.rhsBlockColumns = rhs.columns;
    p.packed = hasPackedScales();
  }
  auto call = KernelCall::of<Matmul>(getContext(), p, backend);
  call.products = p.tf32 ? DType::TF32 : p.lhs == DType::F32 ? p.rhs : p.lhs;
  call.ins = {0, 1, getBias() ? 2 : -1};
  if (p.scaled) {
    int64_t scales = getNumOperands() - 2;
    call.ins.append({scales, scales + 1});
  }
  return call;
}

/// The call of `Kernel`, which reads rows of `table` or adds to them.
template <typename Kernel>
static KernelCall lookupKernel(RankedTensorType table, RankedTensorType ids,
                               Backend backend) {
  return KernelCall::of<Kernel>(
      table.getContext(),
      {.type = runtimeType(table),
       .indexType = runtimeType(ids),
       .vocabulary = table.getDimSize(0),
       .channels = llvm::product_of(table.getShape().drop_front()),
       .rows = ids.getNumElements()},
      backend);
}

//===----------------------------------------------------------------------===//
// nn.embedding
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  auto table = cast<RankedTensorType>(op.getTable().getType());
  auto ids = cast<RankedTensorType>(op.getIds().getType());
  if (table.getRank() < 1) // C1
    return emitOptionalError(loc, "the table is a scalar");
  SmallVector<int64_t> shape(ids.getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  results.push_back(RankedTensorType::get(shape, table.getElementType()));
  return success();
}

int64_t EmbeddingOp::getFlops() { return 0; }

int64_t EmbeddingOp::getBytesMoved() {
  return 2 * sizeInBytes(getResult().getType()) +
         sizeInBytes(getIds().getType());
}

SmallVector<Value> EmbeddingOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                         ArrayRef<bool> wanted) {
  if (!wanted[0])
    return {Value(), Value()};
  // Rows are added up in f32 at least.
  RankedTensorType table = tensorType(getTable());
  Type sums = accumulationType(table.getElementType());
  Value grad =
      EmbeddingGradOp::create(b, getLoc(), table.clone(sums), getIds(),
                              convertTo(b, getLoc(), grads[0], sums), Value());
  return {convertTo(b, getLoc(), grad, table.getElementType()), Value()};
}

/// The rows of a table can't be cut: an id of another piece's row is an error.
OpCuts EmbeddingOp::getCuts() {
  OpCuts cuts(*this, "its table depends on the batch");
  const int64_t rank = tensorType(getIds()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    cuts.add({OpCut::kWhole, dim}, Rejoin::concat(dim));
  for (int64_t dim = 1; dim < tensorType(getTable()).getRank(); ++dim)
    cuts.add({dim, OpCut::kWhole}, Rejoin::concat(rank + dim - 1));
  return cuts;
}

KernelCall EmbeddingOp::getKernel(ArrayRef<MemRefType> inputs,
                                  Backend backend) {
  return lookupKernel<Embedding>(tensorType(getTable()), tensorType(getIds()),
                                 backend);
}

//===----------------------------------------------------------------------===//
// nn.embedding_grad
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingGradOp::verify() {
  RankedTensorType result = tensorType(getResult());
  SmallVector<int64_t> shape(tensorType(getIds()).getShape());
  if (result.getRank() < 1)
    return emitOpError("makes a scalar table"); // C1
  llvm::append_range(shape, result.getShape().drop_front());
  auto expected = RankedTensorType::get(shape, result.getElementType());
  if (getGrad().getType() != expected) // C1
    return emitOpError("takes a gradient of type ")
           << getGrad().getType() << " where " << expected << " is due";
  if (getAcc() && getAcc().getType() != result) // C2
    return emitOpError("accumulates a result of type ")
           << result << " onto " << getAcc().getType();
  return success();
}

int64_t EmbeddingGradOp::getFlops() {
  return tensorType(getGrad()).getNumElements();
}

int64_t EmbeddingGradOp::getBytesMoved() {
  int64_t bytes = 3 * sizeInBytes(getGrad().getType());
  return getAcc() ? bytes : bytes + sizeInBytes(getResult().getType());
}

SmallVector<Value> EmbeddingGradOp::buildVjp(OpBuilder &b,
                                             ArrayRef<Value> grads,
                                             ArrayRef<bool> wanted) {
  SmallVector<Value> result(getNumOperands());
  if (wanted[1])
    result[1] = EmbeddingOp::create(b, getLoc(), grads[0], getIds());
  if (getAcc())
    result[2] = grads[0];
  return result;
}

OpCuts EmbeddingGradOp::getCuts() {
  OpCuts cuts(*this, "its ids and gradient hold the batch in different "
                     "dimensions");
  const int64_t rank = tensorType(getIds()).getRank();
  auto add = [&](int64_t ids, int64_t grad, int64_t acc, Rejoin result) {
    SmallVector<int64_t> operands{ids, grad};
    if (getAcc())
      operands.push_back(acc);
    cuts.add(operands, result);
  };
  for (int64_t dim = 0; dim < rank; ++dim)
    add(dim, dim, OpCut::kOnFirst, Rejoin::sum());
  for (int64_t dim = 1; dim < tensorType(getResult()).getRank(); ++dim)
    add(OpCut::kWhole, rank + dim - 1, dim, Rejoin::concat(dim));
  return cuts;
}

std::optional<MutableOperandRange> tmc::nn::accumulatorOf(Operation *op) {
  if (auto product = dyn_cast<MatmulOp>(op))
    return product.getAccMutable();
  if (auto product = dyn_cast<MatmulCodesOp>(op))
    return product.getAccMutable();
  if (auto rows = dyn_cast<EmbeddingGradOp>(op))
    return rows.getAccMutable();
  if (auto rows = dyn_cast<EmbeddingGradShardOp>(op))
    return rows.getAccMutable();
  if (auto loss = dyn_cast<LinearCrossEntropyGradOp>(op);
      loss && !loss.getBias())
    return loss.getAccMutable();
  if (auto loss = dyn_cast<LinearCrossEntropyWithGradOp>(op);
      loss && !loss.getBias())
    return loss.getAccMutable();
  return std::nullopt;
}

int64_t EmbeddingGradOp::getAccumulator() { return getAcc() ? 2 : -1; }

KernelCall EmbeddingGradOp::getKernel(ArrayRef<MemRefType> inputs,
                                      Backend backend) {
  KernelCall call = lookupKernel<EmbeddingGrad>(tensorType(getResult()),
                                                tensorType(getIds()), backend);
  call.ins = {0, 1}; // The accumulator is the result's own buffer.
  return call;
}
