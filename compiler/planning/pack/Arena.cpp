#include "compiler/planning/pack/Arena.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

using namespace tmc::planning;

namespace {

int64_t alignmentOf(const ArenaProblem &problem, const Buffer &buffer) {
  return buffer.alignment ? buffer.alignment : problem.alignment;
}

/// Per buffer: the end of its `inside` chain, and its distance from that
/// buffer's start.
struct Root {
  int32_t buffer;
  int64_t distance;
};

std::vector<Root> rootsOf(const ArenaProblem &problem) {
  std::vector<Root> roots;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    Root root{int32_t(i), 0};
    while (problem.buffers[root.buffer].inside >= 0) {
      root.distance += problem.buffers[root.buffer].distance;
      root.buffer = problem.buffers[root.buffer].inside;
    }
    roots.push_back(root);
  }
  return roots;
}

} // namespace

std::optional<std::string>
tmc::planning::checkArena(const ArenaProblem &problem) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max() / 8;
  int64_t sum = 0;
  if (problem.alignment < 1)
    return "the alignment is " + std::to_string(problem.alignment);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer &b = problem.buffers[i];
    if (b.bytes < 0 || b.bytes > most || (sum += b.bytes) > most)
      return "'" + b.name + "' has " + std::to_string(b.bytes) + " bytes, " +
             std::to_string(sum) + " in all so far";
    if (b.lifetime.end < b.lifetime.begin)
      return "'" + b.name + "' dies at " + std::to_string(b.lifetime.end) +
             ", before it is born at " + std::to_string(b.lifetime.begin);
    if (b.alignment < 0 || b.alignment > most || b.fixedOffset > most ||
        b.distance < 0 || b.distance > most)
      return "'" + b.name +
             "' has an alignment, distance or fixed offset out of range";
    if (b.fixedOffset >= 0 && b.fixedOffset % alignmentOf(problem, b))
      return "'" + b.name + "' is fixed at " + std::to_string(b.fixedOffset) +
             ", which isn't aligned";
    if (b.inside >= int32_t(problem.buffers.size()) || b.inside < -1)
      return "'" + b.name + "' is inside a buffer that isn't there";
    size_t steps = 0;
    for (int32_t j = b.inside; j >= 0; j = problem.buffers[j].inside)
      if (++steps > problem.buffers.size())
        return "'" + b.name + "' is inside itself";
  }
  std::vector<Root> roots = rootsOf(problem);
  std::map<int32_t, std::pair<int64_t, size_t>> fixed;
  for (size_t i = 0; i < roots.size(); ++i) {
    const Buffer &b = problem.buffers[i];
    const Buffer &root = problem.buffers[roots[i].buffer];
    if (roots[i].distance > most || roots[i].distance % alignmentOf(problem, b))
      return "'" + b.name + "' lies " + std::to_string(roots[i].distance) +
             " bytes inside '" + root.name + "', which isn't aligned";
    if (b.fixedOffset < 0)
      continue;
    auto [it, fresh] =
        fixed.insert({roots[i].buffer, {b.fixedOffset - roots[i].distance, i}});
    if (it->second.first < 0 ||
        (!fresh && it->second.first != b.fixedOffset - roots[i].distance))
      return "'" + b.name + "' and '" +
             problem.buffers[it->second.second].name +
             "' are tied, but their fixed offsets disagree";
  }
  return std::nullopt;
}

