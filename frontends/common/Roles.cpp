#include "frontends/common/Roles.h"

#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

using train::TrainDialect;

static bool holdsFloats(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// The values from which floats flow to those of `worklist`.
static llvm::SmallPtrSet<Value, 32> flowTo(SmallVector<Value> worklist) {
  llvm::SmallPtrSet<Value, 32> seen;
  while (!worklist.empty()) {
    Value v = worklist.pop_back_val();
    if (!holdsFloats(v) || !seen.insert(v).second)
      continue;
    Operation *op = v.getDefiningOp();
    if (op && !op->hasTrait<NotDifferentiable>())
      llvm::append_range(worklist, op->getOperands());
  }
  return seen;
}

llvm::SmallPtrSet<Value, 32> tmc::frontend::gradientReaches(Value loss) {
  return flowTo({loss});
}

SmallVector<bool> tmc::frontend::reachesLoss(func::FuncOp function,
                                             Value loss) {
  Block &block = function.getBody().front();
  SmallVector<Value> ends;
  if (loss)
    ends.push_back(loss);
  else
    llvm::append_range(ends, block.getTerminator()->getOperands());
  llvm::SmallPtrSet<Value, 32> seen = flowTo(std::move(ends));
  SmallVector<bool> reached;
  for (Value argument : block.getArguments())
    reached.push_back(seen.contains(argument));
  return reached;
}

/// The op that makes `v`, behind broadcasts and reshapes.
static Operation *behindViews(Value v) {
  Operation *op = v.getDefiningOp();
  while (op && isa<nn::BroadcastOp, nn::ReshapeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op;
}

/// True if `v` comes from a division by a standard deviation or root mean
/// square, by way of pointwise products and views.
static bool isNormalised(Value v, int depth = 8) {
  Operation *op = v.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (isa<nn::LayerNormOp, nn::RMSNormOp, nn::BatchNormOp, math::RsqrtOp>(op))
    return true;
  if (isa<arith::DivFOp>(op))
    if (Operation *divisor = behindViews(op->getOperand(1));
        divisor && isa<math::SqrtOp>(divisor))
      return true;
  if (!isa<arith::MulFOp, arith::DivFOp, arith::ExtFOp, arith::TruncFOp,
           nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp>(op))
    return false;
  for (Value operand : op->getOperands())
    if (isNormalised(operand, depth - 1))
      return true;
  return false;
}

/// The initial value that one use of a vector implies, or "".
static StringRef startOf(OpOperand &use, int depth = 6) {
  Operation *op = use.getOwner();
  unsigned index = use.getOperandNumber();
  if (auto norm = dyn_cast<nn::LayerNormOp>(op))
    return use.get() == norm.getScale()   ? "ones"
           : use.get() == norm.getShift() ? "zeros"
                                          : "";
  if (isa<nn::RMSNormOp>(op))
    return index == 1 ? "ones" : "";
  if (isa<nn::BatchNormOp>(op)) // Scale, shift, running mean and variance.
    return index == 1 || index == 4 ? "ones" : index ? "zeros" : "";
  if (auto product = dyn_cast<nn::MatmulOp>(op))
    return use.get() == product.getBias() ? "zeros" : "";
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    return "zeros";
  if (isa<arith::MulFOp>(op))
    return isNormalised(op->getOperand(1 - index)) ? "ones" : "";
  if (depth && isa<nn::BroadcastOp, nn::ReshapeOp, nn::SliceOp, arith::ExtFOp,
                   arith::TruncFOp>(op))
    for (OpOperand &next : op->getResult(0).getUses())
      if (StringRef start = startOf(next, depth - 1); !start.empty())
        return start;
  return "";
}

/// The value behind the broadcasts and reshapes of `v`.
static Value withoutViews(Value v) {
  while (Operation *op = v.getDefiningOp())
    if (isa<nn::BroadcastOp, nn::ReshapeOp>(op))
      v = op->getOperand(0);
    else
      break;
  return v;
}

/// True if `v` is the same number at every index.
static bool isSplat(Value v) {
  DenseElementsAttr attr;
  return matchPattern(withoutViews(v), m_Constant(&attr)) && attr.isSplat();
}

/// The argument `variance`, if `v` is 1 / sqrt(variance + a number), times
/// other arguments.
static BlockArgument varianceBehind(Value v, int depth = 4) {
  v = withoutViews(v);
  Operation *op = v.getDefiningOp();
  if (!op || depth == 0)
    return {};
  if (isa<arith::MulFOp>(op)) {
    for (unsigned i : {0, 1})
      if (isa<BlockArgument>(withoutViews(op->getOperand(1 - i))))
        if (BlockArgument found = varianceBehind(op->getOperand(i), depth - 1))
          return found;
    return {};
  }
  Value root = isa<math::RsqrtOp>(op) ? op->getOperand(0) : Value();
  if (isa<arith::DivFOp>(op))
    if (Operation *divisor = behindViews(op->getOperand(1));
        divisor && isa<math::SqrtOp>(divisor))
      root = divisor->getOperand(0);
  auto sum =
      root ? dyn_cast_or_null<arith::AddFOp>(behindViews(root)) : nullptr;
  if (!sum)
    return {};
  for (unsigned i : {0, 1})
    if (isSplat(sum->getOperand(i)))
      return dyn_cast<BlockArgument>(withoutViews(sum->getOperand(1 - i)));
  return {};
}

/// A normalization with given statistics that a module computes in parts:
/// either (x - mean) * rstd, or shift - mean * scale with scale a product of
/// rstd.
SmallVector<Statistics> tmc::frontend::givenStatistics(func::FuncOp function) {
  SmallVector<Statistics> found;
  auto add = [&](Value mean, Value product) {
    auto argument = dyn_cast<BlockArgument>(withoutViews(mean));
    BlockArgument variance = varianceBehind(product);
    if (argument && variance && argument != variance &&
        cast<RankedTensorType>(argument.getType()).getNumElements() ==
            cast<RankedTensorType>(variance.getType()).getNumElements())
      found.push_back({argument, variance});
  };
  function.walk([&](arith::SubFOp op) {
    if (auto product =
            dyn_cast_or_null<arith::MulFOp>(behindViews(op.getRhs())))
      for (unsigned i : {0, 1})
        add(product->getOperand(i), product->getOperand(1 - i));
    for (Operation *user : op->getUsers())
      if (isa<arith::MulFOp>(user))
        for (unsigned i : {0, 1})
          if (user->getOperand(i) == op.getResult())
            add(op.getRhs(), user->getOperand(1 - i));
  });
  return found;
}

/// True for at most one dimension other than 1.
static bool isVector(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return llvm::count_if(tensor.getShape(),
                        [](int64_t dim) { return dim != 1; }) <= 1;
}

void tmc::frontend::inferInitialization(func::FuncOp function, Value loss,
                                        ArrayRef<bool> isParameter) {
  Builder b(function.getContext());
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (!isParameter[i])
      continue;
    StringRef start = "normal";
    if (isVector(argument.getType()))
      for (OpOperand &use : argument.getUses())
        if (StringRef found = startOf(use); !found.empty()) {
          start = found;
          break;
        }
    function.setArgAttr(i, TrainDialect::kInit, b.getStringAttr(start));
  }
}
