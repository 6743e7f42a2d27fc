// The knobs that are tried around the best of some.

#include "compiler/planning/driver/RefineKnobs.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

struct Tried {
  int count = 0;
  double time = 1e9; // The best one's.
  Knobs best = {};
};

/// A step that takes 10 at an infinite price, and less the more moves. The host
/// has room down to a price of `full`, and for plans with walks down to
/// `fullWithWalks`.
Tried tryAround(double from, double full, double fullWithWalks) {
  Tried tried;
  refineKnobs({from, 2, false}, 3, [&](const Knobs &k) {
    ++tried.count;
    if (k.price < (k.walks ? fullWithWalks : full))
      return Trial::DoesNotFit;
    const double time = 10 - 1 / k.price + double(k.pieces);
    if (time >= tried.time)
      return Trial::DoesNotGain;
    tried.time = time, tried.best = k;
    return Trial::Gains;
  });
  return tried;
}

TEST(RefineKnobs, PlansWithWalksAreComparedWhereTheHostIsFull) {
  // 0.5, 0.25 fit, 0.125 doesn't; between them 0.177 is the first one.
  const Tried tried = tryAround(1, 0.17, 0.15);
  EXPECT_TRUE(tried.best.walks);
  EXPECT_EQ(tried.best.pieces, 0);
  EXPECT_NEAR(tried.best.price, 0.162, 0.001);
}

TEST(RefineKnobs, NothingIsComparedWhereAllFits) {
  const Tried tried = tryAround(1, 0, 0);
  EXPECT_LT(tried.best.price, 0.125);
  EXPECT_EQ(tried.best.pieces, 2);
  EXPECT_FALSE(tried.best.walks);
  EXPECT_LE(tried.count, 9);
}

} // namespace
