// PlanLevers.cpp - a compilation whose levers are chosen.

#include "compiler/pipeline/Pipeline.h"

#include "compiler/pipeline/CoarsePlan.h"
#include "compiler/pipeline/StateStep.h"
#include "compiler/pipeline/StepForms.h"
#include "compiler/planning/model/Parallel.h"
#include "compiler/report/PlanReport.h"
#include "dialects/train/Batch.h"
#include "dialects/train/Train.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <limits>
#include <mutex>

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

Compilation::Compilation(CompileOptions options, const std::string &bytecode)
    : Compilation(std::move(options)) {
  form.module = parseSourceString<ModuleOp>(bytecode, context.get());
}

void Compilation::adopt(Compilation &&other) {
  // Modules are destroyed before their context.
  form = {}, this->other = {};
  if (imported)
    imported->module = nullptr;
  context = std::move(other.context);
  form = std::move(other.form);
  this->other = std::move(other.other);
  asked = std::move(other.asked);
  said.insert(said.end(), other.said.begin(), other.said.end());
}

/// Programs that have been built, for full plans or other budgets; threads
/// remove the programs that they use.
struct Compilation::Programs {
  std::unique_ptr<Compilation> take(const LeverSetting &setting) {
    std::lock_guard lock(mutex);
    auto found = kept.find(setting);
    return found == kept.end() ? nullptr : std::move(found->second);
  }
  void keep(const LeverSetting &setting, std::unique_ptr<Compilation> point) {
    std::lock_guard lock(mutex);
    kept[setting] = std::move(point);
  }

private:
  std::mutex mutex;
  std::map<LeverSetting, std::unique_ptr<Compilation>> kept;
};

Compilation::~Compilation() = default;

Expected<LeverChoice> Compilation::leversWithin(int64_t budgetBytes) {
  asked.budgetBytes.device() = budgetBytes;
  return search(Keep::All);
}

void Compilation::keepForward() {
  samples =
      train::markUncut(form.module->lookupSymbol<func::FuncOp>("forward"));
  form.module->walk([&](Operation *) { ++ops; });
  llvm::raw_string_ostream os(forward);
  // Fails only for a requested format version; none is requested.
  (void)writeBytecodeToFile(*form.module, os);
}

Expected<std::unique_ptr<Compilation>>
Compilation::builtFor(const LeverSetting &setting, Phase last) {
  if (last == Phase::Shape)
    if (std::unique_ptr<Compilation> point = programs->take(setting))
      return point;
  CompileOptions options = pinned(asked, setting);
  options.progress = false;
  std::unique_ptr<Compilation> point(
      new Compilation(std::move(options), forward));
  point->device = device;
  point->isCandidate = true;
  const Phase tiled = std::min(last, Phase::Layout);
  TMC_TRY(point->runFrom(Phase::Raise, tiled));
  const bool isSame = setting.tiles > 1 && point->form.figures.tiles == 1;
  if (isSame && asked.tiles == kAuto && tiled == Phase::Layout)
    return Failure::unsupported("has no rows that tiles could be made of");
  if (last > tiled)
    TMC_TRY(point->runFrom(Phase::Autodiff, last));
  return point;
}

Expected<LeverChoice> Compilation::search(Keep keep) {
  if (!programs)
    programs = std::make_shared<Programs>();
  auto plan = [&](const LeverSetting &setting,
                  double useless) -> Expected<CoarsePlan> {
    Expected<std::unique_ptr<Compilation>> shaped =
        builtFor(setting, Phase::Shape);
    if (!shaped)
      return std::move(shaped.failure());
    Compilation &point = **shaped;
    point.asked.budgetBytes = asked.budgetBytes;
    Expected<CoarsePlan> made = planCoarsely(
        point.form, point.other, point.request(Phase::Plan), useless);
    if (keep == Keep::All || (keep == Keep::Fitting && made && made->fits))
      programs->keep(setting, std::move(*shaped));
    return made;
  };
  LeverSearchOptions options;
  options.say = [&](size_t done, size_t known) {
    say("levers: " + std::to_string(done) + " of " + std::to_string(known) +
        " settings ...");
  };
  return chooseLevers(leverSpaceOf(asked, device, samples), plan, options);
}

Expected<void> Compilation::runWithLevers(Phase last) {
  Expected<LeverChoice> chosen = search(Keep::Fitting);
  if (!chosen)
    return std::move(chosen.failure());
  choice = std::make_unique<LeverChoice>(std::move(*chosen));
  return planBest(last);
}

/// Settings of the least harm come first, then those of the fewest pieces.
static bool isNearer(const LeverSetting &a, const LeverSetting &b) {
  return std::pair(harmOf(a), a.microBatches) <
         std::pair(harmOf(b), b.microBatches);
}

