//===- QuantizeTest.cpp - codes of 8 bits against a table of all ----------===//
//
// The model knows the formats by a list of their finite numbers, and finds the
// nearest one by trying all.
//
//===----------------------------------------------------------------------===//

#include "Typed.h"

#include "runtime/kernels/Quantize.h"

using namespace tmc;
using namespace tmc::test;

namespace {

/// The finite values of the codes from 0 on, in order: code i is values[i].
std::vector<double> positiveValues(DType type) {
  const int mantissa = type == DType::F8E4M3 ? 3 : 2;
  const int bias = type == DType::F8E4M3 ? 7 : 15;
  const int count = type == DType::F8E4M3 ? 127 : 124;
  std::vector<double> values;
  for (int code = 0; code < count; ++code) {
    const int exponent = code >> mantissa, part = code & ((1 << mantissa) - 1);
    values.push_back(exponent == 0 ? std::ldexp(part, 1 - bias - mantissa)
                                   : std::ldexp((1 << mantissa) + part,
                                                exponent - bias - mantissa));
  }
  return values;
}

/// The code of `x`: the nearest number's, the even one of two.
int nearestCode(const std::vector<double> &values, double x) {
  const double size = std::abs(x);
  int best = 0;
  for (int code = 1; code < int(values.size()); ++code) {
    const double now = std::abs(values[size_t(code)] - size),
                 before = std::abs(values[size_t(best)] - size);
    if (now < before || (now == before && code % 2 == 0))
      best = code;
  }
  return std::signbit(x) ? best | 0x80 : best;
}

struct Model {
  std::vector<int> codes;
  std::vector<float> scales;
};

Model plain(const Quantize::Params &p, const float *x) {
  const std::vector<double> values = positiveValues(p.codes);
  const double most = values.back();
  const bool whole = p.blockRows == 0;
  const int64_t blockRows = whole ? p.rows : p.blockRows,
                blockColumns = whole ? p.columns : p.blockColumns;
  const int64_t high = (p.rows + blockRows - 1) / blockRows,
                wide = (p.columns + blockColumns - 1) / blockColumns;
  auto scaleIndex = [&](int64_t i) {
    const int64_t row = i / p.columns % p.rows, matrix = i / p.columns / p.rows;
    return whole ? 0
                 : (matrix * high + row / blockRows) * wide +
                       i % p.columns / blockColumns;
  };
  Model m;
  std::vector<double> amax(size_t(whole ? 1 : p.batch * high * wide), 0);
  for (int64_t i = 0; i < p.elements(); ++i) {
    double &most = amax[size_t(scaleIndex(i))];
    most = std::max(most, std::abs(double(x[i])));
  }
  for (double top : amax) {
    double scale =
        whole ? float(top / most) : std::exp2(std::ceil(std::log2(top / most)));
    if (scale < 0x1p-126)
      scale = 0x1p-126;
    m.scales.push_back(top == 0 ? 1 : float(scale));
  }
  for (int64_t i = 0; i < p.elements(); ++i) {
    const float factor = 1 / m.scales[size_t(scaleIndex(i))];
    m.codes.push_back(nearestCode(values, x[i] * factor));
  }
  return m;
}

void expectTurned(const Quantize::Params &p, const Buffer<unsigned char> &codes,
                  const Buffer<unsigned char> &turned) {
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t i = 0; i < p.rows; ++i)
      for (int64_t j = 0; j < p.columns; ++j)
        ASSERT_EQ(turned[(b * p.columns + j) * p.rows + i],
                  codes[(b * p.rows + i) * p.columns + j])
            << b << ", " << i << ", " << j;
}

