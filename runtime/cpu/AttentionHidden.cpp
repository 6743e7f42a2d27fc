//===- AttentionHidden.cpp - queries without visible keys, on cpu ---------===//
//
// Works row by row and element by element: such queries are mostly padding.
// Sums run over the keys, or over the queries, in order, so the number of
// threads changes no bit.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/AttentionHidden.h"

#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/kernels/AttentionHidden.h"

#include <algorithm>
#include <limits>

namespace tmc::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Channels that are added up at a time.
constexpr int64_t kChannels = 256;

/// The operands of attention, with elements T; `out`, `dout` and `lse` are
/// operands of the gradient.
template <typename T> struct Operands {
  const AttentionParams &p;
  const T *q, *k, *v, *out, *dout;
  const float *lse;
  AttentionExtras extras;

  static Operands ofForward(const AttentionParams &p, In ins, Out outs) {
    auto in = [&](size_t i) { return static_cast<const T *>(operand(ins, i)); };
    return {p,
            in(0),
            in(1),
            in(2),
            nullptr,
            nullptr,
            static_cast<const float *>(result(outs, 1)),
            AttentionExtras::of(ins, 3)};
  }
  static Operands ofGradient(const AttentionParams &p, In ins) {
    auto in = [&](size_t i) { return static_cast<const T *>(operand(ins, i)); };
    return {p,
            in(0),
            in(1),
            in(2),
            in(3),
            in(5),
            static_cast<const float *>(operand(ins, 4)),
            AttentionExtras::of(ins, 6)};
  }

  int64_t kvHeadOf(int64_t head) const { return head / (p.heads / p.kvHeads); }
  /// The index of a query's row in out and dout.
  int64_t outRow(int64_t batch, int64_t head, int64_t query) const {
    return ((batch * p.queries + query) * p.heads + head) * p.headDim;
  }
  const T *qRow(int64_t batch, int64_t head, int64_t query) const {
    return q + batch * p.q.batch + query * p.q.time + head * p.q.head;
  }
  const T *kRow(int64_t batch, int64_t kvHead, int64_t key) const {
    return k + batch * p.k.batch + key * p.k.time + kvHead * p.k.head;
  }
  const T *vRow(int64_t batch, int64_t kvHead, int64_t key) const {
    return v + batch * p.v.batch + key * p.v.time + kvHead * p.v.head;
  }
  float dot(const T *a, const T *b) const {
    float sum = 0;
    for (int64_t d = 0; d < p.headDim; ++d)
      sum += loadLanes<1>(a + d) * loadLanes<1>(b + d);
    return sum;
  }

  int64_t rowNumber(int64_t batch, int64_t head, int64_t query) const {
    return (batch * p.heads + head) * p.queries + query;
  }
  bool isHidden(int64_t batch, int64_t head, int64_t query) const {
    return lse[rowNumber(batch, head, query)] == -kInfinity;
  }
  FilledScore score(int64_t batch, int64_t head, int64_t query,
                    int64_t key) const {
    return filledScore(
        p, extras, batch, head, query, key,
        dot(qRow(batch, head, query), kRow(batch, kvHeadOf(head), key)));
  }
  FilledRow softmax(int64_t batch, int64_t head, int64_t query) const {
    FilledRow row{-kInfinity, 0};
    for (int64_t key = 0; key < p.keys; ++key)
      row.top = std::max(row.top, score(batch, head, query, key).score);
    if (row.top != -kInfinity)
      for (int64_t key = 0; key < p.keys; ++key)
        row.sum += math::exp(score(batch, head, query, key).score - row.top);
    return row;
  }

  /// A probability after dropout, and the gradient of its score.
  struct Gradient {
    float kept, onScore;
    FilledScore at;
  };
  Gradient gradient(int64_t batch, int64_t head, int64_t query, int64_t key,
                    const FilledRow &row) const {
    const FilledScore at = score(batch, head, query, key);
    const float probability = row.probability(at.score);
    const float factor = keptFactor(p, extras, batch, head, query, key);
    const T *grad = dout + outRow(batch, head, query);
    const float onKept = dot(grad, vRow(batch, kvHeadOf(head), key));
    const float mean = dot(grad, out + outRow(batch, head, query));
    return {probability * factor, probability * (factor * onKept - mean), at};
  }
};

