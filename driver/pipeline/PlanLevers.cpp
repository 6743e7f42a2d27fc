#include "driver/pipeline/PlanLevers.h"

#include "compiler/planning/model/Parallel.h"
#include "compiler/report/PlanReport.h"
#include "driver/pipeline/CoarsePlan.h"
#include "driver/pipeline/RunPasses.h"
#include "driver/pipeline/StateStep.h"

#include <atomic>
#include <limits>

using namespace mlir;
using namespace tmc;

/// The least number of settings planned in full, and the number planned in
/// parallel.
static constexpr size_t kPlannedInFull = 2;
/// More settings are planned in full if the model is small: at most
/// kFullPlansOps divided by its ops. These are settings whose coarse plans take
/// this part longer than the best, since coarse plans may lose that much;
/// settings of fewer micro-batches than the best whose coarse plans don't fit;
/// and, if no plan fits, others, so that a small model tries all and the budget
/// named by a refusal works.
static constexpr size_t kFullPlansOps = 6000;
static constexpr double kCoarseLoses = 0.02;
/// Among those others, settings come first that need at most this part more
/// bytes than the smallest.
static constexpr int64_t kFewBytesPart = 8;

/// Settings of a lever that are planned coarsely, the nearest first, to suggest
/// one that fits.
static constexpr size_t kNearestTried = 3;

/// No setting is suggested for budgets below this part of the smallest one
/// found: no lever saves that much.
static constexpr int64_t kReachedPart = 16;

/// Refuses a setting whose tiles or chunks of the loss make the program of
/// another setting. `built` is laid out.
static Expected<void> refuseSame(LeverJob &job, const LeverSetting &setting,
                                 const Candidate &built) {
  const PlanFigures &made = built.form.figures;
  if (job.asked.levers.count(kTiles) == kAuto && setting.count(kTiles) > 1 &&
      made.tiles == 1)
    return Failure::unsupported("has no rows that tiles could be made of");
  if (job.asked.levers.count(kLossChunk) != kAuto ||
      setting.count(kLossChunk) <= 0)
    return {};
  if (made.lossChunk == 0)
    return Failure::unsupported("has no logits that chunks could be made of");
  LeverSetting exact = setting;
  exact[kLossChunk] = LeverValue();
  Candidate other(job.forward, pinned(job.asked, exact));
  other.options.progress = false;
  TMC_TRY(buildPrograms(other, Phase::Raise, Phase::Raise));
  if (other.form.figures.lossChunk == made.lossChunk)
    return Failure::unsupported("has these chunks of the loss without a flag");
  return {};
}

/// The candidate of one setting up to `last`, which is Shape at most.
static Expected<std::unique_ptr<Candidate>>
builtFor(LeverJob &job, const LeverSetting &setting, Phase last) {
  if (last == Phase::Shape)
    if (std::unique_ptr<Candidate> built = job.candidates.take(setting))
      return built;
  CompileOptions options = pinned(job.asked, setting);
  options.progress = false;
  auto built = std::make_unique<Candidate>(job.forward, std::move(options));
  built->isOneOfSeveral = true;
  const Phase tiled = std::min(last, Phase::Layout);
  TMC_TRY(buildPrograms(*built, Phase::Raise, tiled));
  if (tiled == Phase::Layout)
    TMC_TRY(refuseSame(job, setting, *built));
  if (last > tiled)
    TMC_TRY(buildPrograms(*built, Phase::Autodiff, last));
  return built;
}

static LeverSpace openLevers(const LeverJob &job, const CompileOptions &asked) {
  return leverSpaceOf(asked, job.forward.device, job.forward.facts());
}

Expected<LeverChoice> tmc::searchLevers(LeverJob &job, Keep keep) {
  auto plan = [&](const LeverSetting &setting,
                  double useless) -> Expected<CoarsePlan> {
    Expected<std::unique_ptr<Candidate>> built =
        builtFor(job, setting, Phase::Shape);
    if (!built)
      return std::move(built.failure());
    Candidate &candidate = **built;
    candidate.options.budgetBytes = job.asked.budgetBytes;
    Expected<CoarsePlan> made =
        planCoarsely(candidate.form, candidate.other,
                     planRequest(candidate, Phase::Plan), useless);
    if (keep == Keep::Fitting && made && made->fits)
      job.candidates.keep(setting, std::move(*built));
    return made;
  };
  LeverSearchOptions options;
  options.say = [&](size_t done, size_t known) {
    showProgress(job.asked, "levers: " + std::to_string(done) + " of " +
                                std::to_string(known) + " settings ...");
  };
  return chooseLevers(openLevers(job, job.asked), plan, options);
}

