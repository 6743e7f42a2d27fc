// GapCharges.h - what breaks a gap, and where in the step that may go on.
//
// A run that breaks a gap (u, a, b) writes u behind a. So it stands behind a in
// the list, and begins when compute is through with what stands before it.
// If compute runs b, it waits for work that touches the device (R12):
//
//     moments   a . . . . b . . .
//     fetch       |-------|           done before b begins
//     host        |-------------->    if b or the run isn't waited for
//
// In a loop this holds for gaps within one trip; any other run may be anywhere.

#ifndef TMC_COMPILER_PLANNING_BOUND_GAPCHARGES_H
#define TMC_COMPILER_PLANNING_BOUND_GAPCHARGES_H

#include "compiler/planning/bound/GapModel.h"

#include <functional>

namespace tmc::planning {

class GapCharges {
public:
  using Range = GapModel::Range;
  /// Executions of a run in a segment that lie in a gap.
  using Runs = std::function<int64_t(SegmentId)>;
  /// An instruction, or the step's begin.
  struct Place {
    SegmentId segment = kNone;
    int32_t moment = -1;
    bool isKnown = false;
    auto key() const { return std::pair(segment, moment); }
  };
  /// The moments of a gap at which runs that break it may go on.
  struct Span {
    Range moments;
    bool isInTrip = false;   // Both its ends are in one trip.
    bool isWaitedFor = true; // Compute waits at its end.
  };

  explicit GapCharges(GapModel &model);

  /// The first instruction that may make a form of v's content; the step's
  /// begin if one is there before.
  Place madeFirst(ValueId v) const { return made[model.problem.contentOf(v)]; }
  /// Lets runs that write `v` in segments [from, to] break a gap.
  void add(GapModel::Gap &gap, const Span &span, ValueId v, SegmentId from,
           SegmentId to, const Runs &runsIn);
  /// A content that isn't at home on the device is written back: its update on
  /// the device, at moment k, makes another form than the new home.
  void addWriteBack(GapModel::Gap &gap, ValueId v, SegmentId s, int32_t k);

private:
  Range whenIn(const Span &span, const ValueFacts::Maker &maker,
               SegmentId s) const;
  bool isWrittenBack(ValueId v, int32_t k) const;

  GapModel &model;
  std::vector<Place> made; // By content.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_GAPCHARGES_H