/// Runs the kernel with one thread and with three, and compares both with the
/// model.
void check(Quantize::Params p, const Floats &exact) {
  Typed x(p.in, exact);
  const Model want = plain(p, x.values);
  Buffer<unsigned char> codes(p.elements()), again(p.elements());
  Floats scales(int64_t(want.scales.size())), two(scales);
  runKernel<Quantize>(1, p, {x}, {codes, scales});
  runKernel<Quantize>(3, p, {x}, {again, two});
  EXPECT_TRUE(codes.sameBits(again) && scales.sameBits(two))
      << "threads change bits";
  for (size_t i = 0; i < want.scales.size(); ++i)
    ASSERT_EQ(scales[int64_t(i)], want.scales[i]) << "scale " << i;
  for (int64_t i = 0; i < p.elements(); ++i)
    ASSERT_EQ(int(codes[i]), want.codes[size_t(i)])
        << "code of " << x.values[i] << " at " << i;
  if (kBackend == Backend::Cpu)
    return;
  p.turned = true;
  Buffer<unsigned char> turned(p.elements());
  runKernel<Quantize>(1, p, {x}, {again, two, turned});
  EXPECT_TRUE(codes.sameBits(again) && scales.sameBits(two));
  expectTurned(p, codes, turned);
}

/// What the other backend has: scales of blocks that lie as a matrix.
bool has(ScaleBlock block) {
  return kBackend == Backend::Cpu || block.isWhole();
}

/// A matrix turned.
Floats turnedOf(const Floats &x, int64_t rows, int64_t columns) {
  Floats turned(x.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      turned[j * rows + i] = x[i * columns + j];
  return turned;
}

/// Codes and packed scales of a matrix that the kernel made.
struct Packed {
  Buffer<unsigned char> codes;
  Floats scales;

  /// Starts as garbage.
  explicit Packed(const PackedScales &place)
      : codes(place.rows * place.columns, 0x55), scales(place.count(), -7.0f) {}
};

/// Compares with the model of the matrix x; the layout of the scales is written
/// out here once more.
void expectPacked(const Packed &got, const Quantize::Params &p,
                  const float *x) {
  const Model want = plain(p, x);
  for (int64_t i = 0; i < p.elements(); ++i)
    ASSERT_EQ(int(got.codes[i]), want.codes[size_t(i)])
        << "code of " << x[i] << " at " << i;
  const int64_t wide = (p.columns + 127) / 128;
  std::vector<float> scales(size_t(got.scales.size()));
  const bool areSquares = p.blockRows == 128;
  const int64_t high = areSquares ? (p.rows + 127) / 128 : p.rows;
  const int64_t padded = (wide + 3) / 4 * 4;
  ASSERT_EQ(got.scales.size(), areSquares ? high * padded : high * wide);
  for (int64_t i = 0; i < high; ++i)
    for (int64_t j = 0; j < wide; ++j)
      scales[size_t(areSquares ? i * padded + j : j * high + i)] =
          want.scales[size_t(i * wide + j)];
  for (int64_t i = 0; i < got.scales.size(); ++i)
    ASSERT_EQ(got.scales[i], scales[size_t(i)]) << "scale " << i;
}

/// Quantizes the matrix in packed blocks: in both orders, and in each alone.
void checkPacked(Quantize::Params p, const Floats &exact) {
  p.packed = true;
  ASSERT_TRUE(Quantize::takes(p, kBackend));
  const Typed x(p.in, exact);
  const bool areSquares = p.blockRows == kScaleBlock;
  const PackedScales place{p.rows, p.columns, areSquares},
      turnedPlace{p.columns, p.rows, areSquares};
  Packed straight(place), turned(turnedPlace);
  runKernel<Quantize>(
      1, p, {x},
      {straight.codes, straight.scales, turned.codes, turned.scales});
  expectPacked(straight, p, x.values);
  Quantize::Params q = p;
  std::swap(q.rows, q.columns);
  expectPacked(turned, q, turnedOf(x.values, p.rows, p.columns));

  Packed alone(place), turnedAlone(turnedPlace);
  runKernel<Quantize>(1, p, {x}, {alone.codes, alone.scales});
  EXPECT_TRUE(alone.codes.sameBits(straight.codes) &&
              alone.scales.sameBits(straight.scales));
  runKernel<Quantize>(
      1, p, {x}, {nullptr, nullptr, turnedAlone.codes, turnedAlone.scales});
  EXPECT_TRUE(turnedAlone.codes.sameBits(turned.codes) &&
              turnedAlone.scales.sameBits(turned.scales));
}

} // namespace

