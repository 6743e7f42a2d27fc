// packArena: greedy placements in several orders, then a search for a better
// order, then exact search.
//
// Greedy placement takes the groups of tied buffers in some order and gives
// each the lowest possible offset. On a problem of moderate size it looks into
// the holes between placed buffers; on a large one only at the tops, which a
// segment tree over time gives in O(log n). Lives of a training step are
// nested, so an order by long lives is nearly perfect if all values are kept.
//
// With much recomputation the arena is nearly full for most of the step, and no
// such order is good. Then each group that ends up high moves forward in the
// order by a random distance, and all are placed again (squeaky wheel
// optimization, Joslin and Clements 1999). Small groups, which always find a
// hole, are placed last.

#include "compiler/planning/model/Random.h"
#include "compiler/planning/pack/Arena.h"
#include "compiler/planning/pack/BufferGroups.h"
#include "compiler/planning/pack/PackSearch.h"
#include "compiler/planning/pack/Skyline.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace tmc::planning;

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// Counted steps, about a nanosecond each, for better orders.
constexpr int64_t kImproveWork = 20'000'000;
/// Most orders in one search; with few groups, more don't help.
constexpr int kMostOrders = 200;
/// Most groups for which better orders are always sought.
constexpr size_t kFewGroups = 4000;
/// Most groups for which holes are searched too, if tops alone lose more than 1
/// %. The cost is the square of the number. The work of one order, one step for
/// each pair, counts `kManyOrders` times.
constexpr size_t kManyGroups = 20'000;
constexpr int kManyOrders = 15;
/// Largest effort with many groups, in percent. A larger effort then has no
/// effect; another seed has.
constexpr int64_t kMostManyEffort = 200;

int64_t alignUp(int64_t value, int64_t alignment) {
  if ((alignment & (alignment - 1)) == 0)
    return (value + alignment - 1) & -alignment;
  return (value + alignment - 1) / alignment * alignment;
}

class Packer {
public:
  Packer(const ArenaProblem &problem, const PackOptions &options)
      : problem(problem), options(options), grouped(groupBuffers(problem)),
        groups(grouped.groups), place(grouped.place),
        sections(grouped.sections), lowest(peakBytes(problem)) {}

  Packing run();

private:
  /// Small groups among many cost time and fit into any hole.
  bool isSmall(const BufferGroup &group) const {
    return groups.size() > 500 && group.fixed < 0 &&
           group.extent < lowest / 1000;
  }
  /// Small groups with long lives would end up on top of all others. They go to
  /// the bottom, where they waste almost no bytes.
  bool isSediment(const BufferGroup &group) const {
    return isSmall(group) && group.last - group.first > sections / 8;
  }
  /// Where greedy placement looks for an offset.
  enum class Look : uint8_t { Tops, TightestHole, LowestHole };
  /// Greedy placement of the groups in `order`; returns the arena in bytes.
  int64_t greedy(const std::vector<int32_t> &order, Look look);
  /// Places all groups greedily; the best placement is kept.
  int64_t attempt(const std::vector<int32_t> &order, Look look) {
    int64_t arena = greedy(order, look);
    for (size_t i = 0; i < problem.buffers.size(); ++i) // Empty ones count too.
      arena = std::max(arena, lastOffsets[place[i].group] + place[i].distance +
                                  problem.buffers[i].bytes);
    keep(lastOffsets, arena);
    return arena;
  }
  /// With many groups: improves the order of `pressedFirst`.
  void improveWherePressed();
  /// Changes `order` to the best order found; returns its arena in bytes,
  /// without small groups.
  int64_t improveOrder(std::vector<int32_t> &order, int64_t amount);
  void exact();
  void keep(const std::vector<int64_t> &offsets, int64_t bytes) {
    if (bytes < best) {
      best = bytes;
      bestOffsets = offsets;
    }
  }
  /// Without a capacity, 0.1 % above the live peak is good enough.
  int64_t wanted() const {
    if (problem.capacityBytes < 0)
      return lowest + lowest / 1000;
    return std::max(lowest, problem.capacityBytes);
  }

  const ArenaProblem &problem;
  const PackOptions &options;
  const BufferGroups grouped;
  const std::vector<BufferGroup> &groups;
  const std::vector<BufferGroups::Place> &place;
  const int32_t sections;
  const int64_t lowest;
  int64_t best = kNever;
  std::vector<int64_t> bestOffsets, lastOffsets;
  int64_t work = 0;
};

