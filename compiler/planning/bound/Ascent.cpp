// Subgradient steps on the sum of `Bound.h`.

#include "compiler/planning/bound/Bound.h"
#include "compiler/planning/bound/Climb.h"
#include "compiler/planning/bound/GapSum.h"

#include <cmath>

namespace tmc::planning {

namespace {

using Point = std::vector<double>;

/// With one engine. Fewest steps of a climb by work.
constexpr int64_t kLeastSteps = 10;
/// A step aims at this factor of the best gain over the start, and at least at
/// a share of the gaps' costs. With a plan it aims at the plan's cost, and at
/// least at a factor of the best gain. Source: set by hand on generated
/// problems.
constexpr double kGainAbove = 1.05, kOfGaps = 0.01, kTargetAbove = 1.0001;
/// With several engines. The first rate, which is halved this often; the parts
/// of the means of slopes and of their squares that a step keeps. Source: Adam
/// (Kingma and Ba, 2015) for the method and the parts, but for the second,
/// which forgets faster; rates set by hand on the steps of
/// bench/planning/offload.md.
constexpr double kRate = 0.3, kKeptSlope = 0.9, kKeptSquare = 0.99;
constexpr int kHalvings = 13;
/// No plan costs this many times all recipes in all trips.
constexpr double kBeyond = 1000;

/// Projects `count` weights to the nearest ones that aren't negative and have
/// the sum 1.
void project(double *weights, size_t count) {
  std::vector<double> sorted(weights, weights + count);
  std::sort(sorted.rbegin(), sorted.rend());
  double sum = 0, shift = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += sorted[i];
    double candidate = (sum - 1) / double(i + 1);
    if (sorted[i] > candidate)
      shift = candidate;
  }
  for (size_t i = 0; i < count; ++i)
    weights[i] = std::max(0.0, weights[i] - shift);
}

/// Takes from a slope in weights the part that changes their sum or makes a
/// weight of zero negative.
void flatten(const double *weights, double *slope, size_t count) {
  std::vector<char> isFree(count, 1);
  for (bool isDone = false; !isDone;) {
    double sum = 0;
    int free = 0;
    for (size_t i = 0; i < count; ++i)
      if (isFree[i]) {
        sum += slope[i];
        ++free;
      }
    isDone = true;
    for (size_t i = 0; i < count; ++i)
      if (isFree[i] && weights[i] <= 0 && slope[i] < sum / free) {
        isFree[i] = 0;
        isDone = false;
      }
    if (isDone)
      for (size_t i = 0; i < count; ++i)
        slope[i] = isFree[i] ? slope[i] - sum / free : 0;
  }
}

class Ascent {
public:
  Ascent(const GapModel &model, const std::vector<int64_t> &limits,
         const AscentOptions &options);
  Prices run();

private:
  void climbPrices();
  void climbAll();
  void growPrices();
  Point scales() const;
  void keep(double value, const Point &at) {
    if (value > bestSum)
      bestSum = value, best = at;
  }

