#include "compiler/planning/bound/AnyOrder.h"

#include "compiler/planning/bound/AnyOrderSum.h"
#include "compiler/planning/bound/Climb.h"
#include "compiler/planning/bound/GapModel.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <limits>
#include <numeric>

using namespace tmc::planning;

namespace {

using Row = AnyOrderGraph::Row;
using Wide = __int128;

/// Walks from all moments of larger problems take more steps than this. Then
/// only moments with many live bytes in the program's order are looked at.
constexpr int64_t kMostWalked = 200'000'000;
/// A climb aims at this factor of the best gain, and at least at a share of the
/// costs of all gaps. No plan costs this many times all recipes.
constexpr double kGainAbove = 1.05, kOfGaps = 0.01, kBeyond = 1000;
constexpr int64_t kLeastSteps = 200;
constexpr int kSweeps = 3;
/// A price below this part of the largest share in the gain is dropped.
constexpr double kLeastShare = 1e-9;

absl::Status isOneSpaced(const Problem &problem) {
  if (isOneSpace(problem))
    return absl::OkStatus();
  return absl::UnimplementedError(
      "the bound for any order knows one space and one engine");
}

/// The cost of each instruction's cheapest recipe, in all trips.
int64_t cheapestCost(const Problem &problem) {
  int64_t sum = 0;
  for (const Instruction &i : problem.instructions) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (RecipeId r : i.recipes)
      least = std::min(least, problem.recipes[r].cost);
    sum += least * problem.segments[i.segment].trips;
  }
  return sum;
}

std::vector<InstructionId> programOrder(const Problem &problem) {
  std::vector<InstructionId> out;
  for (const Segment &s : problem.segments)
    out.insert(out.end(), s.instructions.begin(), s.instructions.end());
  return out;
}

/// The places of the largest entries of `count` parts of a list, in order.
std::vector<size_t> largestOfParts(const std::vector<int64_t> &list,
                                   size_t count) {
  std::vector<size_t> out;
  for (size_t p = 0; p < count; ++p) {
    const size_t begin = list.size() * p / count,
                 end = list.size() * (p + 1) / count;
    if (begin < end)
      out.push_back(
          size_t(std::max_element(list.begin() + begin, list.begin() + end) -
                 list.begin()));
  }
  return out;
}

/// Rows of moments that need room, at most `most`, spread over the program.
std::vector<Row> findRows(const AnyOrderGraph &graph, int64_t limitBytes,
                          int32_t most) {
  std::vector<InstructionId> order = programOrder(graph.problem);
  if (int64_t(order.size()) * (graph.size() + int64_t(order.size())) >
      kMostWalked) {
    const GapModel fixed(graph.problem);
    std::vector<InstructionId> some;
    for (size_t k : largestOfParts(fixed.live[0], size_t(most) * 2))
      some.push_back(order[k]);
    order = some;
  }
  std::vector<InstructionId> needy;
  std::vector<int64_t> bytes;
  for (InstructionId k : order)
    if (const int64_t live = graph.rowOf(k).liveBytes; live > limitBytes) {
      needy.push_back(k);
      bytes.push_back(live);
    }
  std::vector<Row> rows;
  for (size_t k : largestOfParts(bytes, std::min(bytes.size(), size_t(most))))
    rows.push_back(graph.rowOf(needy[k]));
  return rows;
}

using Prices = std::vector<double>;

double at(const AnyOrderSum &sum, const Prices &prices) {
  return sum(prices, static_cast<Prices *>(nullptr));
}

/// The best price of one row alone.
Prices bestSingle(const AnyOrderSum &sum) {
  Prices best(sum.needs.size(), 0), none = best;
  const std::vector<double> free(sum.costs.size(), 0);
  double most = 0;
  for (size_t r = 0; r < none.size(); ++r) {
    none[r] = sum.bestPrice(r, free);
    if (const double value = at(sum, none); value > most) {
      most = value;
      best = none;
    }
    none[r] = 0;
  }
  return best;
}

/// More than any plan costs.
double beyond(const Problem &problem) {
  double costs = 1, trips = 0;
  for (const Segment &s : problem.segments)
    trips += double(s.trips);
  for (const Recipe &r : problem.recipes)
    costs += double(r.cost);
  return kBeyond * costs * trips;
}

