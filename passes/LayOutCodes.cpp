// LayOutCodes.cpp - codes of 8 bits in the order in which a card sums them.

#include "passes/Passes.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/Scales.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_LAYOUTCODES
#include "passes/Passes.h.inc"

namespace {

using nn::tensorType;

struct LayOutCodes : impl::LayOutCodesBase<LayOutCodes> {
  using LayOutCodesBase::LayOutCodesBase;

  void runOnOperation() override {
    made.clear();
    replaced.clear();
    SmallVector<nn::MatmulOp> products;
    // Blocks go along what is summed, and are quantized for each order.
    auto isWhole = [](Value scale) {
      return scale && tensorType(scale).getRank() == 0;
    };
    getOperation().walk([&](nn::MatmulOp op) {
      if (isWhole(op.getLhsScale()) && isWhole(op.getRhsScale()))
        products.push_back(op);
    });
    for (nn::MatmulOp op : products) {
      if (op.getTransposeLhs())
        op.getLhsMutable().assign(turned(op.getLhs()));
      if (!op.getTransposeRhs())
        op.getRhsMutable().assign(turned(op.getRhs()));
      op.setTransposeLhs(false);
      op.setTransposeRhs(true);
    }
    for (Operation *op : replaced)
      op->erase();
  }

private:
  /// `codes` with their innermost dimensions exchanged: from the kernel that
  /// makes them, if that can be.
  Value turned(Value codes) {
    if (Value known = made.lookup(codes))
      return known;
    Operation *op = codes.getDefiningOp();
    Value result;
    if (auto quantize = dyn_cast_or_null<nn::QuantizeOp>(op);
        quantize && codes == quantize.getCodes())
      result = makeBoth(quantize, tensorType(codes)).getTurned();
    else if (nn::QuantizeOp source = quantizedBehindView(op))
      result = makeBoth(source, tensorType(codes), op).getTurned();
    else
      result = transpose(codes);
    return made[codes] = result;
  }

  /// The quantization of whose codes `op` is a view.
  nn::QuantizeOp quantizedBehindView(Operation *op) {
    if (!op || !isView(op))
      return nullptr;
    auto source = op->getOperand(0).getDefiningOp<nn::QuantizeOp>();
    return source && op->getOperand(0) == source.getCodes() ? source : nullptr;
  }

  /// Quantizes in the shape of `type`, in both orders, and takes the place of
  /// `op` and of the view of its codes that has this shape.
  nn::QuantizeBothOp makeBoth(nn::QuantizeOp op, RankedTensorType type,
                              Operation *view = nullptr) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    Value input = op.getInput();
    if (tensorType(input).getShape() != type.getShape())
      input = nn::ReshapeOp::create(
          b, loc, type.clone(tensorType(input).getElementType()), input);
    auto typeOf = [](Value value) { return value ? value.getType() : Type(); };
    auto both = nn::QuantizeBothOp::create(
        b, loc, type, op.getScale().getType(), nn::turnedType(type),
        typeOf(op.getAmax()), typeOf(op.getSaturated()), input,
        op.getHistory());
    made[both.getCodes()] = both.getTurned();
    if (view) {
      view->getResult(0).replaceAllUsesWith(both.getCodes());
      replaced.push_back(view);
    }
    Value codes = both.getCodes();
    if (tensorType(op.getCodes()).getShape() != type.getShape())
      codes = nn::ReshapeOp::create(b, loc, op.getCodes().getType(), codes);
    op.getCodes().replaceAllUsesWith(codes);
    op.getScale().replaceAllUsesWith(both.getScale());
    if (op.getHistory()) {
      op.getAmax().replaceAllUsesWith(both.getAmax());
      op.getSaturated().replaceAllUsesWith(both.getSaturated());
    }
    replaced.push_back(op);
    return both;
  }

  Value transpose(Value codes) {
    OpBuilder b(codes.getContext());
    b.setInsertionPointAfterValue(codes);
    int64_t rank = tensorType(codes).getRank();
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    std::swap(order[rank - 1], order[rank - 2]);
    return nn::TransposeOp::create(b, codes.getLoc(), codes, order);
  }

  DenseMap<Value, Value> made;
  SmallVector<Operation *> replaced; // In the order in which they can go.
};

} // namespace
} // namespace tmc
