//===- AdafactorTest.cpp - Adafactor against PyTorch's formulas -----------===//

#include "UpdateTesting.h"

#include "runtime/kernels/Adafactor.h"

using namespace tmc;
using namespace tmc::test;

namespace {

Adafactor::Params adafactorParams(int64_t batch, int64_t rows,
                                  int64_t columns) {
  return {.param = DType::F32,
          .grad = DType::F32,
          .count = rows ? batch * rows * columns : batch,
          .batch = batch,
          .rows = rows,
          .columns = columns,
          .beta2Decay = -0.8,
          .eps1 = 1.1920928955078125e-7,
          .eps2 = 1e-3,
          .d = 1,
          .weightDecay = 0.1,
          .stream = 5,
          .scratchBytes = 0};
}

double rms(const std::vector<double> &x) {
  double sum = 0;
  for (double value : x)
    sum += value * value;
  return std::sqrt(sum / double(x.size()));
}

/// torch.optim.Adafactor, in double, as its documentation and its loop over
/// single tensors say.
struct Model {
  Adafactor::Params q;
  std::vector<double> p, row, column, variance;

  Model(const Adafactor::Params &q, const test::Floats &from)
      : q(q), p(from.get(), from.get() + q.count),
        row(size_t(q.batch * q.rows)), column(size_t(q.batch * q.columns)),
        variance(q.rows ? 0 : size_t(q.count)) {}

  void step(const test::Floats &grad, double clip, double lr, int64_t t) {
    const double oneMinusBeta2 = std::pow(double(t), q.beta2Decay);
    const double rho = std::min(lr, 1 / std::sqrt(double(t)));
    const double alpha = std::max(q.eps2, rms(p)) * rho;
    for (double &x : p)
      x *= 1 - lr * q.weightDecay;
    std::vector<double> update(p.size());
    for (size_t i = 0; i < p.size(); ++i)
      update[i] = grad[int64_t(i)] * clip;
    for (int64_t b = 0; q.rows && b < q.batch; ++b)
      matrix(update.data() + b * q.rows * q.columns, row.data() + b * q.rows,
             column.data() + b * q.columns, oneMinusBeta2);
    for (size_t i = 0; i < variance.size(); ++i) {
      variance[i] += oneMinusBeta2 * (update[i] * update[i] - variance[i]);
      update[i] /= std::sqrt(std::max(variance[i], q.eps1 * q.eps1));
    }
    const double denominator = std::max(1.0, rms(update) / q.d);
    for (size_t i = 0; i < p.size(); ++i)
      p[i] -= alpha / denominator * update[i];
  }

private:
  /// Gradients become updates.
  void matrix(double *grad, double *rowVar, double *colVar, double weight) {
    for (int64_t r = 0; r < q.rows; ++r) {
      double mean = 0;
      for (int64_t c = 0; c < q.columns; ++c)
        mean += std::pow(grad[r * q.columns + c], 2) / double(q.columns);
      rowVar[r] += weight * (mean - rowVar[r]);
    }
    for (int64_t c = 0; c < q.columns; ++c) {
      double mean = 0;
      for (int64_t r = 0; r < q.rows; ++r)
        mean += std::pow(grad[r * q.columns + c], 2) / double(q.rows);
      colVar[c] += weight * (mean - colVar[c]);
    }
    double mean = 0;
    for (int64_t r = 0; r < q.rows; ++r)
      mean += rowVar[r] / double(q.rows);
    for (int64_t r = 0; r < q.rows; ++r)
      for (int64_t c = 0; c < q.columns; ++c) {
        const double v = rowVar[r] * colVar[c] / std::max(mean, q.eps1);
        grad[r * q.columns + c] /= std::sqrt(std::max(v, q.eps1 * q.eps1));
      }
  }
};

/// Some steps on one and on two threads, and the model's. `size`: of gradients.
void checkShape(int64_t batch, int64_t rows, int64_t columns, float size) {
  SCOPED_TRACE(std::to_string(batch) + " x " + std::to_string(rows) + " x " +
               std::to_string(columns));
  const Adafactor::Params q = adafactorParams(batch, rows, columns);
  test::Floats p = randomFloats(q.count, 1), p2(p);
  const int64_t firsts = rows ? batch * rows : q.count;
  const int64_t seconds = rows ? batch * columns : 1;
  test::Floats first(firsts), second(seconds), first2(first), second2(second);
  Model model(q, p);
  for (int64_t t = 1; t <= 5; ++t) {
    test::Floats g = randomFloats(q.count, unsigned(10 + t));
    for (int64_t i = 0; i < q.count; ++i)
      g[i] *= size * float(1 + i % 7); // Rows and columns differ.
    const float lr = 0.02f * float(t), clip = 0.5f;
    model.step(g, clip, lr, t);
    float squares = 0, squares2 = 0;
    runKernel<Adafactor>(
        1, q, {p, g, first, rows ? second.get() : nullptr, &lr, &t, &clip},
        {p, first, rows ? second.get() : nullptr, &squares});
    runKernel<Adafactor>(
        2, q, {p2, g, first2, rows ? second2.get() : nullptr, &lr, &t, &clip},
        {p2, first2, rows ? second2.get() : nullptr, &squares2});
    EXPECT_EQ(squares, squares2);
    double want = 0;
    for (int64_t i = 0; i < q.count; ++i)
      want += double(g[i]) * g[i];
    EXPECT_NEAR(squares, want, 1e-5 * want);
  }
  expectClose(p.get(), model.p, 1e-5, "p");
  // Of the moments' own size: those of small gradients are tiny.
  const auto expectMoments = [](const test::Floats &got,
                                const std::vector<double> &want) {
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[int64_t(i)], want[i], 1e-5 * want[i]) << i;
  };
  expectMoments(first, rows ? model.row : model.variance);
  if (rows)
    expectMoments(second, model.column);
  EXPECT_TRUE(p.sameBits(p2) && first.sameBits(first2) &&
              second.sameBits(second2));
}

