// Lower.cpp - -tmc-lower: from tensors to buffers and launches.

#include "passes/EventOrder.h"
#include "passes/OnTarget.h"

#include "compiler/analysis/MemLiveness.h"
#include "compiler/analysis/PlanRecord.h"
#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/Storage.h"
#include "dialects/mem/Mem.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

#include <map>

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_LOWER
#include "passes/Passes.h.inc"

namespace {
using planning::kNone;
using planning::ValueId;

/// Lowers one step. The problem of the planned step defines the values that
/// share bytes; everything else follows from the ops.
class Lowering {
public:
  Lowering(train::StepOp step, StepProblem stated)
      : step(step), stated(std::move(stated)), solution(this->stated.list) {
    planning::takeOverwrites(this->stated.problem, solution);
  }

  LogicalResult run() {
    if (failed(checkCarried()))
      return failure();
    shareStorage();
    OpBuilder b(step);
    program = mem::ProgramOp::create(b, step.getLoc(), step.getSymNameAttr(),
                                     /*arena_bytes=*/mem::BytesAttr());
    if (std::optional<PlanRecord> plan = PlanRecord::of(step))
      plan->attachTo(program);
    b.setInsertionPointToEnd(&program.getBody().emplaceBlock());
    makeBuffers(b);
    lowerBlock(step.getBody().front(), b);
    step.erase();
    return success();
  }

private:
  train::StepOp step;
  StepProblem stated;
  planning::Solution solution;
  mem::ProgramOp program;
  /// The value whose buffer a value has, by union-find.
  std::vector<ValueId> owner;
  /// The buffer of each owner.
  std::map<ValueId, Value> bufferOf;
  std::map<std::string, std::string> kernelByBody;
  IRMapping views; // Tensor view -> memref view, within the current block.

  ValueId find(ValueId id) {
    while (owner[id] != id)
      id = owner[id] = owner[owner[id]];
    return id;
  }

  void unite(ValueId a, ValueId b) {
    a = find(a), b = find(b);
    owner[std::max(a, b)] = std::min(a, b); // Arguments come first.
  }

  /// A kernel that makes the next trip's value from this one's overwrites it:
  /// both are one buffer.
  LogicalResult checkCarried() {
    const planning::Problem &problem = stated.problem;
    for (const auto &segment : solution.segments)
      for (const planning::Execution &execution : segment) {
        const planning::Recipe &recipe = problem.recipes[execution.recipe];
        for (ValueId read : recipe.reads)
          for (ValueId written : recipe.writes)
            if (problem.values[read].carriedFrom == written &&
                llvm::none_of(recipe.overwrites, [&](const auto &pair) {
                  return pair.read == read && pair.written == written;
                }))
              return stated.kernelOf[execution.recipe].op->emitError(
                         "can't write '")
                     << problem.values[written].name
                     << "' over the value of the trip before";
      }
    return success();
  }

  /// Values that overwrite one another, and those that a loop carries, are one
  /// buffer.
  void shareStorage() {
    const planning::Problem &problem = stated.problem;
    owner.resize(problem.values.size());
    for (size_t i = 0; i < owner.size(); ++i)
      owner[i] = i;
    for (const auto &segment : solution.segments)
      for (const planning::Execution &execution : segment) {
        const planning::Recipe &recipe = problem.recipes[execution.recipe];
        for (int32_t taken : execution.overwrites)
          unite(recipe.overwrites[taken].read,
                recipe.overwrites[taken].written);
      }
    for (size_t i = 0; i < owner.size(); ++i) {
      const planning::Value &value = problem.values[i];
      if (value.updates != kNone) // A copy replaces the old home, too.
        unite(i, value.updates);
      if (value.carriedFrom != kNone)
        unite(i, value.carriedFrom);
      if (value.initial != kNone)
        unite(i, value.initial);
    }
  }

  std::string className(ValueId id) {
    return planning::nameOf(stated.problem.values[id].valueClass);
  }

  /// The attributes of an argument for the runtime.
  DictionaryAttr tensorOf(BlockArgument argument) {
    Builder b(step.getContext());
    SmallVector<NamedAttribute> attrs(
        step.getArgAttrDict(argument.getArgNumber()).getValue());
    return b.getDictionaryAttr(attrs);
  }

