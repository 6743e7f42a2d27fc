//===- BatchNormTest.cpp - batch normalization against a naive one --------===//

#include "Typed.h"

#include "runtime/kernels/BatchNorm.h"

using namespace tmc;
using namespace tmc::test;

namespace {

void check(int64_t rows, int64_t channels, bool unbiased) {
  BatchNormParams p{.type = DType::F32,
                    .rows = rows,
                    .channels = channels,
                    .epsilon = 1e-5,
                    .momentum = 0.1,
                    .unbiasedRunning = unbiased,
                    .scratchBytes = 0};
  const int64_t n = rows * channels;
  Floats x = randomFloats(n, 1, 3), dy = randomFloats(n, 2);
  Floats gamma = randomFloats(channels, 3), beta = randomFloats(channels, 4);
  Floats oldMean = randomFloats(channels, 5), oldVar(channels, 2.0f);
  for (int64_t i = 0; i < n; ++i)
    x[i] += 10; // far from zero, where a one-pass variance would lose digits
  std::vector<double> y(size_t(n), 0.0), dx(size_t(n), 0.0);
  std::vector<double> mean(size_t(channels), 0.0), rstd(mean), newMean(mean),
      newVar(mean), dgamma(mean), dbeta(mean);
  for (int64_t c = 0; c < channels; ++c) {
    const size_t s = size_t(c);
    double squares = 0;
    for (int64_t r = 0; r < rows; ++r)
      mean[s] += x[r * channels + c] / double(rows);
    for (int64_t r = 0; r < rows; ++r)
      squares += std::pow(x[r * channels + c] - mean[s], 2);
    rstd[s] = 1 / std::sqrt(squares / double(rows) + 1e-5);
    newMean[s] = 0.9 * oldMean[c] + 0.1 * mean[s];
    newVar[s] = 0.9 * 2 + 0.1 * squares / double(unbiased ? rows - 1 : rows);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = r * channels + c;
      const double normal = (x[i] - mean[s]) * rstd[s];
      y[size_t(i)] = normal * gamma[c] + beta[c];
      dgamma[s] += dy[i] * normal;
      dbeta[s] += dy[i];
    }
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = r * channels + c;
      const double normal = (x[i] - mean[s]) * rstd[s];
      dx[size_t(i)] =
          gamma[c] * rstd[s] *
          (dy[i] - dbeta[s] / double(rows) - normal * dgamma[s] / double(rows));
    }
  }
  Floats gy(n), gm(channels), gi(channels), nm(channels), nv(channels);
  runKernel<BatchNorm>(1, p, {x, gamma, beta, oldMean, oldVar},
                       {gy, nm, nv, gm, gi});
  expectClose(gy.get(), y, 1e-5, "y");
  expectClose(gm.get(), mean, 1e-6, "mean");
  expectClose(gi.get(), rstd, 1e-5, "rstd");
  expectClose(nm.get(), newMean, 1e-6, "new mean");
  expectClose(nv.get(), newVar, 1e-5, "new variance");
  Floats gx(n), gg(channels), gb(channels);
  runKernel<BatchNormGrad>(1, p, {x, gamma, gm, gi, dy}, {gx, gg, gb});
  expectClose(gx.get(), dx, 2e-5, "dx");
  expectClose(gg.get(), dgamma, 1e-4, "dgamma");
  expectClose(gb.get(), dbeta, 1e-4, "dbeta");

  Floats y2(n), m2(channels), i2(channels), x2(dy), g2(gg), b2(gb);
  runKernel<BatchNorm>(2, p, {x, gamma, beta, oldMean, oldVar},
                       {y2, oldMean, oldVar, m2, i2}); // statistics in place
  EXPECT_TRUE(gy.sameBits(y2) && nm.sameBits(oldMean) && nv.sameBits(oldVar));
  runKernel<BatchNormGrad>(2, p, {x, gamma, gm, gi, x2}, {x2, g2, b2}, true);
  EXPECT_TRUE(gx.sameBits(x2)) << "over dy, with two threads";
  for (int64_t c = 0; c < channels; ++c) {
    EXPECT_EQ(g2[c], gg[c] + gg[c]);
    EXPECT_EQ(b2[c], gb[c] + gb[c]);
  }
}

} // namespace

TEST(BatchNorm, AgreesWithTheNaiveOne) {
  check(2, 1, true);
  check(50, 16, true);
  check(333, 37, true);
  check(4096, 64, false);
  check(100, 200, true);
  check(700, 264, true); // two groups of vectors on cuda
  check(2049, 8, true);  // one row in the last chunk
  check(1, 24, false);
}

