#include "compiler/planning/laboratory/PlanFile.h"

#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/pack/Buffers.h"
#include "compiler/planning/peers/External.h"
#include "compiler/support/Escape.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

using namespace tmc::planning;

namespace {

constexpr int64_t kGiga = 1'000'000'000;

/// An error if `index` isn't one of `count` things, or the permitted `none`.
absl::Status checkIndex(const std::string &where, const std::string &what,
                        int64_t index, size_t count, bool mayBeNone = false) {
  if ((index >= 0 && size_t(index) < count) || (mayBeNone && index == kNone))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(where, " names ", what, " ", index, " of ", count));
}

/// The overwrites of the recipe that the pairs name.
absl::StatusOr<std::vector<int32_t>> overwritesOf(const std::string &where,
                                                  const PlanFile::Entry &entry,
                                                  const Recipe &recipe) {
  std::vector<int32_t> taken;
  for (auto [read, written] : entry.overwrites) {
    auto is = [&](const Overwrite &o) {
      return o.read == read && o.written == written;
    };
    const auto found =
        std::find_if(recipe.overwrites.begin(), recipe.overwrites.end(), is);
    if (found == recipe.overwrites.end())
      return absl::InvalidArgumentError(absl::StrCat(
          where, " writes value ", written, " in the place of ", read,
          ", which recipe '", recipe.name, "' doesn't offer"));
    taken.push_back(int32_t(found - recipe.overwrites.begin()));
  }
  std::sort(taken.begin(), taken.end());
  if (std::adjacent_find(taken.begin(), taken.end()) != taken.end())
    return absl::InvalidArgumentError(
        absl::StrCat(where, " has one overwrite twice"));
  return taken;
}

absl::StatusOr<Execution> executionOf(const std::string &where,
                                      const PlanFile::Entry &entry,
                                      const Problem &problem) {
  for (const absl::Status &status :
       {checkIndex(where, "segment", entry.segment, problem.segments.size()),
        checkIndex(where, "recipe", entry.recipe, problem.recipes.size()),
        checkIndex(where, "instruction", entry.instruction,
                   problem.instructions.size(), /*mayBeNone=*/true),
        checkIndex(where, "work", entry.work,
                   std::numeric_limits<int32_t>::max(), /*mayBeNone=*/true)})
    if (!status.ok())
      return status;
  const Recipe &recipe = problem.recipes[entry.recipe];
  absl::StatusOr<std::vector<int32_t>> taken =
      overwritesOf(where, entry, recipe);
  if (!taken.ok())
    return taken.status();
  const bool isWork = recipe.engine != 0 || entry.work != kNone;
  return Execution{RecipeId(entry.recipe), InstructionId(entry.instruction),
                   *std::move(taken),
                   entry.done ? Phase::Done
                   : isWork   ? Phase::Start
                              : Phase::Whole,
                   int32_t(entry.work)};
}

/// A buffer without its offset; a name as it stands in JSON.
using BufferKey = std::tuple<std::string, int64_t, int64_t, int64_t>;

BufferKey keyOf(const Buffer &b) {
  return {tmc::jsonQuoted(b.name), b.lifetime.begin, b.lifetime.end, b.bytes};
}

std::string describe(const Buffer &b) {
  return absl::StrCat("'", b.name, "' of ", b.bytes, " bytes in [",
                      b.lifetime.begin, ", ", b.lifetime.end, ")");
}

/// The first defect of a stated arena.
std::optional<std::string> checkStated(const StatedArena &stated,
                                       const Problem &problem,
                                       const Solution &solution) {
  const ArenaProblem arena =
      arenaOf(problem, solution, stated.alignment, SpaceId(stated.space));
  std::multimap<BufferKey, int64_t> offsets;
  Packing packing;
  for (const Buffer &b : stated.buffers) {
    offsets.insert({keyOf(b), b.fixedOffset});
    packing.arenaBytes = std::max(packing.arenaBytes, b.fixedOffset + b.bytes);
  }
  packing.arenaBytes = stated.bytes.value_or(packing.arenaBytes);
  for (const Buffer &b : arena.buffers) {
    const auto found = offsets.find(keyOf(b));
    if (found == offsets.end())
      return absl::StrCat("arena: there is no place for ", describe(b));
    packing.offsets.push_back(found->second);
    offsets.erase(found);
  }
  for (const Buffer &b : stated.buffers)
    if (offsets.contains(keyOf(b)))
      return absl::StrCat("arena: the lists have no buffer ", describe(b));
  if (auto defect = verifyPacking(arena, packing))
    return absl::StrCat("arena: ", *defect);
  const int64_t budget = problem.liveLimitOf(SpaceId(stated.space));
  if (budget >= 0 && packing.arenaBytes > budget)
    return absl::StrCat("budget: the arena of '",
                        problem.spaces[stated.space].name, "' has ",
                        packing.arenaBytes, " bytes, more than the ", budget,
                        " that its budget leaves");
  return std::nullopt;
}

/// The first wrong claim about time or bytes.
std::optional<std::string> checkClaims(const PlanFile &plan,
                                       const Problem &problem,
                                       const Solution &solution,
                                       const Claim &measured) {
  if (plan.peaks.size() > problem.spaces.size())
    return absl::StrCat("claim: the plan states ", plan.peaks.size(),
                        " peaks, and the problem has ", problem.spaces.size(),
                        " spaces");
  Claim claim = measured;
  claim.cost = plan.makespan.value_or(claim.cost);
  for (size_t s = 0; s < plan.peaks.size(); ++s)
    if (plan.peaks[s])
      (s ? claim.otherPeakBytes[s - 1] : claim.peakBytes) =
          *plan.peaks[s] - problem.reservedOf(SpaceId(s));
  Problem unlimited = problem;
  for (MemorySpace &space : unlimited.spaces)
    space.budgetBytes = -1;
  return verifySolution(unlimited, solution, claim);
}

} // namespace