  void makeBuffers(OpBuilder &b) {
    const planning::Problem &problem = stated.problem;
    llvm::DenseMap<ValueId, std::pair<DictionaryAttr, Value>> outputs;
    Operation *ret = step.getBody().front().getTerminator();
    for (auto [i, value] : llvm::enumerate(ret->getOperands()))
      if (!train::updatedArg(step, i)) {
        Value root = storageRoot(value);
        outputs[find(stated.idOf.lookup(root))] = {
            b.getDictionaryAttr(step.getResultAttrDict(i).getValue()), root};
      }

    for (size_t i = 0; i < owner.size(); ++i) {
      if (find(i) != ValueId(i))
        continue;
      const planning::Value &value = problem.values[i];
      Value root = stated.valueOf[i];
      auto [outputAttrs, output] = outputs.lookup(i);
      // If there are several values, the one that is read from outside says the
      // shape.
      Type type = output ? output.getType()
                  : root ? root.getType()
                         : typeOfZeros(i);
      auto buffer = mem::BufferOp::create(
          b, root ? root.getLoc() : step.getLoc(), contiguous(type), value.name,
          className(i),
          /*persistent=*/value.kind == planning::ValueKind::Persistent,
          /*offset=*/-1, DictionaryAttr(), ElementsAttr());
      if (auto argument = dyn_cast_or_null<BlockArgument>(root);
          argument && argument.getOwner()->getParentOp() == step)
        buffer.setTensorAttr(tensorOf(argument));
      else if (auto constant =
                   root ? root.getDefiningOp<arith::ConstantOp>() : nullptr)
        buffer.setConstantAttr(cast<ElementsAttr>(constant.getValue()));
      if (output) {
        SmallVector<NamedAttribute> attrs(outputAttrs.getValue());
        attrs.push_back(b.getNamedAttr("train.output", b.getUnitAttr()));
        buffer.setTensorAttr(b.getDictionaryAttr(attrs));
      }
      bufferOf[i] = buffer;
    }
  }

  /// The type of a loop's zeros: the type of the sum that they initialize.
  Type typeOfZeros(ValueId zeros) {
    for (size_t i = 0; i < owner.size(); ++i)
      if (stated.problem.values[i].initial == zeros)
        return stated.valueOf[i].getType();
    llvm_unreachable("zeros that no sum begins as");
  }

  /// The buffer of `value`, or a view of it.
  Value memrefOf(Value value, OpBuilder &b) {
    if (Value known = views.lookupOrNull(value))
      return known;
    Value result;
    if (Operation *op = value.getDefiningOp(); isView(op)) {
      Value source = memrefOf(op->getOperand(0), b);
      auto type =
          cast<ViewOpInterface>(op).viewOf(cast<MemRefType>(source.getType()));
      result = mem::ViewOp::create(b, op->getLoc(), type, source);
      views.map(value, result);
      return result;
    }
    if (auto argument = dyn_cast<BlockArgument>(value))
      if (auto loop =
              dyn_cast<train::MicroBatchOp>(argument.getOwner()->getParentOp());
          loop && argument.getArgNumber() < loop.getSlices().size()) {
        Value whole = memrefOf(loop.getSlices()[argument.getArgNumber()], b);
        result = mem::PieceOp::create(b, argument.getLoc(),
                                      contiguous(argument.getType()), whole,
                                      loopIndex);
        views.map(value, result);
        return result;
      }
    return wholeBuffer(stated.idOf.lookup(storageRoot(value)), value.getType(),
                       b);
  }

  /// The buffer of value `id`, viewed as `type`: a buffer of several values has
  /// the shape of one of them.
  Value wholeBuffer(ValueId id, Type type, OpBuilder &b) {
    Value buffer = bufferOf.at(find(id));
    MemRefType wanted = contiguous(type);
    if (buffer.getType() == wanted)
      return buffer;
    return mem::ViewOp::create(b, buffer.getLoc(), wanted, buffer);
  }

  Value loopIndex;
  EventOrder order;
  /// The number of each work in progress.
  llvm::DenseMap<Operation *, int32_t> inFlight;

  void lowerBlock(Block &block, OpBuilder &b) {
    for (Operation &op : block.without_terminator()) {
      if (isView(&op) || isa<arith::ConstantOp>(op))
        continue;
      if (auto loop = dyn_cast<train::MicroBatchOp>(op))
        lowerLoop(loop, b);
      else if (Operation *start = train::startOf(&op))
        lowerDone(start, b);
      else if (train::isWork(&op))
        lowerWork(&op, b);
      else
        lowerLaunch(cast<KernelOpInterface>(op), b);
    }
    order.border(b, block.getParentOp()->getLoc());
  }

