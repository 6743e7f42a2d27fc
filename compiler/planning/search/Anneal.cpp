#include "compiler/planning/search/Anneal.h"

#include <algorithm>
#include <limits>
#include <optional>

using namespace tmc::planning;

namespace {

/// Share of the moves that copy from one repeat to another. Most copies are
/// refused: few moves per stage serve single recomputations better.
constexpr double kMostCopies = 0.01;
constexpr double kCopiesTimesStages = 20;
/// Share of the copies that go to the next repeat before or after.
constexpr double kNearCopies = 0.5;

/// Moves that aren't copies, in percent; the rest erases one recomputation and
/// inserts another. A repair only inserts or erases.
constexpr uint32_t kInserts = 40, kErases = 25, kShifts = 20, kSwitches = 5;
constexpr uint32_t kAllMoves = 100, kRepairMoves = 50;

/// Above the limit, the share of insertions that aim at a stage above it.
constexpr double kAimed = 0.8;
/// Values tried until one has a gap to insert into.
constexpr int kInsertTries = 16;
/// Share of insertions that don't stand right before the use.
constexpr double kEarly = 0.25;
/// Mean length of a chain, less one.
constexpr double kMeanChain = 3;
/// Chance to recompute an input as well, if its life would grow by more than
/// `kLongLife` stages, or by fewer.
constexpr int32_t kLongLife = 4;
constexpr double kLongChained = 0.6, kShortChained = 0.25;
/// Shares of shifts: those that stay behind the last use before; those that go
/// anywhere. Most stages that the other shifts move.
constexpr double kShiftsBehindUse = 0.8, kFarShifts = 0.5;
constexpr uint32_t kNearShift = 4;

/// Moves between two updates of the temperature and the penalty, and updates
/// between two questions whether to stop.
constexpr int64_t kEpoch = 256, kStopEvery = 16;
/// Factors of the penalty: it rises if more than three quarters of an epoch are
/// above the limit, and falls if less than half is.
constexpr double kPenaltyRise = 1.05, kPenaltyFall = 0.97;
/// A ramp may end above the limit. From this part of the work on, the excess
/// may only fall.
constexpr double kStrictFrom = 0.9;
/// Counted work of a move, in addition to the schedule's own.
constexpr int64_t kMoveWork = 20;

class Annealer {
public:
  Annealer(const LinearProblem &linear, Schedule &schedule, Random &random,
           const AnnealOptions &options)
      : linear(linear), schedule(schedule), random(random), options(options) {
    for (ValueId v = 0; v < ValueId(linear.bytes.size()); ++v)
      if (!linear.recomputes[v].empty() && linear.bytes[v] > 0)
        movable.push_back(v);
    for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k)
      if (options.switchesVariants && linear.stages[k].variants.size() > 1)
        switchable.push_back(k);
  }

  void run();

private:
  struct Step {
    enum { Insert, Erase, Switch } kind;
    OpId op;
    int32_t stage;
    int32_t index = 0;
  };

  void insert(OpId op, int32_t stage) {
    schedule.insert(op, stage);
    log.push_back({Step::Insert, op, stage});
  }
  void erase(OpId op, int32_t stage) {
    schedule.erase(op, stage);
    log.push_back({Step::Erase, op, stage});
  }
  /// Erases a recomputation, and then those that became useless by that.
  void eraseWithFeeders(OpId op, int32_t stage) {
    erase(op, stage);
    pruneFeeders(op, stage);
  }
  void pruneFeeders(OpId op, int32_t stage) {
    Key key =
        keyOf(stage,
              op == schedule.variantOf(stage) ? kOwnRank : linear.ops[op].rank);
    for (ValueId v : linear.ops[op].reads)
      pruneInstance(v, key);
  }
  /// Erases the recomputation that made the instance of v before `key`, if
  /// nothing reads its results.
  void pruneInstance(ValueId v, Key key) {
    int32_t i = schedule.lives().instanceBefore(v, key);
    if (i <= 0)
      return;
    const ValueLives::Instance &instance = schedule.lives().instances(v)[i];
    if (instance.last != instance.key)
      return;
    int32_t at = stageOf(instance.key);
    for (OpId o : schedule.clonesAt(at))
      if (linear.ops[o].rank == rankOf(instance.key)) {
        if (schedule.isUseless(o, at))
          eraseWithFeeders(o, at);
        return;
      }
  }
  /// After an insertion of `op`: erases earlier recomputations that became
  /// useless.
  void prunePredecessors(OpId op, int32_t stage) {
    Key key = keyOf(stage, linear.ops[op].rank);
    for (ValueId v : linear.ops[op].writes)
      pruneInstance(v, key);
  }
  /// Reverses a step; a second call repeats it.
  void reverse(Step &s) {
    if (s.kind == Step::Insert) {
      schedule.erase(s.op, s.stage);
      s.kind = Step::Erase;
    } else if (s.kind == Step::Erase) {
      schedule.insert(s.op, s.stage);
      s.kind = Step::Insert;
    } else {
      int32_t index = schedule.variantIndex(s.stage);
      schedule.switchVariant(s.stage, s.index);
      s.index = index;
    }
  }
  void undo(std::vector<Step> &steps) {
    for (size_t i = steps.size(); i-- > 0;)
      reverse(steps[i]);
  }

