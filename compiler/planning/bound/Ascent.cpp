// Subgradient steps on the sum of `Bound.h`.

#include "compiler/planning/bound/Bound.h"
#include "compiler/planning/bound/Deflection.h"
#include "compiler/planning/bound/GapSum.h"

#include <cmath>

namespace tmc::planning {

namespace {

using Point = std::vector<double>;

/// Fewest steps of a climb by work; steps in a row without gain that shorten
/// the steps, as a part of all; the factor; and the shortest step.
constexpr int64_t kLeastSteps = 10, kPatiencePart = 60, kLeastPatience = 8,
                  kMostPatience = 60;
constexpr double kShorten = 0.6, kShortestStep = 1e-7;
/// A gain below this part of the gain so far doesn't count.
constexpr double kLeastGain = 1e-6;
/// A step aims at this factor of the best gain over the start, and at least at
/// a share of all costs: with one engine of the gaps' costs, else of all
/// recipes' for the climbs from compute alone, from even weights, and from the
/// best point found. Source: set by hand on the steps of
/// bench/planning/offload.md and on generated problems.
constexpr double kGainAbove = 1.05, kOfGaps = 0.01, kFromCompute = 0.003,
                 kFromEven = 0.03, kFromBest = 0.0001;
/// With a plan, a step aims at the plan's cost, and at least at this factor of
/// the best gain.
constexpr double kTargetAbove = 1.0001;
/// Scale of a price against that of a weight, in a climb that turns. Source: as
/// above.
constexpr double kPriceScale = 0.3;
/// The climb with momentum: its first reach, as a share of all costs; the steps
/// in a row that gain less than a part of the reach, and so halve it; and the
/// part of a direction that is kept. Source: as above.
constexpr double kStrideReach = 0.2, kStrideGain = 1e-3, kMomentum = 0.9;
constexpr int kStridePatience = 20;
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
  /// The gain over a climb's start that its next step aims at.
  struct Aim {
    double least = 0, above = kGainAbove;
  };
  void climb(Point at, const Aim &aim, double priceScale);
  void stride(Point at);
  void setScale(double priceScale);
  double turn(const Point &at, Point &slope, Point &direction) const;
  void advance(Point &at, const Point &direction, double length) const;
  void keep(double value, const Point &at) {
    if (value > bestSum)
      bestSum = value, best = at;
  }

