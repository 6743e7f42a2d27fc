#include "frontends/onnx/Importer.h"
#include "frontends/Checked.h"
#include "frontends/common/Inputs.h"
#include "frontends/onnx/TorchCall.h"

#include "dialects/train/Train.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/GlobPattern.h"

#include <set>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

constexpr const char *kKind = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr const char *kFoldedFrom = "pkg.onnxscript.optimizer.folded_from";
constexpr const char *kSignature =
    "pkg.torch.export.ExportedProgram.graph_signature";

/// The most nodes of a model. A file of two kilobytes may hold functions that
/// call each other twice, 32 deep, or loops in loops; the largest trained
/// models have some ten thousand nodes.
constexpr int64_t kMaxNodes = 1 << 17;
/// A node that computes on this many constant elements counts as one more node:
/// a billion elements take some seconds and, at eight bytes each, 8 GiB.
constexpr int64_t kElementsOfNode = 1 << 13;

namespace {
/// The tensors of a model's own file, and of its external files.
class FileTensors : public TensorStore {
public:
  explicit FileTensors(std::unique_ptr<ModelFiles> files)
      : files(std::move(files)) {}

  Expected<std::string_view> read(int index) override {
    return files->read(tensors[index]);
  }
  std::string fileOf(int index) const override {
    return tensors[index].location;
  }

  std::unique_ptr<ModelFiles> files;
  std::vector<TensorData> tensors;
};
} // namespace

OnnxImporter::OnnxImporter(Model model, const ImportOptions &options,
                           MLIRContext &context)
    : Importer(std::make_unique<FileTensors>(std::move(model.files)), options,
               context),
      proto(std::move(model.proto)), opsets(std::move(model.opsets)),
      modelFiles(static_cast<FileTensors &>(*store).files.get()) {
  howToKeepBuffers = "export with optimize=False, and use the buffer after it "
                     "is updated or leave the update out of forward";
  howToAvoid = "write it with other operators, or export the model as .pt2, "
               "where it may be another";
}

Expected<ImportedModel> OnnxImporter::run() {
  auto done = [&]() -> LogicalResult {
    checkOperators();
    if (failed(readInitializers()) || failed(diagnoseFolding()) ||
        failed(diagnoseMerging()))
      return mlir::failure();
    FailureOr<std::vector<Declared>> declared = inputs();
    if (failed(declared) || failed(bindDims(*declared, proposedDims(proto))) ||
        failed(makeInputs(*declared)) ||
        failed(importNodes(proto.graph().node(), opsetOf(""))))
      return mlir::failure();
    if (!diagnostics.refusals.empty())
      return mlir::failure();
    if (failed(updateBuffers()) || failed(importResults(outputs())) ||
        failed(attachLoss()) || failed(finish()))
      return mlir::failure();
    markUncut(forward.function, *declared);
    return success();
  };
  return conclude(succeeded(done()));
}

int64_t OnnxImporter::opsetOf(const std::string &domain) const {
  auto found = opsets.find(domain == "ai.onnx" ? "" : domain);
  return found == opsets.end() ? 1 : found->second;
}

//===----------------------------------------------------------------------===//
// Before the first node
//===----------------------------------------------------------------------===//

static std::string domainOf(const onnx::NodeProto &node) {
  return node.domain() == "ai.onnx" ? "" : node.domain();
}

void OnnxImporter::collectUses(const onnx::GraphProto &graph) {
  for (const auto &node : graph.node()) {
    for (const std::string &name : node.input())
      used.insert(name);
    for (const auto &attribute : node.attribute())
      if (attribute.has_g())
        collectUses(attribute.g());
  }
  for (const auto &output : graph.output())
    used.insert(output.name());
}

/// Refuses every operator that has no importer.
void OnnxImporter::checkOperators() {
  std::set<std::pair<std::string, std::string>> functions;
  for (const auto &function : proto.functions())
    functions.insert({function.domain(), function.name()});
  auto check = [&](const auto &nodes) {
    for (const onnx::NodeProto &node : nodes)
      if (!findOperator(domainOf(node), node.op_type()) &&
          !functions.count({node.domain(), node.op_type()}))
        (void)Node(*this, node, locationOf(node, context), 0).unsupported("");
  };
  check(proto.graph().node());
  for (const auto &function : proto.functions())
    check(function.node());
  collectUses(proto.graph());
  for (const auto &function : proto.functions()) {
    for (const auto &node : function.node())
      for (const std::string &name : node.input())
        used.insert(name);
    for (const std::string &name : function.output())
      used.insert(name);
  }
}