Expected<int64_t> tmc::impossibleBelow(LeverJob &job,
                                       const LeverChoice &known) {
  int64_t least = std::numeric_limits<int64_t>::max();
  std::vector<LeverSetting> open;
  for (const LeverSetting &setting : known.space.all()) {
    auto found = known.seen.find(setting);
    if (found != known.seen.end() && found->second.impossibleBelowBytes >= 0)
      least = std::min(least, found->second.impossibleBelowBytes);
    else if (llvm::none_of(known.refused, [&](const auto &refused) {
               return refused.first == setting;
             }))
      open.push_back(setting);
  }
  std::vector<std::optional<Expected<int64_t>>> made(open.size());
  std::atomic<size_t> done = 0;
  planning::inParallel(open.size(), [&](size_t i) {
    Expected<std::unique_ptr<Candidate>> built =
        builtFor(job, open[i], Phase::Shape);
    if (built) {
      Candidate &candidate = **built;
      made[i].emplace(impossibleBelow(candidate.form, candidate.other,
                                      planRequest(candidate, Phase::Plan)));
      if (known.seen.count(open[i])) // The search may need the programs again.
        job.candidates.keep(open[i], std::move(*built));
    } else {
      made[i].emplace(std::move(built.failure()));
    }
    showProgress(job.asked, "levers: bounds of " + std::to_string(++done) +
                                " of " + std::to_string(open.size()) +
                                " settings ...");
  });
  for (std::optional<Expected<int64_t>> &bytes : made) {
    if (*bytes)
      least = std::min(least, **bytes);
    else if (!isRefusal(bytes->failure()))
      return std::move(bytes->failure());
  }
  return least;
}

/// Settings of the least harm come first, then those of the fewest pieces.
static bool isNearer(const LeverSetting &a, const LeverSetting &b) {
  return std::pair(harmOf(a), a[kMicroBatches]) <
         std::pair(harmOf(b), b[kMicroBatches]);
}

/// Seconds of a setting's coarse plan; nothing: no plan fits.
static std::optional<double> coarseSeconds(LeverJob &job,
                                           const LeverSetting &setting) {
  Expected<std::unique_ptr<Candidate>> built =
      builtFor(job, setting, Phase::Shape);
  if (!built)
    return std::nullopt;
  Candidate &candidate = **built;
  Expected<CoarsePlan> made = planCoarsely(candidate.form, candidate.other,
                                           planRequest(candidate, Phase::Plan));
  return made && made->fits ? std::optional(made->seconds) : std::nullopt;
}

/// The nearest setting with a coarse plan that the job allows, and its seconds,
/// without the settings that `tried` allows.
static std::optional<std::pair<LeverSetting, double>>
nearestFitting(LeverJob &job, const CompileOptions &tried) {
  std::vector<LeverSetting> settings = openLevers(job, job.asked).all();
  if (job.asked.offload == tried.offload) {
    const auto known = openLevers(job, tried).all();
    llvm::erase_if(settings, [&](const LeverSetting &setting) {
      return llvm::is_contained(known, setting);
    });
  }
  llvm::stable_sort(settings, isNearer);
  const int64_t budget = budgetsOf(job.asked, job.forward.device).device();
  std::vector<char> isPossible(settings.size());
  planning::inParallel(settings.size(), [&](size_t i) {
    Expected<std::unique_ptr<Candidate>> built =
        builtFor(job, settings[i], Phase::Shape);
    if (!built)
      return;
    Candidate &candidate = **built;
    Expected<int64_t> least = impossibleBelow(
        candidate.form, candidate.other, planRequest(candidate, Phase::Plan));
    isPossible[i] = least && *least <= budget;
  });
  std::vector<LeverSetting> open;
  for (auto [setting, possible] : llvm::zip(settings, isPossible))
    if (possible)
      open.push_back(setting);
  // The strongest setting decides whether the others are worth a try.
  std::optional<double> seconds;
  if (open.empty() || !(seconds = coarseSeconds(job, open.back())))
    return std::nullopt;
  const std::pair most(open.back(), *seconds);
  open.pop_back();
  open.resize(std::min(open.size(), kNearestTried));
  for (const LeverSetting &setting : open)
    if ((seconds = coarseSeconds(job, setting)))
      return std::pair(setting, *seconds);
  return most;
}

