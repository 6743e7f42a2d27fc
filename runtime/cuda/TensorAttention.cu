//===- TensorAttention.cu - attention of bf16 by tensor cores -------------===//
//
// The tiling of Attention.cu and AttentionGrad.cu with fragments in place of
// threads' shares. A block of four warps owns 64 rows, a warp 16 of them: of
// queries, or, for the gradients of keys and values, of keys. It walks tiles of
// the other side, of which the next is on its way to shared memory while this
// one is used:
//
//   forward   s = q k^T;  p = exp(s - top);         out += p v
//   queries   s = q k^T;  dp = dout v^T;            dq  += ds k
//   keys      s = k q^T;  dp = v dout^T;            dv  += p dout,  dk += ds q
//
// A tile is rows of bf16, Depth + 8 apart, so that the eight rows of a matrix
// lie in different banks. Scores stay in registers: the sums that a lane holds
// of two products of 8 columns are what it gives to a product along these 16.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/TensorAttention.h"

#include "runtime/cuda/AttentionTile.h"
#include "runtime/cuda/TensorCore.h"

namespace tmc::cuda {

namespace {

constexpr int kWarps = 4, kThreads = kWarps * kWarp;
constexpr int kRows = 16 * kWarps; // of a block's own side

/// Heads of up to Depth channels, walked in tiles of Walked rows.
template <int Depth_, int Walked_> struct TensorShape {
  static constexpr int Depth = Depth_, Walked = Walked_;
  static constexpr int kStride = Depth + 8;
  static constexpr int kOwn = kRows * kStride, kOther = Walked * kStride;
  static constexpr int kChannels = Depth / 8; // fragments of a result
  static constexpr int kColumns = Walked / 8; // fragments of scores
  static constexpr int kKeptStride = Walked + 4;
  static_assert(Depth % 32 == 0 && Walked % 16 == 0);
};

__device__ inline int linearThread() {
  return int(threadIdx.y) * kSide + int(threadIdx.x);
}

/// An operand of one head: rows of `headDim` elements.
struct Rows {
  const uint16_t *data;
  int64_t rows, stride; // in elements
  bool isAligned;       // each row's start and length to 16 bytes

