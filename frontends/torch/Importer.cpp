#include "frontends/torch/Importer.h"
#include "frontends/Checked.h"
#include "frontends/common/Inputs.h"
#include "frontends/common/ops/Logic.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

TorchImporter::TorchImporter(Program program,
                             std::unique_ptr<ArchiveTensors> tensors,
                             const ImportOptions &options, MLIRContext &context)
    : Importer(std::move(tensors), options, context),
      program(std::move(program)) {
  howToKeepBuffers = "export the program with run_decompositions(), or leave "
                     "the update out of forward";
  howToAvoid = "write it with other operators";
  mayWriteConstants = true;
  listsStatistics = false;
}

/// Removes the exporter's assertions, and computations that only they need.
static void dropChecks(Program &program) {
  static const std::set<StringRef> checks = {
      "_assert_tensor_metadata", "_assert_scalar", "_assert_async",
      "sym_constrain_range", "sym_constrain_range_for_size"};
  std::set<std::string> wanted;
  for (const OutputSpec &output : program.outputs)
    wanted.insert(output.value);
  std::vector<CallData> kept;
  for (CallData &call : llvm::reverse(program.calls)) {
    const std::vector<std::string> made = call.makes();
    auto isWanted = [&](const std::string &name) {
      return wanted.count(name) != 0;
    };
    bool isKept = made.empty()
                      ? !checks.count(call.op())
                      : !writesOf(call).empty() || llvm::any_of(made, isWanted);
    if (!isKept)
      continue;
    for (const std::string &name : call.reads())
      wanted.insert(name);
    kept.push_back(std::move(call));
  }
  std::reverse(kept.begin(), kept.end());
  program.calls = std::move(kept);
}

/// The sizes in the example.
static std::map<std::string, int64_t>
proposedDims(const Program &program,
             const std::map<std::string, std::string> &symbolNames) {
  std::map<std::string, int64_t> proposed;
  for (const InputSpec &input : program.inputs) {
    auto meta = program.tensors.find(input.value);
    if (input.kind != InputSpec::User || meta == program.tensors.end())
      continue;
    for (auto [dim, hint] : llvm::zip(meta->second.dims, meta->second.hints)) {
      auto name = symbolNames.find(dim.symbol);
      if (name != symbolNames.end() && hint > 0)
        proposed.try_emplace(name->second, hint);
    }
  }
  return proposed;
}

Expected<ImportedModel> TorchImporter::run() {
  auto done = [&]() -> LogicalResult {
    dropChecks(program);
    checkOperators();
    findWrites();
    if (failed(checkExample()) || failed(readTensors()))
      return mlir::failure();
    FailureOr<std::vector<Declared>> declared = inputs();
    if (failed(declared) ||
        failed(bindDims(*declared, proposedDims(program, symbolNames))) ||
        failed(makeInputs(*declared)) || failed(importCalls()))
      return mlir::failure();
    if (!diagnostics.refusals.empty())
      return mlir::failure();
    updateWritten();
    if (failed(updateBuffers()) || failed(importResults(outputs())) ||
        failed(attachLoss()) || failed(finish()))
      return mlir::failure();
    markUncut(forward.function, *declared);
    return success();
  };
  return conclude(succeeded(done()));
}

//===----------------------------------------------------------------------===//
// Locations
//===----------------------------------------------------------------------===//

/// "addmm_12" -> "addmm": the number is the exporter's count.
static StringRef withoutCount(StringRef name) {
  StringRef stem = name.rtrim("0123456789");
  return stem.size() < name.size() && stem.size() > 1 && stem.ends_with("_")
             ? stem.drop_back()
             : name;
}

/// The path of the innermost module: "fc" for
/// "L__self__,,Net;L__self__fc,fc,Linear".
static StringRef moduleOf(StringRef stack) {
  StringRef innermost = stack.rsplit(';').second;
  if (innermost.empty())
    innermost = stack;
  StringRef path = innermost.split(',').second.split(',').first;
  return path.starts_with("_empty_nn_module_stack") ? StringRef() : path;
}

Location tmc::torch_import::locationOf(const CallData &call,
                                       MLIRContext &context) {
  StringRef module = moduleOf(call.modules), name = withoutCount(call.name);
  std::string path = module.empty() ? name.str() : (module + "." + name).str();
  if (path.empty())
    path = call.target;
  return NameLoc::get(StringAttr::get(&context, path),
                      Location(lineOf(call.stackTrace, context)));
}