TEST(Quantize, PacksBlocksInBothOrders) {
  if (kBackend == Backend::Cpu)
    GTEST_SKIP() << "the cpu's scales aren't packed";
  // One square in part, around a square, and five squares in a row.
  const int64_t shapes[][2] = {{8, 8},     {24, 200}, {128, 128},
                               {136, 264}, {16, 640}, {520, 40}};
  unsigned seed = 1;
  for (DType in : {DType::F32, DType::BF16, DType::F16})
    for (DType codes : {DType::F8E4M3, DType::F8E5M2})
      for (auto &shape : shapes)
        for (int64_t high : {1, 128}) {
          SCOPED_TRACE(std::string(nameOf(in)) + " as " + nameOf(codes) + ", " +
                       std::to_string(shape[0]) + " x " +
                       std::to_string(shape[1]) + " by " +
                       std::to_string(high) + " x 128");
          Floats x = randomFloats(shape[0] * shape[1], seed++, 0.3f);
          for (int64_t i = 0; i < x.size(); i += 7) // Some are subnormal.
            x[i] *= i % 2 ? 1e-3f : 1e-5f;
          checkPacked({in, codes, 1, shape[0], shape[1], high, 128}, x);
        }
}

// The largest of a block may be any of its elements.
TEST(Quantize, FindsTheLargestOfABlockAnywhere) {
  if (kBackend == Backend::Cpu)
    GTEST_SKIP() << "the cpu's scales aren't packed";
  const int64_t rows = 136, columns = 136;
  Floats x = randomFloats(rows * columns, 1, 1e-3f);
  // One in each row and in each column, of a size of its own.
  for (int64_t i = 0; i < rows; ++i)
    x[i * columns + i * 37 % columns] =
        (i % 2 ? -1.0f : 1.0f) * std::ldexp(1.25f, int(i % 60));
  checkPacked({DType::F32, DType::F8E4M3, 1, rows, columns, 1, 128}, x);
  for (int64_t at : {0, 127, 128 * 136 - 9, 135 * 136 + 135}) {
    Floats y = randomFloats(rows * columns, 2, 1e-3f);
    y[at] = -777;
    checkPacked({DType::F32, DType::F8E4M3, 1, rows, columns, 128, 128}, y);
  }
}

TEST(Quantize, AgreesWithATableOfAllCodes) {
  // Around a register, a block (128), and a tile (16,384 elements).
  const int64_t shapes[][3] = {{1, 1, 1},     {1, 3, 16},    {2, 5, 130},
                               {1, 130, 257}, {3, 128, 128}, {2, 300, 40}};
  const ScaleBlock blocks[] = {{0, 0}, {1, 128}, {128, 1}, {128, 128}, {1, 1}};
  unsigned seed = 1;
  for (DType in : {DType::F32, DType::BF16, DType::F16})
    for (DType codes : {DType::F8E4M3, DType::F8E5M2})
      for (auto &shape : shapes)
        for (ScaleBlock block : blocks) {
          if (!has(block))
            continue;
          SCOPED_TRACE(std::string(nameOf(in)) + " as " + nameOf(codes) + ", " +
                       std::to_string(shape[1]) + " x " +
                       std::to_string(shape[2]) + " by " +
                       std::to_string(block.rows) + " x " +
                       std::to_string(block.columns));
          Quantize::Params p{in,
                             codes,
                             shape[0],
                             shape[1],
                             shape[2],
                             block.rows,
                             block.columns,
                             /*scratchBytes=*/0};
          Floats x = randomFloats(p.elements(), seed++, 0.3f);
          for (int64_t i = 0; i < x.size(); i += 7) // Some are subnormal.
            x[i] *= i % 2 ? 1e-3f : 1e-5f;
          check(p, x);
        }
}

