// NN.h - the nn dialect: the computation.
//
// Immutable, ranked, statically shaped tensors. Pointwise work uses upstream's
// arith and math on tensors. This dialect adds the missing ops, and a `*_grad`
// op only if existing ops can't express a gradient.

#ifndef TMC_DIALECTS_NN_NN_H
#define TMC_DIALECTS_NN_NN_H

#include "dialects/interfaces/Interfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/nn/NNEnums.h.inc"

#include "dialects/nn/NNDialect.h.inc"
#define GET_OP_CLASSES
#include "dialects/nn/NN.h.inc"

#include <optional>

namespace tmc::nn {

/// The operand onto which `op` accumulates one of its results in place, or the
/// place for such an operand. None if the op can't accumulate.
std::optional<mlir::MutableOperandRange> accumulatorOf(mlir::Operation *op);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_NN_H
