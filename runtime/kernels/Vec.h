//===- Vec.h - several elements at once, on both backends -------*- C++ -*-===//
//
// The value types of fused kernels. `Floats<N>` is N floats, `Ints<N>` and
// `Longs<N>` N integers of 32 and 64 bits, `Mask<N>` N booleans. N is 1 (plain
// scalars) or kLanes: on the cpu a GCC vector as wide as a register, on cuda a
// struct of four, or of eight. A kernel's body is a template over N; the same
// code is the body of the vector loop, of its tail, and of a cuda thread.
//
// No contraction and no reordering: operations run as written, in the same
// order for each N, so that vector body and tail agree bit for bit. Only an
// explicit `fma` is fused.
//
// The layout of elements in memory: Storage.h.
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

/// N elements of T, with the size and alignment of one vector access.
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
/// The result of comparing floats: 0 or -1 per lane.
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

/// Bits of one type read as another of the same size.
template <typename To, typename From> TMC_HD TMC_INLINE To bitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

/// The number of lanes and their type, for a value of any of these types.
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
TMC_LANE_TRAITS(int8_t)
TMC_LANE_TRAITS(uint8_t)
TMC_LANE_TRAITS(uint16_t)
TMC_LANE_TRAITS(int32_t)
TMC_LANE_TRAITS(uint32_t)
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
    // Compiles to a broadcast, unlike a loop over the lanes. x - 0 is x for
    // every x; x + 0 isn't for -0.
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

/// f of each lane, one by one, for functions without a vector form.
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
#ifdef TMC_PACKED_LANES
template <int N>
TMC_HD TMC_INLINE Pack<bool, N> logicalNot(Pack<bool, N> mask) {
  for (int i = 0; i < N; ++i)
    mask[i] = !mask[i];
  return mask;
}
#else
TMC_INLINE Mask<kLanes> logicalNot(Mask<kLanes> mask) { return ~mask; }
#endif

/// Converts any lanes to lanes of To: float and integers.
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
template <typename To, int N>
TMC_HD TMC_INLINE Pack<To, N> fromMask(Pack<bool, N> mask) {
  return convert<To>(mask);
}
#else
template <typename To>
TMC_INLINE Lanes<To, kLanes> fromMask(Ints<kLanes> mask) {
  return __builtin_convertvector(mask & 1, Lanes<To, kLanes>);
}
#endif

/// The result of a comparison, as a mask of the width of floats.
TMC_HD TMC_INLINE bool asMask(bool answer) { return answer; }
#ifdef TMC_PACKED_LANES
template <int N> TMC_HD TMC_INLINE Pack<bool, N> asMask(Pack<bool, N> answer) {
  return answer;
}
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

#ifdef TMC_PACKED_LANES
template <int N>
TMC_HD TMC_INLINE Pack<float, N> fma(Pack<float, N> a, Pack<float, N> b,
                                     Pack<float, N> c) {
  Pack<float, N> r;
  for (int i = 0; i < N; ++i)
    r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
}
template <int N> TMC_HD TMC_INLINE Pack<float, N> sqrt(Pack<float, N> x) {
  return lanewise(x, [](float v) { return __builtin_sqrtf(v); });
}
#else
TMC_INLINE Floats<kLanes> fma(Floats<kLanes> a, Floats<kLanes> b,
                              Floats<kLanes> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  Floats<kLanes> r;
  for (int i = 0; i < kLanes; ++i)
    r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}
TMC_INLINE Floats<kLanes> sqrt(Floats<kLanes> x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_ps(x);
#elif defined(__AVX__)
  return _mm256_sqrt_ps(x);
#elif defined(__SSE2__)
  return _mm_sqrt_ps(x);
#else
  return lanewise(x, [](float v) { return __builtin_sqrtf(v); });
#endif
}
#endif

/// `x`, or `most` where x is larger; `x`, or `least` where x is smaller. A NaN
/// stays.
template <typename V> TMC_HD TMC_INLINE V atMost(V x, float most) {
#if !defined(TMC_PACKED_LANES) && defined(__AVX512F__)
  // Without an order, the instruction gives its second operand.
  if constexpr (lanesOf<V> == kLanes)
    return _mm512_maskz_min_ps(__mmask16(-1), splat<kLanes>(most), x);
#endif
  return select(asMask(x > most), splat<lanesOf<V>>(most), x);
}
template <typename V> TMC_HD TMC_INLINE V atLeast(V x, float least) {
#if !defined(TMC_PACKED_LANES) && defined(__AVX512F__)
  if constexpr (lanesOf<V> == kLanes)
    return _mm512_maskz_max_ps(__mmask16(-1), splat<kLanes>(least), x);
#endif
  return select(asMask(x < least), splat<lanesOf<V>>(least), x);
}

/// The larger and the smaller of two values; if one is NaN, the result is NaN.
template <typename V> TMC_HD TMC_INLINE V max(V a, V b) {
  return select(asMask((a > b) | (a != a)), a, b);
}
template <typename V> TMC_HD TMC_INLINE V min(V a, V b) {
  return select(asMask((a < b) | (a != a)), a, b);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_VEC_H
