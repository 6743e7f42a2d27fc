// VerifyRanks.cpp - -tmc-verify-ranks: the ranks of a mesh understand each
// other.

#include "passes/Passes.h"

#include "compiler/analysis/RankPrograms.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_VERIFYRANKS
#include "passes/Passes.h.inc"

namespace {
struct VerifyRanks : impl::VerifyRanksBase<VerifyRanks> {
  using VerifyRanksBase::VerifyRanksBase;

  void runOnOperation() override {
    FailureOr<RankWorld> world = ranksOf(
        getOperation(),
        {.data = int(data), .tensor = int(tensor), .pipeline = int(pipeline)});
    if (failed(world))
      return signalPassFailure();
    std::optional<RankFault> fault = checkRanks(*world);
    if (!fault)
      return markAllAnalysesPreserved();
    Operation *at = fault->at ? fault->at : getOperation();
    InFlightDiagnostic diag = at->emitError("a defect: ") << fault->message;
    if (fault->other)
      diag.attachNote(fault->other->getLoc()) << fault->otherMessage;
    diag.report();
    signalPassFailure();
  }
};
} // namespace
} // namespace tmc
