#include "dialects/interfaces/Interfaces.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

#include "dialects/interfaces/Interfaces.cpp.inc"

int64_t tmc::sizeInBytes(Type type) {
  auto shaped = cast<ShapedType>(type);
  return shaped.getNumElements() * ((shaped.getElementTypeBitWidth() + 7) / 8);
}

int64_t tmc::sumOfTensorBytes(Operation *op) {
  int64_t bytes = 0;
  for (Value value : op->getOperands())
    if (isa<RankedTensorType>(value.getType()))
      bytes += sizeInBytes(value.getType());
  for (Value value : op->getResults())
    if (isa<RankedTensorType>(value.getType()))
      bytes += sizeInBytes(value.getType());
  return bytes;
}

tmc::DType tmc::runtimeType(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (element.isF32())
    return DType::F32;
  if (element.isF64())
    return DType::F64;
  if (element.isF16())
    return DType::F16;
  if (element.isBF16())
    return DType::BF16;
  if (isa<Float8E4M3FNType>(element))
    return DType::F8E4M3;
  if (isa<Float8E5M2Type>(element))
    return DType::F8E5M2;
  if (element.isTF32())
    return DType::TF32;
  if (element.isInteger(1))
    return DType::I1;
  if (element.isInteger(8))
    return DType::I8;
  if (element.isInteger(32))
    return DType::I32;
  assert(element.isInteger(64) && "no such element type in the nn dialect");
  return DType::I64;
}

Type tmc::elementType(MLIRContext *context, DType type) {
  Builder b(context);
  switch (type) {
  case DType::F32:
    return b.getF32Type();
  case DType::F16:
    return b.getF16Type();
  case DType::BF16:
    return b.getBF16Type();
  case DType::F64:
    return b.getF64Type();
  case DType::F8E4M3:
    return Float8E4M3FNType::get(context);
  case DType::F8E5M2:
    return Float8E5M2Type::get(context);
  case DType::TF32:
    return FloatTF32Type::get(context);
  case DType::I1:
    return b.getI1Type();
  case DType::I8:
    return b.getI8Type();
  case DType::I32:
    return b.getI32Type();
  case DType::I64:
    return b.getI64Type();
  case DType::U8:
  case DType::I16:
  case DType::U16:
    break;
  }
  llvm_unreachable("no such element type in the nn dialect");
}

Type tmc::productTypeOf(Operation *op, ArrayRef<unsigned> factors) {
  if (op->hasAttr("tf32"))
    return FloatTF32Type::get(op->getContext());
  Type narrowest;
  for (unsigned i : factors) {
    Type type = getElementTypeOrSelf(op->getOperand(i));
    if (!narrowest ||
        type.getIntOrFloatBitWidth() < narrowest.getIntOrFloatBitWidth())
      narrowest = type;
  }
  return narrowest;
}
