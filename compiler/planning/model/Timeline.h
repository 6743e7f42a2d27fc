// Timeline.h - a list of executions laid out in time, with the facts that
// follow from it.
//
// A planner's questions about a plan are questions about time: which instance
// of a value does this read mean, how long is it alive, which spans between two
// uses does it bridge, how many bytes are alive together, how long is an engine
// busy. One walk along the list answers all of them:
//
//     moment       0      1      2      3         4      5
//     runs         F1     F2     F3     B3        F1     B1
//     a1           [======u......)                [======u]      two instances
//     a2                  [======u======u]
//     gaps of a2                 (0,1) and (1,2), (2,3): production to use, use
//                                to use; moments strictly inside don't
//                                need a2
//     live bytes   a1     a1 a2  a2 a3  a2 a3 d3  a1 ..  ..
//
// A moment is one execution. An *instance* of a value is the bytes that one
// execution writes; it is alive from there through its last read. A *gap* leads
// from an instance's production, or a read of it, to its next read. Each memory
// space has its live bytes at each moment and its peak; each engine has the
// total cost of its work.
//
// Two kinds of lists are laid out. The list of a solution (`timelineOf`) has
// its loops unrolled: a segment with several trips shows the first, a middle
// one and the last. The values alive in a trip depend on the trip before and on
// whether another follows, so every moment of the other trips equals one of
// these. The list of a linear problem (`search/LinearProblem.h`) is one
// straight line.
//
// Simulation, packing, the account, the search's schedules and the baselines
// read their intervals, gaps and bytes from here. The checkers (`Verify.h`,
// `bound/BoundCheck.h`, `bound/BranchCheck.cpp`) don't, and share nothing with
// each other: their proofs compute the same numbers in a second way.
//
// Work beside the compute engine spans two moments, its Start and its Done. Its
// operands count at its Start, and are alive through its Done:
//
//     moment       0    1        2      3        4
//     runs         f1   stash(   f2     )stash   f3
//     a            [====u===============)              read at 1, alive to 3
//     a@host            [===============]...           written at 1, made at 3
//     d2h               |  begins when 0 is complete
//     compute      10            20     waits          so 4 is when 3 is
//
// `Problem.h` R12 defines when work begins; trips begin and end with idle
// engines, so each trip is timed separately.

#ifndef TMC_COMPILER_PLANNING_MODEL_TIMELINE_H
#define TMC_COMPILER_PLANNING_MODEL_TIMELINE_H

#include "compiler/planning/model/Problem.h"
#include "compiler/planning/model/TripTimes.h"

#include <span>

namespace tmc::planning {

/// Space 0 and engine 0 of a problem.
inline constexpr size_t kDeviceSpace = 0, kComputeEngine = 0;

/// Bytes of one memory space over the moments.
struct SpaceUse {
  std::vector<int64_t> liveBytes; // One per moment, reserved left out.
  int64_t peakBytes = 0;
  size_t peakMoment = 0; // The first moment of the peak.
};

class Timeline {
public:
  // The list, moment by moment: `addMoment`, then its reads and its writes.

  void reserve(size_t moments, size_t references);
  /// Begins the next moment; returns its number. The moment's operands are in
  /// use for `length` moments after it: to the Done of work.
  int32_t addMoment(int32_t length = 0);
  /// The moment reads this instance; kNone: a first trip's nothing.
  void read(int32_t instance);
  /// The moment writes a new instance of `value`; returns its number.
  int32_t write(ValueId value);
  /// Adds an instance that exists before the first moment.
  int32_t addInitial(ValueId value);
  /// The instance is alive to the end of the step.
  void keepToEnd(int32_t instance) {
    instances[instance].last = int32_t(size());
  }
  /// Ends the list; `countUses` finds each instance's reads as well.
  void finish(bool countUses = true);

  size_t size() const { return readEnd.size(); }

  /// In ascending order of `begin`.
  std::vector<Instance> instances;

  // Operands of each moment, in its recipe's order.

  std::span<const int32_t> readsAt(size_t t) const {
    return std::span(refs).subspan(refBegin[t], readEnd[t] - refBegin[t]);
  }
  std::span<const int32_t> writesAt(size_t t) const {
    return std::span(refs).subspan(readEnd[t], refBegin[t + 1] - readEnd[t]);
  }
  /// The instance of `value` that moment t reads or writes; kNone: none.
  int32_t readAt(size_t t, ValueId value, const Recipe &recipe) const;
  int32_t writtenAt(size_t t, ValueId value, const Recipe &recipe) const;
  bool diesAt(int32_t instance, size_t t) const {
    return instances[instance].last == int32_t(t);
  }

  // Results of the layout.

  /// The moment to which the operands of moment t are in use.
  int32_t endOf(size_t t) const {
    return lengths.empty() ? int32_t(t) : int32_t(t) + lengths[t];
  }
  /// Whether the recipe at t may take the storage of an instance that it reads
  /// (R13): all other readers and the maker are done before t, and no later
  /// read exists.
  bool freesAt(int32_t instance, size_t t) const;

  /// Moments that read an instance, ascending.
  std::span<const int32_t> usesOf(int32_t instance) const {
    return std::span(uses).subspan(useBegin[instance],
                                   useBegin[instance + 1] - useBegin[instance]);
  }
  /// Bytes alive at each moment, without workspaces; bytes shared by overwrites
  /// (`Instance::storageOf`) count once.
  std::vector<int64_t> liveBytes(std::span<const int64_t> bytesOfValue) const;
  /// Bytes alive on the way into each moment, and after the last.
  std::vector<int64_t>
  crossingBytes(std::span<const int64_t> bytesOfValue) const;

  // Only for a solution's list.

  std::vector<Profile::Moment> moments;
  std::vector<SpaceUse> spaces; // By `Problem::spaces`.
  /// Time of each engine's work, each trip counted.
  std::vector<int64_t> engineBusy;
  int64_t makespan = 0;
  /// When each moment's execution runs, from the beginning of its trip. For a
  /// Done: from when compute arrives until it continues.
  std::vector<TimeSpan> times;
  /// Per segment, the length of each trip shown.
  std::vector<std::vector<int64_t>> tripLengths;
  /// Whether a moment moves a first trip's nothing.
  std::vector<char> isIdle;

private:
  std::vector<int32_t> refs, refBegin, readEnd;
  std::vector<int32_t> uses, useBegin;
  std::vector<int32_t> lengths; // Per moment; empty if all are 0.
  int32_t last = 0;             // `endOf` the moment being added.
};

/// Lays out `solution`; an error names the first rule of Problem.h that it
/// breaks (except R4 and R13, which `simulate` checks). Taken overwrites and
/// new contents at home set `storageOf`.
absl::StatusOr<Timeline> timelineOf(const Problem &problem,
                                    const Solution &solution);

/// The list of a trip that is shown; it stands for `times` trips.
struct ShownTrip {
  int64_t times = 1;
  TripTimes list;
};

/// The trips of a solution, in order; an error as of `timelineOf`.
absl::StatusOr<std::vector<ShownTrip>> tripsOf(const Problem &problem,
                                               const Solution &solution);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_TIMELINE_H
