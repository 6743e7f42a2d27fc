#include "compiler/planning/bound/BranchModel.h"

using namespace tmc::planning;
using namespace tmc::planning::branching;

Model::Model(const Problem &problem, const Relaxation &relaxation,
             std::vector<int32_t> chosen, int64_t limit)
    : problem(problem), moments(std::move(chosen)) {
  constant = double(relaxation.cheaperRecipes);
  double bytes = 0;
  for (const Gap &g : relaxation.gaps)
    bytes += double(g.bytes);
  // A mean gap, times a factor that gives the slopes along lambda (sums over
  // all gaps) and along mu (one each) a similar size in steps of any length.
  double count = double(std::max<size_t>(1, relaxation.gaps.size()));
  byteUnit =
      std::max(1.0, bytes / count * std::max(1.0, __builtin_sqrt(count / 100)));
  for (int32_t k : moments)
    room.push_back(limit - relaxation.floor[k]);
  for (int32_t k : moments)
    over.push_back(double(relaxation.floor[k] - limit) / byteUnit);

  size_t numValues = problem.values.size();
  naturals.resize(numValues);
  home.assign(numValues, kNone);
  lastSegment = home;
  inputs.resize(numValues);
  remakes.resize(numValues);
  linesOf.resize(numValues);
  int32_t k = 0;
  for (size_t s = 0; s < problem.segments.size(); ++s) {
    for (InstructionId i : problem.segments[s].instructions) {
      const Instruction &instruction = problem.instructions[i];
      auto meet = [&](ValueId v) {
        if (naturals[v].empty() || naturals[v].back() != k)
          naturals[v].push_back(k);
        lastSegment[v] = SegmentId(s);
      };
      for (ValueId v : problem.recipes[instruction.recipes.front()].writes) {
        meet(v);
        home[v] = SegmentId(s);
      }
      for (RecipeId r : instruction.recipes)
        for (ValueId v : problem.recipes[r].reads)
          meet(v);
      ++k;
    }
    segmentEnd.push_back(k);
  }
  std::vector<char> isInput(numValues, 0);
  for (const Recipe &recipe : problem.recipes) {
    bool can = recipe.recomputable;
    int64_t written = 0;
    for (ValueId v : recipe.writes) {
      can &= !problem.values[v].pinned;
      written += problem.values[v].bytes;
    }
    if (!can)
      continue;
    for (ValueId v : recipe.writes) {
      std::vector<ValueId> &in = inputs[v];
      if (remakes[v].empty())
        in = recipe.reads;
      else
        in.erase(std::remove_if(in.begin(), in.end(),
                                [&](ValueId w) {
                                  return std::find(recipe.reads.begin(),
                                                   recipe.reads.end(),
                                                   w) == recipe.reads.end();
                                }),
                 in.end());
      remakes[v].push_back(
          {recipe.segment, written ? double(__int128(recipe.cost) *
                                            problem.values[v].bytes / written)
                                   : 0});
    }
  }
  for (const std::vector<ValueId> &in : inputs)
    for (ValueId w : in)
      isInput[w] = 1;
  for (const Gap &g : relaxation.gaps)
    if (interval(g.first) < interval(g.last + 1))
      addLine(g.value, g.first, g.last + 1, double(g.cost), false,
              g.within != kNone);
  addTails(isInput);
  for (std::vector<int32_t> &list : linesOf)
    std::sort(list.begin(), list.end(), [&](int32_t a, int32_t b) {
      return lines[a].first < lines[b].first;
    });
  addRows();
}

void Model::addLine(ValueId v, int32_t first, int32_t end, double cost,
                    bool isTail, bool hasRows) {
  Line line;
  line.value = v;
  line.first = first;
  line.end = end;
  line.lo = interval(first);
  line.hi = interval(end);
  line.bytes = double(problem.values[v].bytes) / byteUnit;
  line.cost = cost;
  line.isTail = isTail;
  line.slot = slots;
  slots += line.hi - line.lo + 1;
  if (hasRows)
    linesOf[v].push_back(int32_t(lines.size()));
  lines.push_back(line);
}

void Model::addTails(const std::vector<char> &isInput) {
  std::vector<char> isCarried(isInput.size(), 0);
  for (const Value &value : problem.values)
    if (value.carriedFrom != kNone)
      isCarried[value.carriedFrom] = 1;
  for (ValueId v = 0; v < ValueId(isInput.size()); ++v) {
    const Value &value = problem.values[v];
    SegmentId s = lastSegment[v];
    if (!isInput[v] || remakes[v].empty() || home[v] == kNone ||
        value.kind != ValueKind::Temporary || value.liveOut || isCarried[v] ||
        (problem.segments[s].trips > 1 && home[v] != s))
      continue;
    double cost = kInfinity;
    for (auto [bound, part] : remakes[v])
      if (bound == kNone || bound == s)
        cost = std::min(cost, part * double(problem.segments[s].trips));
    int32_t first = naturals[v].back() + 1, end = segmentEnd[s];
    if (first < end && interval(first) < interval(end))
      addLine(v, first, end, cost, true, true);
  }
}

void Model::addRows() {
  for (const Line &line : lines) {
    if (line.isTail)
      continue;
    const std::vector<int32_t> &own = linesOf[line.value];
    if (std::none_of(own.begin(), own.end(),
                     [&](int32_t l) { return lines[l].first == line.first; }))
      continue;
    for (int32_t i = line.lo; i < line.hi; ++i)
      for (ValueId w : inputs[line.value]) {
        auto natural = std::lower_bound(naturals[w].begin(), naturals[w].end(),
                                        moments[i]);
        if (natural != naturals[w].end() && *natural <= line.end)
          continue;
        // The line of w from the moment to the end of the gap.
        const std::vector<int32_t> &list = linesOf[w];
        auto after = std::upper_bound(
            list.begin(), list.end(), moments[i],
            [&](int32_t moment, int32_t l) { return moment < lines[l].first; });
        if (after == list.begin())
          continue;
        const Line &supply = lines[*std::prev(after)];
        if (supply.end < line.end)
          continue;
        rows.push_back({line.value, line.first - 1, i, w});
        int32_t at = supply.slot - supply.lo;
        rowSlots.push_back(
            {line.slot + i - line.lo, at + i, at + i + 1, at + line.hi + 1});
      }
  }
}
