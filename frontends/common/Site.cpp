#include "frontends/common/Site.h"
#include "frontends/common/Importer.h"

#include <algorithm>
#include <charconv>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

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

std::string tmc::frontend::str(ArrayRef<int64_t> dims) {
  std::string text = "[";
  for (auto [i, dim] : llvm::enumerate(dims))
    text += (i ? ", " : "") + std::to_string(dim);
  return text + "]";
}

double tmc::frontend::shortest(double value) {
  char text[64];
  auto [end, error] =
      std::to_chars(text, text + sizeof(text), static_cast<float>(value));
  double result = value;
  std::from_chars(text, end, result);
  return result;
}

//===----------------------------------------------------------------------===//
// Site
//===----------------------------------------------------------------------===//

Site::Site(Importer &importer, Location loc)
    : importer(importer), b(importer.forward.b), loc(loc) {}

bool Site::foldable(const Val &v) const {
  if (!v.isConst())
    return false;
  int64_t count = 1;
  for (int64_t dim : v.dims)
    count *= dim;
  return count <= kMaxFoldElements ||
         (v.constant->array &&
          v.constant->array->distinct() <= kMaxFoldElements);
}

bool Site::allFoldable(ArrayRef<Val> values) const {
  return llvm::all_of(
      values, [&](const Val &v) { return v.isAbsent() || foldable(v); });
}

FailureOr<Array> Site::arrayOf(const Val &v) { return importer.arrayOf(v); }

FailureOr<int64_t> Site::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return error("axis " + Twine(axis) + " of a tensor of " + Twine(rank) +
                 " dimensions");
  return axis < 0 ? axis + rank : axis;
}

FailureOr<Dims> Site::axes(Dims list, int64_t rank) {
  for (int64_t &entry : list) {
    ASSIGN_OR_FAIL(entry, axis(entry, rank));
  }
  llvm::sort(list);
  if (std::adjacent_find(list.begin(), list.end()) != list.end())
    return error("an axis is named twice in " + str(list));
  return list;
}

FailureOr<Value> Site::materialise(const Val &v) {
  if (v.isAbsent())
    return error("an input is missing");
  if (v.kind == Val::Sequence)
    return error("a sequence where a tensor is wanted");
  if (!irType(v.type, b.getContext()))
    return unsupported("elements of type " + nameOf(v.type));
  return importer.materialise(v);
}

FailureOr<Value> Site::broadcast(const Val &v, ArrayRef<int64_t> dims) {
  if (v.isAbsent())
    return error("an input is missing");
  if (v.kind == Val::Sequence)
    return error("a sequence where a tensor is wanted");
  if (!irType(v.type, b.getContext()))
    return unsupported("elements of type " + nameOf(v.type));
  return importer.broadcast(v, dims, loc);
}

Value Site::reshape(Value x, ArrayRef<int64_t> dims) {
  return frontend::reshape(b, loc, x, dims);
}

RankedTensorType Site::tensorType(ArrayRef<int64_t> dims, Type element) const {
  return RankedTensorType::get(dims, element);
}

Value Site::like(Value x, double value) {
  return nn::splat(b, loc, x.getType(), value);
}

/// " (model.py:12)", or "".
static std::string lineText(Location loc) {
  auto name = dyn_cast<NameLoc>(loc);
  auto line =
      name ? dyn_cast<FileLineColLoc>(name.getChildLoc()) : FileLineColLoc();
  return line ? " (" + line.getFilename().str() + ":" +
                    std::to_string(line.getLine()) + ")"
              : std::string();
}

std::string tmc::frontend::placeOf(Location loc) {
  auto name = dyn_cast<NameLoc>(loc);
  return (name ? name.getName().str() : std::string("?")) + lineText(loc);
}

LogicalResult Site::error(const Twine &message) {
  Failure failure = Failure::input(label() + ": " + message.str());
  if (auto name = dyn_cast<NameLoc>(loc))
    failure.notes.push_back("at " + name.getName().str() + lineText(loc));
  importer.fail(std::move(failure));
  return mlir::failure();
}

LogicalResult Site::unsupported(const Twine &message) {
  importer.refuse({opName(), nodeName(), lineText(loc), message.str()});
  return mlir::failure();
}

LogicalResult tmc::frontend::checkFloats(Site &s, const Val &v) {
  if (isFloat(v.type))
    return success();
  return s.unsupported("elements of type " + nameOf(v.type));
}
