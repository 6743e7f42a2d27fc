//===- TensorAttentionGrad.cu - its gradients on tensor cores -------------===//
//
// The tiling of AttentionGrad.cu with fragments instead of the parts of threads
// (TensorTile.h). A block owns rows of queries, or rows of keys, and walks
// tiles of the other side:
//
//   queries   s = q k^T;  dp = dout v^T;  dq += ds k
//   keys      s = k q^T;  dp = v dout^T;  dv += p dout,  dk += ds q
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/TensorAttention.h"

#include "runtime/cuda/TensorDropout.h"
#include "runtime/cuda/TensorLaunch.h"

namespace tmc::cuda {

namespace {

/// The strides of dout.
__device__ inline AttentionStrides stridesOfDout(const AttentionParams &p) {
  return {p.queries * p.heads * p.headDim, p.heads * p.headDim, p.headDim};
}

/// The exponent that a query's lse adds to its scores times log2(e). A query
/// that sees no key has no probabilities.
__device__ __forceinline__ float exponentOf(float lse) {
  return lse == -INFINITY ? -INFINITY : lse * -kLog2E;
}

/// The number of a query for which a score has a gradient: the exponent of its
/// probability, and dot.
struct QueryNumbers {
  float exponent, dot;
};

__device__ inline QueryNumbers numbersOf(const AttentionParams &p,
                                         const GradOperands &o, int64_t batch,
                                         int64_t head, int64_t query) {
  if (query >= p.queries)
    return {-INFINITY, 0};
  const int64_t at = (batch * p.heads + head) * p.queries + query;
  return {exponentOf(o.lse[at]), o.dots[at]};
}

/// Scores s become drop(P), and the gradients ds of dropped probabilities
/// become those of the products, without the scale. `of(half, column)`: a
/// score's query. `drop(i)`: dropout's factor of score i.
template <Order O, int N, typename Of, typename Drop>
__device__ __forceinline__ void
gradientsOfScores(FragmentC (&s)[N], FragmentC (&ds)[N],
                  const FragmentC *slopes, float factor, int lane, Of &&of,
                  Drop &&dropOf) {
  int i = 0;
  eachScore<O>(s, lane, [&](float &x, int half, int column) {
    const int n = i / 4, at = i % 4;
    const QueryNumbers query = of(half, column);
    const float drop = dropOf(i++);
    const float probability =
        math::card::powerOfTwo(fmaf(x, factor, query.exponent));
    float &gradient = ds[n].sums[at];
    x = probability * drop;
    gradient = probability * fmaf(gradient, drop, -query.dot);
    if (slopes)
      gradient *= slopes[n].sums[at];
  });
}

/// Copies a block's own rows of two operands. Those that are rounded have
/// arrived when it returns.
template <Order O, typename Shape, Scores Kind>
__device__ void fetchOwn(const TensorRows<Shape, Kind> &first,
                         const TensorRows<Shape, Kind> &second, int row0,
                         const TensorTiles<Shape, 2> &tiles) {
  first.template fetch<kOwnRows, O>(row0, tiles.own);
  second.template fetch<kOwnRows, O>(row0, tiles.own + Shape::kOwn);
  if constexpr (Shape::kElement == Element::TF32) {
    commitGroup();
    waitGroup<0>();
    first.template round<kOwnRows, O>(tiles.own);
    second.template round<kOwnRows, O>(tiles.own + Shape::kOwn);
  }
}

/// The tiles of queries that a block of keys walks: those of all heads that
/// read the keys, one after the other. Copies are one tile ahead.
template <typename Shape, Scores Kind> class QueryTiles {
public:
  __device__ QueryTiles(const AttentionParams &p, const GradOperands &o,
                        int64_t batch, int64_t head, SeenRange range, int heads)
      : queries(o.q, p.q, p.queries, p.headDim, batch, head),
        douts(o.dout, stridesOfDout(p), p.queries, p.headDim, batch, head),
        numbers((batch * p.heads + head) * p.queries), range(range),
        next(range.begin), heads(range.begin < range.end ? heads : 0) {}

  /// Starts to copy the next tile, and two numbers of each of its queries.
  __device__ void fetch(const AttentionParams &p, const GradOperands &o,
                        const TensorTiles<Shape, 2> &tiles, int stage) {
    if (heads > 0) {
      queries.template fetch<Shape::Walked, Order::Rows>(next,
                                                         tiles.other(stage, 0));
      douts.template fetch<Shape::Walked, Order::Rows>(next,
                                                       tiles.other(stage, 1));
      if (const int own = linearThread(); own < Shape::Walked) {
        // The zeros of a missing query meet zeros of its rows.
        const bool exists = next + own < int(p.queries);
        const int64_t at = exists ? numbers + next + own : numbers;
        copyAsync<4>(&tiles.numberOf(stage, 0, own), o.lse + at,
                     exists ? 4 : 0);
        copyAsync<4>(&tiles.numberOf(stage, 1, own), o.dots + at,
                     exists ? 4 : 0);
      }
      next += Shape::Walked;
      if (next >= range.end) {
        next = range.begin;
        --heads;
        queries.advance(p.q.head);
        douts.advance(p.headDim);
        numbers += p.queries;
      }
    }
    commitGroup();
  }
  /// Rounds what this thread has copied, and turns log-sum-exps into exponents.
  __device__ void finish(const TensorTiles<Shape, 2> &tiles, int stage) const {
    queries.template round<Shape::Walked, Order::Rows>(tiles.other(stage, 0));
    douts.template round<Shape::Walked, Order::Rows>(tiles.other(stage, 1));
    if (const int own = linearThread(); own < Shape::Walked) {
      float &number = tiles.numberOf(stage, 0, own);
      number = exponentOf(number);
    }
  }

private:
  TensorRows<Shape, Kind> queries, douts;
  int64_t numbers; // of the head's first query
  SeenRange range;
  int next, heads;
};

/// Writes the rows of a block of keys, from the lane's first one on.
template <typename Stored, int N>
__device__ void writeKeys(const AttentionParams &p, const GradOperands &o,
                          const FragmentC (&dk)[N], const FragmentC (&dv)[N],
                          int64_t batch, int64_t kvHead, int key0, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t key = key0 + half;
    if (key >= p.keys)
      continue;
    const int64_t at = dkAt(p, batch, key, kvHead);
    writeSums(dk, half, float(p.scale), p.headDim,
              static_cast<Stored *>(o.dk) + at, lane);
    writeSums(dv, half, 1.0f, p.headDim, static_cast<Stored *>(o.dv) + at,
              lane);
  }
}

template <typename Shape, Scores Kind>
__global__ void __launch_bounds__(kTensorThreads)
    tensorGradientOfKeys(AttentionParams p, GradOperands o) {
  TMC_DYNAMIC_SHARED(memory);
  const TensorTiles<Shape, 2> tiles(memory);
  constexpr int Walked = Shape::Walked;
  constexpr bool kMasks = asksMasks(Kind);
  const int lane = linearThread() % kWarp, warp = linearThread() / kWarp;
  const int key0 = int(blockIdx.x) * kOwnRows;
  const int row0 = 16 * warp + lane / 4 * 2; // and the next one
  const int64_t kvHead = blockIdx.y, batch = blockIdx.z;
  const bool drops = kMasks ? p.dropout > 0 : Kind == Scores::Dropped;
  const float dropScale = drops ? float(1 / (1 - p.dropout)) : 1.0f;
  const float factor = (kMasks ? 1.0f : float(p.scale)) * kLog2E;

  fetchOwn<Order::Pairs>(
      TensorRows<Shape, Kind>(o.k, p.k, p.keys, p.headDim, batch, kvHead),
      TensorRows<Shape, Kind>(o.v, p.v, p.keys, p.headDim, batch, kvHead), key0,
      tiles);
  const int perKey = int(p.heads / p.kvHeads);
  const int lastKey =
      (key0 + kOwnRows < int(p.keys) ? key0 + kOwnRows : int(p.keys)) - 1;
  const SeenRange first = queriesOf(p, o.extras, batch, key0);
  const SeenRange last = queriesOf(p, o.extras, batch, lastKey);
  const SeenRange plain =
      kMasks ? SeenRange{-1, -1} : plainTiles<Walked>(first, last);
  const SeenRange range{first.begin / Walked * Walked, last.end};

  const int64_t head0 = kvHead * perKey;
  QueryTiles<Shape, Kind> queries(p, o, batch, head0, range, perKey);
  queries.fetch(p, o, tiles, 0);

  const TensorDropout dropout(p, o.extras, batch, drops);
  FragmentC dk[Shape::kChannels], dv[Shape::kChannels];
  zeroSums(dk);
  zeroSums(dv);
  int stage = 0, query0 = 0;
  int64_t head = head0;
  auto walk = [&](auto isPlain) {
    waitGroup<0>();
    queries.finish(tiles, stage);
    __syncthreads(); // this tile has arrived, the other stage has been read
    queries.fetch(p, o, tiles, stage ^ 1);
    uint32_t bits = 0;
    if (drops) {
      const int own0 = key0 + 16 * warp;
      bits = dropout.template ofKeys<Walked>(p, head, query0, own0, lane);
      if constexpr (dropped::isStored<Walked>())
        if (o.dropped)
          dropped::store<Walked>(p, o.dropped, int(batch), int(head), query0,
                                 own0, lane, bits);
      bits = exchangeDropped(bits, lane);
    }
    FragmentC s[Shape::kColumns], ds[Shape::kColumns];
    multiplyPair<Shape>(s, ds, tiles, stage, 16 * warp, lane);
    FragmentC slopes[Kind == Scores::Capped ? Shape::kColumns : 1];
    FragmentC *const slope = Kind == Scores::Capped ? slopes : nullptr;
    if constexpr (kMasks)
      maskScores<Kind, Order::Rows>(
          s, slope, p, o.extras, batch, head, lane, [&](int half, int column) {
            return make_int2(query0 + column, key0 + row0 + half);
          });
    if constexpr (!decltype(isPlain)::value)
      hideScores<Order::Rows>(s, lane, [&](int half) {
        const int key = key0 + row0 + half;
        if (key >= int(p.keys))
          return SeenRange{0, 0};
        const SeenRange queries = queriesOf(p, o.extras, batch, key);
        return SeenRange{queries.begin - query0, queries.end - query0};
      });
    gradientsOfScores<Order::Rows>(
        s, ds, slope, factor, lane,
        [&](int, int column) {
          return QueryNumbers{tiles.numberOf(stage, 0, column),
                              tiles.numberOf(stage, 1, column)};
        },
        [&](int i) {
          return isDropped<Order::Pairs>(bits, i) ? 0.0f : dropScale;
        });
    multiplyScores<Shape>(dv, s, tiles.other(stage, 1), lane,
                          kMasks && isExact(p));
    multiplyScores<Shape>(dk, ds, tiles.other(stage, 0), lane,
                          kMasks && isExact(p));
    query0 += Walked;
    stage ^= 1;
  };
  for (; head < head0 + perKey; ++head)
    eachTile(query0, range, plain, walk);
  waitGroup<0>();
  writeKeys<typename Shape::Stored>(p, o, dk, dv, batch, kvHead, key0 + row0,
                                    lane);
}

template <typename Shape, Scores Kind>
__global__ void __launch_bounds__(kTensorThreads)
    tensorGradientOfQueries(AttentionParams p, GradOperands o) {
  TMC_DYNAMIC_SHARED(memory);
  const TensorTiles<Shape, 2> tiles(memory);
  constexpr int Walked = Shape::Walked;
  constexpr bool kMasks = asksMasks(Kind);
  const int lane = linearThread() % kWarp, warp = linearThread() / kWarp;
  const int query0 = int(gridDim.x - 1 - blockIdx.x) * kOwnRows;
  const int row0 = 16 * warp + lane / 4; // and + 8
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  const KeyTiles<Shape, Kind> keys(p, o.extras, o.k, o.v, batch, head, query0);
  const bool drops = kMasks ? p.dropout > 0 : Kind == Scores::Dropped;
  const float dropScale = drops ? float(1 / (1 - p.dropout)) : 1.0f;
  const float factor = (kMasks ? 1.0f : float(p.scale)) * kLog2E;
  fetchOwn<Order::Rows>(
      TensorRows<Shape, Kind>(o.q, p.q, p.queries, p.headDim, batch, head),
      TensorRows<Shape, Kind>(o.dout, stridesOfDout(p), p.queries, p.headDim,
                              batch, head),
      query0, tiles);
  keys.fetch(tiles, keys.range.begin, 0);
  int key0 = 0, stage = 0;

  const QueryNumbers numbers[2] = {
      numbersOf(p, o, batch, head, query0 + row0),
      numbersOf(p, o, batch, head, query0 + row0 + 8)};
  const TensorDropout dropout(p, o.extras, batch, drops);
  const int own0 = query0 + 16 * warp;
  // The keys that a warp's queries see. The gradient of keys leaves words for
  // tiles with such keys.
  const SeenRange seen =
      own0 < int(p.queries)
          ? SeenRange{keysOf(p, o.extras, batch, own0).begin,
                      keysOf(p, o.extras, batch,
                             own0 + 16 < int(p.queries) ? own0 + 15
                                                        : p.queries - 1)
                          .end}
          : SeenRange{0, 0};
  const uint32_t *words = o.dropped ? dropped::rowOf(p, o.dropped, int(batch),
                                                     int(head), own0, lane / 4)
                                    : nullptr;
  FragmentC dq[Shape::kChannels];
  zeroSums(dq);
  auto walk = [&](auto isPlain) {
    waitGroup<0>();
    keys.finish(tiles, stage);
    __syncthreads(); // this tile has arrived, the other stage has been read
    keys.fetch(tiles, key0 + Walked, stage ^ 1);
    uint32_t bits = 0;
    if (drops && key0 < seen.end && key0 + Walked > seen.begin) {
      if (dropped::isStored<Walked>() && words)
        bits = dropped::load<Walked>(words, key0, lane);
      else
        bits = dropout.template ofQueries<Walked>(p, head, own0, key0, lane);
    }
    FragmentC s[Shape::kColumns], ds[Shape::kColumns];
    multiplyPair<Shape>(s, ds, tiles, stage, 16 * warp, lane);
    FragmentC slopes[Kind == Scores::Capped ? Shape::kColumns : 1];
    FragmentC *const slope = Kind == Scores::Capped ? slopes : nullptr;
    if constexpr (kMasks)
      maskScores<Kind, Order::Quads>(
          s, slope, p, o.extras, batch, head, lane, [&](int half, int column) {
            return make_int2(query0 + row0 + 8 * half, key0 + column);
          });
    if constexpr (!decltype(isPlain)::value)
      hideScores<Order::Quads>(s, lane, [&](int half) {
        const SeenRange seen =
            keysOf(p, o.extras, batch, query0 + row0 + 8 * half);
        return SeenRange{seen.begin - key0, seen.end - key0};
      });
    gradientsOfScores<Order::Quads>(
        s, ds, slope, factor, lane,
        [&](int half, int) { return numbers[half]; },
        [&](int i) {
          return isDropped<Order::Quads>(bits, i) ? 0.0f : dropScale;
        });
    multiplyScores<Shape>(dq, ds, tiles.other(stage, 0), lane,
                          kMasks && isExact(p));
    key0 += Walked;
    stage ^= 1;
  };
  eachTile(key0, keys.range, keys.plain, walk);
  waitGroup<0>();
  using Stored = typename Shape::Stored;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t query = query0 + row0 + 8 * half;
    if (query < p.queries)
      writeSums(dq, half, float(p.scale), p.headDim,
                static_cast<Stored *>(o.dq) + dqAt(p, batch, query, head),
                lane);
  }
}

} // namespace

