//===- ScaledMatmulTest.cpp - products of codes of 8 bits with scales -----===//

#include "Typed.h"

#include "runtime/kernels/Matmul.h"

using namespace tmc;
using namespace tmc::test;

namespace {

/// A factor of 8 bits as it lies in memory, and its scales: a matrix of them,
/// or packed.
struct Factor {
  Typed codes;
  Floats scales, packed;
  ScaleBlock block;
  int64_t rows, columns;

  static int64_t scaleCount(int64_t batch, int64_t rows, int64_t columns,
                            ScaleBlock block) {
    return block.isWhole() ? 1
                           : batch * blocksIn(rows, block.rows) *
                                 blocksIn(columns, block.columns);
  }
  Factor(DType type, int64_t batch, int64_t rows, int64_t columns,
         ScaleBlock block, unsigned seed)
      : codes(type, randomFloats(batch * rows * columns, seed, 20)),
        scales(scaleCount(batch, rows, columns, block)),
        packed(PackedScales{rows, columns, block.rows > 1}.count()),
        block(block), rows(rows), columns(columns) {
    // Blocks have powers of two; the scale of everything is any number.
    for (int64_t i = 0; i < scales.size(); ++i)
      scales[i] =
          block.isWhole() ? 0.0123f : std::ldexp(1.0f, int(i * 7 % 12) - 9);
    if (block.columns != 128)
      return;
    const int64_t high = blocksIn(rows, block.rows),
                  wide = blocksIn(columns, 128), padded = (wide + 3) / 4 * 4;
    for (int64_t i = 0; i < high; ++i)
      for (int64_t j = 0; j < wide; ++j)
        packed[block.rows == 1 ? j * high + i : i * padded + j] =
            scales[i * wide + j];
  }
  /// Element (i, j) of matrix `b`, times its scale.
  double at(int64_t b, int64_t i, int64_t j) const {
    const double code = codes.values[(b * rows + i) * columns + j];
    if (block.isWhole())
      return code * scales[0];
    const int64_t high = (rows + block.rows - 1) / block.rows,
                  wide = (columns + block.columns - 1) / block.columns;
    return code *
           scales[(b * high + i / block.rows) * wide + j / block.columns];
  }
};

struct Case {
  int64_t batch, m, n, k;
  ScaleBlock lhs, rhs; // along rows and along k, then as it is stored
  unsigned flags;
  DType lhsType, rhsType, out;
  bool packed = false;
};

ScaleBlock stored(ScaleBlock block, bool transposed) {
  return transposed ? ScaleBlock{block.columns, block.rows} : block;
}

void check(const Case &c, unsigned seed) {
  const bool tl = c.flags & 1, tr = c.flags & 2, hasBias = c.flags & 4,
             accumulate = c.flags & 8;
  const ScaleBlock left = stored(c.lhs, tl), right = stored(c.rhs, tr);
  Matmul::Params p{.lhs = c.lhsType,
                   .rhs = c.rhsType,
                   .out = c.out,
                   .batch = c.batch,
                   .m = c.m,
                   .n = c.n,
                   .k = c.k,
                   .transposeLhs = tl,
                   .transposeRhs = tr,
                   .bias = hasBias,
                   .tf32 = false,
                   .scaled = true,
                   .lhsBlockRows = left.rows,
                   .lhsBlockColumns = left.columns,
                   .rhsBlockRows = right.rows,
                   .rhsBlockColumns = right.columns,
                   .packed = c.packed};
  ASSERT_TRUE(Matmul::takes(p, kBackend));
  const Factor a(c.lhsType, c.batch, tl ? c.k : c.m, tl ? c.m : c.k, left,
                 seed),
      b(c.rhsType, c.batch, tr ? c.n : c.k, tr ? c.k : c.n, right, seed + 1);
  const Typed bias(c.out, randomFloats(c.n, seed + 2));
  Typed one(c.out, randomFloats(c.batch * c.m * c.n, seed + 3));
  std::vector<double> want, size;
  for (int64_t s = 0; s < c.batch; ++s)
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = hasBias ? bias.values[j] : 0, most = std::abs(sum);
        if (accumulate) {
          const double before = one.values[(s * c.m + i) * c.n + j];
          sum += before;
          most += std::abs(before);
        }
        for (int64_t k = 0; k < c.k; ++k) {
          const double part = (tl ? a.at(s, k, i) : a.at(s, i, k)) *
                              (tr ? b.at(s, j, k) : b.at(s, k, j));
          sum += part;
          most += std::abs(part);
        }
        want.push_back(sum);
        size.push_back(most);
      }
  Typed two(one);
  const std::initializer_list<const void *> ins{
      a.codes, b.codes, hasBias ? bias.get() : nullptr,
      c.packed ? a.packed : a.scales, c.packed ? b.packed : b.scales};
  runKernel<Matmul>(1, p, ins, {one}, accumulate);
  runKernel<Matmul>(2, p, ins, {two}, accumulate);
  EXPECT_TRUE(one.bytes.sameBits(two.bytes)) << "threads change bits";
  one.read();
  // Hopper adds up products of codes with 13 bits behind the largest one's; a
  // product may be rounded before a bias or the old value is added, too.
  const double order = kOnCard ? 0x1p-12 : 1e-6;
  const bool roundsTwice = kOnCard && (hasBias || accumulate);
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(one.values[int64_t(i)], want[i],
                roundingOf(c.out) *
                        (roundsTwice ? size[i] : std::abs(want[i])) +
                    order * (1 + size[i]))
        << "element " << i;
}

} // namespace

