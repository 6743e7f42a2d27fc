#include "compiler/planning/driver/GatherUpdates.h"

#include "compiler/planning/pack/Buffers.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

/// The most that waiting updates may use.
struct Limits {
  int64_t liveBytes; // At each moment, with all else that is alive.
  int64_t heldBytes; // By one update: small ones gain most.
  size_t updates;    // That wait at a time.
};

/// The limits that are tried in turn while the arena is too large.
constexpr int64_t kAllBytes = std::numeric_limits<int64_t>::max();
constexpr size_t kAllUpdates = std::numeric_limits<size_t>::max();
constexpr std::pair<int64_t, size_t> kTried[] = {{kAllBytes, kAllUpdates},
                                                 {kAllBytes, 16},
                                                 {kAllBytes, 8},
                                                 {1 << 20, kAllUpdates},
                                                 {1 << 16, kAllUpdates}};
/// An arena may grow by this part, if the budget permits.
constexpr int64_t kArenaPart = 128;

/// The list of one segment of one trip, with its updates moved later.
class Gathering {
public:
  /// `live`: the live bytes of the device at each entry of the list.
  Gathering(const Problem &problem, const std::vector<int32_t> &kindOf,
            const std::vector<Execution> &list,
            const std::vector<int64_t> &live, const Limits &limits)
      : problem(problem), kindOf(kindOf), list(list), live(live),
        limits(limits), isRead(problem.values.size(), 0), isWritten(isRead),
        lastUse(uses()) {}

  std::vector<Execution> run() {
    for (size_t at = 0; at < list.size(); ++at) {
      if (isBarrier(list[at]) || waiting.size() >= limits.updates ||
          live[at] + heldAt(at) > limits.liveBytes)
        flush();
      if (isUpdate(list[at]) && heldBy(at, list.size()) <= limits.heldBytes)
        wait(at);
      else
        gathered.push_back(list[at]);
    }
    flush();
    return std::move(gathered);
  }

private:
  const Problem &problem;
  const std::vector<int32_t> &kindOf;
  const std::vector<Execution> &list;
  const std::vector<int64_t> &live;
  const Limits limits;
  std::vector<Execution> gathered;
  std::vector<size_t> waiting; // Updates, as places in the list.
  /// By value: whether a waiting update reads or writes it.
  std::vector<char> isRead, isWritten;
  /// By entry of an update and read value: the place of the value's last use.
  std::vector<std::vector<size_t>> lastUse;

  const Recipe &recipeOf(const Execution &e) const {
    return problem.recipes[e.recipe];
  }

  bool isUpdate(const Execution &e) const {
    return kindOf[e.recipe] != kNone && e.phase == Phase::Whole &&
           e.instruction != kNone && recipeOf(e).engine == 0;
  }

  /// The last place at which each read value of each update is read before it
  /// is written again.
  std::vector<std::vector<size_t>> uses() const {
    std::vector<std::vector<size_t>> last(list.size());
    std::vector<size_t> next(problem.values.size(), 0); // 0: no later use.
    for (size_t at = list.size(); at-- > 0;) {
      const Recipe &recipe = recipeOf(list[at]);
      for (ValueId written : recipe.writes)
        next[written] = 0;
      for (ValueId read : recipe.reads)
        next[read] = std::max(next[read], at);
      if (isUpdate(list[at]))
        for (ValueId read : recipe.reads)
          last[at].push_back(next[read]);
    }
    return last;
  }

  /// True if the waiting updates must run before `e`.
  bool isBarrier(const Execution &e) const {
    const Recipe &recipe = recipeOf(e);
    auto isIn = [](const std::vector<char> &set) {
      return [&set](ValueId v) { return set[v] != 0; };
    };
    auto hasAny = [](const std::vector<ValueId> &values, auto &&test) {
      return std::any_of(values.begin(), values.end(), test);
    };
    if (e.phase == Phase::Done && problem.touchesDevice(recipe))
      return true;
    if (hasAny(recipe.writes, isIn(isRead)) ||
        hasAny(recipe.writes, isIn(isWritten)) ||
        hasAny(recipe.reads, isIn(isWritten)))
      return true;
    // The storage of what an update reads isn't free yet.
    return std::any_of(
        e.overwrites.begin(), e.overwrites.end(),
        [&](int32_t taken) { return isRead[recipe.overwrites[taken].read]; });
  }

