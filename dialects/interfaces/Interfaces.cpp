#include "dialects/interfaces/Interfaces.h"

using namespace mlir;

#include "dialects/interfaces/Interfaces.cpp.inc"

int64_t tmc::sizeInBytes(Type type) {
  auto shaped = cast<ShapedType>(type);
  return shaped.getNumElements() *
         ((shaped.getElementTypeBitWidth() + 7) / 8);
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
