#include "compiler/planning/pack/Buffers.h"

#include "compiler/planning/model/Timeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

using namespace tmc::planning;

namespace {

/// Lays out the buffers of one solution.
class BufferLayout {
public:
  BufferLayout(const Problem &problem, const Solution &solution, SpaceId space)
      : problem(problem), solution(solution), space(space),
        homes(homesOf(problem, solution)) {}

  ArenaProblem run(int64_t alignment) {
    ArenaProblem out;
    out.alignment = alignment;
    absl::StatusOr<Timeline> timeline = timelineOf(problem, solution);
    if (!timeline.ok())
      return out;
    u = std::move(*timeline);
    for (const auto &list : solution.segments) {
      segmentBegin.push_back(rows);
      rows += int32_t(list.size());
    }
    segmentBegin.push_back(rows);
    findBuffers();
    collectTouches();
    for (size_t b = 0; b < owner.size(); ++b)
      if (find(int32_t(b)) == int32_t(b) &&
          problem.values[valueOf[b]].space == space)
        if (Lifetime life = lifeOf(int32_t(b)); life.begin < life.end) {
          const Value &value = problem.values[valueOf[b]];
          out.buffers.push_back({value.name, bytes[b], life});
          classes.push_back(value.valueClass);
        }
    for (size_t s = 0; s < solution.segments.size(); ++s)
      for (size_t i = 0; i < solution.segments[s].size(); ++i) {
        const Execution &e = solution.segments[s][i];
        const Recipe &recipe = problem.recipes[e.recipe];
        int64_t row = segmentBegin[s] + int32_t(i);
        if (recipe.workspaceBytes > 0 && recipe.workspaceSpace == space &&
            e.phase != Phase::Done) {
          out.buffers.push_back({recipe.name + ".scratch",
                                 recipe.workspaceBytes,
                                 {row, segmentBegin[s] + doneOf(s, i) + 1}});
          classes.push_back(ValueClass::Workspace);
        }
      }
    return out;
  }

  /// Per buffer made by `run`.
  std::vector<ValueClass> classes;

private:
  struct Touch {
    int32_t row;
    SegmentId loop; // kNone: in a segment of one trip.
    bool reads;
  };

  const Problem &problem;
  const Solution &solution;
  const SpaceId space;
  const std::vector<ValueId> homes;
  Timeline u;
  int32_t rows = 0;
  std::vector<int32_t> segmentBegin;
  /// Buffers: one per value and place in the lists that writes it, then joined.
  std::vector<int32_t> owner;
  std::vector<ValueId> valueOf;
  std::vector<int64_t> bytes; // The most of all instances in a buffer.
  std::vector<char> persistent, liveOut;
  std::vector<int32_t> bufferOf; // Per instance.
  std::vector<std::vector<Touch>> touches;

  int32_t find(int32_t b) {
    while (owner[b] != b)
      b = owner[b] = owner[owner[b]];
    return b;
  }

  void unite(int32_t a, int32_t b) {
    a = find(a), b = find(b);
    if (a == b)
      return;
    owner[std::max(a, b)] = std::min(a, b);
    bytes[std::min(a, b)] = std::max(bytes[a], bytes[b]);
    persistent[std::min(a, b)] |= persistent[std::max(a, b)];
    liveOut[std::min(a, b)] |= liveOut[std::max(a, b)];
  }

  int32_t rowOf(int32_t moment) const {
    return segmentBegin[u.moments[moment].segment] + u.moments[moment].index;
  }

  void findBuffers() {
    std::map<std::pair<int32_t, ValueId>, int32_t> bufferAt;
    for (const Instance &instance : u.instances) {
      int32_t row = instance.begin < 0 ? -1 : rowOf(instance.begin);
      auto [at, fresh] =
          bufferAt.try_emplace({row, instance.value}, int32_t(owner.size()));
      bufferOf.push_back(at->second);
      const Value &value = problem.values[instance.value];
      if (fresh) {
        owner.push_back(at->second);
        valueOf.push_back(instance.value);
        bytes.push_back(value.bytes);
        persistent.push_back(value.kind == ValueKind::Persistent &&
                             homes[instance.value] == instance.value);
        liveOut.push_back(false);
      }
      liveOut[at->second] |= instance.last >= int32_t(u.size());
    }
    for (size_t i = 0; i < u.instances.size(); ++i)
      if (u.instances[i].storageOf != kNone)
        unite(bufferOf[i], bufferOf[u.instances[i].storageOf]);
    // A carried value is one buffer in all trips.
    std::map<std::pair<int32_t, ValueId>, int32_t> carried;
    for (size_t t = 0; t < u.size(); ++t) {
      const Recipe &recipe = recipeAt(t);
      for (size_t i = 0; i < recipe.reads.size(); ++i) {
        int32_t instance = u.readsAt(t)[i];
        if (instance == kNone ||
            problem.values[recipe.reads[i]].kind != ValueKind::Carried)
          continue;
        auto [at, fresh] = carried.try_emplace(
            {u.moments[t].segment, recipe.reads[i]}, bufferOf[instance]);
        if (!fresh)
          unite(at->second, bufferOf[instance]);
      }
    }
  }

