#include "compiler/planning/bound/SpaceModel.h"

#include <algorithm>
#include <tuple>

namespace tmc::planning {

bool mayBeFree(const Problem &problem, const Recipe &recipe) {
  return problem.isMove(recipe) &&
         std::any_of(recipe.reads.begin(), recipe.reads.end(), [&](ValueId v) {
           return problem.values[v].kind == ValueKind::Carried;
         });
}

SpaceModel::SpaceModel(const Problem &problem)
    : problem(problem), breakers(problem.values.size()),
      readers(problem.values.size(), 0), resident(problem.values.size(), 0),
      residentBytes(problem.spaces.size(), 0), forms(problem.values.size()),
      heir(problem.values.size(), kNone), ownWritten(problem.values.size(), 0),
      last(problem.values.size()), firstGap(problem.values.size(), kNone) {
  for (size_t v = 0; v < problem.values.size(); ++v) {
    forms[problem.contentOf(ValueId(v))].push_back(ValueId(v));
    if (problem.values[v].updates != kNone)
      heir[problem.values[v].updates] = ValueId(v);
  }
  for (const Segment &segment : problem.segments) {
    begins.push_back(int32_t(order.size()));
    order.insert(order.end(), segment.instructions.begin(),
                 segment.instructions.end());
  }
  begins.push_back(int32_t(order.size()));
  findResident();
  findWriters();
  for (size_t v = 0; v < problem.values.size(); ++v)
    last[v].known = problem.values[v].kind == ValueKind::Persistent &&
                    problem.values[v].updates == kNone && !resident[v];
  for (size_t s = 0; s < problem.segments.size(); ++s)
    for (int pass = 0; pass < (problem.segments[s].trips > 1 ? 2 : 1); ++pass)
      for (int32_t k = begins[s]; k < begins[s + 1]; ++k)
        addRun(SegmentId(s), pass, k);
  addTails();
}

/// Finds chains of updates in which every content has one possible home.
void SpaceModel::findResident() {
  auto onlyHome = [&](ValueId main) {
    ValueId home = kNone;
    for (ValueId f : forms[main])
      if (problem.values[f].kind == ValueKind::Persistent) {
        if (home != kNone)
          return problem.values[main].pinned ? main : kNone;
        home = f;
      }
    return home;
  };
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const Value &value = problem.values[v];
    if (value.kind != ValueKind::Persistent || value.updates != kNone)
      continue;
    bool only = true;
    int64_t bytes = value.bytes;
    for (ValueId u = ValueId(v); u != kNone; u = heir[u]) {
      only &= onlyHome(problem.contentOf(u)) == u;
      bytes = std::min(bytes, problem.values[u].bytes);
    }
    if (!only)
      continue;
    residentBytes[value.space] += bytes;
    for (ValueId u = ValueId(v); u != kNone; u = heir[u])
      resident[u] = 1;
  }
}

