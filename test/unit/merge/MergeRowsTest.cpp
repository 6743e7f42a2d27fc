// MergeRowsTest.cpp - sums of a merge, and their one rounding.

#include "driver/merge/MergeRows.h"
#include "driver/merge/Shards.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace tmc;

namespace {

/// A double rounded to a type with `precision` bits and exponents from `least`
/// (of the last bit of subnormals): the nearest, ties to even.
double roundedTo(double x, int precision, int least) {
  int exponent;
  std::frexp(x, &exponent);
  exponent = std::max(exponent - precision, least);
  return std::ldexp(std::nearbyint(std::ldexp(x, -exponent)), exponent);
}

double bf16Value(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
double f16Value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, part = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(part, -24)
                      : exponent == 31 ? (part ? NAN : INFINITY)
                                       : std::ldexp(1024 + part, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

/// Numbers on, and next to, the halves between two neighbours of a type.
std::vector<double> halves(int precision) {
  std::vector<double> values;
  std::mt19937 draw(1);
  for (int i = 0; i < 500; ++i) {
    const int64_t odd = (int64_t(1) << precision) + 2 * (draw() % 50) + 1;
    const double half = std::ldexp(double(odd), int(draw() % 10) - precision);
    for (const double sign : {1.0, -1.0})
      for (const double x : {half, std::nextafter(half, 1e9),
                             std::nextafter(half, -1e9), half * 1.0001})
        values.push_back(sign * x);
  }
  return values;
}

template <typename F>
void expectOneRounding(DType type, int precision, int least, F &&valueOf) {
  std::vector<double> values = halves(precision);
  for (int i = 0; i < 100; ++i) // Subnormals of the type, and below.
    values.push_back(std::ldexp(i + 0.5 + 1e-9 * (i % 3 - 1), least));
  std::vector<uint16_t> out(values.size());
  EXPECT_EQ(mergeRows(DType::F64, values.data(), type, out.data(), 0,
                      int64_t(values.size()), nullptr, 1),
            0);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(valueOf(out[i]), roundedTo(values[i], precision, least))
        << values[i];
}

} // namespace

/// By way of f32 some of these would be rounded twice.
TEST(MergeRows, RoundsOnce) {
  expectOneRounding(DType::BF16, 8, -133, bf16Value);
  expectOneRounding(DType::F16, 11, -24, f16Value);
}

TEST(MergeRows, CountsWhatIsTooLarge) {
  const double values[] = {65519.9, 65520, -1e300, INFINITY, NAN, 1};
  uint16_t out[6];
  EXPECT_EQ(mergeRows(DType::F64, values, DType::F16, out, 0, 6, nullptr, 2),
            2);
  EXPECT_EQ(f16Value(out[0]), 65504);
  EXPECT_EQ(f16Value(out[3]), INFINITY);
  EXPECT_TRUE(std::isnan(f16Value(out[4])));
  float wide[6];
  EXPECT_EQ(mergeRows(DType::F64, values, DType::F32, wide, 0, 6, nullptr, 1),
            1);
}

/// Threads, pieces and rows longer than a thread's sums change no bit.
TEST(MergeRows, PiecesAndThreadsChangeNothing) {
  const int64_t rows = 3, columns = 5000, rank = 3;
  std::mt19937 draw(2);
  std::normal_distribution<float> normal;
  LowRank product{rank, columns, 1.7, {}, {}};
  for (int64_t i = 0; i < rows * rank; ++i)
    product.left.push_back(normal(draw));
  for (int64_t i = 0; i < rank * columns; ++i)
    product.right.push_back(normal(draw));
  std::vector<float> w(size_t(rows * columns)), whole(w.size());
  for (float &x : w)
    x = normal(draw);
  mergeRows(DType::F32, w.data(), DType::F32, whole.data(), 0, rows * columns,
            &product, 1);
  for (int64_t i = 0; i < rows * columns; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < rank; ++k)
      sum += double(product.left[size_t(i / columns * rank + k)]) *
             double(product.right[size_t(k * columns + i % columns)]);
    ASSERT_EQ(whole[size_t(i)], float(double(w[size_t(i)]) + 1.7 * sum)) << i;
  }
  for (const int threads : {1, 2, 7})
    for (const int64_t piece :
         {int64_t(1), int64_t(777), columns, 2 * columns}) {
      if (piece == 1 && threads > 1)
        continue;
      std::vector<float> parts(w.size());
      for (int64_t at = 0; at < rows * columns; at += piece)
        mergeRows(DType::F32, w.data() + at, DType::F32, parts.data() + at, at,
                  std::min(piece, rows * columns - at), &product, threads);
      ASSERT_EQ(parts, whole) << threads << " threads, pieces of " << piece;
    }
}

TEST(Shards, FillAsTransformersDoes) {
  const auto filled = [](const std::vector<int64_t> &sizes) {
    std::string text;
    for (const Shard &shard : splitIntoShards(sizes, 10)) {
      text += text.empty() ? "" : " | ";
      for (size_t i = 0; i < shard.tensors.size(); ++i)
        text += (i ? " " : "") + std::to_string(shard.tensors[i]);
    }
    return text;
  };
  EXPECT_EQ(filled({4, 4, 4, 12, 2}), "0 1 | 3 | 2 4");
  EXPECT_EQ(filled({10, 10}), "0 | 1");
  EXPECT_EQ(filled({5, 5, 1}), "0 1 | 2");
  EXPECT_EQ(filled({11}), "0");
  EXPECT_EQ(filled({11, 11, 0}), "0 | 1 | 2");
  EXPECT_EQ(filled({}), "");
  EXPECT_EQ(splitIntoShards({1}, 10)[0].file, "model.safetensors");
  EXPECT_EQ(splitIntoShards({10, 10}, 10)[1].file,
            "model-00002-of-00002.safetensors");
}

TEST(Shards, TheIndexIsThatOfTransformers) {
  EXPECT_EQ(indexText(splitIntoShards({8, 8}, 8), {"b", "a\"\n"}, 16),
            R"({
  "metadata": {
    "total_size": 16
  },
  "weight_map": {
    "a\"\u000a": "model-00002-of-00002.safetensors",
    "b": "model-00001-of-00002.safetensors"
  }
}
)");
}
