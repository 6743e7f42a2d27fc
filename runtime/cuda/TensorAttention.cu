//===- TensorAttention.cu - bf16 attention on tensor cores ----------------===//
//
// The tiling of Attention.cu and AttentionGrad.cu with fragments instead of the
// parts of threads (TensorTile.h). A block owns rows of queries (for the
// gradients of keys and values, rows of keys) and walks tiles of the other
// side:
//
//   forward   s = q k^T;  p = exp(s - top);         out += p v
//   queries   s = q k^T;  dp = dout v^T;            dq  += ds k
//   keys      s = k q^T;  dp = v dout^T;            dv  += p dout,  dk += ds q
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/TensorAttention.h"

#include "runtime/cuda/TensorTile.h"

namespace tmc::cuda {

namespace {

template <typename Shape>
__global__ void __launch_bounds__(kTensorThreads)
    tensorAttention(AttentionParams p, const void *__restrict__ q,
                    const void *__restrict__ k, const void *__restrict__ v,
                    AttentionExtras extras, uint16_t *__restrict__ out,
                    float *__restrict__ lse) {
  TMC_DYNAMIC_SHARED(memory);
  const TensorTiles<Shape, 1> tiles(memory);
  constexpr int Walked = Shape::Walked;
  const int lane = linearThread() % kWarp, warp = linearThread() / kWarp;
  // The last queries see the most keys, so they start first.
  const int64_t query0 = int64_t(gridDim.x - 1 - blockIdx.x) * kOwnRows;
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  const int64_t kvHead = head / (p.heads / p.kvHeads);
  const TensorRows keyRows =
      rowsOfHead(k, p.k, p.keys, p.headDim, batch, kvHead);
  const TensorRows valueRows =
      rowsOfHead(v, p.v, p.keys, p.headDim, batch, kvHead);
  const bool drops = p.dropout > 0;
  const float scale = float(p.scale);

  const int64_t queryEnd =
      query0 + kOwnRows < p.queries ? query0 + kOwnRows : p.queries;
  const int64_t keyEnd = keyEndOf(p, extras, batch, queryEnd);
  const int64_t keyBegin = firstKey(p, query0) / Walked * Walked;
  auto fetch = [&](int64_t key0, int stage) {
    if (key0 < keyEnd)
      fetchPair<Shape, Walked>(keyRows, valueRows, key0, p.headDim,
                               tiles.other(stage, 0));
    commitGroup();
  };
  fetchTile<Shape, kOwnRows>(
      rowsOfHead(q, p.q, p.queries, p.headDim, batch, head), query0, p.headDim,
      tiles.own);
  fetch(keyBegin, 0);

  FragmentC sum[Shape::kChannels];
  zeroSums(sum);
  float top[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
  int stage = 0;
  for (int64_t key0 = keyBegin; key0 < keyEnd; key0 += Walked, stage ^= 1) {
    waitGroup<0>();
    __syncthreads(); // this tile has arrived, the other stage has been read
    fetch(key0 + Walked, stage ^ 1);
    if (drops) {
      fillKept<kOwnRows, Walked, Shape::kKeptStride, kTensorThreads>(
          p, extras, batch, head, query0, key0, tiles.kept);
      __syncthreads();
    }
    FragmentC s[Shape::kColumns];
    zeroSums(s);
    multiplyRows<Shape>(s, tiles.own, 16 * warp, tiles.other(stage, 0), lane);
    const bool plain = isPlain(p, extras, query0, kOwnRows, key0, Walked);
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
      // If a row has seen no key yet, any finite shift gives exp(-inf) = 0.
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
    writeSums(sum, half, total[half] > 0 ? dropScale / total[half] : 0.0f,
              p.headDim, out + row * p.headDim, lane);
    if (lane % 4 == 0)
      lse[(batch * p.heads + head) * p.queries + query] =
          total[half] > 0 ? markHidden(p, top[half] + logf(total[half]))
                          : -INFINITY;
  }
}

/// The strides of dout.
__device__ inline AttentionStrides stridesOfDout(const AttentionParams &p) {
  return {p.queries * p.heads * p.headDim, p.heads * p.headDim, p.headDim};
}

/// One score of a gradient: `product` becomes drop(P), and `gradient`, of the
/// dropped probability, becomes that of the product. `factor` is dropout's
/// multiplier.
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
__global__ void __launch_bounds__(kTensorThreads)
    tensorGradientOfKeys(AttentionParams p, GradOperands o) {
  TMC_DYNAMIC_SHARED(memory);
  const TensorTiles<Shape, 2> tiles(memory);
  constexpr int Walked = Shape::Walked;
  const int lane = linearThread() % kWarp, warp = linearThread() / kWarp;
  const int64_t key0 = int64_t(blockIdx.x) * kOwnRows;
  const int64_t kvHead = blockIdx.y, batch = blockIdx.z;
  const bool drops = p.dropout > 0;
  const float dropScale = drops ? float(1 / (1 - p.dropout)) : 1.0f;

  fetchPair<Shape, kOwnRows>(
      rowsOfHead(o.k, p.k, p.keys, p.headDim, batch, kvHead),
      rowsOfHead(o.v, p.v, p.keys, p.headDim, batch, kvHead), key0, p.headDim,
      tiles.own);
  const int64_t perKey = p.heads / p.kvHeads;
  const int64_t begin = firstQuery(p, o.extras, batch, key0) / Walked * Walked;
  const int64_t end = queryEndOf(p, key0 + kOwnRows);
  const int64_t trips = begin < end ? (end - begin + Walked - 1) / Walked : 0;
  // All tiles of all heads that read these keys, in one walk.
  auto fetch = [&](int64_t step, int stage) {
    if (step < trips * perKey) {
      const int64_t head = kvHead * perKey + step / trips;
      const int64_t query0 = begin + step % trips * Walked;
      fetchPair<Shape, Walked>(
          rowsOfHead(o.q, p.q, p.queries, p.headDim, batch, head),
          rowsOfHead(o.dout, stridesOfDout(p), p.queries, p.headDim, batch,
                     head),
          query0, p.headDim, tiles.other(stage, 0));
    }
    commitGroup();
  };
  fetch(0, 0);

  FragmentC dk[Shape::kChannels], dv[Shape::kChannels];
  zeroSums(dk);
  zeroSums(dv);
  int stage = 0;
  for (int64_t step = 0; step < trips * perKey; ++step, stage ^= 1) {
    const int64_t head = kvHead * perKey + step / trips;
    const int64_t query0 = begin + step % trips * Walked;
    waitGroup<0>();
    __syncthreads(); // this tile has arrived, the other stage has been read
    fetch(step + 1, stage ^ 1);
    if (drops) {
      fillKept<Walked, kOwnRows, kOwnRows + 4, kTensorThreads>(
          p, o.extras, batch, head, query0, key0, tiles.kept);
      __syncthreads();
    }
    FragmentC s[Shape::kColumns], ds[Shape::kColumns];
    multiplyPair<Shape>(s, ds, tiles, stage, 16 * warp, lane);
    const bool plain = isPlain(p, o.extras, query0, Walked, key0, kOwnRows);
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
              drops ? tiles.kept[column * (kOwnRows + 4) + row] * dropScale
                    : 1.0f;
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
    writeSums(dk, half, 1.0f, p.headDim, static_cast<uint16_t *>(o.dk) + at,
              lane);
    writeSums(dv, half, 1.0f, p.headDim, static_cast<uint16_t *>(o.dv) + at,
              lane);
  }
}

template <typename Shape>
__global__ void __launch_bounds__(kTensorThreads)
    tensorGradientOfQueries(AttentionParams p, GradOperands o) {
  TMC_DYNAMIC_SHARED(memory);
  const TensorTiles<Shape, 2> tiles(memory);
  constexpr int Walked = Shape::Walked;
  const int lane = linearThread() % kWarp, warp = linearThread() / kWarp;
  const int64_t query0 = int64_t(gridDim.x - 1 - blockIdx.x) * kOwnRows;
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  const int64_t kvHead = head / (p.heads / p.kvHeads);
  const bool drops = p.dropout > 0;
  const float dropScale = drops ? float(1 / (1 - p.dropout)) : 1.0f;
  const TensorRows keyRows =
      rowsOfHead(o.k, p.k, p.keys, p.headDim, batch, kvHead);
  const TensorRows valueRows =
      rowsOfHead(o.v, p.v, p.keys, p.headDim, batch, kvHead);
  fetchPair<Shape, kOwnRows>(
      rowsOfHead(o.q, p.q, p.queries, p.headDim, batch, head),
      rowsOfHead(o.dout, stridesOfDout(p), p.queries, p.headDim, batch, head),
      query0, p.headDim, tiles.own);
  const int64_t queryEnd =
      query0 + kOwnRows < p.queries ? query0 + kOwnRows : p.queries;
  const int64_t keyEnd = keyEndOf(p, o.extras, batch, queryEnd);
  const int64_t keyBegin = firstKey(p, query0) / Walked * Walked;
  auto fetch = [&](int64_t key0, int stage) {
    if (key0 < keyEnd)
      fetchPair<Shape, Walked>(keyRows, valueRows, key0, p.headDim,
                               tiles.other(stage, 0));
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
  zeroSums(dq);
  int stage = 0;
  for (int64_t key0 = keyBegin; key0 < keyEnd; key0 += Walked, stage ^= 1) {
    waitGroup<0>();
    __syncthreads(); // this tile has arrived, the other stage has been read
    fetch(key0 + Walked, stage ^ 1);
    if (drops) {
      fillKept<kOwnRows, Walked, Shape::kKeptStride, kTensorThreads>(
          p, o.extras, batch, head, query0, key0, tiles.kept);
      __syncthreads();
    }
    FragmentC s[Shape::kColumns], ds[Shape::kColumns];
    multiplyPair<Shape>(s, ds, tiles, stage, 16 * warp, lane);
    const bool plain = isPlain(p, o.extras, query0, kOwnRows, key0, Walked);
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
      writeSums(dq, half, 1.0f, p.headDim,
                static_cast<uint16_t *>(o.dq) + row * p.headDim, lane);
  }
}

/// Calls body with the shape of the forward kernel and that of the gradients.
/// The gradients walk longer heads in smaller tiles, to save registers.
template <typename F>
auto withTensorShapes(const AttentionParams &p, F &&body) {
  if (p.headDim <= 64)
    return body(TensorShape<64, 64>{}, TensorShape<64, 64>{});
  return body(TensorShape<128, 64>{}, TensorShape<128, 32>{});
}

constexpr int kTensorCapability = 80; // the first with bf16

} // namespace

bool takesTensorCores(const CudaDevice &device, const AttentionParams &p) {
  if (!isForTensorCores(p) || device.computeCapability() < kTensorCapability)
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
           dim3(unsigned(ceilDivide(p.queries, kOwnRows)), unsigned(p.heads),
                unsigned(p.batch)),
           dim3(kSide, kTensorThreads / kSide), TensorTiles<Shape, 1>::bytes(p),
           p, q, k, v, extras, static_cast<uint16_t *>(out), lse);
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
    const dim3 block(kSide, kTensorThreads / kSide);
    const int64_t bytes = TensorTiles<Shape, 2>::bytes(p);
    launch(queue, tensorGradientOfKeys<Shape>,
           dim3(unsigned(ceilDivide(p.keys, kOwnRows)), unsigned(p.kvHeads),
                unsigned(p.batch)),
           block, bytes, p, operands);
    launch(queue, tensorGradientOfQueries<Shape>,
           dim3(unsigned(ceilDivide(p.queries, kOwnRows)), unsigned(p.heads),
                unsigned(p.batch)),
           block, bytes, p, operands);
  });
}

} // namespace tmc::cuda
