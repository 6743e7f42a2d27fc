//===- PhiloxSimd.h - random words for a vector of counters -----*- C++ -*-===//
//
// The ten rounds of Philox.h with one counter per lane: the same words, a
// register at a time.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_PHILOXSIMD_H
#define TMC_RUNTIME_CPU_PHILOXSIMD_H

#include "runtime/cpu/Simd.h"
#include "runtime/kernels/Philox.h"

namespace tmc::simd {

using VL = uint64_t __attribute__((vector_size(kWidth * 4)));

inline VU splatWord(uint32_t x) {
  VU v{};
  for (int i = 0; i < kWidth; ++i)
    v[i] = x;
  return v;
}

/// The 64-bit products of the even lanes of a and b.
inline VL multiplyEven(VU a, VU b) {
#if defined(__AVX512F__)
  return (VL)_mm512_maskz_mul_epu32(__mmask8(-1), (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (VL)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
  VL r;
  for (int i = 0; i < kWidth / 2; ++i)
    r[i] = uint64_t(a[2 * i]) * b[2 * i];
  return r;
#endif
}

inline void multiplyWide(VU a, VU m, VU &high, VU &low) {
  const VL even = multiplyEven(a, m);
  const VL odd = multiplyEven((VU)((VL)a >> 32), m);
  const VL top = VL{} + 0xffffffff00000000ull;
  high = (VU)((even >> 32) | (odd & top));
  low = (VU)((even & ~top) | (odd << 32));
}

/// words[j] holds word j of the quad of each lane; `low` and `high` are the
/// halves of the quads' numbers.
inline void philoxQuads(const Philox &philox, VU low, VU high, VU (&words)[4]) {
  VU c0 = low, c1 = high;
  VU c2 = splatWord(philox.stream), c3 = splatWord(philox.step);
  const VU m0 = splatWord(0xD2511F53u), m1 = splatWord(0xCD9E8D57u);
  uint32_t k0 = philox.key0, k1 = philox.key1;
  for (int round = 0; round < 10; ++round) {
    VU h0, l0, h1, l1;
    multiplyWide(c0, m0, h0, l0);
    multiplyWide(c2, m1, h1, l1);
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

} // namespace tmc::simd

#endif // TMC_RUNTIME_CPU_PHILOXSIMD_H
