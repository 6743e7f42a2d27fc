#include "compiler/planning/bound/Branch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <queue>

using namespace tmc::planning;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A gap or a tail as the paths see it. Slot `slot + c` of any table is its
/// cell c, and the chosen moment at the end of that cell.
struct Line {
  ValueId value;
  int32_t first, end; // LiveProfile strictly inside: [first, end).
  int32_t lo, hi;     // Chosen moments inside: [lo, hi); cells lo..hi.
  int32_t slot;
  double bytes;
  double cost; // Of recomputing it.
  bool isTail;
  int8_t fix = 0;
};

/// What is decided about a line.
enum Fix : int8_t { kFree = 0, kKept = 1, kBroken = 2 };

/// Slots at which a row is satisfied: `value` or `read` there, `read` made.
struct RowSlots {
  int32_t value, read, made, madeEnd; // [made, madeEnd)
};

/// The relaxation at the chosen moments.
class Model {
public:
  Model(const Problem &problem, const Relaxation &relaxation,
        std::vector<int32_t> chosen, int64_t limit);

  int32_t interval(int32_t stage) const {
    return int32_t(std::lower_bound(moments.begin(), moments.end(), stage) -
                   moments.begin());
  }

  const Problem &problem;
  std::vector<int32_t> moments;
  std::vector<double> over;  // floor - limit at each, in units of `byteUnit`.
  std::vector<int64_t> room; // limit - floor at each, in bytes.
  double byteUnit = 1;
  double constant = 0;
  std::vector<Line> lines;
  std::vector<DependencyRow> rows;
  std::vector<RowSlots> rowSlots;
  int32_t slots = 0;

private:
  void addLine(ValueId v, int32_t first, int32_t end, double cost, bool isTail,
               bool hasRows);
  void addTails(const std::vector<char> &isInput);
  void addRows();

  std::vector<std::vector<int32_t>>
      naturals; // LiveProfile of uses, production.
  std::vector<SegmentId> home, lastSegment;
  std::vector<int32_t> segmentEnd;
  /// What is read by every recipe that recomputes a value; and the cheapest
  /// share, by segments where it may run (kNone: anywhere).
  std::vector<std::vector<ValueId>> inputs;
  std::vector<std::vector<std::pair<SegmentId, double>>> remakes;
  std::vector<std::vector<int32_t>> linesOf; // Of a value, ascending.
};

