//===- TensorTile.h - tiles of bf16 attention, tensor cores -----*- C++ -*-===//
//
// The common part of the kernels of TensorAttention.cu. A block of four warps
// owns 64 rows of operands, a warp 16 of them. It walks tiles of the other
// side's rows, two operands at a time and in two stages: the next tile arrives
// while the current one is used.
//
// A tile is rows of bf16, Depth + 8 elements apart, so that the eight rows of a
// matrix are in different banks. Scores stay in registers: a lane's sums of two
// products of 8 columns are its operand for a product along these 16 columns.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_TENSORTILE_H
#define TMC_RUNTIME_CUDA_TENSORTILE_H

#include "runtime/cuda/AttentionTile.h"
#include "runtime/cuda/TensorCore.h"

namespace tmc::cuda {

constexpr int kTensorWarps = 4, kTensorThreads = kTensorWarps * kWarp;
constexpr int kOwnRows = 16 * kTensorWarps; // of a block

/// Heads of up to Depth channels, walked in tiles of Walked rows.
template <int Depth_, int Walked_> struct TensorShape {
  static constexpr int Depth = Depth_, Walked = Walked_;
  static constexpr int kStride = Depth + 8;
  static constexpr int kOwn = kOwnRows * kStride, kOther = Walked * kStride;
  static constexpr int kChannels = Depth / 8; // fragments of a result
  static constexpr int kColumns = Walked / 8; // fragments of scores
  static constexpr int kKeptStride = Walked + 4;
  static_assert(Depth % 32 == 0 && Walked % 16 == 0);
};

__device__ inline int linearThread() {
  return int(threadIdx.y) * kSide + int(threadIdx.x);
}

/// An operand of one head: rows of `headDim` elements.
struct TensorRows {
  const uint16_t *data;
  int64_t rows, stride; // in elements
  bool isAligned;       // each row's start and length are multiples of 16 bytes

  __device__ TensorRows(const void *base, int64_t shift, int64_t rows,
                        int64_t stride, int64_t headDim)
      : data(static_cast<const uint16_t *>(base) + shift), rows(rows),
        stride(stride), isAligned(reinterpret_cast<uintptr_t>(data) % 16 == 0 &&
                                  stride % 8 == 0 && headDim % 8 == 0) {}
};

/// The rows of `head` in an operand with these strides.
__device__ inline TensorRows rowsOfHead(const void *base,
                                        const AttentionStrides &strides,
                                        int64_t rows, int64_t headDim,
                                        int64_t batch, int64_t head) {
  return {base, batch * strides.batch + head * strides.head, rows, strides.time,
          headDim};
}

/// Starts to copy rows [row0, row0 + Count) into a tile, with zeros for missing
/// elements. They are visible after waitGroup and a barrier.
template <typename Shape, int Count>
__device__ void fetchTile(const TensorRows &from, int64_t row0, int64_t headDim,
                          uint16_t *tile) {
  constexpr int kChunks = Shape::Depth / 8;
  for (int i = linearThread(); i < Count * kChunks; i += kTensorThreads) {
    const int r = i / kChunks, d = i % kChunks * 8;
    const bool exists = row0 + r < from.rows && d < headDim;
    const uint16_t *source =
        from.data + (exists ? (row0 + r) * from.stride + d : 0);
    uint16_t *to = tile + r * Shape::kStride + d;
    if (from.isAligned)
      copyAsync<16>(to, source, exists ? 16 : 0);
    else
      for (int e = 0; e < 8; ++e)
        to[e] = exists && d + e < headDim ? source[e] : uint16_t(0);
  }
}

/// The same rows of two operands, into consecutive tiles.
template <typename Shape, int Count>
__device__ void fetchPair(const TensorRows &first, const TensorRows &second,
                          int64_t row0, int64_t headDim, uint16_t *tiles) {
  fetchTile<Shape, Count>(first, row0, headDim, tiles);
  fetchTile<Shape, Count>(second, row0, headDim,
                          tiles + Count * Shape::kStride);
}

/// Rows [row, row + 16) and channels [16 kk, 16 kk + 16) of a tile.
template <typename Shape>
__device__ FragmentA rowsOf(const uint16_t *tile, int row, int kk, int lane) {
  FragmentA a;
  loadMatrices<4>(a.words, tile + (row + lane % 16) * Shape::kStride + 16 * kk +
                               lane / 16 * 8);
  return a;
}

/// c[n] += a's 16 rows times rows 8n.. of a tile, over all channels.
template <typename Shape>
__device__ void multiplyRows(FragmentC (&c)[Shape::kColumns],
                             const uint16_t *own, int row,
                             const uint16_t *other, int lane) {
#pragma unroll
  for (int pair = 0; pair < Shape::Depth / 32; ++pair) {
    const FragmentA first = rowsOf<Shape>(own, row, 2 * pair, lane);
    const FragmentA second = rowsOf<Shape>(own, row, 2 * pair + 1, lane);
#pragma unroll
    for (int n = 0; n < Shape::kColumns; ++n) {
      uint32_t words[4];
      loadMatrices<4>(words, other + (8 * n + lane % 8) * Shape::kStride +
                                 32 * pair + lane / 8 * 8);
      mma<Element::BF16>(c[n], first, FragmentB{{words[0], words[1]}});
      mma<Element::BF16>(c[n], second, FragmentB{{words[2], words[3]}});
    }
  }
}

/// Two numbers as bf16, and the rest of each number as bf16.
__device__ inline void splitBF16(float low, float high, uint32_t &rounded,
                                 uint32_t &rest) {
  rounded = packBF16(low, high);
  rest = packBF16(low - widenBits<bf16>(rounded & 0xffffu),
                  high - widenBits<bf16>(rounded >> 16));
}

/// to[n] += scores' 16 rows times channels 8n.. of a tile, over the tile's
/// rows, which are the scores' columns.
template <typename Shape>
__device__ void multiplyScores(FragmentC (&to)[Shape::kChannels],
                               const FragmentC (&scores)[Shape::kColumns],
                               const uint16_t *tile, int lane) {
#pragma unroll
  for (int kk = 0; kk < Shape::Walked / 16; ++kk) {
    FragmentA rounded, rest;
    const float(&s0)[4] = scores[2 * kk].sums;
    const float(&s1)[4] = scores[2 * kk + 1].sums;
    splitBF16(s0[0], s0[1], rounded.words[0], rest.words[0]);
    splitBF16(s0[2], s0[3], rounded.words[1], rest.words[1]);
    splitBF16(s1[0], s1[1], rounded.words[2], rest.words[2]);
    splitBF16(s1[2], s1[3], rounded.words[3], rest.words[3]);
#pragma unroll
    for (int n = 0; n < Shape::kChannels; n += 2) {
      uint32_t words[4];
      loadMatrices<4, true>(words, tile +
                                       (16 * kk + lane % 16) * Shape::kStride +
                                       8 * n + lane / 16 * 8);
      const FragmentB left{{words[0], words[1]}}, right{{words[2], words[3]}};
      mma<Element::BF16>(to[n], rounded, left);
      mma<Element::BF16>(to[n], rest, left);
      mma<Element::BF16>(to[n + 1], rounded, right);
      mma<Element::BF16>(to[n + 1], rest, right);
    }
  }
}

template <int N> __device__ void zeroSums(FragmentC (&c)[N]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (float &sum : c[n].sums)
      sum = 0;
}

/// Writes a lane's part of row `half` (of g, g + 8) of a result.
template <int N>
__device__ void writeSums(const FragmentC (&c)[N], int half, float scale,
                          int64_t headDim, uint16_t *row, int lane) {
  const bool pairs = headDim % 2 == 0;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const int d = 8 * n + lane % 4 * 2;
    const uint32_t both =
        packBF16(c[n].sums[2 * half] * scale, c[n].sums[2 * half + 1] * scale);
    if (pairs) {
      if (d < headDim)
        *reinterpret_cast<uint32_t *>(row + d) = both;
      continue;
    }
    if (d < headDim)
      row[d] = uint16_t(both);
    if (d + 1 < headDim)
      row[d + 1] = uint16_t(both >> 16);
  }
}

