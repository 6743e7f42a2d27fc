#include "frontends/torch/Call.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/torch/Importer.h"

#include "llvm/ADT/StringMap.h"

#include <algorithm>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// A function's static, so that it exists when the first entry registers.
static llvm::StringMap<ImportFn> &table(bool ofComplex) {
  static llvm::StringMap<ImportFn> operators[2];
  return operators[ofComplex];
}

static void enter(const char *name, ImportFn fn, bool ofComplex) {
  bool isNew = table(ofComplex).try_emplace(name, fn).second;
  assert(isNew && "an operator is registered twice");
  (void)isNew;
}
Register::Register(const char *name, ImportFn fn) { enter(name, fn, false); }
RegisterComplex::RegisterComplex(const char *name, ImportFn fn) {
  enter(name, fn, true);
}

ImportFn tmc::torch_import::findOperator(StringRef name, bool ofComplex) {
  return table(ofComplex).lookup(name);
}

std::vector<std::string> tmc::torch_import::operatorNames() {
  std::vector<std::string> names;
  for (bool ofComplex : {false, true})
    for (const auto &entry : table(ofComplex))
      if (!ofComplex || !findOperator(entry.first()))
        names.push_back(entry.first().str());
  std::sort(names.begin(), names.end());
  return names;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

Call::Call(TorchImporter &reader, const CallData &data, Location loc)
    : Site(reader, loc), reader(reader), data(data) {}

const Arg *Call::argument(const std::string &name) const {
  wereRead.insert(name);
  return data.argument(name);
}

void Call::ignore(std::initializer_list<const char *> names) const {
  wereRead.insert(names.begin(), names.end());
}

bool Call::has(const std::string &name) const {
  const Arg *found = argument(name);
  return found && found->kind != Arg::None;
}

static Val valueOf(const Importer &importer, const Arg &argument) {
  switch (argument.kind) {
  case Arg::Tensor:
  case Arg::Symbol:
    return importer.lookup(argument.text);
  case Arg::Int:
    return Val(Array::splatInt(ElementType::I64, {}, argument.integer));
  case Arg::Bool:
    return Val(Array::splatInt(ElementType::Bool, {}, argument.integer));
  case Arg::Float:
    // The number isn't rounded before it gets the other operand's type.
    return Val(Array::splat(ElementType::F64, {}, argument.number));
  default:
    return Val();
  }
}

Val Call::tensor(const std::string &name) const {
  const Arg *found = argument(name);
  return found ? valueOf(importer, *found) : Val();
}

bool tmc::torch_import::isNumber(const Call &c, const std::string &name) {
  const Arg *found = c.argument(name);
  return found && found->kind != Arg::Tensor;
}

bool Call::isComplex(const std::string &name) const {
  const Arg *found = argument(name);
  return found && found->kind == Arg::Tensor && reader.isComplex(found->text);
}

/// The argument, or null if it isn't given and has a default.
static FailureOr<const Arg *> wanted(Call &c, const std::string &name,
                                     bool hasDefault) {
  const Arg *found = c.argument(name);
  if (found && found->kind == Arg::None)
    found = nullptr;
  if (!found && !hasDefault)
    return c.error("has no argument '" + name + "'");
  return found;
}

FailureOr<SmallVector<Val>> Call::tensors(const std::string &name) {
  ASSIGN_OR_FAIL(const Arg *list, wanted(*this, name, false));
  if (list->kind != Arg::List)
    return error("'" + name + "' is no list");
  SmallVector<Val> values;
  for (const Arg &element : list->list)
    values.push_back(valueOf(importer, element));
  return values;
}

static FailureOr<int64_t> integerOf(Call &c, const Arg &argument) {
  Val v = valueOf(c.importer, argument);
  if (!v.isConst() || isFloat(v.type))
    return c.error("a whole number is no whole number");
  ASSIGN_OR_FAIL(Array array, c.arrayOf(v));
  if (array.size() != 1)
    return c.error("a whole number has shape " + str(array.dims()));
  return array.ints()[0];
}

FailureOr<int64_t> Call::integer(const std::string &name,
                                 std::optional<int64_t> otherwise) {
  ASSIGN_OR_FAIL(const Arg *found, wanted(*this, name, otherwise.has_value()));
  return found ? integerOf(*this, *found) : FailureOr<int64_t>(*otherwise);
}

FailureOr<double> Call::number(const std::string &name,
                               std::optional<double> otherwise) {
  ASSIGN_OR_FAIL(const Arg *found, wanted(*this, name, otherwise.has_value()));
  if (!found)
    return *otherwise;
  ASSIGN_OR_FAIL(Array array, known(*this, valueOf(importer, *found)));
  if (array.size() != 1)
    return error("'" + name + "' has shape " + str(array.dims()));
  return isFloat(array.type()) ? array.floats()[0]
                               : static_cast<double>(array.ints()[0]);
}

FailureOr<bool> Call::flag(const std::string &name, bool otherwise) {
  ASSIGN_OR_FAIL(const Arg *found, wanted(*this, name, true));
  if (!found)
    return otherwise;
  ASSIGN_OR_FAIL(int64_t value, integerOf(*this, *found));
  return value != 0;
}

FailureOr<std::string> Call::text(const std::string &name,
                                  const std::string &otherwise) {
  ASSIGN_OR_FAIL(const Arg *found, wanted(*this, name, true));
  if (found && found->kind != Arg::String)
    return error("'" + name + "' is no text");
  return found ? found->text : otherwise;
}

FailureOr<Dims> Call::integers(const std::string &name,
                               std::optional<Dims> otherwise) {
  ASSIGN_OR_FAIL(const Arg *found, wanted(*this, name, otherwise.has_value()));
  if (!found)
    return *otherwise;
  Dims values;
  if (found->kind != Arg::List) {
    ASSIGN_OR_FAIL(int64_t one, integerOf(*this, *found));
    values.push_back(one);
    return values;
  }
  for (const Arg &element : found->list) {
    ASSIGN_OR_FAIL(int64_t value, integerOf(*this, element));
    values.push_back(value);
  }
  return values;
}

FailureOr<SmallVector<double>>
tmc::torch_import::numbers(Call &c, const std::string &name) {
  ASSIGN_OR_FAIL(const Arg *found, wanted(c, name, true));
  SmallVector<double> values;
  if (found)
    for (const Arg &element : found->list) {
      ASSIGN_OR_FAIL(Array array, known(c, valueOf(c.importer, element)));
      if (array.size() != 1)
        return c.error("'" + name + "' has an entry of shape " +
                       str(array.dims()));
      values.push_back(isFloat(array.type())
                           ? array.floats()[0]
                           : static_cast<double>(array.ints()[0]));
    }
  return values;
}

FailureOr<ElementType> Call::type(const std::string &name,
                                  ElementType otherwise) {
  ASSIGN_OR_FAIL(const Arg *found, wanted(*this, name, true));
  if (!found)
    return otherwise;
  std::optional<ElementType> type = typeOfNumber(found->integer);
  if (found->kind != Arg::Type || !type)
    return unsupported("elements of type number " + Twine(found->integer));
  return *type;
}

FailureOr<int64_t> Call::dim(const std::string &name,
                             std::optional<int64_t> otherwise, int64_t rank) {
  ASSIGN_OR_FAIL(int64_t value, integer(name, otherwise));
  return axis(value, std::max<int64_t>(rank, 1 + hidden));
}

FailureOr<Dims> Call::dims(const std::string &name, int64_t rank) {
  ASSIGN_OR_FAIL(Dims list, integers(name, Dims()));
  if (list.empty())
    return Dims(nn::firstDims(rank - hidden));
  if (rank == hidden)
    return Dims();
  return axes(list, rank);
}

FailureOr<Array> tmc::torch_import::known(Call &c, const Val &v) {
  if (v.isTensor())
    if (std::optional<Val> constant = c.importer.forward.asConstant(v))
      return c.arrayOf(*constant);
  if (!c.foldable(v))
    return c.unsupported("a value that isn't known when the model is compiled");
  return c.arrayOf(v);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

bool Call::isUsed(size_t i) const {
  return i < data.results.size() && importer.isUsed(data.results[i].text);
}

LogicalResult Call::set(size_t i, Val v) {
  if (i >= data.results.size() || data.results[i].text.empty())
    return success();
  return importer.define(data.results[i].text, std::move(v));
}

LogicalResult tmc::torch_import::setList(Call &c, ArrayRef<Val> values) {
  if (c.data.results.size() != 1 || c.data.results[0].kind != Arg::List)
    return c.error("makes a list, which the graph doesn't take for one");
  const std::vector<Arg> &names = c.data.results[0].list;
  if (names.size() != values.size())
    return c.error("makes " + Twine(values.size()) + " tensors for " +
                   Twine(names.size()) + " names");
  for (auto [name, value] : llvm::zip(names, values))
    if (failed(c.importer.define(name.text, value)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

namespace {
enum class Category { None, Bool, Int, Float };
} // namespace

static Category categoryOf(ElementType type) {
  return type == ElementType::Bool ? Category::Bool
         : isFloat(type)           ? Category::Float
                                   : Category::Int;
}

ElementType tmc::torch_import::promoteTypes(ElementType a, ElementType b) {
  if (a == b)
    return a;
  Category ca = categoryOf(a), cb = categoryOf(b);
  if (ca != cb)
    return ca > cb ? a : b;
  if (ca == Category::Float)
    return sizeInFile(a) == sizeInFile(b)  ? ElementType::F32 // f16 and bf16.
           : sizeInFile(a) > sizeInFile(b) ? a
                                           : b;
  if (sizeInFile(a) == sizeInFile(b)) // Signed and unsigned.
    return sizeInFile(a) == 1   ? ElementType::I16
           : sizeInFile(a) == 2 ? ElementType::I32
                                : ElementType::I64;
  return sizeInFile(a) > sizeInFile(b) ? a : b;
}

FailureOr<Promoted> tmc::torch_import::promote(Call &c,
                                               ArrayRef<std::string> names) {
  // In order of precedence: tensors, tensors without dimensions, numbers.
  std::optional<ElementType> found[3];
  SmallVector<Val> values;
  for (const std::string &name : names) {
    Val v = c.tensor(name);
    if (!v.isTensor() && !v.isConst())
      return c.error("'" + name + "' is no tensor");
    int level = isNumber(c, name) ? 2 : v.dims.empty() ? 1 : 0;
    ElementType type = v.type;
    if (level == 2 && isFloat(type))
      type = ElementType::F32; // torch.get_default_dtype().
    found[level] = found[level] ? promoteTypes(*found[level], type) : type;
    values.push_back(v);
  }
  std::optional<ElementType> type;
  for (int level : {2, 1, 0})
    if (found[level])
      type = !type || categoryOf(*found[level]) >= categoryOf(*type)
                 ? *found[level]
                 : *type;
  Promoted result;
  result.type = *type;
  for (Val &v : values) {
    ASSIGN_OR_FAIL(Val cast, castTo(c, v, *type));
    result.values.push_back(cast);
  }
  return result;
}
