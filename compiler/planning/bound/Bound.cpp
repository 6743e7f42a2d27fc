#include "compiler/planning/bound/Bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace tmc::planning;

namespace {

/// Fewest iterations; iterations in a row without gain that shorten the steps,
/// as a part of all; the factor of the steps; and the shortest step.
constexpr int64_t kLeastIterations = 10, kPatiencePart = 60, kLeastPatience = 8,
                  kMostPatience = 60;
constexpr double kShorten = 0.6, kShortestStep = 1e-7;
/// A gain below this part of the value doesn't count.
constexpr double kLeastGain = 1e-6;
/// Targets. Without a plan: this part of the cost of all gaps, or this factor
/// of the best value. With a plan: at least this factor of the best value.
constexpr double kGuessPart = 0.01, kGuessAbove = 1.05, kTargetAbove = 1.0001;
/// Strength of the turn of a direction away from the one before.
/// Source: Camerini, Fratta, Maffioli (1975).
constexpr double kDeflection = 1.5;

/// Subgradient steps on the prices of one relaxation.
class PriceAscent {
public:
  PriceAscent(const Relaxation &relaxation, int64_t limitBytes,
              const DualOptions &options);
  std::vector<double> run();

private:
  struct G {
    int32_t first, last; // [first, last)
    double bytes, cost;
  };

  double evaluate();
  bool turn();

  const DualOptions &options;
  size_t n;
  std::vector<double> prices, prefix, gradient, direction, diff, over;
  std::vector<G> gaps;
  double norm = 0; // Square of the direction's length.
  bool anyOver = false;
};

PriceAscent::PriceAscent(const Relaxation &relaxation, int64_t limitBytes,
                         const DualOptions &options)
    : options(options), n(relaxation.live.size()), prices(n, 0),
      prefix(n + 1, 0), gradient(n), direction(n, 0), diff(n + 1), over(n) {
  // Only gaps that contain a moment with a price matter; such a moment is above
  // the limit when all values are kept.
  std::vector<int32_t> above(n + 1, 0);
  for (size_t k = 0; k < n; ++k) {
    over[k] = double(relaxation.live[k] - limitBytes);
    anyOver |= over[k] > 0;
    above[k + 1] = above[k] + (over[k] > 0);
  }
  for (const Gap &g : relaxation.gaps)
    if (above[g.last + 1] > above[g.first])
      gaps.push_back({g.first, g.last + 1, double(g.bytes), double(g.cost)});
}

/// L at the prices; `diff` becomes the bytes of the broken gaps.
double PriceAscent::evaluate() {
  for (size_t k = 0; k < n; ++k)
    prefix[k + 1] = prefix[k] + prices[k];
  std::fill(diff.begin(), diff.end(), 0.0);
  double value = 0;
  for (size_t k = 0; k < n; ++k)
    value += prices[k] * over[k];
  for (const G &g : gaps) {
    double gain = g.bytes * (prefix[g.last] - prefix[g.first]) - g.cost;
    if (gain > 0) {
      value -= gain;
      diff[g.first] += g.bytes;
      diff[g.last] -= g.bytes;
    }
  }
  return value;
}

/// The next direction, deflected against zigzags; false: there is none.
bool PriceAscent::turn() {
  double broken = 0;
  for (size_t k = 0; k < n; ++k) {
    broken += diff[k];
    gradient[k] = over[k] - broken;
    // Prices that are zero and pushed down don't move.
    if (prices[k] <= 0 && gradient[k] < 0)
      gradient[k] = 0;
  }
  double dot = 0, size = 0;
  for (size_t k = 0; k < n; ++k) {
    dot += gradient[k] * direction[k];
    size += direction[k] * direction[k];
  }
  double gradientSize = 0;
  for (size_t k = 0; k < n; ++k)
    gradientSize += gradient[k] * gradient[k];
  double beta = dot < 0 && size > 0 ? -kDeflection * dot / size : 0;
  norm = 0;
  for (size_t k = 0; k < n; ++k) {
    direction[k] = gradient[k] + beta * direction[k];
    norm += direction[k] * direction[k];
  }
  return norm > 0 && gradientSize > 0;
}

std::vector<double> PriceAscent::run() {
  std::vector<double> best = prices;
  if (!anyOver)
    return best;
  int64_t perIteration = int64_t(n + gaps.size()) + 1;
  int64_t iterations = std::max(kLeastIterations, options.work / perIteration);
  double bestValue = 0;
  double target =
      options.knownExtraCost > 0 ? double(options.knownExtraCost) : 0;
  double guess = target;
  if (target <= 0) {
    // Without a plan, aim slightly above the best value.
    for (const G &g : gaps)
      guess += g.cost;
    guess *= kGuessPart;
  }
  double step = 1;
  int64_t sinceBest = 0, patience = std::clamp(iterations / kPatiencePart,
                                               kLeastPatience, kMostPatience);
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    double value = evaluate();
    if (value > bestValue) {
      if (value > bestValue * (1 + kLeastGain))
        sinceBest = 0;
      bestValue = value;
      best = prices;
    } else if (++sinceBest > patience) {
      // The steps are too long: shorten them, and restart from the best prices.
      step *= kShorten;
      sinceBest = 0;
      prices = best;
      std::fill(direction.begin(), direction.end(), 0.0);
      if (step < kShortestStep)
        break;
      continue;
    }
    if (!turn())
      break;
    double aim = target > 0 ? std::max(target, bestValue * kTargetAbove)
                            : std::max(guess, bestValue * kGuessAbove);
    double length = step * std::max(aim - value, 0.0) / norm;
    for (size_t k = 0; k < n; ++k)
      prices[k] = std::max(0.0, prices[k] + length * direction[k]);
  }
  return best;
}

} // namespace

