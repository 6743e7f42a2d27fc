//===- TransposeBlock.h - transposes a block in registers -------*- C++ -*-===//
//
// The core of every transposition on cpu: packing, attention's results, the
// transpose kernel.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_TRANSPOSEBLOCK_H
#define TMC_RUNTIME_CPU_TRANSPOSEBLOCK_H

#include "runtime/cpu/Simd.h"

namespace tmc::simd {

/// to[j * toStride + i] = from[i * fromStride + j] for a block of Rows rows of
/// kWidth. The last kWidth - Rows elements of each written row are zeros, or,
/// if Narrow, aren't written.
template <int Rows = kWidth, bool Narrow = false>
inline void transposeBlock(const float *from, int64_t fromStride, float *to,
                           int64_t toStride) {
#if defined(__AVX512F__)
  auto put = [&](int j, V v) {
    if constexpr (Narrow && Rows < kWidth)
      _mm512_mask_storeu_ps(to + j * toStride, __mmask16((1 << Rows) - 1), v);
    else
      store(to + j * toStride, v);
  };
  // Four floats of row i, in part i / 4 of a register: this needs no shuffle.
  auto part = [&](int i, int column) {
    return i < Rows ? _mm_loadu_ps(from + i * fromStride + column)
                    : _mm_setzero_ps();
  };
#pragma GCC unroll 4
  for (int c = 0; c < kWidth; c += 4) {
    V r[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      __m512 v = _mm512_zextps128_ps512(part(i, c));
      v = _mm512_insertf32x4(v, part(4 + i, c), 1);
      v = _mm512_insertf32x4(v, part(8 + i, c), 2);
      r[i] = _mm512_insertf32x4(v, part(12 + i, c), 3);
    }
    // Then 4 x 4 blocks within the parts: neighbours, then pairs.
    V t[4];
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      t[2 * h] =
          __builtin_shufflevector(r[2 * h], r[2 * h + 1], 0, 16, 1, 17, 4, 20,
                                  5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
      t[2 * h + 1] =
          __builtin_shufflevector(r[2 * h], r[2 * h + 1], 2, 18, 3, 19, 6, 22,
                                  7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    }
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      put(c + 2 * h,
          __builtin_shufflevector(t[h], t[2 + h], 0, 1, 16, 17, 4, 5, 20, 21, 8,
                                  9, 24, 25, 12, 13, 28, 29));
      put(c + 2 * h + 1,
          __builtin_shufflevector(t[h], t[2 + h], 2, 3, 18, 19, 6, 7, 22, 23,
                                  10, 11, 26, 27, 14, 15, 30, 31));
    }
  }
#elif defined(__AVX__)
  // Rows i and i + 4 share a register, so that each half holds a 4 x 4 block.
  auto quarter = [&](int i, int column) {
    return i < Rows ? _mm_loadu_ps(from + i * fromStride + column)
                    : _mm_setzero_ps();
  };
#pragma GCC unroll 2
  for (int c = 0; c < kWidth; c += 4) {
    V r[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(quarter(i, c)),
                                  quarter(4 + i, c), 1);
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const V low =
          h ? _mm256_unpackhi_ps(r[0], r[1]) : _mm256_unpacklo_ps(r[0], r[1]);
      const V high =
          h ? _mm256_unpackhi_ps(r[2], r[3]) : _mm256_unpacklo_ps(r[2], r[3]);
      const V first = _mm256_shuffle_ps(low, high, 0x44);
      const V second = _mm256_shuffle_ps(low, high, 0xee);
      float *line = to + (c + 2 * h) * toStride;
      if constexpr (Narrow && Rows < kWidth) {
        std::memcpy(line, &first, Rows * sizeof(float));
        std::memcpy(line + toStride, &second, Rows * sizeof(float));
      } else {
        store(line, first);
        store(line + toStride, second);
      }
    }
  }
#else
  V r[kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i)
    r[i] = i < Rows ? load(from + i * fromStride) : V{};
  for (int j = 0; j < kWidth; ++j)
    for (int i = 0; i < (Narrow ? Rows : kWidth); ++i)
      to[j * toStride + i] = r[i][j];
#endif
}

/// The same for a square block of eight rows of 16-bit elements.
constexpr int kHalves = 8;
inline void transposeHalves(const uint16_t *from, int64_t fromStride,
                            uint16_t *to, int64_t toStride) {
  using H = uint16_t __attribute__((vector_size(16)));
  using W = uint32_t __attribute__((vector_size(16)));
  using D = uint64_t __attribute__((vector_size(16)));
  H r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    std::memcpy(&r[i], from + i * fromStride, sizeof(H));
  // Pairs of rows, then fours, then all of them.
  W p[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    p[i] = W(__builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 2, 10, 3, 11));
    p[i + 1] =
        W(__builtin_shufflevector(r[i], r[i + 1], 4, 12, 5, 13, 6, 14, 7, 15));
  }
  D q[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const W a = p[i / 2 * 4 + i % 2], b = p[i / 2 * 4 + i % 2 + 2];
    q[2 * i] = D(__builtin_shufflevector(a, b, 0, 4, 1, 5));
    q[2 * i + 1] = D(__builtin_shufflevector(a, b, 2, 6, 3, 7));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const D low = __builtin_shufflevector(q[i], q[i + 4], 0, 2);
    const D high = __builtin_shufflevector(q[i], q[i + 4], 1, 3);
    std::memcpy(to + 2 * i * toStride, &low, sizeof low);
    std::memcpy(to + (2 * i + 1) * toStride, &high, sizeof high);
  }
}

} // namespace tmc::simd

#endif // TMC_RUNTIME_CPU_TRANSPOSEBLOCK_H
