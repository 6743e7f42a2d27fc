// GapSum.h - the sum of `Bound.h` at a point of weights and prices.
//
// In doubles it has a slope, for the ascent; in 128-bit integers it is the
// proof. One template serves both, so the ascent climbs the proved sum.
//
// The sum is relative to the load of compute alone, so that its digits tell one
// point from another.

#ifndef TMC_COMPILER_PLANNING_BOUND_GAPSUM_H
#define TMC_COMPILER_PLANNING_BOUND_GAPSUM_H

#include "compiler/planning/bound/GapModel.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace tmc::planning {

/// A space without a limit of bytes has no prices. No budget less its reserved
/// bytes is as small as this.
inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::min();

/// A point, or a slope at one, is a vector of coordinates: the weights by
/// stretch, then engine; then prices by space, then moment. If weights don't
/// move, because there is one engine, they have no coordinates.
template <typename N> class GapSum {
public:
  using Range = GapModel::Range;
  using Point = std::vector<N>;

  /// `one`: a weight of 1. Without `isWhole`, one engine's weights have no
  /// coordinates, nor have prices of moments that are within their limit with
  /// every gap unbroken: such a price would be 0.
  /// `borders`: moments that begin a stretch within a segment, in order.
  GapSum(const GapModel &model, const std::vector<int64_t> &limits, N one,
         bool isWhole, const std::vector<int32_t> &borders);

  /// A point with these weights on compute and on the other engines, and no
  /// prices.
  Point point(N compute, N others) const;
  /// The sum at a point, and its slope there if `slope` isn't null.
  N operator()(const Point &at, Point *slope);

  int32_t weightOf(int32_t stretch, EngineId e) const {
    return stretch * numEngines + e;
  }
  /// The coordinate of a moment's price, or else of the next one's.
  int32_t priceOf(SpaceId space, int32_t moment) const {
    return first[space][moment];
  }
  size_t numGaps() const { return numPlain; }
  /// The cost of breaking every plain gap, if weights don't move.
  N costOfGaps() const;

  const GapModel &model;
  const int32_t numEngines;
  int32_t numWeights = 0;
  std::vector<int32_t> moments; // Each price's.

private:
  struct Term {
    int32_t begin = 0, end = 0; // Entries of `before`.
    Range more;                 // Further ones, in `extra`.
    Range charges, also;
    N bytes = N(0);
    N cost = N(0); // The charge, if weights don't move.
    bool isOwed = false;
    SpaceId space = kNone; // Of a timed gap; else kNone.
  };
  struct Charge {
    N amount = N(0);
    int32_t end = 0;           // The rent is saved of prices before this entry.
    N costs[2] = {N(0), N(0)}; // The run's, and the one's that is paid as well.
    int32_t weights[2] = {kNone, kNone};
  };
  /// The stretches that these moments of a segment lie in; all, if none do.
  Range stretchesOf(SegmentId s, Range moments) const {
    if (moments.size() == 0)
      return {firstOf[s], firstOf[s + 1]};
    return {stretchOf[moments.begin], stretchOf[moments.end - 1] + 1};
  }
  int32_t leastWeight(EngineId engine, Range stretches, const Point &at) const;
  void findLeast(const Point &at);

  std::vector<std::vector<int64_t>> mostBytes() const;
  Term termOf(const GapModel::Gap &gap);
  N weight(int32_t w, const Point &at) const {
    return numWeights ? at[w] : one;
  }
  Charge chargeOf(const Term &term, const Point &at) const {
    if (!numWeights)
      return {term.cost, term.end};
    Charge all;
    all.end = term.end;
    for (int i = 0; i < 2; ++i) {
      N least = N(0);
      const Range range = i ? term.also : term.charges;
      for (int32_t c = range.begin; c < range.end; ++c) {
        const GapModel::Charge &by = model.charges[c];
        const int32_t w = leastWeight(by.engine, spans[c], at);
        if (N amount = at[w] * N(by.cost); c == range.begin || amount < least)
          least = amount, all.costs[i] = N(by.cost), all.weights[i] = w;
      }
      all.amount += least;
    }
    if (term.space != kNone && all.amount < rentOf(term))
      findTime(term, at, all);
    return all;
  }
  /// A run stands in a stretch, and the value is alive in those behind it.
  /// Changes `all` to the stretch in which breaking the gap costs least.
  void findTime(const Term &term, const Point &at, Charge &all) const {
    bool isFirst = true;
    N least = N(0);
    for (int32_t c = term.charges.begin; c < term.charges.end; ++c) {
      const GapModel::Charge &by = model.charges[c];
      for (int32_t i = spans[c].begin; i < spans[c].end; ++i) {
        const int32_t end =
            std::clamp(ends[term.space][i], term.begin, term.end);
        const int32_t w = weightOf(i, by.engine);
        const N amount =
            at[w] * N(by.cost) + term.bytes * (before[term.end] - before[end]);
        if (!isFirst && !(amount < least))
          continue;
        isFirst = false;
        least = amount;
        all.end = end, all.costs[0] = N(by.cost), all.weights[0] = w;
      }
    }
    all.amount = least;
    if (all.weights[1] != kNone)
      all.amount += at[all.weights[1]] * all.costs[1];
  }
  N rentOf(const Term &term) const {
    N price = before[term.end] - before[term.begin];
    for (int32_t r = term.more.begin; r < term.more.end; ++r)
      price += before[extra[r].end] - before[extra[r].begin];
    return term.bytes * price;
  }
  bool isBroken(const Term &term, const Charge &charge) const {
    return term.isOwed ||
           (term.charges.size() > 0 && charge.amount < rentOf(term));
  }
  /// Adds to the slope: the charge of a gap, or `bytes` at its moments.
  void pay(const Charge &charge, Point &slope) const {
    for (int i = 0; i < 2; ++i)
      if (charge.weights[i] != kNone)
        slope[charge.weights[i]] += charge.costs[i];
  }
  void spread(const Term &term, int32_t end, N bytes) {
    change[term.begin] += bytes;
    change[end] -= bytes;
    for (int32_t r = term.more.begin; r < term.more.end; ++r) {
      change[extra[r].begin] += bytes;
      change[extra[r].end] -= bytes;
    }
  }
  N sumOf(const GapModel::Choice &choice, const GapModel::Variant &variant,
          const Point &at, Point *slope);

  const N one;
  size_t numPlain = 0;
  std::vector<int32_t> stretchOf; // By moment.
  std::vector<int32_t> firstOf;   // By segment, and the end: a stretch.
  std::vector<N> loads;           // Compute's, by stretch, without choices.
  std::vector<Range> spans;       // Stretches, by entry of `model.charges`.
  std::vector<std::vector<int32_t>> ends; // Entry of `before`, by stretch.
  /// Entry of the least weight of an engine in 2^i stretches from each one on,
  /// by i, then as weights are.
  std::vector<std::vector<int32_t>> least;
  std::vector<std::vector<int32_t>> first; // By space, then moment.
  std::vector<N> over;                     // Live bytes above the limit.
  std::vector<Term> terms;                 // Plain ones first.
  std::vector<int32_t> termOfGap;          // kNone: it pays nothing.
  std::vector<Range> extra;
  std::vector<N> before; // Prices before each one, and at each space's end.
  std::vector<N> change; // The slope's, as differences.
};

