#include "compiler/planning/model/SimulateRanks.h"

#include "compiler/planning/model/Timeline.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <functional>

using namespace tmc::planning;

namespace {

absl::Status wrong(int32_t rank, const std::string &what) {
  return absl::InvalidArgumentError(
      absl::StrCat("rank ", std::to_string(rank), " ", what));
}

class World {
public:
  World(std::span<const RankList> lists, std::span<const Channel> channels)
      : lists(lists), channels(channels), ranks(lists.size()) {}

  absl::StatusOr<RankTimes> run() {
    for (size_t r = 0; r < ranks.size(); ++r)
      if (absl::Status status = begin(int32_t(r)); !status.ok())
        return status;
    for (int64_t now = 0; now != TripTimes::kNever; now = soonest())
      settle(now);
    for (size_t r = 0; r < ranks.size(); ++r)
      if (!ranks[r].isAtEnd())
        return stuck(int32_t(r));
    RankTimes result;
    for (const Rank &rank : ranks) {
      result.ranks.push_back(rank.times);
      result.makespan = std::max(result.makespan, rank.times.end);
    }
    return result;
  }

private:
  struct Rank {
    std::vector<ShownTrip> trips;
    size_t trip = 0;   // An index of `trips`; their number: at the end.
    int64_t run = 0;   // One of those that the trip stands for.
    int64_t since = 0; // The trip's begin.
    std::vector<EngineId> engineOf; // By channel.
    std::vector<int64_t> readyAt;   // Its next meeting; -1: it isn't there.
    RankTimes::Of times;

    bool isAtEnd() const { return trip == trips.size(); }
    TripTimes &list() { return trips[trip].list; }
    const TripTimes &list() const { return trips[trip].list; }
  };

  std::span<const RankList> lists;
  std::span<const Channel> channels;
  std::vector<Rank> ranks;

  absl::Status checkChannels(int32_t r) {
    const Problem &problem = *lists[size_t(r)].problem;
    const std::vector<int32_t> &channelOf = lists[size_t(r)].channelOf;
    if (channelOf.size() != problem.recipes.size())
      return wrong(r, "doesn't say the channel of each recipe");
    for (size_t i = 0; i < channelOf.size(); ++i) {
      const int32_t c = channelOf[i];
      if (c == kNone)
        continue;
      const Recipe &recipe = problem.recipes[i];
      const std::string name = absl::StrCat("runs '", recipe.name, "' ");
      if (c < 0 || size_t(c) >= channels.size())
        return wrong(r, name + "on no channel");
      const Channel &channel = channels[size_t(c)];
      const auto size = int32_t(ranks.size());
      if (channel.size() < 2 || channel.front() < 0 || channel.back() >= size ||
          std::adjacent_find(channel.begin(), channel.end(),
                             std::greater_equal<>()) != channel.end() ||
          std::find(channel.begin(), channel.end(), r) == channel.end())
        return wrong(r, name + "on a channel that isn't a list of two or more "
                               "ranks with this one");
      EngineId &engine = ranks[size_t(r)].engineOf[size_t(c)];
      if (!problem.isOnNetwork(recipe) ||
          (engine != kNone && engine != recipe.engine))
        return wrong(r, name + "on a channel, but not on its one network");
      engine = recipe.engine;
    }
    return absl::OkStatus();
  }

  absl::Status begin(int32_t r) {
    const RankList &list = lists[size_t(r)];
    Rank &rank = ranks[size_t(r)];
    rank.engineOf.assign(channels.size(), kNone);
    rank.readyAt.assign(list.problem->engines.size(), -1);
    if (absl::Status status = checkChannels(r); !status.ok())
      return status;
    absl::StatusOr<Profile> profile = simulate(*list.problem, *list.solution);
    if (!profile.ok())
      return profile.status();
    absl::StatusOr<std::vector<ShownTrip>> trips =
        tripsOf(*list.problem, *list.solution);
    if (!trips.ok())
      return trips.status();
    rank.trips = std::move(*trips);
    for (ShownTrip &trip : rank.trips)
      for (size_t i = 0; i < trip.list.size(); ++i) {
        TripTimes::Entry &entry = trip.list.entry(i);
        entry.meets =
            entry.recipe && entry.phase == Phase::Start &&
            list.channelOf[indexOf(*list.problem, *entry.recipe)] != kNone;
      }
    if (!rank.isAtEnd())
      rank.list().begin();
    return absl::OkStatus();
  }

  static size_t indexOf(const Problem &problem, const Recipe &recipe) {
    return size_t(&recipe - problem.recipes.data());
  }

