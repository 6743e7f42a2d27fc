// Train.h - the train dialect: a training step.

#ifndef TMC_DIALECTS_TRAIN_TRAIN_H
#define TMC_DIALECTS_TRAIN_TRAIN_H

#include "dialects/interfaces/Interfaces.h"
#include "dialects/interfaces/Machine.h"

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
/// The role of argument `index`; none if it has no role.
std::optional<Role> roleOf(mlir::FunctionOpInterface function, unsigned index);

/// The `train.name` of argument or result `index`, or "".
llvm::StringRef argName(mlir::FunctionOpInterface function, unsigned index);
llvm::StringRef resultName(mlir::FunctionOpInterface function, unsigned index);

/// A tensor that users and files know.
struct NamedTensor {
  std::string name;
  mlir::RankedTensorType type;
  int64_t firstRow = 0; // Within the argument or result that holds it.
  mlir::Attribute init; // As `train.init`; may be null.
  /// If ranks of tp have pieces of it: the elements that lie side by side in
  /// one, in the whole. 0: it isn't cut.
  int64_t chunk = 0;
};
/// The whole tensors that `type` with these attributes of an argument or a
/// result holds, in their order in memory: those of `train.parts`, or it alone.
llvm::SmallVector<NamedTensor> namedTensors(mlir::DictionaryAttr attrs,
                                            mlir::ShapedType type);
/// The elements of a rank's piece, of type `piece`, that lie side by side in
/// the whole.
int64_t chunkOf(CutAttr cut, mlir::ShapedType piece);
/// Parts of a tensor that has `rows` rows for `all` rows of the tensor with
/// `parts`: a state of a param, or a gradient. Each name gets `suffix`.
/// Requires that the rows of each part divide evenly.
mlir::ArrayAttr partsBeside(mlir::ArrayAttr parts, int64_t all, int64_t rows,
                            const llvm::Twine &suffix);

/// The number of the result marked `train.loss`; none if there is no such
/// result.
std::optional<unsigned> lossResult(mlir::FunctionOpInterface function);

/// The argument whose new value is result `index`; none if it isn't a new
/// value.
std::optional<unsigned> updatedArg(mlir::FunctionOpInterface function,
                                   unsigned index);

/// The argument of which argument `index` is a 16-bit copy; none if it isn't a
/// copy.
std::optional<unsigned> copiedArg(mlir::FunctionOpInterface function,
                                  unsigned index);

/// Adds a state to `step`, its last argument, with attributes beside role and
/// name; and adds an argument's new value as its last result.
mlir::BlockArgument addState(StepOp step, llvm::StringRef name, mlir::Type type,
                             llvm::ArrayRef<mlir::NamedAttribute> attrs);
void addNewValue(StepOp step, mlir::BlockArgument argument, mlir::Value value);

/// The space of a tensor of type `tensor`.
SpaceKind spaceOf(mlir::Type tensor);
/// The type of the same tensor in `space`.
mlir::RankedTensorType inSpace(mlir::Type tensor, SpaceKind space);
/// The op that starts the work that `done` ends; null if `done` ends no work.
mlir::Operation *startOf(mlir::Operation *done);
/// The op that ends the work of `start`; null: it ends at once.
mlir::Operation *doneOf(mlir::Operation *start);
/// The engine that runs an op of a step.
EngineKind engineOf(mlir::Operation *op);
/// Whether `op` starts work beside the device's kernels.
bool isWork(mlir::Operation *op);

/// A scalar type of f32 (f64 for f64 tensors), in the space of `tensor`.
mlir::RankedTensorType scalarBeside(mlir::Type tensor);
/// Replaces an update without a copy by one with `copy`, of the copy's type;
/// returns the new copy.
mlir::Value keepCopy(mlir::Operation *update, mlir::Value copy);
} // namespace tmc::train

#endif // TMC_DIALECTS_TRAIN_TRAIN_H
