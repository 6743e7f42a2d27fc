// Bodies.cpp - functions, branches and loops: the importer inlines each at its
// node, a loop's body once per trip.

#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/onnx/Importer.h"

#include "onnx/onnx_pb.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The deepest nesting of function calls and branches.
constexpr size_t kMaxBodies = 32;

/// Defines `node`'s outputs as `values`.
static LogicalResult defineOutputs(Node &node, ArrayRef<Val> values) {
  for (auto [i, v] : llvm::enumerate(values))
    if (failed(node.set(i, v)))
      return mlir::failure();
  return success();
}

/// The nodes of a function, with the call's attributes in place of references
/// to them.
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
      if (!given) // The operator's own default applies.
        node.mutable_attribute()->DeleteSubrange(i, 1);
    }
  return nodes;
}

LogicalResult OnnxImporter::importCall(Node &node,
                                       const onnx::FunctionProto &callee) {
  if (scopes.size() > kMaxBodies)
    return node.error("functions call each other more than " +
                      Twine(kMaxBodies) + " deep");
  if (node.numInputs() > callee.input_size())
    return node.error("has " + Twine(node.numInputs()) +
                      " inputs; the function takes " +
                      Twine(callee.input_size()));
  if (failed(spend(1)))
    return mlir::failure();
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

/// An initializer of a body is a constant, because a body may run many times,
/// or never.
FailureOr<Val> OnnxImporter::constantOf(Node &node,
                                        const onnx::TensorProto &tensor) {
  auto data = locate(tensor);
  if (!data)
    return fail(data.failure()), mlir::failure();
  auto array = readArray(files(), *data);
  if (!array)
    return fail(array.failure()), mlir::failure();
  if (isFloat(array->type()) && array->size() > 1)
    warn("'" + tensor.name() + "', which belongs to a body of " + node.label() +
         ", is a constant and isn't trained");
  return Val(*array);
}

/// The values of the body's outputs for the inputs `inputs`.
FailureOr<SmallVector<Val>>
OnnxImporter::importBody(Node &node, const onnx::GraphProto &graph,
                         ArrayRef<Val> inputs) {
  if (scopes.size() > kMaxBodies)
    return node.error("branches are nested more than " + Twine(kMaxBodies) +
                      " deep");
  if (static_cast<int>(inputs.size()) != graph.input_size())
    return node.error("has " + Twine(inputs.size()) +
                      " values for a body that takes " +
                      Twine(graph.input_size()));
  if (failed(spend(1)))
    return mlir::failure();
  Scope scope;
  scope.seesOuter = true;
  for (const auto &tensor : graph.initializer()) {
    ASSIGN_OR_FAIL(Val value, constantOf(node, tensor));
    scope.values[tensor.name()] = value;
  }
  for (auto [input, value] : llvm::zip(graph.input(), inputs))
    scope.values[input.name()] = value;
  scopes.push_back(std::move(scope));
  // A body uses the operator set of the node that holds it, if that node is a
  // standard operator.
  bool isStandard =
      node.proto.domain().empty() || node.proto.domain() == "ai.onnx";
  int64_t opset = isStandard ? node.opset : opsetOf("");
  size_t refusalsBefore = diagnostics.refusals.size();
  LogicalResult done = importNodes(graph.node(), opset, true);
  SmallVector<Val> values;
  for (const auto &output : graph.output())
    values.push_back(lookup(output.name()));
  scopes.pop_back();
  if (failed(done) || diagnostics.refusals.size() > refusalsBefore)
    return mlir::failure();
  return values;
}

LogicalResult tmc::onnx_import::importBranch(Node &node,
                                             const onnx::GraphProto &graph) {
  FailureOr<SmallVector<Val>> values = node.reader.importBody(node, graph, {});
  return failed(values) ? mlir::failure() : defineOutputs(node, *values);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// A loop with more trips would be a graph of millions of ops.
constexpr int64_t kMaxTrips = 4096;

/// Joins the values that all trips add to a result, along a new dimension
/// `axis`.
static FailureOr<Val> gathered(Node &node, SmallVector<Val> parts, int64_t axis,
                               bool isReversed) {
  if (parts.empty())
    return node.unsupported("a loop without a trip");
  if (isReversed)
    std::reverse(parts.begin(), parts.end());
  for (Val &part : parts) {
    ASSIGN_OR_FAIL(part, unsqueeze(node, part, {axis}));
  }
  return concat(node, parts, axis);
}

static Val truth(bool value) {
  return Val(Array::splatInt(ElementType::Bool, {}, value));
}

LogicalResult tmc::onnx_import::importLoop(Node &node,
                                           const onnx::GraphProto &body) {
  int64_t trips = kMaxTrips + 1;
  auto known = [&](const Val &v) -> FailureOr<int64_t> {
    if (!node.foldable(v))
      return node.unsupported("a number of trips that depends on the data");
    ASSIGN_OR_FAIL(Array array, node.arrayOf(v));
    if (array.size() != 1)
      return node.error("a bound of shape " + str(array.dims()));
    return array.ints()[0];
  };
  if (node.has(0)) {
    ASSIGN_OR_FAIL(trips, known(node.input(0)));
  }
  bool goesOn = true;
  if (node.has(1)) {
    ASSIGN_OR_FAIL(goesOn, known(node.input(1)));
  }
  SmallVector<Val> carried;
  for (int i = 2; i < node.numInputs(); ++i)
    carried.push_back(node.input(i));
  int64_t added = body.output_size() - 1 - static_cast<int64_t>(carried.size());
  if (added < 0)
    return node.error("carries " + Twine(carried.size()) +
                      " values, of which the body makes fewer");
  SmallVector<SmallVector<Val>> parts(added);
  for (int64_t trip = 0; goesOn && trip < trips; ++trip) {
    if (trip == kMaxTrips)
      return node.unsupported("more than " + Twine(kMaxTrips) + " trips");
    SmallVector<Val> inputs{Val(Array::ofInts(ElementType::I64, {}, {trip})),
                            truth(true)};
    inputs.append(carried);
    ASSIGN_OR_FAIL(SmallVector<Val> made,
                   node.reader.importBody(node, body, inputs));
    ASSIGN_OR_FAIL(goesOn, known(made[0]));
    std::copy_n(made.begin() + 1, carried.size(), carried.begin());
    for (int64_t i = 0; i < added; ++i)
      parts[i].push_back(made[1 + carried.size() + i]);
  }
  for (auto [i, list] : llvm::enumerate(parts)) {
    if (!node.isUsed(carried.size()))
      break;
    ASSIGN_OR_FAIL(Val all, gathered(node, list, 0, false));
    carried.push_back(all);
  }
  return defineOutputs(node, carried);
}

LogicalResult tmc::onnx_import::importScan(Node &node,
                                           const onnx::GraphProto &body) {
  if (node.opset < 9)
    return node.unsupported("a scan of operator set 8");
  int64_t scanned = node.intAttr("num_scan_inputs", 0);
  int64_t states = node.numInputs() - scanned;
  int64_t added = body.output_size() - states;
  if (scanned < 1 || states < 0 || added < 0)
    return node.error("scans " + Twine(scanned) + " of " +
                      Twine(node.numInputs()) + " inputs");
  auto entry = [](const std::optional<Dims> &list, int64_t i) -> int64_t {
    return list && i < static_cast<int64_t>(list->size()) ? (*list)[i] : 0;
  };
  auto inAxes = node.intsAttr("scan_input_axes");
  auto inBack = node.intsAttr("scan_input_directions");
  auto outAxes = node.intsAttr("scan_output_axes");
  auto outBack = node.intsAttr("scan_output_directions");
  SmallVector<Val> carried, sources;
  for (int64_t i = 0; i < node.numInputs(); ++i)
    (i < states ? carried : sources).push_back(node.input(i));
  Dims axes;
  int64_t trips = -1;
  for (int64_t i = 0; i < scanned; ++i) {
    ASSIGN_OR_FAIL(int64_t axis,
                   node.axis(entry(inAxes, i), sources[i].rank()));
    axes.push_back(axis);
    int64_t size = sources[i].dims[axis];
    if (trips >= 0 && size != trips)
      return node.error("scans " + Twine(size) + " and " + Twine(trips) +
                        " entries");
    trips = size;
  }
  if (trips > kMaxTrips)
    return node.unsupported("more than " + Twine(kMaxTrips) + " trips");
  SmallVector<SmallVector<Val>> parts(added);
  for (int64_t trip = 0; trip < trips; ++trip) {
    SmallVector<Val> inputs(carried);
    for (int64_t i = 0; i < scanned; ++i) {
      int64_t at = entry(inBack, i) ? trips - 1 - trip : trip;
      ASSIGN_OR_FAIL(Val row, strided(node, sources[i], axes[i], at, 1, 1));
      ASSIGN_OR_FAIL(row, squeeze(node, row, Dims{axes[i]}));
      inputs.push_back(row);
    }
    ASSIGN_OR_FAIL(SmallVector<Val> made,
                   node.reader.importBody(node, body, inputs));
    std::copy_n(made.begin(), states, carried.begin());
    for (int64_t i = 0; i < added; ++i)
      parts[i].push_back(made[states + i]);
  }
  for (auto [i, list] : llvm::enumerate(parts)) {
    int64_t rank = list.empty() ? 1 : list[0].rank() + 1;
    ASSIGN_OR_FAIL(int64_t axis, node.axis(entry(outAxes, i), rank));
    ASSIGN_OR_FAIL(Val all, gathered(node, list, axis, entry(outBack, i)));
    carried.push_back(all);
  }
  return defineOutputs(node, carried);
}

LogicalResult
tmc::onnx_import::importSequenceMap(Node &node, const onnx::GraphProto &body) {
  if (node.input(0).kind != Val::Sequence)
    return node.error("input 0 is no sequence");
  size_t count = node.input(0).elements.size();
  SmallVector<SmallVector<Val>> made(body.output_size());
  for (size_t i = 0; i < count; ++i) {
    SmallVector<Val> inputs;
    for (const Val &v : node.inputs()) {
      if (v.kind == Val::Sequence && v.elements.size() != count)
        return node.error("maps sequences of several lengths");
      inputs.push_back(v.kind == Val::Sequence ? v.elements[i] : v);
    }
    ASSIGN_OR_FAIL(SmallVector<Val> values,
                   node.reader.importBody(node, body, inputs));
    for (auto [list, value] : llvm::zip(made, values))
      list.push_back(value);
  }
  SmallVector<Val> outputs;
  for (const auto &list : made)
    outputs.push_back(sequenceOf(list));
  return defineOutputs(node, outputs);
}
