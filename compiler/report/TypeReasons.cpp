#include "compiler/report/TypeReasons.h"

#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/Storage.h"
#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/NN.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tmc;

static std::string typeName(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string tmc::elementTypeOf(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  return type ? typeName(type.getElementType()) : "";
}

/// The exception that decided the type of `product`, or "".
static StringRef exceptionOf(Operation *product) {
  auto left =
      product->getAttrOfType<StringAttr>(train::TrainDialect::kPrecision);
  return left ? left.getValue() : "";
}

TypeReasons::TypeReasons(train::StepOp step) : step(step) {
  step.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (auto type = dyn_cast<FloatType>(getElementTypeOrSelf(result)))
        allWide &= type.getWidth() >= 32;
    auto product = dyn_cast<PrecisionOpInterface>(op);
    if (!product)
      return;
    ++products[typeName(product.getProductType())];
    if (StringRef exception = exceptionOf(op); !exception.empty())
      ++exceptions[exception.str()];
  });
}

/// True for an op that passes on its first operand's elements unchanged.
static bool movesOnly(Operation *op) {
  return isView(op) || isa<nn::CopyOp, nn::TransposeOp>(op);
}

SmallVector<Operation *, 4> TypeReasons::multiplying(Value root) const {
  SmallVector<Operation *, 4> found;
  SmallVector<Value> open = {root};
  while (!open.empty())
    for (OpOperand &use : open.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (movesOnly(user) && use.getOperandNumber() == 0)
        llvm::append_range(open, user->getResults());
      else if (auto product = dyn_cast<PrecisionOpInterface>(user);
               product &&
               llvm::is_contained(product.getFactors(), use.getOperandNumber()))
        found.push_back(user);
    }
  return found;
}

/// "factor of a's product" or "factor of a's and 2 other products".
static std::string factorText(ArrayRef<Operation *> products) {
  SmallVector<std::string> names;
  for (Operation *product : products)
    if (std::string name = nameOf(product); !llvm::is_contained(names, name))
      names.push_back(std::move(name));
  std::string text = "factor of " + names.front() + "'s ";
  if (names.size() == 1)
    return text + "product";
  return text + "and " + std::to_string(names.size() - 1) +
         (names.size() == 2 ? " other product" : " other products");
}

static std::string byException(Operation *product) {
  StringRef exception = exceptionOf(product);
  return exception.empty() ? "" : ", exception " + exception.str();
}

std::string TypeReasons::whyOf(Value root) const {
  if ((allWide && exceptions.empty()) ||
      !isa<FloatType>(getElementTypeOrSelf(root)))
    return "";
  if (auto argument = dyn_cast<BlockArgument>(root);
      argument && argument.getOwner()->getParentOp() == step) {
    if (std::optional<unsigned> param =
            train::copiedArg(step, argument.getArgNumber()))
      return "copy of " + train::argName(step, *param).str() +
             ", as its update rounds it";
    switch (*train::roleOf(step, argument.getArgNumber())) {
    case train::Role::Param:
      return "a parameter, as the optimizer updates it";
    case train::Role::State:
      return "a state, as its update needs it";
    case train::Role::Batch:
      return "fed in this type";
    case train::Role::Scalar:
      return "a number of the step";
    }
  }
  if (gradientOf(root))
    return "sum of a gradient";
  if (Operation *maker = root.getDefiningOp();
      maker && maker->hasTrait<train::UpdateRule>())
    return "an update's";
  SmallVector<Operation *, 4> multiplied = multiplying(root);
  if (!multiplied.empty())
    return factorText(multiplied) + byException(multiplied.front());
  for (OpOperand &use : root.getUses())
    if (auto product = dyn_cast<PrecisionOpInterface>(use.getOwner());
        product &&
        llvm::is_contained(product.getAddends(), use.getOperandNumber()))
      return "added to " + nameOf(product) + "'s product" +
             byException(product);
  Value made = root;
  while (made.getDefiningOp() && movesOnly(made.getDefiningOp()))
    made = made.getDefiningOp()->getOperand(0);
  Operation *maker = made.getDefiningOp();
  if (isa_and_nonnull<nn::QuantizeBlocksOp>(maker))
    return "scale of codes";
  if (isa_and_nonnull<nn::QuantizeOp, nn::QuantizeBothOp>(maker))
    return cast<OpResult>(made).getResultNumber() == 1
               ? "scale of codes"
               : "largest magnitude of what becomes codes";
  if (auto product = dyn_cast_or_null<PrecisionOpInterface>(maker)) {
    unsigned index = cast<OpResult>(made).getResultNumber();
    if (llvm::is_contained(product.getRoundedResults(), index))
      return "result of " + nameOf(maker) + "'s product" + byException(maker);
    return "statistics of " + nameOf(maker);
  }
  if (isa_and_nonnull<ActivationOpInterface>(maker) &&
      cast<OpResult>(made).getResultNumber() == 0)
    return "as " + nameOf(maker) + "'s input is stored";
  for (OpOperand &use : root.getUses())
    if (auto reader = dyn_cast<ActivationOpInterface>(use.getOwner());
        reader &&
        llvm::is_contained(reader.getActivations(), use.getOperandNumber()))
      return "as " + nameOf(reader) + " reads activations";
  const bool isNarrow =
      cast<FloatType>(getElementTypeOrSelf(root)).getWidth() < 32;
  if (isNarrow && isa_and_nonnull<nn::ConcatOp>(maker))
    return "as its parts are";
  return isNarrow ? "the model's own type"
                  : "made and read outside of products";
}