  /// Lowers the start of a copy, or of a launch on the host.
  void lowerWork(Operation *op, OpBuilder &b) {
    SmallVector<int32_t> makers;
    for (Value operand : op->getOperands())
      if (auto maker = inFlight.find(storageRoot(operand).getDefiningOp());
          maker != inFlight.end())
        makers.push_back(maker->second);
    const EngineKind engine = train::engineOf(op);
    if (auto kernel = dyn_cast<KernelOpInterface>(op)) {
      order.beforeStart(engine, makers, b, op->getLoc());
      lowerLaunch(kernel, b);
    } else {
      // A value in a part of a shared buffer moves its own bytes only.
      Value source = memrefOf(op->getOperand(0), b);
      Value target = wholeBuffer(stated.idOf.lookup(op->getResult(0)),
                                 op->getResult(0).getType(), b);
      order.beforeStart(engine, makers, b, op->getLoc());
      auto instance =
          op->getAttrOfType<IntegerAttr>(train::TrainDialect::kInstance);
      mem::CopyOp::create(b, op->getLoc(), source, target, engine, nameOf(op),
                          instance ? instance.getInt() : 0);
    }
    inFlight[op] = order.started(engine, b, op->getLoc());
    if (!train::doneOf(op))
      lowerDone(op, b);
  }

  void lowerDone(Operation *start, OpBuilder &b) {
    auto isThere = [](Value value) {
      return onDevice(train::spaceOf(value.getType()));
    };
    bool touches = llvm::any_of(start->getOperands(), isThere) ||
                   llvm::any_of(start->getResults(), isThere);
    order.done(inFlight.lookup(start), touches, b, start->getLoc());
    inFlight.erase(start);
  }

  void lowerLoop(train::MicroBatchOp loop, OpBuilder &b) {
    for (size_t i = 0; i < stated.problem.values.size(); ++i)
      if (!stated.valueOf[i])
        mem::FillOp::create(b, loop.getLoc(), bufferOf.at(find(i)));
    order.border(b, loop.getLoc());
    auto lowered = mem::LoopOp::create(b, loop.getLoc(), loop.getCountAttr());
    Block &body = lowered.getBody().emplaceBlock();
    loopIndex = body.addArgument(b.getIndexType(), loop.getLoc());
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    IRMapping outside = views;
    lowerBlock(loop.getBlock(), inner);
    views = outside;
  }

  void lowerLaunch(KernelOpInterface op, OpBuilder &b) {
    SmallVector<Value> inputs, outputs;
    SmallVector<MemRefType> layouts;
    for (Value operand : op->getOperands()) {
      inputs.push_back(memrefOf(operand, b));
      layouts.push_back(cast<MemRefType>(inputs.back().getType()));
    }
    SmallVector<int64_t> written; // Result -> output, or -1.
    for (OpResult result : op->getResults()) {
      written.push_back(isWritten(result) ? int64_t(outputs.size()) : -1);
      if (isWritten(result))
        outputs.push_back(
            wholeBuffer(stated.idOf.lookup(result), result.getType(), b));
    }
    const EngineKind engine = train::engineOf(op);
    KernelCall call = op.getKernel(
        layouts, engine == EngineKind::Host ? Backend::Cpu : target.backend);
    bool generated = isa<nn::FusedOp>(op);
    if (generated)
      call.symbol = outline(cast<nn::FusedOp>(op.getOperation()));

    SmallVector<Attribute> params;
    for (auto &[name, value] : call.params)
      params.push_back(b.getArrayAttr({b.getStringAttr(name), value}));
    SmallVector<int64_t> outOrder(call.outs);
    if (outOrder.empty())
      outOrder = written;
    else
      for (int64_t &out : outOrder)
        out = out < 0 ? -1 : written[out];

    Value scratch;
    if (call.scratchBytes > 0) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(&program.getBlock(), program.getBlock().begin());
      scratch = mem::BufferOp::create(
          b, op.getLoc(),
          MemRefType::get({call.scratchBytes}, b.getI8Type(),
                          MemRefLayoutAttrInterface(),
                          memorySpaceOf(op->getOperand(0).getType())),
          nameOf(op) + ".scratch", "workspace", false, -1, DictionaryAttr(),
          ElementsAttr());
    }
    bool accumulates = op.getAccumulator() >= 0;
    int64_t accumulated = accumulates ? written[op.getAccumulated()] : 0;
    bool carried = false;
    if (accumulates) {
      Value acc = op->getOperand(op.getAccumulator());
      // On the first trip the sum is uninitialized.
      auto argument = dyn_cast<BlockArgument>(acc);
      carried = argument && argument.getOwner()->getParentOp() != step;
      inputs.erase(inputs.begin() + op.getAccumulator());
      for (int64_t &in : call.ins)
        in -= in > op.getAccumulator();
    }
    auto instance =
        op->getAttrOfType<IntegerAttr>(train::TrainDialect::kInstance);
    auto cost = dyn_cast<CostOpInterface>(op.getOperation());
    int64_t flops = call.flops >= 0 ? call.flops : cost ? cost.getFlops() : 0;
    uint64_t places = 0;
    for (auto [place, out] : llvm::enumerate(outOrder))
      places |= place < 64 ? uint64_t(out >= 0) << place : 0;
    const int64_t launches =
        call.deviceLaunches ? call.deviceLaunches(Wanted(places)) : 1;
    auto launch = mem::LaunchOp::create(
        b, op.getLoc(), call.symbol, generated, inputs, outputs, scratch,
        b.getArrayAttr(params), call.ins, outOrder, accumulates, accumulated,
        carried && firstOfSum(op),
        engine == EngineKind::Compute
            ? mem::EngineAttr()
            : mem::EngineAttr::get(b.getContext(), engine),
        nameOf(op), instance ? instance.getInt() : 0, flops,
        cost ? cost.getBytesMoved() : 0, launches,
        call.unalignedProducts ? b.getI64IntegerAttr(*call.unalignedProducts)
                               : IntegerAttr());
    launch.setJoinable(call.isJoinable);
    if (engine == EngineKind::Compute)
      order.launched();
  }