Model::Model(const Problem &problem, const Relaxation &relaxation,
             std::vector<int32_t> chosen, int64_t limit)
    : problem(problem), moments(std::move(chosen)) {
  constant = double(relaxation.cheaperRecipes);
  double bytes = 0;
  for (const Gap &g : relaxation.gaps)
    bytes += double(g.bytes);
  // A mean gap, times a factor by which the slopes along lambda (sums over all
  // gaps) and along mu (one each) are of like size however long the step is.
  double count = double(std::max<size_t>(1, relaxation.gaps.size()));
  byteUnit =
      std::max(1.0, bytes / count * std::max(1.0, __builtin_sqrt(count / 100)));
  for (int32_t k : moments)
    room.push_back(limit - relaxation.floor[k]);
  for (int32_t k : moments)
    over.push_back(double(relaxation.floor[k] - limit) / byteUnit);

  size_t numValues = problem.values.size();
  naturals.resize(numValues);
  home.assign(numValues, kNone);
  lastSegment = home;
  inputs.resize(numValues);
  remakes.resize(numValues);
  linesOf.resize(numValues);
  int32_t k = 0;
  for (size_t s = 0; s < problem.segments.size(); ++s) {
    for (InstructionId i : problem.segments[s].instructions) {
      const Instruction &instruction = problem.instructions[i];
      auto meet = [&](ValueId v) {
        if (naturals[v].empty() || naturals[v].back() != k)
          naturals[v].push_back(k);
        lastSegment[v] = SegmentId(s);
      };
      for (ValueId v : problem.recipes[instruction.recipes.front()].writes) {
        meet(v);
        home[v] = SegmentId(s);
      }
      for (RecipeId r : instruction.recipes)
        for (ValueId v : problem.recipes[r].reads)
          meet(v);
      ++k;
    }
    segmentEnd.push_back(k);
  }
  std::vector<char> isInput(numValues, 0);
  for (const Recipe &recipe : problem.recipes) {
    bool can = recipe.recomputable;
    int64_t written = 0;
    for (ValueId v : recipe.writes) {
      can &= !problem.values[v].pinned;
      written += problem.values[v].bytes;
    }
    if (!can)
      continue;
    for (ValueId v : recipe.writes) {
      std::vector<ValueId> &in = inputs[v];
      if (remakes[v].empty())
        in = recipe.reads;
      else
        in.erase(std::remove_if(in.begin(), in.end(),
                                [&](ValueId w) {
                                  return std::find(recipe.reads.begin(),
                                                   recipe.reads.end(),
                                                   w) == recipe.reads.end();
                                }),
                 in.end());
      remakes[v].push_back(
          {recipe.segment, written ? double(__int128(recipe.cost) *
                                            problem.values[v].bytes / written)
                                   : 0});
    }
  }
  for (const std::vector<ValueId> &in : inputs)
    for (ValueId w : in)
      isInput[w] = 1;
  for (const Gap &g : relaxation.gaps)
    if (interval(g.first) < interval(g.last + 1))
      addLine(g.value, g.first, g.last + 1, double(g.cost), false,
              g.within != kNone);
  addTails(isInput);
  for (std::vector<int32_t> &list : linesOf)
    std::sort(list.begin(), list.end(), [&](int32_t a, int32_t b) {
      return lines[a].first < lines[b].first;
    });
  addRows();
}

void Model::addLine(ValueId v, int32_t first, int32_t end, double cost,
                    bool isTail, bool hasRows) {
  Line line;
  line.value = v;
  line.first = first;
  line.end = end;
  line.lo = interval(first);
  line.hi = interval(end);
  line.bytes = double(problem.values[v].bytes) / byteUnit;
  line.cost = cost;
  line.isTail = isTail;
  line.slot = slots;
  slots += line.hi - line.lo + 1;
  if (hasRows)
    linesOf[v].push_back(int32_t(lines.size()));
  lines.push_back(line);
}

void Model::addTails(const std::vector<char> &isInput) {
  std::vector<char> isCarried(isInput.size(), 0);
  for (const Value &value : problem.values)
    if (value.carriedFrom != kNone)
      isCarried[value.carriedFrom] = 1;
  for (ValueId v = 0; v < ValueId(isInput.size()); ++v) {
    const Value &value = problem.values[v];
    SegmentId s = lastSegment[v];
    if (!isInput[v] || remakes[v].empty() || home[v] == kNone ||
        value.kind != ValueKind::Temporary || value.liveOut || isCarried[v] ||
        (problem.segments[s].trips > 1 && home[v] != s))
      continue;
    double cost = kInfinity;
    for (auto [bound, part] : remakes[v])
      if (bound == kNone || bound == s)
        cost = std::min(cost, part * double(problem.segments[s].trips));
    int32_t first = naturals[v].back() + 1, end = segmentEnd[s];
    if (first < end && interval(first) < interval(end))
      addLine(v, first, end, cost, true, true);
  }
}

void Model::addRows() {
  for (const Line &line : lines) {
    if (line.isTail)
      continue;
    const std::vector<int32_t> &own = linesOf[line.value];
    if (std::none_of(own.begin(), own.end(),
                     [&](int32_t l) { return lines[l].first == line.first; }))
      continue;
    for (int32_t i = line.lo; i < line.hi; ++i)
      for (ValueId w : inputs[line.value]) {
        auto natural = std::lower_bound(naturals[w].begin(), naturals[w].end(),
                                        moments[i]);
        if (natural != naturals[w].end() && *natural <= line.end)
          continue;
        // The line of w from the moment to the end of the gap.
        const std::vector<int32_t> &list = linesOf[w];
        auto after = std::upper_bound(
            list.begin(), list.end(), moments[i],
            [&](int32_t moment, int32_t l) { return moment < lines[l].first; });
        if (after == list.begin())
          continue;
        const Line &supply = lines[*std::prev(after)];
        if (supply.end < line.end)
          continue;
        rows.push_back({line.value, line.first - 1, i, w});
        int32_t at = supply.slot - supply.lo;
        rowSlots.push_back(
            {line.slot + i - line.lo, at + i, at + i + 1, at + line.hi + 1});
      }
  }
}

