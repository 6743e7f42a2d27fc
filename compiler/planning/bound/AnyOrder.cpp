#include "compiler/planning/bound/AnyOrder.h"

#include "compiler/planning/bound/AnyOrderInputs.h"
#include "compiler/planning/bound/AnyOrderSum.h"
#include "compiler/planning/bound/Climb.h"
#include "compiler/planning/bound/GapModel.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

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
/// Inputs are sought at fewer moments until so many steps fit the work, which
/// take about so many operations per value. Source: GPT-2 XL and Mistral 7B
/// come within 0.1 points of their best in 1,200 steps.
constexpr int64_t kInputSteps = 1200, kPerHeld = 20;
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
  const std::vector<double> free(sum.gaps.costs.size(), 0);
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
      prices[r] = beyond(sum.gaps.graph.problem) / double(bytes);
      return true;
    }
  return false;
}

/// Raises the sum by one price after the other.
void sweep(const AnyOrderSum &sum, Prices &prices) {
  std::vector<double> rent(sum.gaps.costs.size(), 0);
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
  for (int64_t cost : sum.gaps.costs)
    gaps += double(cost);
  const int64_t entries =
      int64_t(sum.numEntries() + sum.gaps.costs.size() + sum.needs.size());
  climb([&](const Prices &p, Prices *slope) { return sum(p, slope); }, prices,
        {std::max(kLeastSteps, work / (entries + 1)),
         kOfGaps * (kGainAbove - 1) * gaps, kGainAbove,
         beyond(sum.gaps.graph.problem)});
  sweep(sum, prices);
}

AnyOrderSum sumOf(const AnyOrderGraph &graph, std::vector<Row> rows,
                  int64_t limitBytes) {
  return {AnyOrderGaps(graph, findChains(graph, rows)), std::move(rows),
          limitBytes};
}

/// The best sum that few of the moments give.
AnyOrderSum fewer(const AnyOrderSum &sum, int64_t limitBytes, size_t most,
                  Prices &prices) {
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
  return sumOf(sum.gaps.graph, std::move(rows), limitBytes);
}

/// Some of the rows, spread over the program, at which inputs count.
std::vector<Row> findInputRows(const std::vector<Row> &rows, int64_t limitBytes,
                               const AnyOrderOptions &options) {
  std::vector<int64_t> needs;
  for (const Row &row : rows)
    needs.push_back(row.liveBytes - limitBytes);
  for (int32_t count = options.inputMoments; count > 0; count /= 2) {
    std::vector<Row> some;
    int64_t held = 0;
    for (size_t r : largestOfParts(needs, size_t(count))) {
      some.push_back(rows[r]);
      held += int64_t(rows[r].held.size());
    }
    if (held * kPerHeld * kInputSteps <= options.inputWork)
      return some;
  }
  return {};
}

/// Both parts of the sum.
struct Sums {
  Sums(const AnyOrderGraph &graph, const std::vector<Row> &rows,
       const std::vector<Row> &inputRows, int64_t limitBytes,
       std::vector<AnyOrderCertificate::Chain> chains)
      : own(AnyOrderGaps(graph, std::move(chains)), rows, limitBytes),
        inputRows(inputRows), inputs(own.gaps, inputRows, limitBytes) {}
  /// With the chains that all rows give.
  Sums(const AnyOrderGraph &graph, const std::vector<Row> &rows,
       const std::vector<Row> &inputRows, int64_t limitBytes)
      : Sums(graph, rows, inputRows, limitBytes,
             findChains(graph, eachOnce(rows, inputRows))) {}

  AnyOrderSum own;
  std::vector<Row> inputRows;
  AnyOrderInputs inputs;

private:
  static std::vector<Row> eachOnce(std::vector<Row> rows,
                                   const std::vector<Row> &more) {
    std::set<InstructionId> known;
    for (const Row &row : rows)
      known.insert(row.moment);
    for (const Row &row : more)
      if (known.insert(row.moment).second)
        rows.push_back(row);
    return rows;
  }
};

/// A price for each row of both parts.
template <typename N> struct Point {
  std::vector<N> rows;
  AnyOrderInputs::Prices<N> inputs;
};

/// More than any number in the sum.
double largestNumber(const Sums &sums, const Point<int64_t> &at,
                     int64_t denominator) {
  double most = 1;
  auto count = [](AnyOrderGaps::Range r) { return double(r.end - r.begin); };
  for (size_t r = 0; r < at.rows.size(); ++r)
    most += double(at.rows[r]) * double(sums.own.needs[r]) *
            double(sums.own.numEntries() + 1);
  const AnyOrderInputs &inputs = sums.inputs;
  for (size_t m = 0; m < inputs.moments.size(); ++m) {
    most += double(at.inputs.bytes[m]) * double(inputs.moments[m].need);
    for (int32_t s = inputs.moments[m].firstSlot;
         s < inputs.moments[m].lastSlot; ++s)
      most += double(at.inputs.bytes[m]) * double(inputs.slots[s].bytes) *
              (1 + count(inputs.slots[s].gaps));
  }
  for (size_t p = 0; p < inputs.pairs.size(); ++p)
    most += double(at.inputs.pairs[p]) *
            (2 + count(inputs.slots[inputs.pairs[p].input].gaps));
  for (int64_t cost : sums.own.gaps.costs)
    most += double(denominator) * double(cost);
  return most;
}

