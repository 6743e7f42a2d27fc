// Importer.h - the state of one import, shared by the files of this folder.
//
// Operators see it through `Node`; see Import.h for what comes out.

#ifndef TMC_FRONTENDS_ONNX_IMPORTER_H
#define TMC_FRONTENDS_ONNX_IMPORTER_H

#include "frontends/onnx/Import.h"
#include "frontends/onnx/Model.h"
#include "frontends/onnx/Node.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace tmc::onnx_import {

/// What an argument of the function is.
struct Argument {
  enum Role { Param, State, Batch, Scalar };
  Role role = Batch;
  std::string name;
  int initializer = -1; ///< For parameters and state.
  bool frozen = false;
  std::string init; ///< How a fresh one starts; empty: as its uses say.
};

/// An initializer, and what has become of it.
struct Initializer {
  TensorData data;
  enum Note { None, Parameter, Buffer }; ///< What the exporter says it is.
  Note note = None;
  mlir::BlockArgument argument; ///< Null until something needs it.
};

class Importer {
public:
  Importer(Model model, const ImportOptions &options,
           mlir::MLIRContext &context);

  Expected<ImportedModel> run();

  // For Node.
  mlir::OpBuilder b;
  /// The value of `name` in the innermost scope.
  const Val &lookup(const std::string &name) const;
  mlir::LogicalResult define(const std::string &name, Val v);
  bool isUsed(const std::string &name) const { return used.contains(name); }
  mlir::FailureOr<mlir::Value> materialise(const Val &v);
  mlir::FailureOr<mlir::Value>
  broadcast(const Val &v, llvm::ArrayRef<int64_t> dims, mlir::Location loc);
  mlir::FailureOr<Array> arrayOf(const Val &v);
  /// Imports the nodes of a graph or function body in the current scope.
  mlir::LogicalResult
  importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
              int64_t opset);
  /// Imports a branch that is taken: `node`'s outputs become the graph's.
  mlir::LogicalResult importBranch(Node &node, const onnx::GraphProto &graph);
  void fail(Failure f) {
    if (!failure)
      failure = std::move(f);
  }
  /// Notes something unsupported; see Node::unsupported.
  void refuse(std::string what) { refusals.push_back(std::move(what)); }

  /// Tells the user about something that isn't wrong.
  void warn(std::string what) { warnings.push_back(std::move(what)); }
  ModelFiles &files() { return *model.files; }

  // Random numbers: the arguments are made when first asked for.
  mlir::Value seed();
  mlir::Value samples();
  int64_t nextStream() { return stream++; }
  int64_t batchSize() const { return batch; }

  /// The running statistic behind `v`, an initializer, which becomes a state:
  /// its newest value. Fails where `v` is something computed.
  mlir::FailureOr<mlir::Value> stateOf(const Val &v);
  /// `next` is the new value of the state behind `v`.
  void updateState(const Val &v, mlir::Value next);
  /// The constant that `v` is if it is an initializer taken for a parameter by
  /// its type alone.
  std::optional<Val> asConstant(const Val &v) const;
  /// The fixed statistic behind `v`, if that is an initializer, becomes a state
  /// that no step changes; a fresh one starts as `init` says.
  void fixState(const Val &v, llvm::StringRef init);
  /// `v` without its gradient.
  Val detached(const Val &v, mlir::Location loc);
  /// True if the exporter's signature says that a step writes the initializer
  /// behind `v`.
  bool isMutated(const Val &v) const;
  /// True if `v` is an initializer, by whatever name.
  bool isInitializer(const Val &v) const { return initializerBehind(v) >= 0; }

  const onnx::ModelProto &proto() const { return model.proto; }
  int64_t opsetOf(const std::string &domain) const;

