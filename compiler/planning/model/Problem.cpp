#include "compiler/planning/model/Problem.h"

#include "compiler/planning/model/Timeline.h"

#include <algorithm>

using namespace tmc::planning;

bool Problem::isCopy(const Recipe &recipe) const {
  return recipe.reads.size() == 1 && recipe.writes.size() == 1 &&
         contentOf(recipe.reads[0]) == contentOf(recipe.writes[0]);
}

bool Problem::isMove(const Recipe &recipe) const {
  const EngineKind kind = engines[recipe.engine].kind;
  return infoOf(kind).copies || (kind == EngineKind::Network && isCopy(recipe));
}

SpaceId Problem::hostSpace() const {
  for (const EngineInfo &engine : kEngines)
    if (!engine.copies && !onDevice(engine.reads))
      for (size_t s = 1; s < spaces.size(); ++s)
        if (spaces[s].kind == engine.reads)
          return SpaceId(s);
  return kNone;
}

int64_t Problem::liveLimitOf(SpaceId space) const {
  const int64_t budget = spaces[space].budgetBytes;
  return budget < 0 ? -1 : std::max<int64_t>(0, budget - reservedOf(space));
}

SpaceId Problem::addSpace(SpaceKind kind, int64_t budgetBytes) {
  spaces.push_back({nameOf(kind), kind, budgetBytes});
  return SpaceId(spaces.size()) - 1;
}

EngineId Problem::addNetwork(std::string name) {
  engines.push_back({std::move(name), EngineKind::Network});
  return EngineId(engines.size()) - 1;
}

EngineId Problem::networkNamed(const std::string &name) {
  for (size_t e = 0; e < engines.size(); ++e)
    if (engines[e].kind == EngineKind::Network && engines[e].name == name)
      return EngineId(e);
  return addNetwork(name);
}

EngineId Problem::engineBetween(SpaceId from, SpaceId to) {
  const EngineInfo *info = from == to
                               ? kernelEngine(spaces[from].kind)
                               : copyEngine(spaces[from].kind, spaces[to].kind);
  if (!info)
    return kNone;
  for (size_t e = 0; e < engines.size(); ++e)
    if (engines[e].kind == info->kind)
      return EngineId(e);
  engines.push_back({info->name, info->kind});
  return EngineId(engines.size()) - 1;
}

FastestMoves tmc::planning::fastestMoves(const Problem &problem, SpaceId near,
                                         SpaceId far) {
  FastestMoves moves;
  moves.in.assign(problem.values.size(), kNone);
  moves.out = moves.in;
  for (size_t i = 0; i < problem.recipes.size(); ++i) {
    const Recipe &r = problem.recipes[i];
    if (!problem.isMove(r))
      continue;
    const ValueId from = r.reads[0], to = r.writes[0];
    auto offer = [&](RecipeId &known) {
      if (known == kNone || r.cost < problem.recipes[known].cost)
        known = RecipeId(i);
    };
    auto isFar = [&](ValueId v) {
      const SpaceId space = problem.values[v].space;
      return far == kNone ? space != near : space == far;
    };
    if (problem.values[to].space == near && isFar(from))
      offer(moves.in[to]);
    else if (problem.values[from].space == near && isFar(to))
      offer(moves.out[from]);
  }
  return moves;
}

bool tmc::planning::fitsBudgets(const Problem &problem,
                                const std::vector<int64_t> &peakBytes,
                                SpaceId first) {
  for (SpaceId s = first; s < SpaceId(peakBytes.size()); ++s)
    if (int64_t budget = problem.spaces[s].budgetBytes;
        budget >= 0 && peakBytes[s] + problem.reservedOf(s) > budget)
      return false;
  return true;
}

bool tmc::planning::isOneSpace(const Problem &problem) {
  return problem.spaces.size() == 1 && problem.engines.size() == 1 &&
         !hasLag(problem) &&
         std::all_of(problem.values.begin(), problem.values.end(),
                     [](const Value &v) { return v.formOf == kNone; });
}

bool tmc::planning::hasNetwork(const Problem &problem) {
  return std::any_of(
      problem.engines.begin(), problem.engines.end(),
      [](const Engine &e) { return e.kind == EngineKind::Network; });
}

int32_t tmc::planning::shownTrips(const Problem &problem, SegmentId segment) {
  // The first ones, one in the middle, the last ones.
  const int64_t lag = lagsOf(problem)[segment];
  return int32_t(std::min(problem.segments[segment].trips, 2 * lag + 1));
}