std::vector<double> tmc::planning::ascend(const Relaxation &relaxation,
                                          int64_t limitBytes,
                                          const DualOptions &options) {
  return PriceAscent(relaxation, limitBytes, options).run();
}

Certificate tmc::planning::certify(const Problem &problem, const Relaxation &,
                                   const std::vector<double> &prices,
                                   int64_t budgetBytes) {
  Certificate best;
  best.budgetBytes = budgetBytes;
  best.extraCost = provenExtraCost(problem, best).value_or(0);
  double most = 0;
  for (double p : prices)
    most = std::max(most, p);
  if (!(most > 0) || !std::isfinite(most))
    return best;
  // The largest price becomes about 2^36; the denominator is at most 2^60.
  int exponent = std::clamp(36 - std::ilogb(most), 0, 60);
  Certificate c = best;
  c.denominator = int64_t(1) << exponent;
  for (size_t k = 0; k < prices.size(); ++k) {
    double scaled = std::floor(std::ldexp(prices[k], exponent));
    if (scaled >= 1 && scaled < 0x1p62)
      c.lambda.push_back({int32_t(k), int64_t(scaled)});
  }
  absl::StatusOr<int64_t> proven = provenExtraCost(problem, c);
  if (!proven.ok() || *proven <= best.extraCost)
    return best;
  c.extraCost = *proven;
  return c;
}

int64_t tmc::planning::impossibleBelowInOrder(const Problem &problem,
                                              const Relaxation &relaxation) {
  int64_t most = 0;
  for (int64_t bytes : relaxation.floor)
    most = std::max(most, bytes);
  return most + problem.reservedBytes;
}

/// Bytes on the device while `r` runs in a last trip, minus the most that
/// overwriting saves. `isCounted`: values that are counted already.
static int64_t footprint(const Problem &problem, const Recipe &r,
                         const std::vector<char> &isCounted) {
  // In a segment of one trip, a carried value is what it begins as.
  auto named = [&](ValueId v) {
    const Value &value = problem.values[v];
    return value.kind == ValueKind::Carried &&
                   problem.segments[r.segment].trips == 1
               ? value.initial
               : v;
  };
  auto bytesOf = [&](ValueId v) {
    return v != kNone && problem.values[v].space == 0 ? problem.values[v].bytes
                                                      : 0;
  };
  int64_t bytes = r.workspaceSpace == 0 ? r.workspaceBytes : 0;
  for (ValueId read : r.reads)
    if (ValueId v = named(read); v != kNone && !isCounted[v])
      bytes += bytesOf(v);
  for (ValueId w : r.writes) {
    int64_t saved = bytesOf(problem.values[w].updates);
    for (const Overwrite &o : r.overwrites)
      if (o.written == w)
        saved = std::max(saved, bytesOf(named(o.read)));
    bytes += std::max<int64_t>(0, bytesOf(w) - saved);
  }
  return bytes;
}

int64_t tmc::planning::impossibleBelow(const Problem &problem) {
  // Persistent values without a form in another space stay.
  std::vector<char> elsewhere(problem.values.size(), 0), stays = elsewhere;
  for (const Value &value : problem.values)
    if (value.formOf != kNone && value.kind == ValueKind::Persistent)
      elsewhere[value.formOf] = 1;
  int64_t always = 0;
  for (size_t v = 0; v < stays.size(); ++v) {
    const Value &value = problem.values[v];
    stays[v] = value.space == 0 && value.kind == ValueKind::Persistent &&
               value.updates == kNone && !elsewhere[v];
    always += stays[v] ? value.bytes : 0;
  }
  // A new version is in the place of the old one.
  for (size_t v = 0; v < stays.size(); ++v)
    if (ValueId old = problem.values[v].updates; old != kNone)
      stays[v] = stays[old];
  int64_t most = 0;
  for (const Instruction &instruction : problem.instructions) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (RecipeId r : instruction.recipes)
      least = std::min(least, footprint(problem, problem.recipes[r], stays));
    most = std::max(most, least);
  }
  return problem.reservedBytes + always + most;
}
