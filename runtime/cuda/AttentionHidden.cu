//===- AttentionHidden.cu - queries without visible keys, on cuda ---------===//
//
// A warp takes one such query, or a key, and each lane every 32nd channel.
// Warps of other queries return at once. Sums run over the keys, or over the
// queries, in order.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/AttentionHidden.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Stored.h"
#include "runtime/kernels/AttentionHidden.h"

namespace tmc::cuda {
namespace {

constexpr int kHiddenBlock = 128;
/// Channels of a lane: headDim is at most 256.
constexpr int kLaneChannels = 256 / kWarp;

__device__ inline float overWarp(float x) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}

/// A lane's part of a row of channels.
struct Channels {
  float at[kLaneChannels];

  __device__ static Channels zero() {
    Channels c;
#pragma unroll
    for (int i = 0; i < kLaneChannels; ++i)
      c.at[i] = 0;
    return c;
  }
  __device__ static Channels load(const StoredIn &row, int64_t headDim) {
    Channels c;
#pragma unroll
    for (int i = 0; i < kLaneChannels; ++i) {
      const int64_t d = i * kWarp + int64_t(threadIdx.x) % kWarp;
      c.at[i] = d < headDim ? row.at(d) : 0.0f;
    }
    return c;
  }
  __device__ void add(float factor, const Channels &other) {
#pragma unroll
    for (int i = 0; i < kLaneChannels; ++i)
      at[i] = fmaf(factor, other.at[i], at[i]);
  }
  /// The sum over all lanes.
  __device__ float dot(const Channels &other) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kLaneChannels; ++i)
      sum = fmaf(at[i], other.at[i], sum);
    return overWarp(sum);
  }
  __device__ void store(const StoredOut &row, int64_t headDim) const {
#pragma unroll
    for (int i = 0; i < kLaneChannels; ++i) {
      const int64_t d = i * kWarp + int64_t(threadIdx.x) % kWarp;
      if (d < headDim)
        row.put(d, at[i]);
    }
  }
};

/// Rows of the operands, by batch, head (kvHead) and query (key).
struct Rows {
  const AttentionParams &p;
  const GradOperands &o;

  __device__ int64_t numberOf(int64_t batch, int64_t head,
                              int64_t query) const {
    return (batch * p.heads + head) * p.queries + query;
  }
  __device__ int64_t outAt(int64_t batch, int64_t head, int64_t query) const {
    return ((batch * p.queries + query) * p.heads + head) * p.headDim;
  }
  __device__ int64_t kvHeadOf(int64_t head) const {
    return head / (p.heads / p.kvHeads);
  }
  __device__ Channels q(int64_t batch, int64_t head, int64_t query) const {
    return Channels::load(StoredIn{o.q, p.type}.shifted(batch * p.q.batch +
                                                        query * p.q.time +
                                                        head * p.q.head),
                          p.headDim);
  }
  __device__ Channels k(int64_t batch, int64_t head, int64_t key) const {
    return Channels::load(
        StoredIn{o.k, p.type}.shifted(batch * p.k.batch + key * p.k.time +
                                      kvHeadOf(head) * p.k.head),
        p.headDim);
  }
  __device__ Channels v(int64_t batch, int64_t head, int64_t key) const {
    return Channels::load(
        StoredIn{o.v, p.type}.shifted(batch * p.v.batch + key * p.v.time +
                                      kvHeadOf(head) * p.v.head),
        p.headDim);
  }
  __device__ Channels out(int64_t batch, int64_t head, int64_t query) const {
    return Channels::load(
        StoredIn{o.out, p.type}.shifted(outAt(batch, head, query)), p.headDim);
  }
  __device__ Channels dout(int64_t batch, int64_t head, int64_t query) const {
    return Channels::load(
        StoredIn{o.dout, p.type}.shifted(outAt(batch, head, query)), p.headDim);
  }

  __device__ FilledScore score(int64_t batch, int64_t head, int64_t query,
                               int64_t key, const Channels &qRow) const {
    return filledScore(p, o.extras, batch, head, query, key,
                       qRow.dot(k(batch, head, key)));
  }
  __device__ FilledRow softmax(int64_t batch, int64_t head, int64_t query,
                               const Channels &qRow) const {
    FilledRow row{-INFINITY, 0};
    for (int64_t key = 0; key < p.keys; ++key)
      row.top = fmaxf(row.top, score(batch, head, query, key, qRow).score);
    if (row.top != -INFINITY)
      for (int64_t key = 0; key < p.keys; ++key)
        row.sum +=
            math::exp(score(batch, head, query, key, qRow).score - row.top);
    return row;
  }
};

