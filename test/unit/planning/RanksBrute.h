// RanksBrute.h - small lists of several ranks that are drawn, and what they
// take by the letter of R12, as the longest way through a graph.
//
// The graph has a node for each moment at which compute comes to an entry, for
// the begin and the end of each work, and for each meeting. An edge says that a
// moment comes some time after another one. A node on a ring has no time.

#ifndef TMC_TEST_UNIT_PLANNING_RANKSBRUTE_H
#define TMC_TEST_UNIT_PLANNING_RANKSBRUTE_H

#include "compiler/planning/model/Random.h"
#include "compiler/planning/model/SimulateRanks.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace tmc::planning {

/// The times of lists without carried values and shares of the bus; none if
/// ranks wait for each other.
class RanksGraph {
public:
  RanksGraph(const std::vector<RankList> &lists,
             const std::vector<Channel> &channels)
      : lists(lists), channels(channels), met(channels.size()) {}

  std::optional<RankTimes> run() {
    std::vector<int> ends;
    for (size_t r = 0; r < lists.size(); ++r)
      ends.push_back(addRank(int32_t(r)));
    for (size_t c = 0; c < channels.size(); ++c)
      for (Meeting &meeting : met[c]) {
        if (meeting.works.size() != channels[c].size())
          blocked.push_back(meeting.node);
        for (const Work &work : meeting.works) {
          edge(work.begin, meeting.node, 0);
          edge(meeting.node, work.end, meeting.cost);
        }
      }
    if (!longest())
      return std::nullopt;
    RankTimes times;
    times.ranks.resize(lists.size());
    for (size_t r = 0; r < lists.size(); ++r) {
      times.ranks[r].end = at[size_t(ends[r])];
      times.makespan = std::max(times.makespan, times.ranks[r].end);
    }
    for (const std::vector<Meeting> &all : met)
      for (const Meeting &meeting : all)
        for (const Work &work : meeting.works)
          times.ranks[size_t(work.rank)].waiting +=
              at[size_t(meeting.node)] - at[size_t(work.begin)];
    return times;
  }

private:
  struct Work {
    int32_t rank;
    int begin, end;
  };
  struct Meeting {
    int node = 0;
    int64_t cost = 0;
    std::vector<Work> works;
  };
  struct Edge {
    int to;
    int64_t after;
  };

  const std::vector<RankList> &lists;
  const std::vector<Channel> &channels;
  std::vector<std::vector<Edge>> edges; // From each node.
  std::vector<int> before;              // The edges to each.
  std::vector<int64_t> at;
  std::vector<std::vector<Meeting>> met; // By channel.
  std::vector<int> blocked;              // Nodes that never happen.

  int node() {
    edges.emplace_back();
    before.push_back(0);
    return int(edges.size()) - 1;
  }
  void edge(int from, int to, int64_t after) {
    edges[size_t(from)].push_back({to, after});
    ++before[size_t(to)];
  }

  /// Returns the end of the rank's list.
  int addRank(int32_t r) {
    const Problem &p = *lists[size_t(r)].problem;
    std::vector<size_t> count(channels.size(), 0);
    int border = node();
    for (size_t s = 0; s < p.segments.size(); ++s)
      for (int64_t trip = 0; trip < p.segments[s].trips; ++trip)
        border =
            addTrip(r, lists[size_t(r)].solution->segments[s], border, count);
    return border;
  }

