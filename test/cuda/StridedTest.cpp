//===- StridedTest.cpp - index arithmetic of the cuda kernels -------------===//

#include "runtime/cuda/Strided.h"
#include "runtime/cuda/Divisor.h"
#include "runtime/cuda/RadixPass.h"
#include "runtime/kernels/Embedding.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <map>
#include <random>

using namespace tmc;
using namespace tmc::cuda;

namespace {

using Shape = std::vector<int64_t>;

/// out place -> in place, element by element.
std::map<int64_t, int64_t> naive(const Shape &shape, const Shape &in,
                                 const Shape &out) {
  std::map<int64_t, int64_t> places;
  Shape index(shape.size(), 0);
  for (;;) {
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      from += index[d] * in[d];
      to += index[d] * out[d];
    }
    places[to] = from;
    size_t d = shape.size();
    while (d-- > 0 && ++index[d] == shape[d])
      index[d] = 0;
    if (d == size_t(-1))
      return places;
  }
}

std::map<int64_t, int64_t> placesOf(const Move &move) {
  std::map<int64_t, int64_t> places;
  for (int64_t i = 0; i < move.count(); ++i) {
    int64_t from, to;
    move.locate(i, from, to);
    places[to] = from;
  }
  return places;
}

/// The places of elements that a move of words of `joined` elements visits.
std::map<int64_t, int64_t> placesOf(const PreparedMove &move, int64_t count,
                                    int64_t joined) {
  std::map<int64_t, int64_t> places;
  for (int64_t i = 0; i < count; ++i) {
    int64_t from, to;
    move.locate(i, from, to);
    for (int64_t k = 0; k < joined; ++k)
      places[to * joined + k] = from * joined + k;
  }
  return places;
}

std::map<int64_t, int64_t> placesOf(const Transposition &t) {
  std::map<int64_t, int64_t> places;
  for (int64_t i = 0; i < t.rest.count(); ++i) {
    int64_t from, to;
    t.rest.locate(i, from, to);
    for (int64_t a = 0; a < t.a; ++a)
      for (int64_t b = 0; b < t.b; ++b)
        places[to + a + b * t.outStride] = from + a * t.inStride + b;
  }
  return places;
}

} // namespace

TEST(Strided, MovesArePermutations) {
  std::mt19937 engine(1);
  int transpositions = 0, merged = 0, words = 0;
  for (int round = 0; round < 300; ++round) {
    Shape shape(1 + engine() % 5), perm;
    for (int64_t &d : shape)
      d = int64_t(engine() % 3 == 0 ? 1 + engine() % 12 : 1 + engine() % 3);
    for (size_t d = 0; d < shape.size(); ++d)
      perm.push_back(int64_t(d));
    std::shuffle(perm.begin(), perm.end(), engine);
    const Shape strides = rowMajor(shape);
    Shape outShape, inStrides;
    for (int64_t d : perm) {
      outShape.push_back(shape[size_t(d)]);
      inStrides.push_back(strides[size_t(d)]);
    }
    const Shape outStrides = rowMajor(outShape);
    const auto want = naive(outShape, inStrides, outStrides);
    Move move;
    ASSERT_TRUE(makeMove(outShape, inStrides, outStrides, 0, 0, move));
    EXPECT_EQ(placesOf(move), want);
    EXPECT_EQ(placesOf(PreparedMove(move), move.count(), 1), want);
    for (int64_t join : {2, 4}) {
      Move joined;
      if (!joinElements(move, join, joined))
        continue;
      ++words;
      EXPECT_EQ(placesOf(PreparedMove(joined), joined.count(), join), want);
    }
    merged += move.rank < int(shape.size());
    Transposition t;
    if (asTransposition(move, t)) {
      ++transpositions;
      EXPECT_EQ(placesOf(t), want);
    }
  }
  EXPECT_GT(transpositions, 5);
  EXPECT_GT(merged, 50);
  EXPECT_GT(words, 50);
}

TEST(Strided, OneRunIsOneDimension) {
  Move move;
  ASSERT_TRUE(makeMove({4, 1, 3, 5}, {15, 7, 5, 1}, {15, 9, 5, 1}, 2, 3, move));
  EXPECT_EQ(move.rank, 1);
  EXPECT_EQ(move.shape[0], 60);
  int64_t from, to;
  move.locate(59, from, to);
  EXPECT_EQ(from, 61);
  EXPECT_EQ(to, 62);
}

