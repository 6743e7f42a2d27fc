#include "compiler/planning/pack/BufferGroups.h"

#include "compiler/planning/pack/Skyline.h"

#include <algorithm>
#include <numeric>
#include <tuple>

using namespace tmc::planning;

BufferGroups tmc::planning::groupBuffers(const ArenaProblem &problem) {
  const std::vector<Buffer> &buffers = problem.buffers;
  BufferGroups made;
  std::vector<int64_t> times;
  for (const Buffer &b : buffers) {
    times.push_back(b.lifetime.begin);
    times.push_back(b.lifetime.end);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  made.sections = int32_t(times.size());
  auto section = [&](int64_t t) {
    return int32_t(std::lower_bound(times.begin(), times.end(), t) -
                   times.begin());
  };
  std::vector<int32_t> groupOf(buffers.size(), -1);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &b = buffers[i];
    int32_t root = int32_t(i);
    int64_t distance = 0;
    while (buffers[root].inside >= 0) {
      distance += buffers[root].distance;
      root = buffers[root].inside;
    }
    if (groupOf[root] < 0) {
      groupOf[root] = int32_t(made.groups.size());
      made.groups.emplace_back();
    }
    BufferGroup &g = made.groups[groupOf[root]];
    made.place.push_back({groupOf[root], distance});
    int64_t alignment = b.alignment ? b.alignment : problem.alignment;
    g.alignment = std::lcm(g.alignment, alignment);
    if (b.fixedOffset >= 0)
      g.fixed = b.fixedOffset - distance;
    g.extent = std::max(g.extent, distance + b.bytes);
    int32_t first = section(b.lifetime.begin), last = section(b.lifetime.end);
    if (b.bytes > 0 && first < last) {
      g.members.push_back({distance, b.bytes, first, last});
      g.first = std::min(g.first, first);
      g.last = std::max(g.last, last);
    }
  }
  return made;
}

std::vector<int32_t> tmc::planning::pressedFirst(const BufferGroups &of) {
  const std::vector<BufferGroup> &groups = of.groups;
  std::vector<int64_t> live(size_t(of.sections) + 1, 0);
  for (const BufferGroup &g : groups)
    for (const BufferGroup::Member &m : g.members)
      live[m.first] += m.bytes, live[m.last] -= m.bytes;
  std::partial_sum(live.begin(), live.end(), live.begin());
  Skyline pressure(live.size());
  for (size_t s = 0; s < live.size(); ++s)
    pressure.raise(s, s + 1, live[s]);
  std::vector<int64_t> most(groups.size(), 0);
  for (size_t r = 0; r < groups.size(); ++r)
    if (groups[r].first < groups[r].last)
      most[r] = pressure.top(groups[r].first, groups[r].last);
  std::vector<int32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  auto key = [&](int32_t r) {
    const BufferGroup &g = groups[r];
    return std::tuple(g.fixed < 0, -most[r], g.first - g.last, -g.extent);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return key(a) < key(b); });
  return order;
}