/// The most bytes by space, then moment: choices may take all that any variant
/// takes.
template <typename N>
std::vector<std::vector<int64_t>> GapSum<N>::mostBytes() const {
  std::vector<std::vector<int64_t>> most = model.live;
  for (const GapModel::Choice &choice : model.choices)
    for (int32_t v = choice.variants.begin; v < choice.variants.end; ++v)
      for (int32_t o = model.variants[v].bytes.begin;
           o < model.variants[v].bytes.end; ++o)
        most[model.operands[o].first][choice.moment] +=
            model.operands[o].second;
  // By moment, since gaps of a million updates may each last for half a step.
  std::vector<std::vector<int64_t>> rises(
      most.size(), std::vector<int64_t>(model.numMoments() + 1, 0));
  for (size_t g = model.plainGaps; g < model.gaps.size(); ++g) {
    const Value &value = model.problem.values[model.gaps[g].value];
    const Range own = model.gaps[g].moments;
    for (int32_t r = own.begin; r < own.end; ++r) {
      rises[value.space][model.ranges[r].begin] += value.bytes;
      rises[value.space][model.ranges[r].end] -= value.bytes;
    }
  }
  for (size_t space = 0; space < most.size(); ++space) {
    int64_t held = 0;
    for (size_t k = 0; k < most[space].size(); ++k) {
      held += rises[space][k];
      most[space][k] += held;
    }
  }
  return most;
}

