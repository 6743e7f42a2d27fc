// ElementType.h - the element types of models, as an enum.
//
// Only some exist in the IR (`irType`); the others may occur in constants,
// which are folded at import. Each frontend maps its file format's numbers to
// these types.

#ifndef TMC_FRONTENDS_COMMON_ELEMENTTYPE_H
#define TMC_FRONTENDS_COMMON_ELEMENTTYPE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace tmc::frontend {

enum class ElementType {
  F32,
  U8,
  I8,
  U16,
  I16,
  I32,
  I64,
  Bool,
  F16,
  F64,
  U32,
  U64,
  BF16,
};

/// "f32", "i64", "bool": for messages.
std::string nameOf(ElementType type);

/// Bytes of one element in a file.
int64_t sizeInFile(ElementType type);

bool isFloat(ElementType type);

/// The element type in the IR, or null if the IR has none.
mlir::Type irType(ElementType type, mlir::MLIRContext *context);

/// The inverse of `irType`.
ElementType elementTypeOf(mlir::Type type);

/// `value` as an element of `type` would hold it.
double roundTo(ElementType type, double value);
int64_t wrapTo(ElementType type, int64_t value);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_ELEMENTTYPE_H