  __device__ Rows(const void *base, int64_t shift, int64_t rows, int64_t stride,
                  int64_t headDim)
      : data(static_cast<const uint16_t *>(base) + shift), rows(rows),
        stride(stride), isAligned(reinterpret_cast<uintptr_t>(data) % 16 == 0 &&
                                  stride % 8 == 0 && headDim % 8 == 0) {}
};

/// Begins to copy rows [row0, row0 + Count) into a tile, zeros where there is
/// nothing. They are there after waitGroup and a barrier.
template <typename Shape, int Count>
__device__ void fetchTile(const Rows &from, int64_t row0, int64_t headDim,
                          uint16_t *tile) {
  constexpr int kChunks = Shape::Depth / 8;
  for (int i = linearThread(); i < Count * kChunks; i += kThreads) {
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

/// Two numbers as bf16 and what that leaves of them, as bf16.
__device__ inline void split(float low, float high, uint32_t &rounded,
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
    split(s0[0], s0[1], rounded.words[0], rest.words[0]);
    split(s0[2], s0[3], rounded.words[1], rest.words[1]);
    split(s1[0], s1[1], rounded.words[2], rest.words[2]);
    split(s1[2], s1[3], rounded.words[3], rest.words[3]);
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

template <int N> __device__ void zero(FragmentC (&c)[N]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (float &sum : c[n].sums)
      sum = 0;
}

/// Writes a lane's share of row `half` (of g, g + 8) of a result.
template <int N>
__device__ void writeRow(const FragmentC (&c)[N], int half, float scale,
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

/// Whether each of these queries sees each of these keys, and scores are scaled
/// products: most tiles of most models.
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

/// A block's own tiles, then two pairs of walked ones, then what is kept.
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
           (p.dropout > 0 ? int64_t(kRows) * (kRows + 4) * 4 : 0);
  }
};

template <typename Shape>
__global__ void __launch_bounds__(kThreads)
    tensorAttention(AttentionParams p, const void *__restrict__ q,
                    const void *__restrict__ k, const void *__restrict__ v,
                    AttentionExtras extras, uint16_t *__restrict__ out,
                    float *__restrict__ lse) {
  TMC_DYNAMIC_SHARED(memory);
  const TensorTiles<Shape, 1> tiles(memory);
  constexpr int Walked = Shape::Walked;
  const int lane = linearThread() % kWarp, warp = linearThread() / kWarp;
  // The last queries see most keys: they start first.
  const int64_t query0 = int64_t(gridDim.x - 1 - blockIdx.x) * kRows;
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  const int64_t kvHead = head / (p.heads / p.kvHeads);
  const Rows qRows(q, batch * p.q.batch + head * p.q.head, p.queries, p.q.time,
                   p.headDim);
  const Rows kRowsOf(k, batch * p.k.batch + kvHead * p.k.head, p.keys, p.k.time,
                     p.headDim);
  const Rows vRowsOf(v, batch * p.v.batch + kvHead * p.v.head, p.keys, p.v.time,
                     p.headDim);
  const bool drops = p.dropout > 0;
  const float scale = float(p.scale);

  const int64_t queryEnd =
      query0 + kRows < p.queries ? query0 + kRows : p.queries;
  const int64_t keyEnd = keyEndOf(p, extras, batch, queryEnd);
  const int64_t keyBegin = firstKey(p, query0) / Walked * Walked;
  auto fetch = [&](int64_t key0, int stage) {
    if (key0 < keyEnd) {
      fetchTile<Shape, Walked>(kRowsOf, key0, p.headDim, tiles.other(stage, 0));
      fetchTile<Shape, Walked>(vRowsOf, key0, p.headDim, tiles.other(stage, 1));
    }
    commitGroup();
  };
  fetchTile<Shape, kRows>(qRows, query0, p.headDim, tiles.own);
  fetch(keyBegin, 0);

  FragmentC sum[Shape::kChannels];
  zero(sum);
  float top[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
  int stage = 0;
  for (int64_t key0 = keyBegin; key0 < keyEnd; key0 += Walked, stage ^= 1) {
    waitGroup<0>();
    __syncthreads(); // this tile is there, the other stage has been read
    fetch(key0 + Walked, stage ^ 1);
    if (drops) {
      fillKept<kRows, Walked, Shape::kKeptStride, kThreads>(
          p, extras, batch, head, query0, key0, tiles.kept);
      __syncthreads();
    }
    FragmentC s[Shape::kColumns];
    zero(s);
    multiplyRows<Shape>(s, tiles.own, 16 * warp, tiles.other(stage, 0), lane);
    const bool plain = isPlain(p, extras, query0, kRows, key0, Walked);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * warp + lane / 4 + 8 * half;
      float largest = top[half];
#pragma unroll
      for (int n = 0; n < Shape::kColumns; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float &x = s[n].sums[2 * half + e];
          float slope;
          x = plain ? x * scale
                    : maskedScore(p, extras, batch, head, query0 + row,
                                  key0 + 8 * n + lane % 4 * 2 + e, x, slope);
          largest = largest > x ? largest : x;
        }
      largest = overQuad(largest, MaxOp{});
      // A row that has seen nothing: any finite shift gives exp(-inf) = 0.
      const float shift = largest == -INFINITY ? 0.0f : largest;
      const float shrink = expf(top[half] - shift);
      top[half] = largest;
      float rowSum = 0;
#pragma unroll
      for (int n = 0; n < Shape::kColumns; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float &x = s[n].sums[2 * half + e];
          x = expf(x - shift);
          rowSum += x;
          if (drops)
            x *=
                tiles.kept[row * Shape::kKeptStride + 8 * n + lane % 4 * 2 + e];
        }
      total[half] = total[half] * shrink + overQuad(rowSum, AddOp{});
#pragma unroll
      for (int n = 0; n < Shape::kChannels; ++n) {
        sum[n].sums[2 * half] *= shrink;
        sum[n].sums[2 * half + 1] *= shrink;
      }
    }
    multiplyScores<Shape>(sum, s, tiles.other(stage, 1), lane);
  }
  waitGroup<0>();

  const float dropScale = drops ? float(1 / (1 - p.dropout)) : 1.0f;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t query = query0 + 16 * warp + lane / 4 + 8 * half;
    if (query >= p.queries)
      continue;
    const int64_t row = (batch * p.queries + query) * p.heads + head;
    writeRow(sum, half, total[half] > 0 ? dropScale / total[half] : 0.0f,
             p.headDim, out + row * p.headDim, lane);
    if (lane % 4 == 0)
      lse[(batch * p.heads + head) * p.queries + query] =
          total[half] > 0 ? top[half] + logf(total[half]) : -INFINITY;
  }
}

/// One score of a gradient: the product becomes drop(P), the gradient of what
/// was dropped that of the product. `kept` is 1 or 0.
__device__ inline void gradientOfScore(const AttentionParams &p,
                                       const AttentionExtras &extras,
                                       bool plain, int64_t batch, int64_t head,
                                       int64_t query, int64_t key, float lse,
                                       float dot, float factor, float &product,
                                       float &gradient) {
  float slope = 1;
  const float score =
      plain ? product * float(p.scale)
            : maskedScore(p, extras, batch, head, query, key, product, slope);
  const float probability = lse == -INFINITY ? 0.0f : expf(score - lse);
  product = probability * factor;
  gradient = float(p.scale) * probability * (gradient * factor - dot) * slope;
}

template <typename Shape>
__global__ void __launch_bounds__(kThreads)
    tensorGradientOfKeys(AttentionParams p, GradOperands o) {
  TMC_DYNAMIC_SHARED(memory);
  const TensorTiles<Shape, 2> tiles(memory);
  constexpr int Walked = Shape::Walked;
  const int lane = linearThread() % kWarp, warp = linearThread() / kWarp;
  const int64_t key0 = int64_t(blockIdx.x) * kRows;
  const int64_t kvHead = blockIdx.y, batch = blockIdx.z;
  const bool drops = p.dropout > 0;
  const float dropScale = drops ? float(1 / (1 - p.dropout)) : 1.0f;
  const int64_t queryStride = p.heads * p.headDim; // of dout

  fetchTile<Shape, kRows>(Rows(o.k, batch * p.k.batch + kvHead * p.k.head,
                               p.keys, p.k.time, p.headDim),
                          key0, p.headDim, tiles.own);
  fetchTile<Shape, kRows>(Rows(o.v, batch * p.v.batch + kvHead * p.v.head,
                               p.keys, p.v.time, p.headDim),
                          key0, p.headDim, tiles.own + Shape::kOwn);
  const int64_t perKey = p.heads / p.kvHeads;
  const int64_t begin = firstQuery(p, o.extras, batch, key0) / Walked * Walked;
  const int64_t end = queryEndOf(p, key0 + kRows);
  const int64_t trips = begin < end ? (end - begin + Walked - 1) / Walked : 0;
  // All tiles of all heads that read these keys, in one walk.
  auto fetch = [&](int64_t step, int stage) {
    if (step < trips * perKey) {
      const int64_t head = kvHead * perKey + step / trips;
      const int64_t query0 = begin + step % trips * Walked;
      fetchTile<Shape, Walked>(Rows(o.q, batch * p.q.batch + head * p.q.head,
                                    p.queries, p.q.time, p.headDim),
                               query0, p.headDim, tiles.other(stage, 0));
      fetchTile<Shape, Walked>(
          Rows(o.dout, batch * p.queries * queryStride + head * p.headDim,
               p.queries, queryStride, p.headDim),
          query0, p.headDim, tiles.other(stage, 1));
    }
    commitGroup();
  };
  fetch(0, 0);

  FragmentC dk[Shape::kChannels], dv[Shape::kChannels];
  zero(dk);
  zero(dv);
  int stage = 0;
  for (int64_t step = 0; step < trips * perKey; ++step, stage ^= 1) {
    const int64_t head = kvHead * perKey + step / trips;
    const int64_t query0 = begin + step % trips * Walked;
    waitGroup<0>();
    __syncthreads(); // this tile is there, the other stage has been read
    fetch(step + 1, stage ^ 1);
    if (drops) {
      fillKept<Walked, kRows, kRows + 4, kThreads>(p, o.extras, batch, head,
                                                   query0, key0, tiles.kept);
      __syncthreads();
    }
    FragmentC s[Shape::kColumns], ds[Shape::kColumns];
    zero(s);
    zero(ds);
    multiplyRows<Shape>(s, tiles.own, 16 * warp, tiles.other(stage, 0), lane);
    multiplyRows<Shape>(ds, tiles.own + Shape::kOwn, 16 * warp,
                        tiles.other(stage, 1), lane);
    const bool plain = isPlain(p, o.extras, query0, Walked, key0, kRows);
#pragma unroll
    for (int n = 0; n < Shape::kColumns; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = 8 * n + lane % 4 * 2 + e;
        const int64_t query = query0 + column;
        const int64_t at = (batch * p.heads + head) * p.queries + query;
        const bool exists = query < p.queries;
        const float lse = exists ? o.lse[at] : -INFINITY;
        const float dot = exists ? o.dots[at] : 0.0f;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = 16 * warp + lane / 4 + 8 * half;
          const float factor =
              drops ? tiles.kept[column * (kRows + 4) + row] * dropScale : 1.0f;
          gradientOfScore(p, o.extras, plain, batch, head, query, key0 + row,
                          lse, dot, factor, s[n].sums[2 * half + e],
                          ds[n].sums[2 * half + e]);
        }
      }
    multiplyScores<Shape>(dv, s, tiles.other(stage, 1), lane);
    multiplyScores<Shape>(dk, ds, tiles.other(stage, 0), lane);
  }
  waitGroup<0>();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t key = key0 + 16 * warp + lane / 4 + 8 * half;
    if (key >= p.keys)
      continue;
    const int64_t at =
        ((batch * p.keys + key) * p.kvHeads + kvHead) * p.headDim;
    writeRow(dk, half, 1.0f, p.headDim, static_cast<uint16_t *>(o.dk) + at,
             lane);
    writeRow(dv, half, 1.0f, p.headDim, static_cast<uint16_t *>(o.dv) + at,
             lane);
  }
}

template <typename Shape>
__global__ void __launch_bounds__(kThreads)
    tensorGradientOfQueries(AttentionParams p, GradOperands o) {
  TMC_DYNAMIC_SHARED(memory);
  const TensorTiles<Shape, 2> tiles(memory);
  constexpr int Walked = Shape::Walked;
  const int lane = linearThread() % kWarp, warp = linearThread() / kWarp;
  const int64_t query0 = int64_t(gridDim.x - 1 - blockIdx.x) * kRows;
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  const int64_t kvHead = head / (p.heads / p.kvHeads);
  const bool drops = p.dropout > 0;
  const float dropScale = drops ? float(1 / (1 - p.dropout)) : 1.0f;
  const int64_t stride = p.heads * p.headDim; // of dout
  const Rows keys(o.k, batch * p.k.batch + kvHead * p.k.head, p.keys, p.k.time,
                  p.headDim);
  const Rows values(o.v, batch * p.v.batch + kvHead * p.v.head, p.keys,
                    p.v.time, p.headDim);
  fetchTile<Shape, kRows>(Rows(o.q, batch * p.q.batch + head * p.q.head,
                               p.queries, p.q.time, p.headDim),
                          query0, p.headDim, tiles.own);
  fetchTile<Shape, kRows>(Rows(o.dout,
                               batch * p.queries * stride + head * p.headDim,
                               p.queries, stride, p.headDim),
                          query0, p.headDim, tiles.own + Shape::kOwn);
  const int64_t queryEnd =
      query0 + kRows < p.queries ? query0 + kRows : p.queries;
  const int64_t keyEnd = keyEndOf(p, o.extras, batch, queryEnd);
  const int64_t keyBegin = firstKey(p, query0) / Walked * Walked;
  auto fetch = [&](int64_t key0, int stage) {
    if (key0 < keyEnd) {
      fetchTile<Shape, Walked>(keys, key0, p.headDim, tiles.other(stage, 0));
      fetchTile<Shape, Walked>(values, key0, p.headDim, tiles.other(stage, 1));
    }
    commitGroup();
  };
  fetch(keyBegin, 0);

  float lse[2], dot[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t query = query0 + 16 * warp + lane / 4 + 8 * half;
    const int64_t at = (batch * p.heads + head) * p.queries + query;
    lse[half] = query < p.queries ? o.lse[at] : -INFINITY;
    dot[half] = query < p.queries ? o.dots[at] : 0.0f;
  }
  FragmentC dq[Shape::kChannels];
  zero(dq);
  int stage = 0;
  for (int64_t key0 = keyBegin; key0 < keyEnd; key0 += Walked, stage ^= 1) {
    waitGroup<0>();
    __syncthreads(); // this tile is there, the other stage has been read
    fetch(key0 + Walked, stage ^ 1);
    if (drops) {
      fillKept<kRows, Walked, Shape::kKeptStride, kThreads>(
          p, o.extras, batch, head, query0, key0, tiles.kept);
      __syncthreads();
    }
    FragmentC s[Shape::kColumns], ds[Shape::kColumns];
    zero(s);
    zero(ds);
    multiplyRows<Shape>(s, tiles.own, 16 * warp, tiles.other(stage, 0), lane);
    multiplyRows<Shape>(ds, tiles.own + Shape::kOwn, 16 * warp,
                        tiles.other(stage, 1), lane);
    const bool plain = isPlain(p, o.extras, query0, kRows, key0, Walked);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * warp + lane / 4 + 8 * half;
#pragma unroll
      for (int n = 0; n < Shape::kColumns; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int column = 8 * n + lane % 4 * 2 + e;
          const float factor =
              drops ? tiles.kept[row * Shape::kKeptStride + column] * dropScale
                    : 1.0f;
          gradientOfScore(p, o.extras, plain, batch, head, query0 + row,
                          key0 + column, lse[half], dot[half], factor,
                          s[n].sums[2 * half + e], ds[n].sums[2 * half + e]);
        }
    }
    multiplyScores<Shape>(dq, ds, tiles.other(stage, 0), lane);
  }
  waitGroup<0>();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t query = query0 + 16 * warp + lane / 4 + 8 * half;
    const int64_t row = (batch * p.queries + query) * p.heads + head;
    if (query < p.queries)
      writeRow(dq, half, 1.0f, p.headDim,
               static_cast<uint16_t *>(o.dq) + row * p.headDim, lane);
  }
}

