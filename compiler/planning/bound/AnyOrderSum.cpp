#include "compiler/planning/bound/AnyOrderSum.h"

#include <map>

using namespace tmc::planning;

namespace {

/// Readers beyond these many of one value aren't compared pair by pair.
constexpr size_t kMostCompared = 48;

/// Finds the longest chain of one value's readers, each of which has a moment
/// between itself and the next.
class ChainSearch {
public:
  ChainSearch(const AnyOrderGraph &graph,
              const std::vector<AnyOrderGraph::Row> &rows)
      : graph(graph), rows(rows) {}

  /// The chain of v over these of its rows.
  std::vector<InstructionId> run(ValueId v, const std::vector<int32_t> &own);

private:
  bool isInOrder(InstructionId a, InstructionId b,
                 const std::vector<int32_t> &own) const {
    return std::any_of(own.begin(), own.end(), [&](int32_t r) {
      return rows[r].isBefore[a] && rows[r].isBehind[b];
    });
  }

  const AnyOrderGraph &graph;
  const std::vector<AnyOrderGraph::Row> &rows;
};

std::vector<InstructionId> ChainSearch::run(ValueId v,
                                            const std::vector<int32_t> &own) {
  std::vector<InstructionId> readers = graph.chainReaders(v);
  // A reader that cuts nothing has no row before it, or none behind it.
  std::erase_if(readers, [&](InstructionId b) {
    auto some = [&](bool before) {
      return std::any_of(own.begin(), own.end(), [&](int32_t r) {
        return before ? rows[r].isBefore[b] : rows[r].isBehind[b];
      });
    };
    return !some(true) || !some(false);
  });
  std::vector<InstructionId> chain;
  if (readers.size() > kMostCompared) {
    for (InstructionId b : readers)
      if (chain.empty() || isInOrder(chain.back(), b, own))
        chain.push_back(b);
    return chain;
  }
  std::vector<int32_t> length(readers.size(), 1), last(readers.size(), kNone);
  int32_t best = kNone;
  for (size_t b = 0; b < readers.size(); ++b) {
    for (size_t a = 0; a < b; ++a)
      if (length[a] >= length[b] && isInOrder(readers[a], readers[b], own)) {
        length[b] = length[a] + 1;
        last[b] = int32_t(a);
      }
    if (best == kNone || length[b] > length[best])
      best = int32_t(b);
  }
  for (int32_t b = best; b != kNone; b = last[b])
    chain.insert(chain.begin(), readers[b]);
  return chain;
}

} // namespace

std::vector<AnyOrderCertificate::Chain>
tmc::planning::findChains(const AnyOrderGraph &graph,
                          const std::vector<AnyOrderGraph::Row> &rows) {
  std::map<ValueId, std::vector<int32_t>> rowsOf;
  for (size_t r = 0; r < rows.size(); ++r)
    for (const AnyOrderGraph::Held &h : rows[r].held)
      if (!h.isBehindLoop)
        rowsOf[h.value].push_back(int32_t(r));
  ChainSearch search(graph, rows);
  std::vector<AnyOrderCertificate::Chain> out;
  for (const auto &[value, own] : rowsOf)
    if (own.size() > 1)
      if (std::vector<InstructionId> chain = search.run(value, own);
          !chain.empty())
        out.push_back({value, std::move(chain)});
  return out;
}

/// Adds the gaps of v between the readers of its chain; returns the first one.
int32_t AnyOrderSum::addGaps(ValueId v,
                             const std::vector<InstructionId> &chain) {
  const int32_t first = int32_t(costs.size());
  auto loopOf = [&](size_t i) -> SegmentId { // The gap's i-th end's.
    if (graph.isLoopMade(v) || chain.empty())
      return kNone;
    const SegmentId s =
        i == 0 || i > chain.size() ? kNone : graph.segmentOf(chain[i - 1]);
    return s != kNone && graph.tripsOf(s) > 1 ? s : kNone;
  };
  for (size_t i = 0; i <= chain.size(); ++i) {
    int64_t cost = graph.factOf(v).cost;
    if (graph.isLoopMade(v))
      cost *= graph.tripsOf(graph.segmentOf(graph.factOf(v).maker));
    else if (const SegmentId s = loopOf(i); s != kNone && s == loopOf(i + 1))
      cost *= graph.tripsOf(s);
    costs.push_back(cost);
  }
  return first;
}

AnyOrderSum::AnyOrderSum(const AnyOrderGraph &graph,
                         std::vector<AnyOrderGraph::Row> given,
                         int64_t limitBytes,
                         std::vector<AnyOrderCertificate::Chain> chainsGiven)
    : graph(graph), chains(std::move(chainsGiven)) {
  for (AnyOrderGraph::Row &row : given)
    if (row.liveBytes > limitBytes) {
      needs.push_back(row.liveBytes - limitBytes);
      rows.push_back(std::move(row));
    }
  std::map<ValueId, const std::vector<InstructionId> *> chainOf;
  for (const AnyOrderCertificate::Chain &c : chains)
    chainOf[c.value] = &c.readers;
  std::map<ValueId, int32_t> firstGap, gapBehind;
  static const std::vector<InstructionId> none;
  for (size_t r = 0; r < rows.size(); ++r) {
    const AnyOrderGraph::Row &row = rows[r];
    begins.push_back(entries.size());
    for (const AnyOrderGraph::Held &h : row.held) {
      const int64_t bytes =
          std::min(graph.problem.values[h.value].bytes, needs[r]);
      if (h.isBehindLoop) {
        auto [it, isNew] = gapBehind.insert({h.value, int32_t(costs.size())});
        if (isNew)
          costs.push_back(graph.factOf(h.value).costBehind);
        entries.push_back({it->second, bytes});
        continue;
      }
      auto found = chainOf.find(h.value);
      const std::vector<InstructionId> &chain =
          found == chainOf.end() ? none : *found->second;
      if (!firstGap.count(h.value))
        firstGap[h.value] = addGaps(h.value, chain);
      size_t from = 0, to = chain.size();
      for (size_t i = 0; i < chain.size(); ++i)
        if (row.isBefore[chain[i]])
          from = i + 1;
      for (size_t i = chain.size(); i-- > from;)
        if (row.isBehind[chain[i]])
          to = i;
      for (size_t g = from; g <= to; ++g)
        entries.push_back({firstGap[h.value] + int32_t(g), bytes});
    }
  }
  begins.push_back(entries.size());
}

double AnyOrderSum::bestPrice(size_t r, const std::vector<double> &rent) const {
  // The slope falls by a gap's bytes at the price that breaks it.
  std::vector<std::pair<double, int64_t>> breaks;
  for (size_t e = begins[r]; e < begins[r + 1]; ++e) {
    const double left = double(costs[entries[e].gap]) - rent[entries[e].gap];
    breaks.push_back(
        {std::max(0.0, left) / double(entries[e].bytes), entries[e].bytes});
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
  for (size_t e = begins[r]; e < begins[r + 1]; ++e)
    bytes -= entries[e].bytes;
  return bytes;
}
