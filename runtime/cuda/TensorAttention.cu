//===- TensorAttention.cu - attention on tensor cores ---------------------===//
//
// The tiling of Attention.cu with fragments instead of the parts of threads
// (TensorTile.h). A block owns rows of queries and walks tiles of keys:
//
//   s = q k^T;  p = exp(s - top);  out += p v
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/TensorAttention.h"

#include "runtime/cuda/TensorDropout.h"
#include "runtime/cuda/TensorLaunch.h"

namespace tmc::cuda {

namespace {

/// The sums of a thread's rows, over the tiles so far.
template <typename Shape> struct RunningRows {
  FragmentC sum[Shape::kChannels];
  float top[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};

  /// Scores become probabilities over 2^(factor * top), and the sums of earlier
  /// tiles are rescaled to the new maximum. `dropped`: the bits of elements
  /// that dropout removes.
  __device__ __forceinline__ void add(FragmentC (&s)[Shape::kColumns],
                                      float factor, int lane,
                                      uint32_t dropped) {
    float largest[2] = {top[0], top[1]}, shift[2], rows[2] = {0, 0};
    eachScore<Order::Quads>(s, lane, [&](float &x, int half, int) {
      largest[half] = largest[half] > x ? largest[half] : x;
    });
    float shrink[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      largest[half] = overQuad(largest[half], MaxOp{});
      // If a row has seen no key yet, any finite shift gives 2^-inf = 0.
      shift[half] = largest[half] == -INFINITY ? 0.0f : largest[half] * factor;
      shrink[half] =
          math::card::powerOfTwo(fmaf(top[half], factor, -shift[half]));
      top[half] = largest[half];
    }
    int i = 0;
    eachScore<Order::Quads>(s, lane, [&](float &x, int half, int) {
      x = math::card::powerOfTwo(fmaf(x, factor, -shift[half]));
      rows[half] += x;
      x = isDropped<Order::Quads>(dropped, i++) ? 0.0f : x;
    });
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      total[half] = total[half] * shrink[half] + overQuad(rows[half], AddOp{});
#pragma unroll
      for (int n = 0; n < Shape::kChannels; ++n) {
        sum[n].sums[2 * half] *= shrink[half];
        sum[n].sums[2 * half + 1] *= shrink[half];
      }
    }
  }

