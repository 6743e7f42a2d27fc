#include "frontends/onnx/Importer.h"
#include "frontends/Checked.h"
#include "frontends/onnx/TorchCall.h"

#include "dialects/train/Train.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/GlobPattern.h"

#include <set>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// Constant floats of more bytes than this aren't put in the IR: they are
/// arguments that aren't trained.
constexpr int64_t kMaxConstantBytes = 64 << 10;
/// No tensor of the IR may have more elements.
constexpr int64_t kMaxElements = int64_t(1) << 46;

constexpr const char *kKind = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr const char *kSignature =
    "pkg.torch.export.ExportedProgram.graph_signature";

Importer::Importer(Model model, const ImportOptions &options,
                   MLIRContext &context)
    : b(&context), model(std::move(model)), options(options), context(context) {
}

Expected<ImportedModel> Importer::run() {
  context.loadDialect<arith::ArithDialect, math::MathDialect, func::FuncDialect,
                      nn::NNDialect, train::TrainDialect>();
  Location loc = UnknownLoc::get(&context);
  module = ModuleOp::create(loc);
  b.setInsertionPointToStart(module->getBody());
  function = func::FuncOp::create(b, loc, "forward", b.getFunctionType({}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
  scopes.emplace_back();

  bool done = succeeded(checkOperators()) && succeeded(readInitializers()) &&
              succeeded(diagnoseFolding()) && succeeded(diagnoseMerging()) &&
              succeeded(bindDims()) && succeeded(makeInputs()) &&
              succeeded(importNodes(model.proto.graph().node(), opsetOf("")));
  if (done && refusals.empty())
    done = succeeded(updateBuffers()) && succeeded(importResults()) &&
           succeeded(attachLoss()) && succeeded(finish());
  if (failure)
    return *failure;
  if (!refusals.empty()) {
    Failure all = Failure::unsupported(
        refusals.size() == 1
            ? "the model has an operator that isn't supported here"
            : "the model has " + std::to_string(refusals.size()) +
                  " operators that aren't supported here");
    all.notes = refusals;
    return all;
  }
  if (!done)
    return Failure::defect("importing failed without saying why");

  ImportedModel result;
  std::vector<TensorData> tensors;
  for (const Argument &argument : arguments)
    if (argument.initializer >= 0)
      tensors.push_back(std::move(initializers[argument.initializer].data));
  result.module = std::move(module);
  result.weights =
      std::make_unique<Weights>(std::move(model.files), std::move(tensors));
  result.warnings = std::move(warnings);
  return result;
}

int64_t Importer::opsetOf(const std::string &domain) const {
  auto found = model.opsets.find(domain == "ai.onnx" ? "" : domain);
  return found == model.opsets.end() ? 1 : found->second;
}

//===----------------------------------------------------------------------===//
// Before the first node
//===----------------------------------------------------------------------===//

static std::string domainOf(const onnx::NodeProto &node) {
  return node.domain() == "ai.onnx" ? "" : node.domain();
}

void Importer::collectUses(const onnx::GraphProto &graph) {
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

/// Lists every operator that has no importer, with the names of its nodes.
LogicalResult Importer::checkOperators() {
  std::set<std::pair<std::string, std::string>> functions;
  for (const auto &function : model.proto.functions())
    functions.insert({function.domain(), function.name()});
  std::map<std::string, std::vector<std::string>> missing;
  auto check = [&](const auto &nodes) {
    for (const onnx::NodeProto &node : nodes)
      if (!findOperator(domainOf(node), node.op_type()) &&
          !functions.count({node.domain(), node.op_type()})) {
        std::string name = node.domain().empty()
                               ? node.op_type()
                               : node.domain() + "." + node.op_type();
        missing[name].push_back(!node.name().empty()     ? node.name()
                                : node.output_size() > 0 ? node.output(0)
                                                         : "unnamed");
      }
  };
  check(model.proto.graph().node());
  for (const auto &function : model.proto.functions())
    check(function.node());
  collectUses(model.proto.graph());
  for (const auto &function : model.proto.functions()) {
    for (const auto &node : function.node())
      for (const std::string &name : node.input())
        used.insert(name);
    for (const std::string &name : function.output())
      used.insert(name);
  }
  if (missing.empty())
    return success();
  Failure all =
      Failure::unsupported("the model has " + std::to_string(missing.size()) +
                           (missing.size() == 1 ? " operator that isn't"
                                                : " operators that aren't") +
                           " supported");
  for (const auto &[op, nodes] : missing) {
    constexpr size_t kNamed = 4;
    std::string text = op + ", " + std::to_string(nodes.size()) +
                       (nodes.size() == 1 ? " time: " : " times: ");
    for (size_t i = 0; i < nodes.size() && i < kNamed; ++i)
      text += (i ? ", " : "") + nodes[i];
    if (nodes.size() > kNamed)
      text += " and " + std::to_string(nodes.size() - kNamed) + " more";
    all.notes.push_back(text);
  }
  fail(std::move(all));
  return mlir::failure();
}

/// Lines of the graph signature: "p_fc_weight: PARAMETER target='fc.weight'",
/// "getitem_3: BUFFER_MUTATION target='bn.mean'".
void Importer::readSignature() {
  std::string signature =
      metadata(model.proto.graph(), kGraphMetadata, kSignature);
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
      mutated[name] = placeholder.str();
      continue;
    }
    placeholders[placeholder] = name.str();
    auto found = initializerOf.find(name);
    if (found == initializerOf.end())
      continue;
    hasNotes = true;
    initializers[found->second].note = head.ends_with("PARAMETER")
                                           ? Initializer::Parameter
                                           : Initializer::Buffer;
  }
}

LogicalResult Importer::readInitializers() {
  const auto &graph = model.proto.graph();
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
    if (!initializerOf.try_emplace(tensor.name(), initializers.size()).second)
      return fail(Failure::input("the model has two initializers named '" +
                                 tensor.name() + "'")),
             mlir::failure();
    initializers.push_back({std::move(*data), Initializer::None, {}});
  }
  readSignature();
  for (const auto &value : graph.value_info()) {
    std::string kind = metadata(value, kValueMetadata, kKind);
    auto found = initializerOf.find(value.name());
    if (kind.empty() || found == initializerOf.end())
      continue;
    hasNotes = true;
    initializers[found->second].note =
        kind == "PARAMETER" ? Initializer::Parameter : Initializer::Buffer;
  }
  for (auto [i, initializer] : llvm::enumerate(initializers)) {
    const TensorData &data = initializer.data;
    Val v;
    v.type = data.type;
    v.dims = data.dims;
    bool isArgument = isTrainable(initializer);
    // A large float table outside the file may be missing: nothing is folded
    // from it.
    if (isFloat(data.type) && data.place == TensorData::External &&
        data.length > kMaxConstantBytes)
      isArgument = true;
    // Its value changes: nothing is folded from it.
    bool isWritten = isFloat(data.type) && mutated.contains(data.name);
    isArgument |= isWritten;
    if (isArgument) {
      if (!irType(data.type, &context))
        return fail(Failure::unsupported("parameter '" + data.name +
                                         "' has elements of type " +
                                         nameOf(data.type))),
               mlir::failure();
      v = Val(Value(argumentOf(initializer)));
      if (isWritten)
        arguments[initializer.argument.getArgNumber()].role = Argument::State;
    } else {
      v.kind = Val::Const;
      v.constant = std::make_shared<Constant>();
      v.constant->initializer = i;
    }
    scopes.back().values[data.name] = std::move(v);
  }
  return success();
}