//===----------------------------------------------------------------------===//
// Before the first call
//===----------------------------------------------------------------------===//

bool tmc::torch_import::holdsComplex(const Program &program,
                                     const std::string &name) {
  auto found = program.tensors.find(name);
  return found != program.tensors.end() &&
         isComplexNumber(found->second.typeNumber);
}

bool tmc::torch_import::isOfComplex(const Program &program,
                                    const CallData &call) {
  auto isOne = [&](const std::string &name) {
    return holdsComplex(program, name);
  };
  return llvm::any_of(call.reads(), isOne) || llvm::any_of(call.makes(), isOne);
}

/// Refuses every operator that has no importer.
void TorchImporter::checkOperators() {
  for (auto [i, call] : llvm::enumerate(program.calls)) {
    for (const std::string &name : call.reads()) {
      used.insert(name);
      lastRead[name] = i;
      if (!call.noGrad)
        readWithGrad.insert(name);
    }
    if (call.noGrad)
      for (const std::string &name : call.makes())
        madeWithoutGrad.insert(name);
    const bool ofComplex = isOfComplex(program, call);
    if (!importerOf(call.op(), ofComplex))
      (void)Call(*this, call, locationOf(call, context))
          .unsupported(ofComplex ? "complex numbers" : "");
  }
  for (const OutputSpec &output : program.outputs)
    if (!output.value.empty()) {
      used.insert(output.value);
      lastRead[output.value] = program.calls.size();
      if (output.kind != OutputSpec::Mutation)
        readWithGrad.insert(output.value);
    }
}

/// If the example gives one tensor object for several inputs, the exporter
/// merges them: all reads of any of them become reads of the last.
LogicalResult TorchImporter::checkExample() {
  std::vector<std::string> all, unread;
  for (const InputSpec &input : program.inputs)
    if (input.kind == InputSpec::User && program.tensors.count(input.value)) {
      all.push_back(input.value);
      if (!used.contains(input.value))
        unread.push_back(input.value);
    }
  if (unread.empty() || !program.exampleTensors ||
      *program.exampleTensors >= static_cast<int64_t>(all.size()))
    return success();
  return fail(oneForSeveral(unread)), mlir::failure();
}

/// Describes a stored tensor of complex numbers as pairs of floats, which have
/// the same bytes; false if no float type matches.
static bool asPairs(TensorMeta &meta) {
  meta.type = meta.typeNumber == 10   ? ElementType::F32
              : meta.typeNumber == 11 ? std::optional(ElementType::F64)
                                      : std::nullopt;
  for (int64_t &stride : meta.strides) {
    auto twice = checkedMul(stride, 2);
    if (!twice)
      return false;
    stride = *twice;
  }
  auto offset = checkedMul(meta.offset, 2);
  if (!meta.type || !offset)
    return false;
  meta.offset = *offset;
  Declared::Dim pair;
  pair.size = 2;
  meta.dims.push_back(pair);
  meta.strides.push_back(1);
  return true;
}