/// L and its slope at given prices.
class Evaluator {
public:
  explicit Evaluator(const Model &model)
      : model(model), lines(model.lines), slopeLambda(model.moments.size()),
        slopeMu(model.rows.size()), hold(model.slots + 1),
        bonus(model.slots + 1), there(model.slots + 1), made(model.slots + 1),
        keepFrom(model.slots + 1) {}

  double operator()(const std::vector<double> &lambda,
                    const std::vector<double> &mu);
  /// Decides lines; false if the case is empty.
  bool decide(const std::vector<std::pair<int32_t, int8_t>> &fixes);

  const Model &model;
  std::vector<Line> lines;
  std::vector<double> slopeLambda, slopeMu;
  int64_t work = 0;
  bool isBroken(size_t line) const {
    const Line &l = lines[line];
    for (int32_t i = 0; i < l.hi - l.lo; ++i)
      if (!there[l.slot + i])
        return true;
    return l.fix == kBroken;
  }

private:
  double path(const Line &line);
  double pathBroken(const Line &line);

  std::vector<int64_t> room; // At each moment, in the present case.
  std::vector<double> hold;  // Of being there at a cell's end.
  std::vector<double> bonus; // For being made in a cell.
  std::vector<int8_t> there; // At a cell's end, in the best answer.
  std::vector<int32_t> made; // Times made, up to and with a cell.
  /// Back pointers: by state at the end, whether it was there at the beginning
  /// and whether it was made.
  std::vector<std::array<int8_t, 4>> keepFrom;
};

bool Evaluator::decide(const std::vector<std::pair<int32_t, int8_t>> &fixes) {
  for (Line &line : lines)
    line.fix = kFree;
  room = model.room;
  bool fits = true;
  for (auto [l, fix] : fixes) {
    Line &line = lines[l];
    line.fix = fix;
    if (fix == kKept)
      for (int32_t i = line.lo; i < line.hi; ++i)
        room[i] -= model.problem.values[line.value].bytes;
  }
  for (int64_t r : room)
    fits &= r >= 0;
  return fits;
}

/// A free or kept line; sets `there`, and `made` cell by cell.
double Evaluator::path(const Line &line) {
  int32_t count = line.hi - line.lo + 1;
  const double *h = &hold[line.slot], *b = &bonus[line.slot];
  if (line.fix == kKept) {
    double value = 0;
    for (int32_t c = 0; c < count; ++c) {
      value += c + 1 < count ? h[c] : 0;
      there[line.slot + c] = 1;
      made[line.slot + c] = 0;
    }
    return value;
  }
  double in = 0, out = kInfinity; // There, not there.
  for (int32_t c = 0; c < count; ++c) {
    double remake = line.cost - b[c];
    double held = c + 1 < count ? h[c] : 0;
    // Being recomputed where it is there already pays only for its bonus.
    double fromIn = in + std::min(0.0, remake), fromOut = out + remake;
    int8_t source = fromIn <= fromOut ? (remake < 0 ? 3 : 2) : 1;
    double is = std::min(fromIn, fromOut);
    double stays = out, goes = is;
    // To be gone at the end: gone all along, or there (made) and dropped.
    int8_t gone = stays <= goes ? 0 : source;
    keepFrom[line.slot + c] = {gone, source, 0, 0};
    out = std::min(stays, goes);
    in = is + held;
  }
  int state = !line.isTail || in <= out ? 1 : 0;
  double value = state ? in : out;
  for (int32_t c = count; c-- > 0;) {
    there[line.slot + c] = int8_t(state);
    int8_t source = keepFrom[line.slot + c][state];
    made[line.slot + c] = source & 1;
    state = source >> 1;
  }
  return value;
}

