// Results.cpp - the function's results, and the roles of its arguments.

#include "frontends/Checked.h"
#include "frontends/common/Importer.h"
#include "frontends/common/Roles.h"

#include "dialects/train/Train.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

using train::TrainDialect;
using Result = Forward::Result;

/// A buffer or parameter that the exported program writes, except a
/// normalization's statistics, is a state; its new value has the name that the
/// program gives it. If the exporter left out the new value, or folded the old
/// one into a constant, the buffer would stay unchanged without notice, so the
/// model is refused.
LogicalResult Importer::updateBuffers() {
  std::map<std::string, std::string> written; // In the order of names.
  for (const auto &entry : forward.mutated)
    written[entry.first().str()] = entry.second;
  std::vector<std::string> lost;
  for (const auto &[name, newName] : written) {
    const Val &next = lookup(newName);
    auto found = forward.tensorOf.find(name);
    if (found == forward.tensorOf.end()) {
      if (next.kind != Val::Absent)
        lost.push_back(name);
      continue;
    }
    int index = found->second;
    bool isKnown = next.kind != Val::Absent;
    if (forward.newValueOf(index) ||
        (!used.contains(forward.tensors[index].valueName()) && !isKnown))
      continue;
    BlockArgument argument = forward.tensors[index].argument;
    FailureOr<Value> value = mlir::failure();
    if (argument &&
        (next.isTensor() || (next.isConst() && mayWriteConstants)) &&
        next.type == forward.tensors[index].type &&
        next.dims == forward.tensors[index].dims)
      value = materialise(next);
    if (failed(value)) {
      lost.push_back(name);
      continue;
    }
    forward.results.push_back({*value, name, false, index});
    if (forward.tensors[index].note != StoredTensor::Parameter)
      forward.arguments[argument.getArgNumber()].init = "zeros";
  }
  if (lost.empty())
    return success();
  Failure f = Failure::unsupported(
      "the model writes " + std::to_string(lost.size()) +
      (lost.size() == 1 ? " buffer whose" : " buffers whose") +
      " old or new value isn't in the graph");
  std::string names;
  for (const std::string &name : lost)
    names += (names.empty() ? "" : ", ") + name;
  f.notes.push_back("written: " + names);
  f.notes.push_back(howToKeepBuffers);
  return fail(std::move(f)), mlir::failure();
}

/// The shape that the file gives a value, if it contradicts `dims`. Exporters
/// write wrong shapes, so this is no error.
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
  std::swap(updates, forward.results);
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
    forward.results.push_back({*value, name, false, -1});
  }
  // The exporter may list new statistics among the outputs.
  for (Result &update : updates) {
    if (listsStatistics)
      llvm::erase_if(forward.results, [&](const Result &result) {
        return result.value == update.value;
      });
    forward.results.push_back(std::move(update));
  }
  return success();
}

/// Drops integer states on which only their own new value depends, such as a
/// count of batches.
static void dropCounters(Forward &forward) {
  llvm::erase_if(forward.results, [&](const Result &result) {
    if (result.updates < 0 || isFloat(forward.tensors[result.updates].type))
      return false;
    BlockArgument argument = forward.tensors[result.updates].argument;
    if (argument.use_empty())
      return false;
    llvm::SmallPtrSet<Value, 16> seen{argument};
    SmallVector<Value> left{argument};
    while (!left.empty())
      for (Operation *user : left.pop_back_val().getUsers())
        for (Value made : user->getResults())
          if (seen.insert(made).second)
            left.push_back(made);
    return llvm::none_of(forward.results, [&](const Result &other) {
      return other.updates != result.updates && seen.contains(other.value);
    });
  });
}

/// Warns of places between trained parameters and the loss where gradients end.
/// The forward pass of a torch.autograd.Function may be exported so, and its
/// backward pass isn't in the file.
static void warnOfCuts(Importer &importer) {
  Forward &forward = importer.forward;
  Value loss;
  for (const Result &result : forward.results)
    if (result.isLoss)
      loss = result.value;
  if (forward.cuts.empty() || !loss)
    return;
  llvm::SmallPtrSet<Value, 32> reached = gradientReaches(loss);
  std::vector<std::string> places;
  for (Value value : forward.cuts) {
    bool isRead = llvm::any_of(value.getUsers(), [&](Operation *user) {
      return isa<nn::DetachOp>(user) && reached.contains(user->getResult(0));
    });
    if (std::string place = placeOf(value.getLoc());
        isRead && !llvm::is_contained(places, place))
      places.push_back(place);
  }
  if (!places.empty())
    importer.warn(
        "between trained parameters and the loss no gradient flows through "
        "what ran under torch.no_grad(), at " +
        listed(places) +
        " (the backward pass of a torch.autograd.Function isn't in a file)");
}

