#include "frontends/Checked.h"

#include <gtest/gtest.h>

#include <vector>

using namespace tmc;

TEST(Checked, NumElements) {
  EXPECT_EQ(checkedNumElements(std::vector<int64_t>{}), 1);
  EXPECT_EQ(checkedNumElements(std::vector<int64_t>{4, 64, 768}), 196608);
  EXPECT_EQ(checkedNumElements(std::vector<int64_t>{4, 0}), 0);
  EXPECT_EQ(checkedNumElements(std::vector<int64_t>{4, -1}), std::nullopt);
  int64_t big = int64_t(1) << 32;
  EXPECT_EQ(checkedNumElements(std::vector<int64_t>{big, big}), std::nullopt);
  // Nothing wraps around to a plausible size, not even beside a zero.
  EXPECT_EQ(checkedNumElements(std::vector<int64_t>{0, big, big}),
            std::nullopt);
}

TEST(Checked, FitsWithin) {
  EXPECT_TRUE(fitsWithin(0, 8, 8));
  EXPECT_TRUE(fitsWithin(8, 0, 8));
  EXPECT_FALSE(fitsWithin(1, 8, 8));
  EXPECT_FALSE(fitsWithin(-1, 4, 8));
  EXPECT_FALSE(fitsWithin(4, -1, 8));
  EXPECT_FALSE(fitsWithin(INT64_MAX, INT64_MAX, 8));
}