/// Lines of the graph signature: "p_fc_weight: PARAMETER target='fc.weight'",
/// "getitem_3: BUFFER_MUTATION target='bn.mean'".
void OnnxImporter::readSignature() {
  std::string signature = metadata(proto.graph(), kGraphMetadata, kSignature);
  StringRef rest(signature);
  while (!rest.empty()) {
    auto [line, more] = rest.split('\n');
    rest = more;
    auto [head, target] = line.split(" target='");
    StringRef name = target.take_until([](char c) { return c == '\''; });
    StringRef placeholder = head.split(':').first;
    if (head.ends_with("USER_INPUT"))
      placeholders[placeholder] = placeholder.str();
    if (name.empty())
      continue;
    if (head.ends_with("BUFFER_MUTATION")) {
      forward.mutated[name] = placeholder.str();
      continue;
    }
    if (head.ends_with("PARAMETER_MUTATION")) {
      refuse({"parameter", name.str(), "",
              "forward writes it, and the file doesn't say whether it is "
              "trained, too (export the model as .pt2, where it does)"});
      continue;
    }
    placeholders[placeholder] = name.str();
    if (head.ends_with("PARAMETER"))
      parameters.insert(name);
    auto found = forward.tensorOf.find(name);
    if (found == forward.tensorOf.end())
      continue;
    forward.hasNotes = true;
    forward.tensors[found->second].note = head.ends_with("PARAMETER")
                                              ? StoredTensor::Parameter
                                              : StoredTensor::Buffer;
  }
}

LogicalResult OnnxImporter::readInitializers() {
  const auto &graph = proto.graph();
  if (graph.sparse_initializer_size())
    return fail(Failure::unsupported(
               "the model has " +
               std::to_string(graph.sparse_initializer_size()) +
               " sparse initializers")),
           mlir::failure();
  for (const auto &tensor : graph.initializer()) {
    auto data = locate(tensor);
    if (!data)
      return fail(data.failure()), mlir::failure();
    if (!forward.tensorOf.try_emplace(tensor.name(), forward.tensors.size())
             .second)
      return fail(Failure::input("the model has two initializers named '" +
                                 tensor.name() + "'")),
             mlir::failure();
    StoredTensor stored;
    stored.name = data->name;
    stored.type = data->type;
    stored.dims = data->dims;
    stored.mayBeMissing = data->place == TensorData::External;
    forward.tensors.push_back(std::move(stored));
    static_cast<FileTensors &>(*store).tensors.push_back(std::move(*data));
  }
  readSignature();
  for (const auto &value : graph.value_info()) {
    std::string kind = metadata(value, kValueMetadata, kKind);
    auto found = forward.tensorOf.find(value.name());
    if (kind.empty() || found == forward.tensorOf.end())
      continue;
    forward.hasNotes = true;
    forward.tensors[found->second].note =
        kind == "PARAMETER" ? StoredTensor::Parameter : StoredTensor::Buffer;
  }
  // The TorchScript exporter keeps the names of modules, and adds no notes; the
  // other exporter may have merged two inputs into one.
  forward.namesAreModules =
      !forward.hasNotes && proto.producer_name() == "pytorch";
  forward.leavesNoTraces = forward.hasNotes;
  return addTensors();
}

/// True if parameters are missing from the graph, and `tensor`, which is no
/// parameter, takes the place of a value that the exported program computed.
/// The exporter most likely computed the tensor from the missing parameters.
bool OnnxImporter::isReadForLost(const StoredTensor &tensor) const {
  bool isOneLost = llvm::any_of(parameters, [&](const auto &entry) {
    return !forward.tensorOf.contains(entry.first());
  });
  if (!isOneLost || tensor.note != StoredTensor::None)
    return false;
  return llvm::any_of(proto.graph().node(), [&](const auto &node) {
    if (!llvm::is_contained(node.input(), tensor.name))
      return false;
    std::optional<TorchCall> call = torchCallOf(node);
    return call && llvm::is_contained(call->operands(), tensor.name) &&
           !placeholders.contains(tensor.name);
  });
}