int64_t Packer::greedy(const std::vector<int32_t> &order, Look look) {
  bool holes = look != Look::Tops;
  std::vector<int64_t> &offsets = lastOffsets;
  offsets.assign(groups.size(), 0);
  int64_t arena = 0;
  std::vector<std::pair<int64_t, int64_t>> forbidden;
  struct Put {
    int64_t offset, end;
    int32_t first, last;
  };
  std::vector<Put> put; // By offset.
  Skyline skyline(holes ? 1 : size_t(sections));
  for (int32_t r : order) {
    const BufferGroup &g = groups[r];
    int64_t at = std::max<int64_t>(g.fixed, 0);
    if (g.fixed < 0 && holes) {
      // Placed buffers forbid open intervals of offsets. The result is the
      // lowest aligned offset outside of them, or the one in the tightest hole.
      bool tight = look == Look::TightestHole && !isSmall(g);
      int64_t tightest = kNever, next = 0;
      at = -1;
      auto forbid = [&](int64_t lo, int64_t hi) {
        if (next <= lo && lo - next < tightest)
          at = next, tightest = lo - next;
        if (hi > next)
          next = alignUp(hi, g.alignment);
        return at < 0 || tight;
      };
      if (g.members.size() == 1) { // In offset order of `put`.
        const BufferGroup::Member &m = g.members.front();
        size_t i = 0;
        for (bool more = true; more && i < put.size(); ++i)
          if (const Put &p = put[i]; p.first < m.last && m.first < p.last)
            more = forbid(p.offset - m.distance - m.bytes, p.end - m.distance);
        work += int64_t(i);
      } else {
        work += 2 * int64_t(put.size());
        forbidden.clear();
        for (const Put &p : put)
          if (p.first < g.last && g.first < p.last)
            for (const BufferGroup::Member &m : g.members)
              if (p.first < m.last && m.first < p.last)
                forbidden.push_back(
                    {p.offset - m.distance - m.bytes, p.end - m.distance});
        std::sort(forbidden.begin(), forbidden.end());
        for (auto [lo, hi] : forbidden)
          if (!forbid(lo, hi))
            break;
      }
      if (at < 0)
        at = next;
    } else if (g.fixed < 0) {
      for (const BufferGroup::Member &m : g.members)
        at = std::max(at, skyline.top(m.first, m.last) - m.distance);
      at = alignUp(at, g.alignment);
    }
    offsets[r] = at;
    for (const BufferGroup::Member &m : g.members) {
      int64_t end = at + m.distance + m.bytes;
      arena = std::max(arena, end);
      if (holes)
        put.insert(std::upper_bound(put.begin(), put.end(), at + m.distance,
                                    [](int64_t offset, const Put &p) {
                                      return offset < p.offset;
                                    }),
                   {at + m.distance, end, m.first, m.last});
      else
        skyline.raise(m.first, m.last, end);
    }
    work += 100;
  }
  return arena;
}

int64_t Packer::improveOrder(std::vector<int32_t> &order, int64_t amount) {
  auto smallOnes =
      std::stable_partition(order.begin(), order.end(), [&](int32_t r) {
        return !isSmall(groups[r]) || isSediment(groups[r]);
      });
  std::vector<int32_t> small(smallOnes, order.end());
  std::stable_sort(small.begin(), small.end(), [&](int32_t a, int32_t b) {
    return groups[a].extent > groups[b].extent;
  });
  order.erase(smallOnes, order.end());
  std::stable_partition(order.begin(), order.end(),
                        [&](int32_t r) { return isSediment(groups[r]); });

  Random random(options.seed);
  std::vector<int32_t> mine = order; // The best order of this search.
  int64_t least = kNever;
  std::vector<double> rank(groups.size(), 0);
  int64_t end = work + amount;
  for (int i = 0; i < kMostOrders && work < end && best > wanted(); ++i) {
    int64_t arena = greedy(order, Look::LowestHole);
    if (arena <= least) {
      if (arena < least && arena < best) { // Try with the small ones.
        std::vector<int32_t> all = order;
        all.insert(all.end(), small.begin(), small.end());
        attempt(all, Look::LowestHole);
      }
      least = arena;
      mine = order;
    } else if (random.chance(0.1)) {
      order = mine;
      greedy(order, Look::LowestHole);
    }
    int64_t aim = lowest + (least - lowest) * 3 / 4;
    for (size_t i = 0; i < order.size(); ++i) {
      const BufferGroup &g = groups[order[i]];
      rank[order[i]] = double(i);
      if (g.fixed >= 0 || isSediment(g))
        rank[order[i]] = -double(order.size());
      else if (lastOffsets[order[i]] + g.extent > aim)
        rank[order[i]] -= 0.2 * double(order.size()) * random.unit();
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return rank[a] < rank[b]; });
  }
  order = std::move(mine);
  order.insert(order.end(), small.begin(), small.end());
  return least;
}

