//===- GemmPairs.cpp - products of bf16 factors, two at a time ------------===//

#include "runtime/cpu/GemmPairs.h"

#ifndef __AVX512BF16__

namespace tmc::gemm {
bool knowsPairs() { return false; }
bool pairsAreFaster() { return false; }
void runPairs(Stream &, const Problem &, void *) { __builtin_unreachable(); }
void packPairsA(const Matrix &, int64_t, int64_t, float *) {
  __builtin_unreachable();
}
void packPairsB(const Matrix &, int64_t, int64_t, float *) {
  __builtin_unreachable();
}
void innerPairs(int64_t, int64_t, int64_t, const float *, const float *,
                float *, int64_t) {
  __builtin_unreachable();
}
} // namespace tmc::gemm

#else

#include "runtime/cpu/BF16Elements.h"
#include "runtime/cpu/GemmRun.h"
#include "runtime/cpu/TransposeBlock.h"

#include <chrono>

namespace tmc::gemm {

namespace {

/// The partner of a number without a neighbour, in a pair of the left factor.
constexpr uint32_t kMinusZero = 0x8000;

/// The instruction adds the upper number's product first.
VU firstAbove(VU pairs) { return pairs << 16 | pairs >> 16; }

/// Packs pairs [q, k / 2) of `count` <= kWidth rows of `width` packed elements:
/// element i of a pair at from + i * across, its numbers `along` apart.
template <typename T>
void zip(const T *from, int64_t along, int64_t across, int64_t count, int64_t q,
         int64_t k, uint32_t alone, float *to, int64_t width) {
  for (; 2 * q < k; ++q) {
    const T *first = from + 2 * q * along;
    const bool isPair = 2 * q + 1 < k;
    VU pairs;
    if (across == 1) {
      const V left = loadSome(first, count);
      pairs = isPair ? pairsOf(loadSome(first + along, count), left)
                     : ((VU)left & kUpperHalf) | alone;
    } else {
      alignas(64) float numbers[2][kWidth] = {};
      for (int64_t i = 0; i < count; ++i) {
        numbers[0][i] = widen(first[i * across]);
        numbers[1][i] = isPair ? widen(first[i * across + along]) : 0;
      }
      pairs = pairsOf(simd::load(numbers[1]), simd::load(numbers[0]));
      if (!isPair)
        pairs |= alone;
    }
    _mm512_mask_storeu_ps(to + q * width, lanes(std::min(width, count)),
                          (V)pairs);
  }
}

/// Transposes kWidth pairs of each of `Rows` contiguous rows.
template <int Rows, typename T>
void turn(const T *from, int64_t stride, float *to, int64_t width) {
  alignas(64) float block[Rows * kWidth];
  for (int i = 0; i < Rows; ++i)
    simd::store(block + i * kWidth,
                (V)firstAbove(loadPairs(from + i * stride)));
  simd::transposeBlock<Rows, Rows != kWidth>(block, kWidth, to, width);
}

/// The types of which a part of 2 * kWidth neighbours can be loaded.
template <typename T>
constexpr bool isTurned =
    std::is_same_v<T, bf16> || std::is_same_v<T, ReadAs<bf16>>;

/// The same for `numbers` <= 2 * kWidth numbers of `rows` <= Rows rows. A
/// number without a neighbour gets the partner `alone`.
template <int Rows, typename T>
void turnSome(const T *from, int64_t stride, int64_t rows, int64_t numbers,
              uint32_t alone, float *to, int64_t width) {
  alignas(64) float block[Rows * kWidth], turned[kWidth * kWidth];
  const int64_t pairs = (numbers + 1) / 2;
  alignas(64) uint32_t partners[kWidth] = {};
  if (numbers % 2)
    partners[pairs - 1] = alone;
  VU last;
  std::memcpy(&last, partners, sizeof last);
  for (int i = 0; i < Rows; ++i) {
    const VU row =
        i < rows ? firstAbove(loadPairs(from + i * stride, numbers)) | last
                 : VU{};
    simd::store(block + i * kWidth, (V)row);
  }
  simd::transposeBlock<Rows>(block, kWidth, turned, kWidth);
  for (int64_t q = 0; q < pairs; ++q)
    _mm512_mask_storeu_ps(to + q * width, lanes(std::min(width, rows)),
                          simd::load(turned + q * kWidth));
}

/// Pairs of bf16 numbers.
struct Pairs {
  static constexpr int kStep = 2;
  static constexpr bool kPacksOnTheWay = false;
  static constexpr int kTurned = kStep * kWidth;