  bool insertChain(ValueId v, int32_t stage);
  bool proposeInsert();
  bool proposeErase();
  bool proposeShift();
  bool proposeSwitch();
  bool proposeCopy();
  double copyChance() const {
    return std::min(kMostCopies,
                    kCopiesTimesStages / double(linear.stages.size()));
  }
  void propose(bool repair);
  double marginalPenalty();

  const LinearProblem &linear;
  Schedule &schedule;
  Random &random;
  const AnnealOptions &options;
  std::vector<ValueId> movable;
  std::vector<int32_t> switchable;
  std::vector<Step> log;     // Steps of the current move.
  std::vector<Step> journal; // Accepted since the best state.
  int32_t chainLeft = 0;
  std::vector<Schedule::Clone> copies;
};

/// Recomputes v at `stage`. Inputs that live longer because of that may be
/// recomputed as well.
bool Annealer::insertChain(ValueId v, int32_t stage) {
  const std::vector<OpId> &ops = linear.recomputes[v];
  OpId op = ops[ops.size() == 1 ? 0 : random.below(uint32_t(ops.size()))];
  if (!schedule.canInsert(op, stage))
    return false;
  insert(op, stage);
  if (--chainLeft <= 0)
    return true;
  Key key = keyOf(stage, linear.ops[op].rank);
  for (ValueId u : linear.ops[op].reads) {
    if (linear.recomputes[u].empty())
      continue;
    int32_t i = schedule.lives().instanceBefore(u, key);
    const ValueLives::Instance &instance = schedule.lives().instances(u)[i];
    if (instance.last != key || stageOf(instance.key) == stage)
      continue;
    // This use is the last; without it, u would be dead since `before`.
    const std::vector<Key> &uses = schedule.lives().uses(u);
    auto at = std::lower_bound(uses.begin(), uses.end(), key);
    Key before = at == uses.begin() ? instance.key
                                    : std::max(instance.key, *std::prev(at));
    int32_t length = stage - stageOf(before);
    if (length <= 0)
      continue;
    if (chainLeft > 0 &&
        random.chance(length > kLongLife ? kLongChained : kShortChained))
      insertChain(u, stage);
  }
  prunePredecessors(op, stage);
  return true;
}

bool Annealer::proposeInsert() {
  if (movable.empty())
    return false;
  int32_t over = -1;
  if (schedule.excess() > 0 && random.chance(kAimed))
    over = schedule.stageAboveLimit(
        int32_t(random.below(uint32_t(linear.stages.size()))));
  for (int attempt = 0; attempt < kInsertTries; ++attempt) {
    ValueId v = movable[random.below(uint32_t(movable.size()))];
    const std::vector<Key> &uses = schedule.lives().uses(v);
    if (uses.empty())
      continue;
    size_t u;
    Key from;
    if (over >= 0) {
      // The gap of v that contains the stage.
      u = size_t(
          std::lower_bound(uses.begin(), uses.end(), keyOf(over + 1, 0)) -
          uses.begin());
      if (u == uses.size())
        continue;
    } else {
      u = random.below(uint32_t(uses.size()));
    }
    int32_t i = schedule.lives().instanceBefore(v, uses[u]);
    from = schedule.lives().instances(v)[i].key;
    if (u > 0)
      from = std::max(from, uses[u - 1]);
    int32_t lo = stageOf(from) + 1, hi = stageOf(uses[u]);
    if (over >= 0) {
      if (stageOf(from) >= over)
        continue;
      lo = over + 1;
    }
    if (lo > hi)
      continue;
    int32_t stage = hi;
    if (hi > lo && random.chance(kEarly))
      stage = lo + int32_t(random.below(uint32_t(hi - lo + 1)));
    chainLeft = 1 + int32_t(random.exponential() * kMeanChain);
    return insertChain(v, stage);
  }
  return false;
}

bool Annealer::proposeErase() {
  const std::vector<Schedule::Clone> &clones = schedule.clones();
  if (clones.empty())
    return false;
  Schedule::Clone c = clones[random.below(uint32_t(clones.size()))];
  eraseWithFeeders(c.op, c.stage);
  return true;
}

