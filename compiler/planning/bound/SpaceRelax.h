// SpaceRelax.h - the sum of `SpaceBound.h` at a point of weights and prices.
//
// In doubles it has a slope, for the ascent; in 128-bit integers it is the
// proof. One template serves both, so the ascent climbs the proved sum.

#ifndef TMC_COMPILER_PLANNING_BOUND_SPACERELAX_H
#define TMC_COMPILER_PLANNING_BOUND_SPACERELAX_H

#include "compiler/planning/bound/SpaceBound.h"
#include "compiler/planning/bound/SpaceModel.h"

namespace tmc::planning {

/// Weights and prices, dense; also a slope in each of them.
template <typename N> struct SpacePoint {
  std::vector<std::vector<N>> weights; // By segment, engine.
  std::vector<std::vector<N>> prices;  // By space, moment.

  explicit SpacePoint(const SpaceModel &model)
      : weights(model.problem.segments.size(),
                std::vector<N>(model.problem.engines.size(), N(0))),
        prices(model.problem.spaces.size(),
               std::vector<N>(model.order.size(), N(0))) {}
};

template <typename N> class SpaceRelax {
public:
  explicit SpaceRelax(const SpaceModel &model) : model(model) {}

  /// The sum; adds its slope to `slope` if there is one.
  N sum(const SpacePoint<N> &at, SpacePoint<N> *slope);

private:
  struct Charge {
    N amount = N(0);
    const SpaceModel::Breaker *by = nullptr;
    SegmentId segment = 0;
  };
  Charge least(const SpacePoint<N> &at, ValueId v, SegmentId from, SegmentId to,
               int64_t readers) const;
  N rentOf(const SpaceModel::Gap &gap) const;
  N sumOfVariant(const SpacePoint<N> &at, const SpaceModel::Run &run,
                 const SpaceModel::Variant &variant) const;
  void slopeOf(const SpacePoint<N> &at, const SpaceModel::Run &run,
               const SpaceModel::Variant &variant, SpacePoint<N> &slope);
  SegmentId lastSegment() const {
    return SegmentId(model.problem.segments.size()) - 1;
  }

  const SpaceModel &model;
  std::vector<std::vector<N>> before; // Per space: prices before each moment.
  std::vector<std::vector<N>> change; // The slope's, as differences.
};

template <typename N>
typename SpaceRelax<N>::Charge
SpaceRelax<N>::least(const SpacePoint<N> &at, ValueId v, SegmentId from,
                     SegmentId to, int64_t readers) const {
  Charge best;
  for (const SpaceModel::Breaker &b : model.breakers[v])
    for (SegmentId s = from; s <= to; ++s) {
      if (b.segment != kNone && b.segment != s)
        continue;
      N amount = at.weights[s][b.engine] * N(b.cost) / N(b.shares) / N(readers);
      if (!best.by || amount < best.amount)
        best = {amount, &b, s};
    }
  return best;
}

template <typename N>
N SpaceRelax<N>::rentOf(const SpaceModel::Gap &gap) const {
  const Value &value = model.problem.values[gap.value];
  const std::vector<N> &sums = before[value.space];
  N rent = N(0);
  for (const SpaceModel::Range &r : gap.ranges)
    rent += (sums[r.end] - sums[r.begin]) * N(r.copies);
  return rent * N(value.bytes);
}

template <typename N>
N SpaceRelax<N>::sumOfVariant(const SpacePoint<N> &at,
                              const SpaceModel::Run &run,
                              const SpaceModel::Variant &variant) const {
  N sum = at.weights[run.segment][variant.engine] * N(variant.cost);
  for (auto [space, bytes] : variant.bytes)
    sum += at.prices[space][run.moment] * N(bytes);
  for (ValueId v : variant.inputs)
    sum += least(at, v, 0, lastSegment(), model.readers[v]).amount;
  for (int32_t g : variant.gaps) {
    const SpaceModel::Gap &gap = model.gaps[g];
    Charge charge = least(at, gap.value, gap.from, gap.to, 1);
    N rent = rentOf(gap);
    sum += charge.by && charge.amount < rent ? charge.amount : rent;
  }
  return sum;
}

template <typename N>
void SpaceRelax<N>::slopeOf(const SpacePoint<N> &at, const SpaceModel::Run &run,
                            const SpaceModel::Variant &variant,
                            SpacePoint<N> &slope) {
  N times = N(run.times);
  auto pay = [&](const Charge &c, int64_t readers) {
    if (c.by)
      slope.weights[c.segment][c.by->engine] +=
          times * N(c.by->cost) / N(c.by->shares) / N(readers);
  };
  slope.weights[run.segment][variant.engine] += times * N(variant.cost);
  for (auto [space, bytes] : variant.bytes)
    slope.prices[space][run.moment] += times * N(bytes);
  for (ValueId v : variant.inputs)
    pay(least(at, v, 0, lastSegment(), model.readers[v]), model.readers[v]);
  for (int32_t g : variant.gaps) {
    const SpaceModel::Gap &gap = model.gaps[g];
    Charge charge = least(at, gap.value, gap.from, gap.to, 1);
    if (charge.by && charge.amount < rentOf(gap)) {
      pay(charge, 1);
      continue;
    }
    const Value &value = model.problem.values[gap.value];
    for (const SpaceModel::Range &r : gap.ranges) {
      N bytes = times * N(r.copies) * N(value.bytes);
      change[value.space][r.begin] += bytes;
      change[value.space][r.end] -= bytes;
    }
  }
}

template <typename N>
N SpaceRelax<N>::sum(const SpacePoint<N> &at, SpacePoint<N> *slope) {
  size_t moments = model.order.size(), spaces = model.problem.spaces.size();
  before.assign(spaces, std::vector<N>(moments + 1, N(0)));
  for (size_t s = 0; s < spaces; ++s)
    for (size_t k = 0; k < moments; ++k)
      before[s][k + 1] = before[s][k] + at.prices[s][k];
  if (slope)
    change.assign(spaces, std::vector<N>(moments + 1, N(0)));
  N total = N(0);
  for (const SpaceModel::Run &run : model.runs) {
    const SpaceModel::Variant *best = nullptr;
    N least = N(0);
    for (const SpaceModel::Variant &variant : run.variants) {
      N sum = sumOfVariant(at, run, variant);
      if (!best || sum < least) {
        best = &variant;
        least = sum;
      }
    }
    total += least * N(run.times);
    if (slope)
      slopeOf(at, run, *best, *slope);
  }
  for (size_t s = 0; s < spaces; ++s) {
    if (model.problem.spaces[s].budgetBytes < 0)
      continue;
    N limit = N(model.problem.spaces[s].budgetBytes) -
              N(model.problem.reservedOf(SpaceId(s))) -
              N(model.residentBytes[s]);
    N held = N(0);
    for (size_t segment = 0; segment < model.problem.segments.size(); ++segment)
      for (int32_t k = model.begins[segment]; k < model.begins[segment + 1];
           ++k) {
        N trips = N(model.problem.segments[segment].trips);
        total -= at.prices[s][k] * limit * trips;
        if (!slope)
          continue;
        held += change[s][k];
        slope->prices[s][k] += held - limit * trips;
      }
  }
  return total;
}

/// The bound that `certificate` proves, and the certificate that `ascendSpaces`
/// finds, if `model` is correct.
absl::StatusOr<int64_t> provenBy(const SpaceModel &model,
                                 const SpaceCertificate &certificate);
SpaceCertificate ascend(const SpaceModel &model,
                        const SpaceAscentOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_SPACERELAX_H
