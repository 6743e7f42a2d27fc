// Doubles.h - doubles become f32, which is what steps compute in.
//
// A model is exported with doubles where numpy's default type came in: an input
// made of an array, a constant, a parameter. What follows from constants alone
// has been computed in double by then; no kernel takes doubles.

#ifndef TMC_FRONTENDS_COMMON_DOUBLES_H
#define TMC_FRONTENDS_COMMON_DOUBLES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tmc::frontend {

/// Makes each value of f64 in `function` one of f32, and leaves out the casts
/// between the two. Returns how many there were, casts and constants left out.
int64_t narrowDoubles(mlir::func::FuncOp function);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_DOUBLES_H