LogicalResult TorchImporter::readTensors() {
  forward.hasNotes = true;
  std::map<std::string, std::string> first; // By entry and view: the value.
  std::vector<std::pair<std::string, std::string>> ties;
  // A tied weight that the graph reads gives the name.
  std::vector<InputSpec> stored;
  for (bool isRead : {true, false})
    for (const InputSpec &input : program.inputs)
      if (input.kind != InputSpec::User && used.contains(input.value) == isRead)
        stored.push_back(input);
  for (const InputSpec &input : stored) {
    auto payload = program.payloads.find(input.target);
    Payload found;
    if (payload != program.payloads.end()) {
      found = payload->second;
    } else if (auto meta = program.tensors.find(input.value);
               meta != program.tensors.end()) {
      // A graph without values: the entry doesn't exist.
      found.meta = meta->second;
      found.entry = "data/weights/" + input.target;
    } else {
      fail(Failure::input("nothing says what '" + input.target + "' is"));
      return mlir::failure();
    }
    // Without its storage, a tensor may share memory unnoticed. It is treated
    // as another name only if the graph doesn't read it.
    const bool isOwn = found.meta.isMeta || !archive().archive.has(found.entry);
    if (found.meta.isMeta) {
      found.entry = "data/weights/" + input.target;
      while (archive().archive.has(found.entry))
        found.entry += "'";
    }
    if (isComplexNumber(found.meta.typeNumber) && !asPairs(found.meta)) {
      fail(Failure::unsupported("'" + input.target +
                                "' has complex numbers of halves"));
      return mlir::failure();
    }
    std::string key = found.entry + str(found.meta.strides) + " " +
                      std::to_string(found.meta.offset) + " " +
                      std::to_string(found.meta.typeNumber);
    for (const Declared::Dim &dim : found.meta.dims)
      key += " " + std::to_string(dim.size);
    auto [tied, isNew] = first.try_emplace(key, input.value);
    if (!isNew && input.kind == InputSpec::Parameter &&
        !(isOwn && used.contains(input.value))) {
      ties.push_back({input.value, tied->second});
      for (StoredTensor &tensor : forward.tensors)
        if (tensor.value == tied->second)
          tensor.aliases.push_back(input.target);
      continue;
    }
    auto added = archive().add(input.target, found);
    if (!added)
      return fail(added.failure()), mlir::failure();
    if (!forward.tensorOf.try_emplace(input.target, forward.tensors.size())
             .second) {
      fail(Failure::input("the program has two tensors named '" + input.target +
                          "'"));
      return mlir::failure();
    }
    StoredTensor tensor;
    tensor.name = input.target;
    tensor.value = input.value;
    tensor.type = *found.meta.type;
    for (const Declared::Dim &dim : found.meta.dims)
      tensor.dims.push_back(dim.size);
    tensor.mayBeMissing = !archive().archive.has(found.entry);
    tensor.note = input.kind == InputSpec::Parameter ? StoredTensor::Parameter
                                                     : StoredTensor::Buffer;
    tensor.frozen =
        input.kind == InputSpec::Parameter && !found.meta.requiresGrad;
    tensor.isPersistent = input.isPersistent;
    forward.tensors.push_back(std::move(tensor));
  }
  for (const StoredTensor &tensor : forward.tensors) // With all their names.
    if (tensor.note == StoredTensor::Parameter && !tensor.frozen &&
        forward.mutated.contains(tensor.name) && !isFrozen(options, tensor))
      refuseTrained(tensor);
  if (failed(addTensors()))
    return mlir::failure();
  for (const auto &[name, of] : ties) {
    scopes.back().values[name] = lookup(of);
    shared.memory[name] = of;
  }
  return success();
}

/// Exporters make two symbols of one `Dim.AUTO` if nothing in the model relates
/// the inputs. Among symbols in dimension 0 of inputs, equal sizes in the
/// example mean equal numbers of samples: --batch applies to all of them.
static void bindAlike(ArrayRef<Declared> inputs,
                      const std::map<std::string, int64_t> &example,
                      ImportOptions &options,
                      llvm::function_ref<void(std::string)> warn) {
  std::string samples;
  for (const Declared &input : inputs) {
    const std::string symbol =
        input.dims.empty() ? std::string() : input.dims[0].symbol;
    if (!options.batch || symbol.empty() || symbol == samples)
      continue;
    if (samples.empty()) {
      samples = symbol;
      continue;
    }
    auto rows = example.find(samples), others = example.find(symbol);
    if (rows == example.end() || others == example.end() ||
        rows->second != others->second ||
        !options.dims.try_emplace(symbol, *options.batch).second)
      continue;
    warn("--batch=" + std::to_string(*options.batch) + " holds for '" + symbol +
         "' too, which has as many rows as '" + samples +
         "' in the example; --dim " + symbol + "=N says otherwise");
  }
}

