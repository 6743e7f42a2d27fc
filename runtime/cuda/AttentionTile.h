//===- AttentionTile.h - tiles of attention in shared memory ----*- C++ -*-===//
//
// The common part of the kernels of attention and its gradient. A block of 16 x
// 16 threads works on one tile of Rows queries by Rows keys at a time. Operands
// come in tiles of Rows rows by Depth channels (the head's channels, then
// zeros). Rows are Depth + 4 floats apart, so that 16-byte reads of eight rows
// use all banks. Tiles hold f32 for every type in memory: a narrow element
// would be widened at each of its Rows reads, and the sums have the same bits
// as those of f32.
//
// In a tile of scores, thread (tx, ty) owns the queries ty * kPer + i and the
// keys tx + 16 * j. In a result with the shape of an operand, it owns the rows
// ty * kPer + i and the channels 64 * g + 4 * tx + e.
//
//        key  0 1 2 .. 15 16 ..            channel 0 1 2 3 4 .. 63 64 ..
//   query 0   0 1 2 .. 15 0 1 ..  (tx)        row  0 0 0 0 1 .. 15  0 ..  (tx)
//         .   ty = 0: kPer rows
//
// Every sum has one fixed order: within a thread along k, then across the 16
// threads of a row by exchanges at distances 8, 4, 2, 1.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_ATTENTIONTILE_H
#define TMC_RUNTIME_CUDA_ATTENTIONTILE_H

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Stored.h"
#include "runtime/kernels/Attention.h"
#include "runtime/kernels/AttentionHidden.h"
#include "runtime/kernels/Math.h"
#include "runtime/kernels/Philox.h"