  static V fma(V a, V b, V c) {
    return (V)_mm512_dpbf16_ps((__m512)c, (__m512bh)a, (__m512bh)b);
  }

  static void packA(const Matrix &a, int64_t m, int64_t k, float *to) {
    const int64_t depth = (k + 1) / 2;
    withBF16Elements(a, [&](const auto *data) {
      for (int64_t i = 0; i < m; i += kPanelM) {
        const int64_t rows = std::min<int64_t>(kPanelM, m - i);
        const auto *from = data + i * a.rowStride;
        float *panel = to + i * depth;
        int64_t p = 0;
        if (rows == kPanelM && a.colStride == 1)
          for (; p + kTurned <= k; p += kTurned)
            turn<kPanelM>(from + p, a.rowStride, panel + p / 2 * kPanelM,
                          kPanelM);
        if constexpr (isTurned<std::decay_t<decltype(*data)>>)
          if (a.colStride == 1)
            for (; p < k; p += kTurned)
              turnSome<kPanelM>(from + p, a.rowStride, rows,
                                std::min<int64_t>(kTurned, k - p), kMinusZero,
                                panel + p / 2 * rows, rows);
        zip(from, a.colStride, a.rowStride, rows, p / 2, k, kMinusZero, panel,
            rows);
      }
    });
  }

  static void packB(const Matrix &b, int64_t k, int64_t n, float *to) {
    withBF16Elements(b, [&](const auto *data) {
      for (int64_t j = 0; j < kPanelN; j += kWidth) {
        const int64_t columns = std::clamp<int64_t>(n - j, 0, kWidth);
        const auto *from = data + j * b.colStride;
        int64_t p = 0;
        if (columns == kWidth && b.rowStride == 1)
          for (; p + kTurned <= k; p += kTurned)
            turn<kWidth>(from + p, b.colStride, to + p / 2 * kPanelN + j,
                         kPanelN);
        if constexpr (isTurned<std::decay_t<decltype(*data)>>)
          if (columns > 0 && b.rowStride == 1)
            for (; p < k; p += kTurned)
              turnSome<kWidth>(from + p, b.colStride, columns,
                               std::min<int64_t>(kTurned, k - p), 0,
                               to + p / 2 * kPanelN + j, kPanelN);
        zip(from, b.rowStride, b.colStride, columns, p / 2, k, 0, to + j,
            kPanelN);
        if (columns < kWidth)
          for (int64_t q = 0; 2 * q < k; ++q)
            std::fill(to + q * kPanelN + j + columns,
                      to + q * kPanelN + j + kWidth, 0.0f);
      }
    });
  }
};

/// Seconds of the inner kernel of whole panels, k packed elements deep; the
/// minimum of several runs.
template <typename Arithmetic> double secondsOfPanel(int64_t k) {
  alignas(64) float a[kPanelM * kGemmDepth] = {};
  alignas(64) float b[kPanelN * kGemmDepth] = {};
  alignas(64) float c[kPanelM * kPanelN] = {};
  Ahead none;
  double least = 1;
  for (int i = 0; i < 16; ++i) {
    const auto start = std::chrono::steady_clock::now();
    kInnerTable<Arithmetic>[kPanelM - 1](kPanelN, k, a, {b, kPanelN, nullptr},
                                         c, kPanelN, true, nullptr, none);
    const std::chrono::duration<double> passed =
        std::chrono::steady_clock::now() - start;
    least = std::min(least, passed.count());
  }
  return least;
}

} // namespace

bool knowsPairs() { return true; }

bool pairsAreFaster() {
  static const bool faster = secondsOfPanel<Pairs>(kGemmDepth / 2) <
                             secondsOfPanel<Singles>(kGemmDepth);
  return faster;
}

void runPairs(Stream &stream, const Problem &problem, void *scratch) {
  runWith<Pairs>(stream, problem, scratch);
}

void packPairsA(const Matrix &a, int64_t m, int64_t k, float *to) {
  Pairs::packA(a, m, k, to);
}

void packPairsB(const Matrix &b, int64_t k, int64_t n, float *to) {
  Pairs::packB(b, k, n, to);
}

void innerPairs(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                float *c, int64_t ldc) {
  Ahead none;
  kInnerTable<Pairs>[m - 1](n, (k + 1) / 2, a, {b, kPanelN, nullptr}, c, ldc,
                            false, nullptr, none);
}

} // namespace tmc::gemm

#endif
