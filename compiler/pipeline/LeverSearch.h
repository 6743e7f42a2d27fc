// LeverSearch.h - which settings of the free levers a step is planned with.
//
// The settings form a grid (LeverSpace.h). Each point is a program of its own,
// which takes a second to build and some tenths to plan coarsely
// (CoarsePlan.h), so few are visited:
//
//     1  the whole batch and two numbers of micro-batches of one column: the
//        quickest precision, else as little harm as can be
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
// neither are the ones beyond it in its column: more pieces take no less time.
// One that turns out to take far longer, by what is proved of its plans, tells
// no more than that.
// Points of one round are planned beside each other; which ones they are never
// depends on time.
//
// The quickest wins; of those within kAsGoodPart of it the one that does the
// least harm. Coarse plans are some per cent off, so the caller plans the first
// few in full.

#ifndef TMC_COMPILER_PIPELINE_LEVERSEARCH_H
#define TMC_COMPILER_PIPELINE_LEVERSEARCH_H

#include "compiler/pipeline/CoarsePlan.h"
#include "compiler/pipeline/LeverSpace.h"
#include "compiler/report/Planned.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace tmc {

/// A coarse plan of a setting's program. Called from several threads at once.
/// What a setting comes to, if it may take less than so many seconds.
using PlanSetting =
    std::function<Expected<CoarsePlan>(const LeverSetting &, double useless)>;

/// Plans this close, as a part of a step, are as good as each other: the one
/// that does less harm is better.
inline constexpr double kAsGoodPart = 0.005;

struct LeverSearchOptions {
  /// Visits every point: what the search is measured by.
  bool wholeGrid = false;
  /// Shows progress: points done, and known so far.
  std::function<void(size_t, size_t)> say;
};

struct LeverChoice {
  LeverSpace space;
  std::map<LeverSetting, CoarsePlan> seen;
  /// Settings with a plan, the best first.
  std::vector<LeverSetting> ranked;
  /// Settings that a model can't have, and why: "can't be cut ...".
  std::vector<std::pair<LeverSetting, std::string>> refused;
  /// The first setting of a search that the model can have: the same for all
  /// budgets.
  std::optional<LeverSetting> reference;

  /// The budget below which no setting has a plan; -1 where a setting wasn't
  /// looked at.
  int64_t impossibleBelowBytes() const;

  /// Each free lever of `chosen`, and what another value of it comes to.
  std::vector<ChosenLever> alternatives(const LeverSetting &chosen) const;
};

/// Whether a setting failed because a model can't have it.
bool isRefusal(const Failure &failure);

/// Errors: that of the first setting that fails with anything but an
/// unsupported program, or the first one's where all do.
Expected<LeverChoice> chooseLevers(const LeverSpace &space,
                                   const PlanSetting &plan,
                                   const LeverSearchOptions &options);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_LEVERSEARCH_H