Status prepareTensorGradients(const CudaDevice &device,
                              const AttentionParams &p) {
  return withTensorShapes(p, [&](auto, auto gradient) {
    using Shape = decltype(gradient);
    const int64_t bytes = TensorTiles<Shape, 2>::bytes();
    return withEachKind([&](auto kind) {
      if (Status s = allowShared(
              device, "attention_grad",
              tensorGradientOfKeys<Shape, decltype(kind)::value>, bytes);
          !s)
        return s;
      return allowShared(device, "attention_grad",
                         tensorGradientOfQueries<Shape, decltype(kind)::value>,
                         bytes);
    });
  });
}

void runTensorGradients(Queue &queue, const AttentionParams &p,
                        const GradOperands &operands) {
  withTensorShapes(p, [&](auto, auto gradient) {
    using Shape = decltype(gradient);
    const dim3 block(kSide, kTensorThreads / kSide);
    const int64_t bytes = TensorTiles<Shape, 2>::bytes();
    withKind(
        p, operands.extras, {operands.q, operands.k, operands.v, operands.dout},
        [&](auto kind) {
          launch(queue, tensorGradientOfKeys<Shape, decltype(kind)::value>,
                 dim3(unsigned(ceilDivide(p.keys, kOwnRows)),
                      unsigned(p.kvHeads), unsigned(p.batch)),
                 block, bytes, p, operands);
          launch(queue, tensorGradientOfQueries<Shape, decltype(kind)::value>,
                 dim3(unsigned(ceilDivide(p.queries, kOwnRows)),
                      unsigned(p.heads), unsigned(p.batch)),
                 block, bytes, p, operands);
        });
  });
}

} // namespace tmc::cuda