bool tmc::planning::hasLag(const Problem &problem) {
  return std::any_of(problem.values.begin(), problem.values.end(),
                     [](const Value &v) { return v.lag > 1; });
}

std::vector<int32_t> tmc::planning::lagsOf(const Problem &problem) {
  std::vector<int32_t> lags(problem.segments.size(), 1);
  if (!hasLag(problem))
    return lags;
  std::vector<SegmentId> madeIn(problem.values.size(), kNone);
  for (const Instruction &i : problem.instructions)
    for (ValueId v : problem.recipes[i.recipes.front()].writes)
      madeIn[problem.contentOf(v)] = i.segment;
  for (const Value &value : problem.values)
    if (value.carriedFrom != kNone) {
      int32_t &most = lags[madeIn[problem.contentOf(value.carriedFrom)]];
      most = std::max(most, value.lag);
    }
  return lags;
}

std::vector<ValueId> tmc::planning::homesOf(const Problem &problem,
                                            const Solution &solution) {
  std::vector<ValueId> home(problem.values.size());
  for (size_t v = 0; v < home.size(); ++v)
    home[v] = problem.contentOf(ValueId(v));
  std::vector<ValueId> chosen = home;
  for (ValueId h : solution.homes)
    chosen[home[h]] = h;
  for (size_t v = 0; v < home.size(); ++v)
    home[v] = chosen[home[v]];
  // A new content is at home where the old one's home is updated.
  std::vector<ValueId> successor(home.size(), kNone);
  for (size_t v = 0; v < home.size(); ++v)
    if (ValueId old = problem.values[v].updates;
        old != kNone && home[old] == old)
      successor[problem.contentOf(ValueId(v))] = ValueId(v);
  for (size_t v = 0; v < home.size(); ++v)
    if (ValueId now = successor[problem.contentOf(ValueId(v))]; now != kNone)
      home[v] = now;
  return home;
}

ValueId Problem::addValue(Value value) {
  values.push_back(std::move(value));
  return ValueId(values.size()) - 1;
}

RecipeId Problem::addRecipe(Recipe recipe) {
  recipes.push_back(std::move(recipe));
  return RecipeId(recipes.size()) - 1;
}

SegmentId Problem::addSegment(std::string name, int64_t trips) {
  segments.push_back({std::move(name), trips, {}});
  return SegmentId(segments.size()) - 1;
}

InstructionId Problem::addInstruction(SegmentId segment, Recipe recipe) {
  InstructionId id = InstructionId(instructions.size());
  instructions.push_back({recipe.name, segment, {}});
  segments[segment].instructions.push_back(id);
  addVariant(id, std::move(recipe));
  return id;
}

RecipeId Problem::addVariant(InstructionId instruction, Recipe recipe) {
  recipe.instruction = instruction;
  SegmentId segment = instructions[instruction].segment;
  bool bound = segments[segment].trips > 1;
  for (ValueId v : recipe.reads)
    bound |= values[v].kind == ValueKind::Carried;
  if (bound)
    recipe.segment = segment;
  RecipeId id = addRecipe(std::move(recipe));
  instructions[instruction].recipes.push_back(id);
  return id;
}

Problem tmc::planning::inOrder(Problem problem, const Orders &orders) {
  for (size_t s = 0; s < orders.size(); ++s)
    problem.segments[s].instructions = orders[s];
  return problem;
}

Orders tmc::planning::firstExecutions(const Solution &solution) {
  Orders orders;
  for (const std::vector<Execution> &list : solution.segments) {
    orders.emplace_back();
    for (const Execution &e : list)
      if (e.instruction != kNone && e.phase != Phase::Done)
        orders.back().push_back(e.instruction);
  }
  return orders;
}

int64_t tmc::planning::recomputedExecutions(const Problem &problem,
                                            const Solution &solution) {
  int64_t count = 0;
  for (const std::vector<Execution> &list : solution.segments)
    for (const Execution &e : list)
      count += e.instruction == kNone && e.phase != Phase::Done &&
               !problem.isMove(problem.recipes[e.recipe]);
  return count;
}

namespace {

/// Lists every instruction once, and the copies without which a form that is
/// read or is a home wouldn't be there.
class BaseList {
public:
  explicit BaseList(const Problem &problem)
      : problem(problem), isThere(problem.values.size(), 0) {
    for (size_t v = 0; v < isThere.size(); ++v) {
      const Value &value = problem.values[v];
      isThere[v] = value.kind == ValueKind::Carried ||
                   (value.kind == ValueKind::Persistent &&
                    value.updates == kNone && value.formOf == kNone);
    }
  }

