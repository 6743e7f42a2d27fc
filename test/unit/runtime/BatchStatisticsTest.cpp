//===- BatchStatisticsTest.cpp - statistics of a batch, computed naively --===//

#include "Typed.h"

#include "runtime/kernels/BatchStatistics.h"

using namespace tmc;
using namespace tmc::test;

namespace {

BatchStatisticsParams paramsOf(DType type, int64_t rows, int64_t channels) {
  return {.type = type,
          .rows = rows,
          .channels = channels,
          .epsilon = 1e-5,
          .momentum = 0.1};
}

/// Results of a run; the running ones begin with `old`.
struct Results {
  Floats newMean, newVariance, mean, rstd;

  explicit Results(int64_t channels)
      : newMean(channels), newVariance(channels), mean(channels),
        rstd(channels) {}
  bool sameBits(const Results &other) const {
    return newMean.sameBits(other.newMean) &&
           newVariance.sameBits(other.newVariance) &&
           mean.sameBits(other.mean) && rstd.sameBits(other.rstd);
  }
};

void check(int64_t rows, int64_t channels) {
  SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(channels));
  const BatchStatisticsParams p = paramsOf(DType::F32, rows, channels);
  Floats x = randomFloats(rows * channels, 1, 3);
  Floats oldMean = randomFloats(channels, 5), oldVariance(channels, 2.0f);
  for (int64_t i = 0; i < rows * channels; ++i)
    x[i] += 10; // Far from zero, where one sum of squares would lose digits.
  std::vector<double> mean(size_t(channels), 0.0), rstd(mean), newMean(mean),
      newVariance(mean);
  for (int64_t c = 0; c < channels; ++c) {
    const size_t s = size_t(c);
    double squares = 0;
    for (int64_t r = 0; r < rows; ++r)
      mean[s] += x[r * channels + c] / double(rows);
    for (int64_t r = 0; r < rows; ++r)
      squares += std::pow(x[r * channels + c] - mean[s], 2);
    rstd[s] = 1 / std::sqrt(squares / double(rows) + 1e-5);
    newMean[s] = 0.9 * oldMean[c] + 0.1 * mean[s];
    newVariance[s] =
        0.9 * 2 + 0.1 * squares / double(std::max<int64_t>(rows - 1, 1));
  }
  Results got(channels);
  runKernel<BatchStatistics>(
      1, p, {x, oldMean, oldVariance},
      {got.newMean, got.newVariance, got.mean, got.rstd});
  expectClose(got.mean.get(), mean, 1e-6, "mean");
  expectClose(got.rstd.get(), rstd, 1e-5, "rstd");
  expectClose(got.newMean.get(), newMean, 1e-6, "new mean");
  expectClose(got.newVariance.get(), newVariance, 1e-5, "new variance");

  // Dropped, and in place with two threads.
  Results dropped(channels), again(channels);
  runKernel<BatchStatistics>(1, p, {x, oldMean, oldVariance},
                             {nullptr, nullptr, dropped.mean, dropped.rstd});
  EXPECT_TRUE(dropped.mean.sameBits(got.mean) &&
              dropped.rstd.sameBits(got.rstd));
  runKernel<BatchStatistics>(2, p, {x, oldMean, oldVariance},
                             {oldMean, oldVariance, again.mean, again.rstd});
  EXPECT_TRUE(oldMean.sameBits(got.newMean) &&
              oldVariance.sameBits(got.newVariance) &&
              again.mean.sameBits(got.mean) && again.rstd.sameBits(got.rstd));
}

} // namespace

TEST(BatchStatistics, AgreesWithTheNaiveOnes) {
  check(2, 1);
  check(50, 16);
  check(333, 37);
  check(4096, 64);
  check(100, 200);
  check(700, 264); // Two groups of vectors on cuda.
  check(2049, 8);  // One row in the last chunk.
  check(1, 24);
}

// The standard deviation is 1e-4 of the mean. If row 1000 is zero, the shift of
// cuda is far from the mean, and if row 0 is, that of the first chunk on cpu.
TEST(BatchStatistics, KeepsTheDigitsOfAVarianceFarFromZero) {
  const int64_t rows = 3000, channels = 16;
  BatchStatisticsParams p = paramsOf(DType::F32, rows, channels);
  p.epsilon = 0;
  for (int64_t zero : {-1, 0, 1000}) {
    Floats x = randomFloats(rows * channels, 1);
    Floats old(channels, 0.0f);
    for (int64_t i = 0; i < rows * channels; ++i)
      x[i] = i / channels == zero ? 0 : x[i] + 1e4f;
    Results got(channels);
    runKernel<BatchStatistics>(
        1, p, {x, old, old},
        {got.newMean, got.newVariance, got.mean, got.rstd});
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0, squares = 0;
      for (int64_t r = 0; r < rows; ++r)
        sum += x[r * channels + c];
      const double exact = sum / double(rows);
      for (int64_t r = 0; r < rows; ++r)
        squares += std::pow(x[r * channels + c] - exact, 2);
      EXPECT_NEAR(got.mean[c] / exact, 1, 0x1p-22) << c;
      EXPECT_NEAR(got.rstd[c] * std::sqrt(squares / double(rows)), 1, 2e-6)
          << c;
    }
  }
}

