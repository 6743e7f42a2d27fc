// NN.h - the nn dialect: what is computed.
//
// Immutable, ranked, statically shaped tensors. Pointwise work is upstream's
// arith and math on tensors; this dialect adds what they lack, and a `*_grad`
// op only where a gradient can't be said with ops already there.

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

/// What `op` adds one of its results onto, in place: an operand, or room for
/// one. None: it can't.
std::optional<mlir::MutableOperandRange> accumulatorOf(mlir::Operation *op);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_NN_H
