// Raise.cpp - -tmc-raise: rebuilds the ops that an exporter decomposed.
//
// Each family of patterns has its own file here; this file defines the order in
// which they run. Rotations are raised as they were exported, before their
// slices move. View patterns run then and last: first to expose products, norms
// and softmax, last to cancel the transposes around raised ops.

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
    RewritePatternSet rotations(&getContext()), pieces(&getContext()),
        whole(&getContext());
    populateRaiseRotary(rotations);
    populateViewPatterns(pieces);
    populateRaiseMatmul(pieces);
    populateRaiseLookups(pieces);
    populateRaiseSoftmax(pieces);
    populateRaiseNorms(pieces);
    populateRaiseActivations(pieces);
    populateRaiseLosses(pieces, {lossChunk, lossChunkIfFree, microBatches});
    populateRaiseAttention(whole);
    populateViewPatterns(whole);
    populateRaiseMatmul(whole);
    populateRaiseBias(whole); // A loss's product with a bias is raised above.
    // Constants aren't folded: masks are recognised by the ops that compute
    // them.
    GreedyRewriteConfig config;
    config.enableFolding(false);
    for (RewritePatternSet *phase : {&rotations, &pieces, &whole})
      if (failed(
              applyPatternsGreedily(getOperation(), std::move(*phase), config)))
        return signalPassFailure();
    warnAboutUnraisedAttention(getOperation());
  }
};

} // namespace
} // namespace tmc
