#include "compiler/planning/model/Problem.h"

#include "compiler/planning/model/Timeline.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

const char *tmc::planning::nameOf(ValueClass valueClass) {
  switch (valueClass) {
  case ValueClass::Parameter:
    return "parameters";
  case ValueClass::Gradient:
    return "gradients";
  case ValueClass::Optimizer:
    return "optimizer";
  case ValueClass::Activation:
    return "activations";
  case ValueClass::Workspace:
    return "workspace";
  case ValueClass::Batch:
    return "batch";
  case ValueClass::Other:
    return "other";
  }
  return "other";
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

namespace {

/// EvictionSet below INT64_MAX that sums of sizes and costs must keep.
constexpr int64_t kMaxSum = std::numeric_limits<int64_t>::max() / 4;

absl::Status malformed(const std::string &what) {
  return absl::InvalidArgumentError(what);
}

absl::Status checkIndices(const Problem &problem) {
  auto isValue = [&](ValueId v) {
    return v >= 0 && size_t(v) < problem.values.size();
  };
  auto isOptionalValue = [&](ValueId v) { return v == kNone || isValue(v); };
  __int128 bytes = 0;
  for (const Value &v : problem.values) {
    if (v.bytes < 0)
      return malformed(
          absl::StrCat("value '", v.name, "' has ", v.bytes, " bytes"));
    bytes += v.bytes;
    if (!isOptionalValue(v.updates) || !isOptionalValue(v.carriedFrom) ||
        !isOptionalValue(v.initial))
      return malformed(absl::StrCat("value '", v.name,
                                    "' refers to a value that isn't there"));
    if ((v.updates != kNone) && v.kind != ValueKind::Persistent)
      return malformed(absl::StrCat("value '", v.name,
                                    "' updates another, but isn't persistent"));
    if ((v.kind == ValueKind::Carried) != (v.carriedFrom != kNone))
      return malformed(absl::StrCat(
          "value '", v.name,
          "' must be of kind carried exactly if it is carried from another"));
    if (v.initial != kNone && v.kind != ValueKind::Carried)
      return malformed(absl::StrCat(
          "value '", v.name, "' has an initial value, but isn't carried"));
    for (ValueId same : {v.updates, v.carriedFrom, v.initial})
      if (same != kNone && problem.values[same].bytes != v.bytes)
        return malformed(absl::StrCat("value '", v.name, "' has ", v.bytes,
                                      " bytes, but takes the place of '",
                                      problem.values[same].name, "' of ",
                                      problem.values[same].bytes));
    if (v.updates != kNone &&
        (problem.values[v.updates].kind != ValueKind::Persistent ||
         problem.values[v.updates].updates != kNone))
      return malformed(absl::StrCat("value '", v.name, "' updates '",
                                    problem.values[v.updates].name,
                                    "', which the step doesn't begin with"));
    if (v.carriedFrom != kNone &&
        problem.values[v.carriedFrom].kind != ValueKind::Temporary)
      return malformed(absl::StrCat("value '", v.name, "' is carried from '",
                                    problem.values[v.carriedFrom].name,
                                    "', which no instruction makes"));
  }
  if (problem.reservedBytes < 0 || bytes + problem.reservedBytes > kMaxSum)
    return malformed("the sizes of all values and what is reserved don't fit "
                     "61 bits together");

  __int128 cost = 0;
  for (const Recipe &r : problem.recipes) {
    if (r.cost < 0 || r.workspaceBytes < 0)
      return malformed(absl::StrCat("recipe '", r.name, "' has cost ", r.cost,
                                    " and a workspace of ", r.workspaceBytes,
                                    " bytes"));
    __int128 footprint = r.workspaceBytes;
    for (const std::vector<ValueId> *list : {&r.reads, &r.writes}) {
      for (size_t i = 0; i < list->size(); ++i) {
        if (!isValue((*list)[i]))
          return malformed(absl::StrCat("recipe '", r.name,
                                        "' refers to value ", (*list)[i],
                                        " of ", problem.values.size()));
        footprint += problem.values[(*list)[i]].bytes;
      }
      std::vector<ValueId> sorted = *list;
      std::sort(sorted.begin(), sorted.end());
      auto twice = std::adjacent_find(sorted.begin(), sorted.end());
      if (twice != sorted.end())
        return malformed(absl::StrCat("recipe '", r.name, "' names '",
                                      problem.values[*twice].name, "' twice"));
    }
    if (footprint > kMaxSum)
      return malformed(absl::StrCat("recipe '", r.name,
                                    "' needs more bytes than fit 61 bits"));
    if (r.segment != kNone &&
        (r.segment < 0 || size_t(r.segment) >= problem.segments.size()))
      return malformed(absl::StrCat("recipe '", r.name,
                                    "' is bound to segment ", r.segment, " of ",
                                    problem.segments.size()));
    if (r.instruction != kNone &&
        (r.instruction < 0 ||
         size_t(r.instruction) >= problem.instructions.size()))
      return malformed(absl::StrCat("recipe '", r.name,
                                    "' belongs to instruction ", r.instruction,
                                    " of ", problem.instructions.size()));
    if (r.instruction == kNone && !r.recomputable)
      return malformed(
          absl::StrCat("recipe '", r.name,
                       "' belongs to no instruction and can't recompute"));
    for (const Overwrite &o : r.overwrites) {
      if (std::find(r.reads.begin(), r.reads.end(), o.read) == r.reads.end() ||
          std::find(r.writes.begin(), r.writes.end(), o.written) ==
              r.writes.end())
        return malformed(absl::StrCat(
            "recipe '", r.name,
            "' overwrites what it doesn't read by what it doesn't write"));
      if (o.must && r.recomputable)
        return malformed(absl::StrCat("recipe '", r.name, "' updates '",
                                      problem.values[o.read].name,
                                      "' in place, so it can't run again"));
    }
    for (ValueId w : r.writes) {
      const Value &v = problem.values[w];
      if (v.kind == ValueKind::Carried ||
          (v.kind == ValueKind::Persistent && v.updates == kNone))
        return malformed(absl::StrCat("recipe '", r.name, "' writes '", v.name,
                                      "', which is there without it"));
      if (r.recomputable && v.kind == ValueKind::Persistent)
        return malformed(absl::StrCat("recipe '", r.name, "' updates '", v.name,
                                      "', so it can't run again"));
      if (v.kind == ValueKind::Persistent &&
          std::none_of(r.overwrites.begin(), r.overwrites.end(),
                       [&](const Overwrite &o) {
                         return o.must && o.written == w && o.read == v.updates;
                       }))
        return malformed(absl::StrCat("recipe '", r.name, "' makes '", v.name,
                                      "' but not in place of '",
                                      problem.values[v.updates].name, "'"));
      if (std::find(r.reads.begin(), r.reads.end(), w) != r.reads.end())
        return malformed(absl::StrCat("recipe '", r.name,
                                      "' reads and writes '", v.name, "'"));
    }
    cost += r.cost;
  }
  if (cost > kMaxSum)
    return malformed("the costs of all recipes don't fit 61 bits together");
  return absl::OkStatus();
}

absl::Status checkInstructions(const Problem &problem) {
  std::vector<int32_t> listed(problem.instructions.size(), 0);
  __int128 cost = 0;
  for (size_t s = 0; s < problem.segments.size(); ++s) {
    const Segment &segment = problem.segments[s];
    if (segment.trips < 1)
      return malformed(absl::StrCat("segment '", segment.name, "' runs ",
                                    segment.trips, " times"));
    for (InstructionId i : segment.instructions) {
      if (i < 0 || size_t(i) >= problem.instructions.size())
        return malformed(absl::StrCat("segment '", segment.name,
                                      "' lists instruction ", i, " of ",
                                      problem.instructions.size()));
      if (size_t(problem.instructions[i].segment) != s || listed[i]++)
        return malformed(
            absl::StrCat("instruction '", problem.instructions[i].name,
                         "' isn't listed once, in its own segment"));
    }
  }
  std::vector<InstructionId> maker(problem.values.size(), kNone);
  for (size_t i = 0; i < problem.instructions.size(); ++i) {
    const Instruction &instruction = problem.instructions[i];
    if (!listed[i])
      return malformed(absl::StrCat("instruction '", instruction.name,
                                    "' isn't listed in its segment"));
    if (instruction.recipes.empty())
      return malformed(
          absl::StrCat("instruction '", instruction.name, "' has no recipe"));
    std::vector<ValueId> wanted;
    int64_t mostExpensive = 0;
    for (RecipeId r : instruction.recipes) {
      if (r < 0 || size_t(r) >= problem.recipes.size() ||
          size_t(problem.recipes[r].instruction) != i)
        return malformed(absl::StrCat("instruction '", instruction.name,
                                      "' lists a recipe that isn't its own"));
      const Recipe &recipe = problem.recipes[r];
      if (recipe.segment != kNone && recipe.segment != instruction.segment)
        return malformed(
            absl::StrCat("recipe '", recipe.name,
                         "' may not run in the segment of its instruction"));
      std::vector<ValueId> writes = recipe.writes;
      std::sort(writes.begin(), writes.end());
      if (r == instruction.recipes.front())
        wanted = writes;
      else if (writes != wanted)
        return malformed(absl::StrCat(
            "recipe '", recipe.name, "' of instruction '", instruction.name,
            "' writes other values than the first recipe"));
      mostExpensive = std::max(mostExpensive, recipe.cost);
    }
    for (ValueId v : wanted) {
      if (maker[v] != kNone)
        return malformed(absl::StrCat("'", problem.values[v].name,
                                      "' is made by '",
                                      problem.instructions[maker[v]].name,
                                      "' and by '", instruction.name, "'"));
      maker[v] = InstructionId(i);
      if (problem.values[v].kind == ValueKind::Persistent &&
          problem.segments[instruction.segment].trips > 1)
        return malformed(
            absl::StrCat("'", problem.values[v].name,
                         "' is updated in each trip of segment '",
                         problem.segments[instruction.segment].name, "'"));
    }
    cost +=
        __int128(mostExpensive) * problem.segments[instruction.segment].trips;
  }
  if (cost > kMaxSum)
    return malformed("the cost of the step doesn't fit 61 bits");
  std::vector<ValueId> updatedBy(problem.values.size(), kNone);
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const Value &value = problem.values[v];
    bool made = value.kind == ValueKind::Temporary || value.updates != kNone;
    if (made && maker[v] == kNone)
      return malformed(absl::StrCat("no instruction makes '", value.name, "'"));
    if (value.updates != kNone) {
      if (updatedBy[value.updates] != kNone)
        return malformed(absl::StrCat("'", problem.values[value.updates].name,
                                      "' is updated twice"));
      updatedBy[value.updates] = ValueId(v);
    }
    if (value.carriedFrom != kNone && maker[value.carriedFrom] == kNone)
      return malformed(absl::StrCat("no instruction makes '",
                                    problem.values[value.carriedFrom].name,
                                    "'"));
    if (value.initial != kNone && !problem.values[value.initial].pinned)
      return malformed(absl::StrCat("'", value.name, "' begins as '",
                                    problem.values[value.initial].name,
                                    "', which must be pinned for that"));
  }
  for (const Recipe &recipe : problem.recipes)
    for (ValueId r : recipe.reads)
      if (ValueId from = problem.values[r].carriedFrom;
          from != kNone &&
          problem.instructions[maker[from]].segment != recipe.segment)
        return malformed(absl::StrCat(
            "recipe '", recipe.name, "' reads '", problem.values[r].name,
            "', but isn't bound to the segment that carries it"));
  return absl::OkStatus();
}

} // namespace

