// VerifyTimes.cpp - the verifier's own count of a trip's time (R12 and R17).

#include "compiler/planning/model/VerifyWalk.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

using Wide = __int128;

class Trip {
public:
  Trip(const Problem &problem, const std::vector<TimedEntry> &entries)
      : problem(problem), entries(entries), states(entries.size()) {}

  Wide run() {
    beginAll();
    while (!running.empty()) {
      Wide soonest = endOf(running.front());
      for (int32_t at : running)
        soonest = std::min(soonest, endOf(at));
      now = soonest;
      endAll();
      beginAll();
    }
    return now;
  }

private:
  struct State {
    bool begun = false, ended = false;
    Wide done = 0;  // Part of its cost.
    Wide since = 0; // When `done` was counted.
  };

  /// Begins all entries that nothing before them holds up. Behind a kernel that
  /// hasn't ended no entry can begin.
  void beginAll() {
    bool isOpen = false; // Work whose Done stands before hasn't ended.
    bool deviceWaits = false;
    std::vector<char> busy(problem.engines.size(), 0);
    for (; first < entries.size(); ++first)
      if (!isEnded(int32_t(first)))
        break;
    for (size_t at = first; at < entries.size(); ++at) {
      const TimedEntry &entry = entries[at];
      if (isEnded(int32_t(at)))
        continue;
      if (entry.phase == Phase::Done) {
        isOpen = true;
        deviceWaits |= entry.onDevice;
        continue;
      }
      const bool isKernel = entry.phase == Phase::Whole;
      bool waits =
          isKernel ? deviceWaits : isOpen || busy[size_t(entry.recipe->engine)];
      for (int32_t maker : entry.makers)
        waits |= !isKernel && !isEnded(maker);
      if (!waits && !states[at].begun)
        begin(int32_t(at));
      if (isKernel)
        return;
      busy[size_t(entry.recipe->engine)] = 1;
    }
  }

  /// True of a Done if its work has ended.
  bool isEnded(int32_t at) const {
    const TimedEntry &entry = entries[size_t(at)];
    return !entry.recipe ||
           states[size_t(entry.phase == Phase::Done ? entry.start : at)].ended;
  }

  void begin(int32_t at) {
    if (shareOf(at) > 0)
      goOn();
    states[size_t(at)].begun = true;
    states[size_t(at)].since = now;
    running.push_back(at);
  }

  void endAll() {
    std::vector<int32_t> ends;
    for (int32_t at : running)
      if (endOf(at) <= now)
        ends.push_back(at);
    if (std::any_of(ends.begin(), ends.end(),
                    [&](int32_t at) { return shareOf(at) > 0; }))
      goOn();
    for (int32_t at : ends) {
      states[size_t(at)].ended = true;
      std::erase(running, at);
    }
  }

  Wide shareOf(int32_t at) const {
    return entries[size_t(at)].recipe->busShare;
  }
  /// The shares in flight, or the whole if they are less.
  Wide load() const {
    Wide sum = 0;
    for (int32_t at : running)
      sum += shareOf(at);
    return std::max<Wide>(sum, kWholeBus);
  }
  Wide endOf(int32_t at) const {
    const State &state = states[size_t(at)];
    const Wide rest = entries[size_t(at)].recipe->cost - state.done;
    return state.since +
           (shareOf(at) ? (rest * load() + kWholeBus - 1) / kWholeBus : rest);
  }
  /// Counts progress, before the shares in flight change.
  void goOn() {
    const Wide slow = load();
    for (int32_t at : running) {
      State &state = states[size_t(at)];
      if (!shareOf(at))
        continue;
      state.done += (now - state.since) * kWholeBus / slow;
      state.since = now;
    }
  }

  const Problem &problem;
  const std::vector<TimedEntry> &entries;
  std::vector<State> states;
  std::vector<int32_t> running;
  size_t first = 0; // The first that hasn't ended.
  Wide now = 0;
};

} // namespace

__int128 tmc::planning::timeOfTrip(const Problem &problem,
                                   const std::vector<TimedEntry> &entries) {
  return Trip(problem, entries).run();
}