  int64_t soonest() const {
    int64_t soonest = TripTimes::kNever;
    for (const Rank &rank : ranks)
      if (!rank.isAtEnd())
        if (const int64_t at = rank.list().soonest(); at != TripTimes::kNever)
          soonest = std::min(soonest, rank.since + at);
    return soonest;
  }

  /// All that happens at this time.
  void settle(int64_t now) {
    for (bool changes = true; changes;) {
      changes = false;
      for (size_t r = 0; r < ranks.size(); ++r)
        changes |= settle(int32_t(r), now);
      for (size_t c = 0; c < channels.size(); ++c)
        changes |= meet(int32_t(c), now);
    }
  }

  /// One rank's part of that; true if it begins another trip or ends.
  bool settle(int32_t r, int64_t now) {
    Rank &rank = ranks[size_t(r)];
    if (rank.isAtEnd())
      return false;
    rank.list().settle(now - rank.since);
    for (size_t e = 0; e < rank.readyAt.size(); ++e)
      if (rank.readyAt[e] < 0 && rank.list().waitingAt(e) != kNone)
        rank.readyAt[e] = now;
    if (!rank.list().isOver())
      return false;
    rank.times.end = rank.since = now;
    if (++rank.run == rank.trips[rank.trip].times) {
      rank.run = 0;
      ++rank.trip;
    }
    if (!rank.isAtEnd())
      rank.list().begin();
    return true;
  }

  /// The channel that an engine's work waits at; kNone: it waits for none.
  int32_t channelAt(int32_t r, size_t engine) const {
    const Rank &rank = ranks[size_t(r)];
    if (rank.isAtEnd())
      return kNone;
    const int32_t at = rank.list().waitingAt(engine);
    return at == kNone ? kNone
                       : lists[size_t(r)].channelOf[recipeAt(rank, r, at)];
  }
  size_t recipeAt(const Rank &rank, int32_t r, int32_t at) const {
    return indexOf(*lists[size_t(r)].problem,
                   *rank.list().entry(size_t(at)).recipe);
  }

  bool isThere(int32_t r, int32_t channel) const {
    const EngineId engine = ranks[size_t(r)].engineOf[size_t(channel)];
    return engine != kNone && channelAt(r, size_t(engine)) == channel;
  }

  /// The ranks of a channel meet, if all are there.
  bool meet(int32_t channel, int64_t now) {
    const Channel &its = channels[size_t(channel)];
    int64_t cost = 0;
    for (int32_t r : its) {
      if (!isThere(r, channel))
        return false;
      const Rank &rank = ranks[size_t(r)];
      const int32_t at =
          rank.list().waitingAt(size_t(rank.engineOf[size_t(channel)]));
      cost = std::max(cost, rank.list().entry(size_t(at)).recipe->cost);
    }
    for (int32_t r : its) {
      Rank &rank = ranks[size_t(r)];
      const auto engine = size_t(rank.engineOf[size_t(channel)]);
      rank.list().meet(engine, cost);
      rank.times.waiting += now - rank.readyAt[engine];
      rank.readyAt[engine] = -1;
    }
    return true;
  }

  /// Nothing is under way, and rank r isn't at its end.
  absl::Status stuck(int32_t r) const {
    std::vector<int32_t> way;
    std::string text = "ranks wait for each other: ";
    while (std::find(way.begin(), way.end(), r) == way.end()) {
      way.push_back(r);
      const Rank &rank = ranks[size_t(r)];
      if (rank.isAtEnd())
        return absl::FailedPreconditionError(
            absl::StrCat(text, "rank ", r, ", whose list has ended"));
      size_t engine = 0;
      while (engine < rank.readyAt.size() &&
             rank.list().waitingAt(engine) == kNone)
        ++engine;
      if (engine == rank.readyAt.size())
        return absl::InternalError(absl::StrCat("rank ", r, " stands still"));
      const int32_t at = rank.list().waitingAt(engine);
      const size_t recipe = recipeAt(rank, r, at);
      absl::StrAppend(&text, "rank ", r, " in '",
                      lists[size_t(r)].problem->recipes[recipe].name, "' for ");
      const int32_t channel = lists[size_t(r)].channelOf[recipe];
      const Channel &its = channels[size_t(channel)];
      r = *std::find_if(its.begin(), its.end(), [&](int32_t other) {
        return !isThere(other, channel);
      });
    }
    return absl::FailedPreconditionError(absl::StrCat(text, "rank ", r));
  }
};

} // namespace

absl::StatusOr<RankTimes>
tmc::planning::simulateRanks(std::span<const RankList> lists,
                             std::span<const Channel> channels) {
  return World(lists, channels).run();
}
