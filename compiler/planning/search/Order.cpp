#include "compiler/planning/search/Order.h"

#include <algorithm>
#include <queue>

using namespace tmc::planning;

Orders tmc::planning::programOrders(const Problem &problem) {
  Orders orders;
  for (const Segment &segment : problem.segments)
    orders.push_back(segment.instructions);
  return orders;
}

namespace {

/// Temperatures at the start and at the end, in mean bytes of a value.
constexpr double kHot = 3, kCold = 0.001;
/// Moves between two updates of the temperature, and moves between two
/// questions whether to stop.
constexpr int64_t kEpoch = 256, kStopEvery = 4096;
/// Share of the moves that go anywhere; mean length of the others, in stages.
constexpr double kFarMoves = 0.15, kMeanMove = 6;
/// Counted work of a move; a copy handles several stages in one step.
constexpr int64_t kMoveWork = 10;
constexpr int32_t kAcceptedAtOnce = 4, kCopiedAtOnce = 8;

/// Stages of the linear problem with their predecessors and successors. Pseudo
/// stages stay at the ends of their segments.
struct Precedence {
  Precedence(const Problem &problem, const LinearProblem &linear)
      : before(linear.stages.size()), after(linear.stages.size()),
        first(linear.stages.size()), last(linear.stages.size()) {
    int32_t n = int32_t(linear.stages.size());
    std::vector<int32_t> stageOfInstruction(problem.instructions.size(), -1);
    std::vector<std::vector<int32_t>> readers(problem.values.size());
    std::vector<int32_t> maker(problem.values.size(), -1);
    for (int32_t k = 0; k < n; ++k) {
      if (linear.stages[k].instruction != kNone)
        stageOfInstruction[linear.stages[k].instruction] = k;
      // Segments are runs of stages; pseudo stages bound them.
      bool joins = k > 0 &&
                   linear.stages[k].segment == linear.stages[k - 1].segment &&
                   linear.stages[k].instruction != kNone &&
                   linear.stages[k - 1].instruction != kNone;
      first[k] = joins ? first[k - 1] : k;
    }
    for (int32_t k = n; k-- > 0;)
      last[k] = k + 1 < n && first[k + 1] == first[k] ? last[k + 1] : k;
    for (const Instruction &instruction : problem.instructions)
      for (ValueId v : problem.recipes[instruction.recipes.front()].writes)
        maker[v] =
            stageOfInstruction[&instruction - problem.instructions.data()];
    for (size_t i = 0; i < problem.instructions.size(); ++i)
      for (RecipeId r : problem.instructions[i].recipes)
        for (ValueId v : problem.recipes[r].reads) {
          readers[v].push_back(stageOfInstruction[i]);
          add(maker[v], stageOfInstruction[i]);
        }
    for (size_t i = 0; i < problem.instructions.size(); ++i)
      for (RecipeId r : problem.instructions[i].recipes)
        for (const Overwrite &o : problem.recipes[r].overwrites)
          if (o.must) // And the initial value of a carried value.
            for (ValueId old : {o.read, problem.values[o.read].initial})
              if (old != kNone)
                for (int32_t reader : readers[old])
                  add(reader, stageOfInstruction[i]);
    for (std::vector<std::vector<int32_t>> *lists : {&before, &after})
      for (std::vector<int32_t> &list : *lists) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
      }
  }
  void add(int32_t a, int32_t b) {
    if (a >= 0 && a != b && first[a] == first[b]) {
      before[b].push_back(a);
      after[a].push_back(b);
    }
  }
  std::vector<std::vector<int32_t>> before, after;
  std::vector<int32_t> first, last; // Run of stages that it may move in.
};

Orders ordersOf(const Problem &problem, const LinearProblem &linear,
                const std::vector<int32_t> &sequence) {
  Orders orders(problem.segments.size());
  for (int32_t k : sequence)
    if (linear.stages[k].instruction != kNone)
      orders[linear.stages[k].segment].push_back(linear.stages[k].instruction);
  return orders;
}