/// Whether all these queries see all these keys, and scores are scaled products
/// only: true for most tiles of most models.
__device__ inline bool isPlain(const AttentionParams &p,
                               const AttentionExtras &extras, int64_t query0,
                               int64_t queries, int64_t key0, int64_t keys) {
  const int64_t first = query0 + p.keys - p.queries;
  const int64_t last = first + queries - 1, lastKey = key0 + keys - 1;
  return p.softcap <= 0 && !p.bias && p.mask == MaskKind::None &&
         !extras.groups && query0 + queries <= p.queries && lastKey < p.keys &&
         (!p.causal || lastKey <= first) &&
         (p.window <= 0 ||
          (last - key0 < p.window && lastKey - first < p.window));
}

template <typename Op> __device__ float overQuad(float x, Op op) {
  x = op(x, __shfl_xor_sync(0xffffffffu, x, 2));
  return op(x, __shfl_xor_sync(0xffffffffu, x, 1));
}

/// A block's own tiles, then two pairs of walked tiles, then the kept scores.
template <typename Shape, int Own> struct TensorTiles {
  uint16_t *own;
  float *kept;

  __device__ explicit TensorTiles(unsigned char *memory)
      : own(reinterpret_cast<uint16_t *>(memory)),
        kept(reinterpret_cast<float *>(own + Own * Shape::kOwn +
                                       4 * Shape::kOther)) {}
  __device__ uint16_t *other(int stage, int which) const {
    return own + Own * Shape::kOwn + (2 * stage + which) * Shape::kOther;
  }
  static int64_t bytes(const AttentionParams &p) {
    return (Own * Shape::kOwn + 4 * Shape::kOther) * 2 +
           (p.dropout > 0 ? int64_t(kOwnRows) * (kOwnRows + 4) * 4 : 0);
  }
};

/// s = own first rows times walked first rows, ds = second times second, of a
/// warp's rows from `row` on.
template <typename Shape>
__device__ void
multiplyPair(FragmentC (&s)[Shape::kColumns], FragmentC (&ds)[Shape::kColumns],
             const TensorTiles<Shape, 2> &tiles, int stage, int row, int lane) {
  zeroSums(s);
  zeroSums(ds);
  multiplyRows<Shape>(s, tiles.own, row, tiles.other(stage, 0), lane);
  multiplyRows<Shape>(ds, tiles.own + Shape::kOwn, row, tiles.other(stage, 1),
                      lane);
}

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_TENSORTILE_H