void tmc::suggest(Failure &failure, const Candidate &candidate,
                  const CompileOptions &given) {
  const CompileOptions &before = candidate.options;
  const Forward &forward = candidate.forward;
  if (before.budgetBytes.device().value_or(
          forward.device.memoryBytes.device()) <
      candidate.form.figures.record.smallestFoundBytes / kReachedPart)
    return;
  auto tell = [&](const CompileOptions &asked, const LeverSetting &setting,
                  double seconds) {
    failure.notes.push_back("by a coarse plan it fits with " +
                            flagsOf(before, pinned(asked, setting)) + ", " +
                            readableSeconds(seconds) + " a step");
  };
  showProgress(before, "levers: what else would fit ...");
  bool any = false;
  CompileOptions all = before;
  std::vector<FreeLever> levers = pinnedLevers(given);
  for (const FreeLever &free : levers) {
    LeverJob job(forward, before);
    free(job.asked);
    free(all);
    if (const auto found = nearestFitting(job, before)) {
      tell(job.asked, found->first, found->second);
      any = true;
    }
  }
  if (!any && levers.size() > 1) {
    LeverJob job(forward, all);
    const std::vector<LeverSetting> grid = openLevers(job, all).all();
    const LeverSetting most = *llvm::max_element(grid, isNearer);
    if (std::optional<double> seconds = coarseSeconds(job, most)) {
      Expected<LeverChoice> made = searchLevers(job, Keep::None);
      const bool isBetter = made && !made->ranked.empty();
      const LeverSetting nearest =
          isBetter ? *llvm::min_element(made->ranked, isNearer) : most;
      tell(all, nearest, isBetter ? made->seen.at(nearest).seconds : *seconds);
    }
  }
  showProgress(before, "");
}

/// Settings in the order in which they are planned in full until one fits; at
/// most `mostOthers` of them without a coarse plan.
static std::vector<LeverSetting> worthFullPlans(const LeverChoice &choice,
                                                size_t mostOthers) {
  std::vector<LeverSetting> settings = choice.ranked, others;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto &[setting, plan] : choice.seen) {
    if (!plan.isLeftOut)
      least = std::min(least, plan.neededBytes);
    if (!llvm::is_contained(choice.ranked, setting))
      others.push_back(setting);
  }
  auto worth = [&](const LeverSetting &setting) {
    const CoarsePlan &plan = choice.seen.at(setting);
    const bool isLarge =
        plan.isLeftOut || plan.neededBytes > least + least / kFewBytesPart;
    return std::pair(isLarge, plan.baseSeconds);
  };
  llvm::stable_sort(others, [&](const LeverSetting &a, const LeverSetting &b) {
    return worth(a) < worth(b);
  });
  others.resize(std::min(others.size(), mostOthers));
  settings.insert(settings.end(), others.begin(), others.end());
  return settings;
}

namespace {

/// Full plans of the settings of a choice: of one after the other until one
/// fits, and then of those that may still be faster.
class FullPlans {
public:
  FullPlans(LeverJob &job, LeverChoice &choice, Phase last)
      : job(job), choice(choice), last(last),
        most(std::max(kPlannedInFull,
                      kFullPlansOps / std::max<size_t>(1, job.forward.ops))) {}

  Expected<void> run() {
    const std::vector<LeverSetting> settings = worthFullPlans(choice, most);
    for (size_t from = 0; isWanted(settings, from); from += kPlannedInFull) {
      const size_t count = isWanted(settings, from + 1) ? kPlannedInFull : 1;
      TMC_TRY(plan(ArrayRef<LeverSetting>(settings).slice(from, count)));
    }
    while (best && !failure && planned < most) {
      const LeverSetting before = chosen;
      TMC_TRY(plan(withFewerPieces()));
      if (chosen == before)
        break;
    }
    return {};
  }

  std::unique_ptr<Candidate> best; // Or the smallest, if none fits.
  LeverSetting chosen;             // Its setting, if it fits.
  std::optional<Failure> failure;  // Of `best`, if none fits.

private:
  LeverJob &job;
  LeverChoice &choice;
  const Phase last;
  /// The most settings that are planned in full. While none fits, settings with
  /// coarse plans don't count.
  const size_t most;
  size_t planned = 0;

  bool isWanted(const std::vector<LeverSetting> &settings, size_t i) const {
    if (i >= settings.size())
      return false;
    if (!best || failure) // None fits yet.
      return true;
    const CoarsePlan &coarse = choice.seen.at(settings[i]);
    return i < most && coarse.fits &&
           coarse.seconds <
               best->form.figures.stepSeconds() * (1 + kCoarseLoses);
  }

  /// Plans these in full, in parallel, and keeps the best.
  Expected<void> plan(ArrayRef<LeverSetting> some) {
    std::vector<PlannedCandidate> made(some.size());
    showProgress(job.asked, "plan ...");
    planning::inParallel(some.size(),
                         [&](size_t i) { made[i] = planInFull(some[i]); });
    planned += some.size();
    for (auto [setting, each] : llvm::zip(some, made))
      TMC_TRY(take(setting, std::move(each)));
    return {};
  }

