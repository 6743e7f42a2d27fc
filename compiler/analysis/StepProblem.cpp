#include "compiler/analysis/StepProblem.h"

#include "compiler/analysis/KernelObject.h"
#include "compiler/analysis/Storage.h"
#include "dialects/nn/FusedSlice.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tmc;
using planning::kNone;
using planning::ValueClass;
using planning::ValueId;
using planning::ValueKind;

/// The name that a location carries, or "".
static StringRef nameIn(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().getValue();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringRef name = nameIn(part); !name.empty())
        return name;
  return "";
}

std::string tmc::nameOf(Operation *op) {
  StringRef name = nameIn(op->getLoc());
  return name.empty() ? op->getName().getStringRef().str() : name.str();
}

bool tmc::isWritten(OpResult result) {
  if (!result.use_empty())
    return true;
  auto kernel = dyn_cast<KernelOpInterface>(result.getOwner());
  return !kernel || !llvm::is_contained(kernel.getDroppableResults(),
                                        result.getResultNumber());
}

int64_t tmc::alignmentOf(SpaceKind space, int64_t deviceAlignment) {
  const int64_t own = infoOf(space).alignment;
  return own > 0 ? own : deviceAlignment;
}

std::optional<planning::SpaceId> tmc::spaceOf(const planning::Problem &problem,
                                              SpaceKind kind) {
  for (size_t s = 0; s < problem.spaces.size(); ++s)
    if (problem.spaces[s].kind == kind)
      return planning::SpaceId(s);
  return std::nullopt;
}

namespace {

int64_t alignUp(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// True if a loop reads a value that was made before it, or slices of it. If
/// the body recomputed the value, it would have to last into the next trip,
/// which the IR can't express.
bool isReadInLaterLoop(Value value) {
  auto loopOf = [](Operation *op) {
    return op->getParentOfType<train::MicroBatchOp>();
  };
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return isa<train::MicroBatchOp>(user) ||
           loopOf(user) != loopOf(value.getDefiningOp()) ||
           (isView(user) && isReadInLaterLoop(user->getResult(0)));
  });
}

/// True if a value is worth a recipe: several kernels read it, so it stays
/// alive from one to the next.
bool isKept(OpResult result) {
  DenseSet<Operation *> readers;
  SmallVector<Value> open = {result};
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers())
      if (isView(user))
        open.push_back(user->getResult(0));
      else
        readers.insert(user);
  return readers.size() > 1;
}

bool isOnlyAccumulated(BlockArgument carried) {
  return llvm::all_of(carried.getUses(), [](OpOperand &use) {
    auto kernel = dyn_cast<KernelOpInterface>(use.getOwner());
    return kernel && kernel.getAccumulator() == int64_t(use.getOperandNumber());
  });
}

ValueClass classOf(OpResult result) {
  return gradientOf(result) ? ValueClass::Gradient : ValueClass::Activation;
}

std::string valueName(OpResult result) {
  std::string name = nameOf(result.getOwner());
  if (result.getResultNumber())
    name += "#" + std::to_string(result.getResultNumber());
  return name;
}

/// The axis of the mesh along which an op of the network moves bytes.
std::string axisOf(Operation *op) {
  nn::Axis axis =
      TypeSwitch<Operation *, nn::Axis>(op).Case<nn::ExchangeOp, nn::GatherOp>(
          [](auto moves) { return moves.getAxis(); });
  return nn::stringifyAxis(axis).str();
}

/// The engine of an op; adds it to the problem if it is the first.
planning::EngineId engineOf(planning::Problem &problem, Operation *op) {
  const EngineKind kind = train::engineOf(op);
  if (kind == EngineKind::Compute)
    return 0;
  if (kind == EngineKind::Network) {
    // One thread of a rank makes all calls, whatever their axis.
    for (auto [number, engine] : llvm::enumerate(problem.engines))
      if (engine.kind == EngineKind::Network)
        return planning::EngineId(number);
    return problem.networkNamed(axisOf(op));
  }
  return problem.engineBetween(planning::SpaceId(infoOf(kind).reads),
                               planning::SpaceId(infoOf(kind).writes));
}

