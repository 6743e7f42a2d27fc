#include "compiler/planning/moves/FileMoves.h"

#include "compiler/planning/moves/FileList.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

/// Up to this many candidates, every subset is tried.
constexpr size_t kFewCandidates = 6;
/// With more candidates: numbers of pieces, each as large as the largest
/// content, that stay free on the host for work in flight; tried in this order.
constexpr int64_t kFreePieces[] = {4, 12, 2};

class FileMover {
public:
  FileMover(const Problem &problem, MovedPlan &&plan)
      : problem(problem), plan(std::move(plan)), forms(problem) {}

  bool isWanted() const {
    return forms.isThere() && problem.liveLimitOf(forms.host) >= 0 &&
           plan.peakBytes[forms.host] > problem.liveLimitOf(forms.host);
  }

  absl::StatusOr<MovedPlan> run() {
    if (!isWanted())
      return std::move(plan);
    absl::StatusOr<Timeline> laid = timelineOf(problem, plan.solution);
    if (!laid.ok())
      return laid.status();
    timeline = std::move(*laid);
    for (bool temporariesFirst : {false, true}) {
      const std::vector<FileCandidate> candidates = fileCandidates(
          problem, forms, plan.solution, timeline, temporariesFirst);
      if (candidates.empty())
        break;
      if (candidates.size() <= kFewCandidates)
        tryAll(candidates);
      else
        tryFirst(candidates);
      if (!failure.ok())
        return failure;
      if (candidates.size() <= kFewCandidates ||
          candidates.front().persists == candidates.back().persists)
        break; // Both orders are the same.
    }
    MovedPlan made = hasBest ? std::move(best) : std::move(plan);
    made.refused = refused;
    return made;
  }

private:
  void attempt(const std::vector<FileCandidate> &candidates,
               const std::vector<char> &leaves) {
    FileListOptions options;
    options.isFiled.assign(problem.values.size(), 0);
    options.hostBytes = problem.liveLimitOf(forms.host);
    for (size_t i = 0; i < candidates.size(); ++i)
      if (leaves[i])
        for (ValueId v : {candidates[i].kept, candidates[i].made})
          if (v != kNone)
            options.isFiled[v] = 1;
    for (bool keeps : {true, false}) {
      options.keepsForUpdates = keeps;
      if (!failure.ok() || attempt(options))
        return;
    }
  }

  /// Whether the list is within the budgets.
  bool attempt(const FileListOptions &options) {
    absl::StatusOr<Solution> list =
        listWithFile(problem, forms, plan.solution, timeline, options);
    if (absl::IsFailedPrecondition(list.status()))
      return false; // This choice has no list.
    absl::StatusOr<Profile> profile =
        list.ok() ? simulate(problem, *list) : list.status();
    if (!profile.ok()) {
      if (absl::IsFailedPrecondition(profile.status()))
        ++refused;
      else
        failure.Update(profile.status());
      return false;
    }
    MovedPlan made{std::move(*list), profile->makespan,
                   std::move(profile->spacePeakBytes)};
    const bool isFit = fitsBudgets(problem, made.peakBytes, 1);
    if (!hasBest || (isFit && !bestFits) ||
        (isFit == bestFits && made.makespan < best.makespan)) {
      best = std::move(made);
      hasBest = true;
      bestFits = isFit;
    }
    return isFit;
  }

  void tryAll(const std::vector<FileCandidate> &candidates) {
    std::vector<char> leaves(candidates.size(), 0);
    for (uint32_t set = 1; set < 1u << candidates.size(); ++set) {
      for (size_t i = 0; i < leaves.size(); ++i)
        leaves[i] = set >> i & 1;
      attempt(candidates, leaves);
    }
  }

  void tryFirst(const std::vector<FileCandidate> &candidates) {
    int64_t largest = 0;
    for (const FileCandidate &c : candidates)
      largest = std::max(largest, c.bytes);
    const int64_t limit = problem.liveLimitOf(forms.host);
    size_t before = 0;
    for (int64_t pieces : kFreePieces) {
      const size_t count =
          countToFile(problem, forms, timeline, candidates,
                      std::max<int64_t>(0, limit - pieces * largest));
      if (count == before)
        continue;
      before = count;
      std::vector<char> leaves(candidates.size(), 0);
      std::fill(leaves.begin(), leaves.begin() + ptrdiff_t(count), 1);
      attempt(candidates, leaves);
    }
  }

  const Problem &problem;
  MovedPlan plan, best;
  const FileForms forms;
  Timeline timeline;
  bool hasBest = false, bestFits = false;
  int64_t refused = 0;
  absl::Status failure; // The first error that isn't a refused list.
};

} // namespace

absl::StatusOr<MovedPlan> tmc::planning::moveToFile(const Problem &problem,
                                                    MovedPlan plan) {
  return FileMover(problem, std::move(plan)).run();
}
