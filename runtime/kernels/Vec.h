//===- Vec.h - several elements at once, on both backends -------*- C++ -*-===//
//
// The value types of fused kernels. `Floats<N>` is N floats, `Ints<N>` and
// `Longs<N>` N integers of 32 and 64 bits, `Mask<N>` N truths. N is 1 (plain
// scalars) or kLanes: on the cpu a GCC vector as wide as a register, on cuda a
// struct of four. A kernel's body is a template over N; the same text is the
// body of the vector loop, of its tail, and of a cuda thread.
//
// No contraction, no reordering: an operation is what is written, in the same
// order for each N, so that vector body and tail agree bit for bit. `fma` fuses
// where it is written and nowhere else.
//
// Storage types (bf16, f16, i1 as a byte) are converted when loaded and stored.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_VEC_H
#define TMC_RUNTIME_KERNELS_VEC_H

#include "runtime/kernels/Portable.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(TMC_CUDA) && !defined(TMC_PACKED_LANES)
#define TMC_PACKED_LANES 1
#endif
#if !defined(TMC_PACKED_LANES) && (defined(__AVX__) || defined(__SSE2__))
#include <immintrin.h>
#endif

namespace tmc {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

#ifdef TMC_PACKED_LANES

constexpr int kLanes = 4;

/// N elements of T, as large and as aligned as a vector access of them.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T v[N];
  TMC_HD T operator[](int i) const { return v[i]; }
  TMC_HD T &operator[](int i) { return v[i]; }
};

template <typename T, int N> struct LanesOf { using type = Pack<T, N>; };
template <int N> struct MaskOf { using type = Pack<bool, N>; };

#else

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

template <typename T, int N> struct LanesOf {
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
/// What comparing floats yields: 0 or -1 per lane.
template <int N> struct MaskOf {
  using type = typename LanesOf<int32_t, N>::type;
};

#endif

template <typename T> struct LanesOf<T, 1> { using type = T; };
template <> struct MaskOf<1> { using type = bool; };

template <typename T, int N> using Lanes = typename LanesOf<T, N>::type;
template <int N> using Floats = Lanes<float, N>;
template <int N> using Ints = Lanes<int32_t, N>;
template <int N> using Longs = Lanes<int64_t, N>;
template <int N> using Mask = typename MaskOf<N>::type;

/// Storage only: the upper half of a float, and an IEEE half.
struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};

/// Bits of one type read as another of the same size.
template <typename To, typename From> TMC_HD TMC_INLINE To bitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

/// Number of lanes, and the type of one, of a value of any of these types.
template <typename T> struct LaneTraits {
  static constexpr int count = 1;
  using Element = T;
};

#ifdef TMC_PACKED_LANES

template <typename T, int N> struct LaneTraits<Pack<T, N>> {
  static constexpr int count = N;
  using Element = T;
};

#define TMC_PACK_BINARY(OP, RESULT)                                            \
  template <typename T, int N>                                                 \
  TMC_HD TMC_INLINE Pack<RESULT, N> operator OP(Pack<T, N> a, Pack<T, N> b) {  \
    Pack<RESULT, N> r;                                                         \
    for (int i = 0; i < N; ++i)                                                \
      r.v[i] = a.v[i] OP b.v[i];                                               \
    return r;                                                                  \
  }                                                                            \
  template <typename T, int N>                                                 \
  TMC_HD TMC_INLINE Pack<RESULT, N> operator OP(Pack<T, N> a, T b) {           \
    Pack<RESULT, N> r;                                                         \
    for (int i = 0; i < N; ++i)                                                \
      r.v[i] = a.v[i] OP b;                                                    \
    return r;                                                                  \
  }                                                                            \
  template <typename T, int N>                                                 \
  TMC_HD TMC_INLINE Pack<RESULT, N> operator OP(T a, Pack<T, N> b) {           \
    Pack<RESULT, N> r;                                                         \
    for (int i = 0; i < N; ++i)                                                \
      r.v[i] = a OP b.v[i];                                                    \
    return r;                                                                  \
  }