/// If a file leaves no trace of torch.no_grad(), gradients may flow through a
/// buffer's new value that was made without them; warns of such buffers.
static void warnOfNewValues(Importer &importer) {
  Forward &forward = importer.forward;
  Value loss;
  for (const Result &result : forward.results)
    if (result.isLoss)
      loss = result.value;
  if (!forward.leavesNoTraces || !loss)
    return;
  llvm::SmallPtrSet<Value, 32> reached = gradientReaches(loss);
  std::vector<std::string> names;
  for (const Result &result : forward.results)
    if (result.updates >= 0 && reached.contains(result.value) &&
        !isa_and_nonnull<nn::BatchNormOp>(result.value.getDefiningOp()) &&
        forward.isTrained(result.value))
      names.push_back(result.name);
  if (!names.empty())
    importer.warn(
        "gradients flow through the new values of buffers to trained "
        "parameters, and the file doesn't say whether they were made under "
        "torch.no_grad() (detach() is seen, and .pt2 says it): " +
        listed(names));
}

/// Warns of single numbers that may be a module's own and aren't trained.
static void warnOfConstants(Importer &importer) {
  Forward &forward = importer.forward;
  if (forward.hasNotes || forward.namesAreModules)
    return;
  std::vector<std::string> names;
  for (const StoredTensor &tensor : forward.tensors) {
    StringRef count = StringRef(tensor.name).rsplit('_').second;
    bool isCounted = !count.empty() && llvm::all_of(count, llvm::isDigit);
    if (isFloat(tensor.type) && checkedNumElements(tensor.dims) == 1 &&
        !forward.isTrainable(tensor) && isModuleName(tensor.name) &&
        !isCounted && importer.isUsed(tensor.valueName()))
      names.push_back(tensor.name);
  }
  if (!names.empty())
    importer.warn("numbers of the file are constants, and aren't trained: " +
                  listed(names));
}

/// True if `input` holds tokens of an embedding, and also the labels of a loss.
static bool isTokenAndLabel(BlockArgument input) {
  bool isToken = false, isLabel = false;
  llvm::SmallPtrSet<Value, 16> seen{input};
  SmallVector<Value> left{input};
  while (!left.empty())
    for (OpOperand &use : left.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (auto lookup = dyn_cast<nn::EmbeddingOp>(user))
        isToken |= use.get() == lookup.getIds();
      if (auto loss = dyn_cast<nn::CrossEntropyOp>(user))
        isLabel |= use.get() == loss.getLabels();
      for (Value made : user->getResults())
        if (getElementTypeOrSelf(made.getType()).isInteger(64) &&
            seen.insert(made).second)
          left.push_back(made);
    }
  return isToken && isLabel;
}

/// Refuses a model in which one input is tokens and labels, and another of the
/// same shape is unused.
static LogicalResult checkMerged(Importer &importer) {
  Forward &forward = importer.forward;
  if (!forward.leavesNoTraces)
    return success();
  Block &block = forward.function.getBody().front();
  for (BlockArgument idle : block.getArguments())
    for (BlockArgument busy : block.getArguments())
      if (forward.arguments[idle.getArgNumber()].role == Argument::Batch &&
          forward.arguments[busy.getArgNumber()].role == Argument::Batch &&
          idle.use_empty() && idle.getType() == busy.getType() &&
          isTokenAndLabel(busy))
        return importer.fail(
                   oneForSeveral(forward.arguments[idle.getArgNumber()].name)),
               mlir::failure();
  return success();
}