/// "h.3.act@host"
std::string formName(const planning::Problem &problem, Operation *op,
                     ValueId source) {
  StringRef content = StringRef(problem.values[source].name).split('@').first;
  SpaceKind space = train::spaceOf(op->getResult(0).getType());
  if (onDevice(space))
    return content.str();
  return (content + "@" + nameOf(space)).str();
}

/// The spaces beside the device and the engines around them, where the step
/// has values there.
void addSpaces(planning::Problem &problem, train::StepOp step) {
  bool moves = false;
  step->walk([&](Operation *op) {
    const EngineKind engine = train::engineOf(op);
    moves |= engine != EngineKind::Compute && engine != EngineKind::Network;
  });
  for (Type type : step.getArgumentTypes())
    moves |= !onDevice(train::spaceOf(type));
  if (!moves)
    return;
  for (const SpaceInfo &space : kSpaces)
    if (!onDevice(space.kind))
      problem.addSpace(space.kind);
  for (const EngineInfo &engine : kEngines)
    if (!onDevice(engine.reads) || !onDevice(engine.writes))
      problem.engines.push_back({engine.name, engine.kind});
}

/// Builds the problem of one step, segment by segment.
class ProblemBuilder {
public:
  ProblemBuilder(train::StepOp step, const Target &target, Recipes recipes)
      : step(step), target(target), recipes(recipes) {}

  FailureOr<StepProblem> build() {
    out.problem.reservedBytes = target.reservedBytes;
    Block &block = step.getBody().front();
    addSpaces(out.problem, step);
    collectUpdates(block.getTerminator());
    for (BlockArgument argument : block.getArguments())
      addArgument(argument);

    for (Operation &op : block)
      if (auto loop = dyn_cast<train::MicroBatchOp>(op)) {
        if (out.loop)
          return op.emitError("a second micro-batch loop in one step");
        out.loop = loop;
      }
    beginSegment(out.loop ? "prologue" : "step", 1);
    for (Operation &op : block.without_terminator()) {
      if (&op != out.loop.getOperation()) {
        if (failed(addOp(&op)))
          return failure();
        continue;
      }
      if (failed(addLoop()))
        return failure();
      beginSegment("epilogue", 1);
    }
    addParts();
    for (Value value : block.getTerminator()->getOperands())
      if (ValueId id = idOf(value);
          out.problem.values[id].kind == ValueKind::Temporary)
        out.problem.values[id].liveOut = true;
    return std::move(out);
  }

private:
  train::StepOp step;
  const Target &target;
  Recipes recipes;
  StepProblem out;
  planning::SegmentId segment = 0;
  /// For each root, the argument that it replaces at the end of the step.
  DenseMap<Value, Value> updates;
  /// The same for values that a move turns into that root: an argument at home
  /// on the host is fetched, updated, and stashed.
  DenseMap<Value, Value> updatesOfCopies;

  /// The `work` number of each start, within its segment.
  DenseMap<Operation *, int32_t> workOf;
  DenseMap<Operation *, planning::Execution> startOf;

  void beginSegment(const char *name, int64_t trips) {
    segment = out.problem.addSegment(name, trips);
    out.list.segments.emplace_back();
    workOf.clear();
  }

  int64_t alignmentIn(planning::SpaceId space) const {
    return alignmentOf(out.problem.spaces[space].kind, target.arenaAlignment);
  }

  void collectUpdates(Operation *ret) {
    for (auto [i, value] : llvm::enumerate(ret->getOperands()))
      if (std::optional<unsigned> arg = train::updatedArg(step, i)) {
        Value argument = step.getArgument(*arg), root = storageRoot(value);
        if (root != argument)
          updates[root] = argument;
        if (Value made = contentRoot(root); made != root)
          updatesOfCopies[made] = argument;
      }
  }

  /// True if the contents of `operand` last from step to step, so that only
  /// their update may overwrite them. The contents of a fetched copy last as
  /// well, because the plan that added the copy saw only its home.
  bool lasts(Value operand) {
    Value content = contentRoot(operand);
    auto argument = dyn_cast<BlockArgument>(content);
    return out.problem.values[idOf(operand)].kind == ValueKind::Persistent ||
           (argument && argument.getOwner() == &step.getBody().front()) ||
           updatesOfCopies.contains(content);
  }

