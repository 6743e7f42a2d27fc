// Forward.h - the forward function that an import makes.
//
//   tensors of the file, trained, written or large --> arguments
//   inputs of the model, random draws ---------------> arguments
//   outputs, the loss, new values of states ---------> results
//
// A tensor of the file that is no argument yet becomes one at its first use.

#ifndef TMC_FRONTENDS_COMMON_FORWARD_H
#define TMC_FRONTENDS_COMMON_FORWARD_H

#include "frontends/common/Refusals.h"
#include "frontends/common/Site.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace tmc::frontend {

/// An argument of the function, and its role.
struct Argument {
  enum Role { Param, State, Batch, Scalar };
  Role role = Batch;
  std::string name;
  int stored = -1; ///< For parameters and state.
  bool frozen = false;
  std::string init; ///< The initial value; empty: inferred from its uses.
};

/// A tensor of the file, and its place in the import.
struct StoredTensor {
  std::string name;                 ///< The user's; an argument's.
  std::string value;                ///< The graph's, if it is another one.
  std::vector<std::string> aliases; ///< The user's other names for it.
  ElementType type = ElementType::F32;
  Dims dims;
  bool mayBeMissing = false;             ///< It is in another file.
  enum Note { None, Parameter, Buffer }; ///< The exporter's statement.
  Note note = None;
  bool frozen = false;          ///< By the exporter's statement.
  bool isPersistent = true;     ///< In the model's state_dict.
  mlir::BlockArgument argument; ///< Null until it is used.

  int64_t bytes() const; ///< -1 if the size overflows.
  const std::string &valueName() const { return value.empty() ? name : value; }
};

class Forward {
public:
  /// An empty function in a module of its own. `diagnostics` must outlive it.
  Forward(mlir::MLIRContext &context, Diagnostics &diagnostics);

  // Arguments.
  /// By the exporter's notes, if it left any. Otherwise a stored float tensor
  /// is trainable if it has more than one element, or if it is a single number
  /// with a module's name. If names may be others than modules', such a number
  /// also needs a dot in its name and a dimension, which distinguish it from a
  /// constant. The path to the loss is checked at the end.
  bool isTrainable(const StoredTensor &tensor) const;
  /// The argument that holds `tensor`, which must be one of `tensors`.
  mlir::BlockArgument argumentOf(StoredTensor &tensor);
  /// Fails if another argument has the name.
  mlir::FailureOr<mlir::Value> addArgument(mlir::Type type, Argument argument);

  // Random numbers: the arguments are made at their first use.
  mlir::Value seed();
  mlir::Value samples();
  int64_t nextStream() { return stream++; }

  // Values.
  /// The tensor whose value, or new value, `v` is, as an index into `tensors`;
  /// -1 if there is none.
  int storedBehind(const Val &v) const;
  /// True if `v` is a stored tensor, under any name, or a state's new value.
  bool isStored(const Val &v) const { return storedBehind(v) >= 0; }
  /// True if `v` is an input: no gradient goes there.
  bool isInput(const Val &v) const;
  /// True if the exporter's signature states that a step writes the tensor
  /// behind `v`.
  bool isMutated(const Val &v) const;
  /// The constant `v`, if `v` is a stored tensor that counts as a parameter
  /// only by its type.
  std::optional<Val> asConstant(const Val &v) const;
  /// True if a gradient flows from `v` to a tensor that is trained.
  bool isTrained(mlir::Value v) const;
  /// `v` without its gradient.
  Val detached(const Val &v, mlir::Location loc);
  /// Records that `v`, which depends on trained parameters, was made without
  /// gradients: the user is warned if the loss depends on it.
  void cut(mlir::Value v) { cuts.push_back(v); }

  // States.
  /// The step's new value of tensor `index`; null if there is none.
  mlir::Value newValueOf(int index) const;
  /// Turns the running statistic behind `v`, a stored tensor or the new value
  /// of one, into a state and returns its newest value. Fails if `v` is another
  /// value.
  mlir::FailureOr<mlir::Value> stateOf(const Val &v);
  /// Sets `next` as the new value of the state behind `v`.
  void updateState(const Val &v, mlir::Value next);
  /// Turns the fixed statistic behind `v`, if that is a stored tensor, into a
  /// state that no step changes; `init` is its initial value.
  void fixState(const Val &v, llvm::StringRef init);

  mlir::OpBuilder b;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  std::vector<Argument> arguments; ///< In the order of the block's arguments.
  struct Result {
    mlir::Value value;
    std::string name;
    bool isLoss = false;
    int updates = -1; ///< Index into `tensors`.
  };
  std::vector<Result> results;
  std::vector<mlir::Value> cuts; ///< By `cut`.
  int64_t batch = 1;             ///< Samples.

  // The file's tensors, and its statements about them.
  std::vector<StoredTensor> tensors;
  llvm::StringMap<int> tensorOf; ///< By name.
  bool hasNotes = false; ///< The exporter distinguishes parameters and buffers.
  /// Without notes: all tensors whose names look like a module's belong to
  /// modules.
  bool namesAreModules = false;
  /// The exporter leaves no trace of torch.no_grad(), and merges two inputs
  /// into one if both got the same tensor.
  bool leavesNoTraces = false;
  /// Buffers and parameters that a step of the exported program writes, and the
  /// names of their new values.
  llvm::StringMap<std::string> mutated;

private:
  Diagnostics &diagnostics;
  /// For each new value, the tensor that it replaces.
  llvm::DenseMap<mlir::Value, int> newValues;
  mlir::Value seedArgument, samplesArgument;
  int64_t stream = 0;
};

/// True if `name` has the form of a module's names, "top.2.bias" or "scale",
/// and not the form in which exporters and optimizers name constants,
/// "onnx::Add_12", "/top/Add_output_0", "21".
bool isModuleName(llvm::StringRef name);

/// "/model/layers.0/Add" -> "model.layers.0.Add".
std::string cleanName(llvm::StringRef name);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_FORWARD_H
