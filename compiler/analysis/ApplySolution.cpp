// ApplySolution.cpp - writes a planner's answer as IR.

#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/Storage.h"
#include "dialects/nn/FusedSlice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tmc;
using planning::kNone;
using planning::ValueId;

namespace {

/// Replays a solution: clones each executed op at the end of its new block,
/// with the latest instances of its operands.
class Replay {
public:
  Replay(const StepProblem &problem, const planning::Solution &solution)
      : problem(problem), solution(solution),
        homes(planning::homesOf(problem.problem, solution)),
        formNow(problem.problem.values.size()) {}

  /// The argument of the new step that stands for `old`, in its home's space.
  void addArgument(BlockArgument old, Block &block) {
    ValueId home = homes[problem.idOf.lookup(old)];
    BlockArgument argument = block.addArgument(
        train::inSpace(old.getType(), spaceOf(home)), old.getLoc());
    setNow(home, old, argument);
  }

  /// Moves the schedule of segment `index` to the end of `to`.
  LogicalResult run(size_t index, OpBuilder &b) {
    std::vector<Operation *> work(solution.segments[index].size());
    for (const planning::Execution &execution : solution.segments[index]) {
      if (execution.phase == planning::Phase::Done) {
        finish(work[execution.work], b);
        continue;
      }
      const planning::Recipe &recipe =
          problem.problem.recipes[execution.recipe];
      const RecipeKernel &kernel = problem.kernelOf[execution.recipe];
      Operation *made = nullptr;
      if (problem.problem.isMove(recipe))
        made = move(recipe, b);
      else if (execution.phase == planning::Phase::Start &&
               !problem.problem.isOnNetwork(recipe))
        made = runOnHost(recipe, kernel.op, b);
      else if (kernel.op) // Lowering adds the zeros.
        made = execute(kernel, b);
      else
        continue;
      if (!made)
        return failure();
      if (execution.work != kNone)
        work[execution.work] = made;
    }
    return success();
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
    return viewOf(original, current(op->getOperand(0), b), b);
  }

  /// The value that the new step returns for `original`: its content at home.
  Value atHome(Value original, OpBuilder &b) {
    ValueId home = homes[problem.idOf.lookup(storageRoot(original))];
    return problem.problem.values[home].formOf == kNone
               ? current(original, b)
               : onForm(original, home, b);
  }

  /// Body values that the loop must yield in addition to its own results:
  /// values that the epilogue reads before it recomputes them.
  std::vector<ValueId> leftByBody() const {
    const planning::Problem &all = problem.problem;
    std::vector<char> made(all.values.size(), 0), seen(made);
    for (const planning::Execution &e : solution.segments[1])
      if (e.phase != planning::Phase::Done)
        for (ValueId v : all.recipes[e.recipe].writes)
          made[v] = 1;
    for (const planning::Value &value : all.values)
      if (value.carriedFrom != kNone) // The loop's own results.
        seen[value.carriedFrom] = 1;
    std::vector<ValueId> left;
    for (const planning::Execution &e : solution.segments[2]) {
      if (e.phase == planning::Phase::Done)
        continue;
      for (ValueId v : all.recipes[e.recipe].reads)
        if (made[v] && !std::exchange(seen[v], 1))
          left.push_back(v);
      for (ValueId v : all.recipes[e.recipe].writes)
        seen[v] = 1;
    }
    return left;
  }
  /// The latest instance of a value.
  Value now(ValueId id) const {
    return problem.problem.values[id].formOf == kNone
               ? map.lookupOrNull(rootOf(id))
               : formNow[id];
  }
  void setNow(ValueId id, Value now) { setNow(id, rootOf(id), now); }

  Type typeOf(ValueId id) const {
    return train::inSpace(rootOf(id).getType(), spaceOf(id));
  }

  IRMapping map;
  Operation *constantsAt = nullptr;

private:
  const StepProblem &problem;
  const planning::Solution &solution;
  std::vector<ValueId> homes;
  /// For each form that isn't a content's main one, its latest instance.
  std::vector<Value> formNow;
  DenseMap<std::pair<Value, Value>, Value> views;
  DenseMap<Operation *, int64_t> instances;