template <typename N>
GapSum<N>::GapSum(const GapModel &model, const std::vector<int64_t> &limits,
                  N one, bool isWhole, const std::vector<int32_t> &borders)
    : model(model), numEngines(int32_t(model.problem.engines.size())), one(one),
      first(limits.size()) {
  const std::vector<std::vector<int64_t>> most = mostBytes();
  auto border = borders.begin();
  for (size_t s = 0; s + 1 < model.begins.size(); ++s) {
    firstOf.push_back(int32_t(loads.size()));
    loads.push_back(N(0));
    for (int32_t k = model.begins[s]; k < model.begins[s + 1]; ++k) {
      if (border != borders.end() && *border == k)
        loads.push_back(N(0)), ++border;
      loads.back() += N(model.costs[k]);
      stretchOf.push_back(int32_t(loads.size()) - 1);
    }
  }
  firstOf.push_back(int32_t(loads.size()));
  if (isWhole || numEngines > 1)
    numWeights = weightOf(int32_t(loads.size()), 0);
  for (const GapModel::Charge &charge : model.charges)
    spans.push_back(stretchesOf(charge.segment, charge.when));
  for (size_t s = 0; s < limits.size(); ++s) {
    auto next = [&] { return numWeights + int32_t(moments.size()); };
    for (size_t k = 0; k < model.numMoments(); ++k) {
      first[s].push_back(next());
      if (limits[s] != kNoLimit && (isWhole || most[s][k] > limits[s])) {
        moments.push_back(int32_t(k));
        over.push_back(N(model.live[s][k]) - N(limits[s]));
      }
    }
    first[s].push_back(next());
  }
  for (size_t s = 0; s < limits.size(); ++s) {
    std::vector<int32_t> &row = ends.emplace_back(loads.size(), 0);
    for (size_t k = 0; k < model.numMoments(); ++k)
      row[stretchOf[k]] = first[s][k + 1] + int32_t(s);
    for (size_t i = 1; i < row.size(); ++i)
      row[i] = std::max(row[i], row[i - 1]); // A segment may be empty.
  }
  before.assign(numWeights + moments.size() + limits.size(), N(0));
  change = before;
  for (size_t g = 0; g < model.gaps.size(); ++g) {
    if (g == model.plainGaps)
      numPlain = terms.size();
    const Term term = termOf(model.gaps[g]);
    const bool isEmpty = term.begin == term.end && !term.isOwed;
    termOfGap.push_back(isEmpty ? kNone : int32_t(terms.size()));
    if (!isEmpty)
      terms.push_back(term);
  }
  if (model.plainGaps == model.gaps.size())
    numPlain = terms.size();
}

template <typename N>
typename GapSum<N>::Term GapSum<N>::termOf(const GapModel::Gap &gap) {
  const Value &value = model.problem.values[gap.value];
  Term term;
  term.isOwed = gap.isOwed;
  term.charges = gap.charges;
  term.also = gap.also;
  term.bytes = N(value.bytes);
  for (int32_t c = gap.charges.begin; c < gap.charges.end; ++c)
    if (N cost = one * N(model.charges[c].cost);
        c == gap.charges.begin || cost < term.cost)
      term.cost = cost;
  term.more.begin = int32_t(extra.size());
  for (int32_t r = gap.moments.begin; r < gap.moments.end; ++r) {
    const Range &moments = model.ranges[r];
    // Each space has one entry more than prices.
    const Range range{first[value.space][moments.begin] + value.space,
                      first[value.space][moments.end] + value.space};
    if (r == gap.moments.begin && range.size() > 0 && gap.isTimed)
      term.space = value.space;
    if (range.size() > 0 && term.begin == term.end)
      term.begin = range.begin, term.end = range.end;
    else if (range.size() > 0)
      extra.push_back(range);
  }
  term.more.end = int32_t(extra.size());
  return term;
}

template <typename N>
std::vector<N> GapSum<N>::point(N compute, N others) const {
  Point out(numWeights + moments.size(), N(0));
  for (int32_t w = 0; w < numWeights; ++w)
    out[w] = w % numEngines ? others : compute;
  return out;
}

template <typename N> N GapSum<N>::costOfGaps() const {
  N cost = N(0);
  for (size_t t = 0; t < numPlain; ++t)
    cost += terms[t].cost;
  return cost;
}

