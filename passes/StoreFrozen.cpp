// StoreFrozen.cpp - -tmc-store-frozen: weights that aren't trained, in few
// bits.

#include "passes/BaseSpec.h"
#include "passes/Passes.h"

#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/Storage.h"
#include "dialects/interfaces/Fault.h"
#include "dialects/nn/Builders.h"
#include "runtime/kernels/FrozenCodes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using tmc::nn::tensorType;

namespace tmc {
#define GEN_PASS_DEF_STOREFROZEN
#include "passes/Passes.h.inc"

namespace {
using train::TrainDialect;

/// Smaller weights are left as they are, as bitsandbytes leaves them.
constexpr int64_t kLeastElements = 4096;

/// True if `value`, a product's result, comes to a cross-entropy through views
/// and ops that work element by element. The product's weight is then a head.
bool reachesLoss(Value value) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Value> open{value};
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (isa<nn::CrossEntropyOp>(user))
        return true;
      if (seen.insert(user).second &&
          (isView(user) || isa<PointwiseOpInterface, nn::CopyOp, nn::PadOp,
                               nn::SliceOp, nn::TransposeOp>(user)))
        llvm::append_range(open, user->getResults());
    }
  return false;
}

/// The readers of a weight: products, and losses with a table.
struct Readers {
  /// Uses of the weight, or of its rounded copy, and the types that they read.
  SmallVector<std::pair<OpOperand *, RankedTensorType>> uses;
  SmallVector<Operation *> casts;
  std::string other; // The name of a reader of another kind, or "".
  bool isHead = false;

  explicit Readers(Value weight) { add(weight, /*mayRound=*/true); }

private:
  void add(Value value, bool mayRound) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (mayRound && isa<arith::TruncFOp>(user)) {
        casts.push_back(user);
        add(user->getResult(0), /*mayRound=*/false);
        continue;
      }
      auto product = dyn_cast<nn::MatmulOp>(user);
      const bool isFactor = product && use.getOperandNumber() < 2 &&
                            tensorType(value).getRank() == 2 &&
                            !product.getLhsScale();
      const bool isTable =
          isa<nn::LinearCrossEntropyOp, nn::LinearCrossEntropyGradOp>(user) &&
          tensorType(value).getRank() == 2;
      if (isTable || (isFactor && reachesLoss(product.getResult())))
        isHead = true;
      if (isFactor || isTable)
        uses.push_back({&use, tensorType(value)});
      else if (other.empty())
        other = tmc::nameOf(user);
    }
  }
};

struct StoreFrozen : impl::StoreFrozenBase<StoreFrozen> {
  using StoreFrozenBase::StoreFrozenBase;

  void runOnOperation() override {
    llvm::Expected<BaseSpec> read = BaseSpec::parse(this->spec);
    if (!read) {
      emitFault(getOperation().getLoc(), FailureKind::Usage)
          << llvm::toString(read.takeError());
      return signalPassFailure();
    }
    base = &*read;
    if (base->isNone())
      return;
    stored.assign(base->exceptions().size(), 0);
    refused.assign(base->exceptions().size(), "");
    train::StepOp step = getOperation();
    for (unsigned i = 0, n = step.getNumArguments(); i < n; ++i)
      if (train::roleOf(step, i) == train::Role::Param &&
          !step.getArgAttr(i, TrainDialect::kSlot))
        consider(i);
    SmallVector<Type> types(step.getBody().getArgumentTypes());
    step.setFunctionType(
        FunctionType::get(&getContext(), types, step.getResultTypes()));
    if (failed(report()))
      signalPassFailure();
  }

private:
  const BaseSpec *base = nullptr;
  std::vector<int64_t> stored;      // Weights of each exception.
  std::vector<std::string> refused; // The reason for one that it fits.
  int64_t storedByDefault = 0, frozen = 0;

  SmallVector<std::string> namesOf(unsigned index) {
    train::StepOp step = getOperation();
    SmallVector<std::string> names;
    for (const train::NamedTensor &tensor : train::namedTensors(
             step.getArgAttrDict(index),
             cast<ShapedType>(step.getBody().getArgument(index).getType())))
      names.push_back(tensor.name);
    if (auto aliases =
            step.getArgAttrOfType<ArrayAttr>(index, TrainDialect::kAliases))
      for (auto alias : aliases.getAsRange<StringAttr>())
        names.push_back(alias.str());
    return names;
  }

  /// Stores argument `index` in the format that the specification names, if it
  /// can be.
  void consider(unsigned index) {
    BlockArgument weight = getOperation().getBody().getArgument(index);
    const SmallVector<std::string> names = namesOf(index);
    const BaseSpec::Choice choice = base->choose(names);
    const bool isFrozen =
        bool(getOperation().getArgAttr(index, TrainDialect::kFrozen));
    frozen += isFrozen;
    if (choice.format == BaseFormat::Keep) {
      if (choice.exception >= 0)
        ++stored[choice.exception];
      return;
    }
    const Readers readers(weight);
    std::string fault = isFrozen
                            ? faultOf(index, weight, readers, choice.format)
                            : "it is trained";
    if (fault.empty() && readers.isHead && choice.exception < 0)
      return;
    if (!fault.empty()) {
      if (choice.exception >= 0 && refused[choice.exception].empty())
        refused[choice.exception] = "'" + names.front() +
                                    "' can't be stored in " +
                                    nameOf(choice.format).str() + ": " + fault;
      return;
    }
    ++(choice.exception >= 0 ? stored[choice.exception] : storedByDefault);
    if (isCoded(choice.format))
      encode(index, weight, readers, choice.format);
    else
      convert(weight, readers,
              choice.format == BaseFormat::BF16
                  ? Type(BFloat16Type::get(&getContext()))
                  : Type(Float32Type::get(&getContext())));
  }

