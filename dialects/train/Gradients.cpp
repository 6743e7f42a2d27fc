// Gradients.cpp - gradients' norms, and the loss's scale.

#include "dialects/train/Train.h"

#include "runtime/kernels/Optimizer.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::train;

RankedTensorType train::scalarBeside(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  Type element = type.getElementType();
  if (!element.isF64())
    element = Float32Type::get(tensor.getContext());
  return RankedTensorType::get({}, element, type.getEncoding());
}

static int64_t elements(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

LogicalResult SquareSumOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  results.push_back(scalarBeside(op.getGrad().getType()));
  return success();
}

int64_t SquareSumOp::getFlops() { return 2 * elements(getGrad()); }

KernelCall SquareSumOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  return KernelCall::of<SquareSum>(
      getContext(),
      {.type = runtimeType(getGrad().getType()), .count = elements(getGrad())},
      backend);
}

LogicalResult GradNormOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> loc,
                                           Adaptor op,
                                           SmallVectorImpl<Type> &results) {
  for (Value square : op.getSquares())
    if (square.getType() != op.getSquares()[0].getType() ||
        cast<RankedTensorType>(square.getType()).getRank() != 0) // C1
      return emitOptionalError(loc, "sums squares of type ", square.getType());
  if (Value scale = op.getScale();
      scale && cast<RankedTensorType>(scale.getType()).getRank() != 0) // C1
    return emitOptionalError(loc, "takes ", scale.getType(), " for a scalar");
  Type type = op.getSquares().empty()
                  ? RankedTensorType::get({}, Float32Type::get(context))
                  : op.getSquares()[0].getType();
  results.append(2, type);
  return success();
}

int64_t GradNormOp::getFlops() { return getSquares().size(); }

KernelCall GradNormOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  auto call =
      KernelCall::of<GradNorm>(getContext(),
                               {.count = int64_t(getSquares().size()),
                                .maxNorm = getMaxNorm().convertToDouble(),
                                .isScaled = bool(getScale())},
                               backend);
  call.supported = runtimeType(getNorm().getType()) == DType::F32;
  return call;
}

LogicalResult LossScaleOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  for (Value operand : op.getOperands())
    if (cast<RankedTensorType>(operand.getType()).getRank() != 0) // C1
      return emitOptionalError(loc, "takes ", operand.getType(),
                               " for a scalar");
  Type count = op.getCount().getType();
  results.append(
      {op.getScale().getType(), op.getClean().getType(), count, count});
  return success();
}

int64_t LossScaleOp::getFlops() { return 1; }

KernelCall LossScaleOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  auto call =
      KernelCall::of<LossScale>(getContext(),
                                {.growth = getGrowth().convertToDouble(),
                                 .backoff = getBackoff().convertToDouble(),
                                 .interval = int64_t(getInterval())},
                                backend);
  call.supported = runtimeType(getNorm().getType()) == DType::F32 &&
                   runtimeType(getScale().getType()) == DType::F32;
  return call;
}
