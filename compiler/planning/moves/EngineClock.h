// EngineClock.h - the times at which engines work (R12), while a list is made.
//
// Code that places one move after another asks when each move begins: after the
// earlier work of its engine, and when its inputs are there.
//
//     clock.run(kernel)            compute runs the kernel
//     time = clock.start(fetch)    next on its engine
//     clock.end(fetch, time.end)   compute waits, if it touches the device
//     clock.border()               a trip ends: every engine is idle
//
// Work that shares the host's memory (R17) is slowed here by the work that is
// in flight when it begins, for all of its time, and slows none that began
// before. That is an estimate; without shares the times are those of R12.

#ifndef TMC_COMPILER_PLANNING_MOVES_ENGINECLOCK_H
#define TMC_COMPILER_PLANNING_MOVES_ENGINECLOCK_H

#include "compiler/planning/model/TripTimes.h"

#include <algorithm>
#include <vector>

namespace tmc::planning {

struct EngineClock {
  explicit EngineClock(const Problem &problem)
      : problem(problem), free(problem.engines.size(), 0),
        shares(problem.engines.size(), 0), made(problem.values.size(), 0) {}

  int64_t compute = 0, done = 0;
  int64_t now() const { return std::max(compute, done); }

  void run(const Recipe &r) { compute += r.cost; }
  TimeSpan start(const Recipe &r) {
    int64_t from = std::max(free[r.engine], now());
    for (ValueId v : r.reads)
      from = std::max(from, made[v]);
    const int64_t end = from + timeOf(r, from);
    free[r.engine] = end;
    shares[r.engine] = r.busShare;
    for (ValueId v : r.writes)
      made[v] = end;
    return {from, end};
  }
  void end(const Recipe &r, int64_t at) {
    done = std::max(done, at);
    if (problem.touchesDevice(r))
      compute = std::max(compute, at);
  }
  /// Back to the beginning of a list.
  void reset() {
    compute = done = 0;
    std::fill(free.begin(), free.end(), 0);
    std::fill(made.begin(), made.end(), 0);
    std::fill(shares.begin(), shares.end(), 0);
  }
  /// At the border of a trip every engine is idle.
  void border() {
    for (int64_t at : free)
      compute = std::max(compute, at);
    done = std::max(done, compute);
    std::fill(free.begin(), free.end(), compute);
  }

  const Problem &problem;
  std::vector<int64_t> free;   // Per engine.
  std::vector<int64_t> shares; // Per engine: of its latest work.
  std::vector<int64_t> made;   // Per value.

private:
  int64_t timeOf(const Recipe &r, int64_t from) const {
    int64_t sum = r.busShare;
    for (size_t e = 0; sum > 0 && e < free.size(); ++e)
      if (EngineId(e) != r.engine && free[e] > from)
        sum += shares[e];
    return sum <= kWholeBus ? r.cost
                            : int64_t(__int128(r.cost) * sum / kWholeBus);
  }
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_ENGINECLOCK_H
