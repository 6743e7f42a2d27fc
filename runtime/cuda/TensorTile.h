//===- TensorTile.h - tiles of attention on tensor cores --------*- C++ -*-===//
//
// The common part of the kernels of TensorAttention.cu and
// TensorAttentionGrad.cu. A block of four warps owns 64 rows of operands, a
// warp 16 of them. It walks tiles of the other side's rows, two operands at a
// time and in two stages: the next tile arrives while the current one is used.
//
// A tile is rows of bf16 or f32, Depth elements and 16 bytes apart, so that the
// eight rows of a matrix are in different banks. f32 is rounded to TF32 in
// the tile, by the thread that copied it. Scores stay in registers: a lane's
// sums of products of 8 columns (two of them for bf16) are its operand for a
// product along these columns. The rows of a tile of keys have an order (Order)
// in which a lane's scores are those of neighbouring keys.
//
// A row sees a range of the other side's rows, by causality, prefix and window.
// Most tiles lie in the ranges of all of a block's rows. These *plain* tiles
// are walked by a loop of their own, in which no score is compared with
// anything. A tile at the border of a range compares each score with the range
// of its row. Kernels of kind General ask the masks about each score.
//
// Exponentials are powers of two: exp(x) = 2^(x log2 e), where the factor is
// part of the scale.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_TENSORTILE_H
#define TMC_RUNTIME_CUDA_TENSORTILE_H

#include "runtime/cuda/AttentionTile.h"
#include "runtime/cuda/TensorCore.h"

#include <type_traits>

