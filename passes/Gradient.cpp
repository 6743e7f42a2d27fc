#include "passes/Gradient.h"

#include "dialects/interfaces/Fault.h"
#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"
#include "passes/LossScale.h"

using namespace mlir;

namespace tmc {

static bool isFloatTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

Gradient::Gradient(OpBuilder &b, ArrayRef<Operation *> ops,
                   ArrayRef<Value> roots)
    : b(b), ops(ops) {
  // Active: depends on a root. Only such values need gradients.
  for (Value root : roots) {
    active.insert(root);
    isRoot.insert(root);
  }
  for (Operation *op : ops)
    if (!isa<nn::DetachOp>(op) && llvm::any_of(op->getOperands(), [&](Value v) {
          return active.contains(v);
        }))
      for (Value result : op->getResults())
        if (isFloatTensor(result))
          active.insert(result);
  for (auto [index, op] : llvm::enumerate(ops))
    for (Value operand : op->getOperands())
      if (isRoot.contains(operand))
        firstUse.try_emplace(operand, index);
}

LogicalResult Gradient::run(Value loss, Value seed, bool allowsFP16,
                            llvm::function_ref<void(Value, Value)> onFinal) {
  if (!active.contains(loss))
    return emitFault(loss.getLoc(), FailureKind::Input)
           << "the loss doesn't depend on any trained parameter";
  gradOf[loss] = seed ? nn::convertTo(b, loss.getLoc(), seed,
                                      getElementTypeOrSelf(loss.getType()))
                      : nn::splat(b, loss.getLoc(), loss.getType(), 1);
  for (size_t i = ops.size(); i-- > 0;) {
    differentiate(ops[i]);
    for (Value operand : ops[i]->getOperands())
      if (auto use = firstUse.find(operand);
          use != firstUse.end() && use->second == i) {
        Value root = operand;
        firstUse.erase(use);
        if (refused.empty())
          onFinal(root, gradOf.lookup(root));
      }
  }
  if (allowsFP16)
    inFP16.clear();
  return refuse();
}

/// Reports every op that needs a derivative and has none, or whose gradient
/// would vanish in fp16.
LogicalResult Gradient::refuse() {
  if (!refused.empty()) {
    InFlightDiagnostic diag =
        emitFault(refused[0]->getLoc(), FailureKind::Unsupported)
        << "'" << refused[0]->getName()
        << "' has no derivative, and the loss depends on "
           "a parameter through it";
    for (Operation *op : ArrayRef(refused).drop_front())
      diag.attachNote(op->getLoc()) << "nor has '" << op->getName() << "'";
    return diag;
  }
  if (!inFP16.empty())
    return emitUnscaled(inFP16);
  return success();
}

void Gradient::differentiate(Operation *op) {
  SmallVector<Value> resultGrads;
  for (Value result : op->getResults())
    resultGrads.push_back(gradOf.lookup(result));
  if (llvm::none_of(resultGrads, [](Value g) { return bool(g); }))
    return;
  SmallVector<bool> wanted;
  for (Value operand : op->getOperands())
    wanted.push_back(active.contains(operand));
  if (llvm::none_of(wanted, [](bool w) { return w; }))
    return;
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  if (!differentiable) {
    refused.push_back(op);
    return;
  }
  SmallVector<Value> grads = differentiable.buildVjp(b, resultGrads, wanted);
  for (auto [operand, grad, want] :
       llvm::zip(op->getOperands(), grads, wanted)) {
    if (!grad || !want)
      continue;
    if (getElementTypeOrSelf(grad.getType()).isF16())
      inFP16.push_back(op);
    Value &sum = gradOf[operand];
    sum = sum ? nn::add(b, op->getLoc(), sum, grad) : grad;
  }
}

} // namespace tmc
