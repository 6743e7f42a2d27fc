// PlanAhead.h - a plan cache that is filled beside other work.
//
// A step in two forms has two problems. The second one's plans are sought in a
// thread of their own while the first one's are sought and written into the
// step. A search is a function of its problem alone, so what is found is what a
// cache filled on the spot holds.

#ifndef TMC_COMPILER_PLANNING_DRIVER_PLANAHEAD_H
#define TMC_COMPILER_PLANNING_DRIVER_PLANAHEAD_H

#include "compiler/planning/driver/ArenaFit.h"

#include <memory>
#include <thread>

namespace tmc::planning {

class PlanAhead {
public:
  /// Begins to fill a cache of `problem`, which passes `check`, with plans for
  /// `budgetBytes`. Where the system gives no thread, that is done here.
  PlanAhead(Problem problem, int64_t alignment, SolveOptions options,
            int64_t budgetBytes);
  /// Waits for the search.
  ~PlanAhead();

  PlanAhead(const PlanAhead &) = delete;
  PlanAhead &operator=(const PlanAhead &) = delete;

  /// The cache after `fit` and `smallest`, or the first's error. Once.
  absl::StatusOr<std::unique_ptr<PlanCache>> take();

private:
  std::unique_ptr<PlanCache> cache;
  absl::Status status;
  std::thread search; // Owns the members above until it is joined.

  void wait();
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_PLANAHEAD_H
