#include "compiler/planning/driver/PlanAhead.h"

#include <system_error>
#include <utility>

using namespace tmc::planning;

PlanAhead tmc::planning::planAhead(Problem problem,
                                   std::vector<int64_t> alignments,
                                   SolveOptions options, int64_t budgetBytes) {
  auto work = [=]() -> absl::StatusOr<std::unique_ptr<PlanCache>> {
    auto cache = std::make_unique<PlanCache>(problem, alignments, options);
    absl::Status status = cache->fit(budgetBytes).status();
    if (status.ok())
      status = cache->smallest().status();
    if (!status.ok())
      return status;
    return cache;
  };
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error &) { // No more threads.
    return std::async(std::launch::deferred, work);
  }
}
