// Precision.cpp - -tmc-precision: narrow what products multiply.

#include "passes/Precision.h"

#include "passes/Passes.h"

#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/Storage.h"
#include "dialects/interfaces/Fault.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"
#include "dialects/nn/Scales.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using tmc::nn::tensorType;

namespace tmc {
#define GEN_PASS_DEF_PRECISION
#include "passes/Passes.h.inc"

//===----------------------------------------------------------------------===//
// The specification
//===----------------------------------------------------------------------===//

static llvm::Error badSpec(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "precision: " + message);
}

llvm::Expected<PrecisionSpec::Format>
PrecisionSpec::parseFormat(StringRef text) {
  if (text == "f32")
    return Format::F32;
  if (text == "bf16")
    return Format::BF16;
  if (text == "fp8" || text == "fp8:current")
    return Format::FP8Current;
  if (text == "fp8:block")
    return Format::FP8Block;
  return badSpec("there is no format '" + text +
                 "'; there are f32, bf16, and fp8 as fp8:current or fp8:block");
}

llvm::Expected<PrecisionSpec> PrecisionSpec::parse(StringRef text) {
  PrecisionSpec spec;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  llvm::Expected<Format> base = parseFormat(parts[0].trim());
  if (!base)
    return base.takeError();
  spec.base = *base;
  for (StringRef part : ArrayRef(parts).drop_front()) {
    auto [glob, format] = part.trim().split('=');
    if (glob.empty() || format.empty())
      return badSpec("'" + part.trim() + "' isn't of the form NAME=FORMAT");
    llvm::Expected<Format> parsed = parseFormat(format);
    if (!parsed)
      return parsed.takeError();
    if (glob == "gradients") {
      if (*parsed != Format::F32 && *parsed != Format::BF16)
        return badSpec("gradients are kept in f32 or bf16, not in '" + format +
                       "'");
      spec.gradients = *parsed;
      continue;
    }
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
    if (!pattern)
      return badSpec("'" + glob + "': " + llvm::toString(pattern.takeError()));
    spec.exceptions.push_back(
        {part.trim().str(), glob.str(), std::move(*pattern), *parsed});
  }
  return spec;
}

/// Calls f with `name` and each module that it is in: "a.b.c", "a", "a.b".
static void eachModule(StringRef name, llvm::function_ref<void(StringRef)> f) {
  f(name);
  for (size_t dot = name.find('.'); dot != StringRef::npos;
       dot = name.find('.', dot + 1))
    f(name.take_front(dot));
}

PrecisionSpec::Choice PrecisionSpec::choose(ArrayRef<std::string> names,
                                            MLIRContext *context) {
  Format format = base;
  std::string decided;
  for (Exception &exception : exceptions) {
    bool fits = false;
    for (const std::string &name : names)
      eachModule(name, [&](StringRef part) {
        fits = fits || exception.pattern.match(part);
      });
    if (fits) {
      exception.fitted = true;
      format = exception.format;
      decided = exception.text;
    }
  }
  if (format == Format::F32)
    return {Float32Type::get(context), std::nullopt, decided};
  std::optional<Scaling> codes;
  if (format == Format::FP8Current)
    codes = Scaling::Current;
  if (format == Format::FP8Block)
    codes = Scaling::Block;
  return {BFloat16Type::get(context), codes, decided};
}

std::vector<std::string> PrecisionSpec::unused() const {
  std::vector<std::string> globs;
  for (const Exception &exception : exceptions)
    if (!exception.fitted)
      globs.push_back(exception.glob);
  return globs;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

bool isF32(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isF32();
}

/// An op that only moves its operand's elements: a cast may stand before it or
/// behind it.
bool movesOnly(Operation *op) {
  return op && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         (isView(op) || isa<nn::TransposeOp>(op));
}

/// The parameter that `value` is, perhaps moved or cast.
std::optional<unsigned> parameterOf(train::StepOp step, Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!movesOnly(op) && !isa<arith::TruncFOp, arith::ExtFOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  if (argument.getOwner()->getParentOp() != step ||
      train::roleOf(step, argument.getArgNumber()) != train::Role::Param)
    return std::nullopt;
  return argument.getArgNumber();
}

/// What products go by: those that come of one op of the model share its
/// location, and so its names.
class ProductNames {
public:
  ProductNames(train::StepOp step, ArrayRef<PrecisionOpInterface> ops) {
    for (PrecisionOpInterface op : ops) {
      add(op.getLoc(), nameOf(op));
      for (unsigned i : op.getFactors())
        if (auto argument = parameterOf(step, op->getOperand(i)))
          add(op.getLoc(), train::argName(step, *argument).str());
    }
  }
  ArrayRef<std::string> of(Operation *op) const {
    return names.find(op->getLoc())->second;
  }
  /// The name, or the module, that is spelled most like `glob`; "" if none is.
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
    if (movesOnly(op) || isa<arith::AddFOp>(op))
      for (Value operand : op->getOperands())
        mark(operand);
  }
  DenseSet<Value> found;
};