std::optional<double> Compilation::coarseSeconds(const LeverSetting &setting) {
  Expected<std::unique_ptr<Compilation>> point =
      builtFor(setting, Phase::Shape);
  if (!point)
    return std::nullopt;
  Expected<CoarsePlan> made = planCoarsely((*point)->form, (*point)->other,
                                           (*point)->request(Phase::Plan));
  return made && made->fits ? std::optional(made->seconds) : std::nullopt;
}

std::optional<std::pair<LeverSetting, double>>
Compilation::nearestFitting(const CompileOptions &tried) {
  std::vector<LeverSetting> settings =
      leverSpaceOf(asked, device, samples).all();
  if (asked.offload == tried.offload) {
    const auto known = leverSpaceOf(tried, device, samples).all();
    llvm::erase_if(settings, [&](const LeverSetting &setting) {
      return llvm::is_contained(known, setting);
    });
  }
  llvm::stable_sort(settings, isNearer);
  const int64_t budget = request(Phase::Plan).budgets.device();
  std::vector<char> isPossible(settings.size());
  planning::inParallel(settings.size(), [&](size_t i) {
    Expected<std::unique_ptr<Compilation>> point =
        builtFor(settings[i], Phase::Shape);
    if (!point)
      return;
    Expected<int64_t> least = tmc::impossibleBelow(
        (*point)->form, (*point)->other, (*point)->request(Phase::Plan));
    isPossible[i] = least && *least <= budget;
  });
  std::vector<LeverSetting> open;
  for (auto [setting, possible] : llvm::zip(settings, isPossible))
    if (possible)
      open.push_back(setting);
  // The strongest setting decides whether the others are worth a try.
  std::optional<double> seconds;
  if (open.empty() || !(seconds = coarseSeconds(open.back())))
    return std::nullopt;
  const std::pair most(open.back(), *seconds);
  open.pop_back();
  open.resize(std::min(open.size(), kNearestTried));
  for (const LeverSetting &setting : open)
    if ((seconds = coarseSeconds(setting)))
      return std::pair(setting, *seconds);
  return most;
}

void Compilation::suggest(Failure &failure, const CompileOptions &given) {
  if (asked.budgetBytes.device().value_or(device.memoryBytes.device()) <
      form.figures.smallestFoundBytes / kReachedPart)
    return;
  const CompileOptions before = asked;
  programs = std::make_shared<Programs>();
  auto tell = [&](const LeverSetting &setting, double seconds) {
    failure.notes.push_back("by a coarse plan it fits with " +
                            flagsOf(before, pinned(asked, setting)) + ", " +
                            readableSeconds(seconds) + " a step");
  };
  say("levers: what else would fit ...");
  bool any = false;
  CompileOptions all = before;
  std::vector<FreeLever> levers = pinnedLevers(given);
  for (FreeLever free : levers) {
    asked = before;
    free(asked);
    free(all);
    if (const auto found = nearestFitting(before)) {
      tell(found->first, found->second);
      any = true;
    }
  }
  if (!any && levers.size() > 1) {
    asked = all;
    const std::vector<LeverSetting> grid =
        leverSpaceOf(asked, device, samples).all();
    const LeverSetting most = *llvm::max_element(grid, isNearer);
    if (std::optional<double> seconds = coarseSeconds(most)) {
      Expected<LeverChoice> made = search(Keep::None);
      const bool isBetter = made && !made->ranked.empty();
      const LeverSetting nearest =
          isBetter ? *llvm::min_element(made->ranked, isNearer) : most;
      tell(nearest, isBetter ? made->seen.at(nearest).seconds : *seconds);
    }
  }
  asked = before;
  say("");
}

size_t Compilation::mostFullPlans() const {
  return std::max(kPlannedInFull, kFullPlansOps / std::max<size_t>(1, ops));
}

std::vector<LeverSetting>
Compilation::worthFullPlans(const LeverChoice &choice) const {
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
  others.resize(std::min(others.size(), mostFullPlans()));
  settings.insert(settings.end(), others.begin(), others.end());
  return settings;
}

Expected<int64_t> Compilation::impossibleBelow(const LeverChoice &known) {
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
    Expected<std::unique_ptr<Compilation>> point =
        builtFor(open[i], Phase::Shape);
    if (point) {
      made[i].emplace(tmc::impossibleBelow((*point)->form, (*point)->other,
                                           (*point)->request(Phase::Plan)));
      if (known.seen.count(open[i])) // The search may need the program again.
        programs->keep(open[i], std::move(*point));
    } else {
      made[i].emplace(std::move(point.failure()));
    }
    say("levers: bounds of " + std::to_string(++done) + " of " +
        std::to_string(open.size()) + " settings ...");
  });
  for (std::optional<Expected<int64_t>> &bytes : made) {
    if (*bytes)
      least = std::min(least, **bytes);
    else if (!isRefusal(bytes->failure()))
      return std::move(bytes->failure());
  }
  return least;
}

