// AnyOrderSum.h - the sum of `AnyOrder.h` over some moments, at any prices.
//
// In doubles it has a slope, for the ascent; in 128-bit integers it is the
// proof. The sum without inputs stands here, the one with them in
// `AnyOrderInputs.h`.

#ifndef TMC_COMPILER_PLANNING_BOUND_ANYORDERSUM_H
#define TMC_COMPILER_PLANNING_BOUND_ANYORDERSUM_H

#include "compiler/planning/bound/AnyOrderGaps.h"

#include <algorithm>

namespace tmc::planning {

class AnyOrderSum {
public:
  struct Entry {
    int32_t gap = 0;
    int64_t bytes = 0;
  };

  /// The sum over rows that need more than `limitBytes`.
  AnyOrderSum(AnyOrderGaps gaps, std::vector<AnyOrderGraph::Row> rows,
              int64_t limitBytes);

  /// The sum at a price per row, and its slope there if `slope` isn't null.
  template <typename N>
  N operator()(const std::vector<N> &at, std::vector<N> *slope) const {
    std::vector<N> rents(gaps.costs.size(), N(0));
    const N sum = addRents(at, rents) - paidBack(rents, N(1));
    for (size_t r = 0; slope && r < rows.size(); ++r) {
      (*slope)[r] = N(needs[r]);
      for (const Entry &e : entriesOf(r))
        if (rents[e.gap] > N(gaps.costs[e.gap]))
          (*slope)[r] -= N(e.bytes);
    }
    return sum;
  }

  /// The prices of all needs. Adds the rents that gaps pay.
  template <typename N>
  N addRents(const std::vector<N> &at, std::vector<N> &rents) const {
    N sum = N(0);
    for (size_t r = 0; r < rows.size(); ++r) {
      sum += at[r] * N(needs[r]);
      for (const Entry &e : entriesOf(r))
        rents[e.gap] += at[r] * N(e.bytes);
    }
    return sum;
  }
  /// The rents above the gaps' costs. `one`: the factor of costs.
  template <typename N> N paidBack(const std::vector<N> &rents, N one) const {
    N sum = N(0);
    for (size_t g = 0; g < gaps.costs.size(); ++g)
      if (const N cost = one * N(gaps.costs[g]); rents[g] > cost)
        sum += rents[g] - cost;
    return sum;
  }

  /// The price of row r that gives the highest sum, if no other one changes.
  /// `rents`: prices x bytes by gap, without row r.
  double bestPrice(size_t r, const std::vector<double> &rents) const;
  /// The bytes that row r needs even if all its gaps are broken; at most 0: it
  /// can be had.
  int64_t missingBytes(size_t r) const;
  /// Adds a price of row r to the rents of its gaps.
  void addRent(size_t r, double price, std::vector<double> &rents) const {
    for (const Entry &e : entriesOf(r))
      rents[e.gap] += price * double(e.bytes);
  }

  std::span<const Entry> entriesOf(size_t r) const {
    return {entries.data() + begins[r], entries.data() + begins[r + 1]};
  }
  size_t numEntries() const { return entries.size(); }

  AnyOrderGaps gaps;
  std::vector<AnyOrderGraph::Row> rows;
  std::vector<int64_t> needs; // By row, above 0.

private:
  std::vector<size_t> begins; // Entries by row, and the end.
  std::vector<Entry> entries;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_ANYORDERSUM_H
