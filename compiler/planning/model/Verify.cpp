#include "compiler/planning/model/Verify.h"

#include "compiler/planning/model/VerifyWalk.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

using Wide = __int128;

/// Checks that the claimed peaks of other spaces are right, and that every
/// space is within its own budget.
std::optional<std::string> checkPeaks(const Problem &problem, const Claim &is,
                                      const Claim &claim) {
  for (size_t s = 0; s < problem.spaces.size(); ++s) {
    const MemorySpace &space = problem.spaces[s];
    int64_t peak = s ? is.otherPeakBytes[s - 1] : is.peakBytes;
    if (s && (claim.otherPeakBytes.size() < s ||
              claim.otherPeakBytes[s - 1] != peak))
      return absl::StrCat("claim: the peak of '", space.name, "' is ", peak,
                          " bytes, not as claimed");
    int64_t reserved = problem.reservedOf(SpaceId(s));
    if (space.budgetBytes >= 0 && Wide(peak) + reserved > space.budgetBytes)
      return absl::StrCat("budget: the peak of '", space.name, "' of ", peak,
                          " bytes and ", reserved,
                          " reserved exceed its budget of ", space.budgetBytes);
  }
  return std::nullopt;
}

} // namespace

absl::StatusOr<Claim> tmc::planning::measure(const Problem &problem,
                                             const Solution &solution) {
  WalkMeasure is;
  if (std::optional<std::string> defect = measureWalk(problem, solution, is))
    return absl::FailedPreconditionError(*defect);
  constexpr Wide most = std::numeric_limits<int64_t>::max();
  if (is.makespan > most ||
      *std::max_element(is.peakBytes.begin(), is.peakBytes.end()) > most)
    return absl::OutOfRangeError("a peak or the makespan doesn't fit 63 bits");
  Claim claim{int64_t(is.peakBytes[0]), int64_t(is.makespan)};
  for (size_t s = 1; s < is.peakBytes.size(); ++s)
    claim.otherPeakBytes.push_back(int64_t(is.peakBytes[s]));
  return claim;
}

std::optional<std::string>
tmc::planning::verifySolution(const Problem &problem, const Solution &solution,
                              const Claim &claim) {
  absl::StatusOr<Claim> is = measure(problem, solution);
  if (!is.ok())
    return std::string(is.status().message());
  if (std::optional<std::string> defect = checkPeaks(problem, *is, claim))
    return defect;
  if (is->peakBytes != claim.peakBytes)
    return absl::StrCat("claim: the peak is ", is->peakBytes, " bytes, not ",
                        claim.peakBytes, " as claimed");
  if (is->cost != claim.cost)
    return absl::StrCat("claim: the cost is ", is->cost, ", not ", claim.cost,
                        " as claimed");
  if (claim.budgetBytes >= 0 &&
      Wide(is->peakBytes) + problem.reservedBytes > claim.budgetBytes)
    return absl::StrCat("budget: the peak of ", is->peakBytes, " bytes and ",
                        problem.reservedBytes,
                        " reserved exceed the budget of ", claim.budgetBytes,
                        " by ",
                        int64_t(Wide(is->peakBytes) + problem.reservedBytes -
                                claim.budgetBytes),
                        " bytes");
  return std::nullopt;
}