namespace tmc::cuda {

constexpr int kTensorWarps = 4, kTensorThreads = kTensorWarps * kWarp;
constexpr int kOwnRows = 16 * kTensorWarps; // of a block

/// True if probabilities and their gradients enter products as two numbers.
TMC_HD inline bool isExact(const AttentionParams &p) {
  return p.exact && p.type == DType::BF16;
}

constexpr float kLog2E = 1.44269504088896340736f;

/// The kernels for one kind of scores.
enum class Scores {
  Plain,   ///< Scaled products, hidden by position alone.
  Dropped, ///< The same, with dropout.
  General, ///< With masks, groups, bias or dropout, with scores that enter
           ///< exactly, and with operands that 16-byte copies don't take.
  Capped,  ///< The same, with a cap.
};
TMC_HD constexpr bool asksMasks(Scores kind) {
  return kind == Scores::General || kind == Scores::Capped;
}

/// Heads of up to Depth channels, walked in tiles of Walked rows, of elements
/// that are stored as T and multiplied as E.
template <int Depth_, int Walked_, typename T, Element E> struct TileOf {
  using Stored = T;
  static constexpr Element kElement = E;
  static constexpr int Depth = Depth_, Walked = Walked_;
  static constexpr int kCopied = 16 / int(sizeof(T)); // elements of a copy
  static constexpr int kStride = Depth + kCopied;
  static constexpr int kOwn = kOwnRows * kStride, kOther = Walked * kStride;
  static constexpr int kChannels = Depth / 8;     // fragments of a result
  static constexpr int kColumns = Walked / 8;     // fragments of scores
  static constexpr int kChunks = Depth / kCopied; // copies of a row
  static constexpr int kRowsAtOnce = kTensorThreads / kChunks;
  static_assert(Depth % 32 == 0 && Walked % 16 == 0);
  static_assert(Walked % kRowsAtOnce == 0 && kOwnRows % kRowsAtOnce == 0);
};
/// For bf16.
template <int Depth, int Walked>
struct TensorShape : TileOf<Depth, Walked, uint16_t, Element::BF16> {};
/// For f32 that is multiplied as TF32.
template <int Depth, int Walked>
struct TF32Shape : TileOf<Depth, Walked, float, Element::TF32> {};

/// The order of the rows of a tile, in each 16 of them.
enum class Order {
  Rows,  ///< Row r is in place r.
  Quads, ///< A lane's scores in columns 16 m.. are of rows 16 m + 4 t + 0..3.
  Pairs, ///< A lane's scores in rows g and g + 8 are of rows 2 g and 2 g + 1.
};
/// The place of a row. It is the sum of the places of the row's bits.
template <Order O> TMC_HD constexpr int placeOf(int row) {
  if (O == Order::Quads)
    return row / 16 * 16 + row / 2 % 2 * 8 + row / 4 % 4 * 2 + row % 2;
  if (O == Order::Pairs)
    return row / 16 * 16 + row % 2 * 8 + row / 2 % 8;
  return row;
}
/// A lane's column e of fragment n.
template <Order O> TMC_HD constexpr int columnOf(int n, int e, int lane) {
  static_assert(O != Order::Pairs);
  return O == Order::Quads ? n / 2 * 16 + lane % 4 * 4 + n % 2 * 2 + e
                           : 8 * n + lane % 4 * 2 + e;
}

__device__ inline int linearThread() {
  return int(threadIdx.y) * kSide + int(threadIdx.x);
}

/// An operand of one head: rows of `headDim` elements. A thread copies the same
/// 16 bytes of every kRowsAtOnce-th row.
template <typename Shape, Scores Kind> class TensorRows {
  using Stored = typename Shape::Stored;

public:
  __device__ TensorRows(const void *base, const AttentionStrides &strides,
                        int64_t rows, int64_t headDim, int64_t batch,
                        int64_t head)
      : data(static_cast<const Stored *>(base) + batch * strides.batch +
             head * strides.head),
        row(linearThread() / Shape::kChunks),
        channel(linearThread() % Shape::kChunks * Shape::kCopied),
        end(channel < headDim ? int(rows) : 0), stride(int(strides.time)),
        headDim(int(headDim)) {}

  /// Moves on by `elements`.
  __device__ void advance(int64_t elements) { data += elements; }

  /// Starts to copy rows [row0, row0 + Count) into a tile, with zeros for
  /// missing elements. They are visible after waitGroup and a barrier.
  template <int Count, Order O>
  __device__ void fetch(int row0, Stored *tile) const {
    Stored *to = tile + placeOf<O>(row) * Shape::kStride + channel;
    const Stored *from = data + int64_t(row0 + row) * stride + channel;
#pragma unroll
    for (int r = 0; r < Count; r += Shape::kRowsAtOnce) {
      const int at = row0 + row + r;
      Stored *target = to + placeOf<O>(r) * Shape::kStride;
      if (!asksMasks(Kind) || isAligned())
        copyAsync<16>(target, at < end ? from : data, at < end ? 16 : 0);
      else
        for (int e = 0; e < Shape::kCopied; ++e)
          target[e] = at < end && channel + e < headDim ? from[e] : Stored(0);
      from += int64_t(Shape::kRowsAtOnce) * stride;
    }
  }

  /// Rounds what this thread has copied by fetch<Count, O> to the type that is
  /// multiplied. The copies have arrived.
  template <int Count, Order O> __device__ void round(Stored *tile) const {
    if constexpr (Shape::kElement == Element::TF32) {
      Stored *own = tile + placeOf<O>(row) * Shape::kStride + channel;
#pragma unroll
      for (int r = 0; r < Count; r += Shape::kRowsAtOnce) {
        auto &four =
            *reinterpret_cast<float4 *>(own + placeOf<O>(r) * Shape::kStride);
        const float4 x = four;
        four = make_float4(roundTF32(x.x), roundTF32(x.y), roundTF32(x.z),
                           roundTF32(x.w));
      }
    }
  }

private:
  __device__ bool isAligned() const {
    return reinterpret_cast<uintptr_t>(data) % 16 == 0 &&
           stride % Shape::kCopied == 0 && headDim % Shape::kCopied == 0;
  }

  const Stored *data;
  int row, channel, end, stride, headDim;
};

/// Rows [row, row + 16) and 32 bytes of channels of a tile, from 32 kk on.
template <typename Shape>
__device__ FragmentA rowsOf(const typename Shape::Stored *tile, int row, int kk,
                            int lane) {
  FragmentA a;
  loadMatrices<4>(a.words, tile + (row + lane % 16) * Shape::kStride +
                               (2 * kk + lane / 16) * Shape::kCopied);
  return a;
}

/// c[n] += a's 16 rows times rows 8n.. of a tile, over all channels.
template <typename Shape>
__device__ __forceinline__ void
multiplyRows(FragmentC (&c)[Shape::kColumns], const typename Shape::Stored *own,
             int row, const typename Shape::Stored *other, int lane) {
#pragma unroll
  for (int pair = 0; pair < Shape::kChunks / 4; ++pair) {
    const FragmentA first = rowsOf<Shape>(own, row, 2 * pair, lane);
    const FragmentA second = rowsOf<Shape>(own, row, 2 * pair + 1, lane);
#pragma unroll
    for (int n = 0; n < Shape::kColumns; ++n) {
      uint32_t words[4];
      loadMatrices<4>(words, other + (8 * n + lane % 8) * Shape::kStride +
                                 (4 * pair + lane / 8) * Shape::kCopied);
      mma<Shape::kElement>(c[n], first, FragmentB{{words[0], words[1]}});
      mma<Shape::kElement>(c[n], second, FragmentB{{words[2], words[3]}});
    }
  }
}

/// Two numbers as bf16. `rest`: what rounding took from them.
__device__ __forceinline__ uint32_t restBF16(float low, float high,
                                             uint32_t rounded) {
  return packBF16(low - widenBits<bf16>(rounded & 0xffffu),
                  high - widenBits<bf16>(rounded >> 16));
}

/// multiplyScores of bf16.
template <typename Shape>
__device__ __forceinline__ void
multiplyScoresBF16(FragmentC (&to)[Shape::kChannels],
                   const FragmentC (&scores)[Shape::kColumns],
                   const uint16_t *tile, int lane, bool exact) {
#pragma unroll
  for (int kk = 0; kk < Shape::Walked / 16; ++kk) {
    FragmentA rounded;
    float x[4][2];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const float(&sums)[4] = scores[2 * kk + w / 2].sums;
      x[w][0] = sums[w % 2 * 2];
      x[w][1] = sums[w % 2 * 2 + 1];
      rounded.words[w] = packBF16(x[w][0], x[w][1]);
    }
#pragma unroll
    for (int n = 0; n < Shape::kChannels; n += 2) {
      uint32_t words[4];
      loadMatrices<4, true>(words, tile +
                                       (16 * kk + lane % 16) * Shape::kStride +
                                       8 * n + lane / 16 * 8);
      const FragmentB left{{words[0], words[1]}}, right{{words[2], words[3]}};
      mma<Element::BF16>(to[n], rounded, left);
      mma<Element::BF16>(to[n + 1], rounded, right);
      if (exact) {
        FragmentA rest;
#pragma unroll
        for (int w = 0; w < 4; ++w)
          rest.words[w] = restBF16(x[w][0], x[w][1], rounded.words[w]);
        mma<Element::BF16>(to[n], rest, left);
        mma<Element::BF16>(to[n + 1], rest, right);
      }
    }
  }
}