  const GapModel &model;
  const AscentOptions &options;
  GapSum<double> sum;
  const size_t weights, engines; // Numbers of coordinates, and of engines.
  int64_t steps;
  double costs = 0, beyond = 0, bestSum = 0;
  double share = 1; // A price that weighs as much as a weight of 1.
  Point best, none, scale;
};

Ascent::Ascent(const GapModel &model, const std::vector<int64_t> &limits,
               const AscentOptions &options)
    : model(model), options(options), sum(model, limits, 1, false),
      weights(sum.numWeights), engines(model.problem.engines.size()),
      steps(options.steps), best(sum.point(1, 0)), none(sum.point(0, 0)),
      scale(best.size(), 1) {
  const Problem &p = model.problem;
  double trips = 0, bytes = 1;
  for (const Segment &s : p.segments)
    trips += double(s.trips);
  for (const Recipe &r : p.recipes)
    costs += double(r.cost);
  beyond = kBeyond * (costs * trips + 1);
  for (int64_t limit : limits)
    if (limit != kNoLimit)
      bytes = std::max(bytes, double(limit));
  // One unit of a weight moves the sum by about `costs`, one unit of a price by
  // `bytes` at each of some moments. So prices climb in units of a share.
  share =
      std::max(costs, 1.0) / bytes / std::sqrt(double(model.numMoments()) + 1);
  if (weights == 0)
    steps = std::max(kLeastSteps, options.work / (int64_t(model.numMoments()) +
                                                  int64_t(sum.numGaps()) + 1));
  bestSum = sum(best, nullptr);
}

/// Sets the scale of prices against that of weights. A price stands for all
/// trips.
void Ascent::setScale(double priceScale) {
  if (weights == 0)
    return; // Prices alone move: their scale changes nothing.
  const Problem &p = model.problem;
  for (size_t i = weights; i < scale.size(); ++i) {
    const InstructionId at = model.order[sum.moments[i - weights]];
    scale[i] = priceScale * share *
               double(p.segments[p.instructions[at].segment].trips);
  }
}

/// Turns `direction` towards `slope`, within the feasible points. Returns the
/// square of its length; 0: there is none.
double Ascent::turn(const Point &at, Point &slope, Point &direction) const {
  for (size_t i = 0; i < weights; i += engines)
    flatten(&at[i], &slope[i], engines);
  for (size_t i = 0; i < at.size(); ++i)
    slope[i] *= scale[i];
  return deflect(at, slope, direction, weights);
}

void Ascent::advance(Point &at, const Point &direction, double length) const {
  for (size_t i = 0; i < at.size(); ++i) {
    at[i] += length * direction[i] * scale[i];
    if (i >= weights)
      at[i] = std::max(0.0, at[i]);
  }
  for (size_t i = 0; i < weights; i += engines)
    project(&at[i], engines);
}

/// Climbs from `at`; keeps the best point of all climbs.
void Ascent::climb(Point at, const Aim &aim, double priceScale) {
  setScale(priceScale);
  Point here = at, slope = at, direction = none;
  double start = 0, own = 0, step = 1;
  int64_t idle = 0, patience = std::clamp(steps / kPatiencePart, kLeastPatience,
                                          kMostPatience);
  for (int64_t i = 0; i < steps && own <= beyond; ++i) {
    const double value = sum(at, &slope);
    if (i == 0)
      start = own = value;
    if (value > own) {
      if (value - start > (own - start) * (1 + kLeastGain))
        idle = 0;
      own = value;
      here = at;
    } else if (++idle > patience) {
      // The steps are too long: shorten them, and restart from the best point.
      step *= kShorten;
      idle = 0;
      at = here;
      direction = none;
      if (step < kShortestStep)
        break;
      continue;
    }
    const double norm = turn(at, slope, direction);
    if (norm <= 0)
      break;
    const double gain = std::max(aim.least, (own - start) * aim.above);
    advance(at, direction, step * std::max(gain - (value - start), 0.0) / norm);
  }
  keep(own, here);
}

/// Climbs from `at` with momentum; keeps the best point of all climbs. Unlike
/// climb(), it never returns to its own best point, and each step aims above
/// that by a share of all costs. It proves more where engines that copy are the
/// busiest.
void Ascent::stride(Point at) {
  setScale(1);
  Point slope = at, direction = none;
  double own = -std::numeric_limits<double>::infinity(), reach = kStrideReach;
  int idle = 0;
  for (int64_t i = 0; i < steps; ++i) {
    const double value = sum(at, &slope);
    keep(value, at);
    if (value > beyond)
      return;
    if (value > own + kStrideGain * reach * costs) {
      own = value;
      idle = 0;
    } else if (++idle >= kStridePatience) {
      reach /= 2;
      idle = 0;
    }
    double norm = 0;
    for (size_t k = 0; k < at.size(); ++k) {
      direction[k] = slope[k] * scale[k] + kMomentum * direction[k];
      norm += direction[k] * direction[k];
    }
    if (norm <= 0)
      return;
    advance(at, direction,
            (std::max(own, value) + reach * costs - value) / norm);
  }
}

Prices Ascent::run() {
  if (weights == 0) {
    Aim aim{kOfGaps * sum.costOfGaps(), kGainAbove};
    if (options.knownExtraCost > 0)
      aim = {double(options.knownExtraCost), kTargetAbove};
    climb(best, aim, 1);
  } else {
    // Weights alone first and last: their best point is found exactly.
    const double even = 1 / double(engines);
    climb(best, {kFromCompute * costs, kGainAbove}, 0);
    climb(best, {kFromCompute * costs, kGainAbove}, kPriceScale);
    stride(sum.point(even, even));
    climb(sum.point(even, even), {kFromEven * costs, kGainAbove}, kPriceScale);
    climb(best, {kFromBest * costs, kGainAbove}, kPriceScale);
    climb(best, {kFromBest * costs, kGainAbove}, 0);
  }
  Prices out;
  const Problem &p = model.problem;
  out.weights.assign(p.segments.size(), std::vector<double>(engines, 0));
  for (size_t i = 0; i < p.segments.size() * engines; ++i)
    out.weights[i / engines][i % engines] = weights ? best[i] : 1;
  out.prices.assign(p.spaces.size(),
                    std::vector<double>(model.numMoments(), 0));
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