TMC_PACK_BINARY(+, T)
TMC_PACK_BINARY(-, T)
TMC_PACK_BINARY(*, T)
TMC_PACK_BINARY(/, T)
TMC_PACK_BINARY(%, T)
TMC_PACK_BINARY(&, T)
TMC_PACK_BINARY(|, T)
TMC_PACK_BINARY(^, T)
TMC_PACK_BINARY(<<, T)
TMC_PACK_BINARY(>>, T)
TMC_PACK_BINARY(<, bool)
TMC_PACK_BINARY(<=, bool)
TMC_PACK_BINARY(>, bool)
TMC_PACK_BINARY(>=, bool)
TMC_PACK_BINARY(==, bool)
TMC_PACK_BINARY(!=, bool)
#undef TMC_PACK_BINARY

template <typename T, int N>
TMC_HD TMC_INLINE Pack<T, N> operator-(Pack<T, N> a) {
  for (int i = 0; i < N; ++i)
    a.v[i] = -a.v[i];
  return a;
}

#else

#define TMC_LANE_TRAITS(T)                                                     \
  template <> struct LaneTraits<Lanes<T, kLanes>> {                            \
    static constexpr int count = kLanes;                                       \
    using Element = T;                                                         \
  };
TMC_LANE_TRAITS(float)
TMC_LANE_TRAITS(int32_t)
TMC_LANE_TRAITS(int64_t)
#undef TMC_LANE_TRAITS

#endif

template <typename V> constexpr int lanesOf = LaneTraits<V>::count;
template <typename V> using Element = typename LaneTraits<V>::Element;

//===----------------------------------------------------------------------===//
// Making, choosing, converting
//===----------------------------------------------------------------------===//

/// `x` in every lane.
template <int N, typename T> TMC_HD TMC_INLINE Lanes<T, N> splat(T x) {
  if constexpr (N == 1) {
    return x;
  } else {
#ifdef TMC_PACKED_LANES
    Lanes<T, N> r;
    for (int i = 0; i < N; ++i)
      r[i] = x;
    return r;
#else
    // Folds to a broadcast, which a loop over the lanes doesn't; x - 0 is x for
    // every x, where x + 0 isn't.
    return x - Lanes<T, N>{};
#endif
  }
}
template <int N> TMC_HD TMC_INLINE Mask<N> splatMask(bool x) {
  if constexpr (N == 1) {
    return x;
  } else {
#ifdef TMC_PACKED_LANES
    return splat<N>(x);
#else
    return splat<N>(-int32_t(x));
#endif
  }
}

/// f of each lane, one by one: for what has no vector form.
template <typename V, typename Fn> TMC_HD TMC_INLINE V lanewise(V x, Fn f) {
  if constexpr (lanesOf<V> == 1) {
    return f(x);
  } else {
    V r;
    for (int i = 0; i < lanesOf<V>; ++i)
      r[i] = f(x[i]);
    return r;
  }
}
template <typename V, typename Fn>
TMC_HD TMC_INLINE V lanewise(V x, V y, Fn f) {
  if constexpr (lanesOf<V> == 1) {
    return f(x, y);
  } else {
    V r;
    for (int i = 0; i < lanesOf<V>; ++i)
      r[i] = f(x[i], y[i]);
    return r;
  }
}

/// Lane by lane, a where the mask is true, else b.
template <typename V>
TMC_HD TMC_INLINE V select(Mask<lanesOf<V>> mask, V a, V b) {
  if constexpr (lanesOf<V> == 1) {
    return mask ? a : b;
  } else {
#ifdef TMC_PACKED_LANES
    V r;
    for (int i = 0; i < lanesOf<V>; ++i)
      r[i] = mask[i] ? a[i] : b[i];
    return r;
#else
    if constexpr (sizeof(V) == sizeof(mask))
      return mask ? a : b;
    else
      return __builtin_convertvector(mask, Lanes<int64_t, lanesOf<V>>) ? a : b;
#endif
  }
}