/// The same where it must be recomputed at least once.
double Evaluator::pathBroken(const Line &line) {
  int32_t count = line.hi - line.lo + 1;
  // State: there * 2 + made by now. Back pointer: state before * 2 + made here.
  double at[4] = {kInfinity, kInfinity, 0, kInfinity};
  for (int32_t c = 0; c < count; ++c) {
    double remake = line.cost - bonus[line.slot + c];
    double held = c + 1 < count ? hold[line.slot + c] : 0;
    double next[4] = {kInfinity, kInfinity, kInfinity, kInfinity};
    std::array<int8_t, 4> &from = keepFrom[line.slot + c];
    from = {0, 0, 0, 0};
    for (int8_t s = 0; s < 4; ++s)
      for (int8_t make = 0; make < 2; ++make) {
        double cost = at[s] + (make ? remake : 0);
        bool is = s >= 2 || make;
        int8_t flag = int8_t((s & 1) | make);
        for (int8_t stays = 0; stays <= int8_t(is); ++stays) {
          double all = cost + (stays ? held : 0);
          int8_t to = int8_t(stays * 2 + flag);
          if (all < next[to])
            next[to] = all, from[to] = int8_t(s * 2 + make);
        }
      }
    std::copy(next, next + 4, at);
  }
  int8_t state = line.isTail && at[1] < at[3] ? 1 : 3;
  double value = at[state];
  for (int32_t c = count; c-- > 0;) {
    there[line.slot + c] = state >> 1;
    int8_t from = keepFrom[line.slot + c][state];
    made[line.slot + c] = from & 1;
    state = int8_t(from >> 1);
  }
  return value;
}

double Evaluator::operator()(const std::vector<double> &lambda,
                             const std::vector<double> &mu) {
  double value = model.constant;
  for (const Line &line : lines) {
    int64_t bytes = model.problem.values[line.value].bytes;
    for (int32_t i = line.lo; i < line.hi; ++i)
      hold[line.slot + i - line.lo] = bytes > room[i] && line.fix != kKept
                                          ? kInfinity
                                          : lambda[i] * line.bytes;
  }
  std::fill(bonus.begin(), bonus.end(), 0.0);
  for (size_t r = 0; r < mu.size(); ++r) {
    const RowSlots &row = model.rowSlots[r];
    value += mu[r];
    hold[row.value] -= mu[r];
    hold[row.read] -= mu[r];
    bonus[row.made] += mu[r];
    bonus[row.madeEnd] -= mu[r];
  }
  double sum = 0;
  for (double &b : bonus)
    b = sum += b;
  for (const Line &line : lines)
    value += line.fix == kBroken ? pathBroken(line) : path(line);
  for (size_t i = 0; i < lambda.size(); ++i) {
    value += lambda[i] * model.over[i];
    slopeLambda[i] = model.over[i];
  }
  for (const Line &line : lines)
    for (int32_t i = line.lo; i < line.hi; ++i)
      slopeLambda[i] += there[line.slot + i - line.lo] ? line.bytes : 0;
  for (size_t s = 1; s < made.size(); ++s)
    made[s] += made[s - 1];
  for (size_t r = 0; r < mu.size(); ++r) {
    const RowSlots &row = model.rowSlots[r];
    slopeMu[r] = 1 - there[row.value] - there[row.read] -
                 (made[row.madeEnd - 1] - made[row.made - 1]);
  }
  work += 4 * int64_t(model.slots) + 4 * int64_t(mu.size()) +
          2 * int64_t(lambda.size());
  return value;
}

struct Prices {
  std::vector<double> lambda, mu;
};

