#include "compiler/planning/bound/BranchModel.h"
#include "compiler/planning/bound/Deflection.h"

#include <algorithm>
#include <cmath>
#include <queue>

using namespace tmc::planning;
using namespace tmc::planning::branching;

namespace {

/// Weights of the old average and of the new value: how often a gap is broken.
constexpr double kMemory = 0.95, kNews = 0.05;
/// A smaller relative rise of the bound is no gain. Iterations without gain
/// after which the step is shortened; its factor, and the shortest step.
constexpr double kGain = 1e-5;
constexpr int kPatience = 12;
constexpr double kStepFall = 0.6, kLeastStep = 1e-3;
/// Cost added to each gap, so that gaps without cost can be split too.
constexpr double kNoCost = 1e-9;
/// Counted work of a price; of a cell and of a row, in estimates.
constexpr int64_t kPriceWork = 6, kSlotWork = 4, kRowWork = 10;
/// Iterations for the first case (least, most), and for each other case.
constexpr int64_t kLeastIterations = 10, kMostIterations = 600;
constexpr int kIterations = 120;
/// Costs are integers: a proved bound is rounded up.
constexpr double kLess = 0.5;
/// Without a plan, prices aim at this part of the cost of all gaps.
constexpr double kAimPart = 0.01;
/// Bits of the largest price of a byte, and of the denominator.
constexpr int kPriceBits = 40, kMostBits = 60;

/// A case: its decisions, and the best prices found for it.
struct Case {
  double bound = -kInfinity;
  std::vector<double> prices; // Moments', then rows'.
  std::vector<std::pair<int32_t, int8_t>> fixes;
  int32_t split = -1; // The line to split next.
};

class Ascent {
public:
  Ascent(const Model &model, double target)
      : evaluate(model), target(target), model(model) {}

  /// Raises `c.bound`, starting from `c.prices`; chooses the line to split.
  void run(Case &c, int iterations);

