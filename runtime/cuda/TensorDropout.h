//===- TensorDropout.h - dropout in fragments of scores ---------*- C++ -*-===//
//
// The elements that dropout removes from a lane's scores (TensorTile.h), as 32
// bits. A Philox call gives four elements: consecutive keys of one query, if
// the number of keys is a multiple of four. No call is computed twice in a
// tile, and no bit goes through shared memory.
//
//   scores [queries, keys]   Keys are in Order::Quads, so a lane has all four
//                            elements of its calls:
//                              bit 8 m + 4 half + i
//                              query g + 8 half, key 16 m + 4 t + i
//   scores [keys, queries]   Keys are in Order::Pairs. Lanes l and l ^ 4 have
//                            two elements each of the same calls. Each lane
//                            computes half of these, and they exchange bits:
//                              bit 4 n + 2 e + half
//                              key 2 g + half, query 8 n + 2 t + e
//
// The gradient of keys stores its bits for the gradient of queries. A word is
// for queries g and g + 8 of 16, and for 16 keys. Its byte t has the bits 4
// half + i above. Words [batch, heads, 16 queries, g, 16 keys].
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_TENSORDROPOUT_H
#define TMC_RUNTIME_CUDA_TENSORDROPOUT_H

#include "runtime/cuda/TensorTile.h"

namespace tmc::cuda {

/// The bit of a lane's score i, in the order of eachScore, with keys in an
/// order.
template <Order Keys> TMC_HD constexpr int droppedBit(int i) {
  const int n = i / 4, half = i / 2 % 2, e = i % 2;
  return Keys == Order::Quads ? 8 * (n / 2) + 4 * half + 2 * (n % 2) + e
                              : 4 * n + 2 * e + half;
}

/// True if dropout removes a lane's score i.
template <Order Keys>
__device__ __forceinline__ bool isDropped(uint32_t bits, int i) {
  return bits >> droppedBit<Keys>(i) & 1;
}

/// Hides from the compiler how x was computed: it is computed here, and not
/// again, and not before a loop.
__device__ __forceinline__ void complete([[maybe_unused]] uint32_t &x) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(x));
#endif
}

/// Dropout in one sample. Without dropout it does nothing, and no bit is set.
class TensorDropout {
public:
  __device__ TensorDropout(const AttentionParams &p,
                           const AttentionExtras &extras, int64_t batch,
                           bool drops)
      : drops(drops), seed(extras.seed), stream(p.stream), keys(p.keys) {
    if (!drops)
      return;
    threshold = philoxThreshold(float(p.dropout));
    const int64_t rows = p.rowsPerSample > 0 ? p.rowsPerSample : 1;
    sample = extras.samples[batch / rows] * rows + batch % rows;
  }

  /// Bits of scores [queries, keys]: 16 queries from `query0` on, and Keys keys
  /// from `key0` on.
  template <int Keys>
  __device__ __forceinline__ uint32_t ofQueries(const AttentionParams &p,
                                                int64_t head, int query0,
                                                int key0, int lane) const {
    if (!drops)
      return 0;
    const uint64_t first =
        element(p, head, query0 + lane / 4) + uint64_t(key0 + lane % 4 * 4);
    return nibbles<Keys / 8>(
        first, [](auto step, int i) { return i % 2 * step + i / 2 * 4; });
  }

  /// The calls that this lane computes of scores [keys, queries]: 16 keys from
  /// `key0` on, and Queries queries from `query0` on.
  template <int Queries>
  __device__ __forceinline__ uint32_t ofKeys(const AttentionParams &p,
                                             int64_t head, int query0, int key0,
                                             int lane) const {
    if (!drops)
      return 0;
    const uint64_t first =
        element(p, head, query0 + lane % 4 * 2 + lane / 4 % 2) +
        uint64_t(key0 + lane / 8 * 4);
    return nibbles<Queries / 8>(first,
                                [](auto step, int i) { return i * step; });
  }

private:
  /// The number of the first element of a query's row.
  __device__ uint64_t element(const AttentionParams &p, int64_t head,
                              int query) const {
    return uint64_t((sample * p.heads + head) * p.queries + query) *
           uint64_t(keys);
  }
  /// The rounds of several calls. A round's keys are computed once.
  template <int Count>
  __device__ __forceinline__ static void rounds(const Philox &philox,
                                                PhiloxWords (&calls)[Count]) {
    uint32_t round0 = philox.key0, round1 = philox.key1;
#pragma unroll
    for (int round = 0; round < kPhiloxRounds; ++round) {
#pragma unroll
      for (PhiloxWords &call : calls)
        call = philoxRound(call, round0, round1);
      round0 += kPhiloxKey0;
      round1 += kPhiloxKey1;
    }
  }
  /// Four more bits of dropped elements; the first one is the lowest.
  __device__ __forceinline__ uint32_t push(uint32_t bits,
                                           const PhiloxWords &words) const {
#pragma unroll
    for (int e = 3; e >= 0; --e)
      bits = bits << 1 | ((words.w[e] >> 8) - threshold) >> 31;
    return bits;
  }
  /// Four bits for each of Count fours of elements. They are offset(step, i)
  /// fours behind the first one, with a step of eight queries.
  template <int Count, typename Offset>
  __device__ __forceinline__ uint32_t nibbles(uint64_t first,
                                              Offset &&offset) const {
    // Read in each tile: between tiles they take no registers.
    const Philox philox(seed, stream);
    const uint64_t quad = first / 4;
    const uint32_t high = uint32_t(quad >> 32);
    uint32_t step8 = uint32_t(keys) * 2;
    complete(step8); // so that its multiples take no registers in the loop
    // All calls have the same upper half of their number.
    if (keys % 4 == 0 &&
        uint32_t((quad + offset(uint64_t(step8), Count - 1)) >> 32) == high) {
      uint32_t bits = 0;
      constexpr int kTogether = Count < 4 ? Count : 4;
#pragma unroll
      for (int i = Count - kTogether; i >= 0; i -= kTogether) {
        PhiloxWords calls[kTogether];
#pragma unroll
        for (int j = 0; j < kTogether; ++j)
          calls[j] = {{uint32_t(quad) + offset(step8, i + j), high,
                       philox.stream, philox.step}};
        rounds(philox, calls);
#pragma unroll
        for (int j = kTogether - 1; j >= 0; --j)
          bits = push(bits, calls[j]);
        complete(bits);
      }
      return bits;
    }
    uint32_t bits = 0;
#pragma unroll 1
    for (int i = Count - 1; i >= 0; --i) {
      const uint64_t at = first + 4 * offset(uint64_t(step8), i);
      uint32_t two = 0;
#pragma unroll 1
      for (int j = 1; j >= 0; --j)
        two = push(two, philox.quad(at / 4 + uint64_t(j)));
      bits = bits << 4 | (two >> at % 4 & 15);
    }
    return bits;
  }