/// A float initializer of more than one element, unless the exporter's notes
/// say otherwise. Whether a path leads from it to the loss is seen at the end.
bool Importer::isTrainable(const Initializer &initializer) const {
  if (!isFloat(initializer.data.type))
    return false;
  if (hasNotes)
    return initializer.note == Initializer::Parameter;
  auto count = checkedNumElements(initializer.data.dims);
  return count && *count > 1;
}

BlockArgument Importer::argumentOf(Initializer &initializer) {
  if (!initializer.argument) {
    const TensorData &data = initializer.data;
    auto type = RankedTensorType::get(data.dims, irType(data.type, &context));
    Argument argument;
    argument.role = Argument::Param;
    argument.name = data.name;
    argument.initializer = &initializer - initializers.data();
    argument.frozen = !isTrainable(initializer);
    arguments.push_back(argument);
    initializer.argument = function.getBody().front().addArgument(
        type, NameLoc::get(b.getStringAttr(cleanName(data.name))));
  }
  return initializer.argument;
}

/// The first of `names`, and how many more there are.
static std::string listed(ArrayRef<std::string> names) {
  constexpr size_t kNamed = 4;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kNamed; ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > kNamed)
    text += " and " + std::to_string(names.size() - kNamed) + " more";
  return text;
}

/// Exports with folded constants have lost their weights' names: training them
/// is a mistake in the making.
LogicalResult Importer::diagnoseFolding() {
  std::vector<std::string> norms;
  for (const auto &node : model.proto.graph().node())
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
  for (const Initializer &initializer : initializers) {
    StringRef name = initializer.data.name;
    bool isWeight = isFloat(initializer.data.type) &&
                    initializer.data.dims.size() >= 2 &&
                    initializer.data.length > 256;
    bool byTorchScript = name.consume_front("onnx::");
    auto count = name.rsplit('_').second;
    bool counted = !count.empty() && llvm::all_of(count, llvm::isDigit);
    bool byDynamo = name.starts_with("val_") && counted && hasNotes &&
                    initializer.note == Initializer::None;
    if (isWeight && ((byTorchScript && counted) || byDynamo))
      folded.push_back(initializer.data.name);
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

/// The TorchScript exporter makes one initializer of all that are equal where
/// the model isn't in training mode, and an Identity of it for the others. What
/// belongs to a batch normalization is never shared on purpose.
LogicalResult Importer::diagnoseMerging() {
  llvm::StringMap<std::string> standIns;
  for (const auto &node : model.proto.graph().node())
    if (node.op_type() == "Identity" && node.input_size() == 1 &&
        node.output_size() == 1 && initializerOf.contains(node.input(0)))
      standIns[node.output(0)] = node.input(0);
  std::vector<std::string> merged;
  for (const auto &node : model.proto.graph().node())
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

const Val &Importer::lookup(const std::string &name) const {
  static const Val absent;
  for (const Scope &scope : llvm::reverse(scopes)) {
    auto found = scope.values.find(name);
    if (found != scope.values.end())
      return found->second;
    if (!scope.seesOuter)
      break;
  }
  return absent;
}

LogicalResult Importer::define(const std::string &name, Val v) {
  if (scopes.back().values.try_emplace(name, std::move(v)).second)
    return success();
  fail(Failure::input("the graph defines '" + name + "' twice"));
  return mlir::failure();
}

Val Importer::detached(const Val &v, Location loc) {
  bool isInput =
      v.isTensor() && isa<BlockArgument>(v.value) && initializerBehind(v) < 0;
  if (!v.isTensor() || !isFloat(v.type) || isInput)
    return v; // No gradient goes there.
  return Val(Value(nn::DetachOp::create(b, loc, v.value)));
}

/// The exporter's optimizer removes the Identity that a detach() became, but
/// the call of its reader still names it: the input that the call doesn't name
/// is the detached one. Nothing if there is none, or if no gradient would flow
/// to it; refuses the node where several inputs may be meant.
std::optional<std::string> Importer::detachedInput(
    const Node &node,
    const google::protobuf::RepeatedPtrField<onnx::NodeProto> &all) {
  if (scopes.size() > 1 || node.proto.op_type() == "Identity")
    return std::nullopt;
  std::optional<TorchCall> call = torchCallOf(node.proto);
  if (!call)
    return std::nullopt;
  int64_t detaches = 0, unknown = 0;
  llvm::StringSet<> named;
  for (const std::string &operand : call->operands()) {
    auto placeholder = placeholders.find(operand);
    std::string name =
        placeholder == placeholders.end() ? operand : placeholder->second;
    if (!named.insert(name).second || placeholder != placeholders.end() ||
        lookup(name).kind != Val::Absent)
      continue;
    StringRef stem = StringRef(name).rtrim("0123456789").rtrim('_');
    ++(stem == "detach" ? detaches : unknown);
  }
  if (!detaches)
    return std::nullopt;
  std::vector<std::string> unnamed;
  for (const std::string &name : node.proto.input()) {
    const Val &v = lookup(name);
    if (named.contains(name) || !v.isTensor() || !isFloat(v.type) ||
        (isa<BlockArgument>(v.value) && initializerBehind(v) < 0) ||
        llvm::is_contained(unnamed, name))
      continue;
    // A node of the same call made it.
    bool isInner = llvm::any_of(all, [&](const onnx::NodeProto &other) {
      return llvm::is_contained(other.output(), name) &&
             metadata(other, kNodeMetadata, "pkg.torch.onnx.fx_node") ==
                 metadata(node.proto, kNodeMetadata, "pkg.torch.onnx.fx_node");
    });
    if (!isInner)
      unnamed.push_back(name);
  }
  if (unnamed.empty())
    return std::nullopt;
  if (unnamed.size() == 1 && !unknown)
    return unnamed[0];
  refuse(node.label() + ": reads a detached value, and the exporter's "
                        "optimizer has removed which (export with "
                        "optimize=False)");
  return std::nullopt;
}

LogicalResult Importer::importNodes(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
    int64_t opset) {
  for (const onnx::NodeProto &proto : nodes) {
    std::string domain = domainOf(proto);
    Node node(*this, proto, locationOf(proto, context),
              domain.empty() ? opset : opsetOf(domain));
    bool poisoned = false;
    for (const std::string &name : proto.input()) {
      if (name.empty())
        continue;
      const Val &v = lookup(name);
      // Within a function, an optional input may be absent.
      if (v.kind == Val::Absent && scopes.size() == 1)
        return node.error("reads '" + name + "', which nothing defines");
      poisoned |= v.kind == Val::Poisoned;
    }
    size_t refusalsBefore = refusals.size();
    ImportFn import = findOperator(domain, proto.op_type());
    if (!poisoned) {
      std::optional<std::string> cut = detachedInput(node, nodes);
      Val whole;
      if (cut) {
        Val &input = scopes.back().values[*cut];
        whole = input;
        input = detached(whole, node.loc);
      }
      const onnx::FunctionProto *callee = import ? nullptr : functionOf(proto);
      LogicalResult done = refusals.size() > refusalsBefore ? mlir::failure()
                           : import                         ? import(node)
                           : callee ? importCall(node, *callee)
                                    : node.unsupported("isn't supported");
      if (cut)
        scopes.back().values[*cut] = std::move(whole);
      if (failure)
        return mlir::failure();
      if (failed(done) && refusals.size() == refusalsBefore)
        return node.error("can't be imported");
    }
    if (poisoned || refusals.size() > refusalsBefore)
      for (const std::string &name : proto.output())
        if (!name.empty()) {
          Val v;
          v.kind = Val::Poisoned;
          scopes.back().values.try_emplace(name, v);
        }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// Functions that call functions, and branches in branches.
constexpr size_t kMaxBodies = 32;

const onnx::FunctionProto *
Importer::functionOf(const onnx::NodeProto &node) const {
  for (const auto &function : model.proto.functions())
    if (function.domain() == node.domain() && function.name() == node.op_type())
      return &function;
  return nullptr;
}

LogicalResult Importer::defineOutputs(Node &node, ArrayRef<Val> values) {
  for (auto [i, v] : llvm::enumerate(values))
    if (failed(node.set(i, v)))
      return mlir::failure();
  return success();
}

/// The nodes of a function with the call's attributes in place of references to
/// them.
static google::protobuf::RepeatedPtrField<onnx::NodeProto>
boundNodes(const onnx::FunctionProto &function, const onnx::NodeProto &call) {
  auto nodes = function.node();
  for (onnx::NodeProto &node : nodes)
    for (int i = node.attribute_size(); i-- > 0;) {
      onnx::AttributeProto &attribute = *node.mutable_attribute(i);
      if (attribute.ref_attr_name().empty())
        continue;
      std::string name = attribute.name();
      bool given = false;
      for (const auto &argument : call.attribute())
        if (argument.name() == attribute.ref_attr_name()) {
          onnx::AttributeProto copy = argument;
          copy.set_name(name);
          attribute = copy;
          given = true;
          break;
        }
      if (!given) // The operator's own default holds.
        node.mutable_attribute()->DeleteSubrange(i, 1);
    }
  return nodes;
}

LogicalResult Importer::importCall(Node &node,
                                   const onnx::FunctionProto &callee) {
  if (scopes.size() > kMaxBodies)
    return node.error("functions call each other more than " +
                      Twine(kMaxBodies) + " deep");
  if (node.numInputs() > callee.input_size())
    return node.error("has " + Twine(node.numInputs()) +
                      " inputs; the function takes " +
                      Twine(callee.input_size()));
  Scope scope;
  for (int i = 0; i < callee.input_size(); ++i)
    scope.values[callee.input(i)] = node.input(i);
  int64_t opset = opsetOf("");
  for (const auto &entry : callee.opset_import())
    if (entry.domain().empty() || entry.domain() == "ai.onnx")
      opset = entry.version();
  scopes.push_back(std::move(scope));
  auto nodes = boundNodes(callee, node.proto);
  LogicalResult done = importNodes(nodes, opset);
  SmallVector<Val> values;
  for (const std::string &name : callee.output())
    values.push_back(lookup(name));
  scopes.pop_back();
  if (failed(done))
    return mlir::failure();
  return defineOutputs(node, values);
}

LogicalResult Importer::importBranch(Node &node,
                                     const onnx::GraphProto &graph) {
  if (scopes.size() > kMaxBodies)
    return node.error("branches are nested more than " + Twine(kMaxBodies) +
                      " deep");
  if (graph.initializer_size())
    return node.unsupported("a branch with initializers of its own");
  Scope scope;
  scope.seesOuter = true;
  scopes.push_back(std::move(scope));
  LogicalResult done = importNodes(graph.node(), node.opset);
  SmallVector<Val> values;
  for (const auto &output : graph.output())
    values.push_back(lookup(output.name()));
  scopes.pop_back();
  if (failed(done))
    return mlir::failure();
  return defineOutputs(node, values);
}

FailureOr<Array> Importer::arrayOf(const Val &v) {
  Constant &constant = *v.constant;
  if (!constant.array) {
    auto array =
        readArray(*model.files, initializers[constant.initializer].data);
    if (!array) {
      // Its value is needed: without it the model isn't whole.
      Failure failure = std::move(array.failure());
      if (failure.kind == FailureKind::World)
        failure.kind = FailureKind::Input;
      return fail(std::move(failure)), mlir::failure();
    }
    constant.array = std::move(*array);
  }
  return *constant.array;
}

FailureOr<Value> Importer::materialise(const Val &v) {
  if (v.isTensor())
    return v.value;
  return broadcast(v, v.dims, UnknownLoc::get(&context));
}

Value tmc::onnx_import::reshape(OpBuilder &b, Location loc, Value x,
                                ArrayRef<int64_t> dims) {
  while (auto view = x.getDefiningOp<nn::ReshapeOp>())
    x = view.getInput();
  return nn::reshapeTo(b, loc, x, dims);
}

/// The dimensions of `dims` that those of an operand of `rank` stand for.
static Dims alignedDims(int64_t rank, ArrayRef<int64_t> dims) {
  Dims aligned;
  for (int64_t i = 0; i < rank; ++i)
    aligned.push_back(static_cast<int64_t>(dims.size()) - rank + i);
  return aligned;
}

FailureOr<Value> Importer::broadcast(const Val &v, ArrayRef<int64_t> dims,
                                     Location loc) {
  auto count = checkedNumElements(dims);
  if (!count || *count > kMaxElements)
    return fail(Failure::input("a tensor of shape " + str(dims) +
                               " has too many elements")),
           mlir::failure();
  Type element = irType(v.type, &context);
  auto type = RankedTensorType::get(dims, element);
  Value source = v.value;
  Dims sourceDims = v.dims;

  if (v.isConst()) {
    auto array = arrayOf(v);
    if (failed(array))
      return mlir::failure();
    Value &known = constants[v.constant.get()];
    // A large table is an argument; a constant is written without what repeats.
    int64_t bytes = array->distinct() * sizeInFile(v.type);
    if (!known && v.constant->initializer >= 0 && isFloat(v.type) &&
        bytes > kMaxConstantBytes) {
      known = argumentOf(initializers[v.constant->initializer]);
      kept.push_back(v.constant);
    }
    if (known && known.getType() == type)
      return known;
    if (!known || !isa<BlockArgument>(known)) {
      if (array->distinct() > kMaxFoldElements)
        return fail(Failure::input("a constant of shape " + str(v.dims) +
                                   " has too many elements")),
               mlir::failure();
      Array compact = array->compressed();
      Dims keptDims;
      Array part = compact.unrepeated(keptDims);
      if (part.rank() == 0 || part.size() == 0) {
        Array splat = part.size() == 0 ? part : part.reshaped({});
        DenseElementsAttr attr = part.size() == 0
                                     ? part.reshaped(dims).attribute(&context)
                                     : splat.attribute(&context);
        if (part.size() != 0)
          attr = DenseElementsAttr::get(type, attr.getSplatValue<Attribute>());
        return Value(arith::ConstantOp::create(b, loc, type, attr));
      }
      if (!known) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(&function.getBody().front());
        DenseElementsAttr attr = part.attribute(&context);
        known = arith::ConstantOp::create(b, UnknownLoc::get(&context),
                                          attr.getType(), attr);
        kept.push_back(v.constant);
      }
      if (known.getType() == type)
        return known;
      Dims to;
      for (int64_t dim : keptDims)
        to.push_back(alignedDims(v.rank(), dims)[dim]);
      if (part.size() == *count) // Only dimensions of size 1 are missing.
        return Value(nn::ReshapeOp::create(b, loc, type, known));
      return Value(nn::BroadcastOp::create(b, loc, type, known, to));
    }
    source = known;
  }

  if (source.getType() == type)
    return source;
  auto sourceCount = checkedNumElements(sourceDims);
  if (sourceCount == count)
    return Value(reshape(b, loc, source, dims));
  Dims to, keptSizes;
  Dims aligned = alignedDims(sourceDims.size(), dims);
  for (auto [i, dim] : llvm::enumerate(sourceDims))
    if (dim != 1 || dims[aligned[i]] == 1) {
      to.push_back(aligned[i]);
      keptSizes.push_back(dim);
    }
  if (keptSizes.size() != sourceDims.size())
    source = reshape(b, loc, source, keptSizes);
  return Value(nn::BroadcastOp::create(b, loc, type, source, to));
}