template <typename T> void addTo(T *to, const float *sums, int64_t count) {
  for (int64_t d = 0; d < count; ++d)
    storeLanes<1>(to + d, loadLanes<1>(to + d) + sums[d]);
}

/// Calls body with the first channel and the number of channels, for all
/// channels.
template <typename F> void forChannels(int64_t headDim, F &&body) {
  for (int64_t d = 0; d < headDim; d += kChannels)
    body(d, std::min(kChannels, headDim - d));
}

template <typename T>
void attendRow(const Operands<T> &o, int64_t batch, int64_t head, int64_t query,
               T *out) {
  const AttentionParams &p = o.p;
  const FilledRow row = o.softmax(batch, head, query);
  forChannels(p.headDim, [&](int64_t first, int64_t count) {
    float sums[kChannels] = {};
    for (int64_t key = 0; key < p.keys; ++key) {
      const float kept =
          row.probability(o.score(batch, head, query, key).score) *
          keptFactor(p, o.extras, batch, head, query, key);
      const T *value = o.vRow(batch, o.kvHeadOf(head), key) + first;
      for (int64_t d = 0; d < count; ++d)
        sums[d] += kept * loadLanes<1>(value + d);
    }
    for (int64_t d = 0; d < count; ++d)
      storeLanes<1>(out + first + d, sums[d]);
  });
}

/// The gradient of the query: nothing else was added to it.
template <typename T>
void queryGradient(const Operands<T> &o, int64_t batch, int64_t head,
                   int64_t query, const FilledRow &row, T *dq) {
  const AttentionParams &p = o.p;
  forChannels(p.headDim, [&](int64_t first, int64_t count) {
    float sums[kChannels] = {};
    for (int64_t key = 0; key < p.keys; ++key) {
      const auto g = o.gradient(batch, head, query, key, row);
      const float slope = float(p.scale) * g.onScore * g.at.slope;
      const T *from = o.kRow(batch, o.kvHeadOf(head), key) + first;
      for (int64_t d = 0; d < count; ++d)
        sums[d] += slope * loadLanes<1>(from + d);
    }
    for (int64_t d = 0; d < count; ++d)
      storeLanes<1>(dq + first + d, sums[d]);
  });
}

/// Adds the contributions of the queries in the group of heads to a key's
/// gradients.
template <typename T>
void keyGradients(const Operands<T> &o, int64_t batch, int64_t kvHead,
                  int64_t key, const FilledRow *rows, T *dk, T *dv) {
  const AttentionParams &p = o.p;
  const int64_t perKey = p.heads / p.kvHeads;
  forChannels(p.headDim, [&](int64_t first, int64_t count) {
    float onKey[kChannels] = {}, onValue[kChannels] = {};
    for (int64_t head = kvHead * perKey; head < (kvHead + 1) * perKey; ++head)
      for (int64_t query = 0; query < p.queries; ++query) {
        if (!o.isHidden(batch, head, query))
          continue;
        const auto g = o.gradient(batch, head, query, key,
                                  rows[o.rowNumber(batch, head, query)]);
        const float slope = float(p.scale) * g.onScore * g.at.slope;
        const T *from = o.qRow(batch, head, query) + first;
        const T *grad = o.dout + o.outRow(batch, head, query) + first;
        for (int64_t d = 0; d < count; ++d) {
          onKey[d] += slope * loadLanes<1>(from + d);
          onValue[d] += g.kept * loadLanes<1>(grad + d);
        }
      }
    addTo(dk + first, onKey, count);
    addTo(dv + first, onValue, count);
  });
}

/// Calls body with `own` if the bias has its own elements for it, else with
/// each number below `end`.
template <typename F>
void forShared(bool isOwn, int64_t own, int64_t end, F &&body) {
  for (int64_t i = isOwn ? own : 0; i < (isOwn ? own + 1 : end); ++i)
    body(i);
}