absl::Status tmc::planning::check(const Problem &problem) {
  if (absl::Status status = checkIndices(problem); !status.ok())
    return status;
  if (absl::Status status = checkInstructions(problem); !status.ok())
    return status;
  return simulate(problem, baseSolution(problem)).status();
}

Solution tmc::planning::baseSolution(const Problem &problem) {
  Solution solution;
  for (const Segment &segment : problem.segments) {
    std::vector<Execution> &list = solution.segments.emplace_back();
    for (InstructionId i : segment.instructions)
      list.push_back({problem.instructions[i].recipes.front(), i, {}});
  }
  takeOverwrites(problem, solution);
  return solution;
}

int64_t tmc::planning::costOf(const Problem &problem,
                              const Solution &solution) {
  int64_t cost = 0;
  for (size_t s = 0; s < solution.segments.size(); ++s)
    for (const Execution &e : solution.segments[s])
      cost += problem.recipes[e.recipe].cost * problem.segments[s].trips;
  return cost;
}

int64_t tmc::planning::baseCost(const Problem &problem) {
  int64_t cost = 0;
  for (const Instruction &i : problem.instructions)
    cost += problem.recipes[i.recipes.front()].cost *
            problem.segments[i.segment].trips;
  return cost;
}

void tmc::planning::takeOverwrites(const Problem &problem, Solution &solution) {
  for (std::vector<Execution> &list : solution.segments)
    for (Execution &e : list)
      e.overwrites.clear();
  absl::StatusOr<Timeline> timeline = timelineOf(problem, solution);
  if (!timeline.ok())
    return; // `simulate` will say what is wrong.
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
      if (instance != kNone && !timeline->diesAt(instance, t))
        open[m.segment][m.index][o] = 0;
    }
  }
  for (size_t s = 0; s < open.size(); ++s)
    for (size_t e = 0; e < open[s].size(); ++e) {
      Execution &execution = solution.segments[s][e];
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