TEST(Strided, RunsAreJoinedOnlyWhereTheyAreAligned) {
  auto joins = [](Shape shape, Shape in, Shape out, int64_t inOffset,
                  int64_t outOffset) {
    Move move, joined;
    EXPECT_TRUE(makeMove(shape, in, out, inOffset, outOffset, move));
    return joinElements(move, 4, joined);
  };
  EXPECT_TRUE(joins({3, 8}, {12, 1}, {8, 1}, 0, 0));
  EXPECT_TRUE(joins({3, 8}, {0, 1}, {8, 1}, 4, 8)); // a broadcast
  EXPECT_TRUE(joins({3, 8}, {-12, 1}, {8, 1}, 24, 0));
  EXPECT_FALSE(joins({3, 6}, {12, 1}, {8, 1}, 0, 0));
  EXPECT_FALSE(joins({3, 8}, {9, 1}, {8, 1}, 0, 0));
  EXPECT_FALSE(joins({3, 8}, {12, 1}, {10, 1}, 0, 0));
  EXPECT_FALSE(joins({3, 8}, {12, 1}, {8, 1}, 2, 0));
  EXPECT_FALSE(joins({3, 8}, {12, 1}, {8, 1}, 0, 1));
  EXPECT_FALSE(joins({3, 8}, {12, 0}, {8, 1}, 0, 0));
  EXPECT_FALSE(joins({3, 8}, {12, -1}, {8, 1}, 8, 0));
  EXPECT_FALSE(joins({3, 8}, {24, 1}, {16, 2}, 0, 0));
  EXPECT_FALSE(joins({1}, {1}, {1}, 0, 0));
}

TEST(Strided, TooManyDimensions) {
  // Alternating strides: nothing merges.
  const Shape shape(9, 2);
  Shape in, out;
  for (int d = 0; d < 9; ++d) {
    in.push_back(int64_t(1) << (8 - d));
    out.push_back(int64_t(1) << d);
  }
  Move move;
  EXPECT_FALSE(makeMove(shape, in, out, 0, 0, move));
}

TEST(Strided, PadRangeIsWhatLandsInside) {
  for (int64_t size = 1; size <= 4; ++size)
    for (int64_t outSize = 1; outSize <= 6; ++outSize)
      for (int64_t low = -7; low <= 7; ++low)
        for (int64_t step = 1; step <= 3; ++step) {
          int64_t first = -1, count = 0;
          for (int64_t i = 0; i < size; ++i) {
            const int64_t at = low + i * step;
            if (at < 0 || at >= outSize)
              continue;
            first = first < 0 ? i : first;
            ++count;
          }
          const PadRange range = padRange(size, outSize, low, step);
          EXPECT_EQ(range.count, count)
              << size << " " << outSize << " " << low << " " << step;
          EXPECT_EQ(count ? range.first : -1, first);
        }
}

TEST(Divisor, DividesAllNumbersBelowItsLimit) {
  std::mt19937 engine(1);
  for (int64_t round = 0; round < 3000; ++round) {
    const int64_t by = round < 1000
                           ? round + 1
                           : std::min(kDividends, (int64_t(1) << round % 32) +
                                                      int64_t(engine() % 3));
    const Divisor divisor(by);
    for (int64_t k = 0; k < 60; ++k) {
      const int64_t near = by * int64_t(engine() % 1000) + k % 3 - 1;
      const int64_t n = k < 3    ? k
                        : k < 6  ? kDividends - k + 2
                        : k < 30 ? int64_t(engine() >> 1)
                                 : near;
      if (n < 0 || n >= kDividends)
        continue;
      uint32_t rest;
      ASSERT_EQ(divisor.divide(uint32_t(n), rest), n / by) << n << " " << by;
      ASSERT_EQ(rest, n % by) << n << " " << by;
    }
  }
}

TEST(RadixPass, DigitsAreTheKey) {
  EXPECT_EQ(sortPasses(1), 1);
  EXPECT_EQ(sortPasses(256), 1);
  EXPECT_EQ(sortPasses(257), 2);
  EXPECT_EQ(sortPasses(50258), 2);
  EXPECT_EQ(sortPasses(1 << 16), 2);
  EXPECT_EQ(sortPasses((1 << 16) + 1), 3);
  EXPECT_EQ(sortPasses(int64_t(1) << 31), 4);
  for (int32_t key : {0, 1, 255, 256, 50257, 1 << 20, INT32_MAX})
    EXPECT_EQ(digitOf(key, 0) | digitOf(key, 1) << 8 | digitOf(key, 2) << 16 |
                  digitOf(key, 3) << 24,
              key);
}

TEST(RadixPass, ScratchIsWithinThePlannedOne) {
  for (int64_t rows : {1, 7, 2048, 2049, 100000, 1 << 20}) {
    const EmbeddingParams p{DType::F32, DType::I64, 50257, 768, rows, 0};
    EXPECT_LE(SortScratch(rows).bytes,
              EmbeddingGrad::scratchCap(p, Backend::Cuda))
        << rows;
  }
}