  ValueId idOf(Value value) {
    Value root = storageRoot(value);
    auto it = out.idOf.find(root);
    if (it != out.idOf.end())
      return it->second;
    // A constant that a kernel reads from memory.
    auto constant = root.getDefiningOp<arith::ConstantOp>();
    assert(constant && "a value is read before it is made");
    return add(root, nameOf(constant), ValueClass::Other,
               ValueKind::Persistent);
  }

  ValueId add(Value root, std::string name, ValueClass valueClass,
              ValueKind kind) {
    planning::Value value;
    value.name = std::move(name);
    value.space = *spaceOf(out.problem, train::spaceOf(root.getType()));
    value.bytes =
        alignUp(sizeInBytes(root.getType()), alignmentIn(value.space));
    value.valueClass = valueClass;
    value.kind = kind;
    value.pinned = kind != ValueKind::Temporary;
    ValueId id = out.problem.addValue(std::move(value));
    out.idOf[root] = id;
    out.valueOf.push_back(root);
    return id;
  }

  void addArgument(BlockArgument argument) {
    unsigned index = argument.getArgNumber();
    ValueClass valueClass = ValueClass::Other;
    switch (train::roleOf(step, index).value_or(train::Role::Scalar)) {
    case train::Role::Param:
      valueClass = ValueClass::Parameter;
      break;
    case train::Role::State:
      if (step.getArgAttr(index, train::TrainDialect::kCopyOf))
        valueClass = ValueClass::Parameter;
      else if (step.getArgAttr(index, train::TrainDialect::kSlot))
        valueClass = ValueClass::Optimizer;
      break;
    case train::Role::Batch:
      valueClass = ValueClass::Batch;
      break;
    case train::Role::Scalar:
      break;
    }
    add(argument, train::argName(step, index).str(), valueClass,
        ValueKind::Persistent);
  }

  /// The recipe of `kernel`, without its writes and overwrites.
  std::pair<planning::Recipe, RecipeKernel> recipeOf(KernelOpInterface kernel) {
    SmallVector<MemRefType> layouts;
    for (Value operand : kernel->getOperands())
      layouts.push_back(layoutOf(operand));
    planning::Recipe recipe;
    recipe.name = nameOf(kernel);
    const bool isOnHost = train::engineOf(kernel) == EngineKind::Host;
    KernelCall call =
        kernel.getKernel(layouts, isOnHost ? Backend::Cpu : target.backend);
    recipe.engine = engineOf(out.problem, kernel);
    recipe.workspaceSpace = *spaceOf(
        out.problem, infoOf(out.problem.engines[recipe.engine].kind).writes);
    const KernelWork work = kernelWork(kernel, call);
    RecipeKernel priced{kernel, {}, {}, work.family, target.price(work)};
    recipe.cost = priced.price.picoseconds;
    recipe.workspaceBytes =
        alignUp(call.scratchBytes, alignmentIn(recipe.workspaceSpace));
    SmallVector<unsigned> unread = unreadOperands(kernel);
    for (auto [i, operand] : llvm::enumerate(kernel->getOperands())) {
      ValueId id = idOf(operand);
      if (!llvm::is_contained(unread, i) &&
          !llvm::is_contained(recipe.reads, id))
        recipe.reads.push_back(id);
    }
    return {std::move(recipe), std::move(priced)};
  }

  LogicalResult addOp(Operation *op) {
    if (isView(op) || isa<arith::ConstantOp>(op))
      return success();
    if (Operation *start = train::startOf(op))
      return addDone(start);
    if (isa<train::StashStartOp, train::FetchStartOp>(op)) {
      addMove(op);
      return success();
    }
    auto kernel = dyn_cast<KernelOpInterface>(op);
    if (!kernel || !isa<CostOpInterface>(op))
      return op->emitError("'")
             << op->getName() << "' is no kernel and no view";

    auto [recipe, priced] = recipeOf(kernel);
    recipe.recomputable = kernel.getAccumulator() < 0 &&
                          llvm::none_of(op->getResults(), isReadInLaterLoop);
    for (OpResult result : op->getResults())
      if (isWritten(result))
        recipe.writes.push_back(addResult(result, valueName(result)));
    keepCarried(op, recipe);
    if (failed(addOverwrites(kernel, recipe)))
      return failure();
    finish(op, kernel, std::move(recipe), priced);
    return success();
  }

