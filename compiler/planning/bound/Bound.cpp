#include "compiler/planning/bound/Bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace tmc::planning;

namespace {

/// What can happen to a value in the chosen trip of each segment.
struct Event {
  int32_t moment;
  SegmentId segment;
  bool certain;       // Every recipe reads it.
  int64_t extra = -1; // Else: the least that avoiding the read costs.
};

int64_t mulDiv(int64_t a, int64_t b, int64_t c) {
  return c ? int64_t(__int128(a) * b / c) : 0;
}

} // namespace

Relaxation
tmc::planning::relax(const Problem &problem,
                     const std::vector<std::vector<InstructionId>> &orders) {
  Relaxation out;
  size_t numValues = problem.values.size();
  std::vector<SegmentId> home(numValues, kNone);
  std::vector<int32_t> made(numValues, -1);
  std::vector<int32_t> segmentBegin(problem.segments.size() + 1, 0);
  std::vector<InstructionId> sequence;
  for (size_t s = 0; s < problem.segments.size(); ++s) {
    segmentBegin[s] = int32_t(sequence.size());
    for (InstructionId i :
         s < orders.size() ? orders[s] : problem.segments[s].instructions) {
      for (ValueId v :
           problem.recipes[problem.instructions[i].recipes.front()].writes) {
        home[v] = SegmentId(s);
        made[v] = int32_t(sequence.size());
      }
      sequence.push_back(i);
    }
  }
  int32_t n = int32_t(sequence.size());
  segmentBegin.back() = n;
  out.live.assign(n, 0);

  int64_t constant = 0;
  for (const Value &v : problem.values)
    if (v.kind == ValueKind::Persistent && v.updates == kNone)
      constant += v.bytes;
  auto counted = [&](ValueId v) {
    return problem.values[v].kind != ValueKind::Persistent;
  };
  auto tripsOf = [&](SegmentId s) { return problem.segments[s].trips; };
  // In a segment of one trip a carried value goes by its first name.
  auto named = [&](ValueId v, SegmentId s) {
    const Value &value = problem.values[v];
    return value.kind == ValueKind::Carried && tripsOf(s) == 1 ? value.initial
                                                               : v;
  };

  // Shares of cost: the least over recipes, in proportion to bytes.
  std::vector<int64_t> share(numValues, -1);
  std::vector<int64_t> fewestTrips(numValues,
                                   std::numeric_limits<int64_t>::max());
  std::vector<std::vector<RecipeId>> remakes(numValues);
  for (size_t r = 0; r < problem.recipes.size(); ++r) {
    const Recipe &recipe = problem.recipes[r];
    bool can = recipe.recomputable;
    int64_t bytes = 0;
    for (ValueId v : recipe.writes) {
      can &= !problem.values[v].pinned;
      bytes += problem.values[v].bytes;
    }
    if (!can)
      continue;
    for (ValueId v : recipe.writes) {
      int64_t part = mulDiv(recipe.cost, problem.values[v].bytes, bytes);
      share[v] = share[v] < 0 ? part : std::min(share[v], part);
      remakes[v].push_back(RecipeId(r));
    }
  }

  std::vector<std::vector<Event>> events(numValues);
  for (int32_t k = 0; k < n; ++k) {
    const Instruction &instruction = problem.instructions[sequence[k]];
    SegmentId s = instruction.segment;
    const Recipe &first = problem.recipes[instruction.recipes.front()];
    int64_t least = first.cost, workspace = first.workspaceBytes;
    for (RecipeId r : instruction.recipes) {
      least = std::min(least, problem.recipes[r].cost);
      workspace = std::min(workspace, problem.recipes[r].workspaceBytes);
    }
    out.cheaperRecipes += (least - first.cost) * tripsOf(s);
    int64_t footprint = constant + workspace;
    for (ValueId v : first.writes)
      if (counted(v))
        footprint += problem.values[v].bytes;
    // What is read for certain, and what avoiding an uncertain read costs.
    for (ValueId read : first.reads) {
      ValueId v = named(read, s);
      if (v == kNone || !counted(v))
        continue;
      bool certain = true;
      int64_t extra = std::numeric_limits<int64_t>::max();
      for (RecipeId r : instruction.recipes) {
        const Recipe &other = problem.recipes[r];
        if (std::find(other.reads.begin(), other.reads.end(), read) !=
            other.reads.end())
          continue;
        certain = false;
        int64_t headroom = 0;
        for (ValueId u : first.reads)
          headroom += std::find(other.reads.begin(), other.reads.end(), u) ==
                      other.reads.end();
        extra =
            std::min(extra, (other.cost - least) /
                                std::max<int64_t>(headroom, 1) * tripsOf(s));
      }
      if (certain)
        footprint += problem.values[v].bytes;
      if (certain || extra > 0)
        events[v].push_back({k, s, certain, certain ? -1 : extra});
    }
    // The most that overwriting saves: each result on its best operand.
    for (ValueId w : first.writes) {
      if (!counted(w))
        continue;
      int64_t best = 0;
      for (RecipeId r : instruction.recipes)
        for (const Overwrite &o : problem.recipes[r].overwrites)
          if (ValueId v = named(o.read, s);
              o.written == w && v != kNone && counted(v))
            best = std::max(best, std::min(problem.values[v].bytes,
                                           problem.values[w].bytes));
      footprint -= best;
    }
    out.live[k] = footprint;
  }
  out.floor = out.footprint = out.live;

  std::vector<int64_t> held(n + 1, 0); // Differences: gaps that can't break.
  std::vector<int64_t> gapped(n + 1, 0);
  auto addGap = [&](ValueId v, int32_t first, int32_t last, SegmentId from,
                    SegmentId to, int64_t extra) {
    if (first > last || problem.values[v].bytes == 0)
      return;
    int64_t cost = -1;
    for (RecipeId r : remakes[v]) {
      const Recipe &recipe = problem.recipes[r];
      for (SegmentId s = from; s <= to; ++s)
        if (recipe.segment == kNone || recipe.segment == s) {
          int64_t here = share[v] * tripsOf(s);
          cost = cost < 0 ? here : std::min(cost, here);
        }
    }
    if (extra >= 0)
      cost = cost < 0 ? extra : std::min(cost, extra);
    if (cost < 0) {
      held[first] += problem.values[v].bytes;
      held[last + 1] -= problem.values[v].bytes;
      return;
    }
    gapped[first] += problem.values[v].bytes;
    gapped[last + 1] -= problem.values[v].bytes;
    out.gaps.push_back({v, first, last, problem.values[v].bytes, cost,
                        from == to && extra < 0 ? from : kNone});
  };

  std::vector<char> carries(numValues, 0); // Needed when its trip ends.
  for (size_t c = 0; c < numValues; ++c)
    if (const Value &value = problem.values[c];
        value.kind == ValueKind::Carried &&
        tripsOf(home[value.carriedFrom]) > 1)
      for (const Event &e : events[c])
        carries[value.carriedFrom] |= e.certain;

  for (ValueId v = 0; v < ValueId(numValues); ++v) {
    if (!counted(v))
      continue;
    const Value &value = problem.values[v];
    int32_t from = made[v];
    SegmentId segment = home[v];
    if (value.kind == ValueKind::Carried) {
      segment = home[value.carriedFrom];
      from = segmentBegin[segment] - 1;
    }
    for (const Event &e : events[v]) {
      if (e.segment == segment) {
        addGap(v, from + 1, e.moment - 1, segment, segment, e.extra);
      } else {
        // Up to the end of what came before (if that isn't a body, else from
        // its end), and on to the use unless a body has the use.
        int32_t first =
            tripsOf(segment) > 1 ? segmentBegin[segment + 1] : from + 1;
        int32_t last =
            tripsOf(e.segment) > 1 ? segmentBegin[e.segment] - 1 : e.moment - 1;
        // Bodies in between are crossed whole, in every trip.
        addGap(v, first, last, segment, e.segment, e.extra);
      }
      from = e.moment;
      segment = e.segment;
    }
    if (carries[v] && segment == home[v])
      addGap(v, from + 1, segmentBegin[segment + 1] - 1, segment, segment, -1);
    if (value.liveOut) {
      int32_t first =
          tripsOf(segment) > 1 ? segmentBegin[segment + 1] : from + 1;
      addGap(v, first, n - 1, segment, SegmentId(problem.segments.size()) - 1,
             -1);
    }
  }
  int64_t fixed = 0, all = 0;
  for (int32_t k = 0; k < n; ++k) {
    fixed += held[k];
    all += gapped[k];
    out.floor[k] += fixed;
    out.live[k] += fixed + all;
  }
  return out;
}

