//===- FusedRowsTest.cpp - how generated kernels walk rows, emulated ------===//
//
// A row is a warp's or a block's, a thread takes four or eight columns at once,
// and sums over rows and kept values are in registers, in shared memory or in
// scratch: by the shape of the body (FusedShape.h). Each way is compared with
// sums in double, at sizes around its bounds.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"

#include "runtime/cuda/Fused.h"

#include <cmath>

using namespace tmc;

namespace {

/// As the compiler prints them: a row without its mean goes to out0; the sum,
/// the largest and the smallest of each column to out1, out2 and out3; the sum
/// of the means to out4.
template <int64_t Rows, int64_t Cols, int Sums, int Kept> struct centered {
  static constexpr const char *name = "centered";
  static constexpr FusedShape shape{.rows = Rows,
                                    .cols = Cols,
                                    .wholeRows = true,
                                    .columnSums = Sums,
                                    .totals = Sums > 0,
                                    .finish = Sums > 0,
                                    .kept = Kept};
  using ColumnSums = std::conditional_t<
      Sums == 0, Combine<>,
      std::conditional_t<Sums == 1, Combine<Sum>,
                         std::conditional_t<Sums == 3, Combine<Sum, Max, Min>,
                                            Combine<Sum, Max, Min, Sum, Sum>>>>;
  using Totals = std::conditional_t<Sums == 0, Combine<>, Combine<Sum>>;
  const bf16 *in0;
  float *out0, *out1, *out2, *out3, *out4;

  centered(In in, Out out, const int64_t *)
      : in0(static_cast<const bf16 *>(operand(in, 0))),
        out0(static_cast<float *>(result(out, 0))),
        out1(static_cast<float *>(result(out, 1))),
        out2(static_cast<float *>(result(out, 2))),
        out3(static_cast<float *>(result(out, 3))),
        out4(static_cast<float *>(result(out, 4))) {}

  template <typename R, typename S>
  TMC_HD void row(const R &row, const S &sums) const {
    auto *in0_row = in0 + row.index * Cols;
    auto *out0_row = out0 + row.index * Cols;
    const auto sum = row.template reduce<Sum>([&](auto c) {
      const auto x = c.load(in0_row);
      for (int k = 0; k < Kept; ++k)
        c.store(row.kept(k), x * float(k + 1));
      return results(x);
    });
    const float mean = sum[0] * float(1.0 / Cols);
    row.each([&](auto c) {
      auto x = c.load(in0_row);
      for (int k = 0; k < Kept; ++k)
        x = c.load(row.kept(k)) * float(1.0 / (k + 1));
      const auto y = x - c.spread(mean);
      if constexpr (Sums >= 1)
        c.template add<Sum>(sums.column(0), y);
      if constexpr (Sums >= 3) {
        c.template add<Max>(sums.column(1), y);
        c.template add<Min>(sums.column(2), y);
      }
      if constexpr (Sums >= 5) {
        c.template add<Sum>(sums.column(3), y);
        c.template add<Sum>(sums.column(4), y);
      }
      c.store(out0_row, y);
    });
    if constexpr (Sums > 0)
      row.template add<Sum>(sums.total(0), mean);
  }
  template <typename R, typename S>
  TMC_HD void finish(const R &row, const S &sums) const {
    const float all = row.template total<Sum>(sums, 0);
    row.each([&](auto c) {
      c.store(out1, c.template total<Sum>(sums, Sums >= 5 ? 4 : 0));
      if constexpr (Sums >= 3) {
        c.store(out2, c.template total<Max>(sums, 1));
        c.store(out3, c.template total<Min>(sums, 2));
      }
    });
    row.store(out4, all);
  }
};

template <int64_t Rows, int64_t Cols, int Sums, int Kept = 0> void check() {
  using Body = centered<Rows, Cols, Sums, Kept>;
  SCOPED_TRACE(std::to_string(Rows) + " x " + std::to_string(Cols) + ", " +
               std::to_string(Sums) + " sums, " + std::to_string(Kept) +
               " kept");
  auto device = test::makeDevice(1);
  constexpr FusedTiling t = tilingOf(Body::shape, Backend::Cuda);
  Fused<Body> kernel({.scratchBytes = t.scratchBytes()});
  ASSERT_TRUE(kernel.prepare(*device));
  // Multiples of 1/8: products by small whole numbers are exact.
  std::vector<double> x;
  test::Buffer<uint16_t> codes(Rows * Cols);
  for (int64_t i = 0; i < Rows * Cols; ++i) {
    x.push_back(double((i * 7919 + i / Cols * 31) % 41 - 17) / 8);
    codes[i] = narrow<bf16>(float(x.back())).bits;
  }
  test::Floats y(Rows * Cols), sum(Cols), most(Cols), least(Cols), means(1);
  test::Buffer<float> scratch(t.scratchBytes() / 4 + 16);
  kernel.run(device->compute(), {codes}, {y, sum, most, least, means},
             scratch.get());
  ASSERT_TRUE(device->synchronize());
  std::vector<double> wantSum(Cols), wantMost(Cols, -1e30),
      wantLeast(Cols, 1e30);
  double wantMeans = 0;
  for (int64_t i = 0; i < Rows; ++i) {
    double mean = 0;
    for (int64_t j = 0; j < Cols; ++j)
      mean += x[i * Cols + j] / Cols;
    wantMeans += mean;
    for (int64_t j = 0; j < Cols; ++j) {
      const double value = x[i * Cols + j] - mean;
      ASSERT_NEAR(y[i * Cols + j], value, 1e-5) << i << ", " << j;
      wantSum[j] += value;
      wantMost[j] = std::max(wantMost[j], value);
      wantLeast[j] = std::min(wantLeast[j], value);
    }
  }
  if (Sums == 0)
    return;
  for (int64_t j = 0; j < Cols; ++j) {
    ASSERT_NEAR(sum[j], wantSum[j], 1e-4 * (1 + Rows)) << "column " << j;
    if (Sums < 3)
      continue;
    ASSERT_NEAR(most[j], wantMost[j], 1e-5) << "column " << j;
    ASSERT_NEAR(least[j], wantLeast[j], 1e-5) << "column " << j;
  }
  ASSERT_NEAR(means[0], wantMeans, 1e-4 * (1 + Rows));
}

static_assert(cudaRowThreads(centered<9, 768, 3, 1>::shape) == 32 &&
              !cudaKeepsInRegisters(centered<9, 768, 3, 1>::shape) &&
              cudaLanes(centered<9, 768, 3, 1>::shape) == 8);
static_assert(cudaKeepsInRegisters(centered<9, 1024, 1, 1>::shape));
static_assert(cudaRowThreads(centered<9, 768, 5, 1>::shape) == 256);

} // namespace

TEST(CudaFusedRows, RowsOfAWarp) {
  check<3, 1, 1>();
  check<19, 7, 3>();
  check<17, 64, 1, 2>();
  check<33, 250, 3, 1>();
  check<40, 256, 1>();
  check<9, 512, 3, 2>(); // kept values in shared memory
  check<21, 513, 0, 1>();
  check<35, 768, 3, 1>();
  check<8, 1000, 1, 1>();
  check<66, 1024, 1, 1>();
}
TEST(CudaFusedRows, RowsOfABlock) {
  check<10, 768, 5, 1>();
  check<5, 1024, 3>();
  check<5, 1025, 1, 1>();
  check<9, 1600, 3, 1>();
  check<3, 2048, 1>();
  check<4, 3080, 3, 2>();
}
TEST(CudaFusedRows, OfNoSum) {
  check<1, 768, 0>();
  check<7, 1024, 0, 1>();
  check<6, 2056, 0, 1>();
}
