// The checker of trees of cases: gaps from `GapWalk`, its own tails and cells,
// and for each leaf the cheapest path of each gap by a table over (cell, in
// memory or not, recomputed or not), in checked 128-bit integers.

#include "compiler/planning/bound/BoundCheck.h"
#include "compiler/planning/bound/Branch.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

using namespace tmc::planning;

namespace {

absl::Status wrong(const std::string &what) {
  return absl::InvalidArgumentError(what);
}

/// A gap or tail that meets a chosen moment.
struct Strip {
  ValueId value;
  int64_t begin, end; // Moments strictly inside.
  int64_t lo, hi;     // Chosen moments inside; cells lo..hi.
  SegmentId segment;  // kNone: ends in two segments, or use avoidable.
  Wide cost;          // To recompute it; -1: impossible.
  bool isTail;
  size_t cell; // Its first cell, in tables over all cells.
};

class CaseChecker : CheckedMath {
public:
  CaseChecker(const Problem &problem, const BranchCertificate &certificate)
      : problem(problem), certificate(certificate), walk(problem),
        limit(Wide(certificate.budgetBytes) - problem.reservedBytes) {}

  absl::StatusOr<int64_t> run();

private:
  absl::Status readMoments();
  void readGaps();
  void readRun(const WalkedRun &run);
  void readGap(const WalkedGap &gap, Wide avoid);
  void addTail(ValueId v);
  absl::Status readRows();
  absl::Status checkPrices() const;
  absl::Status visit(size_t &node, int depth);
  /// No value: the case is empty.
  std::optional<Wide> leaf(const BranchCertificate::Node &node);
  std::optional<Wide> cheapestPath(size_t strip,
                                   const std::vector<Wide> &lambda);

  int64_t intervalOf(int64_t stage) const {
    return std::lower_bound(certificate.moments.begin(),
                            certificate.moments.end(), stage) -
           certificate.moments.begin();
  }
  SegmentId segmentOf(int64_t moment) const {
    return problem.instructions[walk.order[moment]].segment;
  }
  void addStrip(Strip strip);
  static bool mayRun(const Recipe &recipe, SegmentId s) {
    return recipe.segment == kNone || recipe.segment == s;
  }

