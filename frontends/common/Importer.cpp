#include "frontends/common/Importer.h"
#include "frontends/Checked.h"
#include "frontends/common/Names.h"

#include "dialects/train/Train.h"

#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// The most elements of a tensor in the IR.
constexpr int64_t kMaxElements = int64_t(1) << 46;

/// `context` with the dialects of an imported function.
static MLIRContext &withDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, math::MathDialect, func::FuncDialect,
                      nn::NNDialect, train::TrainDialect>();
  return context;
}

Importer::Importer(std::unique_ptr<TensorStore> store,
                   const ImportOptions &options, MLIRContext &context)
    : forward(withDialects(context), diagnostics), store(std::move(store)),
      options(options), context(context) {
  scopes.emplace_back();
}

Expected<ImportedModel> Importer::conclude(bool done) {
  // Other errors may be consequences of refusals.
  if (!diagnostics.refusals.empty())
    return allOf(diagnostics.refusals, howToAvoid);
  if (diagnostics.failure)
    return *diagnostics.failure;
  if (!done)
    return Failure::defect("importing failed without saying why");
  if (std::optional<Failure> bad = findBadName(*forward.module))
    return *std::move(bad);

  ImportedModel result;
  std::vector<Weights::Entry> entries;
  for (const Argument &argument : forward.arguments)
    if (argument.stored >= 0)
      entries.push_back(
          {forward.tensors[argument.stored].name, argument.stored});
  std::vector<Weights::Unused> unused;
  std::vector<std::string> transient;
  for (auto [i, tensor] : llvm::enumerate(forward.tensors)) {
    if (!tensor.isPersistent)
      transient.push_back(tensor.name);
    else if (!tensor.argument && tensor.note != StoredTensor::None)
      unused.push_back({{tensor.name, int(i)},
                        tensor.aliases,
                        tensor.type,
                        {tensor.dims.begin(), tensor.dims.end()}});
  }
  result.module = std::move(forward.module);
  result.weights =
      std::make_unique<Weights>(std::move(store), std::move(entries),
                                std::move(unused), std::move(transient));
  result.warnings = std::move(diagnostics.warnings);
  return result;
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
  for (auto [i, tensor] : llvm::enumerate(forward.tensors)) {
    Val v;
    v.type = tensor.type;
    v.dims = tensor.dims;
    bool isArgument = forward.isTrainable(tensor);
    // A large float table outside the file may be missing: nothing is folded
    // from it.
    if (isFloat(tensor.type) && tensor.mayBeMissing &&
        tensor.bytes() > kMaxConstantBytes)
      isArgument = true;
    // The tensor's value changes: nothing is folded from it.
    bool isWritten = forward.mutated.contains(tensor.name);
    isArgument |= isWritten;
    if (isArgument) {
      v.kind = Val::Poisoned;
      if (!irType(tensor.type, &context))
        refuse({"parameter", tensor.name, "",
                "elements of type " + nameOf(tensor.type)});
      else
        v = Val(Value(forward.argumentOf(tensor)));
      if (isWritten && tensor.argument)
        forward.arguments[tensor.argument.getArgNumber()].role =
            Argument::State;
    } else {
      v.kind = Val::Const;
      v.constant = std::make_shared<Constant>();
      v.constant->stored = i;
    }
    scopes.back().values[tensor.valueName()] = std::move(v);
  }
  return success();
}

bool tmc::frontend::isFrozen(const ImportOptions &options,
                             const StoredTensor &tensor) {
  return llvm::any_of(options.freeze, [&](const std::string &text) {
    auto glob = llvm::GlobPattern::create(text);
    if (glob)
      return matchesName(*glob, tensor);
    llvm::consumeError(glob.takeError()); // `finish` reports it.
    return false;
  });
}

bool tmc::frontend::matchesName(const llvm::GlobPattern &glob,
                                const StoredTensor &tensor) {
  return glob.match(tensor.name) ||
         llvm::any_of(tensor.aliases, [&](const std::string &alias) {
           return glob.match(alias);
         });
}

Failure tmc::frontend::oneForSeveral(ArrayRef<std::string> unread) {
  return Failure::input("the model was exported with one tensor for several "
                        "inputs, and reads one of them for all: not " +
                        listed(unread))
      .note("give the exporter a tensor for each input: labels=ids.clone()");
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
    size_t refusalsBefore = diagnostics.refusals.size();
    isBroken = failed(import()) || diagnostics.refusals.size() > refusalsBefore;
    if (isBroken && diagnostics.refusals.empty() && !diagnostics.failure)
      return site.error("can't be imported");
  }
  if (diagnostics.failure && diagnostics.refusals.empty())
    return mlir::failure();
  diagnostics.failure.reset(); // An unsupported operator may have caused it.
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
      v = Val(nn::splat(forward.b, loc,
                        RankedTensorType::get(dims, irType(type, &context)),
                        0));
  }
  scopes.back().values.try_emplace(name, std::move(v));
}

//===----------------------------------------------------------------------===//
// Constants and broadcasts
//===----------------------------------------------------------------------===//

FailureOr<Array> Importer::arrayOf(const Val &v) {
  Constant &constant = *v.constant;
  if (!constant.array) {
    const StoredTensor &tensor = forward.tensors[constant.stored];
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
  OpBuilder &b = forward.b;
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
      known = forward.argumentOf(forward.tensors[v.constant->stored]);
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
        DenseElementsAttr attr =
            part.size() == 0 ? attributeOf(part.reshaped(dims), &context)
                             : attributeOf(splat, &context);
        if (part.size() != 0)
          attr = DenseElementsAttr::get(type, attr.getSplatValue<Attribute>());
        return Value(arith::ConstantOp::create(b, loc, type, attr));
      }
      if (!known) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(&forward.function.getBody().front());
        DenseElementsAttr attr = attributeOf(part, &context);
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
