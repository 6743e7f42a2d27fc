#include "frontends/onnx/Node.h"
#include "frontends/onnx/Importer.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <charconv>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// Key: domain, a colon, name. A function's static, so that it exists when the
/// first entry registers itself.
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
// Values
//===----------------------------------------------------------------------===//

Val::Val(Value v) : kind(Tensor), value(v) {
  auto tensor = cast<RankedTensorType>(v.getType());
  type = elementTypeOf(tensor.getElementType());
  dims.assign(tensor.getShape().begin(), tensor.getShape().end());
}

Val::Val(Array array) : kind(Const), type(array.type()) {
  dims.assign(array.dims().begin(), array.dims().end());
  constant = std::make_shared<Constant>();
  constant->array = std::move(array);
}

std::string tmc::onnx_import::str(ArrayRef<int64_t> dims) {
  std::string text = "[";
  for (auto [i, dim] : llvm::enumerate(dims))
    text += (i ? ", " : "") + std::to_string(dim);
  return text + "]";
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

Node::Node(Importer &importer, const onnx::NodeProto &proto, Location loc,
           int64_t opset)
    : importer(importer), proto(proto), b(importer.b), loc(loc), opset(opset) {}

std::string Node::label() const {
  std::string name = proto.name();
  if (name.empty() && proto.output_size())
    name = proto.output(0);
  return proto.op_type() + " '" + name + "'";
}

int Node::numInputs() const { return proto.input_size(); }
int Node::numOutputs() const { return proto.output_size(); }

const Val &Node::input(int i) const {
  static const Val absent;
  if (i >= proto.input_size() || proto.input(i).empty())
    return absent;
  return importer.lookup(proto.input(i));
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

bool Node::foldable(int i) {
  const Val &v = input(i);
  if (!v.isConst())
    return false;
  int64_t count = 1;
  for (int64_t dim : v.dims)
    count *= dim;
  return count <= kMaxFoldElements ||
         (v.constant->array &&
          v.constant->array->distinct() <= kMaxFoldElements);
}

bool Node::foldable(ArrayRef<int> indices) {
  return llvm::all_of(indices, [&](int i) { return !has(i) || foldable(i); });
}

FailureOr<Array> Node::array(int i) {
  if (!has(i))
    return error("input " + Twine(i) + " is missing");
  // What has to be known can't be a parameter, though it looked like one.
  if (input(i).isTensor())
    if (std::optional<Val> known = importer.asConstant(input(i)))
      return importer.arrayOf(*known);
  if (!foldable(i))
    return unsupported("input " + Twine(i) +
                       " must be known when the model is compiled");
  return importer.arrayOf(input(i));
}

FailureOr<Array> Node::arrayOf(const Val &v) { return importer.arrayOf(v); }

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

const onnx::AttributeProto *Node::attribute(StringRef name) const {
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

double tmc::onnx_import::shortest(double value) {
  char text[64];
  auto [end, error] =
      std::to_chars(text, text + sizeof(text), static_cast<float>(value));
  double result = value;
  std::from_chars(text, end, result);
  return result;
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

FailureOr<int64_t> Node::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return error("axis " + Twine(axis) + " of a tensor of " + Twine(rank) +
                 " dimensions");
  return axis < 0 ? axis + rank : axis;
}

FailureOr<std::optional<Dims>> Node::axes(int i, int64_t rank) {
  std::optional<Dims> list = intsAttr("axes");
  if (!list && has(i)) {
    ASSIGN_OR_FAIL(list, ints(i));
  }
  if (!list)
    return list;
  for (int64_t &entry : *list) {
    ASSIGN_OR_FAIL(entry, axis(entry, rank));
  }
  llvm::sort(*list);
  if (std::adjacent_find(list->begin(), list->end()) != list->end())
    return error("an axis is named twice in " + str(*list));
  return list;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

FailureOr<Value> Node::materialise(const Val &v) {
  if (v.kind == Val::Sequence)
    return error("a sequence where a tensor is wanted");
  if (!irType(v.type, b.getContext()))
    return unsupported("elements of type " + nameOf(v.type));
  return importer.materialise(v);
}

FailureOr<Value> Node::broadcast(const Val &v, ArrayRef<int64_t> dims) {
  if (v.kind == Val::Sequence)
    return error("a sequence where a tensor is wanted");
  if (!irType(v.type, b.getContext()))
    return unsupported("elements of type " + nameOf(v.type));
  return importer.broadcast(v, dims, loc);
}

Value Node::reshape(Value x, ArrayRef<int64_t> dims) {
  return onnx_import::reshape(b, loc, x, dims);
}

RankedTensorType Node::tensorType(ArrayRef<int64_t> dims, Type element) const {
  return RankedTensorType::get(dims, element);
}

LogicalResult Node::set(int i, Val v) {
  if (i >= proto.output_size() || proto.output(i).empty())
    return success();
  return importer.define(proto.output(i), std::move(v));
}

LogicalResult Node::error(const Twine &message) {
  Failure failure = Failure::input(label() + ": " + message.str());
  if (auto name = dyn_cast<NameLoc>(loc)) {
    std::string where = "at " + name.getName().str();
    if (auto line = dyn_cast<FileLineColLoc>(name.getChildLoc()))
      where += " (" + line.getFilename().str() + ":" +
               std::to_string(line.getLine()) + ")";
    failure.notes.push_back(where);
  }
  importer.fail(std::move(failure));
  return mlir::failure();
}

LogicalResult Node::unsupported(const Twine &message) {
  importer.refuse(label() + ": " + message.str());
  return mlir::failure();
}