/// Calls body with the forward kernel's shape, and the gradients'. Longer heads
/// are walked in smaller tiles there, for the registers' sake.
template <typename F>
auto withTensorShapes(const AttentionParams &p, F &&body) {
  if (p.headDim <= 64)
    return body(TensorShape<64, 64>{}, TensorShape<64, 64>{});
  return body(TensorShape<128, 64>{}, TensorShape<128, 32>{});
}

constexpr int kTensorCapability = 80; // the first with bf16

} // namespace

bool takesTensorCores(const CudaDevice &device, const AttentionParams &p) {
  if (p.type != DType::BF16 || p.headDim > 128 ||
      device.computeCapability() < kTensorCapability)
    return false;
  return withTensorShapes(p, [&](auto forward, auto gradient) {
    return TensorTiles<decltype(forward), 1>::bytes(p) <=
               device.sharedBytes() &&
           TensorTiles<decltype(gradient), 2>::bytes(p) <= device.sharedBytes();
  });
}

Status prepareTensorAttention(const CudaDevice &device,
                              const AttentionParams &p) {
  return withTensorShapes(p, [&](auto forward, auto) {
    using Shape = decltype(forward);
    return allowShared(device, "attention", tensorAttention<Shape>,
                       TensorTiles<Shape, 1>::bytes(p));
  });
}