// Every code stands for a number that becomes it again, and every middle
// between two becomes the even one.
TEST(Quantize, KeepsEveryCode) {
  for (DType type : {DType::F8E4M3, DType::F8E5M2}) {
    const std::vector<double> values = positiveValues(type);
    const int count = int(values.size());
    Floats x(4 * count);
    for (int code = 0; code < count; ++code) {
      x[code] = float(values[size_t(code)]);
      x[count + code] = -float(values[size_t(code)]);
      const double next = values[size_t(std::min(code + 1, count - 1))];
      x[2 * count + code] = float((values[size_t(code)] + next) / 2);
      x[3 * count + code] = -x[2 * count + code];
    }
    Quantize::Params p{DType::F32, type, 1, 1, x.size(), 0, 0, 0};
    Buffer<unsigned char> codes(x.size());
    Floats scale(1);
    runKernel<Quantize>(1, p, {x}, {codes, scale});
    ASSERT_EQ(scale[0], 1); // The largest is among them.
    for (int code = 0; code < count; ++code) {
      ASSERT_EQ(codes[code], code);
      ASSERT_EQ(codes[count + code], code | 0x80);
      const int even = std::min(code + code % 2, count - 1);
      ASSERT_EQ(codes[2 * count + code], even) << x[2 * count + code];
      ASSERT_EQ(codes[3 * count + code], even | 0x80);
    }
  }
}

TEST(Quantize, ScalesTheSmallestTheLargestAndNothing) {
  for (DType type : {DType::F8E4M3, DType::F8E5M2})
    for (ScaleBlock block : {ScaleBlock{}, ScaleBlock{1, 128}})
      for (float size : {0.0f, 1e-45f, 1e-38f, 3e-36f, 1e-30f, 3.4e38f}) {
        Quantize::Params p{DType::F32, type,          1, 1, 20,
                           block.rows, block.columns, 0};
        Floats x = randomFloats(20, 1, 0.2f);
        for (int64_t i = 0; i < 20; ++i)
          x[i] = std::min(1.0f, std::abs(x[i])) * size;
        SCOPED_TRACE(size);
        if (has(block))
          check(p, x);
        else
          checkPacked(p, x);
      }
}

// What isn't finite spoils all that shares its scale, and nothing else.
TEST(Quantize, ShowsWhatIsNotFinite) {
  for (DType type : {DType::F8E4M3, DType::F8E5M2})
    for (float bad : {INFINITY, -INFINITY, NAN, -NAN})
      for (int64_t at : {3, 149}) {
        Floats x = randomFloats(2 * 150, 5);
        x[at] = bad;
        Buffer<unsigned char> codes(x.size());
        Floats scales(4);
        runKernel<Quantize>(1, {DType::F32, type, 1, 2, 150, 0, 0, 0}, {x},
                            {codes, scales});
        EXPECT_TRUE(std::isnan(scales[0]));
        for (int64_t i = 0; i < x.size(); ++i)
          EXPECT_EQ(codes[i] & 0x7f, 0x7f) << i;
        if (!has({1, 128}))
          continue;
        runKernel<Quantize>(1, {DType::F32, type, 1, 2, 150, 1, 128, 0}, {x},
                            {codes, scales});
        for (int64_t block = 0; block < 4; ++block)
          EXPECT_EQ(std::isnan(scales[block]), block == at / 128) << block;
        for (int64_t i = 0; i < x.size(); ++i)
          EXPECT_EQ((codes[i] & 0x7f) == 0x7f, i < 150 && i / 128 == at / 128)
              << i;
      }
}

// The same of packed blocks, in both orders: a NaN's code has no sign.
TEST(Quantize, ShowsWhatIsNotFiniteInPackedBlocks) {
  if (kBackend == Backend::Cpu)
    GTEST_SKIP() << "the cpu's scales aren't packed";
  const int64_t rows = 136, columns = 144;
  for (bool areSquares : {false, true})
    for (float bad : {INFINITY, -INFINITY, NAN, -NAN})
      for (auto [row, column] : {std::pair<int64_t, int64_t>(3, 5), {131, 2}}) {
        Floats x = randomFloats(rows * columns, 5);
        x[row * columns + column] = bad;
        const PackedScales place{rows, columns, areSquares},
            turnedPlace{columns, rows, areSquares};
        Packed straight(place), turned(turnedPlace);
        Quantize::Params p{DType::F32, DType::F8E4M3, 1, rows, columns, 0, 128};
        p.blockRows = areSquares ? 128 : 1;
        p.packed = true;
        runKernel<Quantize>(
            1, p, {x},
            {straight.codes, straight.scales, turned.codes, turned.scales});
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) {
            const bool sharesRow = areSquares ? i / 128 == row / 128 : i == row,
                       sharesColumn =
                           areSquares ? j / 128 == column / 128 : j == column;
            const bool isBad = sharesRow && j / 128 == column / 128,
                       isTurnedBad = sharesColumn && i / 128 == row / 128;
            ASSERT_EQ(straight.codes[i * columns + j] == 0x7f, isBad)
                << i << ", " << j;
            ASSERT_EQ(turned.codes[j * rows + i] == 0x7f, isTurnedBad)
                << i << ", " << j;
            ASSERT_EQ(std::isnan(straight.scales[place.at(i, j)]), isBad);
            ASSERT_EQ(std::isnan(turned.scales[turnedPlace.at(j, i)]),
                      isTurnedBad);
          }
      }
}

