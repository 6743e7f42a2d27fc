#include "compiler/planning/model/Checks.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

/// Largest sum of sizes or costs. Where all engines share the host's memory,
/// work takes up to five times as long as alone (R17).
constexpr int64_t kMaxSum = std::numeric_limits<int64_t>::max() / 8;

template <typename... Words> absl::Status malformed(const Words &...words) {
  return absl::InvalidArgumentError(absl::StrCat(words...));
}

bool isIn(const std::vector<ValueId> &list, ValueId v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

/// Finds the first defect, in the order in which a reader looks for it.
class Check {
public:
  explicit Check(const Problem &problem)
      : problem(problem), listed(problem.instructions.size(), 0),
        maker(problem.values.size(), kNone) {}

  absl::Status run();

private:
  bool isValue(ValueId v) const {
    return v >= 0 && size_t(v) < problem.values.size();
  }
  const std::string &nameOf(ValueId v) const { return problem.values[v].name; }
  std::vector<ValueId> contentsOf(const std::vector<ValueId> &values) const {
    std::vector<ValueId> contents;
    for (ValueId v : values)
      contents.push_back(problem.contentOf(v));
    std::sort(contents.begin(), contents.end());
    contents.erase(std::unique(contents.begin(), contents.end()),
                   contents.end());
    return contents;
  }
  InstructionId makerOf(ValueId v) const { return maker[problem.contentOf(v)]; }

  absl::Status checkValues();
  absl::Status checkReferences(const Value &v) const;
  absl::Status checkRecipes();
  absl::Status checkLists(const Recipe &r) const;
  absl::Status checkOwner(const Recipe &r) const;
  absl::Status checkOverwrites(const Recipe &r) const;
  absl::Status checkWrites(const Recipe &r) const;
  absl::Status checkSegments();
  absl::Status checkInstruction(InstructionId i);
  absl::Status checkOwnRecipes(InstructionId i, int64_t &mostCost) const;
  absl::Status checkMakers() const;
  absl::Status checkCarriedReads() const;

  const Problem &problem;
  std::vector<int32_t> listed;      // Per instruction: how often.
  std::vector<InstructionId> maker; // Per content.
  __int128 stepCost = 0;
};

absl::Status Check::checkReferences(const Value &v) const {
  for (ValueId other : {v.updates, v.carriedFrom, v.initial})
    if (other != kNone && !isValue(other))
      return malformed("value '", v.name,
                       "' refers to a value that isn't there");
  if (v.updates != kNone && v.kind != ValueKind::Persistent)
    return malformed("value '", v.name,
                     "' updates another, but isn't persistent");
  if ((v.kind == ValueKind::Carried) != (v.carriedFrom != kNone))
    return malformed(
        "value '", v.name,
        "' must be of kind carried exactly if it is carried from another");
  if (v.lag < 1 || v.lag > kMostLag ||
      (v.lag > 1 && v.kind != ValueKind::Carried))
    return malformed("value '", v.name, "' lags by ", v.lag,
                     " trips; a carried value lags by 1 to ", kMostLag);
  if (v.initial != kNone && v.kind != ValueKind::Carried)
    return malformed("value '", v.name,
                     "' has an initial value, but isn't carried");
  for (ValueId same : {v.updates, v.carriedFrom, v.initial})
    if (same != kNone && problem.values[same].bytes != v.bytes)
      return malformed("value '", v.name, "' has ", v.bytes,
                       " bytes, but takes the place of '", nameOf(same),
                       "' of ", problem.values[same].bytes);
  if (v.updates != kNone &&
      (problem.values[v.updates].kind != ValueKind::Persistent ||
       problem.values[v.updates].updates != kNone))
    return malformed("value '", v.name, "' updates '", nameOf(v.updates),
                     "', which the step doesn't begin with");
  if (v.carriedFrom != kNone &&
      problem.values[v.carriedFrom].kind != ValueKind::Temporary)
    return malformed("value '", v.name, "' is carried from '",
                     nameOf(v.carriedFrom), "', which no instruction makes");
  return absl::OkStatus();
}

absl::Status Check::checkValues() {
  __int128 bytes = 0;
  for (const Value &v : problem.values) {
    if (v.bytes < 0)
      return malformed("value '", v.name, "' has ", v.bytes, " bytes");
    bytes += v.bytes;
    if (absl::Status status = checkReferences(v); !status.ok())
      return status;
  }
  if (problem.reservedBytes < 0 || bytes + problem.reservedBytes > kMaxSum)
    return malformed("the sizes of all values and what is reserved don't fit "
                     "61 bits together");
  return absl::OkStatus();
}

absl::Status Check::checkLists(const Recipe &r) const {
  __int128 footprint = r.workspaceBytes;
  for (const std::vector<ValueId> *list : {&r.reads, &r.writes}) {
    for (ValueId v : *list) {
      if (!isValue(v))
        return malformed("recipe '", r.name, "' refers to value ", v, " of ",
                         problem.values.size());
      footprint += problem.values[v].bytes;
    }
    std::vector<ValueId> sorted = *list;
    std::sort(sorted.begin(), sorted.end());
    auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end())
      return malformed("recipe '", r.name, "' names '", nameOf(*twice),
                       "' twice");
  }
  if (footprint > kMaxSum)
    return malformed("recipe '", r.name, "' needs more bytes than fit 61 bits");
  return absl::OkStatus();
}

