#include "frontends/common/Doubles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace tmc;

/// `type` with elements of f32; null if its elements aren't f64.
static RankedTensorType narrowed(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.getElementType().isF64())
    return {};
  return tensor.clone(Float32Type::get(type.getContext()));
}

static DenseElementsAttr narrowed(DenseElementsAttr values) {
  return values.mapValues(
      Float32Type::get(values.getContext()), [](const APFloat &value) {
        APFloat narrow = value;
        bool loses;
        narrow.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                       &loses);
        return narrow.bitcastToAPInt();
      });
}

int64_t tmc::frontend::narrowDoubles(func::FuncOp function) {
  int64_t count = 0;
  for (BlockArgument argument : function.getArguments())
    if (RankedTensorType type = narrowed(argument.getType())) {
      argument.setType(type);
      ++count;
    }
  SmallVector<Operation *> casts;
  function.walk([&](Operation *op) {
    const bool isCast = isa<arith::ExtFOp, arith::TruncFOp>(op);
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto values = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (values && narrowed(values.getType()))
        constant.setValueAttr(narrowed(values));
    }
    for (OpResult result : op->getResults())
      if (RankedTensorType type = narrowed(result.getType())) {
        result.setType(type);
        count += !isCast && !op->hasTrait<OpTrait::ConstantLike>();
      }
    if (isCast)
      casts.push_back(op);
  });
  for (Operation *cast : casts)
    if (cast->getOperand(0).getType() == cast->getResult(0).getType()) {
      cast->getResult(0).replaceAllUsesWith(cast->getOperand(0));
      cast->erase();
    }
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.front().getArgumentTypes(),
      function.front().getTerminator()->getOperandTypes()));
  return count;
}