// A NaN has the same code whoever makes it, whatever its sign.
TEST(Quantize, DropsTheSignOfWhatIsNoNumber) {
  if (kBackend == Backend::Cuda)
    GTEST_SKIP() << "there are no such blocks";
  for (ScaleBlock block : {ScaleBlock{}, ScaleBlock{1, 128}, ScaleBlock{128, 1},
                           ScaleBlock{128, 128}}) {
    Floats x = randomFloats(40, 5);
    x[3] = x[37] = -NAN;
    x[17] = -INFINITY;
    Buffer<unsigned char> codes(40);
    Floats scales(40);
    runKernel<Quantize>(
        1, {DType::F32, DType::F8E4M3, 1, 1, 40, block.rows, block.columns},
        {x}, {codes, scales});
    for (int64_t i : {3, 17, 37})
      EXPECT_EQ(int(codes[i]), 0x7f) << i << " of " << block.columns;
  }
}

// The scale is that of steps before: what is larger saturates, and is seen in
// the amax.
TEST(Quantize, TakesADelayedScale) {
  for (DType type : {DType::F8E4M3, DType::F8E5M2})
    for (float past : {0.0f, 0.25f}) {
      const float most = type == DType::F8E4M3 ? 448.0f : 57344.0f;
      Floats history(9), x = randomFloats(19999, 3);
      history[4] = past / 2;
      history[7] = -past;
      x[11000] = -4 * most;
      x[19998] = 3 * most;
      x[12000] = 5;
      Buffer<unsigned char> codes(x.size()), again(x.size());
      Floats scale(1), amax(1);
      test::Longs count(1), countOfThree(1);
      Quantize::Params p{DType::F32, type, 1, 7, 2857, 0, 0, /*history=*/9};
      runKernel<Quantize>(1, p, {x, history}, {codes, scale, amax, count});
      runKernel<Quantize>(3, p, {x, history},
                          {again, scale, amax, countOfThree});
      EXPECT_TRUE(codes.sameBits(again));
      int64_t larger = 0;
      for (int64_t i = 0; i < x.size(); ++i)
        larger += std::abs(x[i] * (1 / scale[0])) > most;
      EXPECT_EQ(count[0], larger);
      EXPECT_EQ(countOfThree[0], larger);
      EXPECT_GE(larger, past ? 1000 : 1);
      EXPECT_EQ(scale[0], past ? past / most : 1);
      EXPECT_EQ(amax[0], 4 * most);
      const std::vector<double> values = positiveValues(type);
      for (int64_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(codes[i], nearestCode(values, x[i] * (1 / scale[0]))) << i;
      if (kBackend == Backend::Cuda) {
        p.turned = true;
        Buffer<unsigned char> turned(x.size());
        runKernel<Quantize>(1, p, {x, history},
                            {again, scale, turned, amax, countOfThree});
        EXPECT_TRUE(codes.sameBits(again));
        EXPECT_EQ(countOfThree[0], larger);
        EXPECT_EQ(amax[0], 4 * most);
        expectTurned(p, codes, turned);
        p.turned = false;
      }
      x[12000] = INFINITY;
      runKernel<Quantize>(1, p, {x, history}, {codes, scale, amax, count});
      EXPECT_EQ(count[0], larger - (past != 0));
      EXPECT_EQ(codes[12000] & 0x7f, 0x7f);
      EXPECT_EQ(amax[0], 0);
    }
}