  /// Bytes that are alive at an entry only because updates wait, and those that
  /// they will need together.
  int64_t heldAt(size_t at) const {
    int64_t bytes = 0;
    for (size_t update : waiting)
      bytes += heldBy(update, at);
    return bytes;
  }
  int64_t heldBy(size_t update, size_t at) const {
    const Recipe &recipe = recipeOf(list[update]);
    int64_t bytes = recipe.workspaceSpace == 0 ? recipe.workspaceBytes : 0;
    for (ValueId written : recipe.writes)
      bytes += temporaryBytes(written);
    for (size_t i = 0; i < recipe.reads.size(); ++i)
      if (lastUse[update][i] < at)
        bytes += temporaryBytes(recipe.reads[i]);
    return bytes;
  }

  int64_t temporaryBytes(ValueId v) const {
    const Value &value = problem.values[v];
    return value.kind == ValueKind::Temporary && value.space == 0 ? value.bytes
                                                                  : 0;
  }

  void wait(size_t at) {
    waiting.push_back(at);
    for (ValueId v : recipeOf(list[at]).reads)
      isRead[v] = 1;
    for (ValueId v : recipeOf(list[at]).writes)
      isWritten[v] = 1;
  }

  /// Runs the waiting updates, those of a kind side by side.
  void flush() {
    std::stable_sort(waiting.begin(), waiting.end(), [&](size_t a, size_t b) {
      return kindOf[list[a].recipe] < kindOf[list[b].recipe];
    });
    for (size_t at : waiting) {
      gathered.push_back(list[at]);
      for (ValueId v : recipeOf(list[at]).reads)
        isRead[v] = 0;
      for (ValueId v : recipeOf(list[at]).writes)
        isWritten[v] = 0;
    }
    waiting.clear();
  }
};

} // namespace

/// `solution` with updates that wait within the limits.
static Solution gathered(const Problem &problem, const Solution &solution,
                         const Profile &profile,
                         const std::vector<int32_t> &kindOf,
                         const Limits &limits) {
  Solution result = solution;
  for (size_t s = 0; s < solution.segments.size(); ++s) {
    if (problem.segments[s].trips != 1)
      continue;
    std::vector<int64_t> live;
    for (size_t m = 0; m < profile.moments.size(); ++m)
      if (profile.moments[m].segment == SegmentId(s))
        live.push_back(profile.liveBytes[m]);
    result.segments[s] =
        Gathering(problem, kindOf, solution.segments[s], live, limits).run();
  }
  takeOverwrites(problem, result);
  return result;
}

/// The launches of updates if those of a kind that stand side by side are one.
static int64_t launchesOf(const Solution &solution,
                          const std::vector<int32_t> &kindOf) {
  int64_t launches = 0;
  for (const std::vector<Execution> &list : solution.segments)
    for (size_t i = 0; i < list.size(); ++i)
      launches +=
          kindOf[list[i].recipe] != kNone &&
          (i == 0 || kindOf[list[i].recipe] != kindOf[list[i - 1].recipe]);
  return launches;
}

int64_t tmc::planning::arenaRoom(int64_t arenaBytes, int64_t mostBytes) {
  const int64_t room = arenaBytes + arenaBytes / kArenaPart;
  return mostBytes < 0 ? room : std::min(room, std::max(arenaBytes, mostBytes));
}

void tmc::planning::gatherUpdates(const Problem &problem, Plan &plan,
                                  const std::vector<int32_t> &kindOf,
                                  int64_t alignment, int64_t budgetBytes) {
  const absl::StatusOr<Profile> before = simulate(problem, plan.solution);
  if (!before.ok())
    return; // The verifier reports it.
  const PackOptions packing =
      plan.arenas.empty() ? PackOptions() : plan.arenas[0].packing;
  auto arenaBytes = [&](const Solution &solution) {
    return packSorted(arenaOf(problem, solution, alignment), packing)
        .arenaBytes;
  };
  const int64_t room = arenaRoom(
      plan.arenas.empty() ? arenaBytes(plan.solution) : plan.arenas[0].bytes,
      budgetBytes < 0 ? -1 : budgetBytes - problem.reservedBytes);
  const Solution planned = plan.solution;
  for (auto [heldBytes, updates] : kTried) {
    Limits limits = {before->peakBytes, heldBytes, updates};
    // The second time, bytes stay free for what the packing loses.
    for (int attempt = 0; attempt < 2; ++attempt) {
      Solution next = gathered(problem, planned, *before, kindOf, limits);
      if (launchesOf(next, kindOf) >= launchesOf(plan.solution, kindOf))
        break;
      const absl::StatusOr<Profile> after = simulate(problem, next);
      if (!after.ok() || after->makespan > before->makespan)
        break;
      const int64_t over = std::max(arenaBytes(next) - room,
                                    after->peakBytes - before->peakBytes);
      if (over <= 0) {
        plan.solution = std::move(next);
        plan.cost = after->makespan;
        plan.peakBytes = after->spacePeakBytes;
        break;
      }
      limits.liveBytes -= over;
    }
  }
}
