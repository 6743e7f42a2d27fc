#include "compiler/planning/bound/SpaceBound.h"
#include "compiler/planning/bound/SpaceRelax.h"

#include <algorithm>
#include <cmath>

namespace tmc::planning {

namespace {

using Point = SpacePoint<double>;

// Denominator of weights and prices: 1e-9 is finer than an ascent resolves.
constexpr int64_t kDenominator = 1 << 30;
// A step aims at this factor of the best gain over the start, and at least at a
// share of all costs above it: the shares of the climbs from compute alone,
// from even weights, and from the best point found. Source: set by hand on the
// steps of bench/planning/offload.md and on generated problems.
constexpr double kGainAbove = 1.05, kFromCompute = 0.003, kFromEven = 0.03,
                 kFromBest = 0.0001;
// Scale of a price against that of a weight, in a climb that turns. Source: as
// above.
constexpr double kPriceScale = 0.3;
// Steps without a gain of this part that shorten the steps, as a part of all
// steps; the factor; and the shortest step.
constexpr int64_t kPatiencePart = 60, kLeastPatience = 8, kMostPatience = 60;
constexpr double kLeastGain = 1e-6, kShorten = 0.6, kShortestStep = 1e-7;
// Strength of the turn of a direction away from the one before.
// Source: Camerini, Fratta, Maffioli (1975).
constexpr double kDeflection = 1.5;
// The climb with momentum: its first reach, as a share of all costs; the steps
// in a row that gain less than a part of the reach, and so halve it; and the
// part of a direction that is kept. Source: as above.
constexpr double kStrideReach = 0.2, kStrideGain = 1e-3, kMomentum = 0.9;
constexpr int kStridePatience = 20;
// No plan costs this many times all recipes in all trips.
constexpr double kBeyond = 1000;

/// Projects to the nearest point without negative weights and with sum 1.
void project(std::vector<double> &weights) {
  std::vector<double> sorted = weights;
  std::sort(sorted.rbegin(), sorted.rend());
  double sum = 0, shift = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    sum += sorted[i];
    double candidate = (sum - 1) / double(i + 1);
    if (sorted[i] > candidate)
      shift = candidate;
  }
  for (double &w : weights)
    w = std::max(0.0, w - shift);
}

/// Takes from a slope in weights the part that changes their sum or makes a
/// weight of zero negative.
void flatten(const std::vector<double> &weights, std::vector<double> &slope) {
  std::vector<char> isFree(slope.size(), 1);
  for (bool isDone = false; !isDone;) {
    double sum = 0;
    int count = 0;
    for (size_t i = 0; i < slope.size(); ++i)
      if (isFree[i]) {
        sum += slope[i];
        ++count;
      }
    isDone = true;
    for (size_t i = 0; i < slope.size(); ++i)
      if (isFree[i] && weights[i] <= 0 && slope[i] < sum / count) {
        isFree[i] = 0;
        isDone = false;
      }
    if (isDone)
      for (size_t i = 0; i < slope.size(); ++i)
        slope[i] = isFree[i] ? slope[i] - sum / count : 0;
  }
}

class Ascent {
public:
  Ascent(const SpaceModel &model, int64_t steps)
      : model(model), relax(model), steps(steps), best(model) {
    const Problem &p = model.problem;
    double trips = 0;
    for (const Segment &s : p.segments)
      trips += double(s.trips);
    for (const Recipe &r : p.recipes)
      costs += double(r.cost);
    beyond = kBeyond * (costs * trips + 1);
    for (const MemorySpace &space : p.spaces)
      if (space.budgetBytes > 0)
        bytes = std::max(bytes, double(space.budgetBytes));
    // One unit of a weight moves the sum by about `costs`, one unit of a price
    // by `bytes` at each of some moments. So prices climb in units of a share.
    share = std::max(costs, 1.0) / bytes /
            std::sqrt(double(model.order.size()) + 1);
  }

  /// Climbs `steps` steps from `at`; keeps the best point of all climbs. The
  /// first step aims above the start by the share `reach` of all costs.
  void climb(Point at, double reach) {
    unit = kPriceScale * share;
    Point here = at, slope(model), direction(model);
    double start = 0, own = -1, step = 1;
    int64_t idle = 0, patience = std::clamp(steps / kPatiencePart,
                                            kLeastPatience, kMostPatience);
    for (int64_t i = 0; i < steps; ++i) {
      slope = Point(model);
      const double sum = relax.sum(at, &slope);
      if (i == 0)
        start = sum;
      if (i == 0 || sum > own) {
        if (i == 0 || sum - start > (own - start) * (1 + kLeastGain))
          idle = 0;
        own = sum;
        here = at;
        if (own > bestSum) {
          bestSum = own;
          best = at;
        }
        if (own > beyond)
          return;
      } else if (++idle > patience) {
        step *= kShorten;
        if (step < kShortestStep)
          return;
        idle = 0;
        at = here;
        direction = Point(model);
        continue;
      }
      double norm = turn(at, slope, direction);
      if (norm <= 0)
        return;
      const double gain = own - start;
      const double aim = start + std::max(reach * costs, gain * kGainAbove);
      advance(at, direction, step * (aim - sum) / norm);
    }
  }

