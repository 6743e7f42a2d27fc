#include "compiler/emit/Evaluation.h"

#include "compiler/analysis/MemLiveness.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"
#include "runtime/kernels/Attention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace tmc;

namespace {

using Buffers = llvm::SetVector<Operation *>;

/// Finds the ops that the loss needs.
class Slice {
public:
  explicit Slice(mem::ProgramOp program) : program(program) {
    MemLiveness liveness = memLiveness(program);
    for (auto [buffer, span] : llvm::zip(liveness.buffers, liveness.spans))
      if (span.crossesTrips || buffer.getPersistent())
        passing.insert(buffer);
  }

  llvm::DenseSet<Operation *> kept;

  void run(mem::BufferOp loss) {
    Buffers needed;
    needed.insert(loss);
    walk(program.getBlock(), needed);
  }

private:
  mem::ProgramOp program;
  llvm::DenseSet<Operation *> passing; // From one trip to the next.

  /// `needed`: the buffers that are read behind the block, then before it.
  void walk(Block &block, Buffers &needed) {
    for (Operation &op : llvm::reverse(block)) {
      if (auto loop = dyn_cast<mem::LoopOp>(op))
        walkLoop(loop, needed);
      else if (isa<mem::LaunchOp, mem::FillOp, mem::CopyOp>(op))
        visit(op, needed);
    }
  }

  void walkLoop(mem::LoopOp loop, Buffers &needed) {
    Buffers atEnd = needed;
    for (size_t before = 0; before != atEnd.size();) {
      before = atEnd.size();
      Buffers first = atEnd;
      walk(loop.getBlock(), first);
      for (Operation *buffer : first)
        if (passing.contains(buffer))
          atEnd.insert(buffer);
      needed = first;
    }
  }

  void visit(Operation &op, Buffers &needed) {
    SmallVector<MemoryEffects::EffectInstance> effects;
    cast<MemoryEffectOpInterface>(op).getEffects(effects);
    const bool isNeeded = llvm::any_of(effects, [&](const auto &effect) {
      return isa<MemoryEffects::Write>(effect.getEffect()) &&
             needed.contains(bufferOf(effect.getValue()));
    });
    if (!isNeeded)
      return;
    kept.insert(&op);
    for (const MemoryEffects::EffectInstance &effect : effects)
      if (isa<MemoryEffects::Write>(effect.getEffect()) &&
          overwrites(effect.getValue()))
        needed.remove(bufferOf(effect.getValue()));
    for (const MemoryEffects::EffectInstance &effect : effects)
      if (isa<MemoryEffects::Read>(effect.getEffect()))
        needed.insert(bufferOf(effect.getValue()));
  }

  /// A view or a piece may be a part of its buffer. A sum that is added to is
  /// read, too.
  static bool overwrites(Value memref) {
    return bool(memref.getDefiningOp<mem::BufferOp>());
  }
};

/// Copies kernels and removes what dropout does from them.
class Masks {
public:
  explicit Masks(ModuleOp module) : module(module) {}

  /// False if a launch draws numbers that aren't a mask's.
  bool remove(mem::LaunchOp launch) {
    if (launch.getGenerated())
      return removeGenerated(launch);
    Builder b(launch.getContext());
    SmallVector<Attribute> params;
    for (Attribute param : launch.getParams()) {
      auto pair = cast<ArrayAttr>(param);
      const bool isDropout = launch.getCallee() == Attention::kSymbol &&
                             cast<StringAttr>(pair[0]) ==
                                 TMC_FIELD_NAME(Attention::Params, dropout);
      params.push_back(
          isDropout ? b.getArrayAttr({pair[0], b.getF64FloatAttr(0)}) : param);
    }
    launch.setParamsAttr(b.getArrayAttr(params));
    return true;
  }

private:
  ModuleOp module;
  llvm::StringMap<std::string> copies; // By kernel; "": none could be made.

  bool removeGenerated(mem::LaunchOp launch) {
    auto [at, isNew] = copies.try_emplace(launch.getCallee());
    if (isNew)
      at->second = copyOf(launch.getCallee());
    if (at->second.empty())
      return false;
    launch.setCallee(at->second);
    return true;
  }

  /// The name of the kernel without masks; its own if it has none.
  std::string copyOf(StringRef name) {
    auto kernel = module.lookupSymbol<mem::KernelOp>(name);
    if (!kernel || kernel.getBlock().getOps<nn::RandomOp>().empty())
      return name.str();
    OpBuilder b(kernel);
    b.setInsertionPointAfter(kernel);
    auto copy = cast<mem::KernelOp>(b.clone(*kernel));
    copy.setSymName((name + "_without_masks").str());
    for (auto random : copy.getBlock().getOps<nn::RandomOp>())
      for (Operation *user : random->getUsers())
        if (!keepAll(user))
          return "";
    return copy.getSymName().str();
  }

  static std::optional<double> splatOf(Value value) {
    DenseElementsAttr constant;
    if (!matchPattern(value, m_Constant(&constant)) || !constant.isSplat() ||
        !isa<FloatType>(constant.getElementType()))
      return std::nullopt;
    return constant.getSplatValue<APFloat>().convertToDouble();
  }

