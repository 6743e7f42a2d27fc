// What a certificate proves, on its own. `Bound.cpp` sums bytes moment by
// moment and takes back what broken gaps save; here the same number is summed
// value by value: a gap contributes the smaller of its bytes times the prices
// inside it and its cost, so that
//
//   denominator * L = sum_k price_k (footprint_k - limit)
//                   + sum_gaps min(bytes * prices inside, cost * denominator).
//
// One pass forward over the instructions, all sums checked in 128 bits.

#include "compiler/planning/Bound.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>
#include <set>

using namespace tmc::planning;

namespace {

using Wide = __int128;

/// A sum that remembers having overflowed.
struct Checked {
  Wide value = 0;
  bool overflow = false;
  void add(Wide x) { overflow |= __builtin_add_overflow(value, x, &value); }
  void addProduct(Wide a, Wide b) {
    Wide product;
    overflow |= __builtin_mul_overflow(a, b, &product);
    add(product);
  }
};

class Prover {
public:
  Prover(const Problem &problem, const Certificate &certificate)
      : problem(problem), denominator(certificate.denominator) {
    limit = Wide(certificate.budgetBytes) - problem.reservedBytes;
    for (const Segment &s : problem.segments) {
      starts.push_back(int64_t(order.size()));
      order.insert(order.end(), s.instructions.begin(), s.instructions.end());
    }
    starts.push_back(int64_t(order.size()));
    upTo.assign(order.size() + 1, 0);
  }

  absl::Status readPrices(const Certificate &certificate) {
    if (denominator < 1)
      return absl::InvalidArgumentError(
          absl::StrCat("the denominator is ", certificate.denominator));
    std::vector<int64_t> price(order.size(), 0);
    int64_t before = -1;
    for (auto [moment, p] : certificate.lambda) {
      if (moment <= before || size_t(moment) >= order.size())
        return absl::InvalidArgumentError(absl::StrCat(
            "moment ", moment, " is out of order or past the last of ",
            order.size()));
      if (p < 0)
        return absl::InvalidArgumentError(absl::StrCat(
            "the price at moment ", moment, " is ", p, ", below 0"));
      price[moment] = p;
      before = moment;
    }
    for (size_t k = 0; k < order.size(); ++k)
      upTo[k + 1] = upTo[k] + price[k]; // At most 2^31 terms of 63 bits.
    return absl::OkStatus();
  }

  /// denominator * L.
  Checked prove() {
    shareCosts();
    last.assign(problem.values.size(), {-1, kNone});
    for (size_t v = 0; v < problem.values.size(); ++v)
      if (ValueId from = problem.values[v].carriedFrom; from != kNone)
        carrier.insert({from, ValueId(v)});
    for (const Value &v : problem.values)
      if (v.kind == ValueKind::Persistent && v.updates == kNone)
        pins += v.bytes;
    for (int64_t k = 0; k < int64_t(order.size()); ++k)
      visit(k);
    for (size_t v = 0; v < problem.values.size(); ++v)
      if (problem.values[v].liveOut &&
          problem.values[v].kind == ValueKind::Temporary)
        close(ValueId(v), int64_t(order.size()),
              SegmentId(problem.segments.size()) - 1, -1);
    return sum;
  }

private:
  int64_t trips(SegmentId s) const { return problem.segments[s].trips; }
  bool counts(ValueId v) const {
    return v != kNone && problem.values[v].kind != ValueKind::Persistent;
  }
  ValueId aliasIn(ValueId v, SegmentId s) const {
    return problem.values[v].kind == ValueKind::Carried && trips(s) == 1
               ? problem.values[v].initial
               : v;
  }
  static bool contains(const std::vector<ValueId> &list, ValueId v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  }

  void shareCosts() {
    constexpr int64_t none = std::numeric_limits<int64_t>::max();
    share.assign(problem.values.size(), none);
    makers.resize(problem.values.size());
    for (const Recipe &r : problem.recipes) {
      Wide bytes = 0;
      bool pinned = false;
      for (ValueId v : r.writes) {
        bytes += problem.values[v].bytes;
        pinned |= problem.values[v].pinned;
      }
      if (!r.recomputable || pinned)
        continue;
      for (ValueId v : r.writes) {
        Wide part = bytes ? Wide(r.cost) * problem.values[v].bytes / bytes : 0;
        share[v] = std::min(share[v], int64_t(part));
        makers[v].push_back(r.segment);
      }
    }
  }

  void visit(int64_t k) {
    const Instruction &instruction = problem.instructions[order[k]];
    SegmentId s = instruction.segment;
    const Recipe &usual = problem.recipes[instruction.recipes.front()];
    int64_t cheapest = usual.cost, scratch = usual.workspaceBytes;
    for (RecipeId r : instruction.recipes) {
      cheapest = std::min(cheapest, problem.recipes[r].cost);
      scratch = std::min(scratch, problem.recipes[r].workspaceBytes);
    }
    sum.addProduct(Wide(cheapest - usual.cost) * trips(s), denominator);

    Wide footprint = pins + scratch;
    if (k == starts[s] && trips(s) > 1) // Carried values begin here.
      for (size_t v = 0; v < problem.values.size() && !carrier.empty(); ++v)
        if (problem.values[v].kind == ValueKind::Carried &&
            homeOf(problem.values[v].carriedFrom) == s)
          last[v] = {k - 1, s};
    for (ValueId read : usual.reads) {
      ValueId v = aliasIn(read, s);
      if (!counts(v))
        continue;
      int64_t avoid = -1; // The least that not reading it costs.
      for (RecipeId r : instruction.recipes) {
        const Recipe &recipe = problem.recipes[r];
        if (contains(recipe.reads, read))
          continue;
        int64_t fewer = 0;
        for (ValueId u : usual.reads)
          fewer += !contains(recipe.reads, u);
        int64_t price = (recipe.cost - cheapest) / fewer * trips(s);
        avoid = avoid < 0 ? price : std::min(avoid, price);
      }
      if (avoid == 0)
        continue;
      close(v, k, s, avoid);
      if (avoid < 0)
        footprint += problem.values[v].bytes;
    }
    for (ValueId w : usual.writes) {
      if (!counts(w))
        continue;
      int64_t saved = 0;
      for (RecipeId r : instruction.recipes)
        for (const Overwrite &o : problem.recipes[r].overwrites)
          if (o.written == w && counts(aliasIn(o.read, s)))
            saved = std::max(saved, std::min(problem.values[o.read].bytes,
                                             problem.values[w].bytes));
      footprint += problem.values[w].bytes - saved;
      last[w] = {k, s};
    }
    sum.addProduct(footprint - limit, upTo[k + 1] - upTo[k]);
    if (k + 1 == starts[s + 1] && trips(s) > 2)
      endOfTrip(s);
  }