  /// The reason why a weight can't be in `format`, or "".
  std::string faultOf(unsigned index, BlockArgument weight,
                      const Readers &readers, BaseFormat format) {
    RankedTensorType type = tensorType(weight);
    auto element = dyn_cast<FloatType>(type.getElementType());
    if (!element || element.getWidth() > 32 || element.getWidth() < 16)
      return "it has no floats of 16 or 32 bits";
    if (!readers.other.empty())
      return "'" + readers.other + "' reads it, which is no product";
    if (readers.uses.empty())
      return "no product reads it";
    if (!isCoded(format))
      return "";
    if (type.getNumElements() < kLeastElements)
      return "it has " + std::to_string(type.getNumElements()) +
             " numbers, and codes begin at " + std::to_string(kLeastElements);
    if (getOperation().getArgAttr(index, TrainDialect::kCut))
      return "each rank has a piece of it";
    if (getOperation().getArgAttr(index, TrainDialect::kParts))
      return "it holds the rows of several parameters";
    if (format != BaseFormat::Int8 && type.getNumElements() % frozen::kBlock)
      return std::to_string(frozen::kBlock) + " doesn't divide its " +
             std::to_string(type.getNumElements()) + " numbers";
    return "";
  }

  /// The weight of the type that a reader wants, at the reader.
  template <typename Make>
  static void replace(const Readers &readers, Make &&make) {
    for (auto [use, wanted] : readers.uses) {
      OpBuilder b(use->getOwner());
      use->set(make(b, use->getOwner()->getLoc(), wanted));
    }
    for (Operation *cast : readers.casts)
      cast->erase();
  }

  void convert(BlockArgument weight, const Readers &readers, Type element) {
    weight.setType(tensorType(weight).clone(element));
    replace(readers, [&](OpBuilder &b, Location loc, RankedTensorType wanted) {
      return nn::convertTo(b, loc, weight, wanted.getElementType());
    });
  }

  /// Makes the argument one of codes, and adds those of maxima.
  void encode(unsigned index, BlockArgument weight, const Readers &readers,
              BaseFormat format) {
    train::StepOp step = getOperation();
    Builder b(&getContext());
    RankedTensorType type = tensorType(weight);
    const std::string name = train::argName(step, index).str();
    const Type i8 = b.getIntegerType(8), f32 = b.getF32Type();
    const int64_t count = type.getNumElements(),
                  blocks = count / frozen::kBlock;
    auto addMaxima = [&](const char *suffix, int64_t elements, Type element) {
      BlockArgument added = train::addState(
          step, name + suffix, RankedTensorType::get({elements}, element),
          {b.getNamedAttr(TrainDialect::kFrozen, b.getUnitAttr()),
           b.getNamedAttr(TrainDialect::kInit, b.getStringAttr("zeros")),
           b.getNamedAttr(TrainDialect::kMaximaOf, b.getStringAttr(name))});
      step.setArgAttr(added.getArgNumber(), TrainDialect::kRole,
                      train::RoleAttr::get(&getContext(), train::Role::Param));
      return added;
    };
    Value absmax, nested;
    if (format == BaseFormat::Int8) {
      absmax = addMaxima(".SCB", type.getDimSize(0), f32);
      weight.setType(type.clone(i8));
    } else {
      const bool isPlain = format == BaseFormat::Nf4Plain;
      absmax = addMaxima(".absmax", blocks, isPlain ? f32 : i8);
      if (!isPlain)
        nested = addMaxima(".nested_absmax", frozen::nestedFloats(blocks), f32);
      weight.setType(RankedTensorType::get({count / 2}, i8));
    }
    step.setArgAttr(
        index, TrainDialect::kStored,
        train::StoredAttr::get(
            &getContext(), type,
            b.getStringAttr(name +
                            (format == BaseFormat::Int8 ? ".SCB" : ".absmax")),
            nested ? b.getStringAttr(name + ".nested_absmax") : StringAttr()));
    replace(readers,
            [&](OpBuilder &b, Location loc, RankedTensorType wanted) -> Value {
              return nn::DequantizeOp::create(b, loc, wanted, weight, absmax,
                                              nested);
            });
  }

  /// Refuses a specification that has no effect, or of which a part has none.
  LogicalResult report() {
    auto fail = [&] {
      return emitFault(getOperation().getLoc(), FailureKind::Usage);
    };
    for (auto [i, exception] : llvm::enumerate(base->exceptions()))
      if (!stored[i])
        return fail() << "base: "
                      << (refused[i].empty()
                              ? "'" + exception.glob + "' fits no parameter"
                              : refused[i]);
    if (!frozen)
      return fail() << "base: every parameter is trained; --freeze GLOB says "
                       "which ones aren't";
    if (isCoded(base->ofOthers()) && !storedByDefault)
      return fail() << "base: no parameter can be stored in "
                    << nameOf(base->ofOthers())
                    << ": that takes a matrix that isn't trained, that only "
                       "products read, of at least "
                    << kLeastElements << " numbers";
    return success();
  }
};

} // namespace
} // namespace tmc
