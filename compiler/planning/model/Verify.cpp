#include "compiler/planning/model/Verify.h"

#include "compiler/planning/model/VerifySpaces.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

using Wide = __int128;

/// Walks the unrolled step backward with the set of values whose present bytes
/// a later entry needs. It uses neither instances nor intervals, so it is a
/// second way to the same numbers.
class Walk {
public:
  Walk(const Problem &problem, const Solution &solution)
      : problem(problem), solution(solution),
        home(problem.values.size(), kNone), needed(problem.values.size(), 0) {}

  std::optional<std::string> run() {
    if (std::optional<std::string> defect = count())
      return defect;
    for (const Instruction &i : problem.instructions)
      for (ValueId v : problem.recipes[i.recipes.front()].writes)
        home[v] = i.segment;
    for (size_t v = 0; v < problem.values.size(); ++v) {
      const Value &value = problem.values[v];
      if (value.kind == ValueKind::Persistent || value.liveOut)
        need(ValueId(v));
    }
    for (const Value &value : problem.values)
      if (value.updates != kNone)
        drop(value.updates); // The step ends with the new version.
    for (SegmentId s = SegmentId(problem.segments.size()) - 1; s >= 0; --s) {
      int64_t trips = problem.segments[s].trips > 1 ? 3 : 1;
      for (int64_t trip = trips - 1; trip >= 0; --trip)
        if (std::optional<std::string> defect = walkTrip(s, trip == 0))
          return absl::StrCat(*defect, trips > 1
                                           ? trip == 0   ? " in the first trip"
                                             : trip == 1 ? " in a middle trip"
                                                         : " in the last trip"
                                           : "");
    }
    for (size_t v = 0; v < problem.values.size(); ++v)
      if (needed[v] && (problem.values[v].kind != ValueKind::Persistent ||
                        problem.values[v].updates != kNone))
        return absl::StrCat("'", problem.values[v].name,
                            "' is read before it is made");
    return std::nullopt;
  }

  Wide peak = 0, cost = 0;

private:
  void need(ValueId v) {
    if (!needed[v])
      needed[v] = 1, neededBytes += problem.values[v].bytes;
  }
  void drop(ValueId v) {
    if (needed[v])
      needed[v] = 0, neededBytes -= problem.values[v].bytes;
  }

  std::optional<std::string> count() {
    if (solution.segments.size() != problem.segments.size())
      return absl::StrCat("the solution has ", solution.segments.size(),
                          " segments, the problem ", problem.segments.size());
    std::vector<int64_t> runs(problem.instructions.size(), 0);
    for (size_t s = 0; s < solution.segments.size(); ++s)
      for (const Execution &e : solution.segments[s]) {
        if (e.recipe < 0 || e.recipe >= int64_t(problem.recipes.size()))
          return absl::StrCat("there is no recipe ", e.recipe);
        const Recipe &r = problem.recipes[e.recipe];
        if (e.instruction != kNone) {
          if (e.instruction != r.instruction)
            return absl::StrCat(
                "'", r.name,
                "' doesn't belong to the instruction that it runs for");
          if (problem.instructions[e.instruction].segment != SegmentId(s))
            return absl::StrCat("'", r.name,
                                "' runs its instruction outside its segment");
          ++runs[e.instruction];
        } else {
          if (!r.recomputable)
            return absl::StrCat("'", r.name, "' is recomputed but may not be");
          for (ValueId w : r.writes)
            if (problem.values[w].pinned)
              return absl::StrCat("'", r.name, "' recomputes the pinned '",
                                  problem.values[w].name, "'");
        }
        if (r.segment != kNone && r.segment != SegmentId(s))
          return absl::StrCat("'", r.name, "' runs in segment '",
                              problem.segments[s].name, "', where it may not");
        cost += Wide(r.cost) * problem.segments[s].trips;
      }
    for (size_t i = 0; i < runs.size(); ++i)
      if (runs[i] != 1)
        return absl::StrCat("instruction '", problem.instructions[i].name,
                            "' runs ", runs[i], " times for itself, not once");
    return std::nullopt;
  }