namespace tmc::cuda {

constexpr int kSide = 16; // threads along each side of a block
constexpr int kAttentionThreads = kSide * kSide;
/// Blocks that fit the registers of a multiprocessor, with 128 registers a
/// thread. Without this limit the assembler uses up to 198, so that one block
/// fits, or 64, with spills.
constexpr int kAttentionBlocks = 2;

/// Sizes of the tiles for heads of up to Depth channels: they fit 99 KiB of
/// shared memory, or the 64 KiB of a block on sm_75.
template <int Rows_, int Depth_> struct TileShape {
  static constexpr int Rows = Rows_, Depth = Depth_;
  static constexpr int kPer = Rows / kSide;     // rows, and keys, a thread
  static constexpr int kGroups = Depth / 64;    // float4 a thread and row
  static constexpr int kStride = Depth + 4;     // floats
  static constexpr int kScoreStride = Rows + 4; // floats
  static constexpr int kOperandFloats = Rows * kStride;
  static constexpr int kScoreFloats = Rows * kScoreStride;
  static_assert(Rows % kSide == 0 && Depth % 64 == 0);
};

TMC_HD inline int64_t clampTo(int64_t x, int64_t end) {
  return x < 0 ? 0 : x < end ? x : end;
}
/// Keys below this are visible because of the prefix.
__device__ inline int64_t prefixOf(const AttentionParams &p,
                                   const AttentionExtras &extras,
                                   int64_t batch) {
  return extras.prefix ? extras.prefix[batch * p.prefixBatchStride] : 0;
}
/// The queries below `queryEnd` see only keys below this.
__device__ inline int64_t keyEndOf(const AttentionParams &p,
                                   const AttentionExtras &extras, int64_t batch,
                                   int64_t queryEnd) {
  const int64_t at = queryEnd - 1 + p.keys - p.queries;
  int64_t end = p.keys;
  if (p.causal) {
    const int64_t prefix = prefixOf(p, extras, batch);
    end = at + 1 > prefix ? at + 1 : prefix;
  }
  if (p.window > 0 && at + p.window < end)
    end = at + p.window;
  return clampTo(end, p.keys);
}
/// The queries from `query` on see no key before this one.
TMC_HD inline int64_t firstKey(const AttentionParams &p, int64_t query) {
  return p.window > 0
             ? clampTo(query + p.keys - p.queries - p.window + 1, p.keys)
             : 0;
}
/// The first query that may see a key at or after `key`; p.queries: none.
__device__ inline int64_t firstQuery(const AttentionParams &p,
                                     const AttentionExtras &extras,
                                     int64_t batch, int64_t key) {
  const int64_t at = key - (p.keys - p.queries);
  int64_t first = 0;
  if (p.causal && key >= prefixOf(p, extras, batch))
    first = at;
  if (p.window > 0 && at - p.window + 1 > first)
    first = at - p.window + 1;
  return clampTo(first, p.queries);
}
/// The queries from this one on see no key below `keyEnd`.
TMC_HD inline int64_t queryEndOf(const AttentionParams &p, int64_t keyEnd) {
  return p.window > 0
             ? clampTo(keyEnd - 1 - (p.keys - p.queries) + p.window, p.queries)
             : p.queries;
}

/// Copies rows [row0, row0 + Rows) of an operand into a tile; rows from
/// `rows` on and channels from p.headDim on become zero.
template <typename Shape>
__device__ void loadTile(const StoredIn &from, int64_t row0, int64_t rows,
                         int64_t rowStride, int64_t headDim, float *tile) {
  const int thread = int(threadIdx.y) * kSide + int(threadIdx.x);
  for (int i = thread; i < Shape::Rows * Shape::Depth; i += kAttentionThreads) {
    const int r = i / Shape::Depth, d = i % Shape::Depth;
    tile[r * Shape::kStride + d] = row0 + r < rows && d < headDim
                                       ? from.at((row0 + r) * rowStride + d)
                                       : 0.0f;
  }
}

__device__ inline float4 read4(const float *p) {
  return *reinterpret_cast<const float4 *>(p);
}

/// Reads N consecutive floats, aligned to their total size.
template <int N> __device__ void readRow(const float *p, float (&to)[N]) {
  if constexpr (N == 4) {
    const float4 x = read4(p);
    to[0] = x.x;
    to[1] = x.y;
    to[2] = x.z;
    to[3] = x.w;
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      to[i] = p[i];
  }
}

/// s[i][j] = sum over channels of a[row ty * kPer + i] * b[row tx + 16 j].
template <typename Shape>
__device__ void dotRows(const float *a, const float *b,
                        float (&s)[Shape::kPer][Shape::kPer]) {
  constexpr int kPer = Shape::kPer, stride = Shape::kStride;
  const float *aRow = a + int(threadIdx.y) * kPer * stride;
  const float *bRow = b + int(threadIdx.x) * stride;
  for (int i = 0; i < kPer; ++i)
    for (int j = 0; j < kPer; ++j)
      s[i][j] = 0;
#pragma unroll 4
  for (int d = 0; d < Shape::Depth; d += 4) {
    float4 x[kPer], y[kPer];
#pragma unroll
    for (int i = 0; i < kPer; ++i)
      x[i] = read4(aRow + i * stride + d);
#pragma unroll
    for (int j = 0; j < kPer; ++j)
      y[j] = read4(bRow + j * kSide * stride + d);
#pragma unroll
    for (int i = 0; i < kPer; ++i)
#pragma unroll
      for (int j = 0; j < kPer; ++j) {
        s[i][j] = fmaf(x[i].x, y[j].x, s[i][j]);
        s[i][j] = fmaf(x[i].y, y[j].y, s[i][j]);
        s[i][j] = fmaf(x[i].z, y[j].z, s[i][j]);
        s[i][j] = fmaf(x[i].w, y[j].w, s[i][j]);
      }
  }
}

/// A thread's part of an operand-shaped result.
template <typename Shape> struct Share {
  float4 at[Shape::kPer][Shape::kGroups];

  __device__ void zero() {
#pragma unroll
    for (int i = 0; i < Shape::kPer; ++i)
#pragma unroll
      for (int g = 0; g < Shape::kGroups; ++g)
        at[i][g] = make_float4(0, 0, 0, 0);
  }
  __device__ void scaleRow(int i, float by) {
#pragma unroll
    for (int g = 0; g < Shape::kGroups; ++g) {
      at[i][g].x *= by;
      at[i][g].y *= by;
      at[i][g].z *= by;
      at[i][g].w *= by;
    }
  }

  /// Adds sum over r of weight(i, r) * rows[r], for r in order. `weights` is a
  /// tile of scores, read by row (query) or, Transposed, by column (key).
  template <bool Transposed>
  __device__ void add(const float *weights, const float *rows) {
    constexpr int kPer = Shape::kPer, kGroups = Shape::kGroups;
    constexpr int stride = Shape::kScoreStride;
    const int row0 = int(threadIdx.y) * kPer;
    const float *column = rows + 4 * int(threadIdx.x);
    // Four rows at a time, so that weights also have 16-byte reads.
#pragma unroll 2
    for (int r0 = 0; r0 < Shape::Rows; r0 += 4) {
      float w[4][kPer]; // [row][i]
      if constexpr (Transposed) {
#pragma unroll
        for (int e = 0; e < 4; ++e)
          readRow<kPer>(weights + (r0 + e) * stride + row0, w[e]);
      } else {
#pragma unroll
        for (int i = 0; i < kPer; ++i) {
          const float4 x = read4(weights + (row0 + i) * stride + r0);
          w[0][i] = x.x;
          w[1][i] = x.y;
          w[2][i] = x.z;
          w[3][i] = x.w;
        }
      }
#pragma unroll
      for (int e = 0; e < 4; ++e)
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
          const float4 x = read4(column + (r0 + e) * Shape::kStride + 64 * g);
#pragma unroll
          for (int i = 0; i < kPer; ++i) {
            at[i][g].x = fmaf(w[e][i], x.x, at[i][g].x);
            at[i][g].y = fmaf(w[e][i], x.y, at[i][g].y);
            at[i][g].z = fmaf(w[e][i], x.z, at[i][g].z);
            at[i][g].w = fmaf(w[e][i], x.w, at[i][g].w);
          }
        }
    }
  }

