// Raise.cpp - -tmc-raise: rebuilds the ops that an exporter decomposed.
//
// Each family of patterns has its own file here; this file defines the order in
// which they run. View patterns run first and last: first to expose products,
// norms and softmax, last to cancel the transposes around raised ops.

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
    populateRaiseBias(whole); // A loss's product with a bias is raised above.
    // Constants aren't folded: masks are recognised by the ops that compute
    // them.
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