/// Adds the contributions of the queries that share it to a row of dbias.
template <typename T>
void biasGradient(const Operands<T> &o, int64_t batchOf, int64_t headOf,
                  int64_t queryOf, const FilledRow *rows, float *dbias) {
  const AttentionParams &p = o.p;
  forShared(p.biasBatchStride, batchOf, p.batch, [&](int64_t batch) {
    forShared(p.biasHeadStride, headOf, p.heads, [&](int64_t head) {
      forShared(p.biasQueryStride, queryOf, p.queries, [&](int64_t query) {
        if (!o.isHidden(batch, head, query))
          return;
        const FilledRow &row = rows[o.rowNumber(batch, head, query)];
        for (int64_t key = 0; key < p.keys; ++key) {
          const auto g = o.gradient(batch, head, query, key, row);
          dbias[key] += g.onScore * g.at.onBias;
        }
      });
    });
  });
}

} // namespace

void attendHidden(Stream &stream, const AttentionParams &p, In ins, Out outs) {
  withFloats(p.type, [&](auto like) {
    using T = decltype(like);
    const auto o = Operands<T>::ofForward(p, ins, outs);
    T *const out = static_cast<T *>(result(outs, 0));
    parallelFor(stream, p.batch * p.heads, [&](int64_t tile, int64_t) {
      const int64_t batch = tile / p.heads, head = tile % p.heads;
      for (int64_t query = 0; query < p.queries; ++query)
        if (o.isHidden(batch, head, query))
          attendRow(o, batch, head, query, out + o.outRow(batch, head, query));
    });
  });
}

void addHiddenGradients(Stream &stream, const AttentionParams &p, In ins,
                        Out outs, void *scratch) {
  withFloats(p.type, [&](auto like) {
    using T = decltype(like);
    const auto o = Operands<T>::ofGradient(p, ins);
    FilledRow *const rows = static_cast<FilledRow *>(scratch);
    const AttentionGradResults results(p, outs);
    T *const dq = static_cast<T *>(results.dq);
    parallelFor(stream, p.batch * p.heads, [&](int64_t tile, int64_t) {
      const int64_t batch = tile / p.heads, head = tile % p.heads;
      for (int64_t query = 0; query < p.queries; ++query) {
        if (!o.isHidden(batch, head, query))
          continue;
        FilledRow &row = rows[o.rowNumber(batch, head, query)];
        row = o.softmax(batch, head, query);
        queryGradient(o, batch, head, query, row,
                      dq + dqAt(p, batch, query, head));
      }
    });
    const int64_t perKey = p.heads / p.kvHeads;
    T *const dk = static_cast<T *>(results.dk);
    T *const dv = static_cast<T *>(results.dv);
    parallelFor(stream, p.batch * p.kvHeads, [&](int64_t tile, int64_t) {
      const int64_t batch = tile / p.kvHeads, kvHead = tile % p.kvHeads;
      const float *lse =
          o.lse + o.rowNumber(batch, kvHead * perKey, /*query=*/0);
      const float *end = lse + perKey * p.queries;
      if (std::find(lse, end, -kInfinity) == end)
        return;
      for (int64_t key = 0; key < p.keys; ++key) {
        const int64_t at = dkAt(p, batch, key, kvHead);
        keyGradients(o, batch, kvHead, key, rows, dk + at, dv + at);
      }
    });
    if (!p.bias)
      return;
    float *const dbias = static_cast<float *>(result(outs, 3));
    const int64_t queries = p.biasQueryStride ? p.queries : 1;
    const int64_t heads = p.biasHeadStride ? p.heads : 1;
    const int64_t batches = p.biasBatchStride ? p.batch : 1;
    parallelFor(stream, batches * heads * queries, [&](int64_t tile, int64_t) {
      biasGradient(o, tile / queries / heads, tile / queries % heads,
                   tile % queries, rows, dbias + tile * p.keys);
    });
  });
}

} // namespace tmc::cpu
