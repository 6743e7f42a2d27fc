#include "compiler/planning/bound/AnyOrderSum.h"

using namespace tmc::planning;

AnyOrderSum::AnyOrderSum(AnyOrderGaps ofGaps,
                         std::vector<AnyOrderGraph::Row> given,
                         int64_t limitBytes)
    : gaps(std::move(ofGaps)) {
  for (AnyOrderGraph::Row &row : given) {
    if (row.liveBytes <= limitBytes)
      continue;
    const int64_t need = row.liveBytes - limitBytes;
    begins.push_back(entries.size());
    for (const AnyOrderGraph::Held &h : row.held) {
      const AnyOrderGaps::Range range = gaps.around(row, h);
      const int64_t bytes =
          std::min(gaps.graph.problem.values[h.value].bytes, need);
      for (int32_t g = range.begin; g < range.end; ++g)
        entries.push_back({g, bytes});
    }
    needs.push_back(need);
    rows.push_back(std::move(row));
  }
  begins.push_back(entries.size());
}

double AnyOrderSum::bestPrice(size_t r,
                              const std::vector<double> &rents) const {
  // The slope falls by a gap's bytes at the price that breaks it.
  std::vector<std::pair<double, int64_t>> breaks;
  for (const Entry &e : entriesOf(r)) {
    const double left = double(gaps.costs[e.gap]) - rents[e.gap];
    breaks.push_back({std::max(0.0, left) / double(e.bytes), e.bytes});
  }
  std::sort(breaks.begin(), breaks.end());
  int64_t slope = needs[r];
  for (auto [price, bytes] : breaks)
    if (slope -= bytes; slope <= 0)
      return price;
  return breaks.empty() ? 0 : breaks.back().first;
}

int64_t AnyOrderSum::missingBytes(size_t r) const {
  int64_t bytes = needs[r];
  for (const Entry &e : entriesOf(r))
    bytes -= e.bytes;
  return bytes;
}