/// A case: what is decided, and the best prices met for it.
struct Case {
  double bound = -kInfinity;
  Prices prices;
  std::vector<std::pair<int32_t, int8_t>> fixes;
  int32_t split = -1; // The line to split at next.
};

class Ascent {
public:
  Ascent(const Model &model, double target)
      : evaluate(model), target(target), model(model) {}

  /// Raises `c.bound` from `c.prices` on; chooses the line to split at.
  void run(Case &c, int iterations);

  Evaluator evaluate;
  double target;

private:
  const Model &model;
};

void Ascent::run(Case &c, int iterations) {
  if (!evaluate.decide(c.fixes)) {
    c.bound = kInfinity;
    c.prices.lambda.assign(c.prices.lambda.size(), 0);
    c.prices.mu.assign(c.prices.mu.size(), 0);
    return;
  }
  size_t m = model.moments.size(), rows = model.rows.size();
  Prices now = c.prices;
  std::vector<double> directionLambda(m, 0), directionMu(rows, 0);
  std::vector<double> share(model.lines.size(), 0);
  double step = 1;
  int idle = 0;
  double weight = 0;
  for (int i = 0; i < iterations; ++i) {
    double value = evaluate(now.lambda, now.mu);
    // How often each gap was broken of late: who is undecided?
    weight = weight * 0.95 + 0.05;
    for (size_t l = 0; l < share.size(); ++l)
      share[l] = share[l] * 0.95 + 0.05 * evaluate.isBroken(l);
    if (value > c.bound) {
      idle = value > c.bound + 1e-5 * std::abs(c.bound) ? 0 : idle + 1;
      c.bound = value;
      c.prices = now;
      if (c.bound >= target)
        break;
    } else {
      ++idle;
    }
    if (idle > 12) {
      idle = 0;
      step *= 0.6;
      if (step < 1e-3)
        break;
      now = c.prices;
      std::fill(directionLambda.begin(), directionLambda.end(), 0.0);
      std::fill(directionMu.begin(), directionMu.end(), 0.0);
      continue;
    }
    double dot = 0, size = 0, gradient = 0;
    auto deflect = [&](std::vector<double> &slope,
                       const std::vector<double> &price,
                       const std::vector<double> &direction) {
      for (size_t k = 0; k < slope.size(); ++k) {
        if (price[k] <= 0 && slope[k] < 0)
          slope[k] = 0;
        dot += slope[k] * direction[k];
        size += direction[k] * direction[k];
        gradient += slope[k] * slope[k];
      }
    };
    deflect(evaluate.slopeLambda, now.lambda, directionLambda);
    deflect(evaluate.slopeMu, now.mu, directionMu);
    if (gradient <= 0)
      break;
    double beta = dot < 0 && size > 0 ? -1.5 * dot / size : 0;
    double norm = 0;
    auto turn = [&](const std::vector<double> &slope,
                    std::vector<double> &direction) {
      for (size_t k = 0; k < slope.size(); ++k) {
        direction[k] = slope[k] + beta * direction[k];
        norm += direction[k] * direction[k];
      }
    };
    turn(evaluate.slopeLambda, directionLambda);
    turn(evaluate.slopeMu, directionMu);
    double length = step * std::max(target - value, 0.0) / norm;
    auto move = [&](std::vector<double> &price,
                    const std::vector<double> &direction) {
      for (size_t k = 0; k < price.size(); ++k)
        price[k] = std::max(0.0, price[k] + length * direction[k]);
    };
    move(now.lambda, directionLambda);
    move(now.mu, directionMu);
    evaluate.work += int64_t(m + rows) * 6;
  }
  c.split = -1;
  double most = 0;
  for (size_t l = 0; l < share.size(); ++l) {
    if (evaluate.lines[l].fix != kFree || model.lines[l].isTail)
      continue;
    double part = weight > 0 ? share[l] / weight : 0;
    double cost = model.lines[l].cost;
    double doubt = std::min(part, 1 - part) * (cost + 1e-9);
    if (doubt > most)
      most = doubt, c.split = int32_t(l);
  }
}

