// Frozen.cpp - nn.dequantize and nn.matmul_codes.

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "runtime/kernels/Dequantize.h"
#include "runtime/kernels/MatmulCodes.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// The reason why these are no codes and maxima of a matrix of `shape`; "":
/// they are.
static std::string faultOfCodes(RankedTensorType codes, RankedTensorType absmax,
                                RankedTensorType nested,
                                ArrayRef<int64_t> shape) {
  auto text = [](auto type) {
    std::string words;
    llvm::raw_string_ostream(words) << type;
    return words;
  };
  const int64_t count = llvm::product_of(shape);
  if (codes.getRank() == 2 && codes.getShape() == shape) {
    if (nested || !absmax.getElementType().isF32() ||
        absmax.getShape() != shape.take_front(1)) // C3
      return "has maxima of type " + text(absmax) + " for rows of " +
             text(codes);
    return "";
  }
  if (codes.getRank() != 1 || count % frozen::kBlock ||
      codes.getNumElements() != count / 2) // C1
    return "makes " + std::to_string(count) + " numbers of codes of type " +
           text(codes);
  const int64_t blocks = count / frozen::kBlock;
  const bool fits =
      absmax.getRank() == 1 && absmax.getNumElements() == blocks &&
      absmax.getElementType().isF32() == !nested &&
      (!nested || nested.getNumElements() == frozen::nestedFloats(blocks));
  if (!fits) // C2
    return "has maxima of type " + text(absmax) +
           (nested ? " and " + text(nested) : "") + " for " +
           std::to_string(blocks) + " blocks";
  return "";
}

static RankedTensorType typeOrNull(Value value) {
  return value ? tensorType(value) : RankedTensorType();
}

LogicalResult DequantizeOp::verify() {
  if (std::string fault = faultOfCodes(
          tensorType(getCodes()), tensorType(getAbsmax()),
          typeOrNull(getNested()), tensorType(getResult()).getShape());
      !fault.empty())
    return emitOpError(fault);
  return success();
}

int64_t DequantizeOp::getFlops() {
  return 2 * tensorType(getResult()).getNumElements();
}

/// Blocks go along memory, so only the outermost dimension of the numbers is
/// cut. Nested maxima end with a number for all of them.
OpCuts DequantizeOp::getCuts() {
  OpCuts cuts(*this, "its codes depend on the batch");
  if (!getNested())
    cuts.add({0, 0}, Rejoin::concat(0));
  if (isByRows())
    cuts.add({1, OpCut::kWhole}, Rejoin::concat(1));
  return cuts;
}

KernelCall DequantizeOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  RankedTensorType type = tensorType(getResult());
  // Blocks go along memory, over the borders of rows.
  const bool isMatrix = isByRows();
  return KernelCall::of<Dequantize>(
      getContext(),
      {.out = runtimeType(type),
       .rows = isMatrix ? type.getDimSize(0) : 1,
       .columns = isMatrix ? type.getDimSize(1) : type.getNumElements(),
       .byRows = isMatrix,
       .nested = bool(getNested())},
      backend);
}

//===----------------------------------------------------------------------===//
// nn.matmul_codes
//===----------------------------------------------------------------------===//

int64_t MatmulCodesOp::getDepth() {
  return tensorType(getLhs()).getDimSize(getTransposeLhs() ? 0 : 1);
}

LogicalResult MatmulCodesOp::verify() {
  RankedTensorType lhs = tensorType(getLhs()), result = tensorType(getResult());
  if (lhs.getRank() != 2 || result.getRank() != 2 ||
      lhs.getDimSize(getTransposeLhs() ? 1 : 0) != result.getDimSize(0)) // C1
    return emitOpError("makes ") << result << " of " << lhs;
  const int64_t n = result.getDimSize(1);
  SmallVector<int64_t> shape = {getDepth(), n};
  if (getTransposeRhs())
    std::swap(shape[0], shape[1]);
  if (std::string fault =
          faultOfCodes(tensorType(getCodes()), tensorType(getAbsmax()),
                       typeOrNull(getNested()), shape);
      !fault.empty()) // C2
    return emitOpError(fault);
  if (Value bias = getBias(); // C3
      bias &&
      bias.getType() != RankedTensorType::get({n}, result.getElementType()))
    return emitOpError("the bias is ")
           << bias.getType() << " where a row of the result has " << n
           << " elements of " << result.getElementType();
  if (getAcc() && getAcc().getType() != result) // C4
    return emitOpError("accumulates a result of type ")
           << result << " onto " << getAcc().getType();
  return success();
}

int64_t MatmulCodesOp::getFlops() {
  return 2 * getDepth() * tensorType(getResult()).getNumElements();
}

/// The codes are read once for each slab of rows; slabs are high.
int64_t MatmulCodesOp::getBytesMoved() { return sumOfTensorBytes(*this); }

OpCuts MatmulCodesOp::getCuts() {
  OpCuts cuts(*this, "its weight depends on the batch");
  constexpr int64_t whole = OpCut::kWhole, first = OpCut::kOnFirst;
  auto add = [&](int64_t lhs, int64_t codes, int64_t absmax, int64_t bias,
                 int64_t acc, Rejoin result) {
    SmallVector<int64_t> operands{lhs, codes, absmax};
    if (getNested())
      operands.push_back(whole);
    if (getBias())
      operands.push_back(bias);
    if (getAcc())
      operands.push_back(acc);
    cuts.add(operands, result);
  };
  const int64_t rows = getTransposeLhs() ? 1 : 0;
  add(rows, whole, whole, whole, 0, Rejoin::concat(0));
  // The weight's cuts are those of `nn.dequantize`.
  for (int64_t dim : {0, 1}) {
    if (dim == 0 ? bool(getNested()) : !isByRows())
      continue;
    const int64_t absmax = dim == 0 ? 0 : whole;
    const bool isSummed = (dim == 1) == getTransposeRhs();
    if (isSummed)
      add(1 - rows, dim, absmax, first, first, Rejoin::sum());
    else
      add(whole, dim, absmax, 0, 1, Rejoin::concat(1));
  }
  return cuts;
}

int64_t MatmulCodesOp::getAccumulator() {
  return getAcc() ? int64_t(getNumOperands()) - 1 : -1;
}

KernelCall MatmulCodesOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  RankedTensorType lhs = tensorType(getLhs()), out = tensorType(getResult());
  auto call = KernelCall::of<MatmulCodes>(getContext(),
                                          {.lhs = runtimeType(lhs),
                                           .out = runtimeType(out),
                                           .m = out.getDimSize(0),
                                           .n = out.getDimSize(1),
                                           .k = getDepth(),
                                           .transposeLhs = getTransposeLhs(),
                                           .transposeRhs = getTransposeRhs(),
                                           .bias = bool(getBias()),
                                           .byRows = isByRows(),
                                           .nested = bool(getNested())},
                                          backend);
  call.products = runtimeType(lhs);
  const int64_t bias = getNested() ? 4 : 3;
  call.ins = {0, 1, 2, getNested() ? 3 : -1, getBias() ? bias : -1};
  return call;
}