/// multiplyScores of TF32. A fragment of scores is the operand of a product
/// over its 8 columns. The operand's column t is the fragment's column 2 t, and
/// its column t + 4 is 2 t + 1.
template <typename Shape>
__device__ __forceinline__ void
multiplyScoresTF32(FragmentC (&to)[Shape::kChannels],
                   const FragmentC (&scores)[Shape::kColumns],
                   const float *tile, int lane) {
#pragma unroll
  for (int kk = 0; kk < Shape::kColumns; ++kk) {
    const float(&sums)[4] = scores[kk].sums;
    FragmentA a;
#pragma unroll
    for (int w = 0; w < 4; ++w)
      a.words[w] = __float_as_uint(roundTF32(sums[w % 2 * 2 + w / 2]));
    const float *rows =
        tile + (8 * kk + lane % 4 * 2) * Shape::kStride + lane / 4;
#pragma unroll
    for (int n = 0; n < Shape::kChannels; ++n) {
      const FragmentB b{{__float_as_uint(rows[8 * n]),
                         __float_as_uint(rows[Shape::kStride + 8 * n])}};
      mma<Shape::kElement>(to[n], a, b);
    }
  }
}

/// to[n] += scores' 16 rows times channels 8n.. of a tile, over the tile's
/// rows, which are the scores' columns. Scores enter rounded to the element
/// type; with `exact`, for bf16, what rounding took from them enters as well.
template <typename Shape>
__device__ __forceinline__ void
multiplyScores(FragmentC (&to)[Shape::kChannels],
               const FragmentC (&scores)[Shape::kColumns],
               const typename Shape::Stored *tile, int lane, bool exact) {
  if constexpr (Shape::kElement == Element::TF32)
    multiplyScoresTF32<Shape>(to, scores, tile, lane);
  else
    multiplyScoresBF16<Shape>(to, scores, tile, lane, exact);
}

