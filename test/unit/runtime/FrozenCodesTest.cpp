//===- FrozenCodesTest.cpp - codes of frozen weights, bit for bit ---------===//
//
// test/golden/frozen.safetensors has matrices and what bitsandbytes makes of
// them; test/golden/README.md ("Frozen storage") describes it.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/FrozenCodes.h"
#include "runtime/kernels/Adam.h"
#include "runtime/step/Safetensors.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace tmc;
using namespace tmc::frozen;

namespace {

const SafetensorsFile &goldens() {
  static const SafetensorsFile file = [] {
    SafetensorsFile opened;
    const Status s = SafetensorsFile::open(FROZEN_GOLDENS, opened);
    EXPECT_TRUE(s) << s.message();
    return opened;
  }();
  return file;
}

/// A golden tensor as a vector.
template <typename T> std::vector<T> golden(const std::string &name) {
  const SafeTensor *tensor = goldens().find(name);
  EXPECT_TRUE(tensor) << name;
  if (!tensor)
    return {};
  std::vector<T> values(size_t(tensor->end - tensor->begin) / sizeof(T));
  std::memcpy(values.data(), goldens().data(*tensor),
              values.size() * sizeof(T));
  return values;
}

template <typename T>
void expectSame(const std::vector<T> &mine, const std::vector<T> &wanted,
                const std::string &what) {
  ASSERT_EQ(mine.size(), wanted.size()) << what;
  ASSERT_FALSE(mine.empty()) << what;
  for (size_t i = 0; i < mine.size(); ++i)
    ASSERT_EQ(std::memcmp(&mine[i], &wanted[i], sizeof(T)), 0)
        << what << " at " << i;
}

template <typename T> struct Named;
template <> struct Named<float> { static constexpr char name[] = "f32"; };
template <> struct Named<bf16> { static constexpr char name[] = "bf16"; };
template <> struct Named<f16> { static constexpr char name[] = "f16"; };

/// Calls f with a value of each type of results.
template <typename F> void eachType(F &&f) {
  f(float{});
  f(bf16{});
  f(f16{});
}

template <typename T>
std::vector<T> decoded(const Nf4 &stored, int64_t begin, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  decode(stored, begin, count, values.data());
  return values;
}

struct Encoded {
  std::vector<uint8_t> codes, maxima;
  std::vector<float> absmax, nested;

  int64_t blocks() const { return int64_t(absmax.size()); }
  Nf4 plain() const { return {codes.data(), Maxima(absmax.data())}; }
  Nf4 twice() const {
    return {codes.data(), Maxima(maxima.data(), nested.data(), blocks())};
  }
};

template <typename T> Encoded encoded(const std::vector<T> &values) {
  Encoded result;
  result.codes.resize(values.size() / 2);
  result.absmax.resize(values.size() / kBlock);
  result.maxima.resize(result.absmax.size());
  result.nested.resize(size_t(nestedFloats(result.blocks())));
  encode(values.data(), int64_t(values.size()), result.codes.data(),
         result.absmax.data());
  nest(result.absmax.data(), result.blocks(), result.maxima.data(),
       result.nested.data());
  return result;
}

/// Numbers and their codes, for comparisons without goldens.
Encoded drawn(int64_t blocks) {
  std::mt19937 generator(3);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> values(static_cast<size_t>(blocks * kBlock));
  for (float &value : values)
    value = normal(generator);
  return encoded(values);
}

} // namespace

TEST(FrozenCodes, TablesAreThePublished) {
  const Table<kLevels> values = levels();
  expectSame(std::vector<float>(values.value, values.value + kLevels),
             golden<float>("levels"), "levels");
  const Table<kMapped> map = dynamicMap();
  expectSame(std::vector<float>(map.value, map.value + kMapped),
             golden<float>("map"), "map");
  // The reason for a literal.
  int different = 0;
  for (int code = 0; code < kMapped; ++code) {
    const float computed = adam::codeValue(true, code);
    if (computed == map.value[code])
      continue;
    ++different;
    EXPECT_EQ(std::nextafter(computed, map.value[code]), map.value[code]);
  }
  EXPECT_EQ(different, 72);
}

TEST(FrozenCodes, Nf4IsThatOfBitsandbytes) {
  eachType([](auto like) {
    using Source = decltype(like);
    const std::string name = std::string("edges_") + Named<Source>::name;
    const Encoded mine = encoded(golden<Source>(name + ".matrix"));
    expectSame(mine.codes, golden<uint8_t>(name + ".packed"), name + ".packed");
    expectSame(mine.absmax, golden<float>(name + ".absmax"), name + ".absmax");
    eachType([&](auto to) {
      using T = decltype(to);
      const std::string values = name + ".as_" + Named<T>::name;
      expectSame(decoded<T>(mine.plain(), 0, mine.blocks() * kBlock),
                 golden<T>(values), values);
    });
  });
}

TEST(FrozenCodes, NestedMaximaAreTheNearest) {
  eachType([](auto like) {
    using Source = decltype(like);
    const std::string name = std::string("normal_") + Named<Source>::name;
    const Encoded mine = encoded(golden<Source>(name + ".matrix"));
    expectSame(mine.codes, golden<uint8_t>(name + ".packed"), name + ".packed");
    expectSame(mine.absmax, golden<float>(name + ".absmax"), name + ".absmax");
    expectSame(mine.maxima, golden<uint8_t>(name + ".codes"), name + ".codes");
    expectSame(mine.nested, golden<float>(name + ".nested"), name + ".nested");
    // The library of bitsandbytes for the cpu is at most one code off.
    const auto theirs = golden<uint8_t>(name + ".their_codes");
    for (size_t i = 0; i < theirs.size(); ++i)
      EXPECT_LE(std::abs(theirs[i] - mine.maxima[i]), 1) << name << " at " << i;
  });
}