// The card's products: k innermost in both factors, one scale each, rows of
// whole 16 bytes.
TEST(ScaledMatmul, MultipliesInTheOrderOfACard) {
  const int64_t shapes[][4] = {
      {1, 1, 16, 16}, {2, 15, 32, 144}, {1, 61, 48, 320}};
  unsigned seed = 1;
  for (auto &shape : shapes)
    for (DType out : {DType::F32, DType::BF16, DType::F16})
      for (auto [left, right] : {std::pair(DType::F8E4M3, DType::F8E4M3),
                                 {DType::F8E5M2, DType::F8E4M3},
                                 {DType::F8E4M3, DType::F8E5M2}})
        for (unsigned flags : {0u, 4u, 8u, 12u}) {
          if ((flags & 4) && out == DType::F32)
            continue;
          const Case c{shape[0], shape[1],  shape[2], shape[3], {},
                       {},       2 | flags, left,     right,    out};
          SCOPED_TRACE(std::to_string(shape[1]) + " x " +
                       std::to_string(shape[2]) + " x " +
                       std::to_string(shape[3]) + " in " + nameOf(out) +
                       ", flags " + std::to_string(flags));
          check(c, seed += 4);
        }
}

TEST(ScaledMatmul, MultipliesPackedBlocks) {
  if (kBackend == Backend::Cpu)
    GTEST_SKIP() << "the cpu's scales aren't packed";
  // Around a block along k, and around squares of rows of either factor.
  const int64_t shapes[][3] = {{8, 8, 16}, {24, 136, 144}, {136, 8, 640}};
  const ScaleBlock row{1, 128}, square{128, 128};
  // The second as it is read: along k first.
  const ScaleBlock pairs[][2] = {
      {row, {128, 1}}, {row, square}, {square, {128, 1}}};
  unsigned seed = 1;
  for (auto &shape : shapes)
    for (auto &pair : pairs)
      for (auto [out, flags] : {std::pair(DType::F32, 0u),
                                {DType::F32, 8u},
                                {DType::BF16, 4u},
                                {DType::BF16, 12u},
                                {DType::F16, 4u}}) {
        if (out == DType::F16 && shape[2] > 16) // It would overflow.
          continue;
        const DType left = flags & 8 ? DType::F8E5M2 : DType::F8E4M3;
        const Case c{1,       shape[0],  shape[1], shape[2],      pair[0],
                     pair[1], 2 | flags, left,     DType::F8E4M3, out,
                     true};
        SCOPED_TRACE(std::to_string(shape[0]) + " x " +
                     std::to_string(shape[1]) + " x " +
                     std::to_string(shape[2]) + " in " + nameOf(out) +
                     ", flags " + std::to_string(flags) + ", blocks " +
                     std::to_string(pair[0].rows) + " and " +
                     std::to_string(pair[1].columns));
        check(c, seed += 4);
      }
}

TEST(ScaledMatmul, SaysWhichBlocksACardMultiplies) {
  Matmul::Params p{.lhs = DType::F8E4M3,
                   .rhs = DType::F8E4M3,
                   .out = DType::BF16,
                   .batch = 1,
                   .m = 8,
                   .n = 24,
                   .k = 48,
                   .transposeLhs = false,
                   .transposeRhs = true,
                   .bias = true,
                   .tf32 = false,
                   .scaled = true,
                   .lhsBlockRows = 1,
                   .lhsBlockColumns = 128,
                   .rhsBlockRows = 128,
                   .rhsBlockColumns = 128,
                   .packed = true};
  EXPECT_TRUE(Matmul::takes(p, Backend::Cuda));
  EXPECT_FALSE(Matmul::takes(p, Backend::Cpu));
  auto takes = [&](auto change) {
    Matmul::Params q = p;
    change(q);
    return Matmul::takes(q, Backend::Cuda);
  };
  EXPECT_TRUE(takes([](auto &q) { q.rhsBlockRows = 1; }));
  EXPECT_TRUE(
      takes([](auto &q) { std::swap(q.lhsBlockRows, q.rhsBlockRows); }));
  EXPECT_FALSE(takes([](auto &q) { q.lhsBlockRows = 128; }));
  EXPECT_FALSE(takes([](auto &q) { q.lhsBlockRows = q.lhsBlockColumns = 0; }));
  EXPECT_FALSE(takes([](auto &q) { q.rhsBlockColumns = 1; }));
  EXPECT_FALSE(takes([](auto &q) { q.packed = false; }));
  EXPECT_FALSE(takes([](auto &q) { q.batch = 2; }));
  EXPECT_FALSE(takes([](auto &q) { q.m = 12; }));
  EXPECT_FALSE(takes([](auto &q) { q.k = 40; }));
  EXPECT_FALSE(takes([](auto &q) { q.n = 20; }));
  EXPECT_FALSE(takes([](auto &q) { q.transposeLhs = true; }));
  EXPECT_FALSE(takes([](auto &q) { q.transposeRhs = false; }));
}