void SpaceModel::findWriters() {
  for (const Recipe &recipe : problem.recipes) {
    if (!recipe.recomputable)
      continue;
    for (ValueId w : recipe.writes)
      breakers[w].push_back({recipe.engine, recipe.segment,
                             mayBeFree(problem, recipe) ? 0 : recipe.cost,
                             int64_t(recipe.writes.size())});
  }
  for (const Instruction &instruction : problem.instructions) {
    std::vector<ValueId> reads;
    for (RecipeId r : instruction.recipes) {
      const Recipe &recipe = problem.recipes[r];
      for (ValueId w : recipe.writes)
        ownWritten[w] = 1;
      reads.insert(reads.end(), recipe.reads.begin(), recipe.reads.end());
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    for (ValueId v : reads)
      readers[v] += problem.segments[instruction.segment].trips;
  }
}

bool SpaceModel::isInput(ValueId v) const {
  return problem.values[v].kind == ValueKind::Temporary && !ownWritten[v];
}

/// The variant's cost, and the bytes that its operands surely take at its
/// start.
SpaceModel::Variant SpaceModel::variantOf(const Recipe &recipe) const {
  Variant out;
  out.engine = recipe.engine;
  bool free = mayBeFree(problem, recipe);
  out.cost = free ? 0 : recipe.cost;
  std::vector<int64_t> bytes(problem.spaces.size(), 0);
  auto counts = [&](ValueId v) {
    return problem.values[v].kind != ValueKind::Carried && !resident[v];
  };
  for (ValueId v : recipe.reads) {
    if (counts(v))
      bytes[problem.values[v].space] += problem.values[v].bytes;
    if (isInput(v))
      out.inputs.push_back(v);
  }
  for (ValueId w : recipe.writes) {
    if (!counts(w) || free ||
        std::count(recipe.reads.begin(), recipe.reads.end(), w))
      continue;
    const Value &value = problem.values[w];
    int64_t saved =
        value.updates == kNone
            ? 0
            : std::min(value.bytes, problem.values[value.updates].bytes);
    for (const Overwrite &o : recipe.overwrites)
      if (o.written == w)
        saved = std::max(saved,
                         std::min(value.bytes, problem.values[o.read].bytes));
    bytes[value.space] += value.bytes - saved;
  }
  if (!free)
    bytes[recipe.workspaceSpace] += recipe.workspaceBytes;
  for (size_t s = 0; s < bytes.size(); ++s)
    if (bytes[s])
      out.bytes.push_back({SpaceId(s), bytes[s]});
  return out;
}

int32_t SpaceModel::addGap(ValueId v, Place from, SegmentId segment, int pass,
                           int32_t moment) {
  Gap gap;
  gap.value = v;
  auto add = [&](int32_t begin, int32_t end, int64_t copies) {
    if (begin < end)
      gap.ranges.push_back({begin, end, copies});
  };
  if (from.segment == segment && from.pass == pass) {
    add(from.moment + 1, moment, 1);
  } else {
    if (from.segment != kNone)
      add(from.moment + 1, begins[from.segment + 1], 1);
    for (SegmentId s = from.segment + 1; s < segment; ++s)
      add(begins[s], begins[s + 1], problem.segments[s].trips);
    add(begins[segment], moment, 1);
  }
  gap.from = std::max(from.segment, 0);
  gap.to = std::min(segment, SegmentId(problem.segments.size()) - 1);
  gaps.push_back(std::move(gap));
  return int32_t(gaps.size()) - 1;
}

void SpaceModel::addRun(SegmentId segment, int pass, int32_t moment) {
  int64_t trips = problem.segments[segment].trips;
  Run run{moment, segment, pass ? trips - 1 : 1, {}};
  const Instruction &instruction = problem.instructions[order[moment]];
  std::vector<std::pair<ValueId, int32_t>> made; // Gaps that end here.
  std::vector<ValueId> touched;
  for (RecipeId r : instruction.recipes) {
    const Recipe &recipe = problem.recipes[r];
    Variant variant = variantOf(recipe);
    for (ValueId v : recipe.reads) {
      touched.push_back(v);
      if (!last[v].known || resident[v] || isInput(v) ||
          problem.values[v].kind == ValueKind::Carried)
        continue;
      auto it = std::find_if(made.begin(), made.end(),
                             [&](auto &m) { return m.first == v; });
      if (it == made.end()) {
        made.push_back({v, addGap(v, last[v], segment, pass, moment)});
        it = made.end() - 1;
        if (last[v].segment == kNone)
          firstGap[v] = it->second;
      }
      variant.gaps.push_back(it->second);
    }
    touched.insert(touched.end(), recipe.writes.begin(), recipe.writes.end());
    run.variants.push_back(std::move(variant));
  }
  for (ValueId v : touched)
    last[v] = {segment, pass, moment, true};
  runs.push_back(std::move(run));
}

/// Adds values that stay to the end: the rent of homes after their last reader,
/// as a part of their first gap, and the rent of results.
void SpaceModel::addTails() {
  SegmentId end = SegmentId(problem.segments.size());
  int32_t endMoment = int32_t(order.size());
  for (size_t v = 0; v < problem.values.size(); ++v) {
    if (firstGap[v] == kNone)
      continue;
    Place from = last[v];
    if (ValueId u = heir[v]; u != kNone) {
      if (problem.values[u].bytes < problem.values[v].bytes || heir[u] != kNone)
        continue;
      for (ValueId f : forms[problem.contentOf(u)])
        if ((f == u || ownWritten[f]) && last[f].known &&
            std::tie(last[f].segment, last[f].pass, last[f].moment) >
                std::tie(from.segment, from.pass, from.moment))
          from = last[f];
    }
    Gap tail = gaps[addGap(ValueId(v), from, end, 0, endMoment)];
    gaps.pop_back();
    Gap &gap = gaps[firstGap[v]];
    gap.ranges.insert(gap.ranges.end(), tail.ranges.begin(), tail.ranges.end());
  }
  if (end == 0)
    return;
  Run run{kNone, end - 1, 1, {Variant{}}};
  for (size_t v = 0; v < problem.values.size(); ++v) {
    if (problem.values[v].kind != ValueKind::Temporary ||
        !problem.values[v].liveOut || !ownWritten[v])
      continue;
    int homes = 0;
    for (ValueId f : forms[problem.contentOf(ValueId(v))])
      homes += problem.values[f].liveOut;
    if (homes == 1)
      run.variants[0].gaps.push_back(
          addGap(ValueId(v), last[v], end, 0, endMoment));
  }
  runs.push_back(std::move(run));
}

} // namespace tmc::planning