  const Problem &problem;
  const BranchCertificate &certificate;
  GapWalk walk;
  Wide limit;
  std::vector<Wide> need; // At each chosen moment, every strip broken.
  std::vector<Strip> strips;
  std::map<std::pair<ValueId, int64_t>, size_t> stripAt; // By moment before.
  std::vector<std::vector<int64_t>> naturals; // Moments of uses, production.
  std::vector<SegmentId> lastSegment, home;
  std::vector<char> isCarried; // Into the next trip.
  size_t cells = 0;
  /// Slots of a row: its value in memory, its input in memory, its input made.
  struct Row {
    size_t value, read, madeBegin, madeEnd;
  };
  std::vector<Row> rows;
  std::vector<int8_t> fixes; // 1 kept, 2 broken.
  std::vector<Wide> kept;    // Bytes of the kept strips at each moment.
  /// Per cell, at the current leaf: prices for being in memory at its end, and
  /// for being made in it.
  std::vector<Wide> forThere, forMade;
  Wide least = 0, cheaperRecipes = 0;
  bool any = false;
};

absl::Status CaseChecker::readMoments() {
  if (certificate.denominator < 1)
    return wrong(absl::StrCat("the denominator is ", certificate.denominator));
  int64_t before = -1;
  for (int32_t k : certificate.moments) {
    if (k <= before || size_t(k) >= walk.order.size())
      return wrong(absl::StrCat("moment ", k,
                                " is out of order or past the last of ",
                                walk.order.size()));
    before = k;
  }
  return absl::OkStatus();
}

void CaseChecker::addStrip(Strip strip) {
  strip.lo = intervalOf(strip.begin);
  strip.hi = intervalOf(strip.end);
  if (strip.lo == strip.hi)
    return;
  strip.cell = cells;
  cells += size_t(strip.hi - strip.lo + 1);
  stripAt[{strip.value, strip.begin - 1}] = strips.size();
  strips.push_back(strip);
}

void CaseChecker::readGaps() {
  size_t m = certificate.moments.size();
  need.assign(m, 0);
  naturals.resize(problem.values.size());
  lastSegment.assign(problem.values.size(), kNone);
  home = lastSegment;
  isCarried.assign(problem.values.size(), 0);
  for (const Value &v : problem.values)
    if (v.carriedFrom != kNone)
      isCarried[v.carriedFrom] = 1;
  for (size_t k = 0; k < walk.order.size(); ++k) {
    const Instruction &instruction = problem.instructions[walk.order[k]];
    auto meet = [&](ValueId v) {
      naturals[v].push_back(int64_t(k));
      lastSegment[v] = instruction.segment;
    };
    for (RecipeId r : instruction.recipes)
      for (ValueId v : problem.recipes[r].reads)
        meet(v);
    for (ValueId v : problem.recipes[instruction.recipes.front()].writes) {
      meet(v);
      home[v] = instruction.segment;
    }
  }
  walk.onRun = [&](const WalkedRun &run) { readRun(run); };
  walk.onGap = [&](const WalkedGap &gap) { readGap(gap, -1); };
  walk.run();
  for (Wide &bytes : need)
    bytes += walk.residentBytes[0];
}

/// Takes the least of each figure over the variants. A variant that avoids
/// reads shares its extra cost among them.
void CaseChecker::readRun(const WalkedRun &run) {
  Wide least = run.variants[0].cost, bytes = run.variants[0].bytes[0];
  for (const WalkedRun::Variant &variant : run.variants) {
    least = std::min(least, variant.cost);
    bytes = std::min(bytes, variant.bytes[0]);
  }
  cheaperRecipes += least - run.variants[0].cost;
  const int64_t i = intervalOf(run.moment);
  if (i < int64_t(need.size()) && certificate.moments[i] == run.moment)
    need[i] += bytes;
  for (size_t g = 0; g < run.gaps.size(); ++g) {
    Wide avoid = -1;
    for (const WalkedRun::Variant &variant : run.variants) {
      if (std::find(variant.gaps.begin(), variant.gaps.end(), g) !=
          variant.gaps.end())
        continue;
      const Wide extra =
          (variant.cost - least) / Wide(run.gaps.size() - variant.gaps.size());
      avoid = avoid < 0 ? extra : std::min(avoid, extra);
    }
    if (avoid != 0)
      readGap(run.gaps[g], avoid);
  }
}

/// Adds a gap of one span; `avoid`: the cost of not reading its value.
void CaseChecker::readGap(const WalkedGap &gap, Wide avoid) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (auto span : gap.spans)
    if (span.first < span.second)
      spans.push_back(span);
  if (spans.size() != 1 || problem.values[gap.value].bytes == 0)
    return;
  auto [begin, end] = spans.front();
  Wide cost = avoid;
  SegmentId within = kNone;
  for (const WalkedGap::Charge &charge : gap.charges)
    if (cost < 0 || charge.cost < cost)
      cost = charge.cost;
  if (gap.kind == WalkedGap::Inside && avoid < 0)
    within = segmentOf(begin);
  if (cost >= 0) {
    addStrip({gap.value, begin, end, 0, 0, within, cost, false, 0});
    return;
  }
  for (int64_t i = intervalOf(begin); i < intervalOf(end); ++i)
    need[i] += problem.values[gap.value].bytes;
}

/// After its last use a value may stay in memory for recomputations.
void CaseChecker::addTail(ValueId v) {
  const Value &value = problem.values[v];
  SegmentId s = lastSegment[v];
  if (value.kind != ValueKind::Temporary || value.liveOut || home[v] == kNone)
    return;
  if (isCarried[v])
    return;
  if (problem.segments[s].trips > 1 && home[v] != s)
    return;
  int64_t begin = naturals[v].back() + 1, end = walk.starts[s + 1];
  if (begin >= end || stripAt.count({v, begin - 1}))
    return;
  Wide least = -1; // Its share of the least recipe cost.
  for (size_t m = 0; m < walk.makers[v].size(); ++m)
    if (mayRun(*walk.makers[v][m], s)) {
      const Wide part = Wide(walk.parts[v][m]) * problem.segments[s].trips;
      least = least < 0 ? part : std::min(least, part);
    }
  addStrip({v, begin, end, 0, 0, s, least, true, 0});
}

