//===- NarrowRows.h - conversion of rows of narrow numbers ------*- C++ -*-===//
#ifndef TMC_RUNTIME_CPU_NARROWROWS_H
#define TMC_RUNTIME_CPU_NARROWROWS_H

#include "runtime/cpu/Simd.h"
#include "runtime/kernels/DType.h"
#include "runtime/kernels/RowEnd.h"

namespace tmc {

/// Calls f with a value of the storage type of `type`, a narrow float type.
template <typename F> void withStorage(DType type, F &&f) {
  switch (type) {
  case DType::BF16:
    return f(bf16{});
  case DType::F16:
    return f(f16{});
  case DType::F8E4M3:
    return f(f8e4m3{});
  case DType::F8E5M2:
    return f(f8e5m2{});
  default:
    __builtin_unreachable(); // The kernels' takes().
  }
}

/// Calls f with a value of the storage type of `type`, f32 or 16 bits.
template <typename F> void withFloats(DType type, F &&f) {
  switch (type) {
  case DType::F32:
    return f(0.0f);
  case DType::BF16:
    return f(bf16{});
  case DType::F16:
    return f(f16{});
  default:
    __builtin_unreachable(); // The kernels' takes().
  }
}

/// Copies `count` < kWidth elements to or from a whole vector of them.
template <typename T>
TMC_INLINE void loadPart(const T *from, int64_t count, T *vector) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (sizeof(T) == 2) {
    const __m256i v = _mm256_maskz_loadu_epi16(simd::firstLanes(count), from);
    std::memcpy(vector, &v, sizeof v);
    return;
  }
  if constexpr (sizeof(T) == 4) {
    const __m512 v = _mm512_maskz_loadu_ps(simd::firstLanes(count), from);
    std::memcpy(vector, &v, sizeof v);
    return;
  }
#endif
  copyPieces<simd::kWidth / 2>(from, int(count), vector);
}
template <typename T>
TMC_INLINE void storePart(const T *vector, int64_t count, T *to) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (sizeof(T) == 2) {
    __m256i v;
    std::memcpy(&v, vector, sizeof v);
    _mm256_mask_storeu_epi16(to, simd::firstLanes(count), v);
    return;
  }
#endif
  copyPieces<simd::kWidth / 2>(vector, int(count), to);
}

/// The first `count` <= kWidth elements, widened; then zeros.
template <typename T> TMC_INLINE simd::V loadSome(const T *p, int64_t count) {
  if (count == simd::kWidth)
    return simd::V(loadLanes<simd::kWidth>(p));
  if constexpr (std::is_same_v<T, float>) {
    return simd::loadPart(p, count);
  } else {
    T some[simd::kWidth] = {};
    loadPart(p, count, some);
    return simd::V(loadLanes<simd::kWidth>(some));
  }
}
/// Rounds the first `count` <= kWidth lanes to the type at `p`, and stores
/// them.
template <typename T>
TMC_INLINE void storeSome(T *p, simd::V v, int64_t count) {
  if (count == simd::kWidth) {
    storeLanes<simd::kWidth>(p, v);
  } else if constexpr (std::is_same_v<T, float>) {
    simd::storePart(p, v, count);
  } else {
    T some[simd::kWidth];
    storeLanes<simd::kWidth>(some, v);
    storePart(some, count, p);
  }
}

/// kWidth neighbours or, if not `whole`, the first `count`.
template <bool whole> struct SomeLanes {
  int64_t count;

  template <typename T> TMC_INLINE simd::V load(const T *p) const {
    return loadSome(p, whole ? simd::kWidth : count);
  }
  template <typename T> TMC_INLINE void store(T *p, simd::V v) const {
    storeSome(p, v, whole ? simd::kWidth : count);
  }
};

/// Runs body(lanes, first element) for all vectors of a row.
template <typename F> void eachVector(int64_t elements, F &&body) {
  int64_t i = 0;
  for (; i + simd::kWidth <= elements; i += simd::kWidth)
    body(SomeLanes<true>{simd::kWidth}, i);
  if (i < elements)
    body(SomeLanes<false>{elements - i}, i);
}

/// Widens `Count` elements, a multiple of a register's lanes.
template <int Count, typename T>
TMC_INLINE void widenRow(const T *from, float *to) {
  constexpr int N = simd::kWidth;
  static_assert(Count % N == 0);
#pragma GCC unroll 4
  for (int i = 0; i < Count; i += N)
    storeLanes<N>(to + i, loadLanes<N>(from + i));
}

template <typename T>
TMC_INLINE void widenRow(const T *from, int64_t count, float *to) {
  constexpr int N = simd::kWidth;
  int64_t i = 0;
  for (; i + N <= count; i += N)
    widenRow<N>(from + i, to + i);
  if (i < count)
    storeSome(to + i, loadSome(from + i, count - i), count - i);
}

template <typename T> void narrowRow(const float *from, int64_t count, T *to) {
  constexpr int N = simd::kWidth;
  int64_t i = 0;
  for (; i + N <= count; i += N)
    storeLanes<N>(to + i, loadLanes<N>(from + i));
  if (i < count)
    storeSome(to + i, simd::loadPart(from + i, count - i), count - i);
}

/// Rows of any float type in memory, `stride` elements apart.
struct StoredRows {
  const void *data;
  int64_t stride;
  DType type;

  StoredRows shifted(int64_t elements) const {
    return {static_cast<const char *>(data) + elements * sizeOf(type), stride,
            type};
  }
  StoredRows row(int64_t i) const { return shifted(i * stride); }
  float *floats() const {
    return static_cast<float *>(const_cast<void *>(data));
  }
};

/// Rounds `rows` rows of floats, `fromStride` apart, to those at `to`.
inline void narrowRows(const float *from, int64_t fromStride, int64_t rows,
                       int64_t columns, const StoredRows &to) {
  withStorage(to.type, [&](auto like) {
    using T = decltype(like);
    T *at = static_cast<T *>(const_cast<void *>(to.data));
    for (int64_t i = 0; i < rows; ++i)
      narrowRow(from + i * fromStride, columns, at + i * to.stride);
  });
}

/// Widens `rows` rows to floats, `toStride` apart.
inline void widenRows(const StoredRows &from, int64_t rows, int64_t columns,
                      float *to, int64_t toStride) {
  withStorage(from.type, [&](auto like) {
    using T = decltype(like);
    const T *at = static_cast<const T *>(from.data);
    for (int64_t i = 0; i < rows; ++i)
      widenRow(at + i * from.stride, columns, to + i * toStride);
  });
}

} // namespace tmc

#endif // TMC_RUNTIME_CPU_NARROWROWS_H