void runTensorAttention(Queue &queue, const AttentionParams &p, const void *q,
                        const void *k, const void *v,
                        const AttentionExtras &extras, void *out, float *lse) {
  withTensorShapes(p, [&](auto forward, auto) {
    using Shape = decltype(forward);
    launch(queue, tensorAttention<Shape>,
           dim3(unsigned(ceilDivide(p.queries, kRows)), unsigned(p.heads),
                unsigned(p.batch)),
           dim3(kSide, kThreads / kSide), TensorTiles<Shape, 1>::bytes(p), p, q,
           k, v, extras, static_cast<uint16_t *>(out), lse);
  });
}

Status prepareTensorGradients(const CudaDevice &device,
                              const AttentionParams &p) {
  return withTensorShapes(p, [&](auto, auto gradient) {
    using Shape = decltype(gradient);
    const int64_t bytes = TensorTiles<Shape, 2>::bytes(p);
    if (Status s = allowShared(device, "attention_grad",
                               tensorGradientOfKeys<Shape>, bytes);
        !s)
      return s;
    return allowShared(device, "attention_grad", tensorGradientOfQueries<Shape>,
                       bytes);
  });
}

void runTensorGradients(Queue &queue, const AttentionParams &p,
                        const GradOperands &operands) {
  withTensorShapes(p, [&](auto, auto gradient) {
    using Shape = decltype(gradient);
    const dim3 block(kSide, kThreads / kSide);
    const int64_t bytes = TensorTiles<Shape, 2>::bytes(p);
    launch(queue, tensorGradientOfKeys<Shape>,
           dim3(unsigned(ceilDivide(p.keys, kRows)), unsigned(p.kvHeads),
                unsigned(p.batch)),
           block, bytes, p, operands);
    launch(queue, tensorGradientOfQueries<Shape>,
           dim3(unsigned(ceilDivide(p.queries, kRows)), unsigned(p.heads),
                unsigned(p.batch)),
           block, bytes, p, operands);
  });
}

} // namespace tmc::cuda
