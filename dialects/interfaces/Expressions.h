// Expressions.h - elements of fused kernels as C++ text.
//
// The parts of a pointwise op's expression (`PointwiseOpInterface`): names of
// types, literals, and the expressions that are more than a sign between their
// operands or a call. The text is compiled for both backends, with the value
// types of runtime/kernels/Vec.h.

#ifndef TMC_DIALECTS_INTERFACES_EXPRESSIONS_H
#define TMC_DIALECTS_INTERFACES_EXPRESSIONS_H

#include "dialects/interfaces/Interfaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tmc {

/// A number as a literal of the C++ type in which kernels compute an element
/// type: 0.5f, 3 (i32), int64_t(3), true.
std::string literalOf(mlir::Type element, double value);

/// The C++ type in which elements are stored ("float", "tmc::bf16", "bool"), or
/// "" for a type that fused kernels don't support.
llvm::StringRef storageType(mlir::Type element);

/// True for floats that are stored with fewer bits than kernels compute with.
bool isNarrowFloat(mlir::Type element);

std::string expressionOf(mlir::arith::CmpFOp op, const OperandText &text);
std::string expressionOf(mlir::arith::CmpIOp op, const OperandText &text);
std::string expressionOf(mlir::arith::SelectOp op, const OperandText &text);
std::string expressionOf(mlir::arith::SIToFPOp op, const OperandText &text);
std::string expressionOf(mlir::arith::UIToFPOp op, const OperandText &text);
std::string expressionOf(mlir::arith::FPToSIOp op, const OperandText &text);
std::string expressionOf(mlir::arith::ExtSIOp op, const OperandText &text);
std::string expressionOf(mlir::arith::ExtUIOp op, const OperandText &text);
std::string expressionOf(mlir::arith::TruncIOp op, const OperandText &text);

} // namespace tmc

#endif // TMC_DIALECTS_INTERFACES_EXPRESSIONS_H
