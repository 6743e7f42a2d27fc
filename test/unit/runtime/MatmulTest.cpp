//===- MatmulTest.cpp - products against a naive one ----------------------===//

#include "Typed.h"

#include "runtime/kernels/Matmul.h"

using namespace tmc;
using namespace tmc::test;

namespace {

std::vector<double> naive(const Matmul::Params &p, const float *a,
                          const float *b, const float *bias,
                          const float *before) {
  std::vector<double> c(size_t(p.batch * p.m * p.n));
  for (int64_t s = 0; s < p.batch; ++s)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = bias ? bias[j] : 0;
        if (before)
          sum += before[(s * p.m + i) * p.n + j];
        for (int64_t k = 0; k < p.k; ++k)
          sum +=
              double(a[s * p.m * p.k +
                       (p.transposeLhs ? k * p.m + i : i * p.k + k)]) *
              b[s * p.k * p.n + (p.transposeRhs ? j * p.k + k : k * p.n + j)];
        c[size_t((s * p.m + i) * p.n + j)] = sum;
      }
  return c;
}

} // namespace

TEST(Matmul, AgreesWithTheNaiveProduct) {
  // Sizes around the panels (14 and 32), the depth of the inner kernel (256)
  // and the slabs (some 290 high; deeper and higher for a large result).
  const int64_t shapes[][4] = {
      {1, 1, 1, 1},     {1, 14, 32, 16},   {2, 15, 33, 17},
      {3, 7, 5, 3},     {1, 70, 100, 400}, {1, 1060, 40, 20},
      {1, 31, 64, 800}, {4, 64, 64, 64},   {1, 600, 40, 530}};
  unsigned seed = 1;
  for (auto &shape : shapes)
    for (int flags = 0; flags < 16; ++flags) {
      Matmul::Params p{.lhs = DType::F32,
                       .rhs = DType::F32,
                       .out = DType::F32,
                       .batch = shape[0],
                       .m = shape[1],
                       .n = shape[2],
                       .k = shape[3],
                       .transposeLhs = (flags & 1) != 0,
                       .transposeRhs = (flags & 2) != 0,
                       .bias = (flags & 4) != 0,
                       .tf32 = false,
                       .scratchBytes = 0};
      const bool accumulate = (flags & 8) != 0;
      Floats a = randomFloats(p.batch * p.m * p.k, seed++);
      Floats b = randomFloats(p.batch * p.k * p.n, seed++);
      Floats bias = randomFloats(p.n, seed++);
      Floats c = randomFloats(p.batch * p.m * p.n, seed++);
      const Floats before(c);
      runKernel<Matmul>(1, p, {a, b, p.bias ? bias.get() : nullptr}, {c},
                        accumulate);
      expectClose(c.get(),
                  naive(p, a, b, p.bias ? bias.get() : nullptr,
                        accumulate ? before.get() : nullptr),
                  2e-5 + 2e-6 * std::sqrt(double(p.k)), "c");
      Floats two(before);
      runKernel<Matmul>(2, p, {a, b, p.bias ? bias.get() : nullptr}, {two},
                        accumulate);
      EXPECT_TRUE(two.sameBits(c)) << "one thread and two differ";
    }
}

TEST(Matmul, RoundsNarrowResultsOnce) {
  // Around the blocks (294 x 2048) in which results are summed up.
  const int64_t shapes[][4] = {
      {1, 1, 1, 1}, {2, 15, 33, 17}, {1, 310, 70, 600}, {1, 30, 2090, 315}};
  const DType types[] = {DType::F32, DType::BF16, DType::F16, DType::F8E4M3,
                         DType::F8E5M2};
  unsigned seed = 1;
  int taken = 0;
  for (DType lhs : types)
    for (DType rhs : types)
      for (DType out : types) {
        const bool isSingle = lhs == DType::F32 && out == DType::F32;
        // ReadAsTest.cpp has those whose factors differ in width.
        if (isSingle || sizeOf(lhs) != sizeOf(rhs) ||
            !Matmul::takes(lhs, rhs, out, kBackend))
          continue;
        ++taken;
        for (auto &shape : shapes) {
          const unsigned flags = seed % 16;
          Matmul::Params p{.lhs = lhs,
                           .rhs = rhs,
                           .out = out,
                           .batch = shape[0],
                           .m = shape[1],
                           .n = shape[2],
                           .k = shape[3],
                           .transposeLhs = (flags & 1) != 0,
                           .transposeRhs = (flags & 2) != 0,
                           .bias = (flags & 4) != 0,
                           .tf32 = false,
                           .scratchBytes = 0};
          const bool accumulate = (flags & 8) != 0;
          SCOPED_TRACE(std::string(nameOf(lhs)) + " x " + nameOf(rhs) + " -> " +
                       nameOf(out) + ", flags " + std::to_string(flags));
          Typed a(lhs, randomFloats(p.batch * p.m * p.k, seed++));
          Typed b(rhs, randomFloats(p.batch * p.k * p.n, seed++));
          Typed bias(out, randomFloats(p.n, seed++));
          Typed c(out, randomFloats(p.batch * p.m * p.n, seed++));
          seed += seed / 5 % 3; // All flags come by.
          const std::vector<double> want =
              naive(p, a.values, b.values, p.bias ? bias.values.get() : nullptr,
                    accumulate ? c.values.get() : nullptr);
          Matmul::Params whole = p;
          whole.out = DType::F32;
          // GemmBF16Test.cpp says what order sums of bf16's numbers have.
          const bool isBF16 = lhs == DType::BF16 || isFloat8(lhs);
          if (!isBF16)
            whole.lhs = whole.rhs = DType::F32;
          Floats sums(c.values);
          if (kBackend == Backend::Cpu)
            runKernel<Matmul>(1, whole,
                              {isBF16 ? static_cast<void *>(a) : a.values.get(),
                               isBF16 ? static_cast<void *>(b) : b.values.get(),
                               bias.values},
                              {sums}, accumulate);
          Typed two(c);
          runKernel<Matmul>(1, p, {a, b, p.bias ? bias.get() : nullptr}, {c},
                            accumulate);
          runKernel<Matmul>(2, p, {a, b, p.bias ? bias.get() : nullptr}, {two},
                            accumulate);
          c.read();
          const double order = 2e-5 + 2e-6 * std::sqrt(double(p.k));
          // cuBLASLt rounds some products before it adds a bias, too.
          const double roundings = kOnCard && p.bias ? 3 : 1;
          expectClose(c.values, want, roundings * roundingOf(out) + order, "c");
          EXPECT_TRUE(two.bytes.sameBits(c.bytes)) << "threads change bits";
          if (kBackend == Backend::Cpu) {
            EXPECT_TRUE(Typed(out, sums).bytes.sameBits(c.bytes))
                << "isn't the product in f32, rounded";
          }
        }
      }
  EXPECT_GE(taken, kBackend == Backend::Cpu ? 16 : 4);
}

