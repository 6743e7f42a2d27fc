// Timeline.h - a list of executions laid out in time, and all that follows from
// it.
//
// Everything a planner asks about a plan is a question about time: which
// instance of a value does this read mean, how long is it alive, which spans
// between two uses does it bridge, how many bytes are alive together, how long
// is an engine busy. One walk along the list answers all of them:
//
//     moment       0      1      2      3         4      5
//     runs         F1     F2     F3     B3        F1     B1
//     a1           [======u......)                [======u]      two instances
//     a2                  [======u======u]
//     gaps of a2                 (0,1) and (1,2), (2,3): production to use, use
//                                to use; what lies strictly inside may do
//                                without a2
//     live bytes   a1     a1 a2  a2 a3  a2 a3 d3  a1 ..  ..
//
// A moment is one execution. An *instance* of a value is what one execution
// writes; it is alive from there through its last read. A *gap* leads from an
// instance's production, or a read of it, to its next read. Each memory space
// has its live bytes at each moment and its peak; each engine has the cost that
// it is busy with.
//
// Two lists are laid out by it. That of a solution (`timelineOf`) has its loops
// unrolled: of a segment with several trips the first, a middle one and the
// last. What is alive in a trip depends on the trip before and on whether
// another follows, so every moment of the rest is one of those. That of a
// linear problem (`search/LinearProblem.h`) is one straight line.
//
// Simulation, packing, the account, the search's schedules and the baselines
// read their intervals, gaps and bytes from here. The checkers (`Verify.h`,
// `bound/BoundCheck.h`, `bound/BranchCheck.cpp`) don't, and share nothing among
// each other: a second way to the same numbers is what makes them proofs.
//
// Work beside the compute engine spans two moments, its Start and its Done.
// What it reads and writes counts at its Start, and is alive through its Done:
//
//     moment       0    1        2      3        4
//     runs         f1   stash(   f2     )stash   f3
//     a            [====u===============)              read at 1, alive to 3
//     a@host            [===============]...           written at 1, made at 3
//     d2h               |  begins when 0 is complete
//     compute      10            20     waits          so 4 is when 3 is
//
// `Problem.h` R12 says when work begins; trips begin and end with idle engines,
// so each is timed by itself.

#ifndef TMC_COMPILER_PLANNING_MODEL_TIMELINE_H
#define TMC_COMPILER_PLANNING_MODEL_TIMELINE_H

#include "compiler/planning/model/Problem.h"

#include <span>

namespace tmc::planning {

/// Space 0 and engine 0 of a problem.
inline constexpr size_t kDeviceSpace = 0, kComputeEngine = 0;

/// Bytes of one memory space over the moments.
struct SpaceUse {
  std::vector<int64_t> liveBytes; // One per moment, reserved left out.
  int64_t peakBytes = 0;
  size_t peakMoment = 0; // The first of the largest.
};

/// Work of one engine.
struct EngineUse {
  int64_t busy = 0;  // Cost units, each trip counted.
  int64_t waits = 0; // Of compute: what it waited at Dones.
};

/// Cost units [begin, end).
struct TimeSpan {
  int64_t begin = 0, end = 0;
};

class Timeline {
public:
  // The list, moment by moment: `addMoment`, then its reads and its writes.

  void reserve(size_t moments, size_t references);
  /// Begins the next moment; returns its number. What it reads and writes is
  /// in use for `length` moments after it: to the Done of work.
  int32_t addMoment(int32_t length = 0);
  /// The moment reads this instance; kNone: the nothing of a first trip.
  void read(int32_t instance);
  /// The moment writes a new instance of `value`; returns its number.
  int32_t write(ValueId value);
  /// An instance that is there before the first moment.
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

  // What each moment reads and writes, in its recipe's order.

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

  // What follows.

  /// The moment to which what moment t reads and writes is in use.
  int32_t endOf(size_t t) const {
    return lengths.empty() ? int32_t(t) : int32_t(t) + lengths[t];
  }
  /// Whether what t runs may take the storage of an instance that it reads
  /// (R13): all other readers and the maker are through before t, and nothing
  /// reads it later.
  bool freesAt(int32_t instance, size_t t) const;

  /// Moments that read an instance, ascending.
  std::span<const int32_t> usesOf(int32_t instance) const {
    return std::span(uses).subspan(useBegin[instance],
                                   useBegin[instance + 1] - useBegin[instance]);
  }
  /// Calls `visit(instance, from, to)` for each gap: the moments strictly
  /// between `from` and `to` may do without it. Adjacent moments have none. For
  /// lists without work, whose reads have no length.
  template <typename Visit> void forEachGap(Visit &&visit) const {
    for (int32_t i = 0; i < int32_t(instances.size()); ++i) {
      int32_t from = instances[i].begin;
      for (int32_t use : usesOf(i)) {
        if (use - from > 1)
          visit(i, from, use);
        from = use;
      }
    }
  }
  /// Bytes alive at each moment, those of overwrites (`Instance::storageOf`)
  /// counted once; workspaces aren't in it.
  std::vector<int64_t> liveBytes(std::span<const int64_t> bytesOfValue) const;
  /// Bytes alive on the way into each moment, and after the last.
  std::vector<int64_t>
  crossingBytes(std::span<const int64_t> bytesOfValue) const;

  // Of a solution's list only.

  std::vector<Profile::Moment> moments;
  std::vector<SpaceUse> spaces;   // By `Problem::spaces`.
  std::vector<EngineUse> engines; // By `Problem::engines`.
  int64_t makespan = 0;
  /// When each moment's execution runs, from the beginning of its trip; of a
  /// Done, from when compute comes to it until it goes on.
  std::vector<TimeSpan> times;
  /// Of each segment, how long each of the trips shown takes.
  std::vector<std::vector<int64_t>> tripLengths;
  /// Whether a moment moves the nothing of a first trip.
  std::vector<char> isIdle;

private:
  std::vector<int32_t> refs, refBegin, readEnd;
  std::vector<int32_t> uses, useBegin;
  std::vector<int32_t> lengths; // Of each moment; empty if all are 0.
  int32_t last = 0;             // `endOf` the moment that is being added.
};

/// The latest instance of each value that is written, else kNone.
std::vector<int32_t> latestInstances(const Timeline &timeline,
                                     size_t numValues);

/// Lays out `solution`; an error names the first rule of Problem.h that it
/// breaks (R4 and R13 left to `simulate`). Overwrites that the solution takes
/// and new contents at home set `storageOf`.
absl::StatusOr<Timeline> timelineOf(const Problem &problem,
                                    const Solution &solution);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_TIMELINE_H
