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

#include "frontends/common/Forward.h"
#include "frontends/common/Import.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"

namespace tmc::frontend {

/// Constant floats of more bytes than this aren't put in the IR: they become
/// arguments that aren't trained.
constexpr int64_t kMaxConstantBytes = 64 << 10;

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
  Diagnostics diagnostics;
  /// The function in the making; it is complete after `finish`.
  Forward forward;
  /// The value of `name` in the innermost scope.
  const Val &lookup(const std::string &name) const;
  mlir::LogicalResult define(const std::string &name, Val v);
  bool isUsed(const std::string &name) const { return used.contains(name); }
  mlir::FailureOr<mlir::Value> materialise(const Val &v);
  mlir::FailureOr<mlir::Value>
  broadcast(const Val &v, llvm::ArrayRef<int64_t> dims, mlir::Location loc);
  mlir::FailureOr<Array> arrayOf(const Val &v);
  void fail(Failure f) { diagnostics.fail(std::move(f)); }
  /// Records an unsupported feature; see Site::unsupported.
  void refuse(Refusal refusal) {
    diagnostics.refusals.push_back(std::move(refusal));
  }
  /// Records a warning for the user.
  void warn(std::string what) {
    diagnostics.warnings.push_back(std::move(what));
  }

  /// An output of the model: the name of its value, and its declaration.
  struct Output {
    std::string value;
    Declared declared;
  };

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

  std::unique_ptr<TensorStore> store;
  ImportOptions options;
  mlir::MLIRContext &context;
  /// The new value of a tensor may be a constant. Otherwise a constant is the
  /// old value, which the exporter's optimizer folded.
  bool mayWriteConstants = false;
  /// Outputs may be new values of statistics, which aren't the user's outputs.
  bool listsStatistics = true;
  std::map<std::string, int64_t> bound;
  /// The values of names: in the graph, and in the bodies that are being
  /// imported. A branch sees the scope around it, a function only its own.
  struct Scope {
    llvm::StringMap<Val> values;
    bool seesOuter = false;
  };
  std::vector<Scope> scopes;
  llvm::StringSet<> used;
  /// The advice for models whose buffers can't be updated: how to export them.
  std::string howToKeepBuffers;
  /// The advice for operators without an importer: the usual way around them.
  std::string howToAvoid;

private:
  void poison(const std::string &name, mlir::Location loc);

  llvm::DenseMap<const Constant *, mlir::Value> constants;
  std::vector<std::shared_ptr<Constant>> kept; ///< Keys of `constants`.
  std::vector<Output> outputs;
};

/// The refusal of a file whose exporter got one tensor for several inputs, and
/// reads one of them in place of `unread`.
Failure oneForSeveral(llvm::ArrayRef<std::string> unread);

/// True if the user freezes the parameter, by any of its names.
bool isFrozen(const ImportOptions &options, const StoredTensor &tensor);

/// True if one of the tensor's names matches.
bool matchesName(const llvm::GlobPattern &glob, const StoredTensor &tensor);

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
