// Importer.h - the state of one import, for every file format.
//
// A frontend derives its own importer from this one. It passes on the file's
// contents in this order; work that all formats share is done here:
//
//   frontend                          Importer
//   tensors of the file, their notes  arguments, or constants
//   inputs, with symbolic dimensions  bound by --batch and --dim; arguments
//   each node, by its name            names, refusals of broken and of
//                                     unsupported nodes
//   outputs, buffers that change      results, the loss, roles, dead code
//
// Builders of operators access the importer through `Site`; Import.h describes
// the output.

#ifndef TMC_FRONTENDS_COMMON_IMPORTER_H
#define TMC_FRONTENDS_COMMON_IMPORTER_H

#include "frontends/common/Import.h"
#include "frontends/common/Refusals.h"
#include "frontends/common/Site.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace tmc::frontend {

/// Constant floats of more bytes than this aren't put in the IR: they become
/// arguments that aren't trained.
constexpr int64_t kMaxConstantBytes = 64 << 10;

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

/// An input or output as a file declares it.
struct Declared {
  struct Dim {
    int64_t size = 0;
    std::string symbol;  ///< If the size isn't fixed.
    bool isKnown = true; ///< False: an output's size is left open.
  };
  std::string name;
  std::optional<ElementType> type;
  std::string typeName; ///< For messages, if `type` is none of ours.
  bool hasShape = true;
  llvm::SmallVector<Dim, 4> dims;
};

class Importer {
public:
  virtual ~Importer() = default;

  // For Site and for builders.
  mlir::OpBuilder b;
  /// The value of `name` in the innermost scope.
  const Val &lookup(const std::string &name) const;
  mlir::LogicalResult define(const std::string &name, Val v);
  bool isUsed(const std::string &name) const { return used.contains(name); }
  mlir::FailureOr<mlir::Value> materialise(const Val &v);
  mlir::FailureOr<mlir::Value>
  broadcast(const Val &v, llvm::ArrayRef<int64_t> dims, mlir::Location loc);
  mlir::FailureOr<Array> arrayOf(const Val &v);
  void fail(Failure f) {
    if (!failure)
      failure = std::move(f);
  }
  /// Records an unsupported feature; see Site::unsupported.
  void refuse(Refusal refusal) { refusals.push_back(std::move(refusal)); }
  /// Records a warning for the user.
  void warn(std::string what) { warnings.push_back(std::move(what)); }

  // Random numbers: the arguments are made at their first use.
  mlir::Value seed();
  mlir::Value samples();
  int64_t nextStream() { return stream++; }
  int64_t batchSize() const { return batch; }

  /// Turns the running statistic behind `v`, a stored tensor or the new value
  /// of one, into a state and returns its newest value. Fails if `v` is another
  /// value.
  mlir::FailureOr<mlir::Value> stateOf(const Val &v);
  /// Sets `next` as the new value of the state behind `v`.
  void updateState(const Val &v, mlir::Value next);
  /// The constant `v`, if `v` is a stored tensor that counts as a parameter
  /// only by its type.
  std::optional<Val> asConstant(const Val &v) const;
  /// Turns the fixed statistic behind `v`, if that is a stored tensor, into a
  /// state that no step changes; `init` is its initial value.
  void fixState(const Val &v, llvm::StringRef init);
  /// `v` without its gradient.
  Val detached(const Val &v, mlir::Location loc);
  /// True if a gradient flows from `v` to a tensor that is trained.
  bool isTrained(mlir::Value v) const;
  /// True if the exporter's signature states that a step writes the tensor
  /// behind `v`.
  bool isMutated(const Val &v) const;
  /// True if `v` is a stored tensor, under any name, or a state's new value.
  bool isStored(const Val &v) const { return storedBehind(v) >= 0; }

protected:
  Importer(std::unique_ptr<TensorStore> store, const ImportOptions &options,
           mlir::MLIRContext &context);

  // For frontends, in the order in which they call them.
  /// Defines a value for each entry of `tensors`, in the store's numbering.
  mlir::LogicalResult addTensors();
  /// Sets the sizes of the symbolic dimensions of `inputs`; `proposed` are the
  /// model's own sizes, for dimensions that the user leaves open.
  mlir::LogicalResult bindDims(llvm::ArrayRef<Declared> inputs,
                               const std::map<std::string, int64_t> &proposed);
  mlir::LogicalResult makeInputs(llvm::ArrayRef<Declared> inputs);
  /// Runs `import` for a node that reads and defines values of these names. The
  /// results of an unsupported node get stand-ins, so that the nodes behind it
  /// are checked as well; nodes that read a result without a stand-in are
  /// skipped.
  mlir::LogicalResult
  importNode(Site &site, llvm::ArrayRef<std::string> inputs,
             llvm::ArrayRef<std::string> outputs,
             llvm::function_ref<mlir::LogicalResult()> import);
  /// Adds the new values of buffers, by `mutated`.
  mlir::LogicalResult updateBuffers();
  /// `outputs` are names of values, and the names of the function's results.
  struct Output {
    std::string value;
    Declared declared;
  };
  mlir::LogicalResult importResults(std::vector<Output> outputs);
  mlir::LogicalResult attachLoss();
  mlir::LogicalResult finish();
  /// The result of `run`; `done` is false after an error.
  Expected<ImportedModel> conclude(bool done);

