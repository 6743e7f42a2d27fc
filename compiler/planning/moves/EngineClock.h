// EngineClock.h - the times at which engines work (R12), while a list is made.
//
// Code that places one move after another asks when each move begins: after the
// earlier work of its engine, and when its inputs are there.
//
//     clock.run(kernel)            compute runs the kernel
//     at = clock.start(fetch)      next on its engine; it ends `cost` later
//     clock.end(fetch, at + cost)  compute waits, if it touches the device
//     clock.border()               a trip ends: every engine is idle

#ifndef TMC_COMPILER_PLANNING_MOVES_ENGINECLOCK_H
#define TMC_COMPILER_PLANNING_MOVES_ENGINECLOCK_H

#include "compiler/planning/model/Problem.h"

#include <algorithm>
#include <vector>

namespace tmc::planning {

struct EngineClock {
  explicit EngineClock(const Problem &problem)
      : problem(problem), free(problem.engines.size(), 0),
        made(problem.values.size(), 0) {}

  int64_t compute = 0, done = 0;
  int64_t now() const { return std::max(compute, done); }

  void run(const Recipe &r) { compute += r.cost; }
  /// The time at which it begins; it ends `cost` later.
  int64_t start(const Recipe &r) {
    int64_t from = std::max(free[r.engine], now());
    for (ValueId v : r.reads)
      from = std::max(from, made[v]);
    free[r.engine] = from + r.cost;
    for (ValueId v : r.writes)
      made[v] = from + r.cost;
    return from;
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
  }
  /// At the border of a trip every engine is idle.
  void border() {
    for (int64_t at : free)
      compute = std::max(compute, at);
    done = std::max(done, compute);
    std::fill(free.begin(), free.end(), compute);
  }

  const Problem &problem;
  std::vector<int64_t> free, made; // Per engine; per value.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_ENGINECLOCK_H