private:
  mlir::LogicalResult importCall(Node &node,
                                 const onnx::FunctionProto &function);
  const onnx::FunctionProto *functionOf(const onnx::NodeProto &node) const;
  /// Defines `node`'s outputs as `values`.
  mlir::LogicalResult defineOutputs(Node &node, llvm::ArrayRef<Val> values);
  // In the order in which `run` calls them.
  mlir::LogicalResult checkOperators();
  mlir::LogicalResult readInitializers();
  void readSignature();
  mlir::LogicalResult bindDims();
  mlir::LogicalResult makeInputs();
  mlir::LogicalResult importResults();
  mlir::LogicalResult attachLoss();
  mlir::LogicalResult diagnoseFolding();
  mlir::LogicalResult finish();

  int initializerBehind(const Val &v) const;
  std::optional<std::string>
  detachedInput(const Node &node,
                const google::protobuf::RepeatedPtrField<onnx::NodeProto> &all);
  mlir::LogicalResult diagnoseMerging();
  mlir::LogicalResult updateBuffers();

  mlir::LogicalResult lossFromOutput(const std::string &name);
  mlir::LogicalResult lossFromCall(const std::string &function,
                                   const std::string &lhs,
                                   const std::string &rhs);
  mlir::FailureOr<mlir::Value> lossPrediction(const std::string &name);
  mlir::FailureOr<mlir::Value> lossTarget(const std::string &name,
                                          mlir::RankedTensorType type);
  void setLoss(mlir::Value value, const std::string &name);
  mlir::FailureOr<mlir::Value> addArgument(mlir::Type type, Argument argument);
  mlir::BlockArgument argumentOf(Initializer &initializer);
  bool isTrainable(const Initializer &initializer) const;
  void collectUses(const onnx::GraphProto &graph);
  void removeDeadCode();
  void removeUnusedArguments();
  mlir::LogicalResult setAttributes();

  Model model;
  ImportOptions options;
  mlir::MLIRContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  std::vector<Argument> arguments; ///< In step with the block's.
  std::vector<Initializer> initializers;
  llvm::StringMap<int> initializerOf;
  bool hasNotes = false; ///< The exporter tells parameters from buffers.
  /// Buffers that a step of the exported program writes, and the names of
  /// their new values.
  llvm::StringMap<std::string> mutated;
  /// What the exported program calls an initializer or input.
  llvm::StringMap<std::string> placeholders;
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
  llvm::DenseMap<const Constant *, mlir::Value> constants;
  std::vector<std::shared_ptr<Constant>> kept; ///< Keys of `constants`.
  struct Result {
    mlir::Value value;
    std::string name;
    bool isLoss = false;
    int updates = -1; ///< Index into `initializers`.
  };
  std::vector<Result> results;
  mlir::Value seedArgument, samplesArgument;
  int64_t stream = 0;
  std::optional<Failure> failure;
  std::vector<std::string> refusals;
  std::vector<std::string> warnings;
};

/// The location of a node: its place in the model, by the exporter's notes if
/// it has any, and the user's line.
mlir::Location locationOf(const onnx::NodeProto &node,
                          mlir::MLIRContext &context);

/// "/model/layers.0/Add" -> "model.layers.0.Add".
std::string cleanName(llvm::StringRef name);

/// Roles and initializations, from the finished function: sets train.frozen and
/// train.init on parameters. Defined in Roles.cpp.
void inferInitialization(mlir::func::FuncOp function, mlir::Value loss,
                         llvm::ArrayRef<bool> isParameter);
/// A mean and a variance, arguments of the function that a normalization in
/// pieces reads. Defined in Roles.cpp.
struct Statistics {
  mlir::BlockArgument mean, variance;
};
/// Those of all normalizations by numbers that the graph doesn't compute.
llvm::SmallVector<Statistics> givenStatistics(mlir::func::FuncOp function);
/// The parameters from which floats flow to `loss` (to any result if null).
llvm::SmallVector<bool> reachesLoss(mlir::func::FuncOp function,
                                    mlir::Value loss);

} // namespace tmc::onnx_import

#endif // TMC_FRONTENDS_ONNX_IMPORTER_H