  /// True if nothing in this trip has added to the sum before `op`.
  bool firstOfSum(KernelOpInterface op) {
    return isa<BlockArgument>(op->getOperand(op.getAccumulator())) &&
           stated.problem
                   .values[stated.idOf.lookup(
                       op->getOperand(op.getAccumulator()))]
                   .initial == kNone;
  }

  /// The symbol of a kernel with `op`'s body: equal bodies share one.
  std::string outline(nn::FusedOp original) {
    // Random streams are parameters of the kernel: bodies that differ only in
    // streams share a kernel.
    OwningOpRef<nn::FusedOp> plain(cast<nn::FusedOp>(original->clone()));
    nn::FusedOp op = *plain;
    int64_t stream = 0;
    for (auto random : op.getBlock().getOps<nn::RandomOp>())
      random.setStream(stream++);
    std::string body;
    llvm::raw_string_ostream os(body);
    for (Value input : op.getInputs())
      os << input.getType() << ";";
    op.getBody().front().print(os);
    std::string &symbol = kernelByBody[body];
    if (!symbol.empty())
      return symbol;
    symbol = "fused_" + std::to_string(kernelByBody.size() - 1);
    OpBuilder b(program);
    auto kernel = mem::KernelOp::create(b, op.getLoc(), symbol);
    Block &block = kernel.getBody().emplaceBlock();
    IRMapping map;
    for (BlockArgument argument : op.getBlock().getArguments())
      map.map(argument,
              block.addArgument(argument.getType(), argument.getLoc()));
    b.setInsertionPointToEnd(&block);
    for (Operation &inner : op.getBlock().without_terminator())
      b.clone(inner, map);
    SmallVector<Value> yielded;
    for (Value value : op.getYield().getValues())
      yielded.push_back(map.lookup(value));
    mem::YieldOp::create(b, op.getLoc(), yielded);
    return symbol;
  }

public:
  Target target;
};

struct Lower : impl::LowerBase<Lower> {
  using LowerBase::LowerBase;
  Lower(LowerOptions options, PassTarget target)
      : LowerBase(std::move(options)), given(std::move(target)) {}

  void runOnOperation() override {
    SmallVector<train::StepOp> steps(getOperation().getOps<train::StepOp>());
    for (train::StepOp step : steps) {
      FailureOr<Target> device = given.of(step, target);
      if (failed(device))
        return signalPassFailure();
      FailureOr<StepProblem> stated = buildProblem(step, *device);
      if (failed(stated))
        return signalPassFailure();
      Lowering lowering(step, std::move(*stated));
      lowering.target = *device;
      if (failed(lowering.run()))
        return signalPassFailure();
    }
  }

private:
  PassTarget given;
};

} // namespace

std::unique_ptr<Pass> createLower(LowerOptions options, PassTarget target) {
  return std::make_unique<Lower>(std::move(options), std::move(target));
}
} // namespace tmc