  SpaceKind spaceOf(ValueId id) const {
    const planning::Problem &stated = problem.problem;
    return stated.spaces[stated.values[id].space].kind;
  }
  Value rootOf(ValueId id) const {
    return problem.valueOf[problem.problem.contentOf(id)];
  }
  void setNow(ValueId id, Value root, Value now) {
    if (problem.problem.values[id].formOf == kNone)
      map.map(root, now);
    else
      formNow[id] = now;
  }

  /// Rebuilds `view`, a view of the original of `source`, as a view of
  /// `source`.
  Value viewOf(Value view, Value source, OpBuilder &b) {
    Value &known = views[std::make_pair(view, source)];
    if (known)
      return known;
    Operation *op = view.getDefiningOp();
    IRMapping local;
    local.map(op->getOperand(0), source);
    Value made = b.clone(*op, local)->getResult(0);
    made.setType(
        train::inSpace(made.getType(), train::spaceOf(source.getType())));
    return known = made;
  }

  /// `original` rebuilt on form `id` of its content. Null: no such form exists.
  Value onForm(Value original, ValueId id, OpBuilder &b) {
    if (!isView(original.getDefiningOp())) {
      assert(formNow[id] && "a form is read before it is made");
      return formNow[id];
    }
    Value source = onForm(original.getDefiningOp()->getOperand(0), id, b);
    return source ? viewOf(original, source, b) : Value();
  }

  Operation *count(Operation *original, Operation *made, OpBuilder &b) {
    made->setAttr(train::TrainDialect::kInstance,
                  b.getI64IntegerAttr(instances[original]++));
    return made;
  }

  Operation *execute(const RecipeKernel &kernel, OpBuilder &b) {
    Operation *op = kernel.op, *run;
    SmallVector<Value> made;
    if (kernel.wanted.empty()) {
      IRMapping operands;
      for (Value operand : op->getOperands())
        operands.map(operand, current(operand, b));
      run = b.clone(*op, operands);
      llvm::append_range(made, op->getResults());
    } else {
      // Views of the operands are inserted before the part that reads them.
      OpBuilder detached(b.getContext());
      run = nn::sliceFused(detached, cast<nn::FusedOp>(op), kernel.wanted,
                           kernel.given);
      for (OpOperand &operand : run->getOpOperands())
        operand.set(current(operand.get(), b));
      b.insert(run);
      for (unsigned result : kernel.wanted)
        made.push_back(op->getResult(result));
    }
    for (auto [from, to] : llvm::zip(made, run->getResults()))
      map.map(from, to);
    return count(op, run, b);
  }

  /// Starts a copy of one form to another.
  Operation *move(const planning::Recipe &recipe, OpBuilder &b) {
    ValueId from = recipe.reads[0], to = recipe.writes[0];
    Value root = rootOf(from);
    assert(root && "zeros don't move");
    Value source = problem.problem.values[from].formOf == kNone
                       ? map.lookupOrNull(root)
                       : formNow[from];
    assert(source && "a form is read before it is made");
    Type type = train::inSpace(source.getType(), spaceOf(to));
    ValueId content = problem.problem.contentOf(from);
    Location loc = NameLoc::get(
        b.getStringAttr(problem.problem.values[content].name), root.getLoc());
    Operation *made =
        spaceOf(to) > spaceOf(from)
            ? train::StashStartOp::create(b, loc, type, source).getOperation()
            : train::FetchStartOp::create(b, loc, type, source).getOperation();
    setNow(to, root, made->getResult(0));
    return made;
  }