/// If a moment never fits, a price there proves that no plan exists.
bool proveNone(const AnyOrderSum &sum, Prices &prices) {
  for (size_t r = 0; r < prices.size(); ++r)
    if (const int64_t bytes = sum.missingBytes(r); bytes > 0) {
      prices.assign(prices.size(), 0);
      prices[r] = beyond(sum.graph.problem) / double(bytes);
      return true;
    }
  return false;
}

/// Raises the sum by one price after the other.
void sweep(const AnyOrderSum &sum, Prices &prices) {
  std::vector<double> rent(sum.costs.size(), 0);
  for (size_t r = 0; r < prices.size(); ++r)
    sum.addRent(r, prices[r], rent);
  for (int round = 0; round < kSweeps; ++round)
    for (size_t r = 0; r < prices.size(); ++r) {
      sum.addRent(r, -prices[r], rent);
      prices[r] = sum.bestPrice(r, rent);
      sum.addRent(r, prices[r], rent);
    }
}

/// Raises the sum from these prices.
void climbPrices(const AnyOrderSum &sum, int64_t work, Prices &prices) {
  if (proveNone(sum, prices))
    return;
  sweep(sum, prices);
  double gaps = 0;
  for (int64_t cost : sum.costs)
    gaps += double(cost);
  const int64_t entries =
      int64_t(sum.numEntries() + sum.costs.size() + sum.needs.size());
  climb([&](const Prices &p, Prices *slope) { return sum(p, slope); }, prices,
        {std::max(kLeastSteps, work / (entries + 1)),
         kOfGaps * (kGainAbove - 1) * gaps, kGainAbove,
         beyond(sum.graph.problem)});
  sweep(sum, prices);
}

/// The best sum that few of the moments give.
AnyOrderSum fewer(const AnyOrderSum &sum, int64_t limitBytes, size_t most,
                  std::vector<double> &prices) {
  std::vector<size_t> kept(prices.size());
  std::iota(kept.begin(), kept.end(), size_t(0));
  auto share = [&](size_t r) { return prices[r] * double(sum.needs[r]); };
  std::stable_sort(kept.begin(), kept.end(),
                   [&](size_t a, size_t b) { return share(a) > share(b); });
  while (!kept.empty() && (kept.size() > most || share(kept.back()) <= 0 ||
                           share(kept.back()) < kLeastShare * share(kept[0])))
    kept.pop_back();
  std::sort(kept.begin(), kept.end());
  std::vector<Row> rows;
  std::vector<double> own;
  for (size_t r : kept) {
    rows.push_back(sum.rows[r]);
    own.push_back(prices[r]);
  }
  prices = own;
  std::vector<AnyOrderCertificate::Chain> chains = findChains(sum.graph, rows);
  return {sum.graph, std::move(rows), limitBytes, std::move(chains)};
}

/// The proven cost, if the sums at these prices fit 128 bits.
absl::StatusOr<int64_t> proven(const AnyOrderSum &sum,
                               const std::vector<int64_t> &prices,
                               int64_t denominator) {
  double most = 1;
  for (size_t r = 0; r < prices.size(); ++r)
    most += double(prices[r]) *
            (double(sum.needs[r]) * double(sum.numEntries() + 1));
  for (int64_t cost : sum.costs)
    most += double(denominator) * double(cost);
  if (most > 1e37)
    return absl::OutOfRangeError("the certificate's numbers are too large");
  const std::vector<Wide> at(prices.begin(), prices.end());
  const Wide extra = sum(at, static_cast<std::vector<Wide> *>(nullptr),
                         Wide(denominator)),
             base = cheapestCost(sum.graph.problem);
  if (extra <= 0)
    return int64_t(base);
  return int64_t(std::min<Wide>(base + (extra - 1) / denominator + 1,
                                std::numeric_limits<int64_t>::max()));
}

