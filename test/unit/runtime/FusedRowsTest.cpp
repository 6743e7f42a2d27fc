//===- FusedRowsTest.cpp - rows that don't fill their vectors -------------===//
//
// A body with every kind of load and store, over rows of 1 to 70 columns,
// against a plain loop in double. Operands end where a page ends, and the next
// page can't be touched.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"

#include "runtime/cpu/Fused.h"

#include <sys/mman.h>
#include <utility>

using namespace tmc;
using namespace tmc::test;

namespace {

/// Elements of which the last one is the last of a page.
template <typename T> class AtEnd {
public:
  explicit AtEnd(int64_t count)
      : bytes_((count * sizeof(T) / 4096 + 2) * 4096) {
    char *pages =
        static_cast<char *>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(pages, MAP_FAILED);
    EXPECT_EQ(mprotect(pages + bytes_ - 4096, 4096, PROT_NONE), 0);
    pages_ = pages;
    data_ = reinterpret_cast<T *>(pages + bytes_ - 4096) - count;
  }
  ~AtEnd() { munmap(pages_, bytes_); }
  AtEnd(const AtEnd &) = delete;
  AtEnd &operator=(const AtEnd &) = delete;
  operator T *() const { return data_; }

private:
  size_t bytes_;
  char *pages_;
  T *data_;
};

constexpr int64_t kRows = 37;
constexpr int kTable = 11;

/// Everything that a body does with columns.
template <int64_t Cols> struct everything {
  static constexpr const char *name = "everything";
  static constexpr FusedShape shape{.rows = kRows,
                                    .cols = Cols,
                                    .wholeRows = true,
                                    .columnSums = 2,
                                    .totals = 1,
                                    .finish = true,
                                    .kept = 1};
  using ColumnSums = Combine<Sum, Max>;
  using Totals = Combine<Sum>;
  const float *x;
  const bf16 *h;
  const f16 *g;
  const bool *b;
  const int8_t *c8;
  const int32_t *i32;
  const int64_t *i64;
  const float *table; // [kTable]
  float *y;
  bf16 *yh, *same;
  f16 *yg;
  bool *yb;
  int8_t *y8;
  int32_t *y32;
  int64_t *y64;
  float *sums, *most, *total;

  everything(In in, Out out, const int64_t *) {
    auto from = [&](auto *&p, size_t i) {
      p = static_cast<std::remove_reference_t<decltype(p)>>(operand(in, i));
    };
    auto to = [&](auto *&p, size_t i) {
      p = static_cast<std::remove_reference_t<decltype(p)>>(result(out, i));
    };
    from(x, 0), from(h, 1), from(g, 2), from(b, 3), from(c8, 4), from(i32, 5),
        from(i64, 6), from(table, 7);
    to(y, 0), to(yh, 1), to(yg, 2), to(yb, 3), to(y8, 4), to(y32, 5),
        to(y64, 6), to(sums, 7), to(most, 8), to(total, 9), to(same, 10);
  }

  template <typename R, typename S> void row(const R &row, const S &s) const {
    const int64_t at = row.index * Cols;
    const auto reduced = row.template reduce<Sum, Max>([&](auto c) {
      const auto v = c.load(x + at);
      c.store(row.kept(0), v * 2.0f);
      return results(v, v);
    });
    const float sum = reduced[0], top = reduced[1];
    row.template add<Sum>(s.total(0), sum);
    row.each([&](auto c) {
      const auto v = c.load(row.kept(0));
      const auto wide = c.load(h + at) + c.load(g + at);
      const auto picked = c.gather(table, (c.index() * int64_t(3) + row.index) %
                                              int64_t(kTable));
      const auto one = c.loadSame(table, row.index % kTable);
      const auto isOn = c.load(b + at);
      const auto z = select(isOn, v + wide * picked, c.spread(top) - one);
      // Lanes without a column must not divide by zero.
      const auto part = c.spread(int32_t(1000)) / c.load(i32 + at);
      const auto longs = c.spread(int64_t(1000)) / c.load(i64 + at);
      c.template add<Sum>(s.column(0), z);
      c.template add<Max>(s.column(1), z);
      c.store(y + at, z);
      c.store(yh + at, z);
      c.storeRounded(same + at, c.load(h + at));
      c.store(yg + at, z);
      c.store(yb + at, asMask(z > 0.0f));
      c.store(y8 + at, c.load(c8 + at) + int32_t(1));
      c.store(y32 + at, part);
      c.store(y64 + at, longs);
    });
  }
  template <typename R, typename S>
  void finish(const R &row, const S &s) const {
    const float all = row.template total<Sum>(s, 0);
    row.each([&](auto c) {
      c.store(sums, c.template total<Sum>(s, 0));
      c.store(most, c.template total<Max>(s, 1));
    });
    row.store(total, all);
  }
};

template <int64_t Cols> void check() {
  SCOPED_TRACE(std::to_string(Cols) + " columns");
  const int64_t n = kRows * Cols;
  AtEnd<float> x(n), table(kTable), y(n), sums(Cols), most(Cols), total(1);
  AtEnd<bf16> h(n), yh(n), same(n);
  AtEnd<f16> g(n), yg(n);
  AtEnd<bool> b(n), yb(n);
  AtEnd<int8_t> c8(n), y8(n);
  AtEnd<int32_t> i32(n), y32(n);
  AtEnd<int64_t> i64(n), y64(n);
  std::mt19937 engine{unsigned(Cols)};
  std::normal_distribution<float> normal;
  for (int i = 0; i < kTable; ++i)
    table[i] = normal(engine);
  for (int64_t i = 0; i < n; ++i) {
    x[i] = normal(engine);
    h[i] = narrow<bf16>(normal(engine));
    g[i] = narrow<f16>(normal(engine));
    b[i] = engine() % 2;
    c8[i] = int8_t(engine() % 100);
    i32[i] = int32_t(engine() % 50) + 1;
    i64[i] = int64_t(engine() % 50) + 1;
  }
  using Body = everything<Cols>;
  auto device = makeDevice(1);
  constexpr FusedTiling t = tilingOf(Body::shape, Backend::Cpu);
  Buffer<unsigned char> scratch(t.scratchBytes(), 0xff);
  Fused<Body> kernel({.scratchBytes = t.scratchBytes()});
  ASSERT_TRUE(kernel.prepare(*device));
  kernel.run(device->compute(), {x, h, g, b, c8, i32, i64, table},
             {y, yh, yg, yb, y8, y32, y64, sums, most, total, same},
             scratch.get());

  std::vector<double> wantSums(Cols), wantMost(Cols, -1e30);
  double wantTotal = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    double top = -1e30;
    for (int64_t c = 0; c < Cols; ++c) {
      wantTotal += x[r * Cols + c];
      top = std::max(top, double(x[r * Cols + c]));
    }
    for (int64_t c = 0; c < Cols; ++c) {
      const int64_t i = r * Cols + c;
      const double wide = double(widen(h[i])) + widen(g[i]);
      const double z = b[i] ? 2.0 * x[i] + wide * table[(c * 3 + r) % kTable]
                            : top - table[r % kTable];
      ASSERT_NEAR(y[i], z, 1e-5) << "row " << r << " column " << c;
      ASSERT_EQ(yh[i].bits, narrow<bf16>(y[i]).bits) << i;
      ASSERT_EQ(same[i].bits, h[i].bits) << i;
      ASSERT_EQ(yg[i].bits, narrow<f16>(y[i]).bits) << i;
      ASSERT_EQ(yb[i], y[i] > 0) << i;
      ASSERT_EQ(y8[i], c8[i] + 1) << i;
      ASSERT_EQ(y32[i], 1000 / i32[i]) << i;
      ASSERT_EQ(y64[i], 1000 / i64[i]) << i;
      wantSums[c] += y[i];
      wantMost[c] = std::max(wantMost[c], double(y[i]));
    }
  }
  for (int64_t c = 0; c < Cols; ++c) {
    EXPECT_NEAR(sums[c], wantSums[c], 1e-4) << "column " << c;
    EXPECT_EQ(most[c], wantMost[c]) << "column " << c;
  }
  EXPECT_NEAR(*total, wantTotal, 1e-3);
}

