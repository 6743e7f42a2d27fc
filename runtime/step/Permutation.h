//===- Permutation.h - the order of samples in an epoch ---------*- C++ -*-===//
//
// A permutation of n samples for each (seed, epoch). at(i) computes one element
// in O(1) time and memory: no list of samples is kept or sorted, a checkpoint
// needs only the seed, and a run can start at any position. The numbers are
// Philox's, so every machine and every number of threads has the same order.
//
// The construction is the swap-or-not shuffle. A round pairs x with k - x
// (modulo n) and exchanges the two elements of a pair if a random bit of the
// pair says so:
//
//     k  = random number of the round in [0, n)
//     x' = (k - x) mod n
//     x  = x' if bit(round, max(x, x')) else x
//
// A round is its own inverse, so each round is a permutation, for every n. A
// Feistel network permutes powers of two: another n needs walks along cycles,
// and a domain of a few samples has too few bits for its halves. A sorted list
// of random keys takes 8 bytes a sample and a sort in each epoch.
//
// Counters of Philox, under the key `seed`, with c3 = the epoch:
//
//     k of a round     (0, 0, kKeys + round)
//     bit of a pair    (low32(max), high32(max), kBits + round)
//
// Source: V. T. Hoang, B. Morris, P. Rogaway, "An enciphering scheme based on a
// card shuffle", CRYPTO 2012.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_PERMUTATION_H
#define TMC_RUNTIME_STEP_PERMUTATION_H

#include "runtime/kernels/Philox.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tmc {

class Permutation {
public:
  /// The paper's bound falls with each round. 90 rounds are in use for lists
  /// of up to 2^40 entries; source: the shuffle of Ethereum's beacon chain.
  static constexpr uint32_t kRounds = 90;
  static constexpr uint32_t kKeys = 0x6b657900, kBits = 0x62697400;

  /// The order of [0, count) in an epoch; count > 0. Epochs count from 0.
  Permutation(uint64_t seed, int64_t epoch, int64_t count)
      : key0_(uint32_t(seed)), key1_(uint32_t(seed >> 32)),
        epoch_(uint32_t(epoch)), count_(uint64_t(count)) {
    for (uint32_t round = 0; round < kRounds; ++round) {
      const PhiloxWords w = words(0, kKeys + round);
      const uint64_t number = uint64_t(w.w[1]) << 32 | w.w[0];
      // number / 2^64 of the count. The bias is below count / 2^64.
      sums_[round] = uint64_t((unsigned __int128)number * count_ >> 64);
    }
  }

  /// The sample at place `index` of the epoch.
  int64_t at(int64_t index) const {
    uint64_t x = uint64_t(index);
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t sum = sums_[round];
      const uint64_t other = sum >= x ? sum - x : sum + count_ - x;
      if (words(std::max(x, other), kBits + round).w[0] & 1)
        x = other;
    }
    return int64_t(x);
  }

private:
  PhiloxWords words(uint64_t number, uint32_t stream) const {
    return philox4x32(uint32_t(number), uint32_t(number >> 32), stream, epoch_,
                      key0_, key1_);
  }

  uint32_t key0_, key1_, epoch_;
  uint64_t count_;
  std::array<uint64_t, kRounds> sums_; // k of each round
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_PERMUTATION_H
