// Precision.cpp - -tmc-precision: narrows the factors of products.

#include "passes/Precision.h"

#include "passes/Codes.h"
#include "passes/LossScale.h"
#include "passes/OnTarget.h"

#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/Storage.h"
#include "dialects/interfaces/Fault.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using tmc::nn::tensorType;

namespace tmc {
#define GEN_PASS_DEF_PRECISION
#include "passes/Passes.h.inc"

namespace {

bool isF32(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isF32();
}

/// The names of ops. Ops from one op of the model share its location, and so
/// its names.
class OpNames {
public:
  OpNames(train::StepOp step, ArrayRef<Operation *> ops) {
    for (Operation *op : ops) {
      add(op->getLoc(), nameOf(op));
      // A product that stands for several has their names, too.
      if (auto name = dyn_cast<NameLoc>(op->getLoc()))
        if (auto parts = dyn_cast<FusedLoc>(name.getChildLoc()))
          for (Location part : parts.getLocations())
            if (auto its = dyn_cast<NameLoc>(part))
              add(op->getLoc(), its.getName().str());
      for (Value operand : op->getOperands())
        if (auto argument = parameterOf(step, operand))
          for (const train::NamedTensor &tensor :
               train::namedTensors(step.getArgAttrDict(*argument),
                                   cast<ShapedType>(operand.getType())))
            add(op->getLoc(), tensor.name);
    }
  }
  ArrayRef<std::string> of(Operation *op) const {
    return names.find(op->getLoc())->second;
  }
  /// The name or module with the spelling closest to `glob`; "" if none is
  /// close.
  std::string like(StringRef glob) const {
    std::string best;
    unsigned least = glob.size() / 3 + 2;
    for (auto &[loc, all] : names)
      for (const std::string &name : all)
        eachModule(name, [&](StringRef part) {
          unsigned distance = part.edit_distance(glob, true, least);
          if (distance < least) {
            least = distance;
            best = part.str();
          }
        });
    return best;
  }

private:
  void add(Location loc, std::string name) {
    SmallVector<std::string> &known = names[loc];
    if (!llvm::is_contained(known, name))
      known.push_back(std::move(name));
  }
  llvm::MapVector<Location, SmallVector<std::string>> names;
};

/// Finds the results that are gradients of parameters, or their summands.
class ParameterGradients {
public:
  explicit ParameterGradients(train::StepOp step) {
    step.walk([&](Operation *op) {
      if (op->hasTrait<train::UpdateRule>() || isa<train::SquareSumOp>(op))
        for (Value operand : op->getOperands())
          mark(operand);
    });
  }
  bool contains(Value value) const { return found.contains(value); }

private:
  void mark(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !isF32(value) || !found.insert(value).second)
      return;
    if (auto loop = dyn_cast<train::MicroBatchOp>(op))
      return mark(loop.getBlock().getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber()));
    if (movesOnly(op) || isa<arith::AddFOp, nn::SumOverOp>(op))
      for (Value operand : op->getOperands())
        mark(operand);
  }
  DenseSet<Value> found;
};

/// Narrows ops one by one. Each value has at most one narrow copy of a type.
class Narrower {
public:
  /// Gradients of parameters get the type `gradientType`.
  Narrower(train::StepOp step, Type gradientType)
      : step(step), b(step), gradients(step), gradientType(gradientType),
        addsUp(!step.getOps<train::MicroBatchOp>().empty()) {}

  /// Moves the widening of narrow parameters to their readers.
  void sinkStoredParams() {
    for (BlockArgument argument : step.getBody().getArguments())
      for (Operation *user : llvm::make_early_inc_range(argument.getUsers()))
        if (auto widened = dyn_cast<arith::ExtFOp>(user))
          sink(widened);
  }

