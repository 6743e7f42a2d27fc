//===- RowEnd.h - the last columns of a row on the cpu ----------*- C++ -*-===//
//
// The columns of a row that don't fill a vector are one vector, too, of which
// the first lanes are used:
//
//     columns     0 .. 15  16 .. 31  32 .. 39
//                 [whole]  [whole ]  [8 of 16]      a row of 40, 16 lanes
//
// Element by element they would take up to 15 times the time of a whole vector.
// A row of 40 channels, as images have, would spend half of its time there.
//
// Memory is read and written in the used lanes only. The other lanes repeat the
// first one, so they compute nothing that it doesn't: no division by a zero of
// theirs stops a program. The bits of the used lanes are those of any vector.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ROWEND_H
#define TMC_RUNTIME_KERNELS_ROWEND_H

#include "runtime/kernels/Draws.h"
#include "runtime/kernels/Storage.h"

#if !defined(TMC_CUDA) && !defined(TMC_PACKED_LANES)

namespace tmc {

/// Copies `count` < 2 * Piece elements in pieces of powers of two: a copy of
/// unknown size is a call, which takes longer than the work on them.
template <int Piece, typename T>
TMC_INLINE void copyPieces(const T *from, int count, T *to) {
  if (count & Piece) {
    memcpy(to, from, Piece * sizeof(T));
    from += Piece;
    to += Piece;
  }
  if constexpr (Piece > 1)
    copyPieces<Piece / 2>(from, count, to);
}
/// The bits of `count` < kLanes lanes.
TMC_INLINE uint32_t firstBits(int count) { return (1u << count) - 1; }

#if defined(__AVX512BW__) && defined(__AVX512VL__)

/// Copies the first `count` of kLanes elements and repeats the first one.
template <typename T> TMC_INLINE void copyIn(const T *from, int count, T *to) {
  const uint32_t bits = firstBits(count);
  if constexpr (sizeof(T) == 1) {
    const __m128i v = _mm_mask_loadu_epi8(_mm_set1_epi8(bitsAs<char>(*from)),
                                          __mmask16(bits), from);
    memcpy(to, &v, sizeof v);
  } else if constexpr (sizeof(T) == 2) {
    const __m256i v = _mm256_mask_loadu_epi16(
        _mm256_set1_epi16(bitsAs<short>(*from)), __mmask16(bits), from);
    memcpy(to, &v, sizeof v);
  } else if constexpr (sizeof(T) == 4) {
    const __m512i v = _mm512_mask_loadu_epi32(
        _mm512_set1_epi32(bitsAs<int>(*from)), __mmask16(bits), from);
    memcpy(to, &v, sizeof v);
  } else {
    for (int i = 0; i < kLanes; ++i)
      to[i] = from[i < count ? i : 0];
  }
}
template <typename T> TMC_INLINE void copyOut(const T *from, int count, T *to) {
  const uint32_t bits = firstBits(count);
  if constexpr (sizeof(T) == 1) {
    __m128i v;
    memcpy(&v, from, sizeof v);
    _mm_mask_storeu_epi8(to, __mmask16(bits), v);
  } else if constexpr (sizeof(T) == 2) {
    __m256i v;
    memcpy(&v, from, sizeof v);
    _mm256_mask_storeu_epi16(to, __mmask16(bits), v);
  } else if constexpr (sizeof(T) == 4) {
    __m512i v;
    memcpy(&v, from, sizeof v);
    _mm512_mask_storeu_epi32(to, __mmask16(bits), v);
  } else {
    for (int i = 0; i < count; ++i)
      to[i] = from[i];
  }
}

#else

/// Copies the first `count` of kLanes elements and repeats the first one.
template <typename T> TMC_INLINE void copyIn(const T *from, int count, T *to) {
  for (int i = 0; i < kLanes; ++i)
    to[i] = *from;
  copyPieces<kLanes / 2>(from, count, to);
}
template <typename T> TMC_INLINE void copyOut(const T *from, int count, T *to) {
  copyPieces<kLanes / 2>(from, count, to);
}

#endif

/// loadLanes of the first `count` < kLanes elements; the first one in the other
/// lanes.
template <typename T> TMC_INLINE auto loadFirst(const T *p, int count) {
  alignas(64) T some[kLanes];
  copyIn(p, count, some);
  return loadLanes<kLanes>(static_cast<const T *>(some));
}
/// storeLanes of the first `count` < kLanes lanes.
template <typename T, typename V>
TMC_INLINE void storeFirst(T *p, V value, int count) {
  alignas(64) T some[kLanes];
  storeLanes<kLanes>(some, value);
  copyOut(static_cast<const T *>(some), count, p);
}

#if defined(__AVX512F__) || defined(__AVX__)
/// Floats need no copy in memory.
TMC_INLINE Floats<kLanes> loadFirst(const float *p, int count) {
#if defined(__AVX512F__)
  return _mm512_mask_loadu_ps(_mm512_set1_ps(*p), __mmask16(firstBits(count)),
                              p);
#else
  const Ints<kLanes> number = {0, 1, 2, 3, 4, 5, 6, 7};
  const __m256i used = __m256i(number < count);
  return _mm256_blendv_ps(_mm256_set1_ps(*p), _mm256_maskload_ps(p, used),
                          __m256(used));
#endif
}
TMC_INLINE void storeFirst(float *p, Floats<kLanes> value, int count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, __mmask16(firstBits(count)), value);
#else
  const Ints<kLanes> number = {0, 1, 2, 3, 4, 5, 6, 7};
  _mm256_maskstore_ps(p, __m256i(number < count), value);
#endif
}
#endif

