//===- Philox.h - counter-based random numbers ------------------*- C++ -*-===//
//
// Philox4x32-10. A number depends only on (seed, step, stream, sample,
// element). Recomputation, reordering, splitting the batch or another number of
// threads doesn't change it, so dropout masks don't have to be stored.
//
//   key      = (low32(seed), high32(seed))
//   counter  = (low32(idx / 4), high32(idx / 4), stream, low32(step))
//   idx      = sample * elementsPerSample + element        (64 bits)
//   uniform  = (word[idx % 4] >> 8) * 2^-24                in [0, 1)
//
// Dropout keeps an element where uniform >= p and scales it by 1 / (1 - p).
//
// Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_PHILOX_H
#define TMC_RUNTIME_KERNELS_PHILOX_H

#include "runtime/kernels/Portable.h"

#include <cstdint>

namespace tmc {

struct PhiloxWords {
  uint32_t w[4];
};

constexpr int kPhiloxRounds = 10;
/// A round's keys are those of the round before plus these.
constexpr uint32_t kPhiloxKey0 = 0x9E3779B9u, kPhiloxKey1 = 0xBB67AE85u;

/// A round, with its keys.
TMC_HD inline PhiloxWords philoxRound(const PhiloxWords &c, uint32_t key0,
                                      uint32_t key1) {
  const uint64_t p0 = uint64_t(0xD2511F53u) * c.w[0];
  const uint64_t p1 = uint64_t(0xCD9E8D57u) * c.w[2];
  return {{uint32_t(p1 >> 32) ^ c.w[1] ^ key0, uint32_t(p1),
           uint32_t(p0 >> 32) ^ c.w[3] ^ key1, uint32_t(p0)}};
}

/// The ten rounds, on any unsigned 32-bit counter and key.
TMC_HD inline PhiloxWords philox4x32(uint32_t c0, uint32_t c1, uint32_t c2,
                                     uint32_t c3, uint32_t k0, uint32_t k1) {
  PhiloxWords c{{c0, c1, c2, c3}};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    c = philoxRound(c, k0, k1);
    k0 += kPhiloxKey0;
    k1 += kPhiloxKey1;
  }
  return c;
}

/// The random numbers of one op in one step. `seed` points at [seed, step].
struct Philox {
  uint32_t key0, key1, stream, step;

  TMC_HD Philox(const int64_t *seed, uint32_t stream)
      : key0(uint32_t(uint64_t(seed[0]))),
        key1(uint32_t(uint64_t(seed[0]) >> 32)), stream(stream),
        step(uint32_t(uint64_t(seed[1]))) {}

  /// Words 4 * quad .. 4 * quad + 3 of the op's sequence.
  TMC_HD PhiloxWords quad(uint64_t quad) const {
    return philox4x32(uint32_t(quad), uint32_t(quad >> 32), stream, step, key0,
                      key1);
  }
  /// The word of element `index` of the op's sequence.
  TMC_HD uint32_t word(uint64_t index) const {
    return quad(index / 4).w[index % 4];
  }
  TMC_HD static float uniform(uint32_t word) {
    return float(word >> 8) * (1.0f / 16777216.0f);
  }
  TMC_HD float uniformAt(uint64_t index) const { return uniform(word(index)); }
};

/// A word keeps its element when `(word >> 8) >= philoxThreshold(p)`: the same
/// set as uniform >= p, without a conversion per element (uniform is a multiple
/// of 2^-24, so the comparison in integers is exact).
TMC_HD inline uint32_t philoxThreshold(double p) {
  const double scaled = p * 16777216.0;
  const uint32_t whole = uint32_t(scaled);
  return double(whole) < scaled ? whole + 1 : whole;
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_PHILOX_H
