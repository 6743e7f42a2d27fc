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

/// Compute is through with all that stands before a border when that starts,
/// because compute runs it.
static absl::Status checkBorders(const Problem &p, const Certificate &c) {
  auto next = c.borders.begin();
  for (const Segment &s : p.segments)
    for (InstructionId i : s.instructions) {
      if (next == c.borders.end() || *next != i)
        continue;
      if (i == s.instructions.front())
        return refused("a border at the begin of segment '", s.name, "'");
      for (RecipeId r : p.instructions[i].recipes)
        if (p.recipes[r].engine != 0)
          return refused("a border at '", p.instructions[i].name,
                         "', which compute may not run");
      ++next;
    }
  if (next != c.borders.end())
    return refused("borders in another order than the program's");
  return absl::OkStatus();
}

absl::Status tmc::planning::checkForm(const Problem &p, const Certificate &c) {
  if (hasLag(p))
    return refused("a value lags by more than a trip, which no bound knows");
  if (c.denominator < 1)
    return refused("the denominator is ", c.denominator);
  if (absl::Status status = checkBorders(p, c); !status.ok())
    return status;
  if (c.weights.size() != p.segments.size() + c.borders.size())
    return refused("weights of ", c.weights.size(), " stretches, not of ",
                   p.segments.size() + c.borders.size());
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
      return refused("the weights of stretch ", s, " sum to more than 1");
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
  void findStretches();
  /// Whether work of a charge may go on in a stretch.
  bool mayGoOn(const WalkedGap::Charge &charge, size_t stretch) const;
  Wide weighted(const WalkedGap::Charge &charge);
  bool isInOrder(const WalkedGap &gap) const;
  Wide leastInTime(const WalkedGap &gap);
  Wide leastOf(const std::vector<WalkedGap::Charge> &charges);
  Wide paid(const WalkedGap &gap);
  Wide leastOf(const WalkedRun &run);

  const Problem &p;
  const Certificate &c;
  GapWalk walk;
  CheckedMath math;
  /// By space: sums of prices before each moment.
  std::vector<std::vector<Wide>> upTo;
  std::vector<int64_t> begins; // By stretch: its first moment; and the end.
  std::vector<SegmentId> segmentOf; // By stretch.
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

void Checker::findStretches() {
  const std::set<InstructionId> borders(c.borders.begin(), c.borders.end());
  for (SegmentId s = 0; s < SegmentId(p.segments.size()); ++s)
    for (int64_t k = walk.starts[s];
         k == walk.starts[s] || k < walk.starts[s + 1]; ++k)
      if (k == walk.starts[s] || borders.count(walk.order[k])) {
        begins.push_back(k);
        segmentOf.push_back(s);
      }
  begins.push_back(walk.starts.back());
}

bool Checker::mayGoOn(const WalkedGap::Charge &charge, size_t stretch) const {
  const bool isBetween =
      charge.from >= charge.to ||
      (begins[stretch] < charge.to && charge.from < begins[stretch + 1]);
  return segmentOf[stretch] == charge.segment && isBetween;
}

/// The least that work pays which goes on at some time between its moments.
Wide Checker::weighted(const WalkedGap::Charge &charge) {
  Wide least = -1;
  for (size_t i = 0; i < c.weights.size(); ++i)
    if (mayGoOn(charge, i))
      if (Wide w = math.times(c.weights[i][charge.engine], charge.cost);
          least < 0 || w < least)
        least = w;
  return least;
}

Wide Checker::leastOf(const std::vector<WalkedGap::Charge> &charges) {
  Wide least = -1;
  for (const WalkedGap::Charge &charge : charges) {
    const Wide w = weighted(charge);
    if (least < 0 || w < least)
      least = w;
  }
  return least;
}

/// Whether the runs that break a gap stand in the order of its moments: all in
/// one trip, or outside of loops.
bool Checker::isInOrder(const WalkedGap &gap) const {
  if (gap.inTrip || gap.kind != WalkedGap::Outer)
    return gap.inTrip;
  const auto isOnce = [&](const WalkedGap::Charge &charge) {
    return p.segments[charge.segment].trips == 1;
  };
  return std::all_of(gap.charges.begin(), gap.charges.end(), isOnce);
}

/// The least that such a gap pays if it is broken. A run of a stretch pays that
/// stretch's weight. Its result is there in all later stretches, and pays for
/// their moments up to the reader.
Wide Checker::leastInTime(const WalkedGap &gap) {
  const Value &value = p.values[gap.value];
  const auto [begin, end] = gap.spans.front();
  Wide least = -1;
  for (const WalkedGap::Charge &charge : gap.charges)
    for (size_t i = 0; i < c.weights.size(); ++i) {
      if (!mayGoOn(charge, i))
        continue;
      const int64_t later = std::clamp(begins[i + 1], begin, end);
      const Wide pays = math.plus(
          math.times(c.weights[i][charge.engine], charge.cost),
          math.times(upTo[value.space][end] - upTo[value.space][later],
                     value.bytes));
      if (least < 0 || pays < least)
        least = pays;
    }
  return least;
}

/// The lesser of a gap's rent and the least charge that breaks it.
Wide Checker::paid(const WalkedGap &gap) {
  const Value &value = p.values[gap.value];
  Wide broken = isInOrder(gap) ? leastInTime(gap) : leastOf(gap.charges);
  if (broken >= 0 && !gap.also.empty())
    broken = math.plus(broken, leastOf(gap.also));
  Wide perByte = 0;
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
    const EngineId engine = variant.recipe->engine;
    Wide pays =
        weighted({run.segment, engine, variant.cost, run.moment,
                  engine ? walk.starts[run.segment + 1] : run.moment + 1});
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
  findStretches();
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
