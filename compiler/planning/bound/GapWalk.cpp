#include "compiler/planning/bound/BoundCheck.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

static bool contains(const std::vector<ValueId> &list, ValueId v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

GapWalk::GapWalk(const Problem &problem) : problem(problem) {
  for (const Segment &s : problem.segments) {
    starts.push_back(int64_t(order.size()));
    order.insert(order.end(), s.instructions.begin(), s.instructions.end());
  }
  starts.push_back(int64_t(order.size()));
}

void GapWalk::run() {
  shareCosts();
  cheaperRecipes = pins = 0;
  last.assign(problem.values.size(), {-1, kNone});
  home.assign(problem.values.size(), kNone);
  for (const Instruction &i : problem.instructions)
    for (ValueId w : problem.recipes[i.recipes.front()].writes)
      home[w] = i.segment;
  for (size_t v = 0; v < problem.values.size(); ++v)
    if (ValueId from = problem.values[v].carriedFrom; from != kNone)
      carrier.insert({from, ValueId(v)});
  for (const Value &v : problem.values)
    if (v.kind == ValueKind::Persistent && v.updates == kNone)
      pins += v.bytes;
  for (int64_t k = 0; k < int64_t(order.size()); ++k)
    visit(k);
  for (size_t v = 0; v < problem.values.size(); ++v)
    if (problem.values[v].liveOut &&
        problem.values[v].kind == ValueKind::Temporary)
      close(ValueId(v), int64_t(order.size()),
            SegmentId(problem.segments.size()) - 1, -1);
}

ValueId GapWalk::aliasIn(ValueId v, SegmentId s) const {
  return problem.values[v].kind == ValueKind::Carried && trips(s) == 1
             ? problem.values[v].initial
             : v;
}

void GapWalk::shareCosts() {
  constexpr int64_t none = std::numeric_limits<int64_t>::max();
  share.assign(problem.values.size(), none);
  makers.resize(problem.values.size());
  for (const Recipe &r : problem.recipes) {
    Wide bytes = 0;
    bool pinned = false;
    for (ValueId v : r.writes) {
      bytes += problem.values[v].bytes;
      pinned |= problem.values[v].pinned;
    }
    if (!r.recomputable || pinned)
      continue;
    for (ValueId v : r.writes) {
      Wide part = bytes ? Wide(r.cost) * problem.values[v].bytes / bytes : 0;
      share[v] = std::min(share[v], int64_t(part));
      makers[v].push_back(r.segment);
    }
  }
}

void GapWalk::visit(int64_t k) {
  const Instruction &instruction = problem.instructions[order[k]];
  SegmentId s = instruction.segment;
  const Recipe &usual = problem.recipes[instruction.recipes.front()];
  int64_t cheapest = usual.cost, scratch = usual.workspaceBytes;
  for (RecipeId r : instruction.recipes) {
    cheapest = std::min(cheapest, problem.recipes[r].cost);
    scratch = std::min(scratch, problem.recipes[r].workspaceBytes);
  }
  cheaperRecipes += Wide(cheapest - usual.cost) * trips(s);

  Wide footprint = pins + scratch;
  if (k == starts[s] && trips(s) > 1) // Carried values begin here.
    for (size_t v = 0; v < problem.values.size() && !carrier.empty(); ++v)
      if (problem.values[v].kind == ValueKind::Carried &&
          home[problem.values[v].carriedFrom] == s)
        last[v] = {k - 1, s};
  for (ValueId read : usual.reads) {
    ValueId v = aliasIn(read, s);
    if (!counts(v))
      continue;
    int64_t avoid = -1; // The least cost of not reading it.
    for (RecipeId r : instruction.recipes) {
      const Recipe &recipe = problem.recipes[r];
      if (contains(recipe.reads, read))
        continue;
      int64_t fewer = 0;
      for (ValueId u : usual.reads)
        fewer += !contains(recipe.reads, u);
      int64_t price = (recipe.cost - cheapest) / fewer * trips(s);
      avoid = avoid < 0 ? price : std::min(avoid, price);
    }
    if (avoid == 0)
      continue;
    close(v, k, s, avoid);
    if (avoid < 0)
      footprint += problem.values[v].bytes;
  }
  for (ValueId w : usual.writes) {
    if (!counts(w))
      continue;
    int64_t saved = 0;
    for (RecipeId r : instruction.recipes)
      for (const Overwrite &o : problem.recipes[r].overwrites)
        if (o.written == w && counts(aliasIn(o.read, s)))
          saved = std::max(saved, std::min(problem.values[o.read].bytes,
                                           problem.values[w].bytes));
    footprint += problem.values[w].bytes - saved;
    last[w] = {k, s};
  }
  onMoment(k, footprint);
  if (k + 1 == starts[s + 1] && trips(s) > 2)
    endOfTrip(s);
}

/// In a middle trip, holds to here each value that the next trip surely reads
/// as carried.
void GapWalk::endOfTrip(SegmentId s) {
  for (ValueId v : ownCarriers(s)) {
    auto at = last[v];
    if (at.second == s)
      close(v, starts[s + 1], s, -1);
    last[v] = at;
  }
}
std::vector<ValueId> GapWalk::ownCarriers(SegmentId s) {
  std::set<ValueId> out;
  for (auto [from, c] : carrier) {
    if (home[from] != s)
      continue;
    for (InstructionId i : problem.segments[s].instructions) {
      bool always = true;
      for (RecipeId r : problem.instructions[i].recipes)
        always &= contains(problem.recipes[r].reads, c);
      if (always)
        out.insert(from);
    }
  }
  return {out.begin(), out.end()};
}

/// Ends the gap of v at moment k in segment s; `avoid`: cost to avoid the use.
void GapWalk::close(ValueId v, int64_t k, SegmentId s, int64_t avoid) {
  auto [from, was] = last[v];
  last[v] = {k, s};
  int64_t begin = from + 1, end = k;
  if (was != s) {
    begin = trips(was) > 2 ? starts[was + 1] : begin;
    if (k < int64_t(order.size()))
      end = trips(s) > 1 ? starts[s] : end;
  }
  if (begin >= end || problem.values[v].bytes == 0)
    return;
  int64_t fewest = -1;
  for (SegmentId allowed : makers[v])
    for (SegmentId t = was; t <= s; ++t)
      if (allowed == kNone || allowed == t)
        fewest = fewest < 0 ? trips(t) : std::min(fewest, trips(t));
  int64_t cost = fewest < 0 ? -1 : share[v] * fewest;
  if (avoid >= 0)
    cost = cost < 0 ? avoid : std::min(cost, avoid);
  onGap({v, begin, end, cost, was, s, avoid >= 0});
}