  PlannedCandidate planInFull(const LeverSetting &setting) {
    Expected<std::unique_ptr<Candidate>> built =
        builtFor(job, setting, std::min(last, Phase::Shape));
    if (!built)
      return {nullptr, std::move(built.failure())};
    Candidate &candidate = **built;
    // A setting chosen for its plan with moves is planned with moves.
    const auto coarse = choice.seen.find(setting);
    if (candidate.options.offload.onlyIfNeeded && coarse != choice.seen.end() &&
        coarse->second.moves)
      candidate.options.offload = OffloadSpec::all();
    Expected<void> done =
        last >= Phase::Plan ? planCandidate(candidate, last) : Expected<void>();
    return {std::move(*built), std::move(done)};
  }

  Expected<void> take(const LeverSetting &setting, PlannedCandidate made) {
    if (!made.done && !made.candidate && isRefusal(made.done.failure()))
      return {};
    if (!made.done && made.done.failure().kind != FailureKind::OverBudget)
      return std::move(made.done);
    const PlanFigures &now = made.candidate->form.figures;
    if (made.done) {
      CoarsePlan &known = choice.seen[setting];
      known.seconds = known.fits ? std::min(known.seconds, now.stepSeconds())
                                 : now.stepSeconds();
      known.fits = true;
      if (!best || failure ||
          now.stepSeconds() * (1 + kAsGoodPart) <
              best->form.figures.stepSeconds())
        best = std::move(made.candidate), chosen = setting;
      failure.reset();
      return {};
    }
    bool isSmaller =
        !best || (failure && now.record.smallestFoundBytes >= 0 &&
                  now.record.smallestFoundBytes <
                      best->form.figures.record.smallestFoundBytes);
    if (isSmaller) {
      best = std::move(made.candidate);
      failure = std::move(made.done.failure());
    }
    return {};
  }

  /// A full plan may fit if a coarse one doesn't, and fewer pieces are faster.
  std::vector<LeverSetting> withFewerPieces() const {
    std::vector<LeverSetting> fewer;
    LeverSetting setting = chosen;
    for (const LeverValue &pieces :
         llvm::reverse(choice.space[kMicroBatches])) {
      setting[kMicroBatches] = pieces;
      const auto coarse = choice.seen.find(setting);
      if (pieces < chosen[kMicroBatches] &&
          (coarse == choice.seen.end() ||
           (!coarse->second.fits && !coarse->second.isLeftOut)))
        fewer.push_back(setting);
    }
    fewer.resize(std::min(fewer.size(), kPlannedInFull));
    return fewer;
  }
};

} // namespace

/// Fills the figures of the chosen candidate that concern all settings.
static Expected<void> noteChoice(LeverJob &job, const LeverChoice &choice,
                                 FullPlans &plans) {
  PlanFigures &figures = plans.best->form.figures;
  int64_t impossible = choice.impossibleBelowBytes();
  if (plans.failure) {
    Expected<int64_t> least = impossibleBelow(job, choice);
    if (!least)
      return std::move(least.failure());
    impossible = *least;
  }
  figures.record.impossibleBelowBytes =
      std::min(figures.record.impossibleBelowBytes, impossible);
  if (choice.reference) {
    const CoarsePlan &reference = choice.seen.at(*choice.reference);
    figures.unconstrainedSeconds = reference.baseSeconds;
    figures.unconstrainedBytes = reference.baseBytes;
  }
  if (plans.failure)
    return {};
  figures.chosenLevers = choice.alternatives(plans.chosen);
  figures.settingsSeen = int64_t(choice.seen.size());
  figures.settings = int64_t(choice.space.size());
  return {};
}

PlannedCandidate tmc::chooseCandidate(const Forward &forward,
                                      const CompileOptions &asked, Phase last) {
  LeverJob job(forward, asked);
  Expected<LeverChoice> choice = searchLevers(job, Keep::Fitting);
  if (!choice)
    return {nullptr, std::move(choice.failure())};
  FullPlans plans(job, *choice, last);
  if (Expected<void> done = plans.run(); !done)
    return {nullptr, std::move(done)};
  if (Expected<void> done = noteChoice(job, *choice, plans); !done)
    return {nullptr, std::move(done)};
  std::unique_ptr<Candidate> best = std::move(plans.best);
  if (plans.failure) {
    Failure failure =
        overBudget(best->form, planRequest(*best, last).budgets.device());
    if (const std::string flags = flagsOf(asked, best->options); !flags.empty())
      failure.notes.front() += ", with " + flags;
    return {std::move(best), std::move(failure)};
  }
  if (last >= Phase::Plan)
    measureUnsplit(*best);
  return {std::move(best), {}};
}
