// Importer.h - an ONNX graph, node by node.
//
// Reads the messages that Model.h holds and passes their contents to
// frontend::Importer. Features that only ONNX has are here: functions,
// branches, exporters' notes, and checks for exporters that fold or merge
// weights.

#ifndef TMC_FRONTENDS_ONNX_IMPORTER_H
#define TMC_FRONTENDS_ONNX_IMPORTER_H

#include "frontends/common/Importer.h"
#include "frontends/onnx/Model.h"
#include "frontends/onnx/Node.h"

namespace tmc::onnx_import {

class OnnxImporter : public Importer {
public:
  OnnxImporter(Model model, const ImportOptions &options,
               mlir::MLIRContext &context);

  Expected<ImportedModel> run();

  // For Node.
  /// Imports the nodes of a graph, a function, or a body within a node, in the
  /// current scope.
  mlir::LogicalResult
  importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
              int64_t opset, bool isBody = false);
  /// The outputs of a body for `inputs`.
  mlir::FailureOr<llvm::SmallVector<Val>>
  importBody(Node &node, const onnx::GraphProto &graph,
             llvm::ArrayRef<Val> inputs);

  ModelFiles &files() { return *modelFiles; }

  /// The node of the current scope that makes `name`; null if there is none.
  const onnx::NodeProto *makerOf(const std::string &name) const;

private:
  /// Counts imported nodes, those of a body each time that it is imported.
  /// Fails if a model has more than any real model.
  mlir::LogicalResult spend(int64_t nodes);
  int64_t opsetOf(const std::string &domain) const;
  mlir::LogicalResult importCall(Node &node,
                                 const onnx::FunctionProto &function);
  mlir::FailureOr<Val> constantOf(Node &node, const onnx::TensorProto &tensor);
  void collectUses(const onnx::GraphProto &graph);
  // In the order in which `run` calls them.
  void checkOperators();
  mlir::LogicalResult readInitializers();
  void readSignature();
  mlir::LogicalResult diagnoseFolding();
  mlir::LogicalResult diagnoseMerging();
  mlir::FailureOr<std::vector<Declared>> inputs();
  std::vector<Output> outputs() const;
  std::optional<std::pair<ElementType, Dims>>
  declaredType(const std::string &name) const override;

  llvm::SmallVector<int> detachedInputs(
      Node &node,
      const google::protobuf::RepeatedPtrField<onnx::NodeProto> &all);
  onnx::NodeProto withDetached(const onnx::NodeProto &proto,
                               llvm::ArrayRef<int> places, mlir::Location loc);
  bool isReadForLost(const StoredTensor &tensor) const;

  onnx::ModelProto proto;
  std::map<std::string, int64_t> opsets;
  ModelFiles *modelFiles; ///< The store's.
  int64_t imported = 0;   ///< Nodes; those of a body count each time.
  /// The nodes of the graph, and of the bodies within it that are being
  /// imported, by the values that they make.
  std::vector<llvm::StringMap<const onnx::NodeProto *>> makers;
  /// The exported program's name of an initializer or input.
  llvm::StringMap<std::string> placeholders;
  llvm::StringSet<> parameters; ///< By the exporter's notes.
};

/// Imports the branch that is taken: `node`'s outputs become the graph's.
mlir::LogicalResult importBranch(Node &node, const onnx::GraphProto &graph);
/// Loops with a known number of trips.
mlir::LogicalResult importLoop(Node &node, const onnx::GraphProto &body);
mlir::LogicalResult importScan(Node &node, const onnx::GraphProto &body);
mlir::LogicalResult importSequenceMap(Node &node, const onnx::GraphProto &body);

/// The model's own sizes, for dimensions that the user leaves open.
std::map<std::string, int64_t> proposedDims(const onnx::ModelProto &model);

/// The location of a node: its place in the model, by the exporter's notes if
/// it has any, and the user's line.
mlir::Location locationOf(const onnx::NodeProto &node,
                          mlir::MLIRContext &context);

} // namespace tmc::onnx_import

#endif // TMC_FRONTENDS_ONNX_IMPORTER_H