static void removeDeadCode(func::FuncOp function) {
  Block &block = function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Removes unused arguments: tensors of which only the shape was read, inputs
/// that no output depends on.
static void removeUnusedArguments(Importer &importer) {
  Forward &forward = importer.forward;
  Block &block = forward.function.getBody().front();
  std::vector<Argument> keptArguments;
  llvm::BitVector unused(forward.arguments.size());
  for (auto [i, argument] : llvm::enumerate(forward.arguments)) {
    // A state may be written without being read.
    bool isWritten = llvm::any_of(
        forward.results, [&, &argument = argument](const Result &result) {
          return result.updates >= 0 && result.updates == argument.stored;
        });
    if (isWritten || !block.getArgument(i).use_empty()) {
      keptArguments.push_back(argument);
      continue;
    }
    unused.set(i);
    if (argument.role == Argument::Batch)
      importer.warn("input '" + argument.name +
                    "' isn't used and was left out");
    if (argument.stored >= 0)
      forward.tensors[argument.stored].argument = {};
  }
  block.eraseArguments(unused);
  forward.arguments = std::move(keptArguments);
}

static LogicalResult setAttributes(Importer &importer,
                                   const ImportOptions &options) {
  Forward &forward = importer.forward;
  func::FuncOp function = forward.function;
  Builder &b = forward.b;
  std::vector<llvm::GlobPattern> globs;
  std::vector<bool> matched(options.freeze.size());
  for (const std::string &text : options.freeze) {
    auto glob = llvm::GlobPattern::create(text);
    if (!glob) {
      llvm::consumeError(glob.takeError());
      return importer.fail(
                 Failure::usage("--freeze=" + text + " is no pattern")),
             mlir::failure();
    }
    globs.push_back(std::move(*glob));
  }
  Value loss;
  for (auto [i, result] : llvm::enumerate(forward.results)) {
    function.setResultAttr(i, TrainDialect::kName,
                           b.getStringAttr(result.name));
    if (result.isLoss) {
      function.setResultAttr(i, TrainDialect::kLoss, b.getUnitAttr());
      loss = result.value;
    }
    if (result.updates >= 0) {
      int64_t argument =
          forward.tensors[result.updates].argument.getArgNumber();
      function.setResultAttr(i, TrainDialect::kUpdates,
                             b.getI64IntegerAttr(argument));
    }
  }
  // Without the exporter's notes, buffers look like parameters.
  for (const Statistics &given : givenStatistics(function)) {
    std::pair<BlockArgument, const char *> both[] = {{given.mean, "zeros"},
                                                     {given.variance, "ones"}};
    for (auto [value, init] : both) {
      Argument &argument = forward.arguments[value.getArgNumber()];
      if (argument.stored < 0 || argument.role != Argument::Param ||
          forward.tensors[argument.stored].note == StoredTensor::Parameter)
        continue;
      argument.role = Argument::State;
      argument.init = init;
      importer.warn("'" + argument.name +
                    "' is taken for a statistic of a fixed " +
                    "normalization: it stays as it is");
    }
  }
  SmallVector<bool> reached = reachesLoss(function, loss);
  SmallVector<bool> isParameter;
  for (auto [i, argument] : llvm::enumerate(forward.arguments)) {
    auto role = argument.role == Argument::Param   ? train::Role::Param
                : argument.role == Argument::State ? train::Role::State
                : argument.role == Argument::Batch ? train::Role::Batch
                                                   : train::Role::Scalar;
    function.setArgAttr(i, TrainDialect::kRole,
                        train::RoleAttr::get(b.getContext(), role));
    function.setArgAttr(i, TrainDialect::kName, b.getStringAttr(argument.name));
    isParameter.push_back(argument.stored >= 0);
    if (argument.stored >= 0 &&
        !forward.tensors[argument.stored].aliases.empty()) {
      SmallVector<StringRef> names;
      llvm::append_range(names, forward.tensors[argument.stored].aliases);
      function.setArgAttr(i, TrainDialect::kAliases, b.getStrArrayAttr(names));
    }
    bool frozen = argument.frozen || !reached[i];
    for (auto [k, glob] : llvm::enumerate(globs))
      if (argument.stored >= 0 &&
          matchesName(glob, forward.tensors[argument.stored]))
        frozen = matched[k] = true;
    if (argument.role != Argument::Param)
      continue;
    if (frozen)
      function.setArgAttr(i, TrainDialect::kFrozen, b.getUnitAttr());
  }
  for (auto [k, text] : llvm::enumerate(options.freeze))
    if (!matched[k])
      return importer.fail(Failure::usage(
                 "--freeze=" + text + " matches no parameter of the model")),
             mlir::failure();
  inferInitialization(function, loss, isParameter);
  for (auto [i, argument] : llvm::enumerate(forward.arguments))
    if (!argument.init.empty())
      function.setArgAttr(i, TrainDialect::kInit,
                          b.getStringAttr(argument.init));
  return success();
}

LogicalResult Importer::finish() {
  dropCounters(forward);
  warnOfCuts(*this);
  warnOfNewValues(*this);
  warnOfConstants(*this);
  SmallVector<Value> values;
  for (const Result &result : forward.results)
    values.push_back(result.value);
  func::ReturnOp::create(forward.b, UnknownLoc::get(&context), values);
  removeDeadCode(forward.function);
  if (failed(checkMerged(*this)))
    return mlir::failure();
  removeUnusedArguments(*this);
  Block &block = forward.function.getBody().front();
  forward.function.setFunctionType(
      forward.b.getFunctionType(block.getArgumentTypes(), ValueRange(values)));
  if (failed(setAttributes(*this, options)))
    return mlir::failure();
  if (succeeded(verify(*forward.module)))
    return success();
  fail(Failure::defect("the imported module doesn't verify"));
  return mlir::failure();
}
