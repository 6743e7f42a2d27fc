// PlanAhead.h - a plan cache that is filled in a thread of its own.
//
// A step in two forms has two problems. The plans of the second are sought in a
// thread of their own while those of the first are sought and written into the
// step. A search is a function of its problem alone, so the result is the same
// as without the thread.

#ifndef TMC_COMPILER_PLANNING_DRIVER_PLANAHEAD_H
#define TMC_COMPILER_PLANNING_DRIVER_PLANAHEAD_H

#include "compiler/planning/driver/PlanCache.h"

#include <future>
#include <memory>

namespace tmc::planning {

/// A cache after `fit` and `smallest`, or the first error. The end of its life
/// waits for the search.
using PlanAhead = std::future<absl::StatusOr<std::unique_ptr<PlanCache>>>;

/// Begins to fill a cache of `problem`, which passes `check`, with plans for
/// `budgetBytes`. If the system gives no thread, `get` fills the cache.
PlanAhead planAhead(Problem problem, std::vector<int64_t> alignments,
                    SolveOptions options, int64_t budgetBytes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_PLANAHEAD_H