/// The most expensive moments, and the fullest, spread over the step.
std::vector<int32_t> choose(const Relaxation &relaxation,
                            const std::vector<double> &prices, int64_t limit,
                            int32_t most) {
  size_t n = relaxation.live.size();
  std::vector<double> excess(n, 0);
  for (size_t k = 0; k < n; ++k)
    excess[k] = std::max(0.0, double(relaxation.live[k] - limit));
  std::vector<int32_t> out;
  auto spread = [&](const std::vector<double> &weight,
                    const std::vector<double> &height, int32_t parts) {
    double sum = 0;
    for (double w : weight)
      sum += w;
    if (!(sum > 0))
      return;
    double before = 0;
    int32_t best = -1;
    int64_t part = 0;
    for (size_t k = 0; k < weight.size(); ++k) {
      int64_t now = std::min<int64_t>(parts - 1, int64_t(before / sum * parts));
      if (now != part && best >= 0) {
        out.push_back(best);
        best = -1;
      }
      part = now;
      if (weight[k] > 0 && (best < 0 || height[k] > height[best]))
        best = int32_t(k);
      before += weight[k];
    }
    if (best >= 0)
      out.push_back(best);
  };
  if (prices.size() == n)
    spread(prices, prices, (most + 1) / 2);
  spread(excess, excess, most / 2);
  // The moments that are above the limit even with every gap broken.
  for (size_t k = 0; k < n; ++k)
    if (relaxation.floor[k] > limit)
      out.push_back(int32_t(k));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// The tree of all cases; leaves hold prices.
struct Tree {
  struct Split {
    int32_t line, kept, broken; // -1: a leaf.
  };
  std::vector<Split> nodes = {{-1, -1, -1}};
  std::vector<Case> cases = {Case{}};
};

/// Splits the weakest case until the work is done or `target` is reached.
Tree grow(const Model &model, Prices prices, double target,
          const BranchOptions &options) {
  Ascent ascent(model, target);
  Tree tree;
  tree.cases[0].prices = std::move(prices);
  int64_t each = 4 * int64_t(model.slots) + 10 * int64_t(model.rows.size()) + 1;
  int64_t affordable = std::max<int64_t>(options.work / each, 10);
  ascent.run(tree.cases[0], int(std::min<int64_t>(affordable, 600)));
  auto weaker = [&](int32_t a, int32_t b) {
    return tree.cases[a].bound != tree.cases[b].bound
               ? tree.cases[a].bound > tree.cases[b].bound
               : a > b;
  };
  std::priority_queue<int32_t, std::vector<int32_t>, decltype(weaker)> open(
      weaker);
  open.push(0);
  constexpr int kIterations = 120;
  for (int32_t leaves = 1;
       leaves < options.maxLeaves &&
       ascent.evaluate.work + 2 * kIterations * each < options.work;
       ++leaves) {
    int32_t at = open.top();
    if (tree.cases[at].bound >= target - 0.5 || tree.cases[at].split < 0)
      break;
    open.pop();
    int32_t line = tree.cases[at].split;
    tree.nodes[at] = {line, int32_t(tree.nodes.size()),
                      int32_t(tree.nodes.size()) + 1};
    for (int8_t fix : {int8_t(kKept), int8_t(kBroken)}) {
      Case next;
      next.prices = tree.cases[at].prices;
      next.fixes = tree.cases[at].fixes;
      next.fixes.push_back({line, fix});
      ascent.run(next, kIterations);
      tree.nodes.push_back({-1, -1, -1});
      tree.cases.push_back(std::move(next));
      open.push(int32_t(tree.cases.size()) - 1);
    }
    tree.cases[at].prices = {};
  }
  return tree;
}

/// The tree with integer prices, in preorder; without `extraCost`.
BranchCertificate round(const Model &model, const Tree &tree) {
  double most = 0, mostMu = 0;
  for (const Case &c : tree.cases) {
    for (double p : c.prices.lambda)
      most = std::max(most, p / model.byteUnit);
    for (double p : c.prices.mu)
      mostMu = std::max(mostMu, p);
  }
  BranchCertificate out;
  if (!std::isfinite(most) || !std::isfinite(mostMu)) {
    out.nodes.push_back({});
    return out;
  }
  // The largest become some 2^40 and at most 2^61, the denominator 2^60.
  int exponent = 60;
  if (most > 0)
    exponent = std::min(exponent, 40 - std::ilogb(most));
  if (mostMu > 0)
    exponent = std::min(exponent, 60 - std::ilogb(mostMu));
  exponent = std::max(exponent, 0);
  auto whole = [&](double price) {
    double scaled = std::floor(std::ldexp(price, exponent) + 0.5);
    return scaled >= 1 && scaled < 0x1p62 ? int64_t(scaled) : 0;
  };
  out.denominator = int64_t(1) << exponent;
  out.moments = model.moments;
  std::vector<int32_t> rowNumber(model.rows.size(), -1);
  std::vector<int32_t> stack = {0};
  while (!stack.empty()) {
    int32_t at = stack.back();
    stack.pop_back();
    BranchCertificate::Node &node = out.nodes.emplace_back();
    if (tree.nodes[at].line >= 0) {
      const Line &line = model.lines[tree.nodes[at].line];
      node.value = line.value;
      node.after = line.first - 1;
      stack.push_back(tree.nodes[at].broken);
      stack.push_back(tree.nodes[at].kept);
      continue;
    }
    const Prices &p = tree.cases[at].prices;
    for (size_t i = 0; i < p.lambda.size(); ++i)
      if (int64_t price = whole(p.lambda[i] / model.byteUnit))
        node.lambda.push_back({int32_t(i), price});
    for (size_t r = 0; r < p.mu.size(); ++r)
      if (int64_t price = whole(p.mu[r])) {
        if (rowNumber[r] < 0) {
          rowNumber[r] = int32_t(out.rows.size());
          out.rows.push_back(model.rows[r]);
        }
        node.mu.push_back({rowNumber[r], price});
      }
  }
  return out;
}

} // namespace