  int addTrip(int32_t r, const std::vector<Execution> &list, int begin,
              std::vector<size_t> &count) {
    const Problem &p = *lists[size_t(r)].problem;
    std::map<int32_t, Work> works; // By `Execution::work`.
    std::map<EngineId, int> last;  // The end of its latest work.
    std::map<ValueId, int> madeBy; // The end of its maker.
    std::vector<int> gates;        // Ends that later work waits for.
    int arrival = begin;
    for (const Execution &e : list) {
      const Recipe &recipe = p.recipes[size_t(e.recipe)];
      const int next = node();
      edge(arrival, next, e.phase == Phase::Whole ? recipe.cost : 0);
      if (e.phase == Phase::Start) {
        Work &work = works[e.work] = {r, node(), node()};
        edge(arrival, work.begin, 0);
        if (last.count(recipe.engine))
          edge(last[recipe.engine], work.begin, 0);
        for (int gate : gates)
          edge(gate, work.begin, 0);
        for (ValueId v : recipe.reads)
          if (madeBy.count(v))
            edge(madeBy[v], work.begin, 0);
        last[recipe.engine] = work.end;
        for (ValueId v : recipe.writes)
          madeBy[v] = work.end;
        take(r, e.recipe, work, count);
      } else if (e.phase == Phase::Done) {
        if (p.touchesDevice(recipe))
          edge(works[e.work].end, next, 0);
        else
          gates.push_back(works[e.work].end);
      }
      arrival = next;
    }
    const int border = node();
    edge(arrival, border, 0);
    for (const auto &[number, work] : works)
      edge(work.end, border, 0);
    return border;
  }

  /// Work takes its own cost, or that of its meeting.
  void take(int32_t r, RecipeId recipe, const Work &work,
            std::vector<size_t> &count) {
    const RankList &list = lists[size_t(r)];
    const int64_t cost = list.problem->recipes[size_t(recipe)].cost;
    const int32_t c = list.channelOf[size_t(recipe)];
    if (c == kNone)
      return edge(work.begin, work.end, cost);
    std::vector<Meeting> &all = met[size_t(c)];
    const size_t k = count[size_t(c)]++;
    while (all.size() <= k)
      all.push_back({node(), 0, {}});
    all[k].cost = std::max(all[k].cost, cost);
    all[k].works.push_back(work);
  }

  /// The time of each node; false if some have none.
  bool longest() {
    at.assign(edges.size(), 0);
    for (int each : blocked)
      ++before[size_t(each)];
    std::deque<int> open;
    for (size_t n = 0; n < edges.size(); ++n)
      if (before[n] == 0)
        open.push_back(int(n));
    size_t seen = 0;
    for (; !open.empty(); ++seen) {
      const int from = open.front();
      open.pop_front();
      for (const Edge &each : edges[size_t(from)]) {
        int64_t &to = at[size_t(each.to)];
        to = std::max(to, at[size_t(from)] + each.after);
        if (--before[size_t(each.to)] == 0)
          open.push_back(each.to);
      }
    }
    return seen == edges.size();
  }
};

/// Two to four ranks with kernels, work on the host and on two networks, some
/// of which meet. Some ranks hold back a call until they have made another one,
/// so that some worlds get stuck.
class DrawnRanks {
public:
  explicit DrawnRanks(Random &random) : random(random) {
    const uint32_t count = 2 + random.below(3);
    for (uint32_t c = 1 + random.below(4); c > 0; --c)
      addChannel(int32_t(count));
    ranks.resize(count);
    for (Rank &rank : ranks) {
      rank.problem.addNetwork("dp");
      rank.problem.addNetwork("pp");
      const SpaceId host = rank.problem.addSpace(SpaceKind::Host);
      hostEngine = rank.problem.engineBetween(host, host);
    }
    isCalm = random.chance(0.6);
    for (uint32_t s = 1 + random.below(2); s > 0; --s)
      addSegment();
    for (Rank &rank : ranks) {
      lists.push_back({&rank.problem, &rank.solution, rank.channelOf});
      lists.back().channelOf.resize(rank.problem.recipes.size(), kNone);
    }
  }
  DrawnRanks(const DrawnRanks &) = delete;

  std::vector<RankList> lists;
  std::vector<Channel> channels;

private:
  struct Rank {
    Problem problem;
    Solution solution;
    std::vector<int32_t> channelOf;
    std::vector<ValueId> made, onHost;              // In this segment.
    std::map<EngineId, std::deque<Execution>> open; // Work without a Done.
    std::vector<std::pair<EngineId, int32_t>> held; // Calls, with channels.
    std::vector<ValueId> done;                      // Compute may read them.
    int32_t works = 0;
  };

  Random &random;
  std::vector<Rank> ranks;
  std::vector<EngineId> networkOf; // By channel.
  EngineId hostEngine = 0;
  bool isCalm = true;

