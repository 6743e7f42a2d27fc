#include "compiler/planning/bound/AnyOrderGraph.h"

#include <algorithm>
#include <numeric>

using namespace tmc::planning;

namespace {

void sortOnce(std::vector<ValueId> &list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// Keeps of `all` what is in `list`; both are sorted.
void intersect(std::vector<ValueId> &all, const std::vector<ValueId> &list) {
  std::erase_if(all, [&](ValueId v) {
    return !std::binary_search(list.begin(), list.end(), v);
  });
}

/// The part of a run's cost that falls to `v`, by bytes.
int64_t shareOf(const Problem &p, const Recipe &r, ValueId v) {
  if (r.writes.size() == 1)
    return r.cost;
  int64_t bytes = 0;
  for (ValueId w : r.writes)
    bytes += p.values[w].bytes;
  return bytes ? int64_t(__int128(r.cost) * p.values[v].bytes / bytes) : 0;
}

void lower(int64_t &least, int64_t cost) {
  if (least < 0 || cost < least)
    least = cost;
}

/// All nodes that edges lead to from `node`.
std::vector<char> reach(int32_t node,
                        const std::vector<std::vector<int32_t>> &edges) {
  std::vector<char> reached(edges.size(), 0);
  std::vector<int32_t> open = {node};
  while (!open.empty()) {
    const int32_t at = open.back();
    open.pop_back();
    for (int32_t next : edges[at])
      if (!reached[next]) {
        reached[next] = 1;
        open.push_back(next);
      }
  }
  return reached;
}

} // namespace

AnyOrderGraph::AnyOrderGraph(const Problem &problem)
    : problem(problem), values(problem), facts(problem.values.size()) {
  findMakers();
  addNodes();
  addReads();
  addUpdates();
  addBarriers();
  findCarries();
  for (InstructionId i = 0; i < InstructionId(problem.instructions.size()); ++i)
    operands.push_back(operandBytes(i));
}

std::vector<ValueId> AnyOrderGraph::readsOf(const Recipe &r,
                                            SegmentId s) const {
  std::vector<ValueId> out;
  for (ValueId read : r.reads)
    if (ValueId v = named(read, r, s); v != kNone)
      out.push_back(v);
  sortOnce(out);
  return out;
}

/// Values that every recipe of an instruction reads.
std::vector<ValueId> AnyOrderGraph::certainReads(InstructionId i) const {
  const Instruction &instruction = problem.instructions[i];
  std::vector<ValueId> all;
  for (RecipeId r : instruction.recipes) {
    const std::vector<ValueId> reads =
        readsOf(problem.recipes[r], instruction.segment);
    if (r == instruction.recipes.front())
      all = reads;
    else
      intersect(all, reads);
  }
  return all;
}

void AnyOrderGraph::findMakers() {
  for (InstructionId i = 0; i < InstructionId(problem.instructions.size()); ++i)
    for (ValueId w : problem.recipes[problem.instructions[i].recipes[0]].writes)
      facts[w].maker = i;
  for (RecipeId r = 0; r < RecipeId(problem.recipes.size()); ++r) {
    const Recipe &recipe = problem.recipes[r];
    const bool isAgain =
        recipe.recomputable &&
        std::none_of(recipe.writes.begin(), recipe.writes.end(),
                     [&](ValueId w) { return problem.values[w].pinned; });
    if (!isAgain)
      continue;
    for (ValueId w : recipe.writes) {
      Fact &fact = facts[w];
      fact.again.push_back(r);
      fact.isWritable = true;
      lower(fact.cost, shareOf(problem, recipe, w));
      if (fact.maker == kNone)
        continue;
      const Instruction &maker = problem.instructions[fact.maker];
      if (recipe.segment == kNone || recipe.segment != maker.segment)
        lower(fact.costBehind, shareOf(problem, recipe, w));
    }
  }
}

/// Nodes of instructions stand first; then those of first writings.
void AnyOrderGraph::addNodes() {
  for (const Instruction &i : problem.instructions)
    segments.push_back(i.segment);
  for (ValueId v = 0; v < ValueId(facts.size()); ++v) {
    Fact &fact = facts[v];
    if (fact.maker == kNone)
      continue;
    const SegmentId home = segmentOf(fact.maker);
    bool isBound = true, isOwn = true;
    for (RecipeId r : fact.again) {
      isBound &= problem.recipes[r].segment == home;
      isOwn &= problem.recipes[r].instruction == fact.maker;
    }
    fact.isKnown = tripsOf(home) == 1 || isBound;
    if (fact.isKnown && isOwn && (isBound || home == 0)) {
      fact.node = fact.maker;
    } else if (fact.isKnown) {
      fact.node = int32_t(segments.size());
      segments.push_back(isBound ? home : kNone);
    }
    if (problem.values[v].kind == ValueKind::Temporary &&
        problem.values[v].bytes > 0)
      made.push_back(v);
  }
  before.resize(segments.size());
  behind.resize(segments.size());
}

/// True if an event that reads v in segment `reader` (kNone: any) surely comes
/// after the node of v. Behind a loop, the node between the segments says it.
bool AnyOrderGraph::isOrdered(ValueId v, SegmentId reader) const {
  const Fact &fact = facts[v];
  return fact.node != kNone && (tripsOf(segmentOf(fact.maker)) == 1 ||
                                segmentOf(fact.maker) == reader);
}

/// Values that each recipe that may write v reads. `isWide`: or that are surely
/// written before such a read.
std::vector<ValueId> AnyOrderGraph::certainInputs(ValueId v,
                                                  bool isWide) const {
  const Fact &fact = facts[v];
  const SegmentId home = segmentOf(fact.maker), at = segments[fact.node];
  std::vector<RecipeId> writers = problem.instructions[fact.maker].recipes;
  writers.insert(writers.end(), fact.again.begin(), fact.again.end());
  std::vector<ValueId> all;
  for (size_t r = 0; r < writers.size(); ++r) {
    std::vector<ValueId> reads = readsOf(problem.recipes[writers[r]], home);
    if (isWide)
      for (size_t i = 0, n = reads.size(); i < n; ++i) {
        const ValueId w = reads[i];
        if (!isOrdered(w, at))
          continue;
        const std::vector<ValueId> more = facts[w].node == facts[w].maker
                                              ? direct[facts[w].maker]
                                              : certainInputs(w, false);
        for (ValueId u : more)
          if (facts[u].maker != kNone && isOrdered(u, segments[facts[w].node]))
            reads.push_back(u);
      }
    sortOnce(reads);
    if (r == 0)
      all = reads;
    else
      intersect(all, reads);
  }
  return all;
}

void AnyOrderGraph::addReads() {
  const InstructionId n = InstructionId(problem.instructions.size());
  for (InstructionId i = 0; i < n; ++i)
    direct.push_back(certainReads(i));
  for (InstructionId i = 0; i < n; ++i)
    for (ValueId v : direct[i]) {
      facts[v].readers.push_back(i);
      if (facts[v].maker != kNone && isOrdered(v, segmentOf(i)))
        addEdge(facts[v].node, i);
    }
  for (ValueId v = 0; v < ValueId(facts.size()); ++v) {
    const int32_t node = facts[v].node;
    if (node == kNone || node == facts[v].maker)
      continue;
    addEdge(node, facts[v].maker);
    for (ValueId u : certainInputs(v, false))
      facts[u].readers.push_back(node);
    for (ValueId u : certainInputs(v, true))
      if (facts[u].maker != kNone && isOrdered(u, segments[node]))
        addEdge(facts[u].node, node);
  }
  for (const Fact &fact : facts)
    numEdges += int64_t(fact.readers.size());
}

/// Instruction i overwrites `old` in place, by every recipe.
void AnyOrderGraph::addUpdate(InstructionId i, ValueId old) {
  const bool persists = problem.values[old].kind == ValueKind::Persistent;
  const Fact &fact = facts[old];
  if (!persists && (fact.isWritable || (fact.maker != kNone &&
                                        segmentOf(fact.maker) != segmentOf(i))))
    return;
  for (int32_t reader : fact.readers)
    if (reader != i && (persists || segments[reader] == segmentOf(i)))
      addEdge(reader, i);
}

void AnyOrderGraph::addUpdates() {
  for (InstructionId i = 0; i < InstructionId(problem.instructions.size());
       ++i) {
    const Instruction &instruction = problem.instructions[i];
    for (ValueId old : direct[i]) {
      auto updates = [&](RecipeId r) {
        const Recipe &recipe = problem.recipes[r];
        return std::any_of(recipe.overwrites.begin(), recipe.overwrites.end(),
                           [&](const Overwrite &o) {
                             return o.must && named(o.read, recipe,
                                                    instruction.segment) == old;
                           });
      };
      if (std::all_of(instruction.recipes.begin(), instruction.recipes.end(),
                      updates))
        addUpdate(i, old);
    }
  }
}

void AnyOrderGraph::addBarriers() {
  const int32_t first = int32_t(segments.size());
  const SegmentId count = SegmentId(problem.segments.size());
  before.resize(first + count);
  behind.resize(first + count);
  for (int32_t node = 0; node < first; ++node) {
    const SegmentId s = segments[node];
    if (s == kNone)
      continue;
    addEdge(first + s, node);
    if (s + 1 < count)
      addEdge(node, first + s + 1);
  }
  for (SegmentId s = 0; s + 1 < count; ++s)
    addEdge(first + s, first + s + 1);
  segments.resize(first + count, kNone);
  place.assign(problem.instructions.size(), 0);
  int32_t at = 0;
  for (const Segment &s : problem.segments)
    for (InstructionId i : s.instructions)
      place[i] = at++;
}

bool AnyOrderGraph::isReadIn(ValueId v, SegmentId s) const {
  return std::any_of(facts[v].readers.begin(), facts[v].readers.end(),
                     [&](int32_t node) { return segments[node] == s; });
}

void AnyOrderGraph::findCarries() {
  for (ValueId v = 0; v < ValueId(facts.size()); ++v) {
    const Value &value = problem.values[v];
    if (value.kind != ValueKind::Carried)
      continue;
    Fact &source = facts[value.carriedFrom];
    const SegmentId s = segmentOf(source.maker);
    if (tripsOf(s) == 1)
      continue;
    Carry carry{v, value.carriedFrom, s, false};
    if (tripsOf(s) > 2 && isReadIn(v, s)) {
      source.isHeldOn = true;
      const std::vector<ValueId> &reads = direct[source.maker];
      carry.isAlwaysThere = !source.isWritable &&
                            std::binary_search(reads.begin(), reads.end(), v);
    }
    carries.push_back(carry);
  }
}

/// The least bytes that a recipe of the instruction holds, of values that may
/// leave.
int64_t AnyOrderGraph::operandBytes(InstructionId i) const {
  const Instruction &instruction = problem.instructions[i];
  auto bytesOf = [&](ValueId v) {
    return v == kNone || values.resident[v] ? 0 : problem.values[v].bytes;
  };
  int64_t least = -1;
  for (RecipeId r : instruction.recipes) {
    const Recipe &recipe = problem.recipes[r];
    int64_t bytes = recipe.workspaceBytes;
    for (ValueId v : readsOf(recipe, instruction.segment))
      bytes += bytesOf(v);
    for (ValueId w : recipe.writes) {
      int64_t saved = 0;
      for (const Overwrite &o : recipe.overwrites)
        if (o.written == w)
          saved = std::max(
              saved, std::min(bytesOf(w), bytesOf(named(o.read, recipe,
                                                        instruction.segment))));
      bytes += bytesOf(w) - saved;
    }
    lower(least, bytes);
  }
  return least;
}

/// True if something surely reads v after the event of k.
bool AnyOrderGraph::isReadBehind(ValueId v, InstructionId k,
                                 const std::vector<char> &isBehind) const {
  const Fact &fact = facts[v];
  const SegmentId s = segmentOf(k);
  const bool isInside = tripsOf(s) > 1;
  auto reads = [&](bool inSegment) {
    return std::any_of(
        fact.readers.begin(), fact.readers.end(), [&](int32_t node) {
          return isBehind[node] && (!inSegment || segments[node] == s);
        });
  };
  if (isInside && fact.maker != kNone && segmentOf(fact.maker) == s)
    return fact.isHeldOn || reads(true);
  if (isInside && isReadIn(v, s))
    return reads(true);
  return problem.values[v].liveOut || reads(false);
}

AnyOrderGraph::Row AnyOrderGraph::rowOf(InstructionId k) const {
  const Instruction &instruction = problem.instructions[k];
  const SegmentId s = instruction.segment;
  const std::vector<char> isBefore = reach(k, before),
                          isBehind = reach(k, behind);
  std::vector<char> isTouched(facts.size(), 0);
  for (RecipeId r : instruction.recipes) {
    const Recipe &recipe = problem.recipes[r];
    for (const std::vector<ValueId> *list : {&recipe.reads, &recipe.writes})
      for (ValueId v : *list)
        if (v = named(v, recipe, s); v != kNone)
          isTouched[v] = 1;
  }
  Row row;
  row.moment = k;
  row.liveBytes = values.residentBytes[0] + operands[k];
  for (const Carry &carry : carries) {
    if (carry.segment != s || isTouched[carry.value])
      continue;
    if (carry.isAlwaysThere && !isTouched[carry.source]) {
      row.liveBytes += problem.values[carry.value].bytes;
      isTouched[carry.source] = 1; // It is counted.
    } else if (isReadBehind(carry.value, k, isBehind)) {
      row.liveBytes += problem.values[carry.value].bytes;
    }
  }
  for (ValueId v : made) {
    const Fact &fact = facts[v];
    const SegmentId home = segmentOf(fact.maker);
    const bool isBehindLoop = tripsOf(home) > 1 && home < s;
    if (isTouched[v] || (!isBehindLoop && fact.node == kNone) ||
        !isBefore[isBehindLoop ? fact.maker : fact.node] ||
        !isReadBehind(v, k, isBehind))
      continue;
    row.liveBytes += problem.values[v].bytes;
    isTouched[v] = 1;
    if ((isBehindLoop ? fact.costBehind : fact.cost) >= 0)
      row.held.push_back({v, isBehindLoop});
  }
  row.isCounted = std::move(isTouched);
  const size_t n = problem.instructions.size();
  row.isBefore.assign(isBefore.begin(), isBefore.begin() + n);
  row.isBehind.assign(isBehind.begin(), isBehind.begin() + n);
  return row;
}

std::vector<InstructionId> AnyOrderGraph::chainReaders(ValueId v) const {
  std::vector<InstructionId> out;
  for (int32_t node : facts[v].readers)
    if (node < int32_t(problem.instructions.size()) &&
        (!isLoopMade(v) || segmentOf(node) == segmentOf(facts[v].maker)))
      out.push_back(node);
  std::sort(out.begin(), out.end(),
            [&](int32_t a, int32_t b) { return place[a] < place[b]; });
  return out;
}
