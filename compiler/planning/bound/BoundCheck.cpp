#include "compiler/planning/bound/BoundCheck.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace tmc::planning;

template <typename... Parts>
static absl::Status refused(const Parts &...parts) {
  return absl::InvalidArgumentError(absl::StrCat("certificate: ", parts...));
}

static int64_t budgetOf(const Problem &p, const Certificate &c, SpaceId s) {
  return s ? p.spaces[s].budgetBytes : c.budgetBytes;
}

absl::Status tmc::planning::checkForm(const Problem &p, const Certificate &c) {
  if (c.denominator < 1)
    return refused("the denominator is ", c.denominator);
  if (c.weights.size() != p.segments.size())
    return refused("weights of ", c.weights.size(), " segments, not of ",
                   p.segments.size());
  for (size_t s = 0; s < c.weights.size(); ++s) {
    if (c.weights[s].size() != p.engines.size())
      return refused("weights of ", c.weights[s].size(), " engines, not of ",
                     p.engines.size());
    Wide all = 0;
    for (int64_t w : c.weights[s]) {
      if (w < 0)
        return refused("a weight of ", w);
      all += w;
    }
    if (all > c.denominator)
      return refused("the weights of segment '", p.segments[s].name,
                     "' sum to more than 1");
  }
  std::set<std::pair<InstructionId, SpaceId>> priced;
  for (const Certificate::Price &x : c.prices) {
    if (x.moment < 0 || size_t(x.moment) >= p.instructions.size() ||
        x.space < 0 || size_t(x.space) >= p.spaces.size())
      return refused("a price of instruction ", x.moment, " in space ",
                     x.space);
    if (x.price < 0)
      return refused("a price of ", x.price);
    if (budgetOf(p, c, x.space) < 0)
      return refused("a price in '", p.spaces[x.space].name,
                     "', which has no budget");
    if (!priced.insert({x.moment, x.space}).second)
      return refused("two prices of '", p.instructions[x.moment].name, "'");
  }
  return absl::OkStatus();
}

namespace {

class Checker {
public:
  Checker(const Problem &p, const Certificate &c) : p(p), c(c), walk(p) {}
  absl::StatusOr<int64_t> run();

private:
  void readPrices();
  Wide weighted(SegmentId s, EngineId e, Wide cost) {
    return math.times(c.weights[s][e], cost);
  }
  Wide paid(const WalkedGap &gap);
  Wide leastOf(const WalkedRun &run);

  const Problem &p;
  const Certificate &c;
  GapWalk walk;
  CheckedMath math;
  /// By space: sums of prices before each moment.
  std::vector<std::vector<Wide>> upTo;
};

void Checker::readPrices() {
  std::vector<size_t> momentOf(p.instructions.size(), 0);
  for (size_t k = 0; k < walk.order.size(); ++k)
    momentOf[walk.order[k]] = k;
  upTo.assign(p.spaces.size(), std::vector<Wide>(walk.order.size() + 1, 0));
  for (const Certificate::Price &x : c.prices)
    upTo[x.space][momentOf[x.moment] + 1] = x.price;
  for (std::vector<Wide> &row : upTo) // At most 2^31 terms of 63 bits.
    std::partial_sum(row.begin(), row.end(), row.begin());
}

/// The lesser of a gap's rent and the least charge that breaks it.
Wide Checker::paid(const WalkedGap &gap) {
  const Value &value = p.values[gap.value];
  Wide broken = -1, perByte = 0;
  for (const WalkedGap::Charge &charge : gap.charges)
    if (Wide w = weighted(charge.segment, charge.engine, charge.cost);
        broken < 0 || w < broken)
      broken = w;
  if (gap.kind == WalkedGap::Owed)
    return std::max<Wide>(broken, 0);
  for (auto [begin, end] : gap.spans)
    perByte += upTo[value.space][end] - upTo[value.space][begin];
  const Wide held = math.times(perByte, value.bytes);
  return broken >= 0 && broken < held ? broken : held;
}

/// The least that a variant of the instruction pays.
Wide Checker::leastOf(const WalkedRun &run) {
  std::vector<Wide> gaps;
  for (const WalkedGap &gap : run.gaps)
    gaps.push_back(paid(gap));
  Wide least = -1;
  for (const WalkedRun::Variant &variant : run.variants) {
    Wide pays = weighted(run.segment, variant.recipe->engine, variant.cost);
    for (size_t s = 0; s < variant.bytes.size(); ++s)
      pays = math.plus(pays,
                       math.times(upTo[s][run.moment + 1] - upTo[s][run.moment],
                                  variant.bytes[s]));
    for (size_t g : variant.gaps)
      pays = math.plus(pays, gaps[g]);
    if (least < 0 || pays < least)
      least = pays;
  }
  return least;
}

absl::StatusOr<int64_t> Checker::run() {
  if (absl::Status status = checkForm(p, c); !status.ok())
    return status;
  readPrices();
  Wide sum = 0;
  walk.onRun = [&](const WalkedRun &run) {
    sum = math.plus(sum, leastOf(run));
  };
  walk.onGap = [&](const WalkedGap &gap) { sum = math.plus(sum, paid(gap)); };
  walk.run();
  for (size_t s = 0; s < p.spaces.size(); ++s) {
    if (upTo[s].back() == 0)
      continue;
    const Wide free = Wide(budgetOf(p, c, SpaceId(s))) -
                      p.reservedOf(SpaceId(s)) - walk.residentBytes[s];
    sum = math.plus(sum, -math.times(upTo[s].back(), free));
  }
  if (math.overflow)
    return refused("its sums leave 128 bits");
  if (sum <= 0)
    return 0;
  const Wide bound = (sum - 1) / c.denominator + 1;
  return int64_t(std::min<Wide>(bound, std::numeric_limits<int64_t>::max()));
}

} // namespace

absl::StatusOr<int64_t>
tmc::planning::checkBound(const Problem &problem,
                          const Certificate &certificate) {
  return Checker(problem, certificate).run();
}

std::optional<std::string>
tmc::planning::checkCertificate(const Problem &problem,
                                const Certificate &certificate) {
  if (certificate.weights.empty() && certificate.provenCost == 0)
    return std::nullopt; // Nothing was sought.
  absl::StatusOr<int64_t> proven = checkBound(problem, certificate);
  if (!proven.ok())
    return std::string(proven.status().message());
  if (*proven < certificate.provenCost)
    return absl::StrCat("the certificate proves a cost of ", *proven, ", not ",
                        certificate.provenCost, " as claimed");
  return std::nullopt;
}