  /// The value of a result: a new one, or a new version of an argument.
  ValueId addResult(OpResult result, std::string name) {
    auto updated = updates.find(result);
    bool isNew = updated == updates.end();
    ValueId id =
        add(result, std::move(name),
            isNew ? classOf(result)
                  : out.problem.values[idOf(updated->second)].valueClass,
            isNew ? ValueKind::Temporary : ValueKind::Persistent);
    if (!isNew)
      out.problem.values[id].updates = idOf(updated->second);
    return id;
  }

  /// A copy between spaces: an instruction of its own.
  void addMove(Operation *op) {
    planning::Recipe move;
    move.name = nameOf(op);
    move.engine = engineOf(out.problem, op);
    ValueId source = idOf(op->getOperand(0));
    move.reads = {source};
    move.writes = {
        addResult(op->getResult(0), formName(out.problem, op, source))};
    add(op, std::move(move), {op, {}, {}, "", {}});
  }

  LogicalResult addDone(Operation *start) {
    auto at = startOf.find(start);
    if (at == startOf.end())
      return start->emitError("ends before it starts");
    planning::Execution done = at->second;
    done.phase = planning::Phase::Done;
    out.list.segments[segment].push_back(done);
    return success();
  }

  /// Operands that the kernel reads only for results that are dropped here. The
  /// buffer of a temporary is kept alive nonetheless, because the launch refers
  /// to it.
  SmallVector<unsigned> unreadOperands(KernelOpInterface kernel) {
    SmallVector<unsigned> unread;
    for (auto [operand, result] : kernel.getOverwrites()) {
      ValueId id = idOf(kernel->getOperand(operand));
      if (!isWritten(kernel->getResult(result)) &&
          out.problem.values[id].kind == ValueKind::Persistent)
        unread.push_back(operand);
    }
    return unread;
  }

  /// True if the result `written` may take over all bytes of `read`. A result
  /// can't take over a part of a buffer, such as a slice that is as large as
  /// the whole when both are rounded up to the alignment.
  bool haveSameBytes(ValueId read, ValueId written) {
    return sizeInBytes(out.valueOf[read].getType()) ==
           sizeInBytes(out.valueOf[written].getType());
  }

  LogicalResult addOverwrites(KernelOpInterface kernel,
                              planning::Recipe &recipe) {
    auto pairs = kernel.getOverwrites();
    if (kernel.getAccumulator() >= 0)
      pairs.push_back(
          {unsigned(kernel.getAccumulator()), kernel.getAccumulated()});
    DenseSet<ValueId> updatedHere;
    for (auto [operand, result] : pairs) {
      OpResult value = kernel->getResult(result);
      if (!isWritten(value))
        continue;
      ValueId read = idOf(kernel->getOperand(operand)), written = idOf(value);
      if (!haveSameBytes(read, written))
        continue;
      bool accumulates = int64_t(operand) == kernel.getAccumulator();
      bool update = out.problem.values[written].updates == read;
      bool updatesCopy = updatesOfCopies.lookup(storageRoot(value)) ==
                         contentRoot(kernel->getOperand(operand));
      bool carried = carriedInto(read, value);
      if (lasts(kernel->getOperand(operand)) && !update && !updatesCopy)
        continue;
      if (update)
        updatedHere.insert(written);
      recipe.overwrites.push_back(
          {read, written, accumulates || update || updatesCopy || carried});
    }
    for (ValueId written : recipe.writes) {
      ValueId old = out.problem.values[written].updates;
      if (old == kNone || updatedHere.contains(written))
        continue;
      // A copy brings the new value home: the old value lasts until the copy.
      // So does a gather of its shards.
      if (isa<nn::CopyOp, nn::GatherOp>(kernel) &&
          !llvm::is_contained(recipe.reads, old)) {
        recipe.reads.push_back(old);
        recipe.overwrites.push_back({old, written, /*must=*/true});
        continue;
      }
      return kernel->emitError("the new value of '")
             << out.problem.values[written].name
             << "' can't take the place of the old one";
    }
    return success();
  }