  /// Climbs `steps` steps from `at` with momentum; keeps the best point of all
  /// climbs. Unlike climb(), it never returns to its own best point, and each
  /// step aims above that by a share of all costs. It proves more where engines
  /// that copy are the busiest.
  void stride(Point at) {
    unit = share;
    Point slope(model), direction(model);
    double own = -1, reach = kStrideReach;
    int idle = 0;
    for (int64_t i = 0; i < steps; ++i) {
      slope = Point(model);
      const double sum = relax.sum(at, &slope);
      if (sum > bestSum) {
        bestSum = sum;
        best = at;
      }
      if (sum > beyond)
        return;
      if (sum > own + kStrideGain * reach * costs) {
        own = sum;
        idle = 0;
      } else if (++idle >= kStridePatience) {
        reach /= 2;
        idle = 0;
      }
      double norm = 0;
      visit([&](auto of, double scale) {
        double &d = of(direction);
        d = of(slope) * scale + kMomentum * d;
        norm += d * d;
      });
      if (norm <= 0)
        return;
      advance(at, direction, (std::max(own, sum) + reach * costs - sum) / norm);
    }
  }

  const Point &found() const { return best; }

  SpaceCertificate certificate() const {
    SpaceCertificate out;
    out.denominator = kDenominator;
    auto whole = [](double x) {
      return int64_t(std::min(x * double(kDenominator), 4e18));
    };
    for (const std::vector<double> &row : best.weights) {
      std::vector<int64_t> &weights = out.weights.emplace_back();
      int64_t left = kDenominator;
      for (double w : row) {
        weights.push_back(std::min(left, whole(w)));
        left -= weights.back();
      }
    }
    for (size_t s = 0; s < best.prices.size(); ++s)
      for (size_t k = 0; k < best.prices[s].size(); ++k)
        if (int64_t price = whole(best.prices[s][k]))
          out.prices.push_back({model.order[k], SpaceId(s), price});
    return out;
  }

private:
  /// Applies `f` to each coordinate that may move, with its scale.
  template <typename F> void visit(F &&f) const {
    for (size_t s = 0; s < model.problem.segments.size(); ++s)
      for (size_t e = 0; e < model.problem.engines.size(); ++e)
        f(
            [&](auto &point) -> auto & { return point.weights[s][e]; }, 1.0);
    for (size_t s = 0; s < model.problem.spaces.size(); ++s)
      if (model.problem.spaces[s].budgetBytes >= 0)
        for (size_t k = 0; k < model.order.size(); ++k)
          f(
              [&](auto &point) -> auto & { return point.prices[s][k]; }, unit);
  }

  /// Turns `direction` towards `slope`, away from where it leads out of the
  /// feasible points. Returns the square of its length; 0: there is none.
  double turn(const Point &at, Point &slope, Point &direction) const {
    for (size_t s = 0; s < slope.weights.size(); ++s)
      flatten(at.weights[s], slope.weights[s]);
    for (size_t s = 0; s < slope.prices.size(); ++s)
      for (size_t k = 0; k < slope.prices[s].size(); ++k)
        if (at.prices[s][k] <= 0 && slope.prices[s][k] < 0)
          slope.prices[s][k] = 0;
    double dot = 0, size = 0, steep = 0;
    visit([&](auto of, double scale) {
      double &g = of(slope);
      g *= scale;
      dot += g * of(direction);
      size += of(direction) * of(direction);
      steep += g * g;
    });
    if (steep <= 0)
      return 0;
    const double beta = dot < 0 && size > 0 ? -kDeflection * dot / size : 0;
    double norm = 0;
    visit([&](auto of, double) {
      double &d = of(direction);
      d = of(slope) + beta * d;
      norm += d * d;
    });
    return norm;
  }

  void advance(Point &at, const Point &direction, double length) const {
    visit([&](auto of, double scale) {
      of(at) += length * of(direction) * scale;
    });
    for (std::vector<double> &row : at.weights)
      project(row);
    for (std::vector<double> &row : at.prices)
      for (double &price : row)
        price = std::max(0.0, price);
  }

  const SpaceModel &model;
  SpaceRelax<double> relax;
  int64_t steps;
  double costs = 0, bytes = 1, beyond = 0, bestSum = -1;
  // A price that weighs as much as a weight of 1, and the one of this climb.
  double share = 1, unit = 1;
  Point best;
};

} // namespace

SpaceCertificate ascendSpaces(const Problem &problem,
                              const SpaceAscentOptions &options) {
  return ascend(SpaceModel(problem), options);
}

SpaceCertificate ascend(const SpaceModel &model,
                        const SpaceAscentOptions &options) {
  const Problem &problem = model.problem;
  Ascent ascent(model, options.steps);
  size_t engines = problem.engines.size();
  for (bool even : {false, true}) {
    Point start(model);
    for (std::vector<double> &row : start.weights)
      for (size_t e = 0; e < engines; ++e)
        row[e] = even ? 1 / double(engines) : e == 0;
    if (even)
      ascent.stride(start);
    ascent.climb(std::move(start), even ? kFromEven : kFromCompute);
  }
  ascent.climb(ascent.found(), kFromBest);
  SpaceCertificate found = ascent.certificate();
  SpaceCertificate plain = plainCertificate(problem);
  absl::StatusOr<int64_t> proven = provenBy(model, found);
  absl::StatusOr<int64_t> least = provenBy(model, plain);
  if (!proven.ok() || (least.ok() && *least > *proven))
    return plain;
  return found;
}

} // namespace tmc::planning