int64_t tmc::planning::peakBytes(const ArenaProblem &problem) {
  std::vector<Root> roots = rootsOf(problem);
  // Members of a group alive at the same moment count as their union.
  std::vector<std::vector<int32_t>> members(problem.buffers.size());
  for (size_t i = 0; i < roots.size(); ++i)
    members[roots[i].buffer].push_back(int32_t(i));
  std::map<int64_t, int64_t> delta;
  for (const std::vector<int32_t> &group : members) {
    std::vector<int64_t> times;
    for (int32_t i : group) {
      times.push_back(problem.buffers[i].lifetime.begin);
      times.push_back(problem.buffers[i].lifetime.end);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    for (size_t k = 0; k + 1 < times.size(); ++k) {
      std::vector<std::pair<int64_t, int64_t>> spans;
      for (int32_t i : group)
        if (problem.buffers[i].lifetime.meets({times[k], times[k + 1]}))
          spans.push_back({roots[i].distance,
                           roots[i].distance + problem.buffers[i].bytes});
      std::sort(spans.begin(), spans.end());
      int64_t bytes = 0, top = std::numeric_limits<int64_t>::min();
      for (auto [lo, hi] : spans) {
        bytes += std::max<int64_t>(0, hi - std::max(lo, top));
        top = std::max(top, hi);
      }
      delta[times[k]] += bytes;
      delta[times[k + 1]] -= bytes;
    }
  }
  int64_t live = 0, peak = 0;
  for (auto [time, change] : delta)
    peak = std::max(peak, live += change);
  return peak;
}

/// A sweep over time with the live buffers by offset. Live buffers of different
/// groups never overlap (otherwise the sweep has ended), so a new buffer is
/// compared only with its neighbours.
static std::optional<std::string>
findOverlap(const std::vector<Buffer> &buffers, const Packing &packing,
            const std::vector<int32_t> &group) {
  struct Event {
    int64_t time;
    bool birth;
    int32_t buffer;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].bytes > 0 &&
        buffers[i].lifetime.begin < buffers[i].lifetime.end) {
      events.push_back({buffers[i].lifetime.begin, true, int32_t(i)});
      events.push_back({buffers[i].lifetime.end, false, int32_t(i)});
    }
  std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    return std::tuple(a.time, a.birth, a.buffer) <
           std::tuple(b.time, b.birth, b.buffer);
  });
  std::multimap<int64_t, int32_t> live; // Offset to buffer.
  auto overlap = [&](int32_t a, int32_t b) {
    return packing.offsets[a] < packing.offsets[b] + buffers[b].bytes &&
           packing.offsets[b] < packing.offsets[a] + buffers[a].bytes;
  };
  for (const Event &e : events) {
    if (!e.birth) {
      auto [lo, hi] = live.equal_range(packing.offsets[e.buffer]);
      for (auto it = lo; it != hi; ++it)
        if (it->second == e.buffer) {
          live.erase(it);
          break;
        }
      continue;
    }
    auto defect = [&](int32_t other) {
      return "'" + buffers[other].name + "' at [" +
             std::to_string(packing.offsets[other]) + ", " +
             std::to_string(packing.offsets[other] + buffers[other].bytes) +
             ") and '" + buffers[e.buffer].name + "' at [" +
             std::to_string(packing.offsets[e.buffer]) + ", " +
             std::to_string(packing.offsets[e.buffer] +
                            buffers[e.buffer].bytes) +
             ") overlap while both are alive at " + std::to_string(e.time);
    };
    auto it = live.lower_bound(packing.offsets[e.buffer]);
    for (auto up = it;
         up != live.end() &&
         up->first < packing.offsets[e.buffer] + buffers[e.buffer].bytes;
         ++up)
      if (group[up->second] != group[e.buffer])
        return defect(up->second);
    // Going down, the first buffer of another group may be too short to reach
    // this buffer although a longer one of its group does. Buffers below a
    // second group's buffer end before that one begins.
    int32_t stranger = -1;
    for (auto down = it; down != live.begin();) {
      --down;
      int32_t g = group[down->second];
      if (g == group[e.buffer])
        continue;
      if (stranger >= 0 && g != stranger)
        break;
      stranger = g;
      if (overlap(down->second, e.buffer))
        return defect(down->second);
    }
    live.insert({packing.offsets[e.buffer], e.buffer});
  }
  return std::nullopt;
}

std::optional<std::string>
tmc::planning::verifyPacking(const ArenaProblem &problem,
                             const Packing &packing) {
  const std::vector<Buffer> &buffers = problem.buffers;
  if (packing.offsets.size() != buffers.size())
    return "packing places " + std::to_string(packing.offsets.size()) + " of " +
           std::to_string(buffers.size()) + " buffers";
  std::vector<int32_t> group(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &b = buffers[i];
    int64_t begin = packing.offsets[i];
    if (begin < 0 || begin % alignmentOf(problem, b))
      return "'" + b.name + "' is at misaligned offset " +
             std::to_string(begin);
    if (b.bytes > packing.arenaBytes - begin)
      return "'" + b.name + "' ends at " + std::to_string(begin + b.bytes) +
             ", past the arena of " + std::to_string(packing.arenaBytes) +
             " bytes";
    if (b.fixedOffset >= 0 && begin != b.fixedOffset)
      return "'" + b.name + "' is at " + std::to_string(begin) +
             ", not at its fixed offset " + std::to_string(b.fixedOffset);
    if (b.inside >= 0 && begin - packing.offsets[b.inside] != b.distance)
      return "'" + b.name + "' is " +
             std::to_string(begin - packing.offsets[b.inside]) +
             " bytes into '" + buffers[b.inside].name + "', not " +
             std::to_string(b.distance);
    int32_t root = int32_t(i);
    while (buffers[root].inside >= 0)
      root = buffers[root].inside;
    group[i] = root;
  }
  return findOverlap(buffers, packing, group);
}