TMC_HD TMC_INLINE bool logicalNot(bool mask) { return !mask; }
TMC_HD TMC_INLINE Mask<kLanes> logicalNot(Mask<kLanes> mask) {
#ifdef TMC_PACKED_LANES
  for (int i = 0; i < kLanes; ++i)
    mask[i] = !mask[i];
  return mask;
#else
  return ~mask;
#endif
}

/// Any type of lanes to lanes of To: float and integers.
template <typename To, typename V>
TMC_HD TMC_INLINE Lanes<To, lanesOf<V>> convert(V x) {
  if constexpr (lanesOf<V> == 1) {
    return To(x);
  } else {
#ifdef TMC_PACKED_LANES
    Lanes<To, lanesOf<V>> r;
    for (int i = 0; i < lanesOf<V>; ++i)
      r[i] = To(x[i]);
    return r;
#else
    return __builtin_convertvector(x, Lanes<To, lanesOf<V>>);
#endif
  }
}

/// 1 where true, else 0.
template <typename To> TMC_HD TMC_INLINE To fromMask(bool mask) {
  return To(mask);
}
#ifdef TMC_PACKED_LANES
template <typename To>
TMC_HD TMC_INLINE Lanes<To, kLanes> fromMask(Mask<kLanes> mask) {
  return convert<To>(mask);
}
#else
template <typename To>
TMC_INLINE Lanes<To, kLanes> fromMask(Ints<kLanes> mask) {
  return __builtin_convertvector(mask & 1, Lanes<To, kLanes>);
}
#endif

/// A comparison's answer as a mask of floats' width.
TMC_HD TMC_INLINE bool asMask(bool answer) { return answer; }
#ifdef TMC_PACKED_LANES
TMC_HD TMC_INLINE Mask<kLanes> asMask(Mask<kLanes> answer) { return answer; }
#else
TMC_INLINE Mask<kLanes> asMask(Ints<kLanes> answer) { return answer; }
TMC_INLINE Mask<kLanes> asMask(Longs<kLanes> answer) {
  return __builtin_convertvector(answer, Mask<kLanes>);
}
#endif

//===----------------------------------------------------------------------===//
// Arithmetic that has no operator
//===----------------------------------------------------------------------===//

TMC_HD TMC_INLINE float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
TMC_HD TMC_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }

TMC_HD TMC_INLINE Floats<kLanes> fma(Floats<kLanes> a, Floats<kLanes> b,
                                     Floats<kLanes> c) {
#if !defined(TMC_PACKED_LANES) && defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif !defined(TMC_PACKED_LANES) && defined(__AVX__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  Floats<kLanes> r;
  for (int i = 0; i < kLanes; ++i)
    r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}
TMC_HD TMC_INLINE Floats<kLanes> sqrt(Floats<kLanes> x) {
#if !defined(TMC_PACKED_LANES) && defined(__AVX512F__)
  return _mm512_sqrt_ps(x);
#elif !defined(TMC_PACKED_LANES) && defined(__AVX__)
  return _mm256_sqrt_ps(x);
#elif !defined(TMC_PACKED_LANES) && defined(__SSE2__)
  return _mm_sqrt_ps(x);
#else
  return lanewise(x, [](float v) { return __builtin_sqrtf(v); });
#endif
}

/// The larger and the smaller; a NaN wins.
template <typename V> TMC_HD TMC_INLINE V max(V a, V b) {
  return select(asMask((a > b) | (a != a)), a, b);
}
template <typename V> TMC_HD TMC_INLINE V min(V a, V b) {
  return select(asMask((a < b) | (a != a)), a, b);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TMC_HD TMC_INLINE float widen(bf16 x) {
  return bitsAs<float>(uint32_t(x.bits) << 16);
}
/// To the nearest, ties to even; a NaN stays one.
TMC_HD TMC_INLINE bf16 toBf16(float x) {
  const uint32_t u = bitsAs<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u)
    return {uint16_t((u >> 16) | 0x40)};
  return {uint16_t((u + 0x7fffu + ((u >> 16) & 1)) >> 16)};
}