FailureOr<std::vector<Declared>> TorchImporter::inputs() {
  std::vector<Declared> list;
  for (const InputSpec &input : program.inputs) {
    if (input.kind != InputSpec::User)
      continue;
    auto meta = program.tensors.find(input.value);
    if (meta == program.tensors.end()) {
      fail(Failure::input("nothing says what input '" + input.value + "' is"));
      return mlir::failure();
    }
    Declared declared;
    declared.name = input.value;
    declared.type = meta->second.type;
    declared.typeName = "number " + std::to_string(meta->second.typeNumber);
    for (auto [i, dim] : llvm::enumerate(meta->second.dims)) {
      Declared::Dim named = dim;
      if (StringRef(dim.symbol).contains('(')) {
        fail(Failure::unsupported("dimension " + std::to_string(i) +
                                  " of input '" + input.value + "' is " +
                                  dim.symbol + ", not a size or a symbol")
                 .note("export it with a Dim of its own, or a fixed size"));
        return mlir::failure();
      }
      if (!dim.symbol.empty())
        named.symbol =
            symbolNames
                .try_emplace(dim.symbol, input.value + "." + std::to_string(i))
                .first->second;
      declared.dims.push_back(named);
    }
    list.push_back(std::move(declared));
  }
  // The exporter's own names are accepted as well.
  for (const auto &[symbol, name] : symbolNames)
    if (auto found = options.dims.find(symbol); found != options.dims.end()) {
      options.dims[name] = found->second;
      options.dims.erase(symbol);
    }
  bindAlike(list, proposedDims(program, symbolNames), options,
            [&](std::string text) { warn(std::move(text)); });
  return list;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

LogicalResult TorchImporter::importCalls() {
  for (auto [i, each] : llvm::enumerate(program.calls)) {
    const CallData &data = each;
    Call call(*this, data, locationOf(data, context));
    size_t index = i;
    ImportFn fn = importerOf(data.op(), isOfComplex(program, data));
    auto import = [&]() -> LogicalResult {
      // A file may declare other shapes as complex numbers.
      for (const std::string &name : data.reads())
        if (const Val v = lookup(name);
            isComplex(name) && (v.dims.empty() || v.dims.back() != 2))
          return call.error("takes shape " + str(v.dims) + " for pairs");
      std::vector<Write> writes = writesOf(data);
      // A written argument such as `out` gives only the place, and isn't read.
      for (const auto &[name, argument] : data.arguments)
        for (const Write &write : writes)
          if (argument.kind == Arg::Tensor && argument.text == write.value)
            call.ignore({name.c_str()});
      LogicalResult done = writes.empty() ? fn(call)
                           : movesStatistics(data)
                               ? moveStatistics(call, index, fn, writes)
                               : importWrite(call, index, fn, writes);
      return failed(done) ? done : call.checkAllRead();
    };
    llvm::function_ref<LogicalResult()> known;
    if (fn)
      known = import;
    if (failed(importNode(call, data.reads(), data.makes(), known)))
      return mlir::failure();
    if (data.noGrad)
      cutGradients(data, call.loc);
  }
  return success();
}

std::optional<std::pair<ElementType, Dims>>
TorchImporter::declaredType(const std::string &name) const {
  auto found = program.tensors.find(name);
  if (found == program.tensors.end() || !found->second.type)
    return std::nullopt;
  SmallVector<Declared::Dim> dims;
  for (const Declared::Dim &dim : found->second.dims) {
    auto symbol = symbolNames.find(dim.symbol);
    dims.push_back(
        {dim.size, symbol == symbolNames.end() ? dim.symbol : symbol->second});
  }
  std::optional<Dims> sizes = boundSizes(dims);
  if (!sizes)
    return std::nullopt;
  return std::pair(*found->second.type, *sizes);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The user's outputs, with their names in the tree of results; if the tree has
/// no name, or only a number, with the graph's names.
std::vector<Importer::Output> TorchImporter::outputs() {
  std::vector<Output> list;
  std::set<std::string> taken;
  size_t place = 0, places = 0;
  for (const OutputSpec &output : program.outputs)
    places += output.kind != OutputSpec::Mutation;
  bool areNamed = program.outputNames.size() == places;
  for (const OutputSpec &output : program.outputs) {
    if (output.kind == OutputSpec::Mutation)
      continue;
    std::string name = areNamed ? program.outputNames[place] : std::string();
    ++place;
    if (output.value.empty())
      continue; // No tensor.
    if (name.empty() || llvm::all_of(name, llvm::isDigit) ||
        !taken.insert(name).second)
      name = output.value;
    Output entry;
    entry.value = output.value;
    entry.declared.name = name;
    entry.declared.hasShape = false;
    if (output.kind == OutputSpec::Loss && options.loss.empty())
      options.loss = name;
    list.push_back(std::move(entry));
  }
  return list;
}