/// The proven cost, if the sums at these prices fit 128 bits.
absl::StatusOr<int64_t> proven(const Sums &sums, const Point<int64_t> &at,
                               int64_t denominator) {
  if (largestNumber(sums, at, denominator) > 1e37)
    return absl::OutOfRangeError("the certificate's numbers are too large");
  auto wide = [](const std::vector<int64_t> &list) {
    return std::vector<Wide>(list.begin(), list.end());
  };
  std::vector<Wide> rents(sums.own.gaps.costs.size(), 0);
  Wide extra = sums.own.addRents(wide(at.rows), rents);
  extra += sums.inputs.addRents<Wide>(
      {wide(at.inputs.bytes), wide(at.inputs.pairs)}, rents);
  extra -= sums.own.paidBack(rents, Wide(denominator));
  const Wide base = cheapestCost(sums.own.gaps.graph.problem);
  if (extra <= 0)
    return int64_t(base);
  return int64_t(std::min<Wide>(base + (extra - 1) / denominator + 1,
                                std::numeric_limits<int64_t>::max()));
}

/// The exponent by which prices become integers: the largest price of a byte
/// about 2^36, a pair's at most 2^60, the denominator at most 2^60.
int exponentOf(const Point<double> &at) {
  constexpr int kPriceBits = 36, kMostBits = 60;
  int exponent = kMostBits;
  auto meet = [&](const std::vector<double> &list, int bits) {
    for (double price : list)
      if (price > 0)
        exponent = std::min(exponent, bits - std::ilogb(price));
  };
  meet(at.rows, kPriceBits);
  meet(at.inputs.bytes, kPriceBits);
  meet(at.inputs.pairs, kMostBits);
  return std::max(exponent, 0);
}

/// The sums of the moments with a price, and these prices. A certificate has
/// no others, and its checker takes the order of a chain's readers from its
/// moments alone.
Sums pricedSums(const Sums &sums, int64_t limitBytes, Point<int64_t> &at) {
  std::vector<Row> rows, inputRows;
  Point<int64_t> own;
  for (size_t r = 0; r < at.rows.size(); ++r)
    if (at.rows[r] > 0) {
      rows.push_back(sums.own.rows[r]);
      own.rows.push_back(at.rows[r]);
    }
  for (size_t m = 0; m < sums.inputRows.size(); ++m) {
    if (at.inputs.bytes[m] <= 0)
      continue;
    const AnyOrderInputs::Moment &moment = sums.inputs.moments[m];
    inputRows.push_back(sums.inputRows[m]);
    own.inputs.bytes.push_back(at.inputs.bytes[m]);
    own.inputs.pairs.insert(own.inputs.pairs.end(),
                            at.inputs.pairs.begin() + moment.firstPair,
                            at.inputs.pairs.begin() + moment.lastPair);
  }
  at = std::move(own);
  return {sums.own.gaps.graph, rows, inputRows, limitBytes};
}

/// Rounds prices to integers, and states what they prove.
AnyOrderCertificate certify(const Sums &sums, const Point<double> &prices,
                            int64_t budgetBytes) {
  const Problem &problem = sums.own.gaps.graph.problem;
  AnyOrderCertificate out;
  out.budgetBytes = budgetBytes;
  out.provenCost = cheapestCost(problem);
  const int exponent = exponentOf(prices);
  auto whole = [&](const std::vector<double> &list) {
    std::vector<int64_t> ints;
    for (double price : list) {
      const double scaled = std::floor(std::ldexp(price, exponent));
      ints.push_back(scaled < 0x1p62 ? int64_t(scaled) : 0);
    }
    return ints;
  };
  Point<int64_t> at{whole(prices.rows),
                    {whole(prices.inputs.bytes), whole(prices.inputs.pairs)}};
  const Sums priced = pricedSums(sums, budgetBytes - problem.reservedBytes, at);
  const absl::StatusOr<int64_t> cost =
      proven(priced, at, int64_t(1) << exponent);
  if (!cost.ok() || *cost <= out.provenCost)
    return out;
  out.provenCost = *cost;
  out.denominator = int64_t(1) << exponent;
  for (size_t r = 0; r < at.rows.size(); ++r)
    out.prices.push_back({priced.own.rows[r].moment, at.rows[r]});
  const AnyOrderInputs &inputs = priced.inputs;
  for (size_t m = 0; m < inputs.moments.size(); ++m) {
    const AnyOrderInputs::Moment &moment = inputs.moments[m];
    AnyOrderCertificate::InputMoment &own = out.inputMoments.emplace_back();
    own.moment = moment.moment;
    own.price = at.inputs.bytes[m];
    for (int32_t p = moment.firstPair; p < moment.lastPair; ++p)
      if (at.inputs.pairs[p] > 0)
        own.inputs.push_back({inputs.slots[inputs.pairs[p].value].value,
                              inputs.slots[inputs.pairs[p].input].value,
                              at.inputs.pairs[p]});
  }
  auto byMoment = [](const auto &a, const auto &b) {
    return a.moment < b.moment;
  };
  std::sort(out.prices.begin(), out.prices.end(), byMoment);
  std::sort(out.inputMoments.begin(), out.inputMoments.end(), byMoment);
  out.chains = priced.own.gaps.chains;
  return out;
}