/// An IEEE half, by its bits: exact, denormals included.
TMC_HD inline float widen(f16 x) {
  const uint32_t sign = uint32_t(x.bits & 0x8000u) << 16;
  const uint32_t rest = x.bits & 0x7fffu;
  if (rest >= 0x7c00u) // inf or NaN
    return bitsAs<float>(sign | 0x7f800000u | (rest << 13));
  // The exponent is rebiased by a multiplication, which renders denormals too.
  const float scaled = bitsAs<float>(rest << 13) * bitsAs<float>(0x77800000u);
  return bitsAs<float>(sign | bitsAs<uint32_t>(scaled));
}
/// To the nearest, ties to even; too large becomes inf.
TMC_HD inline f16 toF16(float x) {
  uint32_t u = bitsAs<uint32_t>(x);
  const uint16_t sign = uint16_t((u >> 16) & 0x8000u);
  u &= 0x7fffffffu;
  if (u > 0x7f800000u)
    return {uint16_t(sign | 0x7e00u)};
  if (u >= 0x477ff000u) // 65520 and more
    return {uint16_t(sign | 0x7c00u)};
  if (u < 0x38800000u) { // below 2^-14: adding 0.5 aligns the denormal's bits
    const float aligned = bitsAs<float>(u) + 0.5f;
    return {uint16_t(sign | (bitsAs<uint32_t>(aligned) - 0x3f000000u))};
  }
  u += 0xc8000fffu + ((u >> 13) & 1); // rebias the exponent by -112, round
  return {uint16_t(sign | (u >> 13))};
}

/// N lanes in a row in memory. Unaligned unless `Aligned`.
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

/// Loads N elements as what the kernel computes with.
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
template <int N, bool A = false>
TMC_HD TMC_INLINE Floats<N> loadLanes(const bf16 *p) {
  if constexpr (N == 1) {
    return widen(*p);
  } else {
#ifdef TMC_PACKED_LANES
    const Lanes<bf16, N> raw = loadRaw<N, A>(p);
    Floats<N> r;
    for (int i = 0; i < N; ++i)
      r[i] = widen(raw[i]);
    return r;
#else
    const auto raw = loadRaw<N>(reinterpret_cast<const uint16_t *>(p));
    return bitsAs<Floats<N>>(__builtin_convertvector(raw, Lanes<uint32_t, N>)
                             << 16);
#endif
  }
}
template <int N, bool A = false>
TMC_HD TMC_INLINE Floats<N> loadLanes(const f16 *p) {
  if constexpr (N == 1) {
    return widen(*p);
  } else {
    Floats<N> r;
    for (int i = 0; i < N; ++i)
      r[i] = widen(p[i]);
    return r;
  }
}
/// i1, a byte each.
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
template <int N, bool A = false>
TMC_HD TMC_INLINE void storeLanes(bf16 *p, Floats<N> x) {
  if constexpr (N == 1) {
    *p = toBf16(x);
  } else {
#ifdef TMC_PACKED_LANES
    Lanes<bf16, N> raw;
    for (int i = 0; i < N; ++i)
      raw[i] = toBf16(x[i]);
    storeRaw<N, A>(p, raw);
#else
    using U = Lanes<uint32_t, N>;
    const U u = bitsAs<U>(x);
    const U rounded = (u + 0x7fffu + ((u >> 16) & 1)) >> 16;
    const U nan = (u >> 16) | 0x40;
    const U bits = (u & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
    storeRaw<N>(reinterpret_cast<uint16_t *>(p),
                __builtin_convertvector(bits, Lanes<uint16_t, N>));
#endif
  }
}
template <int N, bool A = false>
TMC_HD TMC_INLINE void storeLanes(f16 *p, Floats<N> x) {
  if constexpr (N == 1) {
    *p = toF16(x);
  } else {
    for (int i = 0; i < N; ++i)
      p[i] = toF16(x[i]);
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

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_VEC_H