absl::Status CaseChecker::readRows() {
  for (const DependencyRow &row : certificate.rows) {
    for (ValueId v : {row.value, row.read})
      if (v < 0 || size_t(v) >= problem.values.size())
        return wrong(absl::StrCat("a row names value ", v, " of ",
                                  problem.values.size()));
    addTail(row.read);
  }
  for (const DependencyRow &row : certificate.rows) {
    std::string which = absl::StrCat(
        "the row of '", problem.values[row.value].name, "' after moment ",
        row.after, " at moment number ", row.moment, ", which reads '",
        problem.values[row.read].name, "',");
    auto at = stripAt.find({row.value, row.after});
    if (at == stripAt.end() || strips[at->second].isTail ||
        strips[at->second].segment == kNone)
      return wrong(absl::StrCat(which, " is of no gap"));
    const Strip &gap = strips[at->second];
    if (row.moment < gap.lo || row.moment >= gap.hi)
      return wrong(absl::StrCat(which, " isn't inside its gap"));
    for (const Recipe *r : walk.makers[row.value])
      if (mayRun(*r, gap.segment) && std::find(r->reads.begin(), r->reads.end(),
                                               row.read) == r->reads.end())
        return wrong(absl::StrCat(which, " isn't read by '", r->name, "'"));
    int64_t from = certificate.moments[row.moment];
    for (int64_t k : naturals[row.read])
      if (k >= from && k <= gap.end)
        return wrong(absl::StrCat(which, " is used at moment ", k));
    const Strip *supply = nullptr;
    for (auto it = stripAt.lower_bound({row.read, -1});
         it != stripAt.end() && it->first.first == row.read; ++it) {
      const Strip &strip = strips[it->second];
      if (strip.segment != kNone && strip.begin <= from &&
          strip.end >= gap.end && row.moment >= strip.lo &&
          row.moment < strip.hi)
        supply = &strip;
    }
    if (!supply)
      return wrong(absl::StrCat(which, " relies on nothing that is counted"));
    size_t base = supply->cell + size_t(row.moment - supply->lo);
    rows.push_back({gap.cell + size_t(row.moment - gap.lo), base, base + 1,
                    base + 1 + size_t(gap.hi - row.moment)});
  }
  return absl::OkStatus();
}

absl::Status CaseChecker::checkPrices() const {
  for (const BranchCertificate::Node &node : certificate.nodes) {
    for (auto [i, price] : node.lambda)
      if (i < 0 || size_t(i) >= certificate.moments.size() || price < 0)
        return wrong(absl::StrCat("a price of ", price, " at moment number ", i,
                                  " of ", certificate.moments.size()));
    for (auto [i, price] : node.mu)
      if (i < 0 || size_t(i) >= certificate.rows.size() || price < 0)
        return wrong(absl::StrCat("a price of ", price, " at row ", i, " of ",
                                  certificate.rows.size()));
  }
  return absl::OkStatus();
}

std::optional<Wide> CaseChecker::cheapestPath(size_t index,
                                              const std::vector<Wide> &lambda) {
  const Strip &strip = strips[index];
  Wide bytes = problem.values[strip.value].bytes;
  Wide denominator = certificate.denominator;
  // By (in memory, recomputed); no entry: impossible.
  struct Entry {
    bool is = false;
    Wide cost = 0;
    void offer(Wide other) {
      if (!is || other < cost)
        is = true, cost = other;
    }
  };
  Entry now[2][2], whole;
  now[1][0] = whole = {true, 0};
  for (int64_t j = strip.lo; j <= strip.hi; ++j) {
    size_t cell = strip.cell + size_t(j - strip.lo);
    Wide hold =
        j < strip.hi ? plus(times(lambda[j], bytes), -forThere[cell]) : 0;
    Wide remake = plus(times(strip.cost, denominator), -forMade[cell]);
    bool fits = j == strip.hi || fixes[index] == 1 ||
                need[j] + kept[j] + bytes <= limit;
    whole.is &= fits;
    Entry next[2][2];
    for (int there : {0, 1})
      for (int made : {0, 1}) {
        if (!now[there][made].is)
          continue;
        Wide cost = now[there][made].cost;
        next[0][made].offer(cost);
        if (there && fits)
          next[1][made].offer(plus(cost, hold));
        if (strip.cost >= 0) {
          next[0][1].offer(plus(cost, remake));
          if (fits)
            next[1][1].offer(plus(plus(cost, remake), hold));
        }
      }
    whole.cost = plus(whole.cost, hold);
    for (int there : {0, 1})
      for (int made : {0, 1})
        now[there][made] = next[there][made];
  }
  Entry best;
  if (fixes[index] != 2 && whole.is)
    best = whole;
  if (fixes[index] != 1) {
    if (now[1][1].is)
      best.offer(now[1][1].cost);
    for (int made : {0, 1})
      if (strip.isTail && now[0][made].is)
        best.offer(now[0][made].cost);
  }
  return best.is ? std::optional<Wide>(best.cost) : std::nullopt;
}