  bool drops;
  const int64_t *seed;
  uint32_t stream, threshold = 0;
  int64_t sample = 0, keys;
};

/// The bits of a lane's scores [keys, queries], of the calls of both lanes.
__device__ __forceinline__ uint32_t exchangeDropped(uint32_t own, int lane) {
  const uint32_t other = __shfl_xor_sync(0xffffffffu, own, 4);
  const bool odd = lane / 4 % 2;
  const int shift = odd ? 2 : 0;
  constexpr uint32_t kPairs = 0x33333333;
  return ((odd ? other : own) >> shift & kPairs) |
         ((odd ? own : other) >> shift & kPairs) << 2;
}

/// The words that the gradient of keys stores; see attentionDroppedBytes.
namespace dropped {

/// The words of query g of the 16 queries from `query0` on.
__device__ __forceinline__ uint32_t *rowOf(const AttentionParams &p,
                                           uint32_t *words, int batch, int head,
                                           int query0, int g) {
  const int blocks = (int(p.queries) + 15) / 16;
  const int block = (batch * int(p.heads) + head) * blocks + query0 / 16;
  const int keyBlocks = (int(p.keys) + 63) / 64 * 4;
  return words + (block * 8 + g) * keyBlocks;
}

/// True if tiles of Walked rows have words; see attentionDroppedBytes.
template <int Walked> TMC_HD constexpr bool isStored() { return Walked >= 32; }

/// Stores the calls of TensorDropout::ofKeys, of all lanes of a warp.
template <int Queries>
__device__ __forceinline__ void store(const AttentionParams &p, uint32_t *words,
                                      int batch, int head, int query0, int key0,
                                      int lane, uint32_t own) {
  // A lane of a = lane / 8 has the calls of keys 4 a.. of queries r + 8 n.
  // Byte i of its bits is for the queries r + 16 i and r + 16 i + 8. The four
  // lanes of a query r exchange bytes.
  static_assert(isStored<Queries>());
  const int a = lane / 8;
  const uint32_t far = __shfl_xor_sync(0xffffffffu, own, 16);
  uint32_t mine, word;
  if constexpr (Queries == 64) {
    // Keys 4 (a % 2), in bytes 0 and 1, and 4 (a % 2) + 8, in bytes 2 and 3.
    mine =
        a < 2 ? __byte_perm(own, far, 0x5410) : __byte_perm(far, own, 0x7632);
    const uint32_t near = __shfl_xor_sync(0xffffffffu, mine, 8);
    word = a % 2 ? __byte_perm(near, mine, 0x7351)
                 : __byte_perm(mine, near, 0x6240);
  } else {
    mine =
        a < 2 ? __byte_perm(own, far, 0x0040) : __byte_perm(far, own, 0x0051);
    const uint32_t near = __shfl_xor_sync(0xffffffffu, mine, 8);
    word = a % 2 ? __byte_perm(near, mine, 0x5140)
                 : __byte_perm(mine, near, 0x5140);
  }
  const int block = Queries == 64 ? a : a / 2;
  const bool writes = Queries == 64 || a % 2 == 0;
  if (writes && query0 + 16 * block < int(p.queries))
    rowOf(p, words, batch, head, query0 + 16 * block,
          lane % 4 * 2 + lane / 4 % 2)[key0 / 16] = word;
}

/// Bits of scores [queries, keys], of Keys keys from `key0` on. `row` is that
/// of the lane's queries.
template <int Keys>
__device__ __forceinline__ uint32_t load(const uint32_t *row, int key0,
                                         int lane) {
  const uint32_t *from = row + key0 / 16;
  const uint32_t select = uint32_t(lane % 4) * 0x11 + 0x40;
  if constexpr (Keys == 64) {
    const uint4 x = *reinterpret_cast<const uint4 *>(from);
    return __byte_perm(__byte_perm(x.x, x.y, select),
                       __byte_perm(x.z, x.w, select), 0x5410);
  } else {
    const uint2 x = *reinterpret_cast<const uint2 *>(from);
    return __byte_perm(x.x, x.y, select);
  }
}

} // namespace dropped

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_TENSORDROPOUT_H