std::vector<double> tmc::planning::ascend(const Relaxation &relaxation,
                                          int64_t limitBytes,
                                          const DualOptions &options) {
  size_t n = relaxation.live.size();
  std::vector<double> prices(n, 0), best = prices;
  std::vector<double> prefix(n + 1, 0), gradient(n), direction(n, 0),
      diff(n + 1);
  std::vector<double> over(n);
  bool any = false;
  for (size_t k = 0; k < n; ++k) {
    over[k] = double(relaxation.live[k] - limitBytes);
    any |= over[k] > 0;
  }
  if (!any)
    return best;
  // Only gaps that contain a moment with a price ever matter; those are the
  // moments above the limit when all is kept.
  std::vector<int32_t> above(n + 1, 0);
  for (size_t k = 0; k < n; ++k)
    above[k + 1] = above[k] + (over[k] > 0);
  struct G {
    int32_t first, last; // [first, last)
    double bytes, cost;
  };
  std::vector<G> gaps;
  for (const Gap &g : relaxation.gaps)
    if (above[g.last + 1] > above[g.first])
      gaps.push_back({g.first, g.last + 1, double(g.bytes), double(g.cost)});
  int64_t perIteration = int64_t(n + gaps.size()) + 1;
  int64_t iterations = std::max<int64_t>(10, options.work / perIteration);

  double bestValue = 0;
  double target =
      options.knownExtraCost > 0 ? double(options.knownExtraCost) : 0;
  double guess = target;
  if (target <= 0) {
    // Without a plan: aim at a little above what has been reached.
    for (const G &g : gaps)
      guess += g.cost;
    guess *= 0.01;
  }
  double step = 1;
  int64_t sinceBest = 0, patience = std::clamp<int64_t>(iterations / 60, 8, 60);
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    for (size_t k = 0; k < n; ++k)
      prefix[k + 1] = prefix[k] + prices[k];
    std::fill(diff.begin(), diff.end(), 0.0);
    double value = 0;
    for (size_t k = 0; k < n; ++k)
      value += prices[k] * over[k];
    for (const G &g : gaps) {
      double gain = g.bytes * (prefix[g.last] - prefix[g.first]) - g.cost;
      if (gain > 0) {
        value -= gain;
        diff[g.first] += g.bytes;
        diff[g.last] -= g.bytes;
      }
    }
    if (value > bestValue) {
      if (value > bestValue * (1 + 1e-6))
        sinceBest = 0;
      bestValue = value;
      best = prices;
    } else if (++sinceBest > patience) {
      // The steps are too long: halve, and go on from the best prices.
      step *= 0.6;
      sinceBest = 0;
      prices = best;
      std::fill(direction.begin(), direction.end(), 0.0);
      if (step < 1e-7)
        break;
      continue;
    }
    double broken = 0, norm = 0;
    for (size_t k = 0; k < n; ++k) {
      broken += diff[k];
      gradient[k] = over[k] - broken;
      // Prices that are zero and pushed down don't move.
      if (prices[k] <= 0 && gradient[k] < 0)
        gradient[k] = 0;
    }
    double dot = 0, size = 0;
    for (size_t k = 0; k < n; ++k) {
      dot += gradient[k] * direction[k];
      size += direction[k] * direction[k];
    }
    // Deflection (Camerini, Fratta, Maffioli 1975): no zigzag.
    double gradientSize = 0;
    for (size_t k = 0; k < n; ++k)
      gradientSize += gradient[k] * gradient[k];
    double beta = dot < 0 && size > 0 ? -1.5 * dot / size : 0;
    for (size_t k = 0; k < n; ++k) {
      direction[k] = gradient[k] + beta * direction[k];
      norm += direction[k] * direction[k];
    }
    if (norm <= 0 || gradientSize <= 0)
      break;
    double aim = target > 0 ? std::max(target, bestValue * 1.0001)
                            : std::max(guess, bestValue * 1.05);
    double length = step * std::max(aim - value, 0.0) / norm;
    for (size_t k = 0; k < n; ++k)
      prices[k] = std::max(0.0, prices[k] + length * direction[k]);
  }
  return best;
}