/// The integers of a certificate's inputs, as the sum has them.
absl::StatusOr<AnyOrderInputs::Prices<int64_t>>
pricesOf(const AnyOrderCertificate &certificate, const AnyOrderInputs &inputs) {
  AnyOrderInputs::Prices<int64_t> out;
  out.pairs.resize(inputs.pairs.size(), 0);
  for (size_t m = 0; m < inputs.moments.size(); ++m) {
    const AnyOrderCertificate::InputMoment &given = certificate.inputMoments[m];
    std::map<std::pair<ValueId, ValueId>, int32_t> pairOf;
    for (int32_t p = inputs.moments[m].firstPair;
         p < inputs.moments[m].lastPair; ++p)
      pairOf[{inputs.slots[inputs.pairs[p].value].value,
              inputs.slots[inputs.pairs[p].input].value}] = p;
    out.bytes.push_back(given.price);
    for (const AnyOrderCertificate::Input &x : given.inputs) {
      auto found = pairOf.find({x.value, x.input});
      if (found == pairOf.end())
        return absl::InvalidArgumentError("a pair that has no row");
      out.pairs[found->second] = x.price;
    }
  }
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
    return certify({graph, {}, {}, 0}, {}, budget);
  const int64_t limit = budget - problem.reservedBytes;
  const AnyOrderSum sum =
      sumOf(graph, findRows(graph, limit, options.candidates), limit);
  Prices prices = bestSingle(sum);
  climbPrices(sum, options.work, prices);
  const AnyOrderSum few =
      fewer(sum, limit, size_t(std::max(options.moments, 0)), prices);
  climbPrices(few, options.work / 2, prices);
  AnyOrderCertificate best =
      certify({graph, few.rows, {}, limit}, {prices, {}}, budget);
  const std::vector<Row> inputRows = findInputRows(sum.rows, limit, options);
  if (inputRows.empty())
    return best;
  const Sums sums(graph, few.rows, inputRows, limit);
  Point<double> at{prices, {}};
  at.inputs = sums.inputs.price(sums.own, options.inputWork, at.rows);
  AnyOrderCertificate more = certify(sums, at, budget);
  return more.provenCost > best.provenCost ? more : best;
}

absl::StatusOr<int64_t>
tmc::planning::costProvenInAnyOrder(const Problem &problem,
                                    const AnyOrderCertificate &certificate) {
  if (absl::Status status = isOneSpaced(problem); !status.ok())
    return status;
  const AnyOrderGraph graph(problem);
  const int64_t limit = certificate.budgetBytes - problem.reservedBytes;
  absl::Status failure;
  auto rowsOf = [&](const auto &list) {
    std::vector<Row> rows;
    for (const auto &x : list) {
      rows.push_back(graph.rowOf(x.moment));
      if (rows.back().liveBytes <= limit)
        failure.Update(absl::InvalidArgumentError(absl::StrCat(
            "'", problem.instructions[x.moment].name, "' has room")));
    }
    return rows;
  };
  const std::vector<Row> rows = rowsOf(certificate.prices),
                         inputRows = rowsOf(certificate.inputMoments);
  if (!failure.ok())
    return failure;
  const Sums sums(graph, rows, inputRows, limit, certificate.chains);
  Point<int64_t> at;
  for (const AnyOrderCertificate::Price &p : certificate.prices)
    at.rows.push_back(p.price);
  absl::StatusOr<AnyOrderInputs::Prices<int64_t>> ofInputs =
      pricesOf(certificate, sums.inputs);
  if (!ofInputs.ok())
    return ofInputs.status();
  at.inputs = *std::move(ofInputs);
  return proven(sums, at, certificate.denominator);
}
