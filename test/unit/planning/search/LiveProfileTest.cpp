// Live bytes under a tree stay equal to what a plain list of them says.

#include "compiler/planning/search/LiveProfile.h"
#include "compiler/planning/model/Random.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

using Lists = std::vector<std::vector<int64_t>>;

int64_t excessOf(const std::vector<int64_t> &list, int64_t limit) {
  int64_t excess = 0;
  for (int64_t bytes : list)
    excess += std::max<int64_t>(0, bytes - limit);
  return excess;
}

void expectEqual(const LiveProfile &moments, const Lists &lists) {
  int64_t excess = 0, peak = 0;
  for (size_t b = 0; b < lists.size(); ++b) {
    ASSERT_EQ(moments.sizeOf(int32_t(b)), int32_t(lists[b].size()));
    for (size_t i = 0; i < lists[b].size(); ++i) {
      ASSERT_EQ(moments.at(int32_t(b), int32_t(i)), lists[b][i]);
      peak = std::max(peak, lists[b][i]);
    }
    excess += excessOf(lists[b], moments.limit());
  }
  ASSERT_EQ(moments.excess(), excess);
  ASSERT_EQ(moments.peak(), peak);
  for (size_t from = 0; from < lists.size(); from += 7) {
    int32_t expected = -1;
    for (size_t i = 0; i < lists.size() && expected < 0; ++i)
      if (size_t b = (from + i) % lists.size();
          excessOf(lists[b], moments.limit()) > 0)
        expected = int32_t(b);
    ASSERT_EQ(moments.blockAbove(int32_t(from)), expected);
    if (expected >= 0) {
      const std::vector<int64_t> &list = lists[expected];
      ASSERT_EQ(list[moments.worstIn(expected)],
                *std::max_element(list.begin(), list.end()));
    }
  }
}

/// Random changes around the limit, which few or many moments exceed.
void churn(int32_t blocks, int64_t limit, uint64_t seed) {
  Random random(seed);
  LiveProfile moments(blocks, limit);
  Lists lists(blocks);
  for (int32_t b = 0; b < blocks; ++b)
    for (int i = 0; i < 3; ++i) {
      lists[b].push_back(int64_t(random.below(1000)));
      moments.append(b, lists[b].back());
    }
  moments.count();
  for (int step = 0; step < 400; ++step) {
    int32_t b = int32_t(random.below(uint32_t(blocks)));
    int32_t size = int32_t(lists[b].size());
    int64_t bytes = int64_t(random.below(400)) - 200;
    uint32_t kind = random.below(10);
    if (kind == 0) {
      int32_t at = int32_t(random.below(uint32_t(size + 1)));
      int64_t live = int64_t(random.below(1200));
      moments.insert(b, at, live);
      lists[b].insert(lists[b].begin() + at, live);
    } else if (kind == 1 && size > 1) {
      int32_t at = int32_t(random.below(uint32_t(size)));
      moments.erase(b, at);
      lists[b].erase(lists[b].begin() + at);
    } else if (kind < 5) {
      int32_t begin = int32_t(random.below(uint32_t(size + 1)));
      moments.add(b, begin, size, bytes);
      for (int32_t i = begin; i < size; ++i)
        lists[b][i] += bytes;
    } else if (kind == 5 && step % 50 == 0) {
      limit += bytes;
      moments.setLimit(limit);
    } else {
      int32_t last = b + int32_t(random.below(uint32_t(blocks - b + 1)));
      moments.addToBlocks(b, last, bytes);
      for (int32_t c = b; c < last; ++c)
        for (int64_t &live : lists[c])
          live += bytes;
    }
    if (step % 10 == 0)
      expectEqual(moments, lists);
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << step;
  }
}

TEST(LiveProfile, EqualAPlainList) {
  for (int32_t blocks : {1, 2, 8, 9, 63, 64, 65, 600})
    for (int64_t limit : {400, 900, 1500}) {
      churn(blocks, limit, uint64_t(blocks));
      ASSERT_FALSE(HasFatalFailure()) << blocks << " blocks, limit " << limit;
    }
}

} // namespace