Certificate tmc::planning::certify(const Problem &problem, const Relaxation &,
                                   const std::vector<double> &prices,
                                   int64_t budgetBytes) {
  Certificate best;
  best.budgetBytes = budgetBytes;
  best.extraCost = provenExtraCost(problem, best).value_or(0);
  double most = 0;
  for (double p : prices)
    most = std::max(most, p);
  if (!(most > 0) || !std::isfinite(most))
    return best;
  // The largest price becomes some 2^36; the denominator stays below 2^60.
  int exponent = std::clamp(36 - std::ilogb(most), 0, 60);
  Certificate c = best;
  c.denominator = int64_t(1) << exponent;
  for (size_t k = 0; k < prices.size(); ++k) {
    double scaled = std::floor(std::ldexp(prices[k], exponent));
    if (scaled >= 1 && scaled < 0x1p62)
      c.lambda.push_back({int32_t(k), int64_t(scaled)});
  }
  absl::StatusOr<int64_t> proven = provenExtraCost(problem, c);
  if (!proven.ok() || *proven <= best.extraCost)
    return best;
  c.extraCost = *proven;
  return c;
}

int64_t tmc::planning::impossibleBelow(const Problem &problem,
                                       const Relaxation &relaxation) {
  int64_t most = 0;
  for (int64_t bytes : relaxation.floor)
    most = std::max(most, bytes);
  return most + problem.reservedBytes;
}

int64_t tmc::planning::impossibleBelowFreely(const Problem &problem,
                                             const Relaxation &relaxation) {
  int64_t most = 0;
  for (int64_t bytes : relaxation.footprint)
    most = std::max(most, bytes);
  return most + problem.reservedBytes;
}