/// The values of the forward pass: what the loss, and whatever else a step
/// returns beside updates, is made of. Updates and norms of gradients are the
/// train dialect's.
class ForwardValues {
public:
  explicit ForwardValues(train::StepOp step) {
    Operation *end = step.getBody().front().getTerminator();
    for (OpOperand &operand : end->getOpOperands())
      if (!train::updatedArg(step, operand.getOperandNumber()))
        mark(operand.get());
  }
  bool contains(Value value) const { return found.contains(value); }

private:
  void mark(Value root) {
    SmallVector<Value> open = {root};
    while (!open.empty()) {
      Value value = open.pop_back_val();
      if (!found.insert(value).second)
        continue;
      Operation *op = value.getDefiningOp();
      if (auto loop = dyn_cast_or_null<train::MicroBatchOp>(op))
        open.push_back(loop.getBlock().getTerminator()->getOperand(
            cast<OpResult>(value).getResultNumber()));
      else if (op && !isa<train::TrainDialect>(op->getDialect()))
        llvm::append_range(open, op->getOperands());
    }
  }
  DenseSet<Value> found;
};

/// Narrows ops one by one. Each value has at most one narrow copy of a type.
class Narrower {
public:
  Narrower(train::StepOp step, bool narrowsGradients)
      : step(step), b(step), gradients(step), forward(step),
        narrowsGradients(narrowsGradients) {
    // Asked before anything is changed.
    step.walk([&](PrecisionOpInterface op) {
      for (unsigned i : op.getFactors())
        if (!forward.contains(op->getOperand(i)) &&
            !parameterOf(step, op->getOperand(i)))
          gradientFactors.insert(&op->getOpOperand(i));
    });
  }

  /// Widens what is kept narrow where it is read, not whole.
  void sinkStoredParams() {
    for (BlockArgument argument : step.getBody().getArguments())
      for (Operation *user : llvm::make_early_inc_range(argument.getUsers()))
        if (auto widened = dyn_cast<arith::ExtFOp>(user))
          sink(widened);
  }

  void narrow(PrecisionOpInterface op, Type element) {
    for (unsigned i : op.getFactors())
      op->setOperand(i, narrowOf(op->getOperand(i), element));
    roundResults(op, element);
  }

  /// Makes `op` multiply codes; its results are narrowed to `element`.
  void quantize(PrecisionOpInterface op, PrecisionSpec::Scaling scaling,
                Type element) {
    SmallVector<Value> codes, scales;
    for (unsigned i : op.getFactors()) {
      Codes made = scaling == PrecisionSpec::Scaling::Block
                       ? blockCodesOf(op, i)
                       : codesOf(op->getOperand(i), codeTypeOf(op, i));
      codes.push_back(made.codes);
      scales.push_back(made.scale);
    }
    op.setCodes(codes, scales);
    roundResults(op, element);
  }