/// The last columns of a row, from `at` on, as Columns (Row.h).
struct LastColumns {
  int64_t at;
  int count; // below kLanes

  template <typename T> TMC_INLINE auto load(const T *row) const {
    return loadFirst(row + at, count);
  }
  template <typename T, typename V>
  TMC_INLINE void store(T *row, V value) const {
    storeFirst(row + at, value, count);
  }
  template <typename V> TMC_INLINE void storeRounded(bf16 *row, V value) const {
    alignas(64) bf16 some[kLanes];
    storeUpper<kLanes>(some, value);
    copyOut(static_cast<const bf16 *>(some), count, row + at);
  }
  template <typename T>
  TMC_INLINE auto gather(const T *table, Longs<kLanes> index) const {
    decltype(loadLanes<kLanes>(table)) r{};
    for (int i = 0; i < kLanes; ++i) {
      const auto x = loadLanes<1>(table + index[i]);
      if constexpr (sizeof(x) == 1)
        r[i] = -int(x);
      else
        r[i] = x;
    }
    return r;
  }
  template <typename T>
  TMC_INLINE auto loadSame(const T *table, int64_t index) const {
    return spread(loadLanes<1>(table + index));
  }
  TMC_INLINE auto spread(float x) const { return splat<kLanes>(x); }
  TMC_INLINE auto spread(int32_t x) const { return splat<kLanes>(x); }
  TMC_INLINE auto spread(int64_t x) const { return splat<kLanes>(x); }
  TMC_INLINE auto spread(bool x) const { return splatMask<kLanes>(x); }

  TMC_INLINE Longs<kLanes> index() const {
    Longs<kLanes> r;
    for (int i = 0; i < kLanes; ++i)
      r[i] = at + (i < count ? i : 0);
    return r;
  }
  TMC_INLINE Floats<kLanes> random(Draws &draws) const {
    return draws.at<kLanes>(at);
  }
  template <typename Kind>
  TMC_INLINE void add(float *partial, Floats<kLanes> value) const {
    storeFirst(partial + at,
               Kind::combine(loadFirst(partial + at, count), value), count);
  }
  template <typename Kind, typename Sums>
  TMC_INLINE Floats<kLanes> total(const Sums &sums, int k) const {
    const float *partial = sums.column(k) + at;
    Floats<kLanes> sum = loadFirst(partial, count);
    for (int64_t t = 1; t < sums.tiling.rowTiles; ++t)
      sum = Kind::combine(
          sum, loadFirst(partial + t * sums.tiling.partialFloats, count));
    return sum;
  }
};

} // namespace tmc

#endif

#endif // TMC_RUNTIME_KERNELS_ROWEND_H