__device__ __forceinline__ void writePair(uint16_t *to, float low, float high) {
  *reinterpret_cast<uint32_t *>(to) = packBF16(low, high);
}
__device__ __forceinline__ void writePair(float *to, float low, float high) {
  *reinterpret_cast<float2 *>(to) = make_float2(low, high);
}
__device__ __forceinline__ void writeOne(uint16_t *to, float x) {
  *to = uint16_t(packBF16(x, x));
}
__device__ __forceinline__ void writeOne(float *to, float x) { *to = x; }

template <int N> __device__ __forceinline__ void zeroSums(FragmentC (&c)[N]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (float &sum : c[n].sums)
      sum = 0;
}

/// Writes a lane's part of row `half` (of g, g + 8) of a result.
template <int N, typename T>
__device__ void writeSums(const FragmentC (&c)[N], int half, float scale,
                          int64_t headDim, T *row, int lane) {
  const bool pairs = headDim % 2 == 0;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const int d = 8 * n + lane % 4 * 2;
    const float low = c[n].sums[2 * half] * scale;
    const float high = c[n].sums[2 * half + 1] * scale;
    if (pairs) {
      if (d < headDim)
        writePair(row + d, low, high);
      continue;
    }
    if (d < headDim)
      writeOne(row + d, low);
    if (d + 1 < headDim)
      writeOne(row + d + 1, high);
  }
}

/// Rows [begin, end) of the other side.
struct SeenRange {
  int begin, end;
};
/// The keys that a query sees by its position.
__device__ inline SeenRange keysOf(const AttentionParams &p,
                                   const AttentionExtras &extras, int64_t batch,
                                   int64_t query) {
  return {int(firstKey(p, query)), int(keyEndOf(p, extras, batch, query + 1))};
}
/// The queries that see a key by its position.
__device__ inline SeenRange queriesOf(const AttentionParams &p,
                                      const AttentionExtras &extras,
                                      int64_t batch, int64_t key) {
  return {int(firstQuery(p, extras, batch, key)), int(queryEndOf(p, key + 1))};
}
/// The tiles of Walked rows that lie in the ranges of a block's first and last
/// row, and so in those of all between: both ends of a range only grow.
template <int Walked>
__device__ SeenRange plainTiles(SeenRange first, SeenRange last) {
  const SeenRange all{(last.begin + Walked - 1) / Walked * Walked,
                      first.end / Walked * Walked};
  return all.begin < all.end ? all : SeenRange{-1, -1};
}

/// Calls `f(score, half, column)` for each of a lane's scores: of row `half`
/// (of g, g + 8), in a column of the tile whose rows have order O.
template <Order O, int N, typename F>
__device__ __forceinline__ void eachScore(FragmentC (&s)[N], int lane, F &&f) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        f(s[n].sums[2 * half + e], half, columnOf<O>(n, e, lane));
}