/// Refuses exports with folded constants: their weights have lost their names,
/// and training the folded ones would be a mistake.
LogicalResult OnnxImporter::diagnoseFolding() {
  std::vector<std::string> norms;
  for (const auto &node : proto.graph().node())
    if (StringRef(
            metadata(node, kNodeMetadata, "pkg.onnxscript.rewriter.rule_name"))
            .contains("FuseBatchNorm"))
      norms.push_back(node.name());
  if (!norms.empty()) {
    Failure f = Failure::input(
        "the exporter has folded " + std::to_string(norms.size()) +
        (norms.size() == 1 ? " batch normalization" : " batch normalizations") +
        " into other weights: their scales, shifts and statistics can't be "
        "trained any more");
    f.notes.push_back("folded: " + listed(norms));
    f.notes.push_back("export the model in training mode with optimize=False");
    fail(std::move(f));
    return mlir::failure();
  }
  std::vector<std::string> folded;
  std::map<std::string, std::string> from;
  for (const auto &value : proto.graph().value_info())
    from[value.name()] = metadata(value, kValueMetadata, kFoldedFrom);
  for (const StoredTensor &tensor : forward.tensors) {
    StringRef name = tensor.name;
    // The sources of the folded tensor: "['a', 'mul', 'val_0']".
    std::vector<std::string> lost;
    StringRef rest = from[tensor.name];
    while (!rest.empty()) {
      StringRef source = rest.split('\'').second.split('\'').first;
      rest = rest.split('\'').second.split('\'').second;
      if (parameters.contains(source))
        lost.push_back(source.str());
    }
    if (isFloat(tensor.type) && !lost.empty()) {
      folded.push_back(tensor.name + " of " + listed(lost));
      continue;
    }
    bool isWeight =
        isFloat(tensor.type) && tensor.dims.size() >= 2 && tensor.bytes() > 256;
    bool byTorchScript = name.consume_front("onnx::");
    auto count = name.rsplit('_').second;
    bool counted = !count.empty() && llvm::all_of(count, llvm::isDigit);
    bool byDynamo = name.starts_with("val_") && counted && forward.hasNotes &&
                    tensor.note == StoredTensor::None;
    if (isWeight && ((byTorchScript && counted) || byDynamo))
      folded.push_back(tensor.name);
    else if (isFloat(tensor.type) && from[tensor.name].empty() &&
             isReadForLost(tensor))
      folded.push_back(tensor.name);
  }
  if (folded.empty())
    return success();
  Failure f = Failure::input(
      "the exporter has folded constants: " + std::to_string(folded.size()) +
      (folded.size() == 1 ? " weight has" : " weights have") +
      " lost the model's names");
  f.notes.push_back("folded: " + listed(folded));
  f.notes.push_back("export the model in training mode with "
                    "do_constant_folding=False (and optimize=False)");
  fail(std::move(f));
  return mlir::failure();
}

