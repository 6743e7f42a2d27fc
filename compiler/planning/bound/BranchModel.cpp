#include "compiler/planning/bound/BranchModel.h"

using namespace tmc::planning;
using namespace tmc::planning::branching;

Model::Model(const GapModel &gaps, const Relaxation &relaxation,
             std::vector<int32_t> chosen, int64_t limit)
    : problem(gaps.problem), moments(std::move(chosen)), facts(gaps.facts),
      begins(gaps.begins) {
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
  linesOf.resize(numValues);
  for (int32_t k = 0; k < int32_t(gaps.order.size()); ++k) {
    const Instruction &instruction = problem.instructions[gaps.order[k]];
    auto meet = [&](ValueId v) {
      if (naturals[v].empty() || naturals[v].back() != k)
        naturals[v].push_back(k);
      lastSegment[v] = instruction.segment;
    };
    for (ValueId v : problem.recipes[instruction.recipes.front()].writes) {
      meet(v);
      home[v] = instruction.segment;
    }
    for (RecipeId r : instruction.recipes)
      for (ValueId v : problem.recipes[r].reads)
        meet(v);
  }
  std::vector<char> isInput(numValues, 0);
  for (ValueId v = 0; v < ValueId(numValues); ++v) {
    std::vector<ValueId> &in = inputs[v];
    for (const ValueFacts::Maker &maker : facts.makersOf(v)) {
      const Recipe &recipe = problem.recipes[maker.recipe];
      if (&maker == facts.makersOf(v).data())
        in = recipe.reads;
      else
        std::erase_if(in, [&](ValueId w) { return !isRead(recipe, w); });
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
    if (!isInput[v] || facts.makersOf(v).empty() || home[v] == kNone ||
        value.kind != ValueKind::Temporary || value.liveOut || isCarried[v] ||
        (problem.segments[s].trips > 1 && home[v] != s))
      continue;
    double cost = kInfinity;
    for (const ValueFacts::Maker &maker : facts.makersOf(v))
      if (maker.segment == kNone || maker.segment == s)
        cost = std::min(cost,
                        double(maker.cost) * double(problem.segments[s].trips));
    int32_t first = naturals[v].back() + 1, end = begins[s + 1];
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