  /// Stores `op`'s activations in the 16-bit type from which the first one is
  /// computed. If an exception asks for another type, the op stays as it is.
  void follow(ActivationOpInterface op, const PrecisionSpec::Choice &choice) {
    SmallVector<unsigned> activations = op.getActivations();
    Value first = op->getOperand(activations.front());
    Type element = isF32(first) ? narrowTypeOf(first) : Type();
    if (!element || (!choice.exception.empty() && choice.type != element))
      return;
    for (unsigned i : activations)
      op->setOperand(i, narrowOf(op->getOperand(i), element));
    round(op->getResult(0), element);
  }

  /// Makes `op` multiply in `element`, if it can.
  void narrow(PrecisionOpInterface op, Type element) {
    if (element.isTF32()) {
      bool isWide = llvm::all_of(op.getFactors(), [&](unsigned i) {
        return isF32(op->getOperand(i));
      });
      if (isWide && op.takesTF32())
        op->setAttr("tf32", UnitAttr::get(op->getContext()));
      return;
    }
    // A product that is 16-bit in the model keeps its type.
    if (Type own = op.getProductType(); own.getIntOrFloatBitWidth() == 16)
      element = own;
    for (unsigned i : op.getFactors())
      op->setOperand(i, narrowOf(op->getOperand(i), element));
    roundResults(op, element);
  }

  /// Rounds the results of `op`, except gradients that stay f32.
  void roundResults(PrecisionOpInterface op, Type element) {
    for (unsigned i : op.getRoundedResults()) {
      OpResult result = op->getResult(i);
      if (!isF32(result))
        continue;
      bool isSummed = addsUp || gradientType.isF32();
      if (op.mayKeepSums() && gradients.contains(result) && isSummed)
        continue;
      for (unsigned addend : op.getAddends())
        op->setOperand(addend, narrowOf(op->getOperand(addend), element));
      round(result, element);
    }
  }

  /// Rounds the gradients that updates read, unless they are sums over
  /// micro-batches.
  void narrowGradients() {
    if (addsUp)
      return;
    step.walk([&](Operation *op) {
      bool isUpdate = op->hasTrait<train::UpdateRule>();
      if (!isUpdate && !isa<train::SquareSumOp>(op))
        return;
      unsigned index = isUpdate ? 1 : 0;
      Value gradient = op->getOperand(index);
      // Ranks exchange rounded numbers, and round their sum.
      if (auto sum = gradient.getDefiningOp<nn::SumOverOp>())
        narrowSum(sum);
      else
        op->setOperand(index, narrowOf(gradient, gradientType));
    });
  }

  /// Makes a sum of gradients over ranks one of their narrow copies.
  void narrowSum(nn::SumOverOp sum) {
    Value part = narrowOf(sum.getInput(), gradientType);
    sum.getInputMutable().assign(part);
    sum.getResult().setType(cast<RankedTensorType>(part.getType()));
  }

  /// Keeps a frozen parameter in the type that all its readers narrow it to.
  void storeFrozenParams() {
    SmallVector<Type> types(step.getArgumentTypes());
    for (BlockArgument argument : step.getBody().getArguments()) {
      unsigned index = argument.getArgNumber();
      if (train::roleOf(step, index) != train::Role::Param ||
          !step.getArgAttr(index, train::TrainDialect::kFrozen) ||
          argument.use_empty())
        continue;
      auto isLike = [&](Operation *user) {
        return isa<arith::TruncFOp>(user) &&
               user->getResultTypes() ==
                   argument.user_begin()->getResultTypes();
      };
      if (!llvm::all_of(argument.getUsers(), isLike))
        continue;
      types[index] = argument.user_begin()->getResult(0).getType();
      for (Operation *user : llvm::make_early_inc_range(argument.getUsers())) {
        user->getResult(0).replaceAllUsesWith(argument);
        user->erase();
      }
      argument.setType(types[index]);
    }
    step.setFunctionType(
        FunctionType::get(step.getContext(), types, step.getResultTypes()));
  }

private:
  /// Makes `result` narrow; its readers read it widened.
  void round(OpResult result, Type element) {
    auto wide = cast<RankedTensorType>(result.getType());
    result.setType(wide.clone(element));
    b.setInsertionPointAfter(result.getOwner());
    auto widened = arith::ExtFOp::create(b, result.getLoc(), wide, result);
    result.replaceAllUsesExcept(widened, widened);
    sink(widened);
  }

