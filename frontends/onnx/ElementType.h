// ElementType.h - the element types of ONNX, in a form that can be switched on.
//
// The numbers are those of TensorProto.DataType. Only some exist in the IR
// (`irType`); the others may occur in constants, which are folded at import.

#ifndef TMC_FRONTENDS_ONNX_ELEMENTTYPE_H
#define TMC_FRONTENDS_ONNX_ELEMENTTYPE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>
#include <string>

namespace tmc::onnx_import {

enum class ElementType : int {
  F32 = 1,
  U8 = 2,
  I8 = 3,
  U16 = 4,
  I16 = 5,
  I32 = 6,
  I64 = 7,
  Bool = 9,
  F16 = 10,
  F64 = 11,
  U32 = 12,
  U64 = 13,
  BF16 = 16,
};

/// The type with this TensorProto.DataType number, if it is one of the above.
std::optional<ElementType> elementTypeOf(int64_t number);

/// "f32", "i64", "bool": for messages.
std::string nameOf(ElementType type);

/// Bytes of one element in a file.
int64_t sizeInFile(ElementType type);

bool isFloat(ElementType type);

/// The element type in the IR, or null where the IR has none.
mlir::Type irType(ElementType type, mlir::MLIRContext *context);

/// The inverse of `irType`.
ElementType elementTypeOf(mlir::Type type);

/// `value` as an element of `type` would hold it.
double roundTo(ElementType type, double value);
int64_t wrapTo(ElementType type, int64_t value);

} // namespace tmc::onnx_import

#endif // TMC_FRONTENDS_ONNX_ELEMENTTYPE_H
