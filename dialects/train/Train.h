// Train.h - the train dialect: what a training step is.

#ifndef TMC_DIALECTS_TRAIN_TRAIN_H
#define TMC_DIALECTS_TRAIN_TRAIN_H

#include "dialects/interfaces/Interfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tmc::train {
/// See Train.td.
template <typename ConcreteOp>
class UpdateRule : public mlir::OpTrait::TraitBase<ConcreteOp, UpdateRule> {};
} // namespace tmc::train

#include "dialects/train/TrainDialect.h.inc"
#include "dialects/train/TrainEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/train/TrainAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/train/Train.h.inc"

namespace tmc::train {
/// The role of argument `index`; nothing where it has none.
std::optional<Role> roleOf(mlir::FunctionOpInterface function, unsigned index);

/// The `train.name` of argument or result `index`, or "".
llvm::StringRef argName(mlir::FunctionOpInterface function, unsigned index);
llvm::StringRef resultName(mlir::FunctionOpInterface function, unsigned index);

/// The number of the result marked `train.loss`; nothing where there is none.
std::optional<unsigned> lossResult(mlir::FunctionOpInterface function);

/// The argument whose new value result `index` is; nothing where it is none's.
std::optional<unsigned> updatedArg(mlir::FunctionOpInterface function,
                                   unsigned index);

/// The argument of which argument `index` is a copy in 16 bits; nothing where
/// it is none.
std::optional<unsigned> copiedArg(mlir::FunctionOpInterface function,
                                  unsigned index);

/// Gives `step` one more state, its last argument, with attributes beside role
/// and name; and, as its last result, an argument's new value.
mlir::BlockArgument addState(StepOp step, llvm::StringRef name, mlir::Type type,
                             llvm::ArrayRef<mlir::NamedAttribute> attrs);
void addNewValue(StepOp step, mlir::BlockArgument argument, mlir::Value value);

/// Where the bytes of a tensor of type `tensor` are.
Space spaceOf(mlir::Type tensor);
/// The type of the same tensor in `space`.
mlir::RankedTensorType inSpace(mlir::Type tensor, Space space);
/// The work that `done` ends; null where it is no end of work.
mlir::Operation *startOf(mlir::Operation *done);
/// Whether `op` starts work beside the device's kernels.
bool isWork(mlir::Operation *op);

/// A scalar in f32 (f64 beside f64), in the space of `tensor`.
mlir::RankedTensorType scalarBeside(mlir::Type tensor);
/// Replaces an update that keeps no copy by one that keeps `copy`, of the type
/// that the copy is to have; returns the new copy.
mlir::Value keepCopy(mlir::Operation *update, mlir::Value copy);
} // namespace tmc::train

#endif // TMC_DIALECTS_TRAIN_TRAIN_H