/// Products become cap(scale * product) + mask + bias, and -infinity where the
/// key isn't visible. `place(half, column)` is a score's query and key. The
/// derivatives of the cap go to `slopes`, unless it is null; only kernels of
/// kind Capped have a cap.
///
/// One pass for each kind of mask, so that a model without it skips the pass.
/// Queries and keys behind the last one are read as the last one.
template <Scores Kind, Order O, int N, typename Place>
__device__ __forceinline__ void
maskScores(FragmentC (&s)[N], FragmentC *slopes, const AttentionParams &p,
           const AttentionExtras &extras, int64_t batch, int64_t head, int lane,
           Place &&place) {
  auto existing = [&](int half, int column) {
    int2 at = place(half, column);
    at.x = at.x < int(p.queries) ? at.x : int(p.queries) - 1;
    at.y = at.y < int(p.keys) ? at.y : int(p.keys) - 1;
    return at;
  };
  const float scale = float(p.scale);
  eachScore<O>(s, lane, [&](float &x, int, int) { x *= scale; });
  if constexpr (Kind == Scores::Capped) {
    const float cap = float(p.softcap), inverse = float(1 / p.softcap);
    int i = 0;
    eachScore<O>(s, lane, [&](float &x, int, int) {
      const float t = math::tanh(x * inverse);
      x = cap * t;
      if (slopes)
        slopes[i / 4].sums[i % 4] = 1.0f - t * t;
      ++i;
    });
  }
  if (p.bias) {
    const float *bias =
        extras.bias + batch * p.biasBatchStride + head * p.biasHeadStride;
    eachScore<O>(s, lane, [&](float &x, int half, int column) {
      const int2 at = existing(half, column);
      x += bias[at.x * p.biasQueryStride + at.y];
    });
  }
  const int64_t mask = batch * p.maskBatchStride + head * p.maskHeadStride;
  if (p.mask == MaskKind::Additive)
    eachScore<O>(s, lane, [&](float &x, int half, int column) {
      const int2 at = existing(half, column);
      x += static_cast<const float *>(
          extras.mask)[mask + at.x * p.maskQueryStride + at.y];
    });
  if (p.mask == MaskKind::Boolean)
    eachScore<O>(s, lane, [&](float &x, int half, int column) {
      const int2 at = existing(half, column);
      x = static_cast<const unsigned char *>(
              extras.mask)[mask + at.x * p.maskQueryStride + at.y]
              ? x
              : -INFINITY;
    });
  if (extras.groups) {
    const int64_t *groups = extras.groups + batch * p.groupsBatchStride;
    const int64_t shift = p.keys - p.queries;
    eachScore<O>(s, lane, [&](float &x, int half, int column) {
      const int2 at = existing(half, column);
      x = groups[at.y] == groups[at.x + shift] ? x : -INFINITY;
    });
  }
}

/// Scores outside of the range of their row become -infinity. `rangeOf(half)`:
/// the columns of the tile that row `half` sees.
template <Order O, int N, typename RangeOf>
__device__ __forceinline__ void hideScores(FragmentC (&s)[N], int lane,
                                           RangeOf &&rangeOf) {
  const SeenRange ranges[2] = {rangeOf(0), rangeOf(1)};
  eachScore<O>(s, lane, [&](float &x, int half, int column) {
    x = column >= ranges[half].begin && column < ranges[half].end ? x
                                                                  : -INFINITY;
  });
}

template <typename Op>
__device__ __forceinline__ float overQuad(float x, Op op) {
  x = op(x, __shfl_xor_sync(0xffffffffu, x, 2));
  return op(x, __shfl_xor_sync(0xffffffffu, x, 1));
}