  /// Writes row `half` to `out`, and its log-sum-exp. Scores are in units of
  /// `unit`.
  __device__ void write(const AttentionParams &p, float unit, float dropScale,
                        int half, int lane, typename Shape::Stored *out,
                        float *lse) const {
    const float all = total[half];
    writeSums(sum, half, all > 0 ? dropScale / all : 0.0f, p.headDim, out,
              lane);
    if (lane % 4 == 0)
      *lse = all > 0 ? markHidden(p, top[half] * unit + logf(all)) : -INFINITY;
  }
};

template <typename Shape, Scores Kind>
__global__ void __launch_bounds__(kTensorThreads)
    tensorAttention(AttentionParams p, const void *__restrict__ q,
                    const void *__restrict__ k, const void *__restrict__ v,
                    AttentionExtras extras,
                    typename Shape::Stored *__restrict__ out,
                    float *__restrict__ lse) {
  TMC_DYNAMIC_SHARED(memory);
  const TensorTiles<Shape, 1> tiles(memory);
  constexpr int Walked = Shape::Walked;
  constexpr bool kMasks = asksMasks(Kind);
  const int lane = linearThread() % kWarp, warp = linearThread() / kWarp;
  // The last queries see the most keys, so they start first.
  const int query0 = int(gridDim.x - 1 - blockIdx.x) * kOwnRows;
  const int row0 = 16 * warp + lane / 4; // and + 8
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  const KeyTiles<Shape, Kind> keys(p, extras, k, v, batch, head, query0);
  const bool drops = kMasks ? p.dropout > 0 : Kind == Scores::Dropped;
  const TensorDropout dropout(p, extras, batch, drops);
  // Masked scores are scaled already.
  const float unit = kMasks ? 1.0f : float(p.scale), factor = unit * kLog2E;
  const TensorRows<Shape, Kind> queries(q, p.q, p.queries, p.headDim, batch,
                                        head);
  queries.template fetch<kOwnRows, Order::Rows>(query0, tiles.own);
  keys.fetch(tiles, keys.range.begin, 0);
  if constexpr (Shape::kElement == Element::TF32) {
    waitGroup<0>();
    queries.template round<kOwnRows, Order::Rows>(tiles.own);
  }
  int key0 = 0, stage = 0;

  RunningRows<Shape> running;
  zeroSums(running.sum);
  auto walk = [&](auto isPlain) {
    waitGroup<0>();
    keys.finish(tiles, stage);
    __syncthreads(); // this tile has arrived, the other stage has been read
    keys.fetch(tiles, key0 + Walked, stage ^ 1);
    const uint32_t dropped = dropout.template ofQueries<Walked>(
        p, head, query0 + 16 * warp, key0, lane);
    FragmentC s[Shape::kColumns];
    zeroSums(s);
    multiplyRows<Shape>(s, tiles.own, 16 * warp, tiles.other(stage, 0), lane);
    if constexpr (kMasks)
      maskScores<Kind, Order::Quads>(
          s, nullptr, p, extras, batch, head, lane, [&](int half, int column) {
            return make_int2(query0 + row0 + 8 * half, key0 + column);
          });
    if constexpr (!decltype(isPlain)::value)
      hideScores<Order::Quads>(s, lane, [&](int half) {
        const SeenRange seen =
            keysOf(p, extras, batch, query0 + row0 + 8 * half);
        return SeenRange{seen.begin - key0, seen.end - key0};
      });
    running.add(s, factor, lane, dropped);
    multiplyScores<Shape>(running.sum, s, tiles.other(stage, 1), lane,
                          kMasks && isExact(p));
    key0 += Walked;
    stage ^= 1;
  };
  eachTile(key0, keys.range, keys.plain, walk);
  waitGroup<0>();

  const float dropScale = drops ? float(1 / (1 - p.dropout)) : 1.0f;
  const int64_t at = (batch * p.heads + head) * p.queries;
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (const int64_t query = query0 + row0 + 8 * half; query < p.queries)
      running.write(p, unit, dropScale, half, lane,
                    out + ((batch * p.queries + query) * p.heads + head) *
                              p.headDim,
                    lse + at + query);
}

constexpr int kTensorCapability = 80; // the first with bf16 and TF32
/// Rows are counted in 32 bits, and a row of an operand is a 32-bit step.
constexpr int64_t kMostRows = int64_t(1) << 30;

} // namespace

bool takesTensorCores(const CudaDevice &device, const AttentionParams &p) {
  if (!isForTensorCores(p) || device.computeCapability() < kTensorCapability)
    return false;
  for (int64_t count : {p.queries, p.keys, p.q.time, p.k.time, p.v.time,
                        p.heads * p.headDim, p.window})
    if (count >= kMostRows)
      return false;
  return withTensorShapes(p, [&](auto forward, auto gradient) {
    return TensorTiles<decltype(forward), 1>::bytes() <= device.sharedBytes() &&
           TensorTiles<decltype(gradient), 2>::bytes() <= device.sharedBytes();
  });
}

Status prepareTensorAttention(const CudaDevice &device,
                              const AttentionParams &p) {
  return withTensorShapes(p, [&](auto forward, auto) {
    using Shape = decltype(forward);
    return withEachKind([&](auto kind) {
      return allowShared(device, "attention",
                         tensorAttention<Shape, decltype(kind)::value>,
                         TensorTiles<Shape, 1>::bytes());
    });
  });
}

void runTensorAttention(Queue &queue, const AttentionParams &p, const void *q,
                        const void *k, const void *v,
                        const AttentionExtras &extras, void *out, float *lse) {
  withTensorShapes(p, [&](auto forward, auto) {
    using Shape = decltype(forward);
    withKind(p, extras, {q, k, v}, [&](auto kind) {
      launch(queue, tensorAttention<Shape, decltype(kind)::value>,
             dim3(unsigned(ceilDivide(p.queries, kOwnRows)), unsigned(p.heads),
                  unsigned(p.batch)),
             dim3(kSide, kTensorThreads / kSide),
             TensorTiles<Shape, 1>::bytes(), p, q, k, v, extras,
             static_cast<typename Shape::Stored *>(out), lse);
    });
  });
}

} // namespace tmc::cuda
