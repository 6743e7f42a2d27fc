// Importer.h - the state of one import, whatever file it reads.
//
// A frontend derives its own importer from this one. It says what the file has,
// in this order; what is common to all formats happens here:
//
//   frontend                          Importer
//   tensors of the file, their notes  arguments, or constants
//   inputs, with symbolic dimensions  bound by --batch and --dim; arguments
//   each node, by its name            names, what can't be read, what isn't
//                                     supported
//   outputs, buffers that change      results, the loss, roles, dead code
//
// Builders of operators see it through `Site`; see Import.h for what comes out.

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

/// Constant floats of more bytes than this aren't put in the IR: they are
/// arguments that aren't trained.
constexpr int64_t kMaxConstantBytes = 64 << 10;

/// What an argument of the function is.
struct Argument {
  enum Role { Param, State, Batch, Scalar };
  Role role = Batch;
  std::string name;
  int stored = -1; ///< For parameters and state.
  bool frozen = false;
  std::string init; ///< How a fresh one starts; empty: as its uses say.
};

/// A tensor of the file, and what has become of it.
struct StoredTensor {
  std::string name;                 ///< The user's; an argument's.
  std::string value;                ///< The graph's, where that is another one.
  std::vector<std::string> aliases; ///< The user's other names for it.
  ElementType type = ElementType::F32;
  Dims dims;
  bool mayBeMissing = false;             ///< It is in another file.
  enum Note { None, Parameter, Buffer }; ///< What the exporter says it is.
  Note note = None;
  bool frozen = false;          ///< The exporter says that it isn't trained.
  bool isPersistent = true;     ///< Of the model's state_dict.
  mlir::BlockArgument argument; ///< Null until something needs it.

  int64_t bytes() const; ///< -1 if that is no number.
  const std::string &valueName() const { return value.empty() ? name : value; }
};

/// An input or output as a file declares it.
struct Declared {
  struct Dim {
    int64_t size = 0;
    std::string symbol;  ///< Where the size isn't fixed.
    bool isKnown = true; ///< An output's may be left open without a symbol.
  };
  std::string name;
  std::optional<ElementType> type;
  std::string typeName; ///< For messages, where `type` is none of ours.
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
  /// Notes something unsupported; see Site::unsupported.
  void refuse(Refusal refusal) { refusals.push_back(std::move(refusal)); }
  /// Tells the user about something that isn't wrong.
  void warn(std::string what) { warnings.push_back(std::move(what)); }

  // Random numbers: the arguments are made when first asked for.
  mlir::Value seed();
  mlir::Value samples();
  int64_t nextStream() { return stream++; }
  int64_t batchSize() const { return batch; }

  /// The running statistic behind `v`, a stored tensor or the new value of one,
  /// which becomes a state: its newest value. Fails where `v` is something
  /// else.
  mlir::FailureOr<mlir::Value> stateOf(const Val &v);
  /// `next` is the new value of the state behind `v`.
  void updateState(const Val &v, mlir::Value next);
  /// The constant that `v` is if it is a stored tensor taken for a parameter by
  /// its type alone.
  std::optional<Val> asConstant(const Val &v) const;
  /// The fixed statistic behind `v`, if that is a stored tensor, becomes a
  /// state that no step changes; a fresh one starts as `init` says.
  void fixState(const Val &v, llvm::StringRef init);
  /// `v` without its gradient.
  Val detached(const Val &v, mlir::Location loc);
  /// True if a gradient flows from `v` to a tensor that is trained.
  bool isTrained(mlir::Value v) const;
  /// True if the exporter's signature says that a step writes the tensor behind
  /// `v`.
  bool isMutated(const Val &v) const;
  /// True if `v` is a stored tensor, by whatever name, or a state's new value.
  bool isStored(const Val &v) const { return storedBehind(v) >= 0; }

protected:
  Importer(std::unique_ptr<TensorStore> store, const ImportOptions &options,
           mlir::MLIRContext &context);

