// Pointwise.h - operators that work element by element, with broadcasting.
//
// One path for all of them: constants are computed at import by a function on
// numbers, everything else becomes an arith or math op on tensors of equal
// shape, with every broadcast spelled out.

#ifndef TMC_FRONTENDS_ONNX_OPS_POINTWISE_H
#define TMC_FRONTENDS_ONNX_OPS_POINTWISE_H

#include "frontends/onnx/Node.h"

namespace tmc::onnx_import {

using Doubles = llvm::ArrayRef<double>;
using Ints = llvm::ArrayRef<int64_t>;
using FloatFn = double (*)(Doubles);
using IntFn = int64_t (*)(Ints);
/// Builds the op on operands of one shape.
using BuildFn = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

struct Pointwise {
  FloatFn floats = nullptr; ///< On float operands; null if there are none.
  IntFn ints = nullptr;     ///< On integers and booleans.
  BuildFn build;
  bool compares = false; ///< The result is boolean.
  size_t arity = 2;      ///< The number of operands; 0 for any.
};

/// Imports `n` as `p` on `operands`, which must have one element type.
mlir::LogicalResult importPointwise(Node &n, llvm::ArrayRef<Val> operands,
                                    const Pointwise &p);

/// The common shape of `operands`, or an error.
mlir::FailureOr<Dims> commonShape(Node &n, llvm::ArrayRef<Val> operands);

/// All of the node's inputs.
llvm::SmallVector<Val> inputsOf(Node &n);

/// A tensor like `x` filled with `value`.
mlir::Value like(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                 double value);

} // namespace tmc::onnx_import

#endif // TMC_FRONTENDS_ONNX_OPS_POINTWISE_H
