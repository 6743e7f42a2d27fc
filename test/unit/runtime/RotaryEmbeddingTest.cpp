//===- RotaryEmbeddingTest.cpp - rotation against a naive one -------------===//

#include "Typed.h"

#include "runtime/kernels/RotaryEmbedding.h"

#include <array>

using namespace tmc;
using namespace tmc::test;

namespace {

int64_t countOf(const RotaryDims &rows) {
  return rows.outer * rows.middle * rows.inner;
}

int64_t at(const RotaryDims &strides, const RotaryDims &rows, int64_t row) {
  return row / rows.inner / rows.middle * strides.outer +
         row / rows.inner % rows.middle * strides.middle +
         row % rows.inner * strides.inner;
}

/// Strides of contiguous rows of `columns` elements.
RotaryDims contiguous(const RotaryDims &rows, int64_t columns) {
  return {rows.middle * rows.inner * columns, rows.inner * columns, columns};
}

/// Elements up to the last one of the last row.
int64_t extent(const RotaryDims &strides, const RotaryDims &rows,
               int64_t columns) {
  return (rows.outer - 1) * strides.outer + (rows.middle - 1) * strides.middle +
         (rows.inner - 1) * strides.inner + columns;
}

/// The rule of the header, element by element: each product and the sum of both
/// rounded to f32.
Floats naive(const RotaryEmbedding::Params &p, const float *x, const float *cos,
             const float *sin) {
  Floats y(countOf(p.rows) * p.columns);
  for (int64_t row = 0; row < countOf(p.rows); ++row) {
    const float *from = x + at(p.strides, p.rows, row);
    const int64_t angles = at(p.tableStrides, p.rows, row);
    for (int64_t c = 0; c < p.columns; ++c) {
      float &out = y[row * p.columns + c];
      out = from[c];
      if (c >= p.rotated || row % p.rows.inner >= p.heads)
        continue;
      const bool isFirst = p.interleaved ? c % 2 == 0 : c < p.rotated / 2;
      const int64_t step = p.interleaved ? 1 : p.rotated / 2;
      const int64_t other = isFirst ? c + step : c - step;
      const volatile float straight = from[c] * cos[angles + c];
      const volatile float across =
          from[other] * sin[angles + (p.transposed ? other : c)];
      out = isFirst == p.transposed ? straight + across : straight - across;
    }
  }
  return y;
}

/// The tables' rows: one for each `middle` and, if there is one, `outer`.
RotaryEmbedding::Params paramsOf(RotaryDims rows, int64_t columns,
                                 int64_t rotated) {
  RotaryEmbedding::Params p{};
  p.type = DType::F32;
  p.rows = rows;
  p.columns = columns;
  p.rotated = rotated;
  p.heads = rows.inner;
  p.strides = contiguous(rows, columns);
  p.tableStrides = {0, rotated, 0};
  return p;
}

/// Calls body with each rule: halves or neighbours, forward or adjoint.
template <typename F> void eachRule(RotaryEmbedding::Params p, F &&body) {
  for (int rule = 0; rule < 4; ++rule) {
    p.interleaved = rule & 1;
    p.transposed = rule & 2;
    body(p);
  }
}

/// Sizes of rows, and of the rotated part: whole vectors and tails of them.
constexpr std::array<int64_t, 2> kSizes[] = {
    {128, 128}, {80, 32}, {64, 16}, {20, 20}, {21, 6}, {2, 2}, {5, 0}};

} // namespace

TEST(RotaryEmbedding, RotatesEachPair) {
  for (auto [columns, rotated] : kSizes)
    eachRule(paramsOf({2, 5, 3}, columns, rotated), [&](auto p) {
      Floats x = randomFloats(30 * p.columns, 1);
      Floats cos = randomFloats(5 * p.rotated, 2),
             sin = randomFloats(5 * p.rotated, 3);
      Floats y(30 * p.columns, NAN);
      runKernel<RotaryEmbedding>(2, p, {x, cos, sin}, {y});
      EXPECT_TRUE(y.sameBits(naive(p, x, cos, sin)))
          << p.columns << " columns, " << p.rotated << " rotated, rule "
          << p.interleaved << p.transposed;
    });
}

// The result takes the operand's place, also where some heads aren't rotated.
TEST(RotaryEmbedding, RotatesInPlace) {
  for (auto [columns, rotated] : kSizes)
    for (int64_t heads : {3, 2})
      eachRule(paramsOf({2, 5, 3}, columns, rotated), [&](auto p) {
        p.heads = heads;
        Floats x = randomFloats(30 * p.columns, 1);
        Floats cos = randomFloats(5 * p.rotated, 2),
               sin = randomFloats(5 * p.rotated, 3);
        const Floats want = naive(p, x, cos, sin);
        runKernel<RotaryEmbedding>(2, p, {x, cos, sin}, {x});
        EXPECT_TRUE(x.sameBits(want))
            << p.columns << " columns, " << heads << " heads";
      });
}

