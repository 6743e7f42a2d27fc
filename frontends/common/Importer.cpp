#include "frontends/common/Importer.h"
#include "frontends/Checked.h"
#include "frontends/common/Names.h"

#include "dialects/train/Train.h"

#include "llvm/Support/GlobPattern.h"

#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// The most elements of a tensor in the IR.
constexpr int64_t kMaxElements = int64_t(1) << 46;

int64_t StoredTensor::bytes() const {
  auto count = checkedNumElements(dims);
  auto bytes = count ? checkedMul(*count, sizeInFile(type)) : std::nullopt;
  return bytes.value_or(-1);
}

Importer::Importer(std::unique_ptr<TensorStore> store,
                   const ImportOptions &options, MLIRContext &context)
    : b(&context), store(std::move(store)), options(options), context(context) {
  context.loadDialect<arith::ArithDialect, math::MathDialect, func::FuncDialect,
                      nn::NNDialect, train::TrainDialect>();
  Location loc = UnknownLoc::get(&context);
  module = ModuleOp::create(loc);
  b.setInsertionPointToStart(module->getBody());
  function = func::FuncOp::create(b, loc, "forward", b.getFunctionType({}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
  scopes.emplace_back();
}

Expected<ImportedModel> Importer::conclude(bool done) {
  // Other errors may be consequences of refusals.
  if (!refusals.empty())
    return allOf(refusals, howToAvoid);
  if (failure)
    return *failure;
  if (!done)
    return Failure::defect("importing failed without saying why");
  if (std::optional<Failure> bad = findBadName(*module))
    return *std::move(bad);

  ImportedModel result;
  std::vector<Weights::Entry> entries;
  for (const Argument &argument : arguments)
    if (argument.stored >= 0)
      entries.push_back({tensors[argument.stored].name, argument.stored});
  std::vector<Weights::Unused> unused;
  std::vector<std::string> transient;
  for (auto [i, tensor] : llvm::enumerate(tensors)) {
    if (!tensor.isPersistent)
      transient.push_back(tensor.name);
    else if (!tensor.argument && tensor.note != StoredTensor::None)
      unused.push_back({{tensor.name, int(i)},
                        tensor.aliases,
                        tensor.type,
                        {tensor.dims.begin(), tensor.dims.end()}});
  }
  result.module = std::move(module);
  result.weights =
      std::make_unique<Weights>(std::move(store), std::move(entries),
                                std::move(unused), std::move(transient));
  result.warnings = std::move(warnings);
  return result;
}

std::string tmc::frontend::cleanName(StringRef name) {
  name = name.ltrim('/');
  std::string clean;
  for (char c : name)
    clean += c == '/' ? '.' : c;
  return clean;
}

LocationAttr tmc::frontend::lineOf(StringRef trace, MLIRContext &context) {
  size_t at = trace.rfind("File \"");
  if (at == StringRef::npos)
    return UnknownLoc::get(&context);
  auto [file, rest] = trace.drop_front(at + 6).split("\", line ");
  unsigned line;
  if (rest.consumeInteger(10, line))
    return UnknownLoc::get(&context);
  if (file.starts_with("/")) {
    StringRef packages = "/site-packages/";
    size_t cut = file.find(packages);
    file = cut == StringRef::npos ? file.drop_front(file.rfind('/') + 1)
                                  : file.drop_front(cut + packages.size());
  }
  return FileLineColLoc::get(&context, file, line, 0);
}

//===----------------------------------------------------------------------===//
// Tensors of the file
//===----------------------------------------------------------------------===//

LogicalResult Importer::addTensors() {
  for (auto [i, tensor] : llvm::enumerate(tensors)) {
    Val v;
    v.type = tensor.type;
    v.dims = tensor.dims;
    bool isArgument = isTrainable(tensor);
    // A large float table outside the file may be missing: nothing is folded
    // from it.
    if (isFloat(tensor.type) && tensor.mayBeMissing &&
        tensor.bytes() > kMaxConstantBytes)
      isArgument = true;
    // The tensor's value changes: nothing is folded from it.
    bool isWritten = mutated.contains(tensor.name);
    isArgument |= isWritten;
    if (isArgument) {
      v.kind = Val::Poisoned;
      if (!irType(tensor.type, &context))
        refuse({"parameter", tensor.name, "",
                "elements of type " + nameOf(tensor.type)});
      else
        v = Val(Value(argumentOf(tensor)));
      if (isWritten && tensor.argument)
        arguments[tensor.argument.getArgNumber()].role = Argument::State;
    } else {
      v.kind = Val::Const;
      v.constant = std::make_shared<Constant>();
      v.constant->stored = i;
    }
    scopes.back().values[tensor.valueName()] = std::move(v);
  }
  return success();
}

/// True if `name` has the form of a module's names, "top.2.bias" or "scale",
/// and not the form in which exporters and optimizers name constants,
/// "onnx::Add_12", "/top/Add_output_0", "21".
static bool isModuleName(StringRef name) {
  return !name.empty() && !llvm::isDigit(name[0]) &&
         llvm::all_of(name, [](char c) {
           return llvm::isAlnum(c) || c == '_' || c == '.';
         });
}

/// By the exporter's notes, if it left any. Otherwise a stored float tensor is
/// trainable if it has more than one element, or if it is a single number with
/// a module's name. If names may be others than modules', such a number also
/// needs a dot in its name and a dimension, which distinguish it from a
/// constant. The path to the loss is checked at the end.
bool Importer::isTrainable(const StoredTensor &tensor) const {
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

/// Warns of single numbers that may be a module's own and aren't trained.
void Importer::warnOfConstants() {
  if (hasNotes || namesAreModules)
    return;
  std::vector<std::string> names;
  for (const StoredTensor &tensor : tensors) {
    StringRef count = StringRef(tensor.name).rsplit('_').second;
    bool isCounted = !count.empty() && llvm::all_of(count, llvm::isDigit);
    if (isFloat(tensor.type) && checkedNumElements(tensor.dims) == 1 &&
        !isTrainable(tensor) && isModuleName(tensor.name) && !isCounted &&
        used.contains(tensor.valueName()))
      names.push_back(tensor.name);
  }
  if (!names.empty())
    warn("numbers of the file are constants, and aren't trained: " +
         listed(names));
}

BlockArgument Importer::argumentOf(StoredTensor &tensor) {
  if (!tensor.argument) {
    auto type =
        RankedTensorType::get(tensor.dims, irType(tensor.type, &context));
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

int Importer::storedBehind(const Val &v) const {
  if (v.isConst())
    return v.constant->stored;
  for (auto [i, tensor] : llvm::enumerate(tensors))
    if (v.isTensor() && tensor.argument == v.value)
      return i;
  auto found = v.isTensor() ? newValues.find(v.value) : newValues.end();
  return found == newValues.end() ? -1 : found->second;
}

Value Importer::newValueOf(int index) const {
  auto found = llvm::find_if(
      results, [&](const Result &result) { return result.updates == index; });
  return index < 0 || found == results.end() ? Value() : found->value;
}

bool Importer::isFrozenByUser(StringRef name) const {
  return llvm::any_of(options.freeze, [&](const std::string &text) {
    auto glob = llvm::GlobPattern::create(text);
    if (glob)
      return glob->match(name);
    llvm::consumeError(glob.takeError()); // `finish` reports it.
    return false;
  });
}

Failure tmc::frontend::oneForSeveral(ArrayRef<std::string> unread) {
  return Failure::input("the model was exported with one tensor for several "
                        "inputs, and reads one of them for all: not " +
                        listed(unread))
      .note("give the exporter a tensor for each input: labels=ids.clone()");
}

bool Importer::isMutated(const Val &v) const {
  int index = storedBehind(v);
  return index >= 0 && mutated.contains(tensors[index].name);
}

std::optional<Val> Importer::asConstant(const Val &v) const {
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

bool Importer::isTrained(Value v) const {
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

void Importer::fixState(const Val &v, StringRef init) {
  int index = storedBehind(v);
  if (index < 0 || !tensors[index].argument)
    return;
  Argument &argument = arguments[tensors[index].argument.getArgNumber()];
  argument.role = Argument::State;
  argument.init = init.str();
}

bool Importer::isInput(const Val &v) const {
  return v.isTensor() && isa<BlockArgument>(v.value) && storedBehind(v) < 0;
}

Val Importer::detached(const Val &v, Location loc) {
  if (!v.isTensor() || !isFloat(v.type) || isInput(v) ||
      isa_and_nonnull<nn::DetachOp>(v.value.getDefiningOp()))
    return v; // No gradient flows there anyway.
  return Val(Value(nn::DetachOp::create(b, loc, v.value)));
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

LogicalResult Importer::importNode(Site &site, ArrayRef<std::string> inputs,
                                   ArrayRef<std::string> outputs,
                                   llvm::function_ref<LogicalResult()> import) {
  bool poisoned = false;
  for (const std::string &name : inputs) {
    if (name.empty())
      continue;
    const Val &v = lookup(name);
    // Within a function, an optional input may be absent.
    if (v.kind == Val::Absent && scopes.size() == 1)
      return site.error("reads '" + name + "', which nothing defines");
    poisoned |= v.kind == Val::Poisoned;
  }
  bool isBroken = poisoned || !import;
  if (!isBroken) {
    size_t refusalsBefore = refusals.size();
    isBroken = failed(import()) || refusals.size() > refusalsBefore;
    if (isBroken && refusals.empty() && !failure)
      return site.error("can't be imported");
  }
  if (failure && refusals.empty())
    return mlir::failure();
  failure.reset(); // An unsupported operator may have caused it.
  if (isBroken)
    for (const std::string &name : outputs)
      if (!name.empty())
        poison(name, site.loc);
  return success();
}

std::optional<Dims> Importer::boundSizes(ArrayRef<Declared::Dim> dims) const {
  Dims sizes;
  for (const Declared::Dim &dim : dims) {
    auto found = bound.find(dim.symbol);
    if (!dim.isKnown || (!dim.symbol.empty() && found == bound.end()))
      return std::nullopt;
    sizes.push_back(dim.symbol.empty() ? dim.size : found->second);
  }
  return sizes;
}

/// Defines `name` as a value that can't be computed. Zeros stand in for floats
/// whose size the file gives. Integers get no stand-in, because they may be
/// sizes.
void Importer::poison(const std::string &name, Location loc) {
  Val v;
  v.kind = Val::Poisoned;
  if (auto declared = declaredType(name);
      declared && isFloat(declared->first)) {
    auto [type, dims] = *declared;
    auto count = checkedNumElements(dims);
    if (irType(type, &context) && count && *count <= kMaxElements)
      v = Val(nn::splat(
          b, loc, RankedTensorType::get(dims, irType(type, &context)), 0));
  }
  scopes.back().values.try_emplace(name, std::move(v));
}

//===----------------------------------------------------------------------===//
// Constants and broadcasts
//===----------------------------------------------------------------------===//

FailureOr<Array> Importer::arrayOf(const Val &v) {
  Constant &constant = *v.constant;
  if (!constant.array) {
    const StoredTensor &tensor = tensors[constant.stored];
    auto bytes = store->read(constant.stored);
    if (!bytes) {
      // Its value is needed: without it the model isn't complete.
      Failure failure = std::move(bytes.failure());
      if (failure.kind == FailureKind::World)
        failure.kind = FailureKind::Input;
      return fail(std::move(failure)), mlir::failure();
    }
    constant.array = Array::ofBytes(tensor.type, tensor.dims, *bytes);
  }
  return *constant.array;
}

FailureOr<Value> Importer::materialise(const Val &v) {
  if (v.isTensor())
    return v.value;
  return broadcast(v, v.dims, UnknownLoc::get(&context));
}

Value tmc::frontend::reshape(OpBuilder &b, Location loc, Value x,
                             ArrayRef<int64_t> dims) {
  while (auto view = x.getDefiningOp<nn::ReshapeOp>())
    x = view.getInput();
  return nn::reshapeTo(b, loc, x, dims);
}

/// The dimensions of `dims` to which those of an operand of `rank` align.
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
    // A large table is an argument; a constant is written without repetition.
    int64_t bytes = array->distinct() * sizeInFile(v.type);
    if (!known && v.constant->stored >= 0 && isFloat(v.type) &&
        bytes > kMaxConstantBytes) {
      known = argumentOf(tensors[v.constant->stored]);
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