absl::Status Check::checkOwner(const Recipe &r) const {
  if (r.segment != kNone &&
      (r.segment < 0 || size_t(r.segment) >= problem.segments.size()))
    return malformed("recipe '", r.name, "' is bound to segment ", r.segment,
                     " of ", problem.segments.size());
  if (r.instruction != kNone &&
      (r.instruction < 0 ||
       size_t(r.instruction) >= problem.instructions.size()))
    return malformed("recipe '", r.name, "' belongs to instruction ",
                     r.instruction, " of ", problem.instructions.size());
  if (r.instruction == kNone && !r.recomputable)
    return malformed("recipe '", r.name,
                     "' belongs to no instruction and can't recompute");
  return absl::OkStatus();
}

absl::Status Check::checkOverwrites(const Recipe &r) const {
  for (const Overwrite &o : r.overwrites) {
    if (!isIn(r.reads, o.read) || !isIn(r.writes, o.written))
      return malformed(
          "recipe '", r.name,
          "' overwrites what it doesn't read by what it doesn't write");
    if (o.must && r.recomputable)
      return malformed("recipe '", r.name, "' updates '", nameOf(o.read),
                       "' in place, so it can't run again");
  }
  return absl::OkStatus();
}

absl::Status Check::checkWrites(const Recipe &r) const {
  // A copy makes another form of an existing content; the plan decides the
  // possible overwrites (R14).
  if (problem.isCopy(r) && r.instruction == kNone)
    return absl::OkStatus();
  for (ValueId w : r.writes) {
    const Value &v = problem.values[w];
    bool persists = v.kind == ValueKind::Persistent;
    if (v.kind == ValueKind::Carried || (persists && v.updates == kNone))
      return malformed("recipe '", r.name, "' writes '", v.name,
                       "', which is there without it");
    if (r.recomputable && persists)
      return malformed("recipe '", r.name, "' updates '", v.name,
                       "', so it can't run again");
    if (isIn(r.reads, w))
      return malformed("recipe '", r.name, "' reads and writes '", v.name, "'");
  }
  return absl::OkStatus();
}

absl::Status Check::checkRecipes() {
  __int128 cost = 0;
  for (const Recipe &r : problem.recipes) {
    if (r.cost < 0 || r.workspaceBytes < 0)
      return malformed("recipe '", r.name, "' has cost ", r.cost,
                       " and a workspace of ", r.workspaceBytes, " bytes");
    for (auto check : {&Check::checkLists, &Check::checkOwner,
                       &Check::checkOverwrites, &Check::checkWrites})
      if (absl::Status status = (this->*check)(r); !status.ok())
        return status;
    cost += r.cost;
  }
  if (cost > kMaxSum)
    return malformed("the costs of all recipes don't fit 61 bits together");
  return absl::OkStatus();
}

absl::Status Check::checkSegments() {
  for (size_t s = 0; s < problem.segments.size(); ++s) {
    const Segment &segment = problem.segments[s];
    if (segment.trips < 1)
      return malformed("segment '", segment.name, "' runs ", segment.trips,
                       " times");
    for (InstructionId i : segment.instructions) {
      if (i < 0 || size_t(i) >= problem.instructions.size())
        return malformed("segment '", segment.name, "' lists instruction ", i,
                         " of ", problem.instructions.size());
      if (size_t(problem.instructions[i].segment) != s || listed[i]++)
        return malformed("instruction '", problem.instructions[i].name,
                         "' isn't listed once, in its own segment");
    }
  }
  return absl::OkStatus();
}

