// Lookups.cpp - a lookup of all rows in order is a view.
//
// Exporters index a padding mask by every pair of sample and position. After
// import this is a table with as many rows as there are ids, and the ids are 0,
// 1, 2, ...

#include "passes/raise/Matchers.h"

#include "dialects/nn/Builders.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

namespace {

struct LookupInOrder : OpRewritePattern<EmbeddingOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(EmbeddingOp op,
                                PatternRewriter &b) const override {
    if (tensorType(op.getIds()).getNumElements() !=
        tensorType(op.getTable()).getDimSize(0))
      return failure();
    std::optional<std::vector<int64_t>> ids = integerConstants(op.getIds());
    if (!ids)
      return failure();
    for (auto [i, id] : llvm::enumerate(*ids))
      if (id != int64_t(i))
        return failure();
    b.replaceOp(op, nn::reshapeTo(b, op.getLoc(), op.getTable(),
                                  tensorType(op.getResult()).getShape()));
    return success();
  }
};

} // namespace

void tmc::populateRaiseLookups(RewritePatternSet &patterns) {
  patterns.add<LookupInOrder>(patterns.getContext());
}
