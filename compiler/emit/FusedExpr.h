// FusedExpr.h - pointwise ops as C++ expressions.

#ifndef TMC_COMPILER_EMIT_FUSEDEXPR_H
#define TMC_COMPILER_EMIT_FUSEDEXPR_H

#include "mlir/IR/Operation.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>

namespace tmc {

/// A number as a literal of the C++ type that kernels compute an element type
/// in: 0.5f, 3 (i32), int64_t(3), true.
std::string literalOf(mlir::Type element, double value);

/// The C++ type in which elements are stored ("float", "bf16", "bool").
llvm::StringRef storageType(mlir::Type element);

/// The expression for pointwise `op`. `text(i)` is operand i as a value of all
/// lanes, `mixed(i)` the same or a literal, where a scalar may stand beside a
/// vector.
std::string expressionOf(mlir::Operation *op,
                         llvm::function_ref<std::string(unsigned)> text,
                         llvm::function_ref<std::string(unsigned)> mixed);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_FUSEDEXPR_H
