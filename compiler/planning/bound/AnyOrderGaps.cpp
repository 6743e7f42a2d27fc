#include "compiler/planning/bound/AnyOrderGaps.h"

#include <algorithm>

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

AnyOrderGaps::AnyOrderGaps(const AnyOrderGraph &graph,
                           std::vector<AnyOrderCertificate::Chain> given)
    : graph(graph), chains(std::move(given)) {
  for (const AnyOrderCertificate::Chain &c : chains)
    chainOf[c.value] = &c.readers;
}

const std::vector<InstructionId> &AnyOrderGaps::chain(ValueId v) const {
  static const std::vector<InstructionId> none;
  auto found = chainOf.find(v);
  return found == chainOf.end() ? none : *found->second;
}

/// The first gap of v, between the readers of its chain. Adds them all if they
/// aren't there yet.
int32_t AnyOrderGaps::firstOf(ValueId v) {
  auto [it, isNew] = first.insert({v, int32_t(costs.size())});
  if (!isNew)
    return it->second;
  const std::vector<InstructionId> &readers = chain(v);
  auto loopOf = [&](size_t i) -> SegmentId { // The gap's i-th end's.
    if (graph.isLoopMade(v) || readers.empty())
      return kNone;
    const SegmentId s =
        i == 0 || i > readers.size() ? kNone : graph.segmentOf(readers[i - 1]);
    return s != kNone && graph.tripsOf(s) > 1 ? s : kNone;
  };
  for (size_t i = 0; i <= readers.size(); ++i) {
    int64_t cost = graph.factOf(v).cost;
    if (graph.isLoopMade(v))
      cost *= graph.tripsOf(graph.segmentOf(graph.factOf(v).maker));
    else if (const SegmentId s = loopOf(i); s != kNone && s == loopOf(i + 1))
      cost *= graph.tripsOf(s);
    costs.push_back(cost);
  }
  return it->second;
}

AnyOrderGaps::Range AnyOrderGaps::around(const AnyOrderGraph::Row &row,
                                         AnyOrderGraph::Held h) {
  if (h.isBehindLoop) {
    auto [it, isNew] = behindLoop.insert({h.value, int32_t(costs.size())});
    if (isNew)
      costs.push_back(graph.factOf(h.value).costBehind);
    return {it->second, it->second + 1};
  }
  const std::vector<InstructionId> &readers = chain(h.value);
  Range out = from(row, h.value);
  const size_t here = readers.size() + 1 - size_t(out.end - out.begin);
  for (size_t i = here; i < readers.size(); ++i)
    if (row.isBehind[readers[i]]) {
      out.end = out.begin + int32_t(i - here) + 1;
      break;
    }
  return out;
}

AnyOrderGaps::Range AnyOrderGaps::from(const AnyOrderGraph::Row &row,
                                       ValueId v) {
  if (graph.factOf(v).cost < 0)
    return {};
  const std::vector<InstructionId> &readers = chain(v);
  const int32_t begin = firstOf(v);
  size_t here = 0;
  for (size_t i = 0; i < readers.size(); ++i)
    if (row.isBefore[readers[i]])
      here = i + 1;
  return {begin + int32_t(here), begin + int32_t(readers.size()) + 1};
}