  /// True if each part of `concat` is widened from the type of `narrow`.
  static bool isWidened(nn::ConcatOp concat, Value narrow) {
    return llvm::all_of(concat.getInputs(), [&](Value part) {
      auto widened = part.getDefiningOp<arith::ExtFOp>();
      return widened && tensorType(widened.getIn()).getElementType() ==
                            tensorType(narrow).getElementType();
    });
  }

  /// Moves a widening behind ops that only move its elements, so that these
  /// move fewer bytes: behind a concatenation once all of its parts are
  /// widened.
  void sink(arith::ExtFOp widened) {
    const llvm::SetVector<Operation *> users(widened->user_begin(),
                                             widened->user_end());
    for (Operation *user : users) {
      // It may read the narrow value by now, as another part of itself.
      if (!llvm::is_contained(user->getOperands(), widened.getResult()))
        continue;
      auto lookup = dyn_cast<nn::EmbeddingOp>(user);
      auto concat = dyn_cast<nn::ConcatOp>(user);
      if (concat
              ? !isWidened(concat, widened.getIn())
              : !movesOnly(user) && !(lookup && lookup.getTable() == widened))
        continue;
      auto wide = cast<RankedTensorType>(user->getResult(0).getType());
      if (concat)
        for (OpOperand &part : user->getOpOperands())
          part.set(part.get().getDefiningOp<arith::ExtFOp>().getIn());
      else
        user->setOperand(0, widened.getIn());
      user->getResult(0).setType(
          wide.clone(tensorType(widened.getIn()).getElementType()));
      b.setInsertionPointAfter(user);
      auto moved =
          arith::ExtFOp::create(b, user->getLoc(), wide, user->getResult(0));
      user->getResult(0).replaceAllUsesExcept(moved, moved);
      sink(moved);
    }
    if (widened->use_empty())
      widened.erase();
  }

  /// The 16-bit type from which `value`, in f32, is computed: by casts to f32,
  /// moves, concatenation and pointwise ops of its size. Null if there is none,
  /// or more than one.
  Type narrowTypeOf(Value value) {
    Type found;
    llvm::SmallPtrSet<Operation *, 16> seen;
    SmallVector<Value> open{value};
    constexpr size_t kMost = 64; // Enough for an expression; a network is
                                 // larger.
    while (!open.empty()) {
      Value next = open.pop_back_val();
      Operation *op = next.getDefiningOp();
      if (!op || seen.size() == kMost)
        return Type();
      if (!seen.insert(op).second || isa<nn::BroadcastOp>(op) ||
          op->hasTrait<OpTrait::ConstantLike>())
        continue;
      if (auto widened = dyn_cast<arith::ExtFOp>(op)) {
        Type type = tensorType(widened.getIn()).getElementType();
        if (type.getIntOrFloatBitWidth() != 16 || (found && found != type))
          return Type();
        found = type;
      } else if (movesOnly(op) || isa<PointwiseOpInterface, nn::ConcatOp>(op)) {
        llvm::append_range(open, op->getOperands());
      } else {
        return Type();
      }
    }
    return found;
  }