class Reorderer {
public:
  Reorderer(const LinearProblem &linear, const Precedence &precedence,
            Random &random, const ReorderOptions &options)
      : linear(linear), precedence(precedence), random(random),
        options(options), n(int32_t(linear.stages.size())), sequence(n),
        position(n), readers(linear.bytes.size()),
        lastReader(linear.bytes.size(), -1), overwrites(n), saved(n), freed(n),
        live(n), through(n + 1), newLive(n), newThrough(n + 1) {
    for (int32_t k = 0; k < n; ++k)
      sequence[k] = position[k] = k;
    Timeline timeline = timelineOf(linear, ownExecutions(linear));
    for (int32_t i = 0; i < int32_t(timeline.instances.size()); ++i) {
      ValueId v = timeline.instances[i].value;
      std::span<const int32_t> uses = timeline.usesOf(i);
      readers[v].assign(uses.begin(), uses.end());
      lastReader[v] = uses.empty() ? -1 : uses.back();
    }
    for (int32_t k = 0; k < n; ++k) {
      for (ValueId v : op(k).reads)
        freed[k] += lastReader[v] == k ? linear.bytes[v] : 0;
      for (ValueId v : op(k).writes)
        freed[k] += lastReader[v] < 0 ? linear.bytes[v] : 0;
      for (const LinearOverwrite &w : op(k).overwrites)
        if (overwrites[k].empty() || overwrites[k].back().read != w.read)
          overwrites[k].push_back(w);
      saved[k] = savedBy(k);
      written.push_back(op(k).writtenBytes);
      workspace.push_back(op(k).workspaceBytes);
    }
    excess = walk(0, n).above;
    accept(0, n);
  }

  void run(int64_t &work);
  void settle(int64_t &work);
  int64_t aboveLimit() const { return excess; }
  std::vector<int32_t> best;

private:
  const LinearOp &op(int32_t stage) const {
    return linear.ops[linear.stages[stage].variants.front()];
  }

  /// Bytes that a stage saves by overwriting inputs that it reads last.
  int64_t savedBy(int32_t stage) const {
    int64_t bytes = 0;
    ValueId spent = kNone;
    for (const LinearOverwrite &w : overwrites[stage])
      if (lastReader[w.read] == stage && w.read != spent) {
        bytes += std::min(linear.bytes[w.read], linear.bytes[w.written]);
        spent = w.read;
      }
    return bytes;
  }

  struct Bytes { // Summed over moments.
    int64_t above = 0, held = 0;
    void add(int64_t now, int64_t limit) {
      above += std::max<int64_t>(0, now - limit);
      held += now;
    }
  };
  /// Recounts the moments [lo, hi) into `newLive` and `newThrough`.
  Bytes walk(int32_t lo, int32_t hi) {
    int64_t alive = through[lo];
    Bytes bytes;
    for (int32_t p = lo; p < hi; ++p) {
      int32_t stage = sequence[p];
      alive += written[stage];
      int64_t now = alive + workspace[stage] - saved[stage];
      bytes.add(now, options.limitBytes);
      alive -= freed[stage];
      newLive[p] = now;
      newThrough[p + 1] = alive;
    }
    steps += 2 * (hi - lo);
    return bytes;
  }
  /// Makes the counts of `walk` the current ones.
  void accept(int32_t lo, int32_t hi) {
    std::copy(newLive.begin() + lo, newLive.begin() + hi, live.begin() + lo);
    std::copy(newThrough.begin() + lo + 1, newThrough.begin() + hi + 1,
              through.begin() + lo + 1);
    steps += (hi - lo) / kAcceptedAtOnce;
  }