  /// A carried value has one buffer for all trips. If the kernel that makes the
  /// next value can't write over that buffer, and `op` copies the next value
  /// into it, then the buffer is alive until the copy.
  void keepCarried(Operation *op, planning::Recipe &recipe) {
    if (!isa<nn::CopyOp>(op) || !out.loop ||
        op->getBlock() != &out.loop.getBlock())
      return;
    auto maker =
        storageRoot(op->getOperand(0)).getDefiningOp<KernelOpInterface>();
    if (!maker || maker.getAccumulator() >= 0)
      return;
    for (auto [carried, next] :
         llvm::zip(out.loop.getCarried(),
                   out.loop.getBlock().getTerminator()->getOperands())) {
      Value made = storageRoot(next);
      auto isRead = [&, carried = carried](Value operand) {
        return storageRoot(operand) == carried;
      };
      if (made.getDefiningOp() != op ||
          !llvm::any_of(maker->getOperands(), isRead) ||
          llvm::any_of(maker.getOverwrites(), [&](auto pair) {
            return isRead(maker->getOperand(pair.first));
          }))
        continue;
      recipe.reads.push_back(idOf(carried));
      recipe.overwrites.push_back({idOf(carried), idOf(made), /*must=*/true});
    }
  }

  /// True if `value` is the value of the carried `read` in the next trip.
  bool carriedInto(ValueId read, OpResult value) {
    if (!out.loop || out.problem.values[read].kind != ValueKind::Carried)
      return false;
    Operation *yield = out.loop.getBlock().getTerminator();
    auto carried = cast<BlockArgument>(out.valueOf[read]);
    unsigned index = carried.getArgNumber() - out.loop.getSlices().size();
    return storageRoot(yield->getOperand(index)) == value;
  }

  /// Adds the instruction. If the op updates in place, only a variant without
  /// the updates can be recomputed.
  void finish(Operation *op, KernelOpInterface kernel, planning::Recipe recipe,
              const RecipeKernel &priced) {
    bool updatesInPlace =
        llvm::any_of(recipe.overwrites, [](const auto &o) { return o.must; });
    if (updatesInPlace)
      recipe.recomputable = false;
    planning::Recipe variant = recipe;
    add(op, recipe, priced);
    if (!updatesInPlace || kernel.getAccumulator() >= 0)
      return;
    SmallVector<unsigned> droppable = kernel.getDroppableResults();
    variant.overwrites.clear();
    for (auto [operand, result] : kernel.getOverwrites()) {
      ValueId written = out.idOf.lookup(kernel->getResult(result));
      if (!llvm::is_contained(droppable, result))
        return; // It can't run without updating.
      llvm::erase(variant.writes, written);
      llvm::erase(variant.reads, idOf(kernel->getOperand(operand)));
    }
    auto isCarried = [&](ValueId id) {
      return out.problem.values[id].kind == ValueKind::Carried;
    };
    auto isLasting = [&](ValueId id) {
      return out.problem.values[id].kind == ValueKind::Persistent;
    };
    if (variant.writes.empty() || llvm::any_of(variant.reads, isCarried) ||
        llvm::any_of(variant.writes, isLasting))
      return;
    variant.instruction = kNone;
    variant.recomputable = true;
    out.problem.addRecipe(std::move(variant));
    out.kernelOf.push_back(priced);
  }

  void add(Operation *op, planning::Recipe recipe, RecipeKernel priced) {
    planning::Execution own;
    own.recipe = planning::RecipeId(out.problem.recipes.size());
    if (recipe.engine != 0) {
      own.phase = planning::Phase::Start;
      own.work = int32_t(workOf.size());
      workOf[op] = own.work;
    }
    own.instruction = out.problem.addInstruction(segment, std::move(recipe));
    out.kernelOf.push_back(std::move(priced));
    out.list.segments[segment].push_back(own);
    if (own.work == kNone)
      return;
    startOf[op] = own;
    if (train::doneOf(op))
      return;
    own.phase = planning::Phase::Done; // Before the plan.
    out.list.segments[segment].push_back(own);
  }

  //===--------------------------------------------------------------------===//
  // Parts of fused kernels
  //===--------------------------------------------------------------------===//