/// Vectors of channels are read whole only at multiples of 16 bytes.
TEST(BatchStatistics, GiveTheSameBitsAtEveryAlignment) {
  for (DType type : {DType::F32, DType::BF16, DType::F16})
    for (auto [rows, channels] : {std::pair<int64_t, int64_t>{700, 264},
                                  {1300, 64},
                                  {5, 8},
                                  {70, 20}}) {
      SCOPED_TRACE(std::string(nameOf(type)) + ", " + std::to_string(rows) +
                   " rows of " + std::to_string(channels));
      const BatchStatisticsParams p = paramsOf(type, rows, channels);
      const Floats old(channels, 2.0f);
      const Typed x(type, randomFloats(rows * channels, 1));
      const Shifted shifted(x);
      Results one(channels), two(channels);
      runKernel<BatchStatistics>(
          1, p, {x, old, old},
          {one.newMean, one.newVariance, one.mean, one.rstd});
      runKernel<BatchStatistics>(
          1, p, {shifted.get(), old, old},
          {two.newMean, two.newVariance, two.mean, two.rstd});
      EXPECT_TRUE(one.sameBits(two));
    }
}

TEST(BatchStatistics, CutsAllRowsAndChannels) {
  for (int64_t rows : {1, 7, 256, 257, 12544, 802816, 3211264, 1 << 30})
    for (int64_t channels : {1, 8, 12, 64, 96, 264, 2048, 200000}) {
      const StatisticsCut c =
          statisticsCut(paramsOf(DType::F32, rows, channels));
      EXPECT_LE(c.across * c.lines, kStatisticsBlock);
      EXPECT_GE(c.groups * c.across * kStatisticsVector, channels);
      EXPECT_LT((c.groups - 1) * c.across * kStatisticsVector, channels);
      EXPECT_GE(c.chunks * c.rowsPerChunk, rows);
      EXPECT_LT((c.chunks - 1) * c.rowsPerChunk, rows);
      EXPECT_EQ(c.rowsPerChunk % (kStatisticsRows * c.lines), 0);
      EXPECT_LE(c.chunks * c.groups, std::max(kStatisticsBlocks, c.groups));
    }
}

// Where a mean is off by many units in the last place, the whole channel is
// shifted, and what lies near zero to the other side of a ReLU.
TEST(BatchStatistics, FindMeansToAFewUnitsInTheLastPlace) {
  const int64_t rows = 8000, channels = 16;
  Floats x = randomFloats(rows * channels, 1, 0.5), old(channels, 0.0f);
  for (int64_t i = 0; i < rows * channels; ++i)
    x[i] += 1;
  Results got(channels);
  runKernel<BatchStatistics>(
      1, paramsOf(DType::F32, rows, channels), {x, old, old},
      {got.newMean, got.newVariance, got.mean, got.rstd});
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r)
      sum += x[r * channels + c];
    const double unit = 0x1p-24 * 2; // Of numbers from 1 to 2.
    EXPECT_LT(std::fabs(got.mean[c] - sum / double(rows)), 1.5 * unit) << c;
  }
}

/// Statistics of narrow activations are f32's of the widened ones.
TEST(BatchStatistics, WidenNarrowActivations) {
  for (DType type : {DType::BF16, DType::F16})
    for (auto [rows, channels] :
         {std::pair<int64_t, int64_t>{2, 1}, {50, 16}, {333, 37}, {1000, 64}}) {
      SCOPED_TRACE(std::string(nameOf(type)) + ", " + std::to_string(rows) +
                   " rows of " + std::to_string(channels));
      const Typed x(type, randomFloats(rows * channels, 1, 3));
      const Floats old(channels, 2.0f);
      Results wide(channels);
      runKernel<BatchStatistics>(
          1, paramsOf(DType::F32, rows, channels), {x.values, old, old},
          {wide.newMean, wide.newVariance, wide.mean, wide.rstd});
      for (int threads : {1, 2}) {
        Results got(channels);
        runKernel<BatchStatistics>(
            threads, paramsOf(type, rows, channels), {x, old, old},
            {got.newMean, got.newVariance, got.mean, got.rstd});
        EXPECT_TRUE(got.sameBits(wide));
      }
    }
}