  void findLastReaders(int32_t stage) {
    for (ValueId v : op(stage).reads) {
      int32_t late = readers[v].front(), was = lastReader[v];
      for (int32_t r : readers[v])
        if (position[r] > position[late])
          late = r;
      steps += int64_t(readers[v].size());
      if (late == was)
        continue;
      lastReader[v] = late;
      freed[was] -= linear.bytes[v];
      freed[late] += linear.bytes[v];
      saved[was] = savedBy(was);
      saved[late] = savedBy(late);
    }
  }
  /// The places between a stage's predecessors and successors.
  std::pair<int32_t, int32_t> rangeOf(int32_t stage) const {
    int32_t lo = precedence.first[stage], hi = precedence.last[stage];
    for (int32_t b : precedence.before[stage])
      lo = std::max(lo, position[b] + 1);
    for (int32_t a : precedence.after[stage])
      hi = std::min(hi, position[a] - 1);
    return {lo, hi};
  }
  /// Moves the stage at `from` to `to`; returns the bytes in between, before
  /// and after.
  std::pair<Bytes, Bytes> move(int32_t from, int32_t to) {
    int32_t stage = sequence[from];
    int32_t first = std::min(from, to), last = std::max(from, to) + 1;
    Bytes before;
    for (int32_t p = first; p < last; ++p)
      before.add(live[p], options.limitBytes);
    rotate(from, to);
    findLastReaders(stage);
    return {before, walk(first, last)};
  }
  void accept(int32_t from, int32_t to, const Bytes &before,
              const Bytes &after) {
    accept(std::min(from, to), std::max(from, to) + 1);
    excess += after.above - before.above;
  }
  void takeBack(int32_t from, int32_t to) {
    int32_t stage = sequence[to];
    rotate(to, from);
    findLastReaders(stage);
  }
  void rotate(int32_t from, int32_t to) {
    auto begin = sequence.begin();
    if (from < to)
      std::rotate(begin + from, begin + from + 1, begin + to + 1);
    else
      std::rotate(begin + to, begin + from, begin + from + 1);
    for (int32_t p = std::min(from, to); p <= std::max(from, to); ++p)
      position[sequence[p]] = p;
    steps += std::abs(from - to) / 2;
  }

  const LinearProblem &linear;
  const Precedence &precedence;
  Random &random;
  const ReorderOptions &options;
  int32_t n;
  std::vector<int32_t> sequence, position;
  std::vector<std::vector<int32_t>> readers;
  std::vector<int32_t> lastReader; // Stage that reads it last, or -1.
  /// Per stage, the first of consecutive options for one operand.
  std::vector<std::vector<LinearOverwrite>> overwrites;
  /// Per stage: bytes it writes, its workspace, bytes saved by overwrites, and
  /// bytes that die with it.
  std::vector<int64_t> written, workspace, saved, freed;
  /// Per position: bytes alive there, and bytes alive before it; the same after
  /// the current move.
  std::vector<int64_t> live, through, newLive, newThrough;
  int64_t excess = 0, steps = 0;
};

void Reorderer::run(int64_t &work) {
  best = sequence;
  double energy = double(excess), least = energy; // Up to a constant.
  double mean = 0;
  for (int64_t b : linear.bytes)
    mean += double(b);
  mean = std::max(1.0, mean / double(std::max<size_t>(1, linear.bytes.size())));
  double hot = kHot * mean, temperature = hot;
  for (int64_t moves = 0; steps < options.work && excess > 0 && n > 1;
       ++moves) {
    if (moves % kEpoch == 0) {
      double done = double(steps) / double(options.work);
      temperature = hot * (1 - done) * (1 - done) + kCold * mean;
      if (options.stop && moves % kStopEvery == 0 && options.stop())
        break;
    }
    steps += kMoveWork;
    int32_t from = int32_t(random.below(uint32_t(n))), stage = sequence[from];
    auto [lo, hi] = rangeOf(stage);
    if (lo >= hi)
      continue;
    int32_t to;
    if (random.chance(kFarMoves))
      to = lo + int32_t(random.below(uint32_t(hi - lo + 1)));
    else
      to = std::clamp(from + (random.chance(0.5) ? 1 : -1) *
                                 int32_t(1 + random.exponential() * kMeanMove),
                      lo, hi);
    if (to == from)
      continue;
    auto [before, after] = move(from, to);
    double change = double(after.above - before.above) +
                    options.heldWeight * double(after.held - before.held);
    if (change <= 0 || change <= temperature * random.exponential()) {
      accept(from, to, before, after);
      energy += change;
      if (energy < least || excess == 0) {
        least = energy;
        best = sequence;
        steps += n / kCopiedAtOnce;
      }
    } else {
      takeBack(from, to);
    }
  }
  work += steps;
}

