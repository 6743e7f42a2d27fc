//===- Draws.h - a row of random numbers ------------------------*- C++ -*-===//
//
// The uniform numbers of consecutive elements, for fused kernels. On the cpu 64
// are computed at a time. The four words of one Philox call belong to four
// consecutive elements, so none is wasted. The numbers are those of Philox.h.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_DRAWS_H
#define TMC_RUNTIME_KERNELS_DRAWS_H

#include "runtime/kernels/Philox.h"
#include "runtime/kernels/Storage.h"

namespace tmc {

/// Numbers for elements first, first + 1, ... of one op's sequence.
class Draws {
public:
  /// `seed` points at [seed, step].
  TMC_HD Draws(const int64_t *seed, uint32_t stream, uint64_t first)
      : philox_(seed, stream), first_(first) {}

  /// Uniform numbers in [0, 1) for elements [at, at + N).
  template <int N> TMC_HD TMC_INLINE Floats<N> at(int64_t at) {
#ifdef TMC_PACKED_LANES
    const uint64_t index = first_ + uint64_t(at);
    if constexpr (N % 4 == 0) {
      Floats<N> r;
      if (index % 4 == 0) {
        for (int quad = 0; quad < N / 4; ++quad) {
          const PhiloxWords words = philox_.quad(index / 4 + quad);
          for (int i = 0; i < 4; ++i)
            r[4 * quad + i] = Philox::uniform(words.w[i]);
        }
      } else {
        for (int i = 0; i < N; ++i)
          r[i] = philox_.uniformAt(index + i);
      }
      return r;
    } else {
      return philox_.uniformAt(index);
    }
#else
    if (at / kBlock != block_)
      fill(at / kBlock);
    const auto words =
        loadRaw<N>(reinterpret_cast<const int32_t *>(words_) + at % kBlock);
    return convert<float>(words) * (1.0f / 16777216.0f);
#endif
  }

private:
  Philox philox_;
  uint64_t first_;

#ifndef TMC_PACKED_LANES
  static constexpr int kBlock = 64;
  int64_t block_ = -1;
  uint32_t words_[kBlock]; // already shifted right by 8

  // Not inlined: one copy per kernel is enough, and it is called once per 64
  // elements.
  __attribute__((noinline)) void fill(int64_t block) {
    block_ = block;
    const uint64_t from = first_ + uint64_t(block) * kBlock;
    if (from % 4 != 0) {
      for (int i = 0; i < kBlock; ++i)
        words_[i] = philox_.word(from + i) >> 8;
      return;
    }
    int done = 0;
#if defined(__AVX2__)
    for (; done < kBlock; done += 4 * kQuads)
      fillQuads(from / 4 + done / 4, words_ + done);
#endif
    for (; done < kBlock; done += 4) {
      const PhiloxWords quad = philox_.quad(from / 4 + done / 4);
      for (int i = 0; i < 4; ++i)
        words_[done + i] = quad.w[i] >> 8;
    }
  }

#if defined(__AVX2__)
  // One quad per 64-bit lane; only the low half of a lane counts.
#if defined(__AVX512F__)
  using Wide = __m512i;
  // The masked forms: g++ 12 warns of an undefined operand of the plain ones.
  static constexpr __mmask8 kAllLanes = 0xff;
  static constexpr int kQuads = 8;
  static Wide mul(Wide a, Wide b) {
    return _mm512_maskz_mul_epu32(kAllLanes, a, b);
  }
  static Wide low(Wide a, Wide b) {
    return _mm512_maskz_unpacklo_epi64(kAllLanes, a, b);
  }
  static Wide high(Wide a, Wide b) {
    return _mm512_maskz_unpackhi_epi64(kAllLanes, a, b);
  }
#else
  using Wide = __m256i;
  static constexpr int kQuads = 4;
  static Wide mul(Wide a, Wide b) { return _mm256_mul_epu32(a, b); }
  static Wide low(Wide a, Wide b) { return _mm256_unpacklo_epi64(a, b); }
  static Wide high(Wide a, Wide b) { return _mm256_unpackhi_epi64(a, b); }
#endif
  typedef uint64_t U __attribute__((vector_size(sizeof(Wide))));
  typedef uint32_t W __attribute__((vector_size(sizeof(Wide))));
  static U all(uint64_t x) { return U{} + x; }

  void fillQuads(uint64_t quad, uint32_t *to) const {
    // Even lanes take the first half of the quads, odd lanes the second half:
    // the interleaving below then gives the words in order.
    U q;
    for (int i = 0; i < kQuads; ++i)
      q[i] = quad + uint64_t(i % 2 ? kQuads / 2 + i / 2 : i / 2);
    U c0 = q, c1 = q >> 32, c2 = all(philox_.stream), c3 = all(philox_.step);
    const Wide m0 = Wide(all(0xD2511F53u)), m1 = Wide(all(0xCD9E8D57u));
    uint32_t k0 = philox_.key0, k1 = philox_.key1;
    for (int round = 0; round < 10; ++round) {
      const U p0 = U(mul(Wide(c0), m0)), p1 = U(mul(Wide(c2), m1));
      c0 = (p1 >> 32) ^ c1 ^ all(k0);
      c2 = (p0 >> 32) ^ c3 ^ all(k1);
      c1 = p1;
      c3 = p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const U mask = all(0xffffffffu);
    const Wide w01 = Wide((c0 & mask) | (c1 << 32));
    const Wide w23 = Wide((c2 & mask) | (c3 << 32));
    const W first = W(low(w01, w23)) >> 8, second = W(high(w01, w23)) >> 8;
    memcpy(to, &first, sizeof first);
    memcpy(to + 2 * kQuads, &second, sizeof second);
  }
#endif
#endif
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_DRAWS_H
