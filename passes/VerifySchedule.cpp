// VerifySchedule.cpp - -tmc-verify-schedule: no data race between engines.

#include "passes/Passes.h"

#include "compiler/analysis/ScheduleCheck.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "passes/Passes.h.inc"

namespace {
struct VerifySchedule : impl::VerifyScheduleBase<VerifySchedule> {
  using VerifyScheduleBase::VerifyScheduleBase;

  void runOnOperation() override {
    std::optional<ScheduleFault> fault = checkSchedule(getOperation());
    if (!fault)
      return markAllAnalysesPreserved();
    InFlightDiagnostic diag = fault->at->emitError("a defect: it ")
                              << fault->message;
    if (fault->other)
      diag.attachNote(fault->other->getLoc()) << "the other access is here";
    diag.report();
    signalPassFailure();
  }
};
} // namespace
} // namespace tmc
