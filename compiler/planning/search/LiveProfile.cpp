#include "compiler/planning/search/LiveProfile.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {
struct MostAndExcess {
  int64_t most, excess;
};

// The search spends a third of its time here; wide integer compares halve it.
// The sums are integers, so the result doesn't depend on the target.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
MostAndExcess
mostAndExcess(const int64_t *live, size_t n, int64_t limit) {
  int64_t most = live[0], excess = 0;
  for (size_t i = 0; i < n; ++i) {
    most = live[i] > most ? live[i] : most;
    int64_t over = live[i] - limit;
    excess += over > 0 ? over : 0;
  }
  return {most, excess};
}
} // namespace

LiveProfile::LiveProfile(int32_t blocks, int64_t limitBytes)
    : limitBytes(limitBytes), live(std::max(blocks, 1)) {
  for (int32_t n = std::max(blocks, 1);; n = (n + kFanOut - 1) / kFanOut) {
    levels.emplace_back(n);
    if (n == 1)
      break;
  }
}

void LiveProfile::count() {
  for (std::vector<Node> &nodes : levels)
    for (Node &node : nodes) { // The bound puts every node above the limit.
      node.most = std::numeric_limits<int64_t>::max() / 2;
      node.excess = 0;
    }
  refresh(levels.size() - 1, 0, 0);
}

int64_t LiveProfile::refresh(size_t level, int32_t node, int64_t above) {
  // Sums of 63 bits are enough: an overflow needs more than 2^42 bytes above
  // the limit at each of 2^21 moments.
  Node &n = levels[level][node];
  above += n.lazy;
  int64_t was = n.excess;
  if (level == 0) {
    const std::vector<int64_t> &list = live[node];
    work += int64_t(list.size());
    n.most = std::numeric_limits<int64_t>::min() / 2;
    n.excess = 0;
    if (!list.empty()) {
      auto [most, excess] =
          mostAndExcess(list.data(), list.size(), limitBytes - above);
      n.most = most + n.lazy;
      n.excess = excess;
    }
    return n.excess - was;
  }
  int32_t begin = node * kFanOut,
          end = std::min(begin + kFanOut, int32_t(levels[level - 1].size()));
  int64_t most = std::numeric_limits<int64_t>::min() / 2;
  for (int32_t c = begin; c < end; ++c) {
    n.excess += refreshIfOver(level - 1, c, above);
    most = std::max(most, levels[level - 1][c].most);
  }
  n.most = most + n.lazy;
  work += kFanOut / 2;
  return n.excess - was;
}

void LiveProfile::raise(size_t level, int32_t node, int64_t excess) {
  for (; level + 1 < levels.size(); ++level) {
    int64_t most = levels[level][node].most;
    node /= kFanOut;
    Node &above = levels[level + 1][node];
    if (excess == 0 && most + above.lazy <= above.most)
      return;
    above.most = std::max(above.most, most + above.lazy);
    above.excess += excess;
  }
}

void LiveProfile::settle(int32_t block) {
  int64_t above = levels.size() > 1 ? lazyFrom(1, block / kFanOut) : 0;
  raise(0, block, refreshIfOver(0, block, above));
}

void LiveProfile::insert(int32_t block, int32_t index, int64_t bytes) {
  Node &n = levels[0][block];
  int64_t own = bytes - lazyFrom(0, block);
  live[block].insert(live[block].begin() + index, own);
  n.most = std::max(n.most, own + n.lazy);
  settle(block);
}

void LiveProfile::erase(int32_t block, int32_t index) {
  live[block].erase(live[block].begin() + index);
  if (levels[0][block].excess > 0)
    settle(block);
}

void LiveProfile::add(int32_t block, int32_t begin, int32_t end,
                      int64_t bytes) {
  if (begin >= end)
    return;
  std::vector<int64_t> &list = live[block];
  for (int32_t i = begin; i < end; ++i)
    list[i] += bytes;
  levels[0][block].most += std::max<int64_t>(bytes, 0);
  work += 4;
  settle(block);
}

void LiveProfile::addToBlocks(int32_t first, int32_t last, int64_t bytes) {
  for (size_t level = 0; first < last; ++level) {
    bool top = level + 1 == levels.size();
    // Siblings that don't fill their parent, on the left and on the right.
    auto side = [&](int32_t begin, int32_t end) {
      if (begin >= end)
        return;
      int64_t above = top ? 0 : lazyFrom(level + 1, begin / kFanOut);
      int64_t change = 0;
      int32_t largest = begin;
      for (int32_t node = begin; node < end; ++node) {
        Node &n = levels[level][node];
        n.lazy += bytes;
        n.most += bytes;
        change += refreshIfOver(level, node, above);
        if (n.most > levels[level][largest].most)
          largest = node;
      }
      work += end - begin;
      raise(level, largest, change);
    };
    int32_t lo = top ? last : (first + kFanOut - 1) / kFanOut * kFanOut,
            hi = last / kFanOut * kFanOut;
    if (lo >= hi) {
      // Too few to fill a parent; they may lie under two.
      int32_t cut = std::clamp(lo, first, last);
      side(first, cut);
      side(cut, last);
      return;
    }
    side(first, lo);
    side(hi, last);
    first = lo / kFanOut;
    last = hi / kFanOut;
  }
}

int64_t LiveProfile::peak() const {
  int64_t peak = 0;
  for (int32_t b = 0; b < int32_t(live.size()); ++b)
    if (int64_t lazy = lazyFrom(0, b);
        levels[0][b].most - levels[0][b].lazy + lazy > peak)
      for (int64_t bytes : live[b])
        peak = std::max(peak, bytes + lazy);
  return peak;
}

int32_t LiveProfile::worstIn(int32_t block) const {
  const std::vector<int64_t> &list = live[block];
  return int32_t(std::max_element(list.begin(), list.end()) - list.begin());
}

int32_t LiveProfile::blockAbove(int32_t from) const {
  if (excess() <= 0)
    return -1;
  // Up until an excess lies to the right, then down.
  int32_t node = from;
  size_t level = 0;
  auto firstBelow = [&](size_t level, int32_t node) {
    while (level > 0) {
      --level;
      node *= kFanOut;
      while (levels[level][node].excess <= 0)
        ++node;
    }
    return node;
  };
  if (levels[0][node].excess > 0)
    return node;
  for (; level + 1 < levels.size(); ++level, node /= kFanOut) {
    int32_t end =
        std::min((node / kFanOut + 1) * kFanOut, int32_t(levels[level].size()));
    for (int32_t right = node + 1; right < end; ++right)
      if (levels[level][right].excess > 0)
        return firstBelow(level, right);
  }
  return firstBelow(level, 0); // Around the end.
}