std::optional<Wide> CaseChecker::leaf(const BranchCertificate::Node &node) {
  for (size_t i = 0; i < need.size(); ++i)
    if (need[i] + kept[i] > limit)
      return std::nullopt;

  std::vector<Wide> lambda(certificate.moments.size(), 0);
  for (auto [i, price] : node.lambda)
    lambda[i] += price;
  forThere.assign(cells, 0);
  forMade.assign(cells + 1, 0); // Differences, then sums.
  Wide prices = 0;
  for (auto [i, price] : node.mu) {
    const Row &row = rows[i];
    prices = plus(prices, price);
    forThere[row.value] += price;
    forThere[row.read] += price;
    forMade[row.madeBegin] += price;
    forMade[row.madeEnd] -= price;
  }
  for (size_t c = 1; c <= cells; ++c)
    forMade[c] += forMade[c - 1];
  Wide sum = plus(prices, times(cheaperRecipes, certificate.denominator));
  for (size_t i = 0; i < lambda.size(); ++i)
    sum = plus(sum, times(lambda[i], need[i] - limit));
  for (size_t s = 0; s < strips.size(); ++s) {
    std::optional<Wide> path = cheapestPath(s, lambda);
    if (!path)
      return std::nullopt;
    sum = plus(sum, *path);
  }
  return sum;
}

absl::Status CaseChecker::visit(size_t &node, int depth) {
  if (node >= certificate.nodes.size())
    return wrong("the tree of cases ends early");
  const BranchCertificate::Node &at = certificate.nodes[node++];
  if (at.value == kNone) {
    std::optional<Wide> proved = leaf(at);
    if (proved && (!any || *proved < least)) {
      least = *proved;
      any = true;
    }
    return absl::OkStatus();
  }
  auto strip = stripAt.find({at.value, at.after});
  if (depth > 5000)
    return wrong("the tree of cases is deeper than 5000");
  if (strip == stripAt.end() || strips[strip->second].isTail)
    return wrong(absl::StrCat("the tree splits at a gap of value ", at.value,
                              " after moment ", at.after, ", which isn't one"));
  int8_t before = fixes[strip->second];
  for (int8_t fix : {int8_t(1), int8_t(2)}) {
    // If a gap is decided already, the other case is empty. It may stand in the
    // tree, but the earlier decision holds.
    fixes[strip->second] = before ? before : fix;
    bool keeps = !before && fix == 1;
    const Strip &gap = strips[strip->second];
    Wide bytes = keeps ? problem.values[gap.value].bytes : 0;
    for (int64_t i = gap.lo; i < gap.hi; ++i)
      kept[i] += bytes;
    absl::Status status = visit(node, depth + 1);
    for (int64_t i = gap.lo; i < gap.hi; ++i)
      kept[i] -= bytes;
    if (!status.ok())
      return status;
  }
  fixes[strip->second] = before;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CaseChecker::run() {
  if (absl::Status status = readMoments(); !status.ok())
    return status;
  readGaps();
  if (absl::Status status = readRows(); !status.ok())
    return status;
  if (absl::Status status = checkPrices(); !status.ok())
    return status;
  fixes.assign(strips.size(), 0);
  kept.assign(certificate.moments.size(), 0);
  size_t node = 0;
  if (absl::Status status = visit(node, 0); !status.ok())
    return status;
  if (node != certificate.nodes.size())
    return wrong("the tree of cases goes on after its end");
  if (overflow)
    return absl::OutOfRangeError(
        "the sums of the certificate don't fit 128 bits");
  if (!any) // Every case is empty: no plan exists.
    return std::numeric_limits<int64_t>::max() / 4;
  Wide denominator = certificate.denominator;
  Wide whole = least / denominator + (least % denominator > 0);
  if (whole > std::numeric_limits<int64_t>::max())
    return absl::OutOfRangeError("the bound doesn't fit 63 bits");
  return int64_t(std::max<Wide>(whole, std::numeric_limits<int64_t>::min()));
}

} // namespace

absl::StatusOr<int64_t>
tmc::planning::provenByBranching(const Problem &problem,
                                 const BranchCertificate &certificate) {
  if (problem.spaces.size() > 1 || problem.engines.size() > 1)
    return wrong(absl::StrCat(
        "the certificate is void: it counts on values that are recomputed "
        "where they are absent, but the problem has ",
        problem.spaces.size(), " spaces and ", problem.engines.size(),
        " engines, so they may be fetched"));
  return CaseChecker(problem, certificate).run();
}

std::optional<std::string>
tmc::planning::checkBranching(const Problem &problem,
                              const BranchCertificate &certificate) {
  absl::StatusOr<int64_t> proven = provenByBranching(problem, certificate);
  if (!proven.ok())
    return std::string(proven.status().message());
  if (*proven < certificate.extraCost)
    return absl::StrCat("the cases prove an extra cost of ", *proven, ", not ",
                        certificate.extraCost, " as claimed");
  return std::nullopt;
}