  Solution list() {
    for (const Segment &segment : problem.segments) {
      solution.segments.emplace_back();
      for (InstructionId i : segment.instructions) {
        const RecipeId first = problem.instructions[i].recipes.front();
        for (ValueId v : problem.recipes[first].reads)
          bring(v);
        add(first, i);
        for (ValueId w : problem.recipes[first].writes) {
          const ValueId content = problem.contentOf(w);
          const Value &main = problem.values[content];
          if (main.kind == ValueKind::Persistent || main.liveOut)
            bring(content);
        }
      }
    }
    return std::move(solution);
  }

private:
  void add(RecipeId r, InstructionId instruction) {
    std::vector<Execution> &list = solution.segments.back();
    for (ValueId w : problem.recipes[r].writes)
      isThere[w] = 1;
    if (problem.recipes[r].engine == 0) {
      list.push_back({r, instruction, {}});
      return;
    }
    const int32_t work = int32_t(list.size());
    list.push_back({r, instruction, {}, Phase::Start, work});
    list.push_back({r, instruction, {}, Phase::Done, work});
  }
  /// Copies v from a form that is there, if v isn't.
  void bring(ValueId v) {
    const SegmentId here = SegmentId(solution.segments.size()) - 1;
    for (size_t r = 0; r < problem.recipes.size() && !isThere[v]; ++r) {
      const Recipe &recipe = problem.recipes[r];
      if (recipe.recomputable && problem.isCopy(recipe) &&
          recipe.writes[0] == v && isThere[recipe.reads[0]] &&
          (recipe.segment == kNone || recipe.segment == here))
        add(RecipeId(r), kNone);
    }
  }

  const Problem &problem;
  std::vector<char> isThere; // By value.
  Solution solution;
};

} // namespace

Solution tmc::planning::baseSolution(const Problem &problem) {
  Solution solution = BaseList(problem).list();
  takeOverwrites(problem, solution);
  return solution;
}

int64_t tmc::planning::baseCost(const Problem &problem) {
  int64_t cost = 0;
  for (const Instruction &i : problem.instructions)
    if (const Recipe &first = problem.recipes[i.recipes.front()];
        first.engine == 0)
      cost += first.cost * problem.segments[i.segment].trips;
  return cost;
}

void tmc::planning::takeOverwrites(const Problem &problem, Solution &solution) {
  for (std::vector<Execution> &list : solution.segments)
    for (Execution &e : list)
      e.overwrites.clear();
  absl::StatusOr<Timeline> timeline = timelineOf(problem, solution);
  if (!timeline.ok())
    return; // `simulate` will report the error.
  // An option is open if the read instance dies there in every trip shown.
  std::vector<std::vector<std::vector<char>>> open(solution.segments.size());
  for (size_t s = 0; s < open.size(); ++s)
    for (const Execution &e : solution.segments[s])
      open[s].push_back(
          std::vector<char>(problem.recipes[e.recipe].overwrites.size(), 1));
  for (size_t t = 0; t < timeline->size(); ++t) {
    const Profile::Moment &m = timeline->moments[t];
    const Recipe &recipe =
        problem.recipes[solution.segments[m.segment][m.index].recipe];
    for (size_t o = 0; o < recipe.overwrites.size(); ++o) {
      int32_t instance = timeline->readAt(t, recipe.overwrites[o].read, recipe);
      if (instance != kNone && !timeline->freesAt(instance, t))
        open[m.segment][m.index][o] = 0;
    }
  }
  for (size_t s = 0; s < open.size(); ++s)
    for (size_t e = 0; e < open[s].size(); ++e) {
      Execution &execution = solution.segments[s][e];
      if (execution.phase == Phase::Done)
        continue;
      const std::vector<Overwrite> &options =
          problem.recipes[execution.recipe].overwrites;
      for (bool must : {true, false})
        for (size_t o = 0; o < options.size(); ++o) {
          if (!open[s][e][o] || options[o].must != must)
            continue;
          bool used = false;
          for (int32_t taken : execution.overwrites)
            used |= options[taken].read == options[o].read ||
                    options[taken].written == options[o].written;
          if (!used)
            execution.overwrites.push_back(int32_t(o));
        }
      std::sort(execution.overwrites.begin(), execution.overwrites.end());
    }
}