  /// Adds recipes that make only one result of a fused kernel: from the
  /// kernel's operands, and from other results that are in memory.
  void addParts() {
    if (recipes != Recipes::Parts)
      return;
    for (size_t i = 0, own = out.kernelOf.size(); i < own; ++i) {
      auto fused = dyn_cast_or_null<nn::FusedOp>(out.kernelOf[i].op);
      // A kernel whose own recipe can't be recomputed gets no parts.
      if (!fused || !out.problem.recipes[i].recomputable ||
          fused.getNumResults() < 2)
        continue;
      for (OpResult result : fused->getResults()) {
        if (!isWritten(result) || !isKept(result))
          continue;
        unsigned number = result.getResultNumber();
        addPart(i, fused, number, {});
        SmallVector<unsigned> behind = nn::resultsBehind(fused, number);
        llvm::erase_if(behind, [&](unsigned other) {
          return !isWritten(fused->getResult(other));
        });
        if (!behind.empty())
          addPart(i, fused, number, behind);
      }
    }
  }

  void addPart(size_t whole, nn::FusedOp fused, unsigned wanted,
               ArrayRef<unsigned> given) {
    OpBuilder b(fused.getContext()); // Detached: inserts nowhere.
    nn::FusedOp part = nn::sliceFused(b, fused, wanted, given);
    if (!part)
      return;
    auto [recipe, priced] =
        recipeOf(cast<KernelOpInterface>(part.getOperation()));
    for (auto [operand, result] : part.getOverwrites()) {
      ValueId read = idOf(part->getOperand(operand));
      ValueId written = out.idOf.lookup(fused->getResult(wanted));
      if (haveSameBytes(read, written) && !lasts(part->getOperand(operand)))
        recipe.overwrites.push_back({read, written, /*must=*/false});
    }
    part.erase();
    recipe.writes = {out.idOf.lookup(fused->getResult(wanted))};
    recipe.recomputable = true;
    recipe.segment = out.problem.recipes[whole].segment;
    out.problem.addRecipe(std::move(recipe));
    priced.op = fused;
    priced.wanted = {wanted};
    priced.given.assign(given.begin(), given.end());
    out.kernelOf.push_back(std::move(priced));
  }

  LogicalResult addLoop() {
    train::MicroBatchOp loop = out.loop;
    Operation *yield = loop.getBlock().getTerminator();
    // Sums that only accumulating kernels read need no zeros: the first trip
    // writes them. Other sums start as zeros, made in the prologue.
    SmallVector<ValueId> initial;
    for (BlockArgument carried : loop.getCarried()) {
      if (isOnlyAccumulated(carried)) {
        initial.push_back(kNone);
        continue;
      }
      planning::Value zeros;
      zeros.name = nameIn(carried.getLoc()).str() + ".zeros";
      zeros.bytes =
          alignUp(sizeInBytes(carried.getType()), target.arenaAlignment);
      zeros.valueClass = ValueClass::Gradient;
      zeros.pinned = true;
      planning::Recipe fill;
      fill.name = zeros.name;
      RecipeKernel priced;
      priced.family = "Fill";
      KernelWork work;
      work.family = priced.family;
      work.bytes = zeros.bytes;
      priced.price = target.price(work);
      fill.cost = priced.price.picoseconds;
      ValueId id = out.problem.addValue(std::move(zeros));
      out.valueOf.push_back(Value());
      fill.writes = {id};
      add(nullptr, std::move(fill), std::move(priced));
      initial.push_back(id);
    }
    beginSegment("body", loop.getCount());
    for (auto [carried, zeros] : llvm::zip(loop.getCarried(), initial)) {
      ValueId id = add(carried, nameIn(carried.getLoc()).str() + ".sum",
                       ValueClass::Gradient, ValueKind::Carried);
      out.problem.values[id].initial = zeros;
    }
    for (Operation &op : loop.getBlock().without_terminator())
      if (failed(addOp(&op)))
        return failure();
    for (auto [carried, value] :
         llvm::zip(loop.getCarried(), yield->getOperands()))
      out.problem.values[idOf(carried)].carriedFrom = idOf(value);
    return success();
  }
};

} // namespace

FailureOr<StepProblem>
tmc::buildProblem(train::StepOp step, const Target &target, Recipes recipes) {
  return ProblemBuilder(step, target, recipes).build();
}