  void addChannel(int32_t count) {
    Channel channel;
    while (channel.size() < 2) {
      channel.clear();
      for (int32_t r = 0; r < count; ++r)
        if (random.chance(0.6))
          channel.push_back(r);
    }
    channels.push_back(channel);
    networkOf.push_back(1 + EngineId(random.below(2)));
  }

  void addSegment() {
    const int64_t trips = 1 + random.below(3);
    for (Rank &rank : ranks) {
      rank.problem.addSegment("s" +
                                  std::to_string(rank.solution.segments.size()),
                              random.chance(0.98) ? trips : trips + 1);
      rank.solution.segments.emplace_back();
      rank.made.clear(), rank.onHost.clear(), rank.done.clear();
      rank.works = 0;
    }
    for (uint32_t n = 4 + random.below(12); n > 0; --n) {
      const double kind = random.unit();
      Rank &rank = ranks[random.below(uint32_t(ranks.size()))];
      if (kind < 0.4) {
        add(rank, 0, kNone);
      } else if (kind < 0.5) {
        add(rank, hostEngine, kNone);
      } else if (kind < 0.6) {
        add(rank, 1 + EngineId(random.below(2)), kNone);
      } else {
        const uint32_t c = random.below(uint32_t(channels.size()));
        for (int32_t r : channels[c])
          call(ranks[size_t(r)], int32_t(c));
      }
      for (Rank &each : ranks)
        if (random.chance(0.4))
          end(each, 1 + EngineId(random.below(3)));
    }
    for (Rank &rank : ranks) {
      release(rank);
      for (EngineId engine : {1, 2, 3})
        while (!rank.open[engine].empty())
          end(rank, engine);
    }
  }

  void call(Rank &rank, int32_t channel) {
    if (!isCalm && rank.held.empty() && random.chance(0.2)) {
      rank.held.push_back({networkOf[size_t(channel)], channel});
      return;
    }
    add(rank, networkOf[size_t(channel)], channel);
    release(rank);
  }
  void release(Rank &rank) {
    for (const auto &[engine, channel] : rank.held)
      add(rank, engine, channel);
    rank.held.clear();
  }

  /// Adds an execution that makes a value.
  void add(Rank &rank, EngineId engine, int32_t channel) {
    Problem &p = rank.problem;
    const bool host = engine == hostEngine;
    const std::vector<ValueId> &from = host          ? rank.onHost
                                       : engine == 0 ? rank.done
                                                     : rank.made;
    Recipe recipe;
    recipe.name = "r" + std::to_string(p.recipes.size());
    for (int tries = 0; tries < 2 && !from.empty(); ++tries)
      if (const ValueId v = from[random.below(uint32_t(from.size()))];
          recipe.reads.empty() || recipe.reads[0] != v)
        recipe.reads.push_back(v);
    Value value;
    value.name = "v" + std::to_string(p.values.size());
    value.bytes = 1;
    value.space = host ? 1 : 0;
    const ValueId made = p.addValue(value);
    recipe.writes = {made};
    recipe.cost = random.below(6);
    recipe.engine = engine;
    const auto segment = SegmentId(p.segments.size()) - 1;
    const InstructionId instruction = p.addInstruction(segment, recipe);
    (host ? rank.onHost : rank.made).push_back(made);
    rank.channelOf.resize(p.recipes.size(), kNone);
    rank.channelOf.back() = channel;
    Execution e;
    e.recipe = RecipeId(p.recipes.size()) - 1;
    e.instruction = instruction;
    if (engine == 0) {
      rank.done.push_back(made);
    } else {
      e.phase = Phase::Start;
      e.work = rank.works++;
      rank.open[engine].push_back(e);
    }
    rank.solution.segments.back().push_back(e);
  }

  /// The oldest work of an engine is done.
  void end(Rank &rank, EngineId engine) {
    std::deque<Execution> &open = rank.open[engine];
    if (open.empty())
      return;
    Execution e = open.front();
    open.pop_front();
    e.phase = Phase::Done;
    rank.solution.segments.back().push_back(e);
    if (engine != hostEngine)
      rank.done.push_back(rank.problem.recipes[size_t(e.recipe)].writes[0]);
  }
};

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_RANKSBRUTE_H