// The standard deviation is 1e-4 of the mean. If row 1000 is zero, cuda's
// shift is far from the mean.
TEST(BatchNorm, KeepsTheDigitsOfAVarianceFarFromZero) {
  const int64_t rows = 3000, channels = 16;
  BatchNormParams p{.type = DType::F32,
                    .rows = rows,
                    .channels = channels,
                    .epsilon = 0,
                    .momentum = 0.1,
                    .unbiasedRunning = true,
                    .scratchBytes = 0};
  for (int64_t zero : {-1, 1000}) {
    Floats x = randomFloats(rows * channels, 1);
    Floats gamma(channels, 1.0f), beta(channels, 0.0f), old(channels, 0.0f);
    for (int64_t i = 0; i < rows * channels; ++i)
      x[i] = i / channels == zero ? 0 : x[i] + 1e4f;
    Floats y(rows * channels), newMean(channels), newVar(channels),
        mean(channels), rstd(channels);
    runKernel<BatchNorm>(1, p, {x, gamma, beta, old, old},
                         {y, newMean, newVar, mean, rstd});
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0, squares = 0;
      for (int64_t r = 0; r < rows; ++r)
        sum += x[r * channels + c];
      const double exact = sum / double(rows);
      for (int64_t r = 0; r < rows; ++r)
        squares += std::pow(x[r * channels + c] - exact, 2);
      EXPECT_NEAR(mean[c] / exact, 1, 0x1p-22) << c;
      EXPECT_NEAR(rstd[c] * std::sqrt(squares / double(rows)), 1, 2e-6) << c;
    }
  }
}

/// Vectors of channels are read whole only at multiples of 16 bytes.
TEST(BatchNorm, GivesTheSameBitsAtEveryAlignment) {
  for (DType type : {DType::F32, DType::BF16, DType::F16})
    for (auto [rows, channels] :
         {std::pair<int64_t, int64_t>{700, 264}, {1300, 64}, {5, 8}, {70, 20}})
      for (int shifted = 0; shifted < 4; ++shifted) {
        SCOPED_TRACE(std::string(nameOf(type)) + ", " + std::to_string(rows) +
                     " rows of " + std::to_string(channels) + ", " +
                     std::to_string(shifted));
        const BatchNormParams p{.type = type,
                                .rows = rows,
                                .channels = channels,
                                .epsilon = 1e-5,
                                .momentum = 0.1,
                                .unbiasedRunning = true,
                                .scratchBytes = 0};
        const int64_t n = rows * channels;
        const Floats gamma = randomFloats(channels, 3),
                     beta = randomFloats(channels, 4), old(channels, 2.0f);
        const Typed x(type, randomFloats(n, 1)), dy(type, randomFloats(n, 2));
        const Typed y(type, Floats(n)), dx(type, Floats(n));
        const Shifted x2(x), dy2(dy), y2(y), dx2(dx);
        const bool in = shifted & 1, out = shifted & 2;
        Floats mean(channels), rstd(channels), m(channels), v(channels);
        Floats mean2(channels), rstd2(channels), dgamma(channels),
            dbeta(channels), dgamma2(channels), dbeta2(channels);
        runKernel<BatchNorm>(1, p, {x, gamma, beta, old, old},
                             {y, m, v, mean, rstd});
        runKernel<BatchNorm>(1, p,
                             {in ? x2.get() : x.get(), gamma, beta, old, old},
                             {out ? y2.get() : y.get(), m, v, mean2, rstd2});
        EXPECT_TRUE(mean.sameBits(mean2) && rstd.sameBits(rstd2));
        EXPECT_TRUE(!out || y2.sameBits(y));
        runKernel<BatchNormGrad>(1, p, {x, gamma, mean, rstd, dy},
                                 {dx, dgamma, dbeta});
        runKernel<BatchNormGrad>(
            1, p, {x, gamma, mean, rstd, in ? dy2.get() : dy.get()},
            {out ? dx2.get() : dx.get(), dgamma2, dbeta2});
        EXPECT_TRUE(dgamma.sameBits(dgamma2) && dbeta.sameBits(dbeta2));
        EXPECT_TRUE(!out || dx2.sameBits(dx));
      }
}