/// A narrow parameter is f32's, rounded.
template <typename Grad> void checkNarrow(int64_t rows, int64_t columns) {
  Adafactor::Params wide =
      adafactorParams(rows ? 1 : columns, rows, rows ? columns : 0);
  const int64_t count = wide.count;
  wide.grad = typeOf<Grad>;
  Adafactor::Params params = wide;
  params.param = DType::BF16;
  Buffer<bf16> p(count);
  Buffer<Grad> g(count);
  test::Floats from = randomFloats(count, 1), grads = randomFloats(count, 2);
  for (int64_t i = 0; i < count; ++i) {
    storeLanes<1>(p.get() + i, from[i]);
    storeLanes<1>(g.get() + i, grads[i]);
  }
  test::Floats wp = widened(p), first(rows ? rows : count), second(columns);
  test::Floats wideFirst(first), wideSecond(second);
  const float lr = 0.01f;
  const int64_t t = 3;
  runKernel<Adafactor>(1, wide,
                       {wp, g, wideFirst, wideSecond, &lr, &t, nullptr},
                       {wp, wideFirst, wideSecond});
  runKernel<Adafactor>(2, params, {p, g, first, second, &lr, &t, nullptr},
                       {p, first, second});
  expectKept(p, wp, params.stream, t, 0);
  EXPECT_TRUE(first.sameBits(wideFirst) && second.sameBits(wideSecond));
}

template <typename Copy> void checkCopies(int64_t rows, int64_t columns) {
  Adafactor::Params params =
      adafactorParams(rows ? 1 : columns, rows, rows ? columns : 0);
  const float lr = 0.01f;
  test::Floats g = randomFloats(params.count, 2);
  g[7] = NAN;
  g[8] = 1e30f;
  checkCopy<Copy>(
      [&](DType type, int64_t t, test::Floats &p, auto &copy) {
        params.copy = type;
        test::Floats first(rows ? rows : columns, 1.0f), second(columns, 1.0f);
        float squares;
        runKernel<Adafactor>(2, params, {p, g, first, second, &lr, &t, nullptr},
                             {p, first, second, &squares, copy});
      },
      params.count);
}

} // namespace

TEST(Adafactor, FollowsPyTorchWithRowsAndColumns) {
  checkShape(1, 300, 257, 1); // more than one tile, ragged ends
  checkShape(1, 67, 1100, 1); // long rows
  checkShape(1, 7001, 1, 1);  // rows of one element, more than lanes add up
  checkShape(1, 1, 70000, 1); // one row
  checkShape(700, 3, 5, 1);   // filters
  checkShape(9, 70, 70, 1);   // matrices of several rows' tiles
  checkShape(2000, 1, 1, 1);  // filters of one pixel
}

TEST(Adafactor, FollowsPyTorchWithAMomentForEachElement) {
  checkShape(70001, 0, 0, 1); // more than one part, a ragged end
  checkShape(1, 0, 0, 1);
  checkShape(77, 0, 0, 1);
}

/// Where eps1 and its square decide: gradients of 1e-4 to 1e-9.
TEST(Adafactor, HasTheFloorsOfPyTorch) {
  for (float size : {1e-4f, 1e-6f, 1e-9f}) {
    checkShape(1, 30, 57, size);
    checkShape(40, 3, 3, size);
    checkShape(177, 0, 0, size);
  }
}

/// A parameter of zeros moves by eps2 times the rate, and an update's size is
/// bounded by d.
TEST(Adafactor, MovesZerosAndClipsUpdates) {
  Adafactor::Params q = adafactorParams(4, 0, 0);
  test::Floats p(4), g(4, 2.0f), v(4);
  const float lr = 0.5f;
  int64_t t = 1;
  runKernel<Adafactor>(1, q, {p, g, v, nullptr, &lr, &t}, {p, v});
  for (int i = 0; i < 4; ++i)
    EXPECT_FLOAT_EQ(p[i], -1e-3f * 0.5f);
  // v is 4 after the first step. Of a gradient of 200 w is 2^-0.8, so that v is
  // 22978 and the update 1.32, which d clips to 1.
  t = 2;
  for (int i = 0; i < 4; ++i)
    p[i] = 1, g[i] = 200;
  q.weightDecay = 0;
  runKernel<Adafactor>(1, q, {p, g, v, nullptr, &lr, &t}, {p, v});
  EXPECT_FLOAT_EQ(p[0], 1 - 0.5f);
}

TEST(Adafactor, LeavesAllAtStep0) {
  const Adafactor::Params q = adafactorParams(1, 10, 20);
  test::Floats p = randomFloats(200, 1), g = randomFloats(200, 2), before(p);
  test::Floats first(10, 3.0f), second(20, 4.0f);
  const float lr = 0.1f;
  const int64_t t = 0;
  float squares = 0;
  runKernel<Adafactor>(1, q, {p, g, first, second, &lr, &t},
                       {p, first, second, &squares});
  EXPECT_GT(squares, 0);
  EXPECT_TRUE(p.sameBits(before));
  EXPECT_EQ(first[9], 3.0f);
  EXPECT_EQ(second[19], 4.0f);
}

TEST(Adafactor, KeepsParametersRoundedByChance) {
  checkNarrow<float>(257, 300);
  checkNarrow<bf16>(0, 66001);
  checkNarrow<f16>(3, 22001);
}

TEST(Adafactor, CopiesParametersAsCastsRound) {
  checkCopies<bf16>(257, 301);
  checkCopies<f16>(0, 66001);
}
