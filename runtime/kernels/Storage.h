//===- Storage.h - elements in memory and in kernels ------------*- C++ -*-===//
//
// Kernels compute floats in f32, small integers in i32, booleans in masks. An
// element in memory may be narrower:
//
//              sign, exponent, mantissa   too large becomes
//   bf16         1      8         7       inf
//   f16          1      5        10       inf, from 65520 on
//   f8e4m3       1      4         3       the largest, 448: there is no inf
//   f8e5m2       1      5         2       the largest, 57344
//   i8, i1       a byte each
//
// A store rounds to the nearest, ties to even, subnormals included; a NaN stays
// a NaN. `rounded` gives the value after a store and a load. All functions give
// the same bits for one element, for several, and on both backends.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_STORAGE_H
#define TMC_RUNTIME_KERNELS_STORAGE_H

#include "runtime/kernels/Vec.h"

#include <type_traits>

namespace tmc {

//===----------------------------------------------------------------------===//
// Narrow floats
//===----------------------------------------------------------------------===//

/// The upper half of a float.
struct bf16 {
  uint16_t bits;
};

/// A float with fewer exponent bits, and the constants of its conversions:
/// codes from `kSpecial` on aren't finite; floats with bits `kOverflow` or more
/// become `kMost`.
struct f16 {
  uint16_t bits;
  static constexpr int kMantissa = 10, kBias = 15;
  static constexpr uint32_t kSpecial = 0x7c00, kNan = 0x7e00, kMost = 0x7c00;
  static constexpr int32_t kOverflow = 0x477ff000; // 65520
};
struct f8e4m3 {
  uint8_t bits;
  static constexpr int kMantissa = 3, kBias = 7;
  static constexpr uint32_t kSpecial = 0x7f, kNan = 0x7f, kMost = 0x7e;
  static constexpr int32_t kOverflow = 0x43e00000; // 448
};
struct f8e5m2 {
  uint8_t bits;
  static constexpr int kMantissa = 2, kBias = 15;
  static constexpr uint32_t kSpecial = 0x7c, kNan = 0x7f, kMost = 0x7b;
  static constexpr int32_t kOverflow = 0x47600000; // 57344
};

/// f32 with 10 mantissa bits: products may read f32 like this; never stored.
struct tf32 {};
/// A float in memory that is rounded to T when it is read.
template <typename T> struct ReadAs { float value; };

template <typename T>
constexpr bool isNarrow =
    std::is_same_v<T, bf16> || std::is_same_v<T, f16> ||
    std::is_same_v<T, f8e4m3> || std::is_same_v<T, f8e5m2>;

/// Set if the processor converts halves itself. The results equal the code
/// below, except that the processor keeps some bits of a NaN.
#if !defined(TMC_PACKED_LANES) && defined(__F16C__)
#define TMC_NATIVE_HALVES 1
#else
#define TMC_NATIVE_HALVES 0
#endif

/// Set if one instruction moves 16-bit numbers between a whole vector of them
/// and the halves of floats.
#if !defined(TMC_PACKED_LANES) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define TMC_UPPER_HALVES 1
#else
#define TMC_UPPER_HALVES 0
#endif

/// Set if a card converts pairs of halves itself, with the same results but for
/// a NaN's bits.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TMC_CARD_HALVES 1
#else
#define TMC_CARD_HALVES 0
#endif

/// True for the types that a card converts.
template <typename T>
constexpr bool isCardHalf = TMC_CARD_HALVES &&
                            (std::is_same_v<T, bf16> || std::is_same_v<T, f16>);

/// The bits of two floats rounded to T, the first one's in the lower half.
template <typename T>
TMC_HD TMC_INLINE uint32_t narrowPair([[maybe_unused]] float low,
                                      [[maybe_unused]] float high) {
  uint32_t pair = 0;
#if TMC_CARD_HALVES
  if constexpr (std::is_same_v<T, bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#endif
  return pair;
}

/// The floats whose bits in T are `bits`, one per lane.
template <typename T, typename U>
TMC_HD TMC_INLINE Floats<lanesOf<U>> widenBits(U bits) {
  constexpr int N = lanesOf<U>;
  if constexpr (std::is_same_v<T, bf16>) {
    return bitsAs<Floats<N>>(bits << 16u);
  } else {
    constexpr uint32_t sign = 1u << (8 * sizeof(T) - 1),
                       cut = 23 - T::kMantissa;
    const U size = bits & (sign - 1u), aligned = size << cut;
    // A multiplication shifts the exponent to f32's bias and makes subnormals
    // normal.
    const float scale = bitsAs<float>(uint32_t(254 - T::kBias) << 23);
    const U finite = bitsAs<U>(bitsAs<Floats<N>>(aligned) * scale);
    const auto isSpecial =
        asMask(bitsAs<Ints<N>>(size) >= int32_t(T::kSpecial));
    return bitsAs<Floats<N>>(select(isSpecial, aligned | 0x7f800000u, finite) |
                             ((bits & sign) << uint32_t(32 - 8 * sizeof(T))));
  }
}

/// The bits of `x` rounded to T, in the low bits of each lane.
template <typename T, typename F>
TMC_HD TMC_INLINE Lanes<uint32_t, lanesOf<F>> narrowBits(F x) {
  constexpr int N = lanesOf<F>;
  using U = Lanes<uint32_t, N>;
  const U u = bitsAs<U>(x), size = u & 0x7fffffffu;
  const Ints<N> order = bitsAs<Ints<N>>(size);
  if constexpr (std::is_same_v<T, bf16>) {
    const U even = (u + 0x7fffu + ((u >> 16u) & 1u)) >> 16u;
    return select(asMask(order > 0x7f800000), (u >> 16u) | 0x40u, even);
  } else {
    constexpr uint32_t sign = 1u << (8 * sizeof(T) - 1),
                       cut = 23 - T::kMantissa;
    constexpr uint32_t rebias = uint32_t(127 - T::kBias) << 23;
    constexpr uint32_t half = (1u << (cut - 1)) - 1;
    const U normal = (size + (half - rebias) + ((size >> cut) & 1u)) >> cut;
    // Subnormals: adding a float with the same unit rounds the value.
    constexpr uint32_t unit = uint32_t(127 + 24 - T::kBias - T::kMantissa)
                              << 23;
    const U subnormal =
        bitsAs<U>(bitsAs<Floats<N>>(size) + bitsAs<float>(unit)) - unit;
    constexpr int32_t leastNormal = (128 - T::kBias) << 23;
    U bits = select(asMask(order < leastNormal), subnormal, normal);
    bits = select(asMask(order >= T::kOverflow), splat<N>(T::kMost), bits);
    bits = select(asMask(order > 0x7f800000), splat<N>(T::kNan), bits);
    return bits | ((u >> uint32_t(32 - 8 * sizeof(T))) & sign);
  }
}

template <typename T> TMC_HD TMC_INLINE float widen(T x) {
#if TMC_NATIVE_HALVES
  if constexpr (std::is_same_v<T, f16>)
    return _cvtsh_ss(x.bits);
#endif
  return widenBits<T>(uint32_t(x.bits));
}

template <typename T> TMC_HD TMC_INLINE T narrow(float x) {
  if constexpr (isCardHalf<T>)
    return {decltype(T::bits)(narrowPair<T>(x, 0))};
#if TMC_NATIVE_HALVES
  if constexpr (std::is_same_v<T, f16>)
    return {uint16_t(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT))};
#endif
  return {decltype(T::bits)(narrowBits<T>(x))};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// N consecutive elements in memory, one per lane. Unaligned unless `Aligned`.
template <int N, bool Aligned = false, typename T>
TMC_HD TMC_INLINE Lanes<T, N> loadRaw(const T *p) {
  if constexpr (N == 1) {
    return *p;
  } else {
#ifdef TMC_PACKED_LANES
    if constexpr (Aligned) {
      return *reinterpret_cast<const Lanes<T, N> *>(p);
    } else {
      Lanes<T, N> r;
      for (int i = 0; i < N; ++i)
        r[i] = p[i];
      return r;
    }
#else
    Lanes<T, N> r;
    memcpy(&r, p, sizeof r);
    return r;
#endif
  }
}
template <int N, bool Aligned = false, typename T>
TMC_HD TMC_INLINE void storeRaw(T *p, Lanes<T, N> x) {
  if constexpr (N == 1) {
    *p = x;
  } else {
#ifdef TMC_PACKED_LANES
    if constexpr (Aligned)
      *reinterpret_cast<Lanes<T, N> *>(p) = x;
    else
      for (int i = 0; i < N; ++i)
        p[i] = x[i];
#else
    memcpy(p, &x, sizeof x);
#endif
  }
}

#if TMC_NATIVE_HALVES
TMC_INLINE Floats<kLanes> widenHalves(Lanes<uint16_t, kLanes> bits) {
#ifdef __AVX512F__
  // With a full mask: g++ 12 warns of the other form.
  return _mm512_maskz_cvtph_ps(__mmask16(-1), bitsAs<__m256i>(bits));
#else
  return _mm256_cvtph_ps(bitsAs<__m128i>(bits));
#endif
}
TMC_INLINE Lanes<uint16_t, kLanes> narrowHalves(Floats<kLanes> x) {
#ifdef __AVX512F__
  const auto bits =
      _mm512_maskz_cvtps_ph(__mmask16(-1), x, _MM_FROUND_TO_NEAREST_INT);
#else
  const auto bits = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
#endif
  return bitsAs<Lanes<uint16_t, kLanes>>(bits);
}
#endif

#if TMC_UPPER_HALVES
/// Widens bf16 numbers.
TMC_INLINE Floats<kLanes> widenUpper(Lanes<uint16_t, kLanes> bits) {
  const __m512i words =
      _mm512_maskz_cvtepu16_epi32(__mmask16(-1), bitsAs<__m256i>(bits));
  return bitsAs<Floats<kLanes>>(bitsAs<Lanes<uint32_t, kLanes>>(words) << 16u);
}
/// Rounds to bf16 in the upper halves; the lower ones are anything.
TMC_INLINE Lanes<uint32_t, kLanes> roundedInUpper(Floats<kLanes> x) {
  using U = Lanes<uint32_t, kLanes>;
  const U u = bitsAs<U>(x);
  const U even = (u + 0x7fffu) + ((u >> 16u) & 1u);
  // A NaN keeps its upper bits and stays a NaN.
  return bitsAs<U>(_mm512_mask_or_epi32(
      bitsAs<__m512i>(even), _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
      bitsAs<__m512i>(u), _mm512_set1_epi32(0x400000)));
}
TMC_INLINE Lanes<uint16_t, kLanes> upperHalves(Lanes<uint32_t, kLanes> x) {
  const __m512i odd =
      _mm512_set_epi16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 31, 29,
                       27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  const __m512i halves =
      _mm512_maskz_permutexvar_epi16(__mmask32(-1), odd, bitsAs<__m512i>(x));
  Lanes<uint16_t, kLanes> lower; // g++ 12 warns of the cast.
  memcpy(&lower, &halves, sizeof lower);
  return lower;
}
#endif

/// Loads N elements as the type in which kernels compute.
template <int N, bool A = false>
TMC_HD TMC_INLINE Floats<N> loadLanes(const float *p) {
  return loadRaw<N, A>(p);
}
template <int N, bool A = false>
TMC_HD TMC_INLINE Ints<N> loadLanes(const int32_t *p) {
  return loadRaw<N, A>(p);
}
template <int N, bool A = false>
TMC_HD TMC_INLINE Longs<N> loadLanes(const int64_t *p) {
  return loadRaw<N, A>(p);
}
/// i8, as 32-bit integers.
template <int N, bool A = false>
TMC_HD TMC_INLINE Ints<N> loadLanes(const int8_t *p) {
  return convert<int32_t>(loadRaw<N, A>(p));
}
template <int N, bool A = false, typename T>
TMC_HD TMC_INLINE std::enable_if_t<isNarrow<T>, Floats<N>>
loadLanes(const T *p) {
  if constexpr (N == 1) {
    return widen(*p);
  } else {
    using Bits = decltype(T::bits);
    const Lanes<Bits, N> bits =
        loadRaw<N, A>(reinterpret_cast<const Bits *>(p));
#if TMC_NATIVE_HALVES
    if constexpr (std::is_same_v<T, f16>)
      return widenHalves(bits);
#endif
#if TMC_UPPER_HALVES
    if constexpr (std::is_same_v<T, bf16>)
      return widenUpper(bits);
    else
#endif
      return widenBits<T>(convert<uint32_t>(bits));
  }
}
/// i1, one byte each.
template <int N, bool A = false>
TMC_HD TMC_INLINE Mask<N> loadLanes(const bool *p) {
  if constexpr (N == 1) {
    return *p;
  } else {
    const auto raw = loadRaw<N, A>(reinterpret_cast<const uint8_t *>(p));
#ifdef TMC_PACKED_LANES
    return raw != uint8_t(0);
#else
    return __builtin_convertvector(raw, Ints<N>) != 0;
#endif
  }
}

template <int N, bool A = false>
TMC_HD TMC_INLINE void storeLanes(float *p, Floats<N> x) {
  storeRaw<N, A>(p, x);
}
template <int N, bool A = false>
TMC_HD TMC_INLINE void storeLanes(int32_t *p, Ints<N> x) {
  storeRaw<N, A>(p, x);
}
template <int N, bool A = false>
TMC_HD TMC_INLINE void storeLanes(int64_t *p, Longs<N> x) {
  storeRaw<N, A>(p, x);
}
template <int N, bool A = false>
TMC_HD TMC_INLINE void storeLanes(int8_t *p, Ints<N> x) {
  storeRaw<N, A>(p, convert<int8_t>(x));
}
template <int N, bool A = false, typename T>
TMC_HD TMC_INLINE std::enable_if_t<isNarrow<T>> storeLanes(T *p, Floats<N> x) {
  if constexpr (N == 1) {
    *p = narrow<T>(x);
  } else {
    using Bits = decltype(T::bits);
    Lanes<Bits, N> bits;
#if TMC_NATIVE_HALVES
    if constexpr (std::is_same_v<T, f16>)
      bits = narrowHalves(x);
    else
#endif
#if TMC_UPPER_HALVES
        if constexpr (std::is_same_v<T, bf16>)
      bits = upperHalves(roundedInUpper(x));
    else
#endif
        if constexpr (isCardHalf<T>) {
      for (int i = 0; i < N; i += 2) {
        const uint32_t pair = narrowPair<T>(x[i], x[i + 1]);
        bits[i] = Bits(pair);
        bits[i + 1] = Bits(pair >> 16);
      }
    } else {
      bits = convert<Bits>(narrowBits<T>(x));
    }
    storeRaw<N, A>(reinterpret_cast<Bits *>(p), bits);
  }
}
template <int N, bool A = false>
TMC_HD TMC_INLINE void storeLanes(bool *p, Mask<N> x) {
  if constexpr (N == 1) {
    *p = x;
  } else {
    storeRaw<N, A>(reinterpret_cast<uint8_t *>(p), fromMask<uint8_t>(x));
  }
}

/// storeLanes() of values that are bf16 numbers already.
template <int N> TMC_HD TMC_INLINE void storeUpper(bf16 *p, Floats<N> x) {
  const auto bits = bitsAs<Lanes<uint32_t, N>>(x);
#if TMC_UPPER_HALVES
  if constexpr (N == kLanes)
    return storeRaw<N>(reinterpret_cast<uint16_t *>(p), upperHalves(bits));
#endif
  storeRaw<N>(reinterpret_cast<uint16_t *>(p), convert<uint16_t>(bits >> 16u));
}

/// `x` after a store as T and a load.
template <typename T, typename F> TMC_HD TMC_INLINE F rounded(F x) {
#if TMC_NATIVE_HALVES
  if constexpr (std::is_same_v<T, f16>) {
    if constexpr (lanesOf<F> == 1)
      return widen(narrow<T>(x));
    else
      return widenHalves(narrowHalves(x));
  }
#endif
  if constexpr (isCardHalf<T> && std::is_same_v<T, bf16>) {
    if constexpr (lanesOf<F> == 1) {
      return bitsAs<float>(narrowPair<T>(0, x) & 0xffff0000u);
    } else {
      for (int i = 0; i < lanesOf<F>; i += 2) {
        const uint32_t pair = narrowPair<T>(x[i], x[i + 1]);
        x[i] = bitsAs<float>(pair << 16);
        x[i + 1] = bitsAs<float>(pair & 0xffff0000u);
      }
      return x;
    }
  }
#if TMC_UPPER_HALVES
  if constexpr (std::is_same_v<T, bf16> && lanesOf<F> == kLanes)
    return bitsAs<F>(roundedInUpper(x) & 0xffff0000u);
  else
#endif
      if constexpr (std::is_same_v<T, tf32> || std::is_same_v<T, bf16>) {
    constexpr int N = lanesOf<F>;
    constexpr uint32_t cut = std::is_same_v<T, tf32> ? 13 : 16;
    constexpr uint32_t low = (1u << cut) - 1;
    using U = Lanes<uint32_t, N>;
    const U u = bitsAs<U>(x);
    const U even = (u + (low >> 1) + ((u >> cut) & 1u)) & ~low;
    const auto isNan = asMask(bitsAs<Ints<N>>(u & 0x7fffffffu) > 0x7f800000);
    // A NaN keeps its upper bits and stays a NaN.
    return bitsAs<F>(select(isNan, (u | 0x400000u) & ~low, even));
  } else {
    return widenBits<T>(narrowBits<T>(x));
  }
}

template <int N, bool A = false, typename T>
TMC_HD TMC_INLINE Floats<N> loadLanes(const ReadAs<T> *p) {
  return rounded<T>(loadLanes<N, A>(&p->value));
}
template <typename T> TMC_HD TMC_INLINE float widen(ReadAs<T> x) {
  return rounded<T>(x.value);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_STORAGE_H