  // For frontends, in the order in which they call them.
  /// A value for each entry of `tensors`, which stay in step with the store's.
  mlir::LogicalResult addTensors();
  /// Sizes for the symbolic dimensions of `inputs`; `proposed` are the model's
  /// own, for those that the user leaves open.
  mlir::LogicalResult bindDims(llvm::ArrayRef<Declared> inputs,
                               const std::map<std::string, int64_t> &proposed);
  mlir::LogicalResult makeInputs(llvm::ArrayRef<Declared> inputs);
  /// Runs `import` for a node that reads and defines values of these names.
  /// What makes something unsupported gets stand-ins for its results, so that
  /// the nodes behind it are looked at, too; without a stand-in they are
  /// skipped.
  mlir::LogicalResult
  importNode(Site &site, llvm::ArrayRef<std::string> inputs,
             llvm::ArrayRef<std::string> outputs,
             llvm::function_ref<mlir::LogicalResult()> import);
  /// New values of buffers, by `mutated`.
  mlir::LogicalResult updateBuffers();
  /// `outputs` names values, and what the function's results are called.
  struct Output {
    std::string value;
    Declared declared;
  };
  mlir::LogicalResult importResults(std::vector<Output> outputs);
  mlir::LogicalResult attachLoss();
  mlir::LogicalResult finish();
  /// What `run` returns, `done` or not.
  Expected<ImportedModel> conclude(bool done);

  /// The type that the file gives a value that nothing has made, if it says
  /// all of it.
  virtual std::optional<std::pair<ElementType, Dims>>
  declaredType(const std::string &name) const = 0;
  /// `dims` with the sizes that were bound; nothing where one has none.
  std::optional<Dims> boundSizes(llvm::ArrayRef<Declared::Dim> dims) const;

  int storedBehind(const Val &v) const;
  /// The new value that the step has for tensor `index`; null if it has none.
  mlir::Value newValueOf(int index) const;
  /// True if the user keeps the parameter as it is.
  bool isFrozenByUser(llvm::StringRef name) const;
  /// `v`, which trained parameters reach, was made without gradients: the user
  /// is told if the loss depends on it.
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
  std::vector<Argument> arguments; ///< In step with the block's.
  std::vector<StoredTensor> tensors;
  llvm::StringMap<int> tensorOf;
  bool hasNotes = false; ///< The exporter tells parameters from buffers.
  /// Without notes: all names of tensors that could be a module's are one's.
  bool namesAreModules = false;
  /// The file is of an exporter that leaves no trace of torch.no_grad(), and to
  /// which one tensor that was given for two inputs is one input.
  bool leavesNoTraces = false;
  /// What a step writes may be a constant; else that is the old value, which
  /// the exporter's optimizer folded.
  bool mayWriteConstants = false;
  /// Outputs may be statistics' new values, which are none of the user's.
  bool listsStatistics = true;
  /// Buffers and parameters that a step of the exported program writes, and the
  /// names of their new values.
  llvm::StringMap<std::string> mutated;
  std::map<std::string, int64_t> bound;
  int64_t batch = 1;
  /// What names mean: the graph, and the bodies that are being imported. A
  /// branch sees what is around it, a function only its own.
  struct Scope {
    llvm::StringMap<Val> values;
    bool seesOuter = false;
  };
  std::vector<Scope> scopes;
  llvm::StringSet<> used;
  std::optional<Failure> failure;
  std::vector<Refusal> refusals;
  /// Said where buffers can't be updated: how to export the model.
  std::string howToKeepBuffers;
  /// Said of operators that have no importer: the way around most of them.
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
  /// The tensors that values are new values of.
  llvm::DenseMap<mlir::Value, int> newValues;
  std::vector<mlir::Value> cuts;
  std::vector<Output> outputs;
  mlir::Value seedArgument, samplesArgument;
  int64_t stream = 0;
  std::vector<std::string> warnings;
};

/// The refusal where the exporter was given one tensor for several inputs, and
/// reads one of them in place of `unread`.
Failure oneForSeveral(llvm::ArrayRef<std::string> unread);

/// "/model/layers.0/Add" -> "model.layers.0.Add".
std::string cleanName(llvm::StringRef name);

/// What `loc` is called, with the user's line: "layers.0.mul (model.py:12)".
std::string placeOf(mlir::Location loc);

/// The line of the innermost frame of a Python stack trace, `File "x.py", line
/// 12, in forward`; unknown where there is none. The path is cut to what
/// follows the packages' folder, else to the file: it is another machine's.
mlir::LocationAttr lineOf(llvm::StringRef stackTrace,
                          mlir::MLIRContext &context);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_IMPORTER_H