TEST(Matmul, ThreadsChangeNoBitOfALargeProduct) {
  Matmul::Params p{.lhs = DType::F32,
                   .rhs = DType::F32,
                   .out = DType::F32,
                   .batch = 1,
                   .m = 200,
                   .n = 1000,
                   .k = 900,
                   .transposeLhs = false,
                   .transposeRhs = true,
                   .bias = false,
                   .tf32 = false,
                   .scratchBytes = 0};
  Floats a = randomFloats(p.m * p.k, 1), b = randomFloats(p.k * p.n, 2);
  Floats one(p.m * p.n), three(p.m * p.n);
  runKernel<Matmul>(1, p, {a, b}, {one});
  runKernel<Matmul>(3, p, {a, b}, {three});
  EXPECT_TRUE(one.sameBits(three));
}

TEST(Matmul, PartsOfALargeProductHaveItsBits) {
  if (kBackend != Backend::Cpu)
    GTEST_SKIP() << "the library's own affair";
  // Slabs of a large result are deeper; the order of additions isn't theirs.
  Matmul::Params p{.lhs = DType::F32,
                   .rhs = DType::F32,
                   .out = DType::F32,
                   .batch = 1,
                   .m = 299,
                   .n = 28100,
                   .k = 530,
                   .transposeLhs = false,
                   .transposeRhs = true,
                   .bias = false,
                   .tf32 = false,
                   .scratchBytes = 0};
  ASSERT_GT(p.m * p.n, kGemmLargeResult);
  Floats a = randomFloats(p.m * p.k, 1), b = randomFloats(p.k * p.n, 2);
  Floats whole(p.m * p.n);
  runKernel<Matmul>(1, p, {a, b}, {whole});
  Floats threads(p.m * p.n);
  runKernel<Matmul>(2, p, {a, b}, {threads});
  EXPECT_TRUE(whole.sameBits(threads));
  const int64_t first = 14001, columns = 101, row = 290;
  Matmul::Params q = p;
  q.m = p.m - row;
  q.n = columns;
  Floats part(q.m * q.n);
  runKernel<Matmul>(1, q, {a.get() + row * p.k, b.get() + first * p.k}, {part});
  for (int64_t i = 0; i < q.m; ++i)
    ASSERT_EQ(std::memcmp(part.get() + i * columns,
                          whole.get() + (row + i) * p.n + first, columns * 4),
              0)
        << "row " << i;
}

TEST(Matmul, RefusesWhatItDoesNotHave) {
  EXPECT_FALSE(Matmul::takes(DType::I32, DType::I32, DType::I32, kBackend));
  if (kOnCard)
    GTEST_SKIP() << "cuBLASLt needs no workspace for a small product";
  auto device = makeDevice(1);
  Matmul::Params p{.lhs = DType::F32,
                   .rhs = DType::F32,
                   .out = DType::F32,
                   .batch = 1,
                   .m = 8,
                   .n = 8,
                   .k = 8,
                   .transposeLhs = false,
                   .transposeRhs = false,
                   .bias = false,
                   .tf32 = false,
                   .scratchBytes = 1 << 20};
  p.scratchBytes = 10;
  Matmul small(p);
  const Status status = small.prepare(*device);
  EXPECT_EQ(status.code(), Code::OverBudget);
  EXPECT_NE(status.message().find("10 were planned"), std::string::npos);
}
