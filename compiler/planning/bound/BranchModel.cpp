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

bool Evaluator::decide(const std::vector<std::pair<int32_t, int8_t>> &fixes) {
  for (Line &line : lines)
    line.fix = kFree;
  room = model.room;
  bool fits = true;
  for (auto [l, fix] : fixes) {
    Line &line = lines[l];
    line.fix = fix;
    if (fix == kKept)
      for (int32_t i = line.lo; i < line.hi; ++i)
        room[i] -= model.problem.values[line.value].bytes;
  }
  for (int64_t r : room)
    fits &= r >= 0;
  return fits;
}

/// The best path of a free or kept line; sets `there`, and `made` cell by cell.
double Evaluator::path(const Line &line) {
  int32_t count = line.hi - line.lo + 1;
  const double *h = &hold[line.slot], *b = &bonus[line.slot];
  if (line.fix == kKept) {
    double value = 0;
    for (int32_t c = 0; c < count; ++c) {
      value += c + 1 < count ? h[c] : 0;
      there[line.slot + c] = 1;
      made[line.slot + c] = 0;
    }
    return value;
  }
  double in = 0, out = kInfinity; // In memory, not in memory.
  for (int32_t c = 0; c < count; ++c) {
    double remake = line.cost - b[c];
    double held = c + 1 < count ? h[c] : 0;
    // Remaking a value that is in memory pays only for its bonus.
    double fromIn = in + std::min(0.0, remake), fromOut = out + remake;
    int8_t source = fromIn <= fromOut ? (remake < 0 ? 3 : 2) : 1;
    double is = std::min(fromIn, fromOut);
    double stays = out, goes = is;
    // Absent at the end: absent all along, or in memory (made) and dropped.
    int8_t gone = stays <= goes ? 0 : source;
    keepFrom[line.slot + c] = {gone, source, 0, 0};
    out = std::min(stays, goes);
    in = is + held;
  }
  int state = !line.isTail || in <= out ? 1 : 0;
  double value = state ? in : out;
  for (int32_t c = count; c-- > 0;) {
    there[line.slot + c] = int8_t(state);
    int8_t source = keepFrom[line.slot + c][state];
    made[line.slot + c] = source & 1;
    state = source >> 1;
  }
  return value;
}

/// The best path with at least one recomputation.
double Evaluator::pathBroken(const Line &line) {
  int32_t count = line.hi - line.lo + 1;
  // State: in memory * 2 + made by now. Back pointer: state before * 2 + made
  // here.
  double at[4] = {kInfinity, kInfinity, 0, kInfinity};
  for (int32_t c = 0; c < count; ++c) {
    double remake = line.cost - bonus[line.slot + c];
    double held = c + 1 < count ? hold[line.slot + c] : 0;
    double next[4] = {kInfinity, kInfinity, kInfinity, kInfinity};
    std::array<int8_t, 4> &from = keepFrom[line.slot + c];
    from = {0, 0, 0, 0};
    for (int8_t s = 0; s < 4; ++s)
      for (int8_t make = 0; make < 2; ++make) {
        double cost = at[s] + (make ? remake : 0);
        bool is = s >= 2 || make;
        int8_t flag = int8_t((s & 1) | make);
        for (int8_t stays = 0; stays <= int8_t(is); ++stays) {
          double all = cost + (stays ? held : 0);
          int8_t to = int8_t(stays * 2 + flag);
          if (all < next[to])
            next[to] = all, from[to] = int8_t(s * 2 + make);
        }
      }
    std::copy(next, next + 4, at);
  }
  int8_t state = line.isTail && at[1] < at[3] ? 1 : 3;
  double value = at[state];
  for (int32_t c = count; c-- > 0;) {
    there[line.slot + c] = state >> 1;
    int8_t from = keepFrom[line.slot + c][state];
    made[line.slot + c] = from & 1;
    state = int8_t(from >> 1);
  }
  return value;
}

double Evaluator::operator()(const std::vector<double> &prices) {
  const size_t moments = model.moments.size(), rows = model.rows.size();
  const double *lambda = prices.data(), *mu = lambda + moments;
  double *slopeMu = slope.data() + moments;
  double value = model.constant;
  for (const Line &line : lines) {
    int64_t bytes = model.problem.values[line.value].bytes;
    for (int32_t i = line.lo; i < line.hi; ++i)
      hold[line.slot + i - line.lo] = bytes > room[i] && line.fix != kKept
                                          ? kInfinity
                                          : lambda[i] * line.bytes;
  }
  std::fill(bonus.begin(), bonus.end(), 0.0);
  for (size_t r = 0; r < rows; ++r) {
    const RowSlots &row = model.rowSlots[r];
    value += mu[r];
    hold[row.value] -= mu[r];
    hold[row.read] -= mu[r];
    bonus[row.made] += mu[r];
    bonus[row.madeEnd] -= mu[r];
  }
  double sum = 0;
  for (double &b : bonus)
    b = sum += b;
  for (const Line &line : lines)
    value += line.fix == kBroken ? pathBroken(line) : path(line);
  for (size_t i = 0; i < moments; ++i) {
    value += lambda[i] * model.over[i];
    slope[i] = model.over[i];
  }
  for (const Line &line : lines)
    for (int32_t i = line.lo; i < line.hi; ++i)
      slope[i] += there[line.slot + i - line.lo] ? line.bytes : 0;
  for (size_t s = 1; s < made.size(); ++s)
    made[s] += made[s - 1];
  for (size_t r = 0; r < rows; ++r) {
    const RowSlots &row = model.rowSlots[r];
    slopeMu[r] = 1 - there[row.value] - there[row.read] -
                 (made[row.madeEnd - 1] - made[row.made - 1]);
  }
  work += 4 * int64_t(model.slots) + 4 * int64_t(rows) + 2 * int64_t(moments);
  return value;
}