  /// Writes the channels of row i to `row`, the row's start in memory.
  __device__ void writeRow(int i, const StoredOut &row, int64_t headDim) const {
    const int tx = int(threadIdx.x);
    row.visit([&](auto *to) {
#pragma unroll
      for (int g = 0; g < Shape::kGroups; ++g) {
        const int d = 64 * g + 4 * tx;
        const float4 x = at[i][g];
        if (d < headDim)
          storeLanes<1>(to + d, x.x);
        if (d + 1 < headDim)
          storeLanes<1>(to + d + 1, x.y);
        if (d + 2 < headDim)
          storeLanes<1>(to + d + 2, x.z);
        if (d + 3 < headDim)
          storeLanes<1>(to + d + 3, x.w);
      }
    });
  }
};

/// cap(scale * product) + mask + bias; -infinity if the key isn't visible.
/// `slope` becomes the derivative of cap.
__device__ inline float maskedScore(const AttentionParams &p,
                                    const AttentionExtras &extras,
                                    int64_t batch, int64_t head, int64_t query,
                                    int64_t key, float product, float &slope) {
  slope = 1;
  if (query >= p.queries || key >= p.keys ||
      !isSeen(p, extras, batch, query, key))
    return -INFINITY;
  float score = product * float(p.scale);
  if (p.softcap > 0) {
    const float t = math::tanh(score * float(1 / p.softcap));
    score = float(p.softcap) * t;
    slope = 1.0f - t * t;
  }
  if (p.bias)
    score += extras.bias[batch * p.biasBatchStride + head * p.biasHeadStride +
                         query * p.biasQueryStride + key];
  if (p.mask == MaskKind::None)
    return score;
  const int64_t at = batch * p.maskBatchStride + head * p.maskHeadStride +
                     query * p.maskQueryStride + key;
  if (p.mask == MaskKind::Additive)
    return score + static_cast<const float *>(extras.mask)[at];
  return static_cast<const unsigned char *>(extras.mask)[at] ? score
                                                             : -INFINITY;
}

/// Fills a tile of scores, Queries rows that are Stride apart, with 1 if
/// dropout keeps an element, else 0. Four consecutive elements of the whole
/// matrix come from one Philox call.
template <int Queries, int Keys, int Stride, int Threads>
__device__ void
fillKept(const AttentionParams &p, const AttentionExtras &extras, int64_t batch,
         int64_t head, int64_t query0, int64_t key0, float *tile) {
  const Philox philox(extras.seed, p.stream);
  const uint32_t threshold = philoxThreshold(float(p.dropout));
  const uint64_t rows = p.rowsPerSample > 0 ? uint64_t(p.rowsPerSample) : 1;
  const uint64_t sample =
      uint64_t(extras.samples[uint64_t(batch) / rows]) * rows +
      uint64_t(batch) % rows;
  const uint64_t base =
      (sample * uint64_t(p.heads) + uint64_t(head)) * uint64_t(p.queries);
  // A row of the tile touches at most this many quads of the sequence.
  constexpr int kQuads = Keys / 4 + 1;
  const int thread = int(threadIdx.y) * kSide + int(threadIdx.x);
  for (int i = thread; i < Queries * kQuads; i += Threads) {
    const int r = i / kQuads;
    const uint64_t row = (base + uint64_t(query0 + r)) * uint64_t(p.keys);
    const uint64_t first = row + uint64_t(key0);
    const uint64_t quad = first / 4 + uint64_t(i % kQuads);
    const PhiloxWords words = philox.quad(quad);
    for (int e = 0; e < 4; ++e) {
      const int64_t column = int64_t(quad * 4 + uint64_t(e) - first);
      if (column >= 0 && column < Keys)
        tile[r * Stride + column] =
            (words.w[e] >> 8) >= threshold ? 1.0f : 0.0f;
    }
  }
}

/// The same for a block's tile of scores.
template <typename Shape>
__device__ void
fillKept(const AttentionParams &p, const AttentionExtras &extras, int64_t batch,
         int64_t head, int64_t query0, int64_t key0, float *tile) {
  fillKept<Shape::Rows, Shape::Rows, Shape::kScoreStride, kAttentionThreads>(
      p, extras, batch, head, query0, key0, tile);
}

/// Combines x over the 16 threads of a row, by exchanges; all get the result.
template <typename Op> __device__ float overRow(float x, Op op) {
#pragma unroll
  for (int distance = kSide / 2; distance > 0; distance /= 2)
    x = op(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_ATTENTIONTILE_H