MoveOptions OfferedMoves::options() const {
  MoveOptions moves;
  moves.toHost.bandwidth = moves.toDevice.bandwidth = bandwidth * kGiga;
  moves.update.bandwidth = hostBandwidth * kGiga;
  moves.fileRead.bandwidth = fileBandwidth * kGiga;
  moves.fileWrite.bandwidth = fileWriteBandwidth * kGiga;
  moves.hostBandwidth = memoryBandwidth * kGiga;
  moves.activations = moveClass != 2;
  moves.optimizer = moves.parameters = moveClass != 1;
  return moves;
}

absl::StatusOr<Solution> tmc::planning::solutionOf(const PlanFile &plan,
                                                   const Problem &problem,
                                                   bool isGraph) {
  if (plan.isGraph && !isGraph)
    return absl::InvalidArgumentError(
        "'sequence' has node numbers, but the problem is no graph");
  Solution solution;
  if (plan.isGraph) {
    absl::StatusOr<Solution> nodes = solutionOfNodes(problem, plan.nodes);
    if (!nodes.ok())
      return nodes;
    solution = *std::move(nodes);
  }
  solution.segments.resize(problem.segments.size());
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    const std::string where = absl::StrCat("entry ", i, " of 'sequence'");
    absl::StatusOr<Execution> e = executionOf(where, plan.entries[i], problem);
    if (!e.ok())
      return e.status();
    solution.segments[plan.entries[i].segment].push_back(*std::move(e));
  }
  for (int64_t home : plan.homes) {
    if (absl::Status status =
            checkIndex("'homes'", "value", home, problem.values.size());
        !status.ok())
      return status;
    solution.homes.push_back(ValueId(home));
  }
  for (const StatedArena &arena : plan.arenas)
    if (absl::Status status =
            checkIndex("'arenas'", "space", arena.space, problem.spaces.size());
        !status.ok())
      return status;
  return solution;
}

PlanVerdict tmc::planning::judgePlan(const PlanFile &plan,
                                     const Problem &problem,
                                     const Solution &solution) {
  PlanVerdict verdict;
  absl::StatusOr<Claim> measured = measure(problem, solution);
  if (!measured.ok()) {
    verdict.defect = std::string(measured.status().message());
    return verdict;
  }
  verdict.measured = *measured;
  verdict.defect = checkClaims(plan, problem, solution, *measured);
  for (size_t a = 0; a < plan.arenas.size() && !verdict.defect; ++a)
    verdict.defect = checkStated(plan.arenas[a], problem, solution);
  if (!verdict.defect) {
    Claim claim = *measured;
    claim.budgetBytes = problem.spaces[0].budgetBytes;
    verdict.defect = verifySolution(problem, solution, claim);
  }
  verdict.isOverBudget =
      verdict.defect && verdict.defect->starts_with("budget");
  return verdict;
}

void tmc::planning::writeLists(JsonWriter &json, const Problem &problem,
                               const Solution &solution, bool isGraph) {
  json.key("homes");
  json.beginArray();
  for (ValueId v : solution.homes)
    json.value(int64_t(v));
  json.endArray();
  json.key("sequence");
  json.beginArray();
  if (isGraph)
    for (int32_t node : sequenceOf(problem, solution))
      json.value(int64_t(node));
  for (size_t s = 0; s < solution.segments.size() && !isGraph; ++s)
    for (const Execution &e : solution.segments[s]) {
      json.beginArray();
      for (int64_t x : {int64_t(s), int64_t(e.recipe), int64_t(e.instruction),
                        int64_t(e.work), int64_t(e.phase == Phase::Done)})
        json.value(x);
      json.beginArray();
      for (int32_t o : e.overwrites) {
        const Overwrite &taken = problem.recipes[e.recipe].overwrites[o];
        json.beginArray();
        json.value(int64_t(taken.read));
        json.value(int64_t(taken.written));
        json.endArray();
      }
      json.endArray();
      json.endArray();
    }
  json.endArray();
}

void tmc::planning::writeArena(JsonWriter &json, const ArenaProblem &arena,
                               const Packing &packing) {
  json.key("arenas");
  json.beginArray();
  json.beginObject();
  json.member("space", int64_t(0));
  json.member("alignment", arena.alignment);
  json.member("bytes", packing.arenaBytes);
  json.key("buffers");
  json.beginArray();
  for (size_t i = 0; i < arena.buffers.size(); ++i) {
    const Buffer &b = arena.buffers[i];
    json.beginArray();
    json.value(b.name);
    for (int64_t x :
         {b.lifetime.begin, b.lifetime.end, b.bytes, packing.offsets[i]})
      json.value(x);
    json.endArray();
  }
  json.endArray();
  json.endObject();
  json.endArray();
}

void tmc::planning::writeOffered(JsonWriter &json, const OfferedMoves &moves) {
  json.key("offered");
  json.beginObject();
  json.member("bandwidth", moves.bandwidth);
  json.member("host_bandwidth", moves.hostBandwidth);
  json.member("file_bandwidth", moves.fileBandwidth);
  json.member("file_write_bandwidth", moves.fileWriteBandwidth);
  json.member("memory_bandwidth", moves.memoryBandwidth);
  json.member("move", OfferedMoves::kClasses[moves.moveClass]);
  json.endObject();
}