/// A probability after dropout, and the gradient of its score with respect to
/// the added bias and to q k^T.
struct ScoreGradient {
  float kept, onBias, onProduct;
};

__device__ inline ScoreGradient
gradientOf(const AttentionParams &p, const AttentionExtras &extras,
           int64_t batch, int64_t head, int64_t query, int64_t key,
           const FilledScore &at, const FilledRow &row, float onKept,
           float mean) {
  const float probability = row.probability(at.score);
  const float factor = keptFactor(p, extras, batch, head, query, key);
  const float onScore = probability * (factor * onKept - mean);
  return {probability * factor, onScore * at.onBias,
          float(p.scale) * onScore * at.slope};
}

__global__ void __launch_bounds__(kHiddenBlock)
    attendHiddenRows(AttentionParams p, GradOperands o, void *out) {
  const int64_t number = globalThread() / kWarp;
  if (number >= p.batch * p.heads * p.queries || o.lse[number] != -INFINITY)
    return; // a whole warp
  const int64_t query = number % p.queries, head = number / p.queries % p.heads;
  const int64_t batch = number / p.queries / p.heads;
  const Rows rows{p, o};
  const Channels q = rows.q(batch, head, query);
  const FilledRow row = rows.softmax(batch, head, query, q);
  Channels sum = Channels::zero();
  for (int64_t key = 0; key < p.keys; ++key)
    sum.add(row.probability(rows.score(batch, head, query, key, q).score) *
                keptFactor(p, o.extras, batch, head, query, key),
            rows.v(batch, head, key));
  sum.store(StoredOut{out, p.type}.shifted(rows.outAt(batch, head, query)),
            p.headDim);
}

/// dq of these queries, and their softmax for the other kernels.
__global__ void __launch_bounds__(kHiddenBlock)
    hiddenQueries(AttentionParams p, GradOperands o, FilledRow *filled) {
  const int64_t number = globalThread() / kWarp;
  if (number >= p.batch * p.heads * p.queries || o.lse[number] != -INFINITY)
    return; // a whole warp
  const int64_t query = number % p.queries, head = number / p.queries % p.heads;
  const int64_t batch = number / p.queries / p.heads;
  const Rows rows{p, o};
  const Channels q = rows.q(batch, head, query);
  const Channels dout = rows.dout(batch, head, query);
  const float mean = dout.dot(rows.out(batch, head, query));
  const FilledRow row = rows.softmax(batch, head, query, q);
  Channels sum = Channels::zero();
  for (int64_t key = 0; key < p.keys; ++key) {
    const Channels k = rows.k(batch, head, key);
    const FilledScore at =
        filledScore(p, o.extras, batch, head, query, key, q.dot(k));
    sum.add(gradientOf(p, o.extras, batch, head, query, key, at, row,
                       dout.dot(rows.v(batch, head, key)), mean)
                .onProduct,
            k);
  }
  sum.store(StoredOut{o.dq, p.type}.shifted(dqAt(p, batch, query, head)),
            p.headDim);
  if (threadIdx.x % kWarp == 0)
    filled[number] = row;
}

/// Adds the contributions of these queries to a key's gradients.
__global__ void __launch_bounds__(kHiddenBlock)
    hiddenKeys(AttentionParams p, GradOperands o, const FilledRow *filled) {
  const int64_t number = globalThread() / kWarp; // (b, s, kvHead)
  if (number >= p.batch * p.keys * p.kvHeads)    // a whole warp
    return;
  const int64_t kvHead = number % p.kvHeads, key = number / p.kvHeads % p.keys;
  const int64_t batch = number / p.kvHeads / p.keys;
  const int64_t perKey = p.heads / p.kvHeads;
  const int lane = int(threadIdx.x) % kWarp;
  const Rows rows{p, o};
  Channels onKey = Channels::zero(), onValue = Channels::zero();
  bool any = false;
  for (int64_t head = kvHead * perKey; head < (kvHead + 1) * perKey; ++head)
    for (int64_t query0 = 0; query0 < p.queries; query0 += kWarp) {
      const int64_t own = query0 + lane;
      unsigned hidden = __ballot_sync(
          0xffffffffu, own < p.queries &&
                           o.lse[rows.numberOf(batch, head, own)] == -INFINITY);
      for (int i = 0; i < kWarp; ++i) {
        if (!(hidden >> i & 1))
          continue;
        any = true;
        const int64_t query = query0 + i;
        const Channels q = rows.q(batch, head, query);
        const Channels dout = rows.dout(batch, head, query);
        const ScoreGradient g =
            gradientOf(p, o.extras, batch, head, query, key,
                       rows.score(batch, head, query, key, q),
                       filled[rows.numberOf(batch, head, query)],
                       dout.dot(rows.v(batch, head, key)),
                       dout.dot(rows.out(batch, head, query)));
        onKey.add(g.onProduct, q);
        onValue.add(g.kept, dout);
      }
    }
  if (!any)
    return;
  const int64_t at = dkAt(p, batch, key, kvHead);
  const StoredOut dk = StoredOut{o.dk, p.type}.shifted(at);
  const StoredOut dv = StoredOut{o.dv, p.type}.shifted(at);
  onKey.add(1, Channels::load({dk.data, p.type}, p.headDim));
  onValue.add(1, Channels::load({dv.data, p.type}, p.headDim));
  onKey.store(dk, p.headDim);
  onValue.store(dv, p.headDim);
}