void Packer::improveWherePressed() {
  std::vector<int32_t> order = pressedFirst(grouped);
  const int64_t pairs = int64_t(groups.size()) * int64_t(groups.size()) / 2;
  improveOrder(order, pairs / 100 * kManyOrders *
                          std::min(options.effort, kMostManyEffort));
}

/// Groups of one buffer each and one alignment are boxes to search exactly.
void Packer::exact() {
  std::vector<Box> boxes;
  std::vector<int32_t> groupOf;
  int64_t alignment = 0;
  for (size_t r = 0; r < groups.size(); ++r) {
    const BufferGroup &g = groups[r];
    if (g.members.empty())
      continue;
    if (g.members.size() > 1 || g.members[0].distance || g.fixed >= 0 ||
        (alignment && g.alignment != alignment))
      return;
    alignment = g.alignment;
    boxes.push_back({alignUp(g.members[0].bytes, g.alignment) / g.alignment,
                     g.members[0].first, g.members[0].last});
    groupOf.push_back(int32_t(r));
  }
  if (boxes.empty())
    return;
  auto attempt = [&](int64_t target, int64_t amount) {
    std::vector<int64_t> offsets;
    int64_t used = amount;
    // Sizes are rounded up, so the last box may be shorter than counted.
    SearchResult result =
        searchPacking(boxes, sections, (target + alignment - 1) / alignment,
                      options.seed, used, offsets);
    work += used;
    if (result != SearchResult::Found)
      return false;
    std::vector<int64_t> all(groups.size(), 0);
    int64_t arena = 0;
    for (size_t b = 0; b < boxes.size(); ++b) {
      all[groupOf[b]] = offsets[b] * alignment;
      arena = std::max(arena,
                       all[groupOf[b]] + groups[groupOf[b]].members[0].bytes);
    }
    keep(all, arena);
    return true;
  };
  int64_t amount = 4'000'000'000 / 100 * options.effort;
  if (problem.capacityBytes >= 0) {
    attempt(wanted(), amount * 10);
    return;
  }
  // Tries the live peak, then targets halfway to the best known arena. A search
  // that doesn't end soon seldom succeeds.
  amount = std::min<int64_t>(amount, 4'000'000'000) / 256;
  int64_t floor = lowest;
  for (int i = 0; i < 4 && best > floor; ++i) {
    int64_t target = i == 0 ? floor : floor + (best - floor) / 2;
    if (!attempt(target, amount) && i > 0)
      floor = target;
  }
}

Packing Packer::run() {
  std::vector<int32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  bool small = groups.size() <= kFewGroups, holes = small;
  for (const BufferGroup &g : groups) // Fixed offsets leave holes below them.
    holes |= g.fixed >= 0;
  auto length = [&](int32_t r) {
    return double(groups[r].last) - double(groups[r].first);
  };
  auto size = [&](int32_t r) { return double(groups[r].extent); };
  auto sortBy = [&](auto key) {
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      if ((groups[a].fixed >= 0) != (groups[b].fixed >= 0))
        return groups[a].fixed >= 0;
      return key(a) > key(b);
    });
  };
  // Size, length of life, and their products; early begins.
  auto sortByKey = [&](int key) {
    sortBy([&](int32_t r) {
      return key == 0   ? size(r)
             : key == 1 ? length(r)
             : key == 2 ? length(r) * size(r)
             : key == 3 ? -double(groups[r].first)
                        : length(r) * length(r) * size(r);
    });
  };

  std::vector<int32_t> bestOrder = order;
  auto tryKey = [&](int key, Look look) {
    sortByKey(key);
    if (int64_t before = best; attempt(order, look) < before)
      bestOrder = order;
    return best <= wanted();
  };
  bool done = false;
  for (int key = 0; key < 5 && !done; ++key)
    done = tryKey(key, holes ? Look::TightestHole : Look::Tops);
  if (!done && !holes && groups.size() <= kManyGroups &&
      best > wanted() + wanted() / 100) {
    holes = true;
    for (int key : {0, 2})
      done = done || tryKey(key, Look::TightestHole);
    if (best > wanted() + wanted() / 100)
      improveWherePressed();
  }
  auto improve = [&] { // Half of the work for the best order.
    int64_t amount = kImproveWork / 100 * options.effort, least = kNever;
    for (int key = 0; key < 3 && best > wanted(); ++key) {
      sortByKey(key);
      if (int64_t arena = improveOrder(order, amount / 6); arena < least) {
        least = arena;
        bestOrder = order;
      }
    }
    if (best > wanted())
      improveOrder(bestOrder, amount / 2);
  };
  // With a capacity to meet, many groups are worth the time too.
  if (problem.capacityBytes < 0 && small)
    improve();
  if (groups.size() <= (problem.capacityBytes < 0 ? 1000 : 3000) &&
      best > wanted())
    exact();
  if (problem.capacityBytes >= 0 && small)
    improve();
  // Moves groups above the wanted size to the front, and tries again.
  Random random(options.seed);
  const int64_t manyEffort = std::min(options.effort, kMostManyEffort);
  for (int64_t i = 0; !small && i < 12 * manyEffort / 100 && best > wanted();
       ++i) {
    order = bestOrder;
    std::vector<char> high(groups.size(), 0);
    for (int32_t r : order)
      high[r] =
          groups[r].fixed < 0 &&
          (bestOffsets[r] + groups[r].extent > wanted() || random.chance(0.02));
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      auto level = [&](int32_t r) {
        return groups[r].fixed >= 0 ? 2 : int(high[r]);
      };
      return level(a) > level(b);
    });
    if (int64_t before = best;
        attempt(order, holes ? Look::TightestHole : Look::Tops) < before)
      bestOrder = order;
  }

  Packing packing{std::vector<int64_t>(problem.buffers.size(), 0), 0};
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    packing.offsets[i] = bestOffsets[place[i].group] + place[i].distance;
    packing.arenaBytes = std::max(
        packing.arenaBytes, packing.offsets[i] + problem.buffers[i].bytes);
  }
  return packing;
}

} // namespace