/// The sum of a variant; adds its slope to `slope` if that isn't null.
template <typename N>
N GapSum<N>::sumOf(const GapModel::Choice &choice,
                   const GapModel::Variant &variant, const Point &at,
                   Point *slope) {
  // Work goes on beside compute, to the segment's end at most.
  const int32_t end =
      variant.engine ? model.begins[choice.segment + 1] : choice.moment + 1;
  const int32_t own =
      numWeights
          ? leastWeight(variant.engine,
                        stretchesOf(choice.segment, {choice.moment, end}), at)
          : 0;
  N sum = weight(own, at) * N(variant.cost);
  if (slope && numWeights)
    (*slope)[own] += N(variant.cost);
  for (int32_t o = variant.bytes.begin; o < variant.bytes.end; ++o) {
    auto [space, bytes] = model.operands[o];
    const int32_t price = priceOf(space, choice.moment);
    if (priceOf(space, choice.moment + 1) == price)
      continue;
    sum += at[price] * N(bytes);
    if (slope)
      (*slope)[price] += N(bytes);
  }
  for (int32_t g = variant.gaps.begin; g < variant.gaps.end; ++g) {
    const int32_t t = termOfGap[model.endingGaps[g]];
    if (t == kNone)
      continue;
    const Charge charge = chargeOf(terms[t], at);
    const bool pays = isBroken(terms[t], charge);
    sum += pays ? charge.amount : rentOf(terms[t]);
    if (!slope)
      continue;
    spread(terms[t], terms[t].end, -terms[t].bytes);
    if (pays) {
      pay(charge, *slope);
      spread(terms[t], charge.end, terms[t].bytes);
    }
  }
  return sum;
}

template <typename N> void GapSum<N>::findLeast(const Point &at) {
  least.assign(1, std::vector<int32_t>(numWeights));
  std::iota(least[0].begin(), least[0].end(), 0);
  for (int32_t half = numEngines; 2 * half <= numWeights; half *= 2) {
    const std::vector<int32_t> &halves = least.back();
    std::vector<int32_t> next(numWeights - 2 * half + numEngines);
    for (int32_t w = 0; w < int32_t(next.size()); ++w)
      next[w] =
          at[halves[w + half]] < at[halves[w]] ? halves[w + half] : halves[w];
    least.push_back(std::move(next));
  }
}

template <typename N>
int32_t GapSum<N>::leastWeight(EngineId engine, Range stretches,
                               const Point &at) const {
  const int32_t i = std::bit_width(uint32_t(stretches.size())) - 1;
  const int32_t a = least[i][weightOf(stretches.begin, engine)],
                b = least[i][weightOf(stretches.end - (1 << i), engine)];
  return at[b] < at[a] ? b : a;
}

template <typename N> N GapSum<N>::operator()(const Point &at, Point *slope) {
  N value = N(0);
  if (numWeights)
    findLeast(at);
  auto visit = [&](auto f) {
    for (size_t s = 0; s < first.size(); ++s)
      for (int32_t c = first[s].front(); c < first[s].back(); ++c)
        f(c, c + s);
  };
  visit([&](int32_t c, size_t b) {
    before[b + 1] = before[b] + at[c];
    value += at[c] * over[c - numWeights];
  });
  if (slope) {
    std::fill(change.begin(), change.end(), N(0));
    std::fill(slope->begin(), slope->begin() + numWeights, N(0));
    std::copy(over.begin(), over.end(), slope->begin() + numWeights);
  }
  for (size_t t = 0; t < numPlain; ++t) {
    const Charge charge = chargeOf(terms[t], at);
    const N gain = rentOf(terms[t]) - charge.amount;
    if (!(gain > N(0)))
      continue;
    value -= gain;
    if (slope) {
      spread(terms[t], charge.end, terms[t].bytes);
      pay(charge, *slope);
    }
  }
  for (const GapModel::Choice &choice : model.choices) {
    const GapModel::Variant *best = nullptr;
    N least = N(0);
    for (int32_t v = choice.variants.begin; v < choice.variants.end; ++v) {
      const N sum = sumOf(choice, model.variants[v], at, nullptr);
      if (!best || sum < least)
        best = &model.variants[v], least = sum;
    }
    value += least;
    if (slope)
      sumOf(choice, *best, at, slope);
  }
  for (int32_t w = 0; w < numWeights; w += numEngines) {
    const N load = loads[w / numEngines];
    value += load * (at[w] - one);
    if (slope)
      (*slope)[w] += load;
  }
  if (slope)
    for (size_t s = 0; s < first.size(); ++s) {
      N broken = N(0);
      for (int32_t c = first[s].front(); c < first[s].back(); ++c)
        (*slope)[c] -= broken += change[c + s];
    }
  return value;
}

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_GAPSUM_H
