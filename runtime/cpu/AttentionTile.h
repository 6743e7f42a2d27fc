//===- AttentionTile.h - scores of one block, with keys in rows -*- C++ -*-===//
//
// Attention on cpu works on transposed scores: a tile has one row per key and
// one lane per query of a panel,
//
//                 queries q0 .. q0 + 31
//      key s0     [ . . . . . . . . . ]
//      key s0+1   [ . . . . . . . . . ]     tile[r * kPanelN + lane]
//         ...
//
// so that the softmax runs down the rows with one query per lane and no
// horizontal sums, and a finished tile of probabilities is, as it lies, the
// packed right-hand operand of the product with v. This file says what happens
// to a tile between the two products: scale, masks, dropout.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_ATTENTIONTILE_H
#define TMC_RUNTIME_CPU_ATTENTIONTILE_H

#include "runtime/cpu/Gemm.h"
#include "runtime/kernels/Attention.h"

#include <algorithm>

namespace tmc::cpu {

/// Where a tile lies in the whole.
struct AttentionTile {
  int64_t batch, head;
  int64_t query, queries; // first, and how many lanes count
  int64_t key, keys;      // first, and how many rows
};

/// The keys below this are seen by the queries below `queryEnd` at most.
inline int64_t keyEnd(const AttentionParams &p, const AttentionExtras &o,
                      int64_t batch, int64_t queryEnd) {
  const int64_t at = queryEnd - 1 + p.keys - p.queries;
  int64_t end = p.keys;
  if (p.causal) {
    end = at + 1;
    if (o.prefix)
      end = std::max(end, o.prefix[batch * p.prefixBatchStride]);
  }
  if (p.window > 0)
    end = std::min(end, at + p.window);
  return std::clamp<int64_t>(end, 0, p.keys);
}

/// The keys before this are seen by no query from `query` on.
inline int64_t firstKey(const AttentionParams &p, int64_t query) {
  if (p.window <= 0)
    return 0;
  const int64_t first = query + p.keys - p.queries - p.window + 1;
  return std::clamp<int64_t>(first, 0, p.keys);
}

/// Scales and caps raw products and applies the masks: what isn't seen becomes
/// -inf. With a soft cap, `slopes` gets its derivatives, unless it is null.
void scaleAndMask(const AttentionParams &p, const AttentionExtras &operands,
                  const AttentionTile &tile, float *scores, float *slopes);

/// keep[r * kPanelN + lane]: all bits set where dropout keeps the element.
void dropoutBits(const AttentionParams &p, const AttentionExtras &operands,
                 const AttentionTile &tile, int32_t *keep);

/// to[q * stride + d] (+)= from[d * kPanelN + q] for d < depth, q < queries.
void transposePanel(const float *from, int64_t depth, int64_t queries,
                    float *to, int64_t stride, bool accumulate);

} // namespace tmc::cpu

#endif // TMC_RUNTIME_CPU_ATTENTIONTILE_H
