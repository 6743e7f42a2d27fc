// Roles.cpp - which parameters the loss depends on, and how fresh ones start.
//
// Nothing here looks at names: a vector that is added is a bias, a vector that
// multiplies something divided by a standard deviation is a norm's scale.

#include "frontends/onnx/Importer.h"

#include "dialects/train/Train.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

using train::TrainDialect;

static bool holdsFloats(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type && isa<FloatType>(type.getElementType());
}

SmallVector<bool> tmc::onnx_import::reachesLoss(func::FuncOp function,
                                                Value loss) {
  Block &block = function.getBody().front();
  SmallVector<Value> worklist;
  if (loss)
    worklist.push_back(loss);
  else
    llvm::append_range(worklist, block.getTerminator()->getOperands());
  llvm::SmallPtrSet<Value, 32> seen;
  while (!worklist.empty()) {
    Value v = worklist.pop_back_val();
    if (!holdsFloats(v) || !seen.insert(v).second)
      continue;
    Operation *op = v.getDefiningOp();
    if (op && !op->hasTrait<NotDifferentiable>())
      llvm::append_range(worklist, op->getOperands());
  }
  SmallVector<bool> reached;
  for (Value argument : block.getArguments())
    reached.push_back(seen.contains(argument));
  return reached;
}

/// What `v` is apart from broadcasts and reshapes.
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

/// How one use of a vector says that it starts, or "".
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

/// One dimension, apart from those of size 1.
static bool isVector(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return llvm::count_if(tensor.getShape(),
                        [](int64_t dim) { return dim != 1; }) <= 1;
}

void tmc::onnx_import::inferInitialization(func::FuncOp function, Value loss,
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
