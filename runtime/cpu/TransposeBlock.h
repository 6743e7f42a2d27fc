//===- TransposeBlock.h - a square block, turned in registers ---*- C++ -*-===//
//
// The core of every transposition on cpu: packing, attention's results, the
// transpose kernel.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_TRANSPOSEBLOCK_H
#define TMC_RUNTIME_CPU_TRANSPOSEBLOCK_H

#include "runtime/cpu/Simd.h"

namespace tmc::simd {

/// to[j * toStride + i] = from[i * fromStride + j] for a kWidth x kWidth block,
/// of which only the first Rows rows are read; the others count as zeros.
template <int Rows = kWidth>
inline void transposeBlock(const float *from, int64_t fromStride, float *to,
                           int64_t toStride) {
  V r[kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i)
    r[i] = i < Rows ? load(from + i * fromStride) : V{};
#if defined(__AVX512F__)
  V t[kWidth];
  // Interleave neighbours, then pairs: t[4g + c] holds, in its 128-bit part l,
  // column 4l + c of rows 4g .. 4g + 3.
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 16, 1, 17, 4, 20, 5, 21,
                                   8, 24, 9, 25, 12, 28, 13, 29);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 18, 3, 19, 6, 22, 7,
                                       23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      r[i + 2 * h] =
          __builtin_shufflevector(t[i + h], t[i + 2 + h], 0, 1, 16, 17, 4, 5,
                                  20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      r[i + 2 * h + 1] =
          __builtin_shufflevector(t[i + h], t[i + 2 + h], 2, 3, 18, 19, 6, 7,
                                  22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    // Parts 0 and 2, and 1 and 3, of the upper and of the lower eight rows.
    const V a = __builtin_shufflevector(r[c], r[4 + c], 0, 1, 2, 3, 8, 9, 10,
                                        11, 16, 17, 18, 19, 24, 25, 26, 27);
    const V b = __builtin_shufflevector(r[c], r[4 + c], 4, 5, 6, 7, 12, 13, 14,
                                        15, 20, 21, 22, 23, 28, 29, 30, 31);
    const V d = __builtin_shufflevector(r[8 + c], r[12 + c], 0, 1, 2, 3, 8, 9,
                                        10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    const V e = __builtin_shufflevector(r[8 + c], r[12 + c], 4, 5, 6, 7, 12, 13,
                                        14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    auto even = [](V x, V y) {
      return __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18,
                                     19, 24, 25, 26, 27);
    };
    auto odd = [](V x, V y) {
      return __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21,
                                     22, 23, 28, 29, 30, 31);
    };
    store(to + c * toStride, even(a, d));
    store(to + (4 + c) * toStride, even(b, e));
    store(to + (8 + c) * toStride, odd(a, d));
    store(to + (12 + c) * toStride, odd(b, e));
  }
#else
  for (int j = 0; j < kWidth; ++j)
    for (int i = 0; i < kWidth; ++i)
      to[j * toStride + i] = r[i][j];
#endif
}

} // namespace tmc::simd

#endif // TMC_RUNTIME_CPU_TRANSPOSEBLOCK_H
