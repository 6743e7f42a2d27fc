// PlanRecord.h - the figures of a plan, as the IR carries them.
//
// The plan pass attaches these figures to the step as attribute `train.plan`,
// and lowering copies them to the program. Place computes the live peak again
// and compares; the emitter and the reports print the figures. An unknown
// figure is -1 and isn't in the attribute.

#ifndef TMC_COMPILER_ANALYSIS_PLANRECORD_H
#define TMC_COMPILER_ANALYSIS_PLANRECORD_H

#include "compiler/planning/model/Problem.h"
#include "dialects/mem/Mem.h"

#include "mlir/IR/Operation.h"

#include <optional>

namespace tmc {

/// The seconds of a figure in picoseconds; -1: unknown, as the figure.
inline double secondsOf(int64_t picoseconds) {
  return picoseconds < 0 ? -1 : double(picoseconds) * 1e-12;
}

struct PlanRecord {
  /// Live bytes at the peak of each space, without reserved bytes; -1: the
  /// space is empty. The classes sum to the device's.
  PerSpace<int64_t> livePeakBytes = PerSpace<int64_t>::all(-1);
  std::array<int64_t, planning::kNumClasses> peakByClass;
  /// Bytes that each engine copies in a step, of the network those that arrive
  /// and the own ones between them, and the predicted picoseconds
  /// that each is busy; -1: nothing moves.
  PerEngine<int64_t> movedBytes = PerEngine<int64_t>::all(-1);
  PerEngine<int64_t> busyPs = PerEngine<int64_t>::all(-1);
  /// Time that the host's memory would take for all bytes that it is shared for
  /// (R17 of planning/model/Problem.h); -1: it isn't limited.
  int64_t hostMemoryPs = -1;
  int64_t reservedBytes = -1;
  /// The live peak of the program's own order, without recomputation.
  int64_t unconstrainedBytes = -1;
  /// Predicted picoseconds of the step, and of the step without a budget.
  int64_t costPs = -1, unconstrainedCostPs = -1;
  /// Picoseconds of kernels that every plan has, whatever the memory.
  int64_t loadPs = -1;
  /// A lower bound on the cost of plans. On the IR: of those with this order of
  /// first executions.
  int64_t boundPs = -1;
  int64_t recomputedOps = -1;
  /// Products whose bias another kernel adds; -1: not on a card.
  int64_t unfoldedBiases = -1;
  /// Budgets, reserved bytes included: the smallest one with a known plan, and
  /// the one below which no plan can exist.
  int64_t smallestFoundBytes = -1, impossibleBelowBytes = -1;

  PlanRecord() { peakByClass.fill(-1); }

  /// True if a plan was found, and not only its frontiers.
  bool isPlanned() const { return livePeakBytes.device() >= 0; }
  /// True if values may leave the device.
  bool moves() const { return movedBytes[EngineKind::DeviceToHost] >= 0; }
  /// True if engines work beside the kernels.
  bool hasOthers() const {
    return llvm::any_of(movedBytes.of, [](int64_t b) { return b >= 0; });
  }

  /// The live peak of a space.
  int64_t peakIn(SpaceKind space) const {
    return onDevice(space) ? livePeakBytes[space]
                           : std::max<int64_t>(0, livePeakBytes[space]);
  }

  /// Puts the known figures on `op`.
  void attachTo(mlir::Operation *op) const;
  /// The figures on `op`; nothing where there are none.
  static std::optional<PlanRecord> of(mlir::Operation *op);
  /// The figures of the first op in `module` that has some.
  static std::optional<PlanRecord> in(mlir::Operation *module);
};

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_PLANRECORD_H