TEST(BatchNorm, CutsAllRowsAndChannels) {
  for (int64_t rows : {1, 7, 256, 257, 12544, 802816, 3211264, 1 << 30})
    for (int64_t channels : {1, 8, 12, 64, 96, 264, 2048, 200000}) {
      BatchNormParams p{};
      p.rows = rows;
      p.channels = channels;
      const BatchNormCut c = batchNormCut(p);
      EXPECT_LE(c.across * c.lines, kBatchNormBlock);
      EXPECT_GE(c.groups * c.across * kBatchNormVector, channels);
      EXPECT_LT((c.groups - 1) * c.across * kBatchNormVector, channels);
      EXPECT_GE(c.chunks * c.rowsPerChunk, rows);
      EXPECT_LT((c.chunks - 1) * c.rowsPerChunk, rows);
      EXPECT_EQ(c.rowsPerChunk % (kBatchNormRows * c.lines), 0);
      EXPECT_LE(c.chunks * c.groups, std::max(kBatchNormBlocks, c.groups));
    }
}

// Where a mean is off by many units in the last place, the whole channel is
// shifted, and what lies near zero to the other side of a ReLU.
TEST(BatchNorm, FindsMeansToAFewUnitsInTheLastPlace) {
  const int64_t rows = 8000, channels = 16;
  BatchNormParams p{.type = DType::F32,
                    .rows = rows,
                    .channels = channels,
                    .epsilon = 1e-5,
                    .momentum = 0.1,
                    .unbiasedRunning = true,
                    .scratchBytes = 0};
  Floats x = randomFloats(rows * channels, 1, 0.5);
  Floats gamma(channels, 1.0f), beta(channels, 0.0f), old(channels, 0.0f);
  for (int64_t i = 0; i < rows * channels; ++i)
    x[i] += 1;
  Floats y(rows * channels), newMean(channels), newVar(channels),
      mean(channels), rstd(channels);
  runKernel<BatchNorm>(1, p, {x, gamma, beta, old, old},
                       {y, newMean, newVar, mean, rstd});
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r)
      sum += x[r * channels + c];
    const double unit = 0x1p-24 * 2; // of numbers from 1 to 2
    EXPECT_LT(std::fabs(mean[c] - sum / double(rows)), 1.5 * unit) << c;
  }
}

/// Narrow activations: what f32 gives of the widened ones, rounded once;
/// statistics and gradients of parameters are f32's.
TEST(BatchNorm, RoundsNarrowActivationsOnce) {
  for (DType type : {DType::BF16, DType::F16})
    for (auto [rows, channels] :
         {std::pair<int64_t, int64_t>{2, 1}, {50, 16}, {333, 37}, {1000, 64}}) {
      SCOPED_TRACE(std::string(nameOf(type)) + ", " + std::to_string(rows) +
                   " rows of " + std::to_string(channels));
      BatchNormParams wide{.type = DType::F32,
                           .rows = rows,
                           .channels = channels,
                           .epsilon = 1e-5,
                           .momentum = 0.1,
                           .unbiasedRunning = true,
                           .scratchBytes = 0};
      BatchNormParams p = wide;
      p.type = type;
      const int64_t n = rows * channels;
      Typed x(type, randomFloats(n, 1, 3)), dy(type, randomFloats(n, 2));
      Floats gamma = randomFloats(channels, 3),
             beta = randomFloats(channels, 4);
      Floats old(channels, 2.0f);
      Floats y(n), nm(channels), nv(channels), mean(channels), rstd(channels);
      Floats dx(n), dgamma(channels), dbeta(channels);
      runKernel<BatchNorm>(1, wide, {x.values, gamma, beta, old, old},
                           {y, nm, nv, mean, rstd});
      runKernel<BatchNormGrad>(1, wide,
                               {x.values, gamma, mean, rstd, dy.values},
                               {dx, dgamma, dbeta});
      for (int threads : {1, 2}) {
        Typed gotY(type, Floats(n, NAN)), gotDx = dy; // over dy
        Floats m(channels), v(channels), gm(channels), gi(channels);
        Floats gg(channels), gb(channels);
        runKernel<BatchNorm>(threads, p, {x, gamma, beta, old, old},
                             {gotY, m, v, gm, gi});
        EXPECT_TRUE(gotY.bytes.sameBits(Typed(type, y).bytes));
        EXPECT_TRUE(m.sameBits(nm) && v.sameBits(nv) && gm.sameBits(mean) &&
                    gi.sameBits(rstd));
        runKernel<BatchNormGrad>(threads, p, {x, gamma, mean, rstd, gotDx},
                                 {gotDx, gg, gb});
        EXPECT_TRUE(gotDx.bytes.sameBits(Typed(type, dx).bytes));
        EXPECT_TRUE(gg.sameBits(dgamma) && gb.sameBits(dbeta));
      }
    }
}