TEST(ScaledMatmul, SaysWhichCodesACardMultiplies) {
  Matmul::Params p{.lhs = DType::F8E4M3,
                   .rhs = DType::F8E5M2,
                   .out = DType::BF16,
                   .batch = 1,
                   .m = 5,
                   .n = 24,
                   .k = 48,
                   .transposeLhs = false,
                   .transposeRhs = true,
                   .bias = true,
                   .tf32 = false,
                   .scaled = true};
  EXPECT_TRUE(Matmul::takes(p, Backend::Cuda));
  auto refuses = [&](auto change) {
    Matmul::Params q = p;
    change(q);
    EXPECT_TRUE(Matmul::takes(q, Backend::Cpu));
    return !Matmul::takes(q, Backend::Cuda);
  };
  EXPECT_TRUE(refuses([](auto &q) { q.transposeLhs = true; }));
  EXPECT_TRUE(refuses([](auto &q) { q.transposeRhs = false; }));
  EXPECT_TRUE(refuses([](auto &q) { q.lhs = DType::F8E5M2; }));
  EXPECT_TRUE(refuses([](auto &q) { q.k = 40; }));
  EXPECT_TRUE(refuses([](auto &q) { q.n = 20; }));
  EXPECT_TRUE(refuses([](auto &q) { q.out = DType::F32; }));
  EXPECT_TRUE(refuses([](auto &q) { q.lhsBlockRows = 1; }));
}

TEST(ScaledMatmul, MultipliesWhatTheCodesStandFor) {
  if (kBackend == Backend::Cuda)
    GTEST_SKIP() << "a card has fewer";
  // Around panels, the depth of the inner kernel, and the blocks in which
  // narrow results are made (294 x 2048).
  const int64_t shapes[][4] = {
      {1, 1, 1, 1}, {2, 15, 33, 130}, {1, 310, 70, 300}, {1, 9, 2090, 140}};
  const ScaleBlock all{0, 0}, row{1, 128}, square{128, 128}, column{128, 1};
  // Along k, squares, one scale; and one of each kind.
  const ScaleBlock pairs[][2] = {
      {all, all}, {row, column}, {row, square}, {square, all}, {all, column}};
  unsigned seed = 1, flags = 0;
  for (auto &shape : shapes)
    for (auto &pair : pairs)
      for (DType out : {DType::F32, DType::BF16})
        for (DType left : {DType::F8E4M3, DType::F8E5M2}) {
          const Case c{shape[0], shape[1], shape[2], shape[3],      pair[0],
                       pair[1],  flags,    left,     DType::F8E4M3, out};
          SCOPED_TRACE(std::to_string(shape[1]) + " x " +
                       std::to_string(shape[2]) + " x " +
                       std::to_string(shape[3]) + " in " + nameOf(out) +
                       ", flags " + std::to_string(flags) + ", blocks " +
                       std::to_string(pair[0].rows) + " and " +
                       std::to_string(pair[1].rows));
          check(c, seed += 4);
          flags = (flags + 5) % 16; // All come by.
        }
}

// Scales of blocks change no bit of a product but its exponent.
TEST(ScaledMatmul, PowersOfTwoAreExact) {
  if (kBackend == Backend::Cuda)
    GTEST_SKIP() << "a card has no scales of blocks";
  Matmul::Params p{.lhs = DType::F8E4M3,
                   .rhs = DType::F8E4M3,
                   .out = DType::F32,
                   .batch = 1,
                   .m = 40,
                   .n = 70,
                   .k = 300,
                   .transposeLhs = false,
                   .transposeRhs = true,
                   .bias = false,
                   .tf32 = false};
  Typed a(DType::F8E4M3, randomFloats(p.m * p.k, 1)),
      b(DType::F8E4M3, randomFloats(p.n * p.k, 2));
  Floats plain(p.m * p.n), scaled(plain);
  runKernel<Matmul>(1, p, {a, b}, {plain});
  p.scaled = true;
  p.lhsBlockRows = 1;
  p.lhsBlockColumns = p.rhsBlockRows = p.rhsBlockColumns = 128;
  Floats left(p.m * 3, 0x1p-20f), right(3, 0x1p-7f);
  runKernel<Matmul>(1, p, {a, b, nullptr, left, right}, {scaled});
  for (int64_t i = 0; i < plain.size(); ++i)
    ASSERT_EQ(scaled[i], std::ldexp(plain[i], -27)) << i;
}
