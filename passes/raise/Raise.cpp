// Raise.cpp - -tmc-raise: what an exporter took apart, put together.
//
// Each family of patterns is a file of its own beside this one; this is the
// order in which they run. Views go first and last: first so that products,
// norms and softmax lie bare, last so that the transposes around raised ops
// cancel.

#include "passes/Passes.h"
#include "passes/raise/Matchers.h"
#include "passes/raise/ViewMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_RAISE
#include "passes/Passes.h.inc"

namespace {

struct Raise : impl::RaiseBase<Raise> {
  using RaiseBase::RaiseBase;

  void runOnOperation() override {
    RewritePatternSet pieces(&getContext()), whole(&getContext());
    populateViewPatterns(pieces);
    populateRaiseMatmul(pieces);
    populateRaiseLookups(pieces);
    populateRaiseSoftmax(pieces);
    populateRaiseNorms(pieces);
    populateRaiseActivations(pieces);
    populateRaiseLosses(pieces, {lossChunk, lossChunkIfFree, microBatches});
    populateRaiseSigns(pieces);
    populateRaiseAttention(whole);
    populateViewPatterns(whole);
    populateRaiseMatmul(whole);
    // Constants are left as they are: masks are recognised by how they are
    // made.
    GreedyRewriteConfig config;
    config.enableFolding(false);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(pieces), config)) ||
        failed(applyPatternsGreedily(getOperation(), std::move(whole), config)))
      return signalPassFailure();
    warnAboutUnraisedAttention(getOperation());
  }
};

} // namespace
} // namespace tmc
