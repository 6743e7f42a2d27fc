// Doubles.h - converts doubles to f32, the type in which steps compute.
//
// An exported model has doubles where numpy's default type was used: in an
// input made from an array, a constant, a parameter. Values that depend only on
// constants have been computed in double before this; no kernel takes doubles.

#ifndef TMC_FRONTENDS_COMMON_DOUBLES_H
#define TMC_FRONTENDS_COMMON_DOUBLES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tmc::frontend {

/// Turns each f64 value in `function` into f32, and removes the casts between
/// the two. Returns the number of such values, without casts and constants.
int64_t narrowDoubles(mlir::func::FuncOp function);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_DOUBLES_H
