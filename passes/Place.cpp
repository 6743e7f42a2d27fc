// Place.cpp - -tmc-place: every buffer gets its place in one arena.

#include "passes/Passes.h"

#include "compiler/analysis/MemLiveness.h"
#include "compiler/analysis/PlanRecord.h"
#include "compiler/planning/driver/ArenaFit.h"
#include "dialects/interfaces/Interfaces.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_PLACE
#include "passes/Passes.h.inc"

namespace {
struct Place : impl::PlaceBase<Place> {
  using PlaceBase::PlaceBase;

  void runOnOperation() override {
    mem::ProgramOp program = getOperation();
    MemLiveness liveness = memLiveness(program);
    if (failed(checkPeak(program, liveness)))
      return signalPassFailure();

    planning::ArenaProblem problem;
    problem.alignment = alignment;
    for (auto [buffer, span] : llvm::zip(liveness.buffers, liveness.spans))
      problem.buffers.push_back({buffer.getName().str(),
                                 sizeInBytes(buffer.getMemref().getType()),
                                 {span.begin, span.end}});
    if (std::optional<std::string> wrong = planning::checkArena(problem))
      return defect(*wrong);
    planning::Packing packing = planning::packSorted(
        problem, {.seed = uint64_t(int64_t(seed)), .effort = effort});
    if (std::optional<std::string> wrong =
            planning::verifyPacking(problem, packing))
      return defect(*wrong);
    for (auto [buffer, offset] : llvm::zip(liveness.buffers, packing.offsets))
      buffer.setOffset(offset);
    program.setArenaBytes((packing.arenaBytes + alignment - 1) / alignment *
                          alignment);
  }

private:
  /// The plan's promise, counted again from what will run.
  LogicalResult checkPeak(mem::ProgramOp program, const MemLiveness &liveness) {
    std::optional<PlanRecord> plan = PlanRecord::of(program);
    if (!plan)
      return success();
    auto [live, moment] = liveness.peak(alignment);
    if (live == plan->livePeakBytes)
      return success();
    InFlightDiagnostic diag = program.emitError("a defect: ")
                              << live << " bytes are alive at the peak where "
                              << "the plan promised " << plan->livePeakBytes;
    diag.attachNote(liveness.moments[moment]->getLoc()) << "the peak is here";
    return failure();
  }

  void defect(const std::string &message) {
    getOperation().emitError("a defect of the packing: ") << message;
    signalPassFailure();
  }
};
} // namespace
} // namespace tmc