  SegmentId homeOf(ValueId v) {
    if (home.empty()) {
      home.assign(problem.values.size(), kNone);
      for (const Instruction &i : problem.instructions)
        for (ValueId w : problem.recipes[i.recipes.front()].writes)
          home[w] = i.segment;
    }
    return home[v];
  }

  /// What the next trip surely reads under its carried name is held to here.
  void endOfTrip(SegmentId s) {
    for (ValueId v :
         problem.values.empty() ? std::vector<ValueId>{} : ownCarriers(s)) {
      auto at = last[v];
      if (at.second == s)
        close(v, starts[s + 1], s, -1);
      last[v] = at;
    }
  }
  std::vector<ValueId> ownCarriers(SegmentId s) {
    std::set<ValueId> out;
    for (auto [from, c] : carrier) {
      if (homeOf(from) != s)
        continue;
      for (InstructionId i : problem.segments[s].instructions) {
        bool always = true;
        for (RecipeId r : problem.instructions[i].recipes)
          always &= contains(problem.recipes[r].reads, c);
        if (always)
          out.insert(from);
      }
    }
    return {out.begin(), out.end()};
  }

  /// The gap of v that ends at moment k in segment s; a use avoided at `avoid`.
  void close(ValueId v, int64_t k, SegmentId s, int64_t avoid) {
    auto [from, was] = last[v];
    last[v] = {k, s};
    int64_t begin = from + 1, end = k;
    if (was != s) {
      begin = trips(was) > 1 ? starts[was + 1] : begin;
      if (k < int64_t(order.size()))
        end = trips(s) > 1 ? starts[s] : end;
    }
    if (begin >= end || problem.values[v].bytes == 0)
      return;
    int64_t fewest = -1;
    for (SegmentId allowed : makers[v])
      for (SegmentId t = was; t <= s; ++t)
        if (allowed == kNone || allowed == t)
          fewest = fewest < 0 ? trips(t) : std::min(fewest, trips(t));
    Wide held = 0;
    sum.overflow |= __builtin_mul_overflow(Wide(problem.values[v].bytes),
                                           upTo[end] - upTo[begin], &held);
    Wide cost = -1;
    if (fewest >= 0)
      cost = Wide(share[v]) * fewest;
    if (avoid >= 0)
      cost = cost < 0 ? Wide(avoid) : std::min(cost, Wide(avoid));
    if (cost >= 0) {
      Wide broken = 0;
      sum.overflow |= __builtin_mul_overflow(cost, Wide(denominator), &broken);
      held = std::min(held, broken);
    }
    sum.add(held);
  }

  const Problem &problem;
  Wide denominator;
  Wide limit = 0, pins = 0;
  std::vector<InstructionId> order;
  std::vector<int64_t> starts;
  std::vector<Wide> upTo; // Sums of prices.
  std::vector<int64_t> share;
  std::vector<std::vector<SegmentId>> makers; // Where each remaking may run.
  std::vector<std::pair<int64_t, SegmentId>> last;
  std::set<std::pair<ValueId, ValueId>> carrier; // (from, carried)
  std::vector<SegmentId> home;
  Checked sum;
};

} // namespace

absl::StatusOr<int64_t>
tmc::planning::provenExtraCost(const Problem &problem,
                               const Certificate &certificate) {
  Prover prover(problem, certificate);
  if (absl::Status status = prover.readPrices(certificate); !status.ok())
    return status;
  Checked sum = prover.prove();
  if (sum.overflow)
    return absl::OutOfRangeError(
        "the sums of the certificate don't fit 128 bits");
  // Costs are integers, so a bound that isn't rounds up.
  Wide d = certificate.denominator;
  Wide whole = sum.value / d;
  if (sum.value % d > 0)
    ++whole;
  if (whole > std::numeric_limits<int64_t>::max())
    return absl::OutOfRangeError("the bound doesn't fit 63 bits");
  return int64_t(std::max<Wide>(whole, std::numeric_limits<int64_t>::min()));
}

std::optional<std::string>
tmc::planning::checkCertificate(const Problem &problem,
                                const Certificate &certificate) {
  absl::StatusOr<int64_t> proven = provenExtraCost(problem, certificate);
  if (!proven.ok())
    return std::string(proven.status().message());
  if (*proven < certificate.extraCost)
    return absl::StrCat("the prices prove an extra cost of ", *proven, ", not ",
                        certificate.extraCost, " as claimed");
  return std::nullopt;
}
