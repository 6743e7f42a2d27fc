//===- FrozenDecodeTest.cpp - codes of frozen weights on cuda -------------===//
//
// Drawn codes and maxima, decoded by the kernels, against the functions of
// runtime/kernels/FrozenCodes.h, bit for bit. FrozenCodesTest.cpp compares
// those with bitsandbytes.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"

#include "runtime/cuda/FrozenCodes.h"
#include "runtime/kernels/Storage.h"

#include <random>

using namespace tmc;
using namespace tmc::test;
using namespace tmc::frozen;

namespace {

template <typename T> T roundedTo(float value) {
  if constexpr (std::is_same_v<T, float>)
    return value;
  else
    return narrow<T>(value);
}

template <typename T> Buffer<T> drawnBytes(int64_t count, unsigned seed) {
  std::mt19937 draw(seed);
  Buffer<T> bytes(count);
  for (int64_t i = 0; i < count; ++i)
    bytes[i] = T(draw());
  return bytes;
}

template <typename F> void eachType(F &&f) {
  f(float{});
  f(bf16{});
  f(f16{});
}

struct Card {
  std::unique_ptr<Device> device = makeDevice(1);
  cuda::Queue queue{static_cast<cuda::CudaDevice &>(*device), device->compute(),
                    "decode"};
};

/// Whole tiles of a block of threads, parts of one, and a single block.
constexpr int64_t kCounts[] = {64, 192, 8192, 8192 + 64, 3 * 8192 + 8128};

} // namespace

TEST(FrozenDecode, BlocksAreThoseOfTheFormat) {
  Card card;
  const Table<kLevels> values = levels();
  const Table<kMapped> map = dynamicMap();
  for (const int64_t count : kCounts) {
    const int64_t blocks = count / kBlock;
    const auto codes = drawnBytes<uint8_t>(count / 2, 1);
    const auto maxima = drawnBytes<uint8_t>(blocks, 2);
    const test::Floats plain = randomFloats(blocks, 3, 0.1f),
                       nested = randomFloats(nestedFloats(blocks), 4, 0.1f);
    for (const bool isNested : {false, true})
      eachType([&](auto like) {
        using T = decltype(like);
        Buffer<T> out(count, like);
        cuda::decode(card.queue,
                     {codes.get(), isNested ? nullptr : plain.get(),
                      maxima.get(), nested.get(), count},
                     out.get());
        ASSERT_TRUE(card.device->synchronize());
        for (int64_t i = 0; i < count; ++i) {
          const int64_t block = i / kBlock;
          const float absmax = isNested
                                   ? nestedAbsmax(map.value[maxima[block]],
                                                  nested[block / kNestedBlock],
                                                  nested[nested.size() - 1])
                                   : plain[block];
          const T wanted =
              roundedTo<T>(values.value[codeAt(codes, i)] * absmax);
          ASSERT_EQ(std::memcmp(&out[i], &wanted, sizeof(T)), 0)
              << i << " of " << count << (isNested ? ", nested" : "");
        }
      });
  }
}

/// Rows of whole vectors and others, aligned and not.
TEST(FrozenDecode, RowsAreThoseOfTheFormat) {
  Card card;
  for (const int64_t columns : {16, 64, 272, 1, 37})
    for (const int64_t shift : {0, 1}) {
      const int64_t rows = 9, count = rows * columns;
      const auto codes = drawnBytes<int8_t>(count + shift, 5);
      const test::Floats absmax = randomFloats(rows, 6);
      eachType([&](auto like) {
        using T = decltype(like);
        Buffer<T> out(count, like);
        cuda::decodeRows(card.queue, codes.get() + shift, absmax.get(), rows,
                         columns, out.get());
        ASSERT_TRUE(card.device->synchronize());
        for (int64_t i = 0; i < count; ++i) {
          const T wanted =
              roundedTo<T>(rowValue(codes[i + shift], absmax[i / columns]));
          ASSERT_EQ(std::memcmp(&out[i], &wanted, sizeof(T)), 0)
              << i << " of " << count;
        }
      });
    }
}
