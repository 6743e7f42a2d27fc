// GapModel.h - the terms of `Bound.h`'s sum, found once and summed often.
//
// The model is the only place that knows the order of first executions: it says
// which moments lie in a gap. A gap of a value leads from a touch a to the next
// read b. A moment k is in the gap if a stands before k and k before b:
//
//     program order   ranges of moments, numbered along the program
//     `orders`        the same, along a permutation of each segment
//
// A loop is seen in one trip, as its list is the same in each. That is its last
// trip of two, and a middle one of more:
//
//     trips       |  first   |  middle  |   last   |
//     w, outside  o----r--r--+--r--r----+--r--r----+----r
//     gaps        [outer)  [)  [)[) [wrap) ...       [leaving)
//
// The outer gap of w ends where the loop begins. Its wrap has the moments of
// the middle trip before the first read and after the last touch. A run that
// breaks it runs in each trip. One of its executions lies in the outer gap, or
// in the one that leaves; the others lie in the wrap.

#ifndef TMC_COMPILER_PLANNING_BOUND_GAPMODEL_H
#define TMC_COMPILER_PLANNING_BOUND_GAPMODEL_H

#include "compiler/planning/bound/ValueFacts.h"

#include <utility>

namespace tmc::planning {

struct GapModel {
  /// Half-open: of moments, or of entries of a table below.
  struct Range {
    int32_t begin = 0, end = 0;
    int32_t size() const { return end - begin; }
  };
  /// One way to break a gap: the cost of all executions of a run that lie in
  /// it, on this engine.
  struct Charge {
    SegmentId segment = 0;
    EngineId engine = 0;
    int64_t cost = 0;
    /// Moments of this segment: compute stands or waits at one of them while
    /// the run goes on.
    Range when;
  };
  struct Gap {
    ValueId value = kNone;
    /// The segment of both ends, if they are in one trip; else kNone.
    SegmentId within = kNone;
    /// The value is a form that only moves make: the gap is always broken.
    bool isOwed = false;
    /// A run that breaks the gap stands among the moments of its first range,
    /// or behind them: in one trip, or outside of loops.
    bool isTimed = false;
    Range moments; // Entries of `ranges`.
    Range charges; // Entries of `charges`; none: nothing breaks it.
    Range also;    // One of these is paid as well if it is broken, if any.
  };
  struct Variant {
    EngineId engine = 0;
    int64_t cost = 0; // In all trips.
    Range bytes;      // Entries of `operands`, at most one of each space.
    Range gaps;       // Entries of `endingGaps`: gaps that end if it runs.
  };
  /// An instruction whose variants pay differently, or that isn't compute's.
  struct Choice {
    int32_t moment = 0;
    SegmentId segment = 0;
    Range variants; // Entries of `variants`; the first is the default.
  };

  explicit GapModel(const Problem &problem, const Orders &orders = {});

  size_t numMoments() const { return order.size(); }
  /// True if compute runs each variant of a moment's instruction.
  bool isComputes(int32_t moment) const;
  /// Bytes of a variant's operands in a space.
  int64_t bytesOf(const Variant &variant, SpaceId space) const;

  const Problem &problem;
  ValueFacts facts;
  std::vector<InstructionId> order; // Per moment.
  std::vector<int32_t> begins;      // By segment, and the end.
  /// Per moment: cost on compute, in all trips, of an instruction without a
  /// choice.
  std::vector<int64_t> costs;
  /// The most bytes that an instruction needs on the device in its smallest
  /// variant, with every value that never leaves.
  int64_t largestBytes = 0;
  /// By space, then moment: the bytes with every gap of `plainGaps` unbroken,
  /// and with every one broken. Operands and gaps of choices are left out.
  std::vector<std::vector<int64_t>> live, floor;
  /// The first `plainGaps` end at an instruction without a choice, or at the
  /// step's end, and can be broken. They are in ascending order of values.
  std::vector<Gap> gaps;
  size_t plainGaps = 0;
  std::vector<Choice> choices;
  std::vector<Variant> variants;
  std::vector<Range> ranges;
  std::vector<Charge> charges;
  std::vector<std::pair<SpaceId, int64_t>> operands;
  std::vector<int32_t> endingGaps;
};

/// A gap of one range, for bounds that count recomputation on one device.
struct Gap {
  ValueId value = kNone;
  int32_t first = 0; // Moments [first, last] strictly inside.
  int32_t last = -1;
  int64_t bytes = 0;
  int64_t cost = 0; // The least cost of breaking it.
  /// The segment of both ends, if only a recomputation breaks the gap; else
  /// kNone.
  SegmentId within = kNone;
};

/// The model as seen on the device, with choices taken apart: a read that a
/// variant avoids ends a gap that this variant's extra cost breaks, too. The
/// extra cost is shared among the reads that the variant avoids.
struct Relaxation {
  std::vector<int64_t> live;  // With all gaps and persistent values.
  std::vector<int64_t> floor; // `live` with every gap broken.
  std::vector<Gap> gaps;
  /// Cost of cheapest recipes minus first ones: at most 0, added to the bound.
  int64_t cheaperRecipes = 0;
};

Relaxation relax(const GapModel &model);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_GAPMODEL_H
