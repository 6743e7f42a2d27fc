// Place.cpp - -tmc-place: every buffer gets its place in the arena of its
// space.

#include "passes/Passes.h"

#include "compiler/analysis/MemLiveness.h"
#include "compiler/analysis/PlanRecord.h"
#include "compiler/analysis/StepProblem.h"
#include "compiler/planning/pack/Buffers.h"
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
    PerSpace<int64_t> arenaBytes;
    for (const SpaceInfo &space : kSpaces)
      if (failed(checkPeak(program, liveness, space.kind)) ||
          failed(place(liveness, space.kind, arenaBytes[space.kind])))
        return signalPassFailure();
    program.setArenaBytes(arenaBytes);
  }

private:
  int64_t alignmentIn(SpaceKind space) const {
    return alignmentOf(space, alignment);
  }

  LogicalResult place(const MemLiveness &liveness, SpaceKind space,
                      int64_t &arenaBytes) {
    int64_t unit = alignmentIn(space);
    auto [indices, problem] = liveness.buffersIn(space, unit);
    if (std::optional<std::string> wrong = planning::checkArena(problem))
      return defect(*wrong);
    planning::PackOptions options;
    if (onDevice(space))
      options = {.seed = uint64_t(int64_t(seed)), .effort = effort};
    planning::Packing packing = planning::packSorted(problem, options);
    if (std::optional<std::string> wrong =
            planning::verifyPacking(problem, packing))
      return defect(*wrong);
    for (auto [index, offset] : llvm::zip(indices, packing.offsets))
      mem::BufferOp(liveness.buffers[index]).setOffset(offset);
    arenaBytes = (packing.arenaBytes + unit - 1) / unit * unit;
    return success();
  }

  /// Compares the plan's live peak with that of the program.
  LogicalResult checkPeak(mem::ProgramOp program, const MemLiveness &liveness,
                          SpaceKind space) {
    std::optional<PlanRecord> plan = PlanRecord::of(program);
    if (!plan)
      return success();
    auto [live, moment] = liveness.peak(alignmentIn(space), space);
    if (live == plan->peakIn(space))
      return success();
    InFlightDiagnostic diag =
        program.emitError("a defect: ")
        << live << " bytes are alive at the peak" << nameAtPeak(space)
        << " where the plan promised " << plan->peakIn(space);
    if (size_t(moment) < liveness.moments.size())
      diag.attachNote(liveness.moments[moment]->getLoc()) << "the peak is here";
    return failure();
  }

  LogicalResult defect(const std::string &message) {
    return getOperation().emitError("a defect of the packing: ") << message;
  }
};
} // namespace
} // namespace tmc