  /// Starts `op` on the host, on the forms of its operands there.
  Operation *runOnHost(const planning::Recipe &recipe, Operation *op,
                       OpBuilder &b) {
    auto formIn = [&](ArrayRef<ValueId> list, Value root) {
      ValueId content = problem.idOf.lookup(root);
      for (ValueId v : list)
        if (problem.problem.contentOf(v) == content)
          return v;
      return ValueId(kNone);
    };
    IRMapping operands;
    for (Value operand : op->getOperands()) {
      Value root = storageRoot(operand);
      if (root.getDefiningOp<arith::ConstantOp>()) {
        op->emitError("a constant isn't at home on the host");
        return nullptr;
      }
      operands.map(operand, onForm(operand, formIn(recipe.reads, root), b));
    }
    const SpaceKind reached =
        infoOf(problem.problem.engines[recipe.engine].kind).writes;
    Operation *made = b.clone(*op, operands);
    made->setAttr(train::TrainDialect::kOnHost, b.getUnitAttr());
    for (auto [result, mine] :
         llvm::zip(op->getResults(), made->getResults())) {
      mine.setType(train::inSpace(mine.getType(), reached));
      if (ValueId form = problem.idOf.count(result)
                             ? formIn(recipe.writes, result)
                             : kNone;
          form != kNone)
        setNow(form, result, mine);
    }
    return count(op, made, b);
  }

  void finish(Operation *started, OpBuilder &b) {
    Location loc = started->getLoc();
    if (isa<train::StashStartOp>(started))
      train::StashDoneOp::create(b, loc, started->getResult(0));
    else if (isa<train::FetchStartOp>(started))
      train::FetchDoneOp::create(b, loc, started->getResult(0));
    else
      train::WorkDoneOp::create(b, loc, started->getResults());
  }
};

} // namespace

LogicalResult tmc::applySolution(train::StepOp step, const StepProblem &problem,
                                 const planning::Solution &solution) {
  Block &old = step.getBody().front();
  Block *block = new Block();
  step.getBody().push_back(block);
  Replay replay(problem, solution);
  for (BlockArgument argument : old.getArguments())
    replay.addArgument(argument, *block);
  OpBuilder b = OpBuilder::atBlockEnd(block);

  if (failed(replay.run(0, b)))
    return failure();
  if (problem.loop) {
    train::MicroBatchOp loop = problem.loop;
    SmallVector<Value> slices;
    for (Value slice : loop.getSlices())
      slices.push_back(replay.current(slice, b));
    std::vector<ValueId> left = replay.leftByBody();
    SmallVector<Type> types(loop.getResultTypes());
    for (ValueId id : left)
      types.push_back(replay.typeOf(id));
    auto next = train::MicroBatchOp::create(b, loop.getLoc(), types,
                                            loop.getCountAttr(), slices);
    replay.constantsAt = next;
    Block &body = next.getBody().emplaceBlock();
    for (BlockArgument argument : loop.getBlock().getArguments())
      replay.map.map(argument,
                     body.addArgument(argument.getType(), argument.getLoc()));
    for (ValueId id : left)
      body.addArgument(replay.typeOf(id), loop.getLoc());
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    if (failed(replay.run(1, inner)))
      return failure();
    SmallVector<Value> yielded;
    for (Value value : loop.getBlock().getTerminator()->getOperands())
      yielded.push_back(replay.current(value, inner));
    for (ValueId id : left)
      yielded.push_back(replay.now(id));
    train::YieldOp::create(inner, loop.getLoc(), yielded);
    // A move refers to the value that the body yields; kernels read the loop's
    // result.
    for (auto [from, to, value] :
         llvm::zip(loop.getResults(), next.getResults(),
                   loop.getBlock().getTerminator()->getOperands())) {
      replay.map.map(from, to);
      if (storageRoot(value) == value)
        replay.map.map(value, to);
    }
    for (auto [id, result] : llvm::zip_equal(
             left, next.getResults().drop_front(loop.getNumResults())))
      replay.setNow(id, result);
    b.setInsertionPointToEnd(block);
    replay.constantsAt = nullptr;
    if (failed(replay.run(2, b)))
      return failure();
  }
  SmallVector<Value> returned;
  for (Value value : old.getTerminator()->getOperands())
    returned.push_back(replay.atHome(value, b));
  train::ReturnOp::create(b, old.getTerminator()->getLoc(), returned);
  old.dropAllReferences();
  old.erase();
  step.setFunctionType(b.getFunctionType(block->getArgumentTypes(),
                                         ValueRange(returned).getTypes()));
  return success();
}