  /// Index in the list of the entry's Done.
  int32_t doneOf(size_t s, size_t entry) const {
    const std::vector<Execution> &list = solution.segments[s];
    size_t at = entry;
    if (list[entry].phase == Phase::Start)
      while (list[at].phase != Phase::Done || list[at].work != list[entry].work)
        ++at;
    return int32_t(at);
  }

  const Recipe &recipeAt(size_t t) const {
    const Profile::Moment &m = u.moments[t];
    return problem.recipes[solution.segments[m.segment][m.index].recipe];
  }

  void collectTouches() {
    touches.resize(owner.size());
    for (size_t t = 0; t < u.size(); ++t) {
      const Profile::Moment &m = u.moments[t];
      bool loops = problem.segments[m.segment].trips > 1;
      if (loops && m.trip != 1)
        continue; // The second trip shows all touches of a body.
      auto touch = [&](std::span<const int32_t> list, bool reads, size_t at) {
        for (int32_t instance : list)
          if (instance != kNone)
            touches[find(bufferOf[instance])].push_back(
                {rowOf(int32_t(at)), loops ? m.segment : kNone, reads});
      };
      touch(u.readsAt(t), true, t);
      touch(u.writesAt(t), false, t);
      // Work touches its operands through its Done.
      if (size_t end = size_t(u.endOf(t)); end != t) {
        touch(u.readsAt(t), false, end);
        touch(u.writesAt(t), false, end);
      }
    }
    for (std::vector<Touch> &list : touches)
      std::stable_sort(
          list.begin(), list.end(),
          [](const Touch &a, const Touch &b) { return a.row < b.row; });
  }

  Lifetime lifeOf(int32_t buffer) {
    if (persistent[buffer])
      return {0, rows};
    const std::vector<Touch> &list = touches[buffer];
    if (list.empty())
      return {0, 0};
    Lifetime life{list.front().row, list.back().row + 1};
    for (size_t s = 0; s < problem.segments.size(); ++s) {
      auto inside = [&](const Touch &t) { return t.loop == SegmentId(s); };
      auto first = std::find_if(list.begin(), list.end(), inside);
      if (first == list.end())
        continue;
      if (first->reads || !std::all_of(list.begin(), list.end(), inside)) {
        life.begin = std::min<int64_t>(life.begin, segmentBegin[s]);
        life.end = std::max<int64_t>(life.end, segmentBegin[s + 1]);
      }
    }
    if (liveOut[buffer])
      life.end = rows;
    return life;
  }
};

} // namespace

ArenaProblem tmc::planning::arenaOf(const Problem &problem,
                                    const Solution &solution, int64_t alignment,
                                    SpaceId space) {
  return BufferLayout(problem, solution, space).run(alignment);
}

std::array<int64_t, kNumClasses>
tmc::planning::layoutPeakByClass(const Problem &problem,
                                 const Solution &solution) {
  BufferLayout layout(problem, solution, 0);
  const ArenaProblem arena = layout.run(/*alignment=*/1);
  int64_t rows = 0;
  for (const Buffer &b : arena.buffers)
    rows = std::max(rows, b.lifetime.end);
  std::vector<int64_t> live(size_t(rows) + 1, 0);
  for (const Buffer &b : arena.buffers) {
    live[size_t(b.lifetime.begin)] += b.bytes;
    live[size_t(b.lifetime.end)] -= b.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  const int64_t peak =
      std::max_element(live.begin(), live.end()) - live.begin();
  std::array<int64_t, kNumClasses> byClass = {};
  for (size_t i = 0; i < arena.buffers.size(); ++i)
    if (arena.buffers[i].lifetime.meets({peak, peak + 1}))
      byClass[size_t(layout.classes[i])] += arena.buffers[i].bytes;
  return byClass;
}

Packing tmc::planning::packSorted(const ArenaProblem &problem,
                                  const PackOptions &options) {
  std::vector<int32_t> order(problem.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    auto key = [&](int32_t i) {
      const Buffer &buffer = problem.buffers[i];
      return std::tuple(buffer.lifetime.begin, -buffer.lifetime.end,
                        -buffer.bytes);
    };
    return key(a) < key(b);
  });
  ArenaProblem sorted = problem;
  for (size_t i = 0; i < order.size(); ++i) {
    sorted.buffers[i] = problem.buffers[order[i]];
    int64_t unit = problem.alignment;
    sorted.buffers[i].bytes =
        (sorted.buffers[i].bytes + unit - 1) / unit * unit;
  }
  Packing found = packArena(sorted, options), out = found;
  for (size_t i = 0; i < order.size(); ++i)
    out.offsets[order[i]] = found.offsets[i];
  return out;
}