bool Annealer::proposeShift() {
  const std::vector<Schedule::Clone> &clones = schedule.clones();
  if (clones.empty())
    return false;
  Schedule::Clone c = clones[random.below(uint32_t(clones.size()))];
  const LinearOp &op = linear.ops[c.op];
  Key key = keyOf(c.stage, op.rank);
  // Between the last use before the recomputation and its own first use.
  int32_t lo = op.firstStage, hi = op.lastStage;
  for (ValueId v : op.writes) {
    const std::vector<Key> &uses = schedule.lives().uses(v);
    auto at = std::lower_bound(uses.begin(), uses.end(), key);
    int32_t i = schedule.lives().instanceBefore(v, key);
    lo = std::max(lo, stageOf(schedule.lives().instances(v)[i].key) + 1);
    if (at != uses.begin() && random.chance(kShiftsBehindUse))
      lo = std::max(lo, stageOf(*std::prev(at)));
    if (at != uses.end())
      hi = std::min(hi, stageOf(*at));
  }
  if (lo >= hi)
    return false;
  int32_t stage;
  if (random.chance(kFarShifts))
    stage = lo + int32_t(random.below(uint32_t(hi - lo + 1)));
  else
    stage = std::clamp(c.stage + (random.chance(0.5) ? 1 : -1) *
                                     int32_t(1 + random.below(kNearShift)),
                       lo, hi);
  if (!schedule.canInsert(c.op, stage))
    return false;
  // The recomputation moves from one stage to the other.
  erase(c.op, c.stage);
  insert(c.op, stage);
  return true;
}

bool Annealer::proposeSwitch() {
  int32_t stage = switchable[random.below(uint32_t(switchable.size()))];
  int32_t was = schedule.variantIndex(stage);
  int32_t is =
      int32_t(random.below(uint32_t(linear.stages[stage].variants.size() - 1)));
  is += is >= was;
  OpId before = schedule.variantOf(stage);
  schedule.switchVariant(stage, is);
  log.push_back({Step::Switch, kNone, stage, was});
  for (ValueId v : linear.ops[before].reads)
    pruneInstance(v, keyOf(stage, kOwnRank));
  return true;
}

/// Copies the recomputations of a stretch of stages, at most one layer long, to
/// an isomorphic stretch.
bool Annealer::proposeCopy() {
  const std::vector<Schedule::Clone> &clones = schedule.clones();
  if (clones.empty())
    return false;
  int32_t stage = clones[random.below(uint32_t(clones.size()))].stage;
  std::span<const int32_t> like = options.repeats->like(stage);
  if (like.size() < 2)
    return false;
  auto at = std::lower_bound(like.begin(), like.end(), stage);
  int32_t period =
      at + 1 == like.end() ? stage - *std::prev(at) : *std::next(at) - stage;
  // The next repeat, or any.
  auto other = like.begin();
  if (random.chance(kNearCopies)) {
    if (at + 1 == like.end() || (at != like.begin() && random.chance(0.5)))
      other = std::prev(at);
    else
      other = std::next(at);
  } else {
    other += ptrdiff_t(random.below(uint32_t(like.size() - 1)));
    other += other >= at;
  }
  int32_t shift = *other - stage;
  int32_t length = 1 + int32_t(random.below(uint32_t(period)));
  int32_t from = stage - int32_t(random.below(uint32_t(length)));
  int32_t to = from + length - 1;
  if (std::min(from, from + shift) < 0 ||
      std::max(to, to + shift) >= int32_t(linear.stages.size()))
    return false;
  schedule.addWork(2 * length);
  if (!options.repeats->translate(schedule, from, to, shift, copies))
    return false;
  for (int32_t k = from + shift; k <= to + shift; ++k) {
    std::vector<OpId> here = schedule.clonesAt(k);
    for (OpId o : here)
      if (schedule.has(o, k) &&
          std::find(copies.begin(), copies.end(), Schedule::Clone{o, k}) ==
              copies.end())
        eraseWithFeeders(o, k);
  }
  for (const Schedule::Clone &c : copies)
    if (schedule.canInsert(c.op, c.stage)) {
      insert(c.op, c.stage);
      prunePredecessors(c.op, c.stage);
    }
  return true;
}

void Annealer::propose(bool repair) {
  if (options.repeats && !repair && random.chance(copyChance()) &&
      proposeCopy())
    return;
  uint32_t kind = random.below(repair ? kRepairMoves : kAllMoves);
  if (!switchable.empty() && kind >= kAllMoves - kSwitches)
    proposeSwitch();
  else if (kind < kInserts)
    proposeInsert();
  else if (kind < kInserts + kErases)
    proposeErase();
  else if (kind < kInserts + kErases + kShifts)
    proposeShift();
  else if (proposeErase())
    proposeInsert();
}

