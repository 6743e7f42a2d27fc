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

struct PlanRecord {
  /// Kinds of engines, as `planning::EngineKind` numbers them.
  static constexpr size_t kEngines = 6;

  /// Live bytes at the peak, without reserved bytes; the classes sum to this.
  int64_t livePeakBytes = -1;
  std::array<int64_t, planning::kNumClasses> peakByClass;
  /// The same for the other spaces; -1: the space is empty.
  int64_t hostPeakBytes = -1, filePeakBytes = -1;
  /// Bytes that a step moves to the host and to the device, and to and from
  /// files; -1: none.
  int64_t toHostBytes = -1, toDeviceBytes = -1;
  int64_t readBytes = -1, writtenBytes = -1;
  /// Predicted picoseconds of a step that each engine is busy; -1: nothing
  /// moves.
  std::array<int64_t, kEngines> busyPs;
  int64_t reservedBytes = -1;
  /// The live peak of the program's own order, without recomputation.
  int64_t unconstrainedBytes = -1;
  /// Predicted picoseconds of the step, and of the step without a budget.
  int64_t costPs = -1, unconstrainedCostPs = -1;
  /// No plan with this order of first executions costs less.
  int64_t boundPs = -1;
  int64_t recomputedOps = -1;
  /// Budgets, reserved bytes included: the smallest one with a known plan, and
  /// the one below which no plan can exist.
  int64_t smallestFoundBytes = -1, impossibleBelowBytes = -1;

  PlanRecord() {
    peakByClass.fill(-1);
    busyPs.fill(-1);
  }

  /// True if a plan was found, and not only its frontiers.
  bool isPlanned() const { return livePeakBytes >= 0; }

  /// The live peak of a space.
  int64_t peakIn(mem::SpaceKind space) const {
    if (space == mem::SpaceKind::Device)
      return livePeakBytes;
    return std::max<int64_t>(0, space == mem::SpaceKind::Host ? hostPeakBytes
                                                              : filePeakBytes);
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
