#include "compiler/analysis/StepProblem.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/FusedSlice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

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

namespace {

int64_t alignUp(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Builds the problem of one step, segment by segment.
class ProblemBuilder {
public:
  ProblemBuilder(train::StepOp step, const Target &target, Recipes recipes)
      : step(step), target(target), recipes(recipes) {}

  FailureOr<StepProblem> build() {
    out.problem.reservedBytes = target.reservedBytes;
    Block &block = step.getBody().front();
    collectUpdates(block.getTerminator());
    for (BlockArgument argument : block.getArguments())
      addArgument(argument);

    for (Operation &op : block)
      if (auto loop = dyn_cast<train::MicroBatchOp>(op)) {
        if (out.loop)
          return op.emitError("a second micro-batch loop in one step");
        out.loop = loop;
      }
    segment = out.problem.addSegment(out.loop ? "prologue" : "step");
    for (Operation &op : block.without_terminator()) {
      if (&op != out.loop.getOperation()) {
        if (failed(addOp(&op)))
          return failure();
        continue;
      }
      if (failed(addLoop()))
        return failure();
      segment = out.problem.addSegment("epilogue");
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
  /// The argument that a root replaces at the end of the step.
  DenseMap<Value, Value> updates;

  void collectUpdates(Operation *ret) {
    for (auto [i, value] : llvm::enumerate(ret->getOperands()))
      if (std::optional<unsigned> arg = train::updatedArg(step, i)) {
        Value argument = step.getArgument(*arg), root = storageRoot(value);
        if (root != argument)
          updates[root] = argument;
      }
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
    value.bytes = alignUp(sizeInBytes(root.getType()), target.arenaAlignment);
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

  ValueClass classOf(OpResult result) {
    return gradientOf(result) ? ValueClass::Gradient : ValueClass::Activation;
  }

  /// The recipe of `kernel`, less what it writes and overwrites.
  planning::Recipe recipeOf(KernelOpInterface kernel) {
    auto cost = cast<CostOpInterface>(kernel.getOperation());
    SmallVector<MemRefType> layouts;
    for (Value operand : kernel->getOperands())
      layouts.push_back(layoutOf(operand));
    planning::Recipe recipe;
    recipe.name = nameOf(kernel);
    KernelCall call = kernel.getKernel(layouts, target.backend);
    // A generated kernel has no name before it is outlined.
    recipe.cost = target.picoseconds(
        call.symbol.empty() ? "Fused" : call.symbol,
        productTypeOf(call.products.value_or(DType::F32)),
        call.flops < 0 ? cost.getFlops() : call.flops, cost.getBytesMoved());
    recipe.workspaceBytes = alignUp(call.scratchBytes, target.arenaAlignment);
    SmallVector<unsigned> unread = unreadOperands(kernel);
    for (auto [i, operand] : llvm::enumerate(kernel->getOperands())) {
      ValueId id = idOf(operand);
      if (!llvm::is_contained(unread, i) &&
          !llvm::is_contained(recipe.reads, id))
        recipe.reads.push_back(id);
    }
    return recipe;
  }

  /// True if a loop reads what was made before it. Made again in its body it
  /// would have to last into the next run, which the IR can't say.
  static bool isReadInLaterLoop(Value value) {
    auto loopOf = [](Operation *op) {
      return op->getParentOfType<train::MicroBatchOp>();
    };
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return loopOf(user) != loopOf(value.getDefiningOp()) ||
             (isView(user) && isReadInLaterLoop(user->getResult(0)));
    });
  }

  LogicalResult addOp(Operation *op) {
    if (isView(op) || isa<arith::ConstantOp>(op))
      return success();
    auto kernel = dyn_cast<KernelOpInterface>(op);
    if (!kernel || !isa<CostOpInterface>(op))
      return op->emitError("'")
             << op->getName() << "' is no kernel and no view";

    planning::Recipe recipe = recipeOf(kernel);
    recipe.recomputable = kernel.getAccumulator() < 0 &&
                          llvm::none_of(op->getResults(), isReadInLaterLoop);
    for (OpResult result : op->getResults()) {
      if (!isWritten(result))
        continue;
      auto updated = updates.find(result);
      ValueId id =
          add(result, valueName(result),
              updated == updates.end()
                  ? classOf(result)
                  : out.problem.values[idOf(updated->second)].valueClass,
              updated == updates.end() ? ValueKind::Temporary
                                       : ValueKind::Persistent);
      if (updated != updates.end())
        out.problem.values[id].updates = idOf(updated->second);
      recipe.writes.push_back(id);
    }
    if (failed(addOverwrites(kernel, recipe)))
      return failure();
    finish(op, kernel, std::move(recipe));
    return success();
  }

  std::string valueName(OpResult result) {
    std::string name = nameOf(result.getOwner());
    if (result.getResultNumber())
      name += "#" + std::to_string(result.getResultNumber());
    return name;
  }

  /// Operands that the kernel reads only for results that are dropped here. A
  /// temporary is kept for it all the same: its launch names the buffer.
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

  LogicalResult addOverwrites(KernelOpInterface kernel,
                              planning::Recipe &recipe) {
    auto pairs = kernel.getOverwrites();
    if (kernel.getAccumulator() >= 0)
      pairs.push_back({unsigned(kernel.getAccumulator()), 0});
    DenseSet<ValueId> updatedHere;
    for (auto [operand, result] : pairs) {
      OpResult value = kernel->getResult(result);
      if (!isWritten(value))
        continue;
      ValueId read = idOf(kernel->getOperand(operand)), written = idOf(value);
      // Only a whole buffer can be taken over, not a part of one.
      if (out.problem.values[read].bytes != out.problem.values[written].bytes)
        continue;
      bool accumulates = int64_t(operand) == kernel.getAccumulator();
      bool update = out.problem.values[written].updates == read;
      bool carried = carriedInto(read, value);
      if (out.problem.values[read].kind == ValueKind::Persistent && !update)
        continue;
      if (update)
        updatedHere.insert(written);
      recipe.overwrites.push_back(
          {read, written, accumulates || update || carried});
    }
    for (ValueId written : recipe.writes)
      if (out.problem.values[written].updates != kNone &&
          !updatedHere.contains(written))
        return kernel->emitError("the new value of '")
               << out.problem.values[written].name
               << "' can't take the place of the old one";
    return success();
  }

  /// True if `value` is what carried value `read` is in the next trip.
  bool carriedInto(ValueId read, OpResult value) {
    if (!out.loop || out.problem.values[read].kind != ValueKind::Carried)
      return false;
    Operation *yield = out.loop.getBlock().getTerminator();
    auto carried = cast<BlockArgument>(out.valueOf[read]);
    unsigned index = carried.getArgNumber() - out.loop.getSlices().size();
    return storageRoot(yield->getOperand(index)) == value;
  }

  /// Adds the instruction. An op that updates in place can run again only as a
  /// variant that leaves the updates out.
  void finish(Operation *op, KernelOpInterface kernel,
              planning::Recipe recipe) {
    bool updatesInPlace =
        llvm::any_of(recipe.overwrites, [](const auto &o) { return o.must; });
    if (updatesInPlace)
      recipe.recomputable = false;
    planning::Recipe variant = recipe;
    add(op, recipe);
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
    if (variant.writes.empty())
      return;
    variant.instruction = kNone;
    variant.recomputable = true;
    out.problem.addRecipe(std::move(variant));
    out.kernelOf.push_back({op, {}, {}});
  }

  void add(Operation *op, planning::Recipe recipe) {
    out.problem.addInstruction(segment, std::move(recipe));
    out.kernelOf.push_back({op, {}, {}});
  }

  //===--------------------------------------------------------------------===//
  // Parts of fused kernels
  //===--------------------------------------------------------------------===//

  /// Adds the recipes that make one result of a fused kernel alone: from the
  /// kernel's operands, and from other results that are in memory.
  void addParts() {
    if (recipes != Recipes::Parts)
      return;
    for (size_t i = 0, own = out.kernelOf.size(); i < own; ++i) {
      auto fused = dyn_cast_or_null<nn::FusedOp>(out.kernelOf[i].op);
      // What a problem already recomputes only as a whole stays as it is.
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

  /// True if a value is worth a recipe: several kernels read it, so that it is
  /// held from one to the next.
  static bool isKept(OpResult result) {
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

  void addPart(size_t whole, nn::FusedOp fused, unsigned wanted,
               ArrayRef<unsigned> given) {
    OpBuilder b(fused.getContext()); // Inserts nowhere.
    nn::FusedOp part = nn::sliceFused(b, fused, wanted, given);
    if (!part)
      return;
    planning::Recipe recipe =
        recipeOf(cast<KernelOpInterface>(part.getOperation()));
    for (auto [operand, result] : part.getOverwrites()) {
      ValueId read = idOf(part->getOperand(operand));
      ValueId written = out.idOf.lookup(fused->getResult(wanted));
      if (out.problem.values[read].bytes == out.problem.values[written].bytes &&
          out.problem.values[read].kind != ValueKind::Persistent)
        recipe.overwrites.push_back({read, written, /*must=*/false});
    }
    part.erase();
    recipe.writes = {out.idOf.lookup(fused->getResult(wanted))};
    recipe.recomputable = true;
    recipe.segment = out.problem.recipes[whole].segment;
    out.problem.addRecipe(std::move(recipe));
    out.kernelOf.push_back(
        {fused, {wanted}, SmallVector<unsigned>(given.begin(), given.end())});
  }

  LogicalResult addLoop() {
    train::MicroBatchOp loop = out.loop;
    Operation *yield = loop.getBlock().getTerminator();
    // Sums that only accumulating kernels read need no zeros: the first run
    // writes. Others begin as zeros, made in the prologue.
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
      fill.cost = target.picoseconds("Fill", ProductType::F32, 0, zeros.bytes);
      ValueId id = out.problem.addValue(std::move(zeros));
      out.valueOf.push_back(Value());
      fill.writes = {id};
      add(nullptr, std::move(fill));
      initial.push_back(id);
    }
    segment = out.problem.addSegment("body", loop.getCount());
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

  static bool isOnlyAccumulated(BlockArgument carried) {
    return llvm::all_of(carried.getUses(), [](OpOperand &use) {
      auto kernel = dyn_cast<KernelOpInterface>(use.getOwner());
      return kernel &&
             kernel.getAccumulator() == int64_t(use.getOperandNumber());
    });
  }
};

/// Replays a solution: clones each executed op at the end of its new block,
/// onto the latest instances of what it reads.
class Replay {
public:
  explicit Replay(const StepProblem &problem) : problem(problem) {}

  /// Moves the schedule of segment `index` to the end of `to`.
  void run(const planning::Solution &solution, size_t index, OpBuilder &b) {
    for (const planning::Execution &execution : solution.segments[index]) {
      const RecipeKernel &kernel = problem.kernelOf[execution.recipe];
      if (kernel.op) // Zeros come about in lowering.
        execute(kernel, b);
    }
  }

  /// The current value of `original`, which may be a view.
  Value current(Value original, OpBuilder &b) {
    if (Value mapped = map.lookupOrNull(original))
      return mapped;
    Operation *op = original.getDefiningOp();
    if (!op)
      return original;
    if (isa<arith::ConstantOp>(op)) {
      OpBuilder::InsertionGuard guard(b);
      if (constantsAt)
        b.setInsertionPoint(constantsAt);
      return map.lookupOrDefault(b.clone(*op, map)->getResult(0));
    }
    if (!isView(op))
      return original;
    Value source = current(op->getOperand(0), b);
    auto key = std::make_pair(original, source);
    Value &view = views[key];
    if (!view) {
      IRMapping local;
      local.map(op->getOperand(0), source);
      view = b.clone(*op, local)->getResult(0);
    }
    return view;
  }

  IRMapping map;
  Operation *constantsAt = nullptr;

private:
  const StepProblem &problem;
  DenseMap<std::pair<Value, Value>, Value> views;
  DenseMap<Operation *, int64_t> instances;

  void execute(const RecipeKernel &kernel, OpBuilder &b) {
    Operation *op = kernel.op, *run;
    SmallVector<Value> made;
    if (kernel.wanted.empty()) {
      IRMapping operands;
      for (Value operand : op->getOperands())
        operands.map(operand, current(operand, b));
      run = b.clone(*op, operands);
      llvm::append_range(made, op->getResults());
    } else {
      // Views of the operands come to stand before the part that reads them.
      OpBuilder detached(b.getContext());
      run = nn::sliceFused(detached, cast<nn::FusedOp>(op), kernel.wanted,
                           kernel.given);
      for (OpOperand &operand : run->getOpOperands())
        operand.set(current(operand.get(), b));
      b.insert(run);
      for (unsigned result : kernel.wanted)
        made.push_back(op->getResult(result));
    }
    run->setAttr(train::TrainDialect::kInstance,
                 b.getI64IntegerAttr(instances[op]++));
    for (auto [from, to] : llvm::zip(made, run->getResults()))
      map.map(from, to);
  }
};

} // namespace

Value tmc::gradientOf(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (use.getOperandNumber() == 1 && user->hasTrait<train::UpdateRule>())
      return storageRoot(user->getOperand(0));
    if (auto kernel = dyn_cast<KernelOpInterface>(user);
        kernel && kernel.getAccumulator() == int64_t(use.getOperandNumber()))
      if (Value param = gradientOf(user->getResult(0)))
        return param;
  }
  return {};
}

void tmc::sinkUpdates(train::StepOp step) {
  Block &block = step.getBody().front();
  Operation *ret = block.getTerminator();
  // The last op that reads each argument, by whatever views.
  DenseMap<Value, Operation *> lastRead;
  for (Operation &op : block.without_terminator())
    op.walk([&](Operation *inner) {
      if (!isView(inner))
        for (Value operand : inner->getOperands())
          lastRead[storageRoot(operand)] = block.findAncestorOpInBlock(*inner);
    });
  for (auto [i, value] : llvm::enumerate(ret->getOperands())) {
    std::optional<unsigned> arg = train::updatedArg(step, i);
    Operation *update = value.getDefiningOp();
    if (!arg || !update || update->getBlock() != &block)
      continue;
    Operation *last = lastRead.lookup(step.getArgument(*arg));
    if (last && update != last && update->isBeforeInBlock(last))
      update->moveAfter(last);
  }
}

FailureOr<StepProblem>
tmc::buildProblem(train::StepOp step, const Target &target, Recipes recipes) {
  return ProblemBuilder(step, target, recipes).build();
}

void tmc::applySolution(train::StepOp step, const StepProblem &problem,
                        const planning::Solution &solution) {
  Block &old = step.getBody().front();
  Block *block = new Block();
  step.getBody().push_back(block);
  Replay replay(problem);
  for (BlockArgument argument : old.getArguments())
    replay.map.map(argument,
                   block->addArgument(argument.getType(), argument.getLoc()));
  OpBuilder b = OpBuilder::atBlockEnd(block);

  if (!problem.loop) {
    replay.run(solution, 0, b);
  } else {
    train::MicroBatchOp loop = problem.loop;
    replay.run(solution, 0, b);
    SmallVector<Value> slices;
    for (Value slice : loop.getSlices())
      slices.push_back(replay.current(slice, b));
    auto next = train::MicroBatchOp::create(
        b, loop.getLoc(), loop.getResultTypes(), loop.getCountAttr(), slices);
    replay.constantsAt = next;
    Block &body = next.getBody().emplaceBlock();
    for (BlockArgument argument : loop.getBlock().getArguments())
      replay.map.map(argument,
                     body.addArgument(argument.getType(), argument.getLoc()));
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    replay.run(solution, 1, inner);
    SmallVector<Value> yielded;
    for (Value value : loop.getBlock().getTerminator()->getOperands())
      yielded.push_back(replay.current(value, inner));
    train::YieldOp::create(inner, loop.getLoc(), yielded);
    for (auto [from, to] : llvm::zip(loop.getResults(), next.getResults()))
      replay.map.map(from, to);
    b.setInsertionPointToEnd(block);
    replay.constantsAt = nullptr;
    replay.run(solution, 2, b);
  }
  SmallVector<Value> returned;
  for (Value value : old.getTerminator()->getOperands())
    returned.push_back(replay.current(value, b));
  train::ReturnOp::create(b, old.getTerminator()->getLoc(), returned);
  old.dropAllReferences();
  old.erase();
}