  Evaluator evaluate;
  double target;

private:
  const Model &model;
};

void Ascent::run(Case &c, int iterations) {
  if (!evaluate.decide(c.fixes)) {
    c.bound = kInfinity;
    c.prices.assign(c.prices.size(), 0);
    return;
  }
  std::vector<double> now = c.prices, direction(now.size(), 0);
  std::vector<double> share(model.lines.size(), 0);
  double step = 1;
  int idle = 0;
  double weight = 0;
  for (int i = 0; i < iterations; ++i) {
    const double value = evaluate(now);
    // Recent share of iterations that broke each gap; undecided gaps are near
    // 1/2.
    weight = weight * kMemory + kNews;
    for (size_t l = 0; l < share.size(); ++l)
      share[l] = share[l] * kMemory + kNews * evaluate.isBroken(l);
    if (value > c.bound) {
      idle = value > c.bound + kGain * std::abs(c.bound) ? 0 : idle + 1;
      c.bound = value;
      c.prices = now;
      if (c.bound >= target)
        break;
    } else {
      ++idle;
    }
    if (idle > kPatience) {
      idle = 0;
      step *= kStepFall;
      if (step < kLeastStep)
        break;
      now = c.prices;
      std::fill(direction.begin(), direction.end(), 0.0);
      continue;
    }
    const double norm = deflect(now, evaluate.slope, direction);
    if (norm <= 0)
      break;
    const double length = step * std::max(target - value, 0.0) / norm;
    for (size_t k = 0; k < now.size(); ++k)
      now[k] = std::max(0.0, now[k] + length * direction[k]);
    evaluate.work += int64_t(now.size()) * kPriceWork;
  }
  c.split = -1;
  double most = 0;
  for (size_t l = 0; l < share.size(); ++l) {
    if (evaluate.lines[l].fix != kFree || model.lines[l].isTail)
      continue;
    double part = weight > 0 ? share[l] / weight : 0;
    double cost = model.lines[l].cost;
    double doubt = std::min(part, 1 - part) * (cost + kNoCost);
    if (doubt > most)
      most = doubt, c.split = int32_t(l);
  }
}

/// The most expensive and the fullest moments, spread over the step.
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
  // Moments above the limit even with every gap broken.
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

/// Splits the weakest case until the work is used up or `target` is reached.
Tree grow(const Model &model, std::vector<double> prices, double target,
          const BranchOptions &options) {
  Ascent ascent(model, target);
  Tree tree;
  tree.cases[0].prices = std::move(prices);
  int64_t each = kSlotWork * int64_t(model.slots) +
                 kRowWork * int64_t(model.rows.size()) + 1;
  int64_t affordable = std::max<int64_t>(options.work / each, kLeastIterations);
  ascent.run(tree.cases[0],
             int(std::min<int64_t>(affordable, kMostIterations)));
  auto weaker = [&](int32_t a, int32_t b) {
    return tree.cases[a].bound != tree.cases[b].bound
               ? tree.cases[a].bound > tree.cases[b].bound
               : a > b;
  };
  std::priority_queue<int32_t, std::vector<int32_t>, decltype(weaker)> open(
      weaker);
  open.push(0);
  for (int32_t leaves = 1;
       leaves < options.maxLeaves &&
       ascent.evaluate.work + 2 * kIterations * each < options.work;
       ++leaves) {
    int32_t at = open.top();
    if (tree.cases[at].bound >= target - kLess || tree.cases[at].split < 0)
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
  const size_t moments = model.moments.size();
  double most = 0, mostMu = 0;
  for (const Case &c : tree.cases)
    for (size_t i = 0; i < c.prices.size(); ++i)
      if (i < moments)
        most = std::max(most, c.prices[i] / model.byteUnit);
      else
        mostMu = std::max(mostMu, c.prices[i]);
  BranchCertificate out;
  if (!std::isfinite(most) || !std::isfinite(mostMu)) {
    out.nodes.push_back({});
    return out;
  }
  // The largest prices become about 2^40 and at most 2^61, the denominator at
  // most 2^60.
  int exponent = kMostBits;
  if (most > 0)
    exponent = std::min(exponent, kPriceBits - std::ilogb(most));
  if (mostMu > 0)
    exponent = std::min(exponent, kMostBits - std::ilogb(mostMu));
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
    const std::vector<double> &p = tree.cases[at].prices;
    for (size_t i = 0; i < moments; ++i)
      if (int64_t price = whole(p[i] / model.byteUnit))
        node.lambda.push_back({int32_t(i), price});
    for (size_t r = 0; r < model.rows.size(); ++r)
      if (int64_t price = whole(p[moments + r])) {
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

BranchCertificate tmc::planning::branch(const GapModel &gaps,
                                        const std::vector<double> &prices,
                                        int64_t budgetBytes,
                                        const BranchOptions &options) {
  const Problem &problem = gaps.problem;
  const Relaxation relaxation = relax(gaps);
  BranchCertificate nothing;
  nothing.budgetBytes = budgetBytes;
  nothing.nodes.push_back({});
  nothing.extraCost = provenByBranching(problem, nothing).value_or(0);
  int64_t limit = budgetBytes - problem.reservedBytes;
  std::vector<int32_t> chosen =
      choose(relaxation, prices, limit, std::max(options.moments, 2));
  if (chosen.empty())
    return nothing;
  Model model(gaps, relaxation, chosen, limit);
  double target = double(options.knownExtraCost);
  if (options.knownExtraCost < 0) {
    target = double(relaxation.cheaperRecipes);
    for (const Gap &g : relaxation.gaps)
      target += double(g.cost) * kAimPart;
  }
  // Prices move to the nearest chosen moment.
  std::vector<double> start(chosen.size() + model.rows.size(), 0);
  for (size_t k = 0; k < prices.size(); ++k) {
    if (prices[k] <= 0)
      continue;
    size_t i = size_t(model.interval(int32_t(k)));
    if (i == chosen.size() ||
        (i > 0 && int32_t(k) - chosen[i - 1] < chosen[i] - int32_t(k)))
      --i;
    start[i] += prices[k] * model.byteUnit;
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
