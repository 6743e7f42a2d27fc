// Signs.cpp - moves the sign of a part into its constant factor.
//
// A rotation by positions is written as x * cos + concat(-x2, x1) * sin. The
// negation is alone between a slice and a concatenation, where no kernel can
// take it. With its sign in the table of sines it disappears, also from the
// gradient. A product's sign is exact: no bit of the result changes.

#include "passes/raise/Matchers.h"
#include "passes/raise/ViewMap.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// The dimension of `view`'s source that equals its dimension `dim`, or -1.
static int64_t sourceDimOf(const ViewMap &view, int64_t dim) {
  int64_t rank = tensorType(view.getSource()).getRank();
  for (int64_t d = 0; d < rank; ++d)
    if (view.isDimOfSource(dim, d))
      return d;
  return -1;
}

/// `values` with the opposite sign at the indices along `dim` that are in
/// `negative`. Each use of a table calls this again, so it works on bytes: the
/// sign is the highest bit.
static DenseElementsAttr withSigns(DenseElementsAttr values, int64_t dim,
                                   const llvm::BitVector &negative) {
  ArrayRef<int64_t> shape = values.getType().getShape();
  int64_t stride = 1;
  for (int64_t extent : shape.drop_front(dim + 1))
    stride *= extent;
  size_t width = values.getElementType().getIntOrFloatBitWidth() / 8;
  SmallVector<char> bytes(values.getRawData());
  for (int64_t i = 0, n = values.getNumElements(); i < n; ++i)
    if (negative[i / stride % shape[dim]])
      bytes[(i + 1) * width - 1] ^= char(0x80);
  return DenseElementsAttr::getFromRawBuffer(values.getType(), bytes);
}

namespace {

/// concat(-a, b) * view(constant) to concat(a, b) * view(constant').
struct SignIntoConstant : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &b) const override {
    for (auto [parts, factor] : bothWays<arith::MulFOp>(op.getResult())) {
      auto concat = parts.getDefiningOp<ConcatOp>();
      ViewMap view = ViewMap::of(factor);
      auto constant = view.getSource().getDefiningOp<arith::ConstantOp>();
      if (!concat || !concat->hasOneUse() || !constant)
        continue;
      auto values = dyn_cast<DenseElementsAttr>(constant.getValue());
      int64_t dim = sourceDimOf(view, concat.getDim());
      if (!values || values.isSplat() || dim < 0)
        continue;
      llvm::BitVector negative(tensorType(parts).getDimSize(concat.getDim()));
      SmallVector<Value> positive;
      int64_t at = 0;
      for (Value part : concat.getInputs()) {
        int64_t end = at + tensorType(part).getDimSize(concat.getDim());
        auto negation = part.getDefiningOp<arith::NegFOp>();
        if (negation)
          negative.set(at, end);
        positive.push_back(negation ? negation.getOperand() : part);
        at = end;
      }
      if (negative.none())
        continue;
      IRMapping map;
      map.map(view.getSource(),
              arith::ConstantOp::create(b, constant.getLoc(),
                                        withSigns(values, dim, negative))
                  .getResult());
      for (Operation *step : view.getOps())
        b.clone(*step, map);
      Value whole =
          ConcatOp::create(b, concat.getLoc(), positive, concat.getDim());
      b.replaceOpWithNewOp<arith::MulFOp>(op, whole, map.lookup(factor));
      return success();
    }
    return failure();
  }
};

} // namespace

void tmc::populateRaiseSigns(RewritePatternSet &patterns) {
  patterns.add<SignIntoConstant>(patterns.getContext());
}
