// AnyOrderSum.h - the sum of `AnyOrder.h` over some moments, at any prices.
//
// In doubles it has a slope, for the ascent; in 128-bit integers it is the
// proof.

#ifndef TMC_COMPILER_PLANNING_BOUND_ANYORDERSUM_H
#define TMC_COMPILER_PLANNING_BOUND_ANYORDERSUM_H

#include "compiler/planning/bound/AnyOrder.h"
#include "compiler/planning/bound/AnyOrderGraph.h"

#include <algorithm>

namespace tmc::planning {

class AnyOrderSum {
public:
  /// The sum over rows that need more than `limitBytes`. Values without a chain
  /// in `chains` have one gap.
  AnyOrderSum(const AnyOrderGraph &graph, std::vector<AnyOrderGraph::Row> rows,
              int64_t limitBytes,
              std::vector<AnyOrderCertificate::Chain> chains);

  /// The sum at a price per row, and its slope there if `slope` isn't null.
  /// `one`: the factor of costs.
  template <typename N>
  N operator()(const std::vector<N> &at, std::vector<N> *slope,
               N one = N(1)) const {
    N sum = N(0);
    std::vector<N> rent(costs.size(), N(0));
    for (size_t r = 0; r < rows.size(); ++r) {
      sum += at[r] * N(needs[r]);
      for (size_t e = begins[r]; e < begins[r + 1]; ++e)
        rent[entries[e].gap] += at[r] * N(entries[e].bytes);
    }
    for (size_t g = 0; g < costs.size(); ++g)
      if (const N cost = one * N(costs[g]); rent[g] > cost)
        sum -= rent[g] - cost;
    if (!slope)
      return sum;
    for (size_t r = 0; r < rows.size(); ++r) {
      (*slope)[r] = N(needs[r]);
      for (size_t e = begins[r]; e < begins[r + 1]; ++e)
        if (rent[entries[e].gap] > one * N(costs[entries[e].gap]))
          (*slope)[r] -= N(entries[e].bytes);
    }
    return sum;
  }

  /// The price of row r that gives the highest sum, if no other one changes.
  /// `rent`: prices x bytes by gap, without row r.
  double bestPrice(size_t r, const std::vector<double> &rent) const;
  /// The bytes that row r needs even if all its gaps are broken; at most 0: it
  /// can be had.
  int64_t missingBytes(size_t r) const;
  /// Adds a price of row r to the rents of its gaps.
  void addRent(size_t r, double price, std::vector<double> &rent) const {
    for (size_t e = begins[r]; e < begins[r + 1]; ++e)
      rent[entries[e].gap] += price * double(entries[e].bytes);
  }

  size_t numEntries() const { return entries.size(); }

  const AnyOrderGraph &graph;
  std::vector<AnyOrderGraph::Row> rows;
  std::vector<AnyOrderCertificate::Chain> chains;
  std::vector<int64_t> needs; // By row, above 0.
  std::vector<int64_t> costs; // By gap.

private:
  struct Entry {
    int32_t gap = 0;
    int64_t bytes = 0;
  };
  int32_t addGaps(ValueId v, const std::vector<InstructionId> &chain);

  std::vector<size_t> begins; // Entries by row, and the end.
  std::vector<Entry> entries;
};

/// The longest chain of each value over these rows. Two readers are in order if
/// a moment surely stands between them. Chains that cut nothing are left out.
std::vector<AnyOrderCertificate::Chain>
findChains(const AnyOrderGraph &graph,
           const std::vector<AnyOrderGraph::Row> &rows);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_ANYORDERSUM_H
