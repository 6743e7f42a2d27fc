//===- RadixPass.h - the arithmetic of a stable radix sort ------*- C++ -*-===//
//
// Pairs (key, value) are sorted by one digit of the key per pass, least
// significant digit first. A tile of pairs belongs to one block; thread d of it
// owns digit d:
//
//     counts[d][tile] = pairs of the tile with digit d   (one thread each)
//     starts          = sum of all earlier counts, digit by digit
//     thread d walks the tile in order and moves its pairs to starts[d][tile]++
//
// Each pair's place depends on the keys only: there are no atomics, and equal
// keys keep their order.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_RADIXPASS_H
#define TMC_RUNTIME_CUDA_RADIXPASS_H

#include "runtime/kernels/Embedding.h"
#include "runtime/kernels/Portable.h"

#include <cstdint>

namespace tmc::cuda {

constexpr int kDigitBits = kSortDigitBits;
constexpr int kDigits = 1 << kDigitBits;
/// Pairs of one tile.
constexpr int64_t kSortTile = 2048;

TMC_HD inline int digitOf(int32_t key, int pass) {
  return int(uint32_t(key) >> (pass * kDigitBits)) & (kDigits - 1);
}

struct SortPair {
  int32_t key, value;
};

/// The offsets of the pieces of a sort's scratch, in bytes.
struct SortScratch {
  int64_t tiles, first, second, counts, bytes;

  constexpr explicit SortScratch(int64_t pairs)
      : tiles((pairs + kSortTile - 1) / kSortTile), first(0),
        second(pairs * int64_t(sizeof(SortPair))), counts(2 * second),
        bytes(counts + tiles * kDigits * 4) {}
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_RADIXPASS_H
