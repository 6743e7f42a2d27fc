#include "compiler/planning/driver/PlanAhead.h"

#include <system_error>
#include <utility>

using namespace tmc::planning;

PlanAhead::PlanAhead(Problem problem, std::vector<int64_t> alignments,
                     SolveOptions options, int64_t budgetBytes) {
  // The thread owns its inputs, and writes its results to members.
  auto work = [this, problem = std::move(problem),
               alignments = std::move(alignments), options = std::move(options),
               budgetBytes]() mutable {
    cache = std::make_unique<PlanCache>(
        std::move(problem), std::move(alignments), std::move(options));
    status = cache->fit(budgetBytes).status();
    if (status.ok())
      status = cache->smallest().status();
  };
  try {
    search = std::thread(work); // A copy: `work` runs below if this fails.
  } catch (const std::system_error &) {
    work();
  }
}

PlanAhead::~PlanAhead() { wait(); }

void PlanAhead::wait() {
  if (search.joinable())
    search.join();
}

absl::StatusOr<std::unique_ptr<PlanCache>> PlanAhead::take() {
  wait();
  if (!status.ok())
    return status;
  return std::move(cache);
}
