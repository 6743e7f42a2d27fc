#include "compiler/planning/bound/AnyOrderInputs.h"

#include "compiler/planning/bound/AnyOrderSum.h"

using namespace tmc::planning;

namespace {

/// More steps gain nothing that is seen. Source: as `kInputSteps`.
constexpr int64_t kMostSteps = 4000;

/// True if all executions that write v again within reach of the moment are in
/// its own trip: v is made in the moment's loop, or neither is in a loop.
bool isOfTrip(const AnyOrderGraph &graph, ValueId v, InstructionId moment) {
  const AnyOrderGraph::Fact &fact = graph.factOf(v);
  if (fact.maker == kNone || fact.node == kNone)
    return false;
  const SegmentId own = graph.segmentOf(fact.maker),
                  at = graph.segmentOf(moment);
  return own == at || (graph.tripsOf(own) == 1 && graph.tripsOf(at) == 1);
}

} // namespace

AnyOrderInputs::AnyOrderInputs(AnyOrderGaps &gaps,
                               const std::vector<AnyOrderGraph::Row> &rows,
                               int64_t limitBytes) {
  for (const AnyOrderGraph::Row &row : rows)
    if (row.liveBytes > limitBytes)
      addMoment(gaps, row, row.liveBytes - limitBytes);
}

void AnyOrderInputs::addMoment(AnyOrderGaps &gaps,
                               const AnyOrderGraph::Row &row, int64_t need) {
  const AnyOrderGraph &graph = gaps.graph;
  Moment at{row.moment, need, int32_t(slots.size()), 0, int32_t(pairs.size()),
            0};
  for (AnyOrderGraph::Held h : row.held)
    slots.push_back({h.value, graph.problem.values[h.value].bytes, true,
                     gaps.around(row, h)});
  std::map<ValueId, int32_t> slotOf;
  for (size_t h = 0; h < row.held.size(); ++h) {
    const ValueId v = row.held[h].value;
    if (row.held[h].isBehindLoop || !isOfTrip(graph, v, row.moment))
      continue;
    for (ValueId input : graph.inputsOf(v)) {
      const Value &value = graph.problem.values[input];
      if (value.kind != ValueKind::Temporary || value.bytes == 0 ||
          row.isCounted[input] || !isOfTrip(graph, input, row.moment))
        continue;
      auto [it, isNew] = slotOf.insert({input, int32_t(slots.size())});
      if (isNew)
        slots.push_back({input, value.bytes, false, gaps.from(row, input)});
      pairs.push_back({at.firstSlot + int32_t(h), it->second});
    }
  }
  at.lastSlot = int32_t(slots.size());
  at.lastPair = int32_t(pairs.size());
  moments.push_back(at);
}

AnyOrderInputs::Prices<double>
AnyOrderInputs::price(const AnyOrderSum &sum, int64_t work,
                      std::vector<double> &ofSum) const {
  // Costs and bytes are divided by the largest of each.
  double largest = 1, bytes = 1;
  CoveringProgram program;
  for (int64_t cost : sum.gaps.costs)
    largest = std::max(largest, double(cost));
  for (int64_t cost : sum.gaps.costs)
    program.costs.push_back(double(cost) / largest);
  for (int64_t need : sum.needs)
    bytes = std::max(bytes, double(need));
  for (const Moment &m : moments)
    bytes = std::max(bytes, double(m.need));
  for (size_t r = 0; r < sum.rows.size(); ++r) {
    program.addRow(double(sum.needs[r]) / bytes);
    for (const AnyOrderSum::Entry &e : sum.entriesOf(r))
      program.add(e.gap, double(e.bytes) / bytes);
  }
  // A column says that a certain value isn't there, or that another one is.
  const int32_t firstColumn = int32_t(program.costs.size());
  program.costs.resize(firstColumn + slots.size(), 0);
  auto addGaps = [&](AnyOrderGaps::Range range) {
    for (int32_t g = range.begin; g < range.end; ++g)
      program.add(g, 1);
  };
  std::vector<int32_t> rowOfMoment, rowOfPair;
  for (const Moment &m : moments) {
    rowOfMoment.push_back(program.addRow(double(m.need) / bytes));
    for (int32_t s = m.firstSlot; s < m.lastSlot; ++s)
      program.add(firstColumn + s, double(slots[s].bytes) / bytes *
                                       (slots[s].isCertain ? 1 : -1));
    for (int32_t s = m.firstSlot; s < m.lastSlot; ++s)
      if (slots[s].isCertain) {
        program.addRow(0);
        program.add(firstColumn + s, -1);
        addGaps(slots[s].gaps);
      }
    for (int32_t p = m.firstPair; p < m.lastPair; ++p) {
      rowOfPair.push_back(program.addRow(0));
      program.add(firstColumn + pairs[p].value, -1);
      program.add(firstColumn + pairs[p].input, 1);
      addGaps(slots[pairs[p].input].gaps);
    }
  }
  const std::vector<double> found = priceRows(
      program,
      std::min(kMostSteps, work / int64_t(2 * program.entries.size() + 1)));
  Prices<double> out;
  for (size_t r = 0; r < ofSum.size(); ++r)
    ofSum[r] = found[r] * largest / bytes;
  for (int32_t row : rowOfMoment)
    out.bytes.push_back(found[row] * largest / bytes);
  for (int32_t row : rowOfPair)
    out.pairs.push_back(found[row] * largest);
  return out;
}
