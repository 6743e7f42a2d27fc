// BoundCheck.h - the checker of certificates, and the facts about a problem
// that both checkers share.
//
// Shares no code with the model that finds and sums a certificate. It walks the
// program's own list through the trips of a loop that differ: the first, a
// middle one and the last. A clock counts the moments that have a price: those
// of the one trip that stands for all. So a gap is a span of the clock, and
// needs no rules for loops:
//
//     trips       |  first   |  middle  |   last   |
//     clock       7          7  8 9 10  11         11
//
// Integers of 128 bits, each sum checked. O(size of the problem).

#ifndef TMC_COMPILER_PLANNING_BOUND_BOUNDCHECK_H
#define TMC_COMPILER_PLANNING_BOUND_BOUNDCHECK_H

#include "compiler/planning/bound/Bound.h"

#include <functional>
#include <map>
#include <optional>
#include <set>

namespace tmc::planning {

using Wide = __int128;

/// The cost that `certificate` proves for a problem that passes `check`, or the
/// first defect of the certificate.
absl::StatusOr<int64_t> checkBound(const Problem &problem,
                                   const Certificate &certificate);

/// An error if the certificate's numbers don't belong to this problem.
absl::Status checkForm(const Problem &problem, const Certificate &certificate);

/// The first defect of a certificate, its claim included, or nothing.
std::optional<std::string> checkCertificate(const Problem &problem,
                                            const Certificate &certificate);

/// Sums and products that record an overflow.
struct CheckedMath {
  bool overflow = false;
  Wide plus(Wide a, Wide b) {
    overflow |= __builtin_add_overflow(a, b, &a);
    return a;
  }
  Wide times(Wide a, Wide b) {
    overflow |= __builtin_mul_overflow(a, b, &a);
    return a;
  }
};

/// The moments between a touch of a value and the next read.
struct WalkedGap {
  struct Charge {
    SegmentId segment = 0;
    EngineId engine = 0;
    Wide cost = 0; // All executions of one run in the gap.
    /// Moments of the segment, half-open: compute stands there, or waits there,
    /// while the run goes on. Empty: anywhere.
    int64_t from = 0, to = 0;
  };
  /// Owed: only moves make the value, so it is always broken. Outer: from
  /// another segment. Inside: in one trip. Wrap: from trip to trip.
  enum Kind { Owed, Outer, Inside, Wrap };
  ValueId value = kNone;
  Kind kind = Inside;
  std::vector<std::pair<int64_t, int64_t>> spans; // On the clock, half-open.
  std::vector<Charge> charges;                    // Ways to break it.
  std::vector<Charge> also = {}; // One of these is paid as well, if any.
  /// Runs that break it stand between these moments; in a loop only if both
  /// ends are in one trip. Compute waits at the end, or else work reads it.
  int64_t from = 0, to = 0;
  bool inTrip = false, isAwaited = true;
};

/// An instruction, and what each of its recipes takes.
struct WalkedRun {
  struct Variant {
    const Recipe *recipe = nullptr;
    Wide cost = 0;            // In all trips.
    std::vector<Wide> bytes;  // By space, surely taken.
    std::vector<size_t> gaps; // Gaps that end if it runs.
  };
  int64_t moment = 0;
  SegmentId segment = 0;
  std::vector<WalkedGap> gaps;
  std::vector<Variant> variants;
};

class GapWalk {
public:
  explicit GapWalk(const Problem &problem);
  /// Calls `onRun` for each instruction, and `onGap` for each gap that ends at
  /// no instruction.
  void run();

  std::function<void(const WalkedRun &)> onRun;
  std::function<void(const WalkedGap &)> onGap;

  const Problem &problem;
  std::vector<InstructionId> order;
  std::vector<int64_t> starts;     // By segment; and the end of the last.
  std::vector<Wide> residentBytes; // By space: values that never leave.
  /// By value: the recipes that may make it again, and its share of their cost.
  std::vector<std::vector<const Recipe *>> makers;
  std::vector<std::vector<int64_t>> parts;

private:
  struct Touch {
    bool ever = false;
    int64_t clock = 0; // After it.
    SegmentId segment = kNone;
    int64_t trip = 0;
  };
  /// Executions of a run in a segment that lie in a gap.
  using Count = std::function<int64_t(SegmentId)>;

  int64_t trips(SegmentId s) const { return problem.segments[s].trips; }
  ValueId aliasIn(ValueId v, SegmentId s) const;
  bool counts(ValueId v) const { return v != kNone && !resident.count(v); }
  bool isInput(ValueId v) const {
    return problem.values[v].kind == ValueKind::Temporary && !madeByOwn[v];
  }
  bool aloneAtHome(ValueId content) const;
  void findFacts();
  void findResident();
  void findLastTouches();
  void walkSegment(SegmentId s);
  WalkedRun open(SegmentId s, int64_t moment) const;
  std::vector<Wide> operands(const Recipe &r, SegmentId s) const;
  void visit(WalkedRun &run, int64_t trip);
  void meet(WalkedRun &run, ValueId v, int64_t trip);
  void meetCarried(WalkedRun &run, ValueId c, int64_t trip);
  void meetOutside(WalkedRun &run, ValueId v);
  void close(WalkedRun &run) const;
  std::vector<WalkedGap::Charge> writesBack(const WalkedRun &run,
                                            ValueId v) const;
  void addCharges(WalkedGap &gap, ValueId v, SegmentId from, SegmentId to,
                  const Count &count) const;
  void addLeaving(WalkedGap &gap, ValueId v, SegmentId from, SegmentId to,
                  const Count &count) const;
  int64_t endOfTouches(ValueId v) const;
  void endCarried(SegmentId s);
  void addResults();

  std::set<ValueId> resident;
  std::vector<char> madeByOwn;
  std::vector<ValueId> next;               // The value that updates it.
  std::vector<std::vector<ValueId>> forms; // Per content.
  std::vector<int64_t> mayRead;            // Executions.
  std::vector<int64_t> madeAt; // Per content: the first moment of a maker; -1.
  std::vector<int64_t> lastClock; // After the last touch.
  std::vector<Touch> touches;
  int64_t clock = 0;
  /// Values from outside that cross the border of a trip in this segment.
  std::set<std::pair<ValueId, SegmentId>> crossing;
  /// The clock after the last touch of each carried value, in a middle trip of
  /// this segment; and the carried values that the next trip surely reads.
  std::map<ValueId, int64_t> tails;
  std::set<ValueId> heldOn;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_BOUNDCHECK_H