/// Free buffers that are alive all the time and have sizes of whole alignments:
/// in every packing they can lie at the bottom instead. Empty if an offset is
/// fixed, because then they can't.
static std::vector<char> alwaysAlive(const ArenaProblem &problem) {
  const std::vector<Buffer> &buffers = problem.buffers;
  int64_t begin = kNever, end = -kNever;
  for (const Buffer &b : buffers) {
    if (b.fixedOffset >= 0)
      return {};
    begin = std::min(begin, b.lifetime.begin);
    end = std::max(end, b.lifetime.end);
  }
  std::vector<char> always(buffers.size(), 0);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &b = buffers[i];
    int64_t alignment = b.alignment ? b.alignment : problem.alignment;
    always[i] = b.inside < 0 && b.lifetime.begin == begin &&
                b.lifetime.end == end && alignment == problem.alignment &&
                b.bytes % alignment == 0;
  }
  for (const Buffer &b : buffers)
    if (b.inside >= 0)
      always[b.inside] = 0;
  return always;
}

Packing tmc::planning::packArena(const ArenaProblem &problem,
                                 const PackOptions &options) {
  if (problem.buffers.empty())
    return {};
  std::vector<char> always = alwaysAlive(problem);
  ArenaProblem rest;
  rest.alignment = problem.alignment;
  int64_t bottom = 0;
  std::vector<int32_t> number(problem.buffers.size(), -1);
  Packing packing;
  packing.offsets.resize(problem.buffers.size());
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (!always.empty() && always[i]) {
      packing.offsets[i] = bottom;
      bottom += problem.buffers[i].bytes;
    } else {
      number[i] = int32_t(rest.buffers.size());
      rest.buffers.push_back(problem.buffers[i]);
    }
  packing.arenaBytes = bottom;
  // Alignments other than the problem's count from the true bottom.
  for (const Buffer &b : rest.buffers)
    if (b.alignment > 0 && bottom % b.alignment != 0)
      return Packer(problem, options).run();
  if (rest.buffers.empty() || bottom == 0)
    return bottom ? packing : Packer(problem, options).run();
  for (Buffer &b : rest.buffers)
    if (b.inside >= 0)
      b.inside = number[b.inside];
  if (problem.capacityBytes >= 0)
    rest.capacityBytes = std::max<int64_t>(0, problem.capacityBytes - bottom);
  Packing above = Packer(rest, options).run();
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (number[i] >= 0)
      packing.offsets[i] = bottom + above.offsets[number[i]];
  packing.arenaBytes = bottom + above.arenaBytes;
  return packing;
}