template <int... I> void checkAll(std::integer_sequence<int, I...>) {
  (check<I + 1>(), ...);
}

/// The sums of rows, in the order of Row.h.
template <int64_t Cols> struct sums {
  static constexpr const char *name = "sums";
  static constexpr FusedShape shape{
      .rows = kRows, .cols = Cols, .wholeRows = true};
  const float *x;
  float *y;
  sums(In in, Out out, const int64_t *)
      : x(static_cast<const float *>(operand(in, 0))),
        y(static_cast<float *>(result(out, 0))) {}
  template <typename R, typename S> void row(const R &row, const S &) const {
    const auto reduced = row.template reduce<Sum>(
        [&](auto c) { return results(c.load(x + row.index * Cols)); });
    row.store(y + row.index, reduced[0]);
  }
};

template <int64_t Cols> void checkOrder() {
  Buffer<float> x = randomFloats(kRows * Cols, Cols), y(kRows);
  auto device = makeDevice(1);
  Fused<sums<Cols>> kernel({.scratchBytes = 0});
  kernel.run(device->compute(), {x}, {y}, nullptr);
  for (int64_t r = 0; r < kRows; ++r) {
    float lanes[64] = {};
    for (int64_t c = 0; c < Cols; ++c)
      lanes[c % 64] += x[r * Cols + c];
    for (int half = 32; half > 0; half /= 2)
      for (int i = 0; i < half; ++i)
        lanes[i] += lanes[i + half];
    EXPECT_EQ(y[r], lanes[0]) << "row " << r << " of " << Cols << " columns";
  }
}

} // namespace

TEST(FusedRows, OfAnyWidthAreThoseOfAPlainLoop) {
  checkAll(std::make_integer_sequence<int, 35>());
  check<40>();
  check<47>();
  check<63>();
  check<64>();
  check<70>();
}

TEST(FusedRows, AddUpInOneOrder) {
  checkOrder<1>();
  checkOrder<2>();
  checkOrder<3>();
  checkOrder<4>();
  checkOrder<5>();
  checkOrder<15>();
  checkOrder<16>();
  checkOrder<17>();
  checkOrder<40>();
  checkOrder<72>();
  checkOrder<127>();
}