TEST(FrozenCodes, NestedCheckpointsHaveTheValuesOfBitsandbytes) {
  eachType([](auto like) {
    using Source = decltype(like);
    const std::string name = std::string("normal_") + Named<Source>::name;
    const auto codes = golden<uint8_t>(name + ".packed"),
               maxima = golden<uint8_t>(name + ".their_codes");
    const auto nested = golden<float>(name + ".their_nested");
    const Nf4 stored{codes.data(), Maxima(maxima.data(), nested.data(),
                                          int64_t(maxima.size()))};
    eachType([&](auto to) {
      using T = decltype(to);
      const std::string values = name + ".nested_as_" + Named<T>::name;
      expectSame(decoded<T>(stored, 0, 2 * int64_t(codes.size())),
                 golden<T>(values), values);
    });
  });
}

TEST(FrozenCodes, RowsAreThoseOfBitsandbytes) {
  eachType([](auto like) {
    using Source = decltype(like);
    const std::string name = std::string("rows_") + Named<Source>::name;
    const auto matrix = golden<Source>(name + ".matrix");
    const auto codes = golden<int8_t>(name + ".codes");
    const auto most = golden<float>(name + ".most");
    const int64_t columns = int64_t(matrix.size() / most.size());
    std::vector<int8_t> mine(matrix.size());
    std::vector<float> maxima(most.size());
    for (size_t row = 0; row < most.size(); ++row) {
      // In two pieces, as a loader of long rows would.
      const int64_t at = int64_t(row) * columns, first = 37;
      maxima[row] = rowAbsmax(matrix.data() + at, first);
      maxima[row] =
          rowAbsmax(matrix.data() + at + first, columns - first, maxima[row]);
      encodeRow(matrix.data() + at, first, maxima[row], mine.data() + at);
      encodeRow(matrix.data() + at + first, columns - first, maxima[row],
                mine.data() + at + first);
    }
    expectSame(maxima, most, name + ".most");
    expectSame(mine, codes, name + ".codes");
    eachType([&](auto to) {
      using T = decltype(to);
      std::vector<T> values(codes.size());
      for (size_t row = 0; row < most.size(); ++row)
        decodeRow(codes.data() + int64_t(row) * columns, columns, most[row],
                  values.data() + int64_t(row) * columns);
      const std::string back = name + ".as_" + Named<T>::name;
      expectSame(values, golden<T>(back), back);
    });
  });
}

/// Whole blocks take vectors, single elements don't: same bits, and nothing is
/// written beyond.
TEST(FrozenCodes, APieceIsPartOfTheWhole) {
  constexpr int64_t kBlocks = 5;
  const Encoded stored = drawn(kBlocks);
  for (const Nf4 &format : {stored.plain(), stored.twice()})
    eachType([&](auto like) {
      using T = decltype(like);
      const auto whole = decoded<T>(format, 0, kBlocks * kBlock);
      for (int64_t i = 0; i < kBlocks * kBlock; ++i) {
        const float value = levels().value[codeAt(stored.codes.data(), i)] *
                            format.maxima.of(i / kBlock);
        const T rounded = [&] {
          if constexpr (std::is_same_v<T, float>)
            return value;
          else
            return narrow<T>(value);
        }();
        ASSERT_EQ(std::memcmp(&whole[size_t(i)], &rounded, sizeof(T)), 0) << i;
      }
      std::mt19937 generator(5);
      for (int round = 0; round < 200; ++round) {
        const int64_t begin = int64_t(generator() % (kBlocks * kBlock));
        const int64_t count =
            int64_t(generator() % uint64_t(kBlocks * kBlock - begin + 1));
        std::vector<T> piece(static_cast<size_t>(count) + 1, like);
        decode(format, begin, count, piece.data());
        ASSERT_EQ(std::memcmp(piece.data(), whole.data() + begin,
                              size_t(count) * sizeof(T)),
                  0)
            << begin << ", " << count;
        ASSERT_EQ(std::memcmp(&piece.back(), &like, sizeof(T)), 0);
      }
    });
}

/// Midpoints belong to the lower code; bounds of both maps.
TEST(FrozenCodes, TiesGoDown) {
  const auto levelBounds = midpoints(levels());
  for (int code = 0; code + 1 < kLevels; ++code) {
    const float bound = levelBounds.value[code];
    EXPECT_EQ(codeOf(bound, levelBounds), code);
    EXPECT_EQ(codeOf(std::nextafter(bound, 2.0f), levelBounds), code + 1);
  }
  const auto mapBounds = midpoints(dynamicMap());
  for (int code = 0; code + 1 < kMapped; ++code) {
    const float bound = mapBounds.value[code];
    EXPECT_EQ(mappedCodeOf(bound, mapBounds), code);
    EXPECT_EQ(mappedCodeOf(std::nextafter(bound, 2.0f), mapBounds), code + 1);
  }
}

/// Rows below 127 / the largest float: their factor is finite.
TEST(FrozenCodes, TinyRowsStayFinite) {
  for (float absmax : {1e-45f, 1e-39f, 3e-37f, 4e-37f}) {
    const float row[3] = {absmax, -absmax, 0};
    int8_t codes[3];
    float back[3];
    encodeRow(row, 3, absmax, codes);
    decodeRow(codes, 3, absmax, back);
    EXPECT_EQ(codes[0], -codes[1]);
    EXPECT_EQ(codes[2], 0);
    for (int i = 0; i < 3; ++i)
      EXPECT_LE(std::abs(back[i] - row[i]), absmax) << absmax;
  }
}
