#include "frontends/common/Forward.h"
#include "frontends/Checked.h"
#include "frontends/common/Names.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

//===----------------------------------------------------------------------===//
// Tensors of the file
//===----------------------------------------------------------------------===//

int64_t StoredTensor::bytes() const {
  auto count = checkedNumElements(dims);
  auto bytes = count ? checkedMul(*count, sizeInFile(type)) : std::nullopt;
  return bytes.value_or(-1);
}

bool tmc::frontend::isModuleName(StringRef name) {
  return !name.empty() && !llvm::isDigit(name[0]) &&
         llvm::all_of(name, [](char c) {
           return llvm::isAlnum(c) || c == '_' || c == '.';
         });
}

std::string tmc::frontend::cleanName(StringRef name) {
  name = name.ltrim('/');
  std::string clean;
  for (char c : name)
    clean += c == '/' ? '.' : c;
  return clean;
}

Forward::Forward(MLIRContext &context, Diagnostics &diagnostics)
    : b(&context), diagnostics(diagnostics) {
  Location loc = UnknownLoc::get(&context);
  module = ModuleOp::create(loc);
  b.setInsertionPointToStart(module->getBody());
  function = func::FuncOp::create(b, loc, "forward", b.getFunctionType({}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
}

bool Forward::isTrainable(const StoredTensor &tensor) const {
  if (!isFloat(tensor.type))
    return false;
  if (hasNotes)
    return tensor.note == StoredTensor::Parameter;
  auto count = checkedNumElements(tensor.dims);
  if (!count || *count != 1)
    return count && *count > 1;
  return isModuleName(tensor.name) &&
         (namesAreModules ||
          (!tensor.dims.empty() && StringRef(tensor.name).contains('.')));
}

BlockArgument Forward::argumentOf(StoredTensor &tensor) {
  if (!tensor.argument) {
    auto type =
        RankedTensorType::get(tensor.dims, irType(tensor.type, b.getContext()));
    Argument argument;
    argument.role = Argument::Param;
    argument.name = tensor.name;
    argument.stored = &tensor - tensors.data();
    argument.frozen = tensor.frozen || !isTrainable(tensor);
    arguments.push_back(argument);
    tensor.argument = function.getBody().front().addArgument(
        type, NameLoc::get(b.getStringAttr(cleanName(tensor.name))));
  }
  return tensor.argument;
}

FailureOr<Value> Forward::addArgument(Type type, Argument argument) {
  for (const Argument &other : arguments)
    if (other.name == argument.name)
      return diagnostics.fail(
                 Failure::input("two arguments of the step are named '" +
                                argument.name + "'")),
             mlir::failure();
  Value value = function.getBody().front().addArgument(
      type, NameLoc::get(b.getStringAttr(cleanName(argument.name))));
  arguments.push_back(std::move(argument));
  return value;
}

Value Forward::seed() {
  if (!seedArgument) {
    Argument argument;
    argument.role = Argument::Scalar;
    argument.name = "seed";
    auto value = addArgument(RankedTensorType::get({2}, b.getI64Type()),
                             std::move(argument));
    if (succeeded(value))
      seedArgument = *value;
  }
  return seedArgument;
}

Value Forward::samples() {
  if (!samplesArgument) {
    Argument argument;
    argument.name = "samples";
    auto value = addArgument(RankedTensorType::get({batch}, b.getI64Type()),
                             std::move(argument));
    if (succeeded(value))
      samplesArgument = *value;
  }
  return samplesArgument;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

int Forward::storedBehind(const Val &v) const {
  if (v.isConst())
    return v.constant->stored;
  for (auto [i, tensor] : llvm::enumerate(tensors))
    if (v.isTensor() && tensor.argument == v.value)
      return i;
  auto found = v.isTensor() ? newValues.find(v.value) : newValues.end();
  return found == newValues.end() ? -1 : found->second;
}

Value Forward::newValueOf(int index) const {
  auto found = llvm::find_if(
      results, [&](const Result &result) { return result.updates == index; });
  return index < 0 || found == results.end() ? Value() : found->value;
}

bool Forward::isMutated(const Val &v) const {
  int index = storedBehind(v);
  return index >= 0 && mutated.contains(tensors[index].name);
}

std::optional<Val> Forward::asConstant(const Val &v) const {
  int index = storedBehind(v);
  if (index < 0 || tensors[index].note == StoredTensor::Parameter ||
      isMutated(v) || newValues.count(v.value))
    return std::nullopt;
  Val constant = v;
  constant.kind = Val::Const;
  constant.value = {};
  constant.constant = std::make_shared<Constant>();
  constant.constant->stored = index;
  return constant;
}

bool Forward::isInput(const Val &v) const {
  return v.isTensor() && isa<BlockArgument>(v.value) && storedBehind(v) < 0;
}

bool Forward::isTrained(Value v) const {
  llvm::SmallPtrSet<Value, 32> seen;
  SmallVector<Value> left{v};
  while (!left.empty()) {
    Value next = left.pop_back_val();
    if (!seen.insert(next).second ||
        !isa<FloatType>(getElementTypeOrSelf(next.getType())))
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      const Argument &is = arguments[argument.getArgNumber()];
      if (is.role == Argument::Param && !is.frozen)
        return true;
    } else if (!isa<nn::DetachOp>(next.getDefiningOp())) {
      llvm::append_range(left, next.getDefiningOp()->getOperands());
    }
  }
  return false;
}

Val Forward::detached(const Val &v, Location loc) {
  if (!v.isTensor() || !isFloat(v.type) || isInput(v) ||
      isa_and_nonnull<nn::DetachOp>(v.value.getDefiningOp()))
    return v; // No gradient flows there anyway.
  return Val(Value(nn::DetachOp::create(b, loc, v.value)));
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

FailureOr<Value> Forward::stateOf(const Val &v) {
  int index = storedBehind(v);
  if (index < 0)
    return mlir::failure();
  if (v.isTensor() && newValues.count(v.value))
    return v.value;
  for (Result &result : results)
    if (result.updates == index)
      return result.value;
  BlockArgument argument = argumentOf(tensors[index]);
  arguments[argument.getArgNumber()].role = Argument::State;
  return Value(argument);
}

void Forward::updateState(const Val &v, Value next) {
  int index = storedBehind(v);
  assert(index >= 0 && "stateOf comes first");
  newValues[next] = index;
  for (Result &result : results)
    if (result.updates == index) {
      result.value = next;
      return;
    }
  results.push_back({next, tensors[index].name, false, index});
}

void Forward::fixState(const Val &v, StringRef init) {
  int index = storedBehind(v);
  if (index < 0 || !tensors[index].argument)
    return;
  Argument &argument = arguments[tensors[index].argument.getArgNumber()];
  argument.role = Argument::State;
  argument.init = init.str();
}
