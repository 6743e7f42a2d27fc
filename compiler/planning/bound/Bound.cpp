#include "compiler/planning/bound/Bound.h"

#include "compiler/planning/bound/BoundCheck.h"
#include "compiler/planning/bound/GapSum.h"

#include <cmath>
#include <limits>

using namespace tmc::planning;

namespace {

/// True if all sums at `point` fit 128 bits, by a generous estimate.
bool isSmall(const GapModel &model, const std::vector<int64_t> &limits,
             const std::vector<Wide> &point) {
  double bytes = 1, costs = 1, all = 0;
  for (const Value &v : model.problem.values)
    bytes += double(v.bytes);
  for (int64_t limit : limits)
    bytes += limit == kNoLimit ? 0 : std::fabs(double(limit));
  for (const Recipe &r : model.problem.recipes) {
    costs += double(r.cost);
    bytes += double(r.workspaceBytes);
  }
  for (const Segment &s : model.problem.segments)
    costs *= double(s.trips);
  for (Wide x : point)
    all += double(x);
  const double terms = double(model.gaps.size() + model.variants.size() + 1);
  return all * (costs + bytes) * terms < 1e37;
}

} // namespace

std::vector<int64_t> tmc::planning::limitsOf(const Problem &problem,
                                             int64_t budgetBytes) {
  std::vector<int64_t> limits;
  for (size_t s = 0; s < problem.spaces.size(); ++s) {
    const int64_t budget = s ? problem.spaces[s].budgetBytes : budgetBytes;
    limits.push_back(budget < 0 ? kNoLimit
                                : budget - problem.reservedOf(SpaceId(s)));
  }
  return limits;
}

Certificate tmc::planning::plainCertificate(const Problem &problem) {
  Certificate out;
  out.budgetBytes = problem.spaces[0].budgetBytes;
  out.weights.assign(problem.segments.size(),
                     std::vector<int64_t>(problem.engines.size(), 0));
  for (std::vector<int64_t> &row : out.weights)
    row[0] = 1;
  return out;
}

int64_t tmc::planning::loadOf(const Problem &problem) {
  int64_t load = 0;
  for (const Instruction &instruction : problem.instructions) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (RecipeId r : instruction.recipes) {
      const Recipe &recipe = problem.recipes[r];
      least = std::min(least, recipe.engine == 0 ? recipe.cost : 0);
    }
    load += least * problem.segments[instruction.segment].trips;
  }
  return load;
}

absl::StatusOr<int64_t>
tmc::planning::costProvenBy(const GapModel &model,
                            const Certificate &certificate) {
  const Problem &problem = model.problem;
  if (absl::Status status = checkForm(problem, certificate); !status.ok())
    return status;
  const Wide one = certificate.denominator;
  const std::vector<int64_t> limits =
      limitsOf(problem, certificate.budgetBytes);
  std::vector<int32_t> momentOf(problem.instructions.size(), kNone), borders;
  for (size_t k = 0; k < model.order.size(); ++k)
    momentOf[model.order[k]] = int32_t(k);
  for (InstructionId border : certificate.borders)
    borders.push_back(momentOf[border]);
  GapSum<Wide> sum(model, limits, one, true, borders);
  std::vector<Wide> point = sum.point(0, 0);
  for (size_t s = 0, w = 0; s < certificate.weights.size(); ++s)
    for (int64_t weight : certificate.weights[s])
      point[w++] = weight;
  for (const Certificate::Price &p : certificate.prices)
    point[sum.priceOf(p.space, momentOf[p.moment])] = p.price;
  if (!isSmall(model, limits, point))
    return absl::OutOfRangeError("the certificate's numbers are too large");
  Wide total = sum(point, nullptr);
  for (int64_t cost : model.costs)
    total += one * cost;
  const Wide bound = total <= 0 ? Wide(0) : (total + one - 1) / one;
  // A bound beyond all plans means that no plan exists.
  return int64_t(std::min<Wide>(bound, std::numeric_limits<int64_t>::max()));
}

Certificate tmc::planning::certify(const GapModel &model, const Prices &prices,
                                   int64_t budgetBytes) {
  Certificate plain = plainCertificate(model.problem);
  plain.budgetBytes = budgetBytes;
  plain.provenCost = costProvenBy(model, plain).value_or(0);
  double most = 0;
  for (const std::vector<double> &row : prices.prices)
    for (double p : row)
      most = std::max(most, p);
  if (!std::isfinite(most) || (most <= 0 && model.problem.engines.size() == 1))
    return plain;
  // The largest price becomes about 2^36; the denominator is at most 2^60.
  constexpr int kPriceBits = 36, kMostBits = 60;
  const int exponent =
      most > 0 ? std::clamp(kPriceBits - std::ilogb(most), 0, kMostBits)
               : kPriceBits;
  auto whole = [&](double x) {
    const double scaled = std::floor(std::ldexp(x, exponent));
    return scaled >= 1 && scaled < 0x1p62 ? int64_t(scaled) : 0;
  };
  Certificate found = plain;
  found.denominator = int64_t(1) << exponent;
  found.weights.resize(prices.weights.size());
  for (int32_t border : prices.borders)
    found.borders.push_back(model.order[border]);
  for (size_t s = 0; s < prices.weights.size(); ++s) {
    int64_t left = found.denominator;
    found.weights[s].clear();
    for (double weight : prices.weights[s]) {
      found.weights[s].push_back(std::min(left, whole(weight)));
      left -= found.weights[s].back();
    }
  }
  for (size_t s = 0; s < prices.prices.size(); ++s)
    for (size_t k = 0; k < prices.prices[s].size(); ++k)
      if (int64_t price = whole(prices.prices[s][k]))
        found.prices.push_back({model.order[k], SpaceId(s), price});
  found.provenCost = costProvenBy(model, found).value_or(0);
  return found.provenCost > plain.provenCost ? found : plain;
}

Certificate tmc::planning::prove(const Problem &problem,
                                 const AscentOptions &options) {
  const GapModel model(problem);
  const int64_t budget = problem.spaces[0].budgetBytes;
  return certify(model, ascend(model, limitsOf(problem, budget), options),
                 budget);
}

int64_t tmc::planning::impossibleBelowInOrder(const GapModel &model) {
  const std::vector<int64_t> floor = relax(model).floor;
  return (floor.empty() ? 0 : std::ranges::max(floor)) +
         model.problem.reservedBytes;
}

int64_t tmc::planning::impossibleBelow(const Problem &problem) {
  return GapModel(problem).largestBytes + problem.reservedBytes;
}