  /// Rounds what updates read of gradients that aren't sums over micro-batches.
  void narrowGradients() {
    Type element = BFloat16Type::get(step.getContext());
    step.walk([&](Operation *op) {
      bool isUpdate = op->hasTrait<train::UpdateRule>();
      if (!isUpdate && !isa<train::SquareSumOp>(op))
        return;
      unsigned index = isUpdate ? 1 : 0;
      Value gradient = op->getOperand(index);
      if (!gradient.getDefiningOp<train::MicroBatchOp>())
        op->setOperand(index, narrowOf(gradient, element));
    });
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
  /// Codes of 8 bits and their scale.
  struct Codes {
    Value codes, scale;
  };

  /// Rounds what `op` makes, but for gradients that are to be f32.
  void roundResults(PrecisionOpInterface op, Type element) {
    for (unsigned i : op.getRoundedResults()) {
      OpResult result = op->getResult(i);
      bool isSummed = op->getParentOp() != step || !narrowsGradients;
      if (op.mayKeepSums() && gradients.contains(result) && isSummed)
        continue;
      for (unsigned addend : op.getAddends())
        op->setOperand(addend, narrowOf(op->getOperand(addend), element));
      round(result, element);
    }
  }

  /// Makes `result` narrow; what read it reads it widened.
  void round(OpResult result, Type element) {
    if (!isF32(result))
      return;
    auto wide = cast<RankedTensorType>(result.getType());
    result.setType(wide.clone(element));
    b.setInsertionPointAfter(result.getOwner());
    auto widened = arith::ExtFOp::create(b, result.getLoc(), wide, result);
    result.replaceAllUsesExcept(widened, widened);
    sink(widened);
  }

  /// Moves a widening behind what only moves its elements, so that they are
  /// moved while they are few bytes.
  void sink(arith::ExtFOp widened) {
    for (Operation *user : llvm::make_early_inc_range(widened->getUsers())) {
      auto lookup = dyn_cast<nn::EmbeddingOp>(user);
      if (!movesOnly(user) && !(lookup && lookup.getTable() == widened))
        continue;
      auto wide = cast<RankedTensorType>(user->getResult(0).getType());
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

  /// The wider range is for gradients.
  Type codeTypeOf(PrecisionOpInterface op, unsigned factor) {
    if (gradientFactors.contains(&op->getOpOperand(factor)))
      return Float8E5M2Type::get(step.getContext());
    return Float8E4M3FNType::get(step.getContext());
  }

  /// Codes of `value`, with one scale: made of what it is a widening of, and
  /// moved as it is.
  Codes codesOf(Value value, Type element) {
    Operation *op = value.getDefiningOp();
    if (auto widened = dyn_cast_or_null<arith::ExtFOp>(op))
      return codesOf(widened.getIn(), element);
    Codes &made = quantized[{value, element}];
    if (made.codes)
      return made;
    Codes codes;
    if (movesOnly(op) && tensorType(op->getOperand(0)).getNumElements() ==
                             tensorType(value).getNumElements()) {
      Codes source = codesOf(op->getOperand(0), element);
      b.setInsertionPointAfterValue(value);
      Operation *moved = b.clone(*op);
      moved->setOperand(0, source.codes);
      moved->getResult(0).setType(tensorType(value).clone(element));
      codes = {moved->getResult(0), source.scale};
    } else {
      b.setInsertionPointAfterValue(value);
      auto made = nn::QuantizeOp::create(b, value.getLoc(), value, element);
      codes = {made.getCodes(), made.getScale()};
    }
    return quantized[{value, element}] = codes;
  }

  /// Codes of what `op` multiplies, in the blocks that its sums go along.
  Codes blockCodesOf(PrecisionOpInterface op, unsigned factor) {
    Value value = op->getOperand(factor);
    bool isParam = parameterOf(step, value).has_value();
    if (auto widened = value.getDefiningOp<arith::ExtFOp>())
      value = widened.getIn();
    bool sumsOverRows =
        op.getSummedDim(factor) == unsigned(tensorType(value).getRank() - 2);
    ScaleBlock block{isParam || sumsOverRows ? kScaleBlock : 1,
                     isParam || !sumsOverRows ? kScaleBlock : 1};
    auto codeType =
        tensorType(value).clone(Float8E4M3FNType::get(step.getContext()));
    RankedTensorType scaleType = nn::scaleTypeFor(codeType, block);
    Codes &made = quantized[{value, scaleType}];
    if (!made.codes) {
      b.setInsertionPointAfterValue(value);
      auto op = nn::QuantizeOp::create(b, value.getLoc(), codeType, scaleType,
                                       Type(), value, Value());
      made = {op.getCodes(), op.getScale()};
    }
    return made;
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
    if (movesOnly(op)) {
      // Of the source there may be a copy already.
      Value source = narrowOf(op->getOperand(0), element);
      b.setInsertionPointAfterValue(value);
      Operation *moved = b.clone(*op);
      moved->setOperand(0, source);
      moved->getResult(0).setType(tensorType(value).clone(element));
      copy = moved->getResult(0);
    } else {
      copy = nn::convertTo(b, value.getLoc(), value, element);
    }
    return copies[{value, element}] = copy;
  }

  train::StepOp step;
  OpBuilder b;
  ParameterGradients gradients;
  ForwardValues forward;
  bool narrowsGradients;
  DenseMap<std::pair<Value, Type>, Value> copies;
  /// By the type of the codes, or by that of their scales.
  DenseMap<std::pair<Value, Type>, Codes> quantized;
  DenseSet<OpOperand *> gradientFactors;
};

struct Precision : impl::PrecisionBase<Precision> {
  using PrecisionBase::PrecisionBase;

  void runOnOperation() override {
    llvm::Expected<PrecisionSpec> spec = PrecisionSpec::parse(this->spec);
    if (!spec) {
      emitFault(getOperation().getLoc(), Fault::Usage)
          << llvm::toString(spec.takeError());
      return signalPassFailure();
    }
    SmallVector<PrecisionOpInterface> ops;
    getOperation().walk([&](PrecisionOpInterface op) { ops.push_back(op); });
    ProductNames names(getOperation(), ops);
    Narrower narrower(getOperation(), spec->narrowsGradients());
    narrower.sinkStoredParams();
    for (PrecisionOpInterface op : ops) {
      auto [element, codes, exception] =
          spec->choose(names.of(op), &getContext());
      if (!exception.empty()) // Reports tell it.
        op->setAttr(train::TrainDialect::kPrecision,
                    StringAttr::get(&getContext(), exception));
      if (codes && op.takesCodes() && isF32(op->getOperand(0)))
        narrower.quantize(op, *codes, element);
      else if (!element.isF32())
        narrower.narrow(op, element);
    }
    if (spec->narrowsGradients())
      narrower.narrowGradients();
    narrower.storeFrozenParams();
    for (const std::string &glob : spec->unused()) {
      InFlightDiagnostic diag = emitFault(getOperation().getLoc(), Fault::Usage)
                                << "precision: '" << glob
                                << "' fits no product and no parameter";
      if (std::string meant = names.like(glob); !meant.empty())
        diag.attachNote() << "did you mean '" << meant << "'?";
      return signalPassFailure();
    }
  }
};

} // namespace
} // namespace tmc
