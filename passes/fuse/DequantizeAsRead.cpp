// DequantizeAsRead.cpp - -tmc-dequantize-as-read: products decode frozen
// weights themselves.

#include "passes/Passes.h"

#include "dialects/nn/Builders.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_DEQUANTIZEASREAD
#include "passes/Passes.h.inc"

namespace {
using namespace nn;

/// True if the product that reads `use`, a decoded weight, can decode it.
bool decodes(OpOperand &use) {
  auto product = dyn_cast<MatmulOp>(use.getOwner());
  return product && use.getOperandNumber() == 1 && !product.getTf32() &&
         product.getLhs() != product.getRhs() &&
         tensorType(product.getLhs()).getElementType() ==
             tensorType(product.getRhs()).getElementType();
}

struct DequantizeAsRead : impl::DequantizeAsReadBase<DequantizeAsRead> {
  using DequantizeAsReadBase::DequantizeAsReadBase;

  void runOnOperation() override {
    SmallVector<DequantizeOp> weights;
    getOperation()->walk([&](DequantizeOp op) { weights.push_back(op); });
    for (DequantizeOp weight : weights) {
      // If another op reads it, it is in memory in any case.
      if (!llvm::all_of(weight->getUses(), decodes))
        continue;
      for (Operation *user : llvm::make_early_inc_range(weight->getUsers()))
        decode(cast<MatmulOp>(user), weight);
      weight.erase();
    }
  }

private:
  static void decode(MatmulOp product, DequantizeOp weight) {
    OpBuilder b(product);
    auto decoding = MatmulCodesOp::create(
        b, product.getLoc(), product.getType(), product.getLhs(),
        weight.getCodes(), weight.getAbsmax(), weight.getNested(),
        product.getBias(), product.getAcc(), product.getTransposeLhs(),
        product.getTransposeRhs());
    product.replaceAllUsesWith(decoding.getResult());
    product.erase();
  }
};

} // namespace
} // namespace tmc
