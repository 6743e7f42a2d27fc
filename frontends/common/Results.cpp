// Results.cpp - what the function returns, and what its arguments are.

#include "frontends/common/Importer.h"
#include "frontends/common/Roles.h"

#include "dialects/train/Train.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

using train::TrainDialect;

/// A buffer that the exported program writes, other than a normalization's
/// statistics, is a state; its new value has the name that the program gives
/// it. Where the exporter left out the new value, or folded the old one into a
/// constant, the buffer would stay as it is, silently.
LogicalResult Importer::updateBuffers() {
  std::map<std::string, std::string> written; // In the order of names.
  for (const auto &entry : mutated)
    written[entry.first().str()] = entry.second;
  std::vector<std::string> lost;
  for (const auto &[name, newName] : written) {
    const Val &next = lookup(newName);
    auto found = tensorOf.find(name);
    if (found == tensorOf.end()) {
      if (next.kind != Val::Absent)
        lost.push_back(name);
      continue;
    }
    int index = found->second;
    if (!used.contains(tensors[index].valueName()) ||
        llvm::any_of(results, [&](const Result &result) {
          return result.updates == index;
        }))
      continue;
    BlockArgument argument = tensors[index].argument;
    if (!argument || !next.isTensor() ||
        next.value.getType() != argument.getType()) {
      lost.push_back(name);
      continue;
    }
    results.push_back({next.value, name, false, index});
    arguments[argument.getArgNumber()].init = "zeros";
  }
  if (lost.empty())
    return success();
  Failure f = Failure::unsupported(
      "the model writes " + std::to_string(lost.size()) +
      (lost.size() == 1 ? " buffer whose" : " buffers whose") +
      " old or new value isn't in the graph, or isn't of floats");
  std::string names;
  for (const std::string &name : lost)
    names += (names.empty() ? "" : ", ") + name;
  f.notes.push_back("written: " + names);
  f.notes.push_back(howToKeepBuffers);
  return fail(std::move(f)), mlir::failure();
}

FailureOr<Value> Importer::stateOf(const Val &v) {
  int index = storedBehind(v);
  if (index < 0)
    return mlir::failure();
  for (Result &result : results)
    if (result.updates == index)
      return result.value;
  BlockArgument argument = argumentOf(tensors[index]);
  arguments[argument.getArgNumber()].role = Argument::State;
  return Value(argument);
}

void Importer::updateState(const Val &v, Value next) {
  int index = storedBehind(v);
  assert(index >= 0 && "stateOf comes first");
  for (Result &result : results)
    if (result.updates == index) {
      result.value = next;
      return;
    }
  results.push_back({next, tensors[index].name, false, index});
}

/// The shape that the file gives a value, if it contradicts `dims`. Exporters
/// get this wrong, so that it is no error.
static std::string declaredOtherwise(const Declared &declared,
                                     ArrayRef<int64_t> dims) {
  if (!declared.hasShape)
    return {};
  bool differs = declared.dims.size() != dims.size();
  std::string text = "[";
  for (auto [i, dim] : llvm::enumerate(declared.dims)) {
    bool isFixed = dim.isKnown && dim.symbol.empty();
    text += (i ? ", " : "") + (isFixed       ? std::to_string(dim.size)
                               : dim.isKnown ? dim.symbol
                                             : std::string("?"));
    if (!differs && isFixed && dim.size != dims[i])
      differs = true;
  }
  return differs ? text + "]" : std::string();
}

LogicalResult Importer::importResults(std::vector<Output> given) {
  outputs = std::move(given);
  std::vector<Result> updates;
  std::swap(updates, results);
  for (const Output &output : outputs) {
    const std::string &name = output.declared.name;
    const Val &v = lookup(output.value);
    if (v.kind == Val::Absent)
      return fail(Failure::input("nothing defines the output '" + name + "'")),
             mlir::failure();
    if (v.kind == Val::Sequence || !irType(v.type, &context)) {
      refuse({"output", name, "",
              v.kind == Val::Sequence ? "a sequence"
                                      : "elements of type " + nameOf(v.type)});
      continue;
    }
    auto value = materialise(v);
    if (failed(value))
      return mlir::failure();
    if (std::string declared = declaredOtherwise(output.declared, v.dims);
        !declared.empty())
      warn("output '" + name + "' has shape " + str(v.dims) +
           ", but the file says " + declared);
    results.push_back({*value, name, false, -1});
  }
  // The exporter may list new statistics among the outputs.
  for (Result &update : updates) {
    llvm::erase_if(results, [&](const Result &result) {
      return result.value == update.value;
    });
    results.push_back(std::move(update));
  }
  return success();
}