Expected<void> Compilation::planBest(Phase last) {
  const std::vector<LeverSetting> settings = worthFullPlans(*choice);
  std::optional<Failure> failure;
  std::unique_ptr<Compilation> best; // Or the smallest, if none fits.
  LeverSetting chosen;
  size_t planned = 0;
  // Plans these in full, in parallel.
  auto plan = [&](ArrayRef<LeverSetting> some) -> Expected<void> {
    std::vector<std::unique_ptr<Compilation>> made(some.size());
    std::vector<std::optional<Expected<void>>> done(some.size());
    say("plan ...");
    planning::inParallel(some.size(), [&](size_t i) {
      Expected<std::unique_ptr<Compilation>> built =
          builtFor(some[i], std::min(last, Phase::Shape));
      if (!built) {
        done[i].emplace(std::move(built.failure()));
        return;
      }
      made[i] = std::move(*built);
      // A setting chosen for its plan with moves is planned with moves.
      const auto coarse = choice->seen.find(some[i]);
      if (made[i]->asked.offload.onlyIfNeeded && coarse != choice->seen.end() &&
          coarse->second.moves)
        made[i]->asked.offload = OffloadSpec::all();
      done[i].emplace(made[i]->runFrom(Phase::Plan, last));
    });
    planned += some.size();
    for (size_t i = 0; i < some.size(); ++i) {
      if (!made[i] && isRefusal(done[i]->failure()))
        continue;
      if (!*done[i] && done[i]->failure().kind != FailureKind::OverBudget)
        return std::move(done[i]->failure());
      const PlanFigures &now = made[i]->figures();
      if (*done[i]) {
        CoarsePlan &known = choice->seen[some[i]];
        known.seconds = known.fits ? std::min(known.seconds, now.stepSeconds)
                                   : now.stepSeconds;
        known.fits = true;
        if (!best || failure ||
            now.stepSeconds * (1 + kAsGoodPart) < best->figures().stepSeconds)
          best = std::move(made[i]), chosen = some[i];
        failure.reset();
        continue;
      }
      bool isSmaller = !best || (failure && now.smallestFoundBytes >= 0 &&
                                 now.smallestFoundBytes <
                                     best->figures().smallestFoundBytes);
      if (isSmaller) {
        best = std::move(made[i]);
        failure = std::move(done[i]->failure());
      }
    }
    return {};
  };
  auto isWanted = [&](size_t i) {
    if (i >= settings.size())
      return false;
    if (!best || failure) // None fits yet.
      return true;
    const CoarsePlan &coarse = choice->seen.at(settings[i]);
    return i < mostFullPlans() && coarse.fits &&
           coarse.seconds < best->figures().stepSeconds * (1 + kCoarseLoses);
  };
  for (size_t from = 0; isWanted(from); from += kPlannedInFull) {
    const size_t count = isWanted(from + 1) ? kPlannedInFull : 1;
    TMC_TRY(plan(ArrayRef<LeverSetting>(settings).slice(from, count)));
  }
  // A full plan may fit if a coarse one doesn't, and fewer pieces are faster.
  auto withFewerPieces = [&] {
    std::vector<LeverSetting> fewer;
    LeverSetting setting = chosen;
    for (int64_t pieces : llvm::reverse(choice->space.microBatches)) {
      setting.microBatches = pieces;
      const auto coarse = choice->seen.find(setting);
      if (pieces < chosen.microBatches &&
          (coarse == choice->seen.end() ||
           (!coarse->second.fits && !coarse->second.isLeftOut)))
        fewer.push_back(setting);
    }
    fewer.resize(std::min(fewer.size(), kPlannedInFull));
    return fewer;
  };
  while (best && !failure && planned < mostFullPlans()) {
    const LeverSetting before = chosen;
    TMC_TRY(plan(withFewerPieces()));
    if (chosen == before)
      break;
  }
  const CompileOptions before = asked;
  int64_t impossible = best->figures().impossibleBelowBytes;
  if (failure) {
    Expected<int64_t> least = impossibleBelow(*choice);
    if (!least)
      return std::move(least.failure());
    impossible = std::min(impossible, *least);
  } else {
    impossible = std::min(impossible, choice->impossibleBelowBytes());
  }
  adopt(std::move(*best));
  programs.reset();
  form.figures.impossibleBelowBytes = impossible;
  if (choice->reference) {
    const CoarsePlan &reference = choice->seen.at(*choice->reference);
    form.figures.unconstrainedSeconds = reference.baseSeconds;
    form.figures.unconstrainedBytes = reference.baseBytes;
  }
  if (failure) {
    *failure = overBudget(form, request(last).budgets.device());
    if (const std::string flags = flagsOf(before, asked); !flags.empty())
      failure->notes.front() += ", with " + flags;
    return std::move(*failure);
  }
  form.figures.chosenLevers = choice->alternatives(chosen);
  form.figures.settingsSeen = int64_t(choice->seen.size());
  form.figures.settings = int64_t(choice->space.size());
  if (last >= Phase::Plan)
    measureUnsplit(form, request(last));
  return {};
}