/// Adds the contributions of these queries to an element of dbias, a warp each.
__global__ void __launch_bounds__(kHiddenBlock)
    hiddenBias(AttentionParams p, GradOperands o, const FilledRow *filled) {
  const int64_t batches = p.biasBatchStride ? p.batch : 1;
  const int64_t heads = p.biasHeadStride ? p.heads : 1;
  const int64_t queries = p.biasQueryStride ? p.queries : 1;
  const int64_t number = globalThread() / kWarp;    // (b, h, t, s)
  if (number >= batches * heads * queries * p.keys) // a whole warp
    return;
  const int64_t key = number % p.keys, t = number / p.keys % queries;
  const int64_t h = number / p.keys / queries % heads;
  const int64_t b = number / p.keys / queries / heads;
  const int lane = int(threadIdx.x) % kWarp;
  const Rows rows{p, o};
  float sum = 0;
  // The queries, samples and heads of one element: its own, or all that share
  // it.
  const int64_t batchEnd = batches > 1 ? b + 1 : p.batch;
  const int64_t headEnd = heads > 1 ? h + 1 : p.heads;
  const int64_t queryEnd = queries > 1 ? t + 1 : p.queries;
  for (int64_t batch = b; batch < batchEnd; ++batch)
    for (int64_t head = h; head < headEnd; ++head)
      for (int64_t query0 = t; query0 < queryEnd; query0 += kWarp) {
        const int64_t own = query0 + lane;
        unsigned hidden = __ballot_sync(
            0xffffffffu,
            own < queryEnd &&
                o.lse[rows.numberOf(batch, head, own)] == -INFINITY);
        for (int i = 0; i < kWarp; ++i) {
          if (!(hidden >> i & 1))
            continue;
          const int64_t query = query0 + i;
          const Channels dout = rows.dout(batch, head, query);
          sum += gradientOf(p, o.extras, batch, head, query, key,
                            rows.score(batch, head, query, key,
                                       rows.q(batch, head, query)),
                            filled[rows.numberOf(batch, head, query)],
                            dout.dot(rows.v(batch, head, key)),
                            dout.dot(rows.out(batch, head, query)))
                     .onBias;
        }
      }
  if (lane == 0)
    o.dbias[number] += sum;
}

} // namespace

void attendHidden(Queue &queue, const AttentionParams &p, const void *q,
                  const void *k, const void *v, const AttentionExtras &extras,
                  const float *lse, void *out) {
  GradOperands operands{};
  operands.q = q;
  operands.k = k;
  operands.v = v;
  operands.lse = lse;
  operands.extras = extras;
  launch(queue, attendHiddenRows,
         blocksFor(p.batch * p.heads * p.queries * kWarp, kHiddenBlock),
         dim3(kHiddenBlock), 0, p, operands, out);
}

void addHiddenGradients(Queue &queue, const AttentionParams &p,
                        const GradOperands &operands, void *scratch) {
  FilledRow *const filled = static_cast<FilledRow *>(scratch);
  launch(queue, hiddenQueries,
         blocksFor(p.batch * p.heads * p.queries * kWarp, kHiddenBlock),
         dim3(kHiddenBlock), 0, p, operands, filled);
  launch(queue, hiddenKeys,
         blocksFor(p.batch * p.keys * p.kvHeads * kWarp, kHiddenBlock),
         dim3(kHiddenBlock), 0, p, operands,
         static_cast<const FilledRow *>(filled));
  if (p.bias)
    launch(queue, hiddenBias,
           blocksFor((p.biasBatchStride ? p.batch : 1) *
                         attentionBiasElements(p) * kWarp,
                     kHiddenBlock),
           dim3(kHiddenBlock), 0, p, operands,
           static_cast<const FilledRow *>(filled));
}

} // namespace tmc::cuda
