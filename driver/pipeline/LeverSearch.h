// LeverSearch.h - which settings of the free levers a step is planned with.
//
// The settings form a grid (LeverSpace.h). Each point is a program of its own,
// which takes a second to build and some tenths to plan coarsely
// (CoarsePlan.h), so few are visited:
//
//     1  the whole batch and two numbers of micro-batches of one column: the
//        fastest precision, otherwise the least harmful setting; and that
//        column with the narrowest base
//     2  from the best point one lever at a time
//     3  of each column within kClose of the best, the numbers of micro-batches
//        next to its best
//     until nothing new is close
//
//     micro-batches     1     2     4     8     16
//     bf16, adamw       -     -   2.31  2.19  2.25     -: doesn't fit
//     bf16, adamw8bit               ?   2.08    ?
//     f32, adamw                          -
//
// A point whose kernels alone take longer than the best plan isn't planned, and
// neither are the points of more micro-batches in its column: more pieces take
// no less time. If a coarse plan is left out because its proven time is far
// longer, only that proven time is known of the point. Points of one round are
// planned in parallel; the choice of points never depends on measured time.
//
// The fastest setting wins; of those within kAsGoodPart of it the one that does
// the least harm. Coarse plans are inaccurate by some per cent, so the caller
// plans the first few in full.

#ifndef TMC_DRIVER_PIPELINE_LEVERSEARCH_H
#define TMC_DRIVER_PIPELINE_LEVERSEARCH_H

#include "compiler/report/Planned.h"
#include "driver/pipeline/CoarsePlan.h"
#include "driver/pipeline/LeverSpace.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace tmc {

/// The coarse plan of a setting's program. If no plan takes less than `useless`
/// seconds, none is sought. Called from several threads at once.
using PlanSetting =
    std::function<Expected<CoarsePlan>(const LeverSetting &, double useless)>;

/// Plans that differ by at most this part of a step's time count as equally
/// fast: the less harmful one is better.
inline constexpr double kAsGoodPart = 0.005;

struct LeverSearchOptions {
  /// Visits every point, to measure the quality of the search.
  bool wholeGrid = false;
  /// Shows progress: points done, and points known so far.
  std::function<void(size_t, size_t)> say;
};

struct LeverChoice {
  LeverSpace space;
  std::map<LeverSetting, CoarsePlan> seen;
  /// Settings with a plan, the best first.
  std::vector<LeverSetting> ranked;
  /// Settings that the model doesn't support, and why: "can't be cut ...".
  std::vector<std::pair<LeverSetting, std::string>> refused;
  /// The first setting of a search that the model supports: the same for all
  /// budgets.
  std::optional<LeverSetting> reference;

  /// The budget below which no setting has a plan; -1 where a setting wasn't
  /// looked at.
  int64_t impossibleBelowBytes() const;

  /// Each free lever of `chosen`, and the time of the step with another value
  /// of it.
  std::vector<ChosenLever> alternatives(const LeverSetting &chosen) const;
};

/// Whether a setting failed because the model doesn't support it.
bool isRefusal(const Failure &failure);

/// Errors: the error of the first setting that fails for another reason than an
/// unsupported program, or of the first setting if all fail.
Expected<LeverChoice> chooseLevers(const LeverSpace &space,
                                   const PlanSetting &plan,
                                   const LeverSearchOptions &options);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_LEVERSEARCH_H