  /// Sets a constant operand to a number.
  static void setOperand(Operation *op, unsigned index, double number) {
    OpBuilder b(op);
    auto type = cast<ShapedType>(op->getOperand(index).getType());
    op->setOperand(
        index, arith::ConstantOp::create(
                   b, op->getLoc(),
                   DenseElementsAttr::get(
                       type, b.getFloatAttr(type.getElementType(), number))));
  }

  /// Changes a comparison `random >= p` whose mask selects x * (1 / (1 - p)) or
  /// zero so that x is selected. False if the op is another one.
  static bool keepAll(Operation *op) {
    auto compared = dyn_cast<arith::CmpFOp>(op);
    if (!compared || compared.getPredicate() != arith::CmpFPredicate::OGE)
      return false;
    const std::optional<double> p = splatOf(compared.getRhs());
    if (!p || !compared.getLhs().getDefiningOp<nn::RandomOp>())
      return false;
    for (Operation *user : compared->getUsers()) {
      auto select = dyn_cast<arith::SelectOp>(user);
      auto scaled = select
                        ? select.getTrueValue().getDefiningOp<arith::MulFOp>()
                        : nullptr;
      if (!scaled || splatOf(select.getFalseValue()) != 0.0)
        return false;
      const std::optional<double> scale = splatOf(scaled.getRhs());
      constexpr double kRounded = 0x1p-7; // The error of a constant in bf16.
      const bool isIts = scale && std::abs(*scale * (1 - *p) - 1) <= kRounded;
      if ((!isIts && scale != 1.0) || !scaled->hasOneUse())
        return false;
      setOperand(scaled, 1, 1);
    }
    setOperand(compared, 1, 0);
    return true;
  }
};

bool hasRole(mem::BufferOp buffer, train::Role role) {
  DictionaryAttr attrs = buffer.getTensorAttr();
  auto its = attrs ? attrs.getAs<train::RoleAttr>(train::TrainDialect::kRole)
                   : train::RoleAttr();
  return its && its.getValue() == role;
}

} // namespace

/// The persistent buffers that `op` writes, in `changed`; false if one is a
/// parameter.
static bool findChanged(Operation *op, llvm::SetVector<Operation *> &changed) {
  SmallVector<MemoryEffects::EffectInstance> effects;
  cast<MemoryEffectOpInterface>(op).getEffects(effects);
  for (const MemoryEffects::EffectInstance &effect : effects) {
    if (!isa<MemoryEffects::Write>(effect.getEffect()))
      continue;
    mem::BufferOp buffer = bufferOf(effect.getValue());
    if (!buffer.getPersistent())
      continue;
    if (hasRole(buffer, train::Role::Param))
      return false;
    if (hasRole(buffer, train::Role::State))
      changed.insert(buffer);
  }
  return true;
}

Evaluation tmc::addEvaluation(ModuleOp module, mem::ProgramOp step) {
  Evaluation evaluation;
  auto fail = [&](const char *why) {
    evaluation.why = why;
    return evaluation;
  };
  mem::BufferOp loss;
  for (auto buffer : step.getBlock().getOps<mem::BufferOp>())
    if (DictionaryAttr attrs = buffer.getTensorAttr())
      if (attrs.get(train::TrainDialect::kLoss))
        loss = buffer;
  if (!loss)
    return fail("the step has no loss");
  Slice slice(step);
  slice.run(loss);
  llvm::SetVector<Operation *> changed;
  for (Operation *op : slice.kept) {
    auto launch = dyn_cast<mem::LaunchOp>(op);
    if (!findChanged(op, changed) ||
        (launch &&
         (launch.getJoinable() || mem::engineOf(launch) == EngineKind::Host)))
      return fail("the loss needs parameters that the same step has updated");
  }
  // In the program's order, which is that of its table.
  for (auto buffer : step.getBlock().getOps<mem::BufferOp>())
    if (changed.contains(buffer))
      evaluation.changed.push_back(buffer);

  OpBuilder b(step);
  b.setInsertionPointAfter(step);
  IRMapping mapping;
  auto program = cast<mem::ProgramOp>(b.clone(*step, mapping));
  program.setSymName("evaluation");
  llvm::DenseSet<Operation *> kept;
  for (Operation *op : slice.kept)
    kept.insert(mapping.lookup(op));
  SmallVector<Operation *> others;
  Masks masks(module);
  bool isKnown = true;
  program.walk([&](Operation *op) {
    if (!isa<mem::LaunchOp, mem::FillOp, mem::CopyOp, mem::DoneOp>(op))
      return;
    if (!kept.contains(op))
      others.push_back(op);
    else if (auto launch = dyn_cast<mem::LaunchOp>(op))
      isKnown &= masks.remove(launch);
  });
  if (!isKnown) {
    program.erase();
    return fail("the forward pass draws random numbers that aren't dropout's");
  }
  for (Operation *op : others)
    op->erase();
  evaluation.program = program;
  return evaluation;
}