/// The cost that one byte above the limit saves at the margin: the median, over
/// a sample of erased recomputations, of (cost saved) / (excess added). 0: no
/// sample.
double Annealer::marginalPenalty() {
  constexpr size_t kSample = 64, kTriesEach = 16;
  std::vector<Step> steps;
  std::vector<double> ratios;
  // Some erased recomputations add no excess: they only held bytes themselves.
  for (size_t tries = 0;
       tries < kTriesEach * kSample && ratios.size() < kSample;) {
    if (schedule.clones().empty())
      break;
    int64_t cost = schedule.cost(), excess = schedule.excess();
    log.clear();
    proposeErase();
    if (schedule.excess() > excess)
      ratios.push_back(double(cost - schedule.cost()) /
                       double(schedule.excess() - excess));
    // Erasures that add no excess stay erased until the limit is reached.
    if (excess == 0) {
      steps.insert(steps.end(), log.begin(), log.end());
    } else {
      undo(log);
      ++tries;
    }
  }
  undo(steps);
  if (ratios.empty())
    return 0;
  auto middle = ratios.begin() + ptrdiff_t(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

/// Anneals; ends in the best state met.
void Annealer::run() {
  if (movable.empty())
    return;
  bool bestFits = schedule.excess() <= 0;
  int64_t bestCost = schedule.cost(), bestExcess = schedule.excess();
  std::optional<RematPlan> written; // The best state, after a long journal.

  double meanCost = 0, meanBytes = 0;
  int64_t count = 0;
  for (ValueId v : movable) {
    for (OpId o : linear.recomputes[v])
      meanCost += double(linear.ops[o].cost), ++count;
    meanBytes += double(linear.bytes[v]);
  }
  meanCost = std::max(1.0, count ? meanCost / double(count) : 1.0);
  meanBytes = std::max(1.0, meanBytes / double(movable.size()));

  double firstPenalty = meanCost / meanBytes;
  if (options.penaltyRamp > 0)
    if (double marginal = marginalPenalty(); marginal > 0)
      firstPenalty = marginal * options.firstPenalty;
  double penalty = firstPenalty;
  int64_t startWork = schedule.work(), endWork = startWork + options.work;
  double temperature = options.startTemperature * meanCost;
  double ratio = options.endTemperature / options.startTemperature;
  int64_t epochs = 0, above = 0, moves = 0;
  bool strict = false;
  while (schedule.work() < endWork) {
    if (++moves % kEpoch == 0) {
      ++epochs;
      double done = double(schedule.work() - startWork) / double(options.work);
      temperature = options.startTemperature * meanCost * power(ratio, done);
      strict = options.penaltyRamp > 0 && done > kStrictFrom;
      if (options.penaltyRamp > 0)
        penalty = firstPenalty * power(options.penaltyRamp, done);
      else
        penalty *= above * 4 > kEpoch * 3 ? kPenaltyRise
                   : above * 2 < kEpoch   ? kPenaltyFall
                                          : 1.0;
      above = 0;
      if (options.stop && epochs % kStopEvery == 0 && options.stop())
        break;
    }
    int64_t costBefore = schedule.cost();
    int64_t excessBefore = schedule.excess();
    log.clear();
    schedule.addWork(kMoveWork);
    propose(strict && excessBefore > 0);
    if (!log.empty()) {
      int64_t more = schedule.excess() - excessBefore;
      double change =
          double(schedule.cost() - costBefore) + penalty * double(more);
      if (strict && more != 0)
        change = more > 0 ? std::numeric_limits<double>::infinity() : -1;
      if (change <= 0 || change <= temperature * random.exponential()) {
        bool fits = schedule.excess() <= 0;
        if (fits ? !bestFits || schedule.cost() < bestCost
                 : !bestFits && schedule.excess() < bestExcess) {
          bestFits = fits;
          bestCost = schedule.cost();
          bestExcess = schedule.excess();
          journal.clear();
          written.reset();
        } else if (!written) {
          journal.insert(journal.end(), log.begin(), log.end());
          if (journal.size() > options.longestJournal) {
            undo(journal);
            written = rematPlanOf(linear, schedule);
            for (Step &step : journal)
              reverse(step);
            journal.clear();
          }
        }
      } else {
        undo(log);
      }
    }
    above += schedule.excess() > 0;
  }
  if (written)
    restore(linear, schedule, *written);
  else
    undo(journal);
}

} // namespace

RematPlan tmc::planning::anneal(const LinearProblem &linear, Schedule &schedule,
                                Random &random, const AnnealOptions &options) {
  Annealer(linear, schedule, random, options).run();
  return rematPlanOf(linear, schedule);
}
