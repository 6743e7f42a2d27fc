//===- UpdateTesting.h - what tests of updates share ------------*- C++ -*-===//
//
// How updates keep what has 16 bits, and what they copy.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_UNIT_RUNTIME_UPDATETESTING_H
#define TMC_TEST_UNIT_RUNTIME_UPDATETESTING_H

#include "Testing.h"

#include "runtime/kernels/Optimizer.h"
#include "runtime/kernels/Stochastic.h"

namespace tmc::test {

using Halves = Buffer<bf16>;

template <typename T> Floats widened(const Buffer<T> &x) {
  Floats wide(x.size());
  for (int64_t i = 0; i < x.size(); ++i)
    wide[i] = loadLanes<1>(x.get() + i);
  return wide;
}

template <typename T> constexpr DType typeOf = DType::F32;
template <> constexpr DType typeOf<bf16> = DType::BF16;
template <> constexpr DType typeOf<f16> = DType::F16;

/// What `which` of an update's values are kept as: themselves, or rounded by
/// the element's own 16 bits of chance, in integers.
inline void expectKept(const Floats &got, const Floats &want, int64_t, int64_t,
                       int) {
  EXPECT_TRUE(got.sameBits(want));
}
inline void expectKept(const Halves &got, const Floats &want, int64_t stream,
                       int64_t step, int which) {
  const Philox draws = roundingDraws(stream, step);
  int64_t wrong = 0, up = 0;
  for (int64_t i = 0; i < got.size(); ++i) {
    const float value = want[i];
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const uint32_t chance =
        draws.word(uint64_t(12 * (i / 8) + 4 * which + i % 8 / 2));
    const uint32_t sixteen = i % 2 ? chance >> 16 : chance & 0xffff;
    const uint32_t isUp = (bits & 0xffff) + sixteen > 0xffff;
    wrong += got[i].bits != (bits >> 16) + isUp;
    up += isUp;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(up, got.size() / 3);
  EXPECT_LT(up, 2 * got.size() / 3);
}

/// The new parameters of `run(type, step, param, copy)` are copied as a cast
/// rounds them, change by no bit, and stay at step 0.
template <typename Copy, typename F>
void checkCopy(F &&run, int64_t count = 66001) {
  Floats plain = randomFloats(count, 1), param(plain);
  Buffer<Copy> none(1), copy(count);
  for (int64_t i = 0; i < count; ++i)
    copy[i].bits = uint16_t(i);
  const Buffer<Copy> before(copy);
  run(DType::F32, 0, plain, none);
  run(typeOf<Copy>, 0, param, copy);
  EXPECT_TRUE(copy.sameBits(before));
  EXPECT_TRUE(param.sameBits(plain));
  run(DType::F32, 3, plain, none);
  run(typeOf<Copy>, 3, param, copy);
  EXPECT_TRUE(param.sameBits(plain));
  int64_t wrong = 0, special = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float want = widen(narrow<Copy>(param[i])), got = widen(copy[i]);
    // A NaN's bits are each backend's own.
    wrong += std::isnan(want) ? !std::isnan(got)
                              : std::memcmp(&want, &got, sizeof want) != 0;
    special += !std::isfinite(got);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(special, 0); // A gradient that isn't finite, or more than f16 has.
}

} // namespace tmc::test

#endif // TMC_TEST_UNIT_RUNTIME_UPDATETESTING_H