  const GapModel &model;
  const AscentOptions &options;
  const std::vector<int32_t> borders;
  GapSum<double> sum;
  const size_t weights, engines; // Numbers of coordinates, and of engines.
  double costs = 0, beyond = 0, bestSum = 0;
  int64_t mostBytes = 1;
  Point best;
};

/// Moments that cut the step where compute has done equal parts of its load.
std::vector<int32_t> bordersOf(const GapModel &model, int stretches) {
  const Problem &p = model.problem;
  std::vector<int32_t> out;
  std::vector<double> loads; // Compute's, if nothing else may run it.
  double all = 0, done = 0;
  for (int32_t k = 0; k < int32_t(model.numMoments()); ++k) {
    const Instruction &i = p.instructions[model.order[k]];
    loads.push_back(model.isComputes(k)
                        ? double(p.recipes[i.recipes[0]].cost) *
                              double(p.segments[i.segment].trips)
                        : 0);
    all += loads.back();
  }
  for (int32_t k = 0; k < int32_t(model.numMoments()); done += loads[k++])
    if (p.engines.size() > 1 && model.isComputes(k) &&
        !std::ranges::binary_search(model.begins, k) &&
        done * stretches >= all * double(out.size() + 1))
      out.push_back(k);
  return out;
}

Ascent::Ascent(const GapModel &model, const std::vector<int64_t> &limits,
               const AscentOptions &options)
    : model(model), options(options),
      borders(bordersOf(model, options.stretches)),
      sum(model, limits, 1, false, borders), weights(sum.numWeights),
      engines(model.problem.engines.size()), best(sum.point(1, 0)) {
  const Problem &p = model.problem;
  double trips = 0;
  for (const Segment &s : p.segments)
    trips += double(s.trips);
  for (const Recipe &r : p.recipes)
    costs += double(r.cost);
  beyond = kBeyond * (costs * trips + 1);
  for (int64_t limit : limits)
    mostBytes = std::max(mostBytes, limit);
  bestSum = sum(best, nullptr);
}

/// Climbs from no prices, with one engine.
void Ascent::climbPrices() {
  const int64_t steps =
      std::max(kLeastSteps, options.work / (int64_t(model.numMoments()) +
                                            int64_t(sum.numGaps()) + 1));
  const bool hasPlan = options.knownExtraCost > 0;
  const double least = hasPlan ? double(options.knownExtraCost)
                               : kOfGaps * sum.costOfGaps(),
               above = hasPlan ? kTargetAbove : kGainAbove;
  bestSum = climb([&](const Point &at, Point *slope) { return sum(at, slope); },
                  best, {steps, least, above, beyond});
}

/// One unit of a weight moves the sum by about all costs. One unit of a price
/// moves it by the bytes of a limit at each of some moments, and stands for all
/// trips. So prices climb in units of a share.
Point Ascent::scales() const {
  Point out(best.size(), 1);
  for (size_t i = weights; i < out.size(); ++i) {
    const InstructionId at = model.order[sum.moments[i - weights]];
    const Problem &p = model.problem;
    out[i] = std::max(costs, 1.0) / double(mostBytes) /
             std::sqrt(double(model.numMoments()) + 1) *
             double(p.segments[p.instructions[at].segment].trips);
  }
  return out;
}

/// Climbs from compute alone, with several engines: each coordinate by its own
/// mean slope, over the root of its mean square.
void Ascent::climbAll() {
  const Point scale = scales();
  Point at = best, slope = at, mean(at.size(), 0), square = mean;
  double rate = kRate, keptSlope = 1, keptSquare = 1;
  for (int64_t i = 0; i < options.steps && bestSum <= beyond; ++i) {
    keep(sum(at, &slope), at);
    if (i * kHalvings / options.steps != (i - 1) * kHalvings / options.steps)
      rate /= 2;
    for (size_t w = 0; w < weights; w += engines)
      flatten(&at[w], &slope[w], engines);
    keptSlope *= kKeptSlope;
    keptSquare *= kKeptSquare;
    for (size_t k = 0; k < at.size(); ++k) {
      const double g = slope[k] * scale[k];
      mean[k] = kKeptSlope * mean[k] + (1 - kKeptSlope) * g;
      square[k] = kKeptSquare * square[k] + (1 - kKeptSquare) * g * g;
      const double root = std::sqrt(square[k] / (1 - keptSquare));
      if (root > 0)
        at[k] += rate * scale[k] * mean[k] / (1 - keptSlope) / root;
      if (k >= weights)
        at[k] = std::max(0.0, at[k]);
    }
    for (size_t w = 0; w < weights; w += engines)
      project(&at[w], engines);
  }
  growPrices();
}

/// If no plan fits the limits, the sum grows with its prices without an end.
void Ascent::growPrices() {
  for (double last = -1; bestSum > last && bestSum <= beyond;) {
    last = bestSum;
    Point at = best;
    for (size_t k = weights; k < at.size(); ++k)
      at[k] *= 2;
    keep(sum(at, nullptr), at);
  }
}

Prices Ascent::run() {
  if (weights == 0)
    climbPrices();
  else
    climbAll();
  Prices out;
  const Problem &p = model.problem;
  out.borders = borders;
  out.weights.assign(p.segments.size() + borders.size(), Point(engines, 1));
  for (size_t i = 0; i < weights; ++i)
    out.weights[i / engines][i % engines] = best[i];
  out.prices.assign(p.spaces.size(), Point(model.numMoments(), 0));
  for (size_t s = 0; s < p.spaces.size(); ++s)
    for (int32_t k = 0; k < int32_t(model.numMoments()); ++k)
      if (const int32_t i = sum.priceOf(SpaceId(s), k);
          i < sum.priceOf(SpaceId(s), k + 1))
        out.prices[s][k] = best[i];
  return out;
}

} // namespace

Prices ascend(const GapModel &model, const std::vector<int64_t> &limits,
              const AscentOptions &options) {
  return Ascent(model, limits, options).run();
}

} // namespace tmc::planning