/// Moves a stage that frees as much as it takes to its first possible place,
/// and one that takes more to its last, if the other moments then hold less. An
/// anneal doesn't do that: it counts the moment of the moved stage too, which
/// outweighs a few bytes, so it sends small updates to the end, where little is
/// alive. Their gradients then live longer without need and make packing
/// harder.
void Reorderer::settle(int64_t &work) {
  constexpr int kPasses = 3;
  bool moved = true;
  for (int pass = 0; pass < kPasses && moved; ++pass) {
    moved = false;
    for (int32_t stage : std::vector<int32_t>(sequence)) {
      auto [lo, hi] = rangeOf(stage);
      int32_t from = position[stage];
      int32_t to = written[stage] <= freed[stage] ? lo : hi;
      if (to == from || lo >= hi)
        continue;
      int64_t was = live[from];
      auto [before, after] = move(from, to);
      int64_t is = newLive[to];
      int64_t beside = newLive[to < from ? to + 1 : to - 1];
      auto above = [&](int64_t bytes) {
        return std::max<int64_t>(0, bytes - options.limitBytes);
      };
      if (after.above - above(is) <= before.above - above(was) &&
          after.held - is < before.held - was &&
          is <= std::max(options.limitBytes, beside)) {
        accept(from, to, before, after);
        moved = true;
      } else {
        takeBack(from, to);
      }
    }
  }
  best = sequence;
  work += steps;
}

} // namespace

Orders tmc::planning::listSchedule(const Problem &problem) {
  LinearProblem linear = linearize(problem);
  Precedence precedence(problem, linear);
  int32_t n = int32_t(linear.stages.size());
  std::vector<int32_t> missing(n), readersLeft(linear.bytes.size(), 0),
      sequence;
  for (int32_t k = 0; k < n; ++k) {
    missing[k] = int32_t(precedence.before[k].size());
    for (ValueId v : linear.ops[linear.stages[k].variants.front()].reads)
      ++readersLeft[v];
  }
  auto growth = [&](int32_t k) {
    const LinearOp &op = linear.ops[linear.stages[k].variants.front()];
    int64_t bytes = 0;
    for (ValueId v : op.writes)
      bytes += readersLeft[v] ? linear.bytes[v] : 0;
    for (ValueId v : op.reads)
      bytes -= readersLeft[v] == 1 ? linear.bytes[v] : 0;
    return bytes;
  };
  for (int32_t begin = 0; begin < n; begin = precedence.last[begin] + 1) {
    // A ready instruction's growth only falls as others run, so the heap's
    // entries are updated when they are popped.
    using Entry = std::pair<int64_t, int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    std::vector<char> done(size_t(precedence.last[begin] - begin + 1), 0);
    for (int32_t k = begin; k <= precedence.last[begin]; ++k)
      if (missing[k] == 0)
        ready.push({growth(k), k});
    std::vector<std::vector<int32_t>> readyReaders(linear.bytes.size());
    while (!ready.empty()) {
      auto [was, k] = ready.top();
      ready.pop();
      if (done[size_t(k - begin)])
        continue;
      done[size_t(k - begin)] = 1;
      sequence.push_back(k);
      for (ValueId v : linear.ops[linear.stages[k].variants.front()].reads)
        if (--readersLeft[v] == 1)
          for (int32_t r : readyReaders[v])
            if (!done[size_t(r - begin)])
              ready.push({growth(r), r});
      for (int32_t a : precedence.after[k])
        if (--missing[a] == 0) {
          ready.push({growth(a), a});
          for (ValueId v : linear.ops[linear.stages[a].variants.front()].reads)
            readyReaders[v].push_back(a);
        }
    }
  }
  return ordersOf(problem, linear, sequence);
}

int64_t tmc::planning::reorder(const Problem &problem, Orders &orders,
                               Random &random, const ReorderOptions &options,
                               int64_t &work) {
  LinearProblem linear = linearize(problem, orders);
  Precedence precedence(problem, linear);
  Reorderer search(linear, precedence, random, options);
  search.run(work);
  orders = ordersOf(problem, linear, search.best);
  linear = linearize(problem, orders);
  precedence = Precedence(problem, linear);
  Reorderer settling(linear, precedence, random, options);
  settling.settle(work);
  orders = ordersOf(problem, linear, settling.best);
  return settling.aboveLimit();
}