  /// Whether all readers of `value` may read it rounded to `element`: its
  /// operands are such numbers, as in a sum of two branches, and its readers
  /// are pointwise ops, products and ops that keep activations. Keeping both
  /// types would take half as many bytes again.
  bool mayRoundAll(Value value, Type element) {
    auto mayRound = [](OpOperand &use) {
      Operation *user = use.getOwner();
      auto product = dyn_cast<PrecisionOpInterface>(user);
      return isa<PointwiseOpInterface, ActivationOpInterface>(user) ||
             (product &&
              llvm::is_contained(product.getFactors(), use.getOperandNumber()));
    };
    auto isProduct = [](Operation *user) {
      return isa<PrecisionOpInterface>(user);
    };
    return isa_and_nonnull<PointwiseOpInterface>(value.getDefiningOp()) &&
           llvm::all_of(value.getUses(), mayRound) &&
           !llvm::all_of(value.getUsers(), isProduct) &&
           narrowTypeOf(value) == element;
  }

  Value narrowOf(Value value, Type element) {
    if (!isF32(value))
      return value;
    Operation *op = value.getDefiningOp();
    if (auto widened = dyn_cast_or_null<arith::ExtFOp>(op);
        widened && tensorType(widened.getIn()).getElementType() == element)
      return widened.getIn();
    Value &made = copies[{value, element}];
    if (made)
      return made;
    b.setInsertionPointAfterValue(value);
    Value copy;
    if (auto concat = dyn_cast_or_null<nn::ConcatOp>(op)) {
      SmallVector<Value> parts;
      for (Value part : concat.getInputs())
        parts.push_back(narrowOf(part, element));
      b.setInsertionPointAfterValue(value);
      copy = nn::ConcatOp::create(b, value.getLoc(), parts, concat.getDim());
    } else if (movesOrPads(op)) {
      // The source may have a copy already.
      Value source = narrowOf(op->getOperand(0), element);
      b.setInsertionPointAfterValue(value);
      Operation *moved = b.clone(*op);
      moved->setOperand(0, source);
      moved->getResult(0).setType(tensorType(value).clone(element));
      copy = moved->getResult(0);
    } else {
      const bool roundsAll = mayRoundAll(value, element);
      copy = nn::convertTo(b, value.getLoc(), value, element);
      if (roundsAll) {
        Value widened =
            arith::ExtFOp::create(b, value.getLoc(), value.getType(), copy);
        value.replaceAllUsesExcept(widened, copy.getDefiningOp());
      }
    }
    return copies[{value, element}] = copy;
  }

  train::StepOp step;
  OpBuilder b;
  ParameterGradients gradients;
  Type gradientType;
  bool addsUp; // True: sums over micro-batches.
  DenseMap<std::pair<Value, Type>, Value> copies;
};

/// The reason why `device` lacks the products of codes that `spec` asks for;
/// empty: it has them.
std::string faultOfCodes(const PrecisionSpec &spec, const Target &device) {
  if (device.backend == Backend::Cpu)
    return "";
  // Ada's and Hopper's tensor cores are the first with fp8; cuBLASLt supports
  // scales of blocks on Hopper only.
  constexpr int kFirst = 89, kBlocks = 90;
  int64_t arch = 0;
  StringRef number = StringRef(device.arch).drop_front(3); // "sm_"
  if (number.consumeInteger(10, arch))
    return "";
  for (Scaling scaling : spec.scalings()) {
    if (scaling == Scaling::Block && arch != kBlocks)
      return device.name + " (" + device.arch +
             ") has no products of codes with scales of blocks: fp8:block "
             "wants sm_90 or the cpu";
    if (arch < kFirst)
      return device.name + " (" + device.arch +
             ") has no products of codes of 8 bits: fp8 wants sm_89 or newer";
  }
  return "";
}

struct Precision : impl::PrecisionBase<Precision> {
  using PrecisionBase::PrecisionBase;
  Precision(PrecisionOptions options, PassTarget target)
      : PrecisionBase(std::move(options)), given(std::move(target)) {}