  /// The complete type that the file declares for an undefined value; nothing
  /// if the file doesn't declare all of it.
  virtual std::optional<std::pair<ElementType, Dims>>
  declaredType(const std::string &name) const = 0;
  /// `dims` with the bound sizes; nothing if one has none.
  std::optional<Dims> boundSizes(llvm::ArrayRef<Declared::Dim> dims) const;

  int storedBehind(const Val &v) const;
  /// The step's new value of tensor `index`; null if there is none.
  mlir::Value newValueOf(int index) const;
  /// True if the user freezes the parameter.
  bool isFrozenByUser(llvm::StringRef name) const;
  /// Records that `v`, which depends on trained parameters, was made without
  /// gradients: the user is warned if the loss depends on it.
  void cut(mlir::Value v) { cuts.push_back(v); }
  bool isTrainable(const StoredTensor &tensor) const;
  mlir::BlockArgument argumentOf(StoredTensor &tensor);
  /// True if `v` is an input: no gradient goes there.
  bool isInput(const Val &v) const;

  std::unique_ptr<TensorStore> store;
  ImportOptions options;
  mlir::MLIRContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  std::vector<Argument> arguments; ///< In the order of the block's arguments.
  std::vector<StoredTensor> tensors;
  llvm::StringMap<int> tensorOf;
  bool hasNotes = false; ///< The exporter distinguishes parameters and buffers.
  /// Without notes: all tensors whose names look like a module's belong to
  /// modules.
  bool namesAreModules = false;
  /// The exporter leaves no trace of torch.no_grad(), and merges two inputs
  /// into one if both got the same tensor.
  bool leavesNoTraces = false;
  /// The new value of a tensor may be a constant. Otherwise a constant is the
  /// old value, which the exporter's optimizer folded.
  bool mayWriteConstants = false;
  /// Outputs may be new values of statistics, which aren't the user's outputs.
  bool listsStatistics = true;
  /// Buffers and parameters that a step of the exported program writes, and the
  /// names of their new values.
  llvm::StringMap<std::string> mutated;
  std::map<std::string, int64_t> bound;
  int64_t batch = 1;
  /// The values of names: in the graph, and in the bodies that are being
  /// imported. A branch sees the scope around it, a function only its own.
  struct Scope {
    llvm::StringMap<Val> values;
    bool seesOuter = false;
  };
  std::vector<Scope> scopes;
  llvm::StringSet<> used;
  std::optional<Failure> failure;
  std::vector<Refusal> refusals;
  /// The advice for models whose buffers can't be updated: how to export them.
  std::string howToKeepBuffers;
  /// The advice for operators without an importer: the usual way around them.
  std::string howToAvoid;

private:
  void poison(const std::string &name, mlir::Location loc);
  mlir::LogicalResult lossFromOutput(const std::string &name);
  mlir::LogicalResult lossFromCall(const std::string &function,
                                   const std::string &lhs,
                                   const std::string &rhs);
  mlir::FailureOr<mlir::Value> lossPrediction(const std::string &name);
  mlir::FailureOr<mlir::Value> lossTarget(const std::string &name,
                                          mlir::RankedTensorType type);
  const Val &lookupForLoss(const std::string &name) const;
  std::string listOutputs(const char *lead) const;
  void setLoss(mlir::Value value, const std::string &name);
  mlir::FailureOr<mlir::Value> addArgument(mlir::Type type, Argument argument);
  void dropCounters();
  void warnOfCuts();
  void warnOfNewValues();
  void warnOfConstants();
  mlir::LogicalResult checkMerged();
  void removeDeadCode();
  void removeUnusedArguments();
  mlir::LogicalResult setAttributes();

  llvm::DenseMap<const Constant *, mlir::Value> constants;
  std::vector<std::shared_ptr<Constant>> kept; ///< Keys of `constants`.
  struct Result {
    mlir::Value value;
    std::string name;
    bool isLoss = false;
    int updates = -1; ///< Index into `tensors`.
  };
  std::vector<Result> results;
  /// For each new value, the tensor that it replaces.
  llvm::DenseMap<mlir::Value, int> newValues;
  std::vector<mlir::Value> cuts;
  std::vector<Output> outputs;
  mlir::Value seedArgument, samplesArgument;
  int64_t stream = 0;
  std::vector<std::string> warnings;
};

/// The refusal of a file whose exporter got one tensor for several inputs, and
/// reads one of them in place of `unread`.
Failure oneForSeveral(llvm::ArrayRef<std::string> unread);

/// "/model/layers.0/Add" -> "model.layers.0.Add".
std::string cleanName(llvm::StringRef name);

/// The name of `loc`, with the user's line: "layers.0.mul (model.py:12)".
std::string placeOf(mlir::Location loc);

/// The line of the innermost frame of a Python stack trace, `File "x.py", line
/// 12, in forward`; unknown if there is none. The path is cut to the part after
/// the packages' folder, else to the file, because it is a path of another
/// machine.
mlir::LocationAttr lineOf(llvm::StringRef stackTrace,
                          mlir::MLIRContext &context);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_IMPORTER_H