/// A block's own tiles, then two pairs of walked tiles, then two stages of two
/// numbers for each walked row.
template <typename Shape, int Own> struct TensorTiles {
  using Stored = typename Shape::Stored;
  Stored *own;
  float *numbers;

  __device__ explicit TensorTiles(unsigned char *memory)
      : own(reinterpret_cast<Stored *>(memory)),
        numbers(reinterpret_cast<float *>(own + Own * Shape::kOwn +
                                          4 * Shape::kOther)) {}
  __device__ Stored *other(int stage, int which) const {
    return own + Own * Shape::kOwn + (2 * stage + which) * Shape::kOther;
  }
  /// Number `which` of a walked row, in one stage.
  __device__ float &numberOf(int stage, int which, int row) const {
    if constexpr (kNumbersInRows)
      return other(stage, which)[row * Shape::kStride + Shape::Depth];
    else
      return numbers[(2 * stage + which) * Shape::Walked + row];
  }
  static constexpr int64_t bytes() {
    return (Own * Shape::kOwn + 4 * Shape::kOther) * int64_t(sizeof(Stored)) +
           kNumbers * 4;
  }

private:
  /// Between long rows of f32 the numbers take no memory, and two operands of a
  /// block fit the 99 KiB of sm_86.
  static constexpr bool kNumbersInRows =
      std::is_same_v<Stored, float> && Shape::Depth > 64;
  /// The forward kernel needs none.
  static constexpr int kNumbers =
      Own == 1 || kNumbersInRows ? 0 : 4 * Shape::Walked;
};

/// Walks the tiles of `range`, where `at` counts: those of `plain` in a loop of
/// their own. `walk(isPlain)` moves `at` on by a tile.
template <typename Walk>
__device__ __forceinline__ void eachTile(int &at, SeenRange range,
                                         SeenRange plain, Walk &&walk) {
  for (at = range.begin; at < range.end;)
    if (at == plain.begin)
      while (at < plain.end)
        walk(std::true_type{});
    else
      walk(std::false_type{});
}

/// The tiles of keys and values that a block of queries walks.
template <typename Shape, Scores Kind> class KeyTiles {
public:
  __device__ KeyTiles(const AttentionParams &p, const AttentionExtras &extras,
                      const void *k, const void *v, int64_t batch, int64_t head,
                      int query0)
      : keys(k, p.k, p.keys, p.headDim, batch, head / (p.heads / p.kvHeads)),
        values(v, p.v, p.keys, p.headDim, batch, head / (p.heads / p.kvHeads)) {
    const int end = int(p.queries);
    const int next = query0 + kOwnRows < end ? query0 + kOwnRows : end;
    const SeenRange first = keysOf(p, extras, batch, query0);
    const SeenRange last = keysOf(p, extras, batch, next - 1);
    range = {first.begin / Shape::Walked * Shape::Walked, last.end};
    if (!asksMasks(Kind))
      plain = plainTiles<Shape::Walked>(first, last);
  }

  /// Starts to copy the tile from `key0` on, if there is one.
  template <int Own>
  __device__ void fetch(const TensorTiles<Shape, Own> &tiles, int key0,
                        int stage) const {
    if (key0 < range.end) {
      keys.template fetch<Shape::Walked, Order::Quads>(key0,
                                                       tiles.other(stage, 0));
      values.template fetch<Shape::Walked, Order::Quads>(key0,
                                                         tiles.other(stage, 1));
    }
    commitGroup();
  }

  /// Rounds what this thread has copied into a stage. The copies have arrived.
  template <int Own>
  __device__ void finish(const TensorTiles<Shape, Own> &tiles,
                         int stage) const {
    keys.template round<Shape::Walked, Order::Quads>(tiles.other(stage, 0));
    values.template round<Shape::Walked, Order::Quads>(tiles.other(stage, 1));
  }

  SeenRange range;
  SeenRange plain{-1, -1}; // no key

private:
  TensorRows<Shape, Kind> keys, values;
};

/// s = own first rows times walked first rows, ds = second times second, of a
/// warp's rows from `row` on.
template <typename Shape>
__device__ __forceinline__ void
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