// The first heads of a packed buffer are rotated, and the others copied. Tables
// may be one for each sample.
TEST(RotaryEmbedding, RotatesFirstHeads) {
  for (auto [columns, rotated] : kSizes)
    for (int64_t heads : {1, 2, 4})
      eachRule(paramsOf({2, 5, 5}, columns, rotated), [&](auto p) {
        p.heads = heads;
        p.tableStrides.outer = 5 * p.rotated;
        Floats x = randomFloats(50 * p.columns, 1);
        Floats cos = randomFloats(10 * p.rotated, 2),
               sin = randomFloats(10 * p.rotated, 3);
        Floats y(50 * p.columns, NAN);
        runKernel<RotaryEmbedding>(2, p, {x, cos, sin}, {y});
        EXPECT_TRUE(y.sameBits(naive(p, x, cos, sin)))
            << p.columns << " columns, " << heads << " heads";
      });
}

// Rows of a packed buffer, and tables of each kind: a row for each row of x,
// for each sample and time, for each head, or one for all.
TEST(RotaryEmbedding, ReadsByStrides) {
  const RotaryDims rows{2, 5, 3};
  for (int64_t gap : {8, 3})
    for (int shared = 0; shared < 8; ++shared)
      eachRule(paramsOf(rows, 32, 16), [&](auto p) {
        p.strides = {5 * (3 * 32 + gap), 3 * 32 + gap, 32};
        const RotaryDims tables{shared & 1 ? 1 : rows.outer,
                                shared & 2 ? 1 : rows.middle,
                                shared & 4 ? 1 : rows.inner};
        p.tableStrides = contiguous(tables, p.rotated);
        if (shared & 1)
          p.tableStrides.outer = 0;
        if (shared & 2)
          p.tableStrides.middle = 0;
        if (shared & 4)
          p.tableStrides.inner = 0;
        Floats x = randomFloats(extent(p.strides, rows, p.columns), 1);
        Floats cos = randomFloats(countOf(tables) * p.rotated, 2),
               sin = randomFloats(countOf(tables) * p.rotated, 3);
        Floats y(30 * p.columns, NAN);
        runKernel<RotaryEmbedding>(2, p, {x, cos, sin}, {y});
        EXPECT_TRUE(y.sameBits(naive(p, x, cos, sin)))
            << "gap " << gap << ", shared " << shared;
      });
}

// Elements of 16 bits are widened, and the result is rounded once.
TEST(RotaryEmbedding, RoundsNarrowElementsOnce) {
  for (DType type : {DType::BF16, DType::F16})
    for (auto [columns, rotated] : kSizes)
      eachRule(paramsOf({2, 5, 3}, columns, rotated), [&](auto p) {
        p.type = type;
        const Typed x(type, randomFloats(30 * p.columns, 1));
        Floats cos = randomFloats(5 * p.rotated, 2),
               sin = randomFloats(5 * p.rotated, 3);
        const Typed want(type, naive(p, x.values, cos, sin));
        Typed y(type, Floats(30 * p.columns, NAN));
        runKernel<RotaryEmbedding>(2, p, {x, cos, sin}, {y});
        EXPECT_TRUE(y.bytes.sameBits(want.bytes)) << p.columns << " columns";
        // From an odd place on, where no vector is whole.
        const Shifted from(x);
        Typed again(type, Floats(30 * p.columns, NAN));
        runKernel<RotaryEmbedding>(2, p, {from, cos, sin}, {again});
        EXPECT_TRUE(again.bytes.sameBits(want.bytes))
            << p.columns << " shifted";
      });
}

// Any number of threads gives the same bits, and many tiles are all done.
TEST(RotaryEmbedding, RotatesManyRows) {
  const auto p = paramsOf({3, 70, 4}, 64, 64);
  Floats x = randomFloats(840 * 64, 1);
  Floats cos = randomFloats(70 * 64, 2), sin = randomFloats(70 * 64, 3);
  const Floats want = naive(p, x, cos, sin);
  for (int threads : {1, 3}) {
    Floats y(840 * 64, NAN);
    runKernel<RotaryEmbedding>(threads, p, {x, cos, sin}, {y});
    EXPECT_TRUE(y.sameBits(want)) << threads << " threads";
  }
}

// No rows are no work.
TEST(RotaryEmbedding, TakesNoRows) {
  for (RotaryDims rows : {RotaryDims{0, 5, 3}, RotaryDims{2, 0, 3}}) {
    Floats none(1, 4);
    runKernel<RotaryEmbedding>(1, paramsOf(rows, 8, 8), {none, none, none},
                               {none});
    EXPECT_EQ(none[0], 4);
  }
}