BranchCertificate tmc::planning::branch(const Problem &problem,
                                        const Relaxation &relaxation,
                                        const std::vector<double> &prices,
                                        int64_t budgetBytes,
                                        const BranchOptions &options) {
  BranchCertificate nothing;
  nothing.budgetBytes = budgetBytes;
  nothing.nodes.push_back({});
  nothing.extraCost = provenByBranching(problem, nothing).value_or(0);
  int64_t limit = budgetBytes - problem.reservedBytes;
  std::vector<int32_t> chosen =
      choose(relaxation, prices, limit, std::max(options.moments, 2));
  if (chosen.empty())
    return nothing;
  Model model(problem, relaxation, chosen, limit);
  double target = double(options.knownExtraCost);
  if (options.knownExtraCost < 0) {
    target = double(relaxation.cheaperRecipes);
    for (const Gap &g : relaxation.gaps)
      target += double(g.cost) * 0.01;
  }
  // Prices move to the nearest of the chosen moments.
  Prices start;
  start.lambda.assign(chosen.size(), 0);
  start.mu.assign(model.rows.size(), 0);
  for (size_t k = 0; k < prices.size(); ++k) {
    if (prices[k] <= 0)
      continue;
    size_t i = size_t(model.interval(int32_t(k)));
    if (i == chosen.size() ||
        (i > 0 && int32_t(k) - chosen[i - 1] < chosen[i] - int32_t(k)))
      --i;
    start.lambda[i] += prices[k] * model.byteUnit;
  }
  BranchCertificate found =
      round(model, grow(model, std::move(start), target, options));
  found.budgetBytes = budgetBytes;
  absl::StatusOr<int64_t> proven = provenByBranching(problem, found);
  if (!proven.ok() || *proven <= nothing.extraCost)
    return nothing;
  found.extraCost = *proven;
  return found;
}