void Importer::removeDeadCode() {
  Block &block = function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Arguments that nothing reads: tensors that were only asked for their
/// shape, inputs that no output depends on.
void Importer::removeUnusedArguments() {
  Block &block = function.getBody().front();
  std::vector<Argument> keptArguments;
  llvm::BitVector unused(arguments.size());
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    // A state may be written without being read.
    bool isWritten =
        llvm::any_of(results, [&, &argument = argument](const Result &result) {
          return result.updates >= 0 && result.updates == argument.stored;
        });
    if (isWritten || !block.getArgument(i).use_empty()) {
      keptArguments.push_back(argument);
      continue;
    }
    unused.set(i);
    if (argument.role == Argument::Batch)
      warnings.push_back("input '" + argument.name +
                         "' isn't used and was left out");
    if (argument.stored >= 0)
      tensors[argument.stored].argument = {};
  }
  block.eraseArguments(unused);
  arguments = std::move(keptArguments);
}

LogicalResult Importer::setAttributes() {
  std::vector<llvm::GlobPattern> globs;
  std::vector<bool> matched(options.freeze.size());
  for (const std::string &text : options.freeze) {
    auto glob = llvm::GlobPattern::create(text);
    if (!glob) {
      llvm::consumeError(glob.takeError());
      return fail(Failure::usage("--freeze=" + text + " is no pattern")),
             mlir::failure();
    }
    globs.push_back(std::move(*glob));
  }
  Value loss;
  for (auto [i, result] : llvm::enumerate(results)) {
    function.setResultAttr(i, TrainDialect::kName,
                           b.getStringAttr(result.name));
    if (result.isLoss) {
      function.setResultAttr(i, TrainDialect::kLoss, b.getUnitAttr());
      loss = result.value;
    }
    if (result.updates >= 0) {
      int64_t argument = tensors[result.updates].argument.getArgNumber();
      function.setResultAttr(i, TrainDialect::kUpdates,
                             b.getI64IntegerAttr(argument));
    }
  }
  // Without the exporter's notes, buffers look like parameters.
  for (const Statistics &given : givenStatistics(function)) {
    std::pair<BlockArgument, const char *> both[] = {{given.mean, "zeros"},
                                                     {given.variance, "ones"}};
    for (auto [value, init] : both) {
      Argument &argument = arguments[value.getArgNumber()];
      if (argument.stored < 0 || argument.role != Argument::Param ||
          tensors[argument.stored].note == StoredTensor::Parameter)
        continue;
      argument.role = Argument::State;
      argument.init = init;
      warn("'" + argument.name + "' is taken for a statistic of a fixed " +
           "normalization: it stays as it is");
    }
  }
  SmallVector<bool> reached = reachesLoss(function, loss);
  SmallVector<bool> isParameter;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    auto role = argument.role == Argument::Param   ? train::Role::Param
                : argument.role == Argument::State ? train::Role::State
                : argument.role == Argument::Batch ? train::Role::Batch
                                                   : train::Role::Scalar;
    function.setArgAttr(i, TrainDialect::kRole,
                        train::RoleAttr::get(&context, role));
    function.setArgAttr(i, TrainDialect::kName, b.getStringAttr(argument.name));
    isParameter.push_back(argument.stored >= 0);
    if (argument.stored >= 0 && !tensors[argument.stored].aliases.empty()) {
      SmallVector<StringRef> names;
      llvm::append_range(names, tensors[argument.stored].aliases);
      function.setArgAttr(i, TrainDialect::kAliases, b.getStrArrayAttr(names));
    }
    if (argument.role != Argument::Param)
      continue;
    bool frozen = argument.frozen || !reached[i];
    for (auto [k, glob] : llvm::enumerate(globs))
      if (glob.match(argument.name))
        frozen = matched[k] = true;
    if (frozen)
      function.setArgAttr(i, TrainDialect::kFrozen, b.getUnitAttr());
  }
  for (auto [k, text] : llvm::enumerate(options.freeze))
    if (!matched[k])
      return fail(Failure::usage("--freeze=" + text +
                                 " matches no parameter of the model")),
             mlir::failure();
  inferInitialization(function, loss, isParameter);
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (!argument.init.empty())
      function.setArgAttr(i, TrainDialect::kInit,
                          b.getStringAttr(argument.init));
  return success();
}

LogicalResult Importer::finish() {
  SmallVector<Value> values;
  for (const Result &result : results)
    values.push_back(result.value);
  func::ReturnOp::create(b, UnknownLoc::get(&context), values);
  removeDeadCode();
  removeUnusedArguments();
  Block &block = function.getBody().front();
  function.setFunctionType(
      b.getFunctionType(block.getArgumentTypes(), ValueRange(values)));
  if (failed(setAttributes()))
    return mlir::failure();
  if (succeeded(verify(*module)))
    return success();
  fail(Failure::defect("the imported module doesn't verify"));
  return mlir::failure();
}