/// All recipes of an instruction make the same contents, in its segment.
absl::Status Check::checkOwnRecipes(InstructionId i, int64_t &mostCost) const {
  const Instruction &instruction = problem.instructions[i];
  std::vector<ValueId> wanted;
  for (RecipeId r : instruction.recipes) {
    if (r < 0 || size_t(r) >= problem.recipes.size() ||
        problem.recipes[r].instruction != i)
      return malformed("instruction '", instruction.name,
                       "' lists a recipe that isn't its own");
    const Recipe &recipe = problem.recipes[r];
    if (recipe.segment != kNone && recipe.segment != instruction.segment)
      return malformed("recipe '", recipe.name,
                       "' may not run in the segment of its instruction");
    std::vector<ValueId> writes = contentsOf(recipe.writes);
    if (r == instruction.recipes.front())
      wanted = writes;
    else if (writes != wanted)
      return malformed("recipe '", recipe.name, "' of instruction '",
                       instruction.name,
                       "' writes other contents than the first recipe");
    mostCost = std::max(mostCost, recipe.cost);
  }
  return absl::OkStatus();
}

absl::Status Check::checkInstruction(InstructionId i) {
  const Instruction &instruction = problem.instructions[i];
  if (!listed[i])
    return malformed("instruction '", instruction.name,
                     "' isn't listed in its segment");
  if (instruction.recipes.empty())
    return malformed("instruction '", instruction.name, "' has no recipe");
  int64_t mostCost = 0;
  if (absl::Status status = checkOwnRecipes(i, mostCost); !status.ok())
    return status;
  const Segment &segment = problem.segments[instruction.segment];
  std::vector<ValueId> writes =
      contentsOf(problem.recipes[instruction.recipes.front()].writes);
  for (ValueId v : writes) {
    if (maker[v] != kNone)
      return malformed("'", nameOf(v), "' is made by '",
                       problem.instructions[maker[v]].name, "' and by '",
                       instruction.name, "'");
    maker[v] = i;
    if (problem.values[v].kind == ValueKind::Persistent && segment.trips > 1)
      return malformed("'", nameOf(v), "' is updated in each trip of segment '",
                       segment.name, "'");
  }
  stepCost += __int128(mostCost) * segment.trips;
  return absl::OkStatus();
}

absl::Status Check::checkMakers() const {
  std::vector<ValueId> updatedBy(problem.values.size(), kNone);
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const Value &value = problem.values[v];
    const Value &main = problem.values[problem.contentOf(ValueId(v))];
    bool made = main.kind == ValueKind::Temporary || main.updates != kNone;
    if (made && makerOf(ValueId(v)) == kNone)
      return malformed("no instruction makes '", value.name, "'");
    if (value.updates != kNone) {
      if (updatedBy[value.updates] != kNone)
        return malformed("'", nameOf(value.updates), "' is updated twice");
      updatedBy[value.updates] = ValueId(v);
    }
    if (value.carriedFrom != kNone && makerOf(value.carriedFrom) == kNone)
      return malformed("no instruction makes '", nameOf(value.carriedFrom),
                       "'");
  }
  return absl::OkStatus();
}

absl::Status Check::checkCarriedReads() const {
  for (const Recipe &recipe : problem.recipes)
    for (const std::vector<ValueId> *list : {&recipe.reads, &recipe.writes})
      for (ValueId v : *list)
        if (ValueId from = problem.values[problem.contentOf(v)].carriedFrom;
            from != kNone &&
            problem.instructions[makerOf(from)].segment != recipe.segment)
          return malformed("recipe '", recipe.name, "' ",
                           list == &recipe.reads ? "reads '" : "writes '",
                           nameOf(v),
                           "', but isn't bound to the segment that carries it");
  return absl::OkStatus();
}

absl::Status Check::run() {
  if (absl::Status status = checkSpaces(problem); !status.ok())
    return status;
  for (auto check :
       {&Check::checkValues, &Check::checkRecipes, &Check::checkSegments})
    if (absl::Status status = (this->*check)(); !status.ok())
      return status;
  for (size_t i = 0; i < problem.instructions.size(); ++i)
    if (absl::Status status = checkInstruction(InstructionId(i)); !status.ok())
      return status;
  if (stepCost > kMaxSum)
    return malformed("the cost of the step doesn't fit 61 bits");
  for (auto check : {&Check::checkMakers, &Check::checkCarriedReads})
    if (absl::Status status = (this->*check)(); !status.ok())
      return status;
  return simulate(problem, baseSolution(problem)).status();
}

} // namespace

absl::Status tmc::planning::check(const Problem &problem) {
  return Check(problem).run();
}
