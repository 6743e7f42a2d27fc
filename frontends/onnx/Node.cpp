#include "frontends/onnx/Node.h"
#include "frontends/onnx/Importer.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// Key: domain, a colon, name. The table is a function's static, so that it
/// exists when the first entry registers itself.
static llvm::StringMap<ImportFn> &table() {
  static llvm::StringMap<ImportFn> operators;
  return operators;
}

static std::string keyOf(StringRef domain, StringRef name) {
  return (domain + ":" + name).str();
}

Register::Register(const char *domain, const char *name, ImportFn fn) {
  bool isNew = table().try_emplace(keyOf(domain, name), fn).second;
  assert(isNew && "an operator is registered twice");
  (void)isNew;
}

ImportFn tmc::onnx_import::findOperator(StringRef domain, StringRef name) {
  return table().lookup(keyOf(domain, name));
}

std::vector<std::string> tmc::onnx_import::operatorNames() {
  std::vector<std::string> names;
  for (const auto &entry : table())
    names.push_back(entry.first().ltrim(':').str());
  std::sort(names.begin(), names.end());
  return names;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

Node::Node(OnnxImporter &reader, const onnx::NodeProto &proto, Location loc,
           int64_t opset)
    : Site(reader, loc), reader(reader), proto(proto), opset(opset) {}

std::string Node::opName() const {
  return proto.domain().empty() || proto.domain() == "ai.onnx"
             ? proto.op_type()
             : proto.domain() + "." + proto.op_type();
}

std::string Node::nodeName() const {
  return !proto.name().empty()     ? proto.name()
         : proto.output_size() > 0 ? proto.output(0)
                                   : "unnamed";
}

int Node::numInputs() const { return proto.input_size(); }
int Node::numOutputs() const { return proto.output_size(); }

const Val &Node::input(int i) const {
  static const Val absent;
  readInputs.insert(i);
  if (i >= proto.input_size() || proto.input(i).empty())
    return absent;
  return importer.lookup(proto.input(i));
}

SmallVector<Val> Node::inputs() const {
  SmallVector<Val> operands;
  for (int i = 0; i < numInputs(); ++i)
    operands.push_back(input(i));
  return operands;
}

bool Node::isUsed(int i) const {
  return i < proto.output_size() && !proto.output(i).empty() &&
         importer.isUsed(proto.output(i));
}

FailureOr<Value> Node::value(int i) {
  if (!has(i))
    return error("input " + Twine(i) + " is missing");
  return materialise(input(i));
}

FailureOr<Array> Node::array(int i) {
  if (!has(i))
    return error("input " + Twine(i) + " is missing");
  // An input that must be known can't be a parameter, although it looked like
  // one.
  if (input(i).isTensor())
    if (std::optional<Val> known = importer.forward.asConstant(input(i)))
      return importer.arrayOf(*known);
  if (!foldable(i))
    return unsupported("input " + Twine(i) +
                       " must be known when the model is compiled");
  return importer.arrayOf(input(i));
}

FailureOr<Dims> Node::ints(int i) {
  ASSIGN_OR_FAIL(Array values, array(i));
  if (values.size() > kMaxFoldElements)
    return error("input " + Twine(i) + " has " + Twine(values.size()) +
                 " elements");
  std::vector<int64_t> list = values.ints();
  return Dims(list.begin(), list.end());
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

void Node::ignore(std::initializer_list<const char *> names) const {
  readAttributes.insert(names.begin(), names.end());
}

const onnx::AttributeProto *Node::attribute(StringRef name) const {
  readAttributes.insert(name.str());
  for (const auto &attribute : proto.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

int64_t Node::intAttr(StringRef name, int64_t otherwise) const {
  const auto *found = attribute(name);
  return found ? found->i() : otherwise;
}

double Node::floatAttr(StringRef name, double otherwise) const {
  const auto *found = attribute(name);
  return found ? shortest(found->f()) : otherwise;
}

std::string Node::stringAttr(StringRef name, StringRef otherwise) const {
  const auto *found = attribute(name);
  return found ? found->s() : otherwise.str();
}

std::optional<Dims> Node::intsAttr(StringRef name) const {
  const auto *found = attribute(name);
  if (!found)
    return std::nullopt;
  return Dims(found->ints().begin(), found->ints().end());
}

FailureOr<std::optional<Dims>> Node::axes(int i, int64_t rank) {
  std::optional<Dims> list = intsAttr("axes");
  if (!list && has(i)) {
    ASSIGN_OR_FAIL(list, ints(i));
  }
  if (!list)
    return list;
  ASSIGN_OR_FAIL(Dims sorted, axes(*list, rank));
  return std::optional<Dims>(sorted);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

LogicalResult Node::set(int i, Val v) {
  if (i >= proto.output_size() || proto.output(i).empty())
    return success();
  return importer.define(proto.output(i), std::move(v));
}