/// The sum of the moments with a price. A certificate has no others, and its
/// checker takes the order of a chain's readers from its moments alone.
AnyOrderSum pricedSum(const AnyOrderSum &sum, int64_t limitBytes,
                      std::vector<int64_t> &prices) {
  std::vector<Row> rows;
  std::vector<int64_t> own;
  for (size_t r = 0; r < prices.size(); ++r)
    if (prices[r] > 0) {
      rows.push_back(sum.rows[r]);
      own.push_back(prices[r]);
    }
  prices = own;
  std::vector<AnyOrderCertificate::Chain> chains = findChains(sum.graph, rows);
  return {sum.graph, std::move(rows), limitBytes, std::move(chains)};
}

/// Rounds prices to integers, and states what they prove.
AnyOrderCertificate certify(const AnyOrderSum &sum,
                            const std::vector<double> &prices,
                            int64_t budgetBytes) {
  AnyOrderCertificate out;
  out.budgetBytes = budgetBytes;
  out.provenCost = cheapestCost(sum.graph.problem);
  const double most =
      prices.empty() ? 0 : *std::max_element(prices.begin(), prices.end());
  if (!(most > 0) || !std::isfinite(most))
    return out;
  // The largest price becomes about 2^36; the denominator is at most 2^60.
  constexpr int kPriceBits = 36, kMostBits = 60;
  const int exponent = std::clamp(kPriceBits - std::ilogb(most), 0, kMostBits);
  std::vector<int64_t> whole;
  for (double price : prices) {
    const double scaled = std::floor(std::ldexp(price, exponent));
    whole.push_back(scaled < 0x1p62 ? int64_t(scaled) : 0);
  }
  const AnyOrderSum priced =
      pricedSum(sum, budgetBytes - sum.graph.problem.reservedBytes, whole);
  const absl::StatusOr<int64_t> cost =
      proven(priced, whole, int64_t(1) << exponent);
  if (!cost.ok() || *cost <= out.provenCost)
    return out;
  out.provenCost = *cost;
  out.denominator = int64_t(1) << exponent;
  for (size_t r = 0; r < whole.size(); ++r)
    out.prices.push_back({priced.rows[r].moment, whole[r]});
  std::sort(out.prices.begin(), out.prices.end(),
            [](const auto &a, const auto &b) { return a.moment < b.moment; });
  out.chains = priced.chains;
  return out;
}

} // namespace

absl::StatusOr<AnyOrderCertificate>
tmc::planning::proveAnyOrder(const Problem &problem,
                             const AnyOrderOptions &options) {
  if (absl::Status status = isOneSpaced(problem); !status.ok())
    return status;
  const int64_t budget = problem.spaces[0].budgetBytes;
  const AnyOrderGraph graph(problem);
  if (budget < 0)
    return certify({graph, {}, 0, {}}, {}, budget);
  const int64_t limit = budget - problem.reservedBytes;
  std::vector<Row> rows = findRows(graph, limit, options.candidates);
  std::vector<AnyOrderCertificate::Chain> chains = findChains(graph, rows);
  AnyOrderSum sum(graph, std::move(rows), limit, std::move(chains));
  Prices prices = bestSingle(sum);
  climbPrices(sum, options.work, prices);
  const AnyOrderSum few =
      fewer(sum, limit, size_t(std::max(options.moments, 0)), prices);
  climbPrices(few, options.work / 2, prices);
  return certify(few, prices, budget);
}

absl::StatusOr<int64_t>
tmc::planning::costProvenInAnyOrder(const Problem &problem,
                                    const AnyOrderCertificate &certificate) {
  if (absl::Status status = isOneSpaced(problem); !status.ok())
    return status;
  const AnyOrderGraph graph(problem);
  std::vector<Row> rows;
  std::vector<int64_t> prices;
  const int64_t limit = certificate.budgetBytes - problem.reservedBytes;
  for (const AnyOrderCertificate::Price &p : certificate.prices) {
    Row row = graph.rowOf(p.moment);
    if (row.liveBytes <= limit)
      return absl::InvalidArgumentError(
          absl::StrCat("'", problem.instructions[p.moment].name, "' has room"));
    rows.push_back(std::move(row));
    prices.push_back(p.price);
  }
  const AnyOrderSum sum(graph, std::move(rows), limit, certificate.chains);
  return proven(sum, prices, certificate.denominator);
}
