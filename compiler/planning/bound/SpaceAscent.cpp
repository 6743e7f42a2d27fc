#include "compiler/planning/bound/SpaceBound.h"
#include "compiler/planning/bound/SpaceRelax.h"

#include <algorithm>
#include <cmath>

namespace tmc::planning {

namespace {

using Point = SpacePoint<double>;

// Denominator of weights and prices: 1e-9 is finer than an ascent resolves.
constexpr int64_t kDenominator = 1 << 30;
// The first step aims above the start's bound by this share of the costs...
constexpr double kReach = 0.1;
// ...and the reach is halved after this many steps without gain.
constexpr int kPatience = 20;
// The part of the last step's direction that is kept.
constexpr double kDeflection = 0.6;
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
  }

  /// Climbs `steps` steps from `at`; keeps the best point of all climbs.
  void climb(Point at) {
    // One unit of a weight moves the sum by about `costs`, one unit of a price
    // by `bytes` at each of some moments. So prices climb in units of a share.
    double unit = std::max(costs, 1.0) / bytes /
                  std::sqrt(double(model.order.size()) + 1);
    Point direction(model);
    double own = -1, reach = kReach * std::max(1.0, costs);
    int idle = 0;
    for (int64_t step = 0; step < steps; ++step) {
      Point slope(model);
      double sum = relax.sum(at, &slope);
      if (sum > bestSum) {
        bestSum = sum;
        best = at;
      }
      if (sum > own + 1e-3 * reach) {
        own = std::max(own, sum);
        idle = 0;
      } else if (++idle >= kPatience) {
        reach /= 2;
        idle = 0;
      }
      if (sum > beyond)
        return;
      double norm = 0;
      auto blend = [&](double &d, double g, double scale) {
        d = g * scale + kDeflection * d;
        norm += d * d;
      };
      visit(direction, slope, blend, unit);
      if (norm == 0)
        return;
      double length = (std::max(own, sum) + reach - sum) / norm;
      visit(
          at, direction,
          [&](double &x, double d, double scale) { x += length * d * scale; },
          unit);
      for (std::vector<double> &row : at.weights)
        project(row);
      for (std::vector<double> &row : at.prices)
        for (double &price : row)
          price = std::max(0.0, price);
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
  template <typename F>
  void visit(Point &to, const Point &by, const F &apply, double unit) const {
    for (size_t s = 0; s < to.weights.size(); ++s)
      for (size_t e = 0; e < to.weights[s].size(); ++e)
        apply(to.weights[s][e], by.weights[s][e], 1);
    for (size_t s = 0; s < to.prices.size(); ++s)
      if (model.problem.spaces[s].budgetBytes >= 0)
        for (size_t k = 0; k < to.prices[s].size(); ++k)
          apply(to.prices[s][k], by.prices[s][k], unit);
  }

  const SpaceModel &model;
  SpaceRelax<double> relax;
  int64_t steps;
  double costs = 0, bytes = 1, beyond = 0, bestSum = -1;
  Point best;
};

} // namespace

absl::StatusOr<SpaceCertificate>
ascendSpaces(const Problem &problem, const SpaceAscentOptions &options) {
  if (absl::Status status = boundable(problem); !status.ok())
    return status;
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
    ascent.climb(std::move(start));
  }
  ascent.climb(ascent.found()); // With a long reach again.
  SpaceCertificate found = ascent.certificate();
  SpaceCertificate plain = plainCertificate(problem);
  absl::StatusOr<int64_t> proven = provenBy(model, found);
  absl::StatusOr<int64_t> least = provenBy(model, plain);
  if (!proven.ok() || (least.ok() && *least > *proven))
    return plain;
  return found;
}

} // namespace tmc::planning