  /// One trip of segment s, last execution first.
  std::optional<std::string> walkTrip(SegmentId s, bool first) {
    // In a first trip a carried value has the name of its initial value.
    auto named = [&](ValueId v) {
      const Value &value = problem.values[v];
      return first && value.kind == ValueKind::Carried ? value.initial : v;
    };
    const std::vector<Execution> &list = solution.segments[s];
    for (size_t v = 0; first && v < problem.values.size(); ++v)
      if (needed[v] && problem.values[v].kind == ValueKind::Carried) {
        drop(ValueId(v)); // Read after a segment of one trip.
        if (problem.values[v].initial != kNone)
          need(problem.values[v].initial);
      }
    for (size_t at = list.size(); at-- > 0;) {
      const Recipe &r = problem.recipes[list[at].recipe];
      Wide live = neededBytes + r.workspaceBytes;
      for (ValueId w : r.writes)
        if (!needed[w])
          live += problem.values[w].bytes;
      for (ValueId w : r.writes)
        drop(w);
      for (ValueId read : r.reads)
        if (ValueId v = named(read); v != kNone && !needed[v])
          live += problem.values[v].bytes;
      std::vector<char> taken(r.overwrites.size(), 0);
      std::vector<ValueId> given, takers;
      for (int32_t o : list[at].overwrites) {
        if (o < 0 || o >= int64_t(r.overwrites.size()))
          return absl::StrCat("'", r.name, "' takes overwrite ", o,
                              ", which it doesn't have");
        const Overwrite &overwrite = r.overwrites[o];
        ValueId v = named(overwrite.read);
        if (std::find(given.begin(), given.end(), overwrite.read) !=
                given.end() ||
            std::find(takers.begin(), takers.end(), overwrite.written) !=
                takers.end())
          return absl::StrCat("'", r.name,
                              "' overwrites the same storage twice");
        given.push_back(overwrite.read);
        takers.push_back(overwrite.written);
        taken[o] = 1;
        if (v == kNone)
          continue;
        if (needed[v])
          return absl::StrCat("'", r.name, "' (execution ", at, " of '",
                              problem.segments[s].name, "') overwrites '",
                              problem.values[v].name,
                              "', which is needed later");
        live -= std::min(problem.values[v].bytes,
                         problem.values[overwrite.written].bytes);
      }
      for (size_t o = 0; o < taken.size(); ++o)
        if (r.overwrites[o].must && !taken[o])
          return absl::StrCat("'", r.name, "' (execution ", at, " of '",
                              problem.segments[s].name, "') doesn't update '",
                              problem.values[r.overwrites[o].read].name,
                              "' in place");
      peak = std::max(peak, live);
      for (ValueId read : r.reads)
        if (ValueId v = named(read); v != kNone)
          need(v);
    }
    // Across the beginning of the trip.
    std::vector<ValueId> carriedOver;
    for (size_t v = 0; v < problem.values.size(); ++v) {
      if (!needed[v])
        continue;
      const Value &value = problem.values[v];
      if (value.kind == ValueKind::Carried && home[value.carriedFrom] == s)
        carriedOver.push_back(ValueId(v));
      else if (home[v] == s)
        return absl::StrCat("'", value.name, "' is read in segment '",
                            problem.segments[s].name, "' before it is made");
    }
    for (ValueId v : carriedOver)
      drop(v);
    for (ValueId v : carriedOver)
      need(problem.values[v].carriedFrom);
    return std::nullopt;
  }

  const Problem &problem;
  const Solution &solution;
  std::vector<SegmentId> home;
  std::vector<char> needed;
  Wide neededBytes = 0;
};

absl::StatusOr<Claim> measureAll(const Problem &problem,
                                 const Solution &solution) {
  SpaceMeasure is;
  if (std::optional<std::string> defect = measureSpaces(problem, solution, is))
    return absl::FailedPreconditionError(*defect);
  constexpr Wide most = std::numeric_limits<int64_t>::max();
  if (is.makespan > most ||
      *std::max_element(is.peakBytes.begin(), is.peakBytes.end()) > most)
    return absl::OutOfRangeError("a peak or the makespan doesn't fit 63 bits");
  Claim claim{int64_t(is.peakBytes[0]), int64_t(is.makespan)};
  for (size_t s = 1; s < is.peakBytes.size(); ++s)
    claim.otherPeakBytes.push_back(int64_t(is.peakBytes[s]));
  return claim;
}

/// Checks that the claimed peaks of other spaces are right, and that every
/// space is within its own budget.
std::optional<std::string> checkPeaks(const Problem &problem, const Claim &is,
                                      const Claim &claim) {
  for (size_t s = 0; s < problem.spaces.size(); ++s) {
    const MemorySpace &space = problem.spaces[s];
    int64_t peak = s ? is.otherPeakBytes[s - 1] : is.peakBytes;
    if (s && (claim.otherPeakBytes.size() < s ||
              claim.otherPeakBytes[s - 1] != peak))
      return absl::StrCat("claim: the peak of '", space.name, "' is ", peak,
                          " bytes, not as claimed");
    int64_t reserved = problem.reservedOf(SpaceId(s));
    if (space.budgetBytes >= 0 && Wide(peak) + reserved > space.budgetBytes)
      return absl::StrCat("budget: the peak of '", space.name, "' of ", peak,
                          " bytes and ", reserved,
                          " reserved exceed its budget of ", space.budgetBytes);
  }
  return std::nullopt;
}

} // namespace

absl::StatusOr<Claim> tmc::planning::measure(const Problem &problem,
                                             const Solution &solution) {
  if (!isOneSpace(problem))
    return measureAll(problem, solution);
  Walk walk(problem, solution);
  if (std::optional<std::string> defect = walk.run())
    return absl::FailedPreconditionError(*defect);
  constexpr Wide most = std::numeric_limits<int64_t>::max();
  if (walk.peak > most || walk.cost > most)
    return absl::OutOfRangeError("the peak or the cost doesn't fit 63 bits");
  return Claim{int64_t(walk.peak), int64_t(walk.cost), -1};
}

std::optional<std::string>
tmc::planning::verifySolution(const Problem &problem, const Solution &solution,
                              const Claim &claim) {
  absl::StatusOr<Claim> is = measure(problem, solution);
  if (!is.ok())
    return std::string(is.status().message());
  const char *said = "", *allowed = "";
  if (!isOneSpace(problem)) {
    if (std::optional<std::string> defect = checkPeaks(problem, *is, claim))
      return defect;
    said = "claim: ", allowed = "budget: ";
  }
  if (is->peakBytes != claim.peakBytes)
    return absl::StrCat(said, "the peak is ", is->peakBytes, " bytes, not ",
                        claim.peakBytes, " as claimed");
  if (is->cost != claim.cost)
    return absl::StrCat(said, "the cost is ", is->cost, ", not ", claim.cost,
                        " as claimed");
  if (claim.budgetBytes >= 0 &&
      Wide(is->peakBytes) + problem.reservedBytes > claim.budgetBytes)
    return absl::StrCat(allowed, "the peak of ", is->peakBytes, " bytes and ",
                        problem.reservedBytes,
                        " reserved exceed the budget of ", claim.budgetBytes,
                        " by ",
                        int64_t(Wide(is->peakBytes) + problem.reservedBytes -
                                claim.budgetBytes),
                        " bytes");
  return std::nullopt;
}