  void runOnOperation() override {
    llvm::Expected<PrecisionSpec> spec = PrecisionSpec::parse(this->spec);
    if (!spec) {
      emitFault(getOperation().getLoc(), FailureKind::Usage)
          << llvm::toString(spec.takeError());
      return signalPassFailure();
    }
    FailureOr<Target> device = given.of(getOperation(), target);
    if (failed(device))
      return signalPassFailure();
    const bool onCard = device->backend == Backend::Cuda;
    if (std::string fault = faultOfCodes(*spec, *device); !fault.empty()) {
      emitFault(getOperation().getLoc(), FailureKind::Unsupported) << fault;
      return signalPassFailure();
    }
    // Whether `op` multiplies codes with this scaling. With blocks, parameters
    // are in squares, and no GPU multiplies two factors in squares.
    auto takesCodes = [&](PrecisionOpInterface op, Scaling scaling) {
      const bool inBlocks = scaling == Scaling::Block;
      if (tensorType(op->getOperand(0)).getElementType().isF64() ||
          !op.takesCodes(onCard, inBlocks))
        return false;
      return !onCard || !inBlocks ||
             !llvm::all_of(op.getFactors(), [&](unsigned i) {
               return parameterOf(getOperation(), op->getOperand(i));
             });
    };
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<PrecisionOpInterface, ActivationOpInterface>(op))
        ops.push_back(op);
    });
    OpNames names(getOperation(), ops);
    Type gradientType = spec->gradientType(&getContext());
    Narrower narrower(getOperation(), gradientType);
    Quantizer quantizer(getOperation());
    narrower.sinkStoredParams();
    bool isScaled = !getOperation().getOps<train::LossScaleOp>().empty();
    SmallVector<Operation *> unscaled;
    for (Operation *op : ops) {
      PrecisionSpec::Choice choice = spec->choose(names.of(op), &getContext());
      if (auto activations = dyn_cast<ActivationOpInterface>(op)) {
        narrower.follow(activations, choice);
        continue;
      }
      auto product = cast<PrecisionOpInterface>(op);
      if (!choice.exception.empty()) // For reports.
        op->setAttr(train::TrainDialect::kPrecision,
                    StringAttr::get(&getContext(), choice.exception));
      if (choice.codes && takesCodes(product, *choice.codes)) {
        quantizer.quantize(product, *choice.codes, names.of(op).back());
        narrower.roundResults(product, choice.type);
      } else if (!choice.type.isF32()) {
        const bool isExact = spec->hasExactAttention() &&
                             isa<nn::AttentionOp, nn::AttentionGradOp>(op);
        if (isExact && choice.type.isTF32())
          continue; // Exact attention of f32 multiplies f32.
        narrower.narrow(product, choice.type);
        if (isExact)
          op->setAttr("exact", UnitAttr::get(&getContext()));
      }
      if ((choice.type.isF16() || gradientType.isF16()) && !isScaled)
        unscaled.push_back(op);
    }
    if (!unscaled.empty())
      return (void)emitUnscaled(unscaled), signalPassFailure();
    if (!gradientType.isF32())
      narrower.narrowGradients();
    narrower.storeFrozenParams();
    quantizer.updateHistories();
    for (BlockArgument argument : getOperation().getBody().getArguments())
      if (train::roleOf(getOperation(), argument.getArgNumber()) ==
          train::Role::Param)
        for (const train::NamedTensor &tensor : train::namedTensors(
                 getOperation().getArgAttrDict(argument.getArgNumber()),
                 cast<ShapedType>(argument.getType())))
          spec->acceptWide(tensor.name);
    for (const std::string &glob : spec->unused()) {
      InFlightDiagnostic diag =
          emitFault(getOperation().getLoc(), FailureKind::Usage)
          << "precision: '" << glob << "' fits no product and no parameter";
      if (std::string meant = names.like(glob); !meant.empty())
        diag.attachNote() << "did you mean '" << meant << "'?";
      return signalPassFailure();
    }
  }

private:
  PassTarget given;
};

} // namespace

std::unique_ptr<Pass> createPrecision(PrecisionOptions options,
                                      PassTarget target) {
  return std::make_unique<Precision>(std::move(options), std::move(target));
}
} // namespace tmc