/// If the model isn't in training mode, the TorchScript exporter merges equal
/// initializers into one, and uses an Identity of it for the others. The
/// tensors of a batch normalization are never shared on purpose.
LogicalResult OnnxImporter::diagnoseMerging() {
  llvm::StringMap<std::string> standIns;
  for (const auto &node : proto.graph().node())
    if (node.op_type() == "Identity" && node.input_size() == 1 &&
        node.output_size() == 1 && forward.tensorOf.contains(node.input(0)))
      standIns[node.output(0)] = node.input(0);
  std::vector<std::string> merged;
  for (const auto &node : proto.graph().node())
    if (node.op_type() == "BatchNormalization")
      for (const std::string &name : llvm::drop_begin(node.input()))
        if (auto found = standIns.find(name); found != standIns.end())
          merged.push_back(name + " with " + found->second);
  if (merged.empty())
    return success();
  Failure f = Failure::input(
      "the exporter has merged " + std::to_string(merged.size()) +
      " tensors of batch normalizations with others, because their values were "
      "equal");
  f.notes.push_back("merged: " + listed(merged));
  f.notes.push_back("export the model in training mode: model.train(), then "
                    "eval() for the layers that stay fixed");
  fail(std::move(f));
  return mlir::failure();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// True if an exported program would give this name, "detach_1", to a detached
/// value.
static bool isDetach(StringRef name) {
  return name.rtrim("0123456789").rtrim('_') == "detach";
}

/// The exporter's optimizer removes the Identity that stands for a detach(),
/// but the noted call of its reader still names the detached value: an input
/// that the call doesn't name, or names less often than the node reads it, is
/// detached. Returns the places of such inputs, if a gradient would flow there;
/// refuses the node if the note allows several readings.
SmallVector<int> OnnxImporter::detachedInputs(
    Node &node,
    const google::protobuf::RepeatedPtrField<onnx::NodeProto> &all) {
  if (scopes.size() > 1 || node.proto.op_type() == "Identity")
    return {};
  std::optional<TorchCall> call = torchCallOf(node.proto);
  if (!call)
    return {};
  int64_t detaches = 0, unknown = 0;
  llvm::StringMap<int64_t> named; // The number of times.
  std::vector<std::string> operands;
  for (const std::string &operand : call->operands()) {
    auto placeholder = placeholders.find(operand);
    std::string name =
        placeholder == placeholders.end() ? operand : placeholder->second;
    operands.push_back(name);
    if (++named[name] > 1 || placeholder != placeholders.end() ||
        lookup(name).kind != Val::Absent)
      continue;
    ++(isDetach(name) ? detaches : unknown);
  }
  if (!detaches)
    return {};
  const auto &inputs = node.proto.input();
  auto mayBeDetached = [&](const std::string &name) {
    const Val &v = lookup(name);
    if (!v.isTensor() || !isFloat(v.type) || forward.isInput(v))
      return false;
    // A node of the same call made it.
    return llvm::none_of(all, [&](const onnx::NodeProto &other) {
      return llvm::is_contained(other.output(), name) &&
             metadata(other, kNodeMetadata, "pkg.torch.onnx.fx_node") ==
                 metadata(node.proto, kNodeMetadata, "pkg.torch.onnx.fx_node");
    });
  };
  SmallVector<int> places;
  std::vector<std::string> unnamed;
  bool isClear = !unknown;
  for (const std::string &name :
       std::set<std::string>(inputs.begin(), inputs.end())) {
    int64_t reads = llvm::count(inputs, name), asIs = named.lookup(name);
    if (reads <= asIs || !mayBeDetached(name))
      continue;
    unnamed.push_back(name);
    // For several reads of one value, the order of the call's operands
    // distinguishes them.
    isClear &= asIs == 0 || operands.size() == size_t(inputs.size());
    for (int i = 0; i < inputs.size(); ++i)
      if (inputs[i] == name &&
          (asIs == 0 || (size_t(i) < operands.size() && isDetach(operands[i]))))
        places.push_back(i);
  }
  if (unnamed.empty())
    return {};
  if (unnamed.size() == 1 && isClear)
    return places;
  (void)node.unsupported(
      "reads a detached value, and the exporter's optimizer has removed which "
      "(export with optimize=False)");
  return {};
}

/// Copies `proto`, with inputs at `places` renamed to detached values.
onnx::NodeProto OnnxImporter::withDetached(const onnx::NodeProto &proto,
                                           ArrayRef<int> places, Location loc) {
  onnx::NodeProto copy = proto;
  for (int place : places) {
    std::string name = proto.input(place) + " detached";
    Val v = forward.detached(lookup(proto.input(place)), loc);
    scopes.back().values[name] = std::move(v);
    copy.set_input(place, name);
  }
  return copy;
}

LogicalResult OnnxImporter::spend(int64_t nodes) {
  imported += nodes;
  if (imported <= kMaxNodes)
    return success();
  fail(Failure::unsupported("the model has more than " +
                            std::to_string(kMaxNodes) +
                            " nodes, each trip of its loops and each call of "
                            "its functions counted")
           .note("export it with fewer steps of its loops"));
  return mlir::failure();
}

const onnx::NodeProto *OnnxImporter::makerOf(const std::string &name) const {
  return makers.empty() ? nullptr : makers.back().lookup(name);
}

/// Refuses a node whose noted call has an argument that the node lacks.
static LogicalResult checkNote(Node &node) {
  std::optional<TorchCall> call = torchCallOf(node.proto);
  std::optional<std::string> lost = call ? lostArgument(*call) : std::nullopt;
  return lost ? node.unsupported("argument " + *lost +
                                 " of the call that the node was exported from")
              : success();
}

/// The function of the model that `node` calls, or null.
static const onnx::FunctionProto *functionOf(const onnx::ModelProto &model,
                                             const onnx::NodeProto &node) {
  for (const auto &function : model.functions())
    if (function.domain() == node.domain() && function.name() == node.op_type())
      return &function;
  return nullptr;
}

LogicalResult OnnxImporter::importNodes(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
    int64_t opset, bool isBody) {
  auto &made = makers.emplace_back();
  for (const onnx::NodeProto &node : nodes)
    for (const std::string &name : node.output())
      made[name] = &node;
  llvm::scope_exit leave([&] { makers.pop_back(); });
  for (const onnx::NodeProto &proto : nodes) {
    if (failed(spend(1)))
      return mlir::failure();
    std::string domain = domainOf(proto);
    Node node(*this, proto, locationOf(proto, context),
              domain.empty() ? opset : opsetOf(domain));
    std::vector<std::string> reads(proto.input().begin(), proto.input().end());
    std::vector<std::string> makes(proto.output().begin(),
                                   proto.output().end());
    ImportFn fn = findOperator(domain, proto.op_type());
    const onnx::FunctionProto *callee =
        fn ? nullptr : functionOf(this->proto, proto);
    // Nodes of the graph and of functions have been refused already.
    if (!fn && !callee && isBody)
      (void)node.unsupported("");
    auto import = [&]() -> LogicalResult {
      size_t refusalsBefore = diagnostics.refusals.size();
      SmallVector<int> cut = detachedInputs(node, nodes);
      if (diagnostics.refusals.size() > refusalsBefore)
        return mlir::failure();
      LogicalResult done = checkNote(node);
      if (failed(done))
        return done;
      // The importer's copy of the node records the inputs and attributes read.
      const onnx::NodeProto copy =
          cut.empty() ? onnx::NodeProto() : withDetached(proto, cut, node.loc);
      Node again(*this, cut.empty() ? proto : copy, node.loc, node.opset);
      done = fn ? fn(again) : importCall(again, *callee);
      return fn && succeeded(done) ? again.checkAllRead() : done;
    };
    llvm::function_ref<LogicalResult()> known;
    if (fn || callee)
      known = import;
    if (failed(importNode(node, reads, makes, known)))
      return mlir::failure();
    auto elementsOf = [&](const std::string &name) -> int64_t {
      const Val &v = lookup(name);
      return v.isConst() && v.constant->array ? v.constant->array->distinct()
                                              : 0;
    };
    // A node whose results aren't constant reads constants when the step runs.
    if (llvm::none_of(makes, [&](const std::string &name) {
          return lookup(name).isConst();
        }))
      continue;
    for (const auto *names : {&reads, &makes})
      for (const std::string &name : *names)
        if (failed(spend(elementsOf(name) / kElementsOfNode)))
          return mlir::failure();
  }
  return success();
}

std::optional<std::pair<ElementType, Dims>>
OnnxImporter::declaredType(const std::string &name) const {
  auto find = [&](const auto &values) -> const onnx::ValueInfoProto * {
    for (const auto &value : values)
      if (value.name() == name && value.type().has_tensor_type() &&
          value.type().tensor_type().has_shape())
        return &value;
    return nullptr;
  };
  const auto *found =
      scopes.size() > 1 ? nullptr : find(proto.graph().value_info());
  if (!found && scopes.size() == 1)
    found = find(proto.graph().output());
  if (!found)
    return std::nullopt;
  const auto &tensor = found->type().tensor_type();
  SmallVector<Declared::Dim> dims;
  for (const auto &dim : tensor.shape().dim())
    dims.push_back({dim.dim_value(), dim.dim_param(),
                    dim.has_dim_value() || dim.has_dim_param()});
  auto type = typeOfNumber(tensor.elem_type());
  std::optional<Dims> sizes = boundSizes(dims);
  if (!type || !sizes)
    return std::nullopt;
  return std::pair(*type, *sizes);
}
