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
// The softmax runs down the rows, with one query per lane and no horizontal
// sums. A finished tile of probabilities already has the layout of the packed
// right-hand operand of the product with v. This file defines the work on a
// tile between the two products: scale, masks, dropout.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_ATTENTIONTILE_H
#define TMC_RUNTIME_CPU_ATTENTIONTILE_H

#include "runtime/cpu/Gemm.h"
#include "runtime/kernels/Attention.h"

#include <algorithm>

namespace tmc::cpu {

/// The position of a tile in the whole.
struct AttentionTile {
  int64_t batch, head;
  int64_t query, queries; // first, and the number of used lanes
  int64_t key, keys;      // first, and the number of rows
};

/// Queries below `queryEnd` see only keys below this.
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

/// The queries from `query` on see no key before this one.
inline int64_t firstKey(const AttentionParams &p, int64_t query) {
  if (p.window <= 0)
    return 0;
  const int64_t first = query + p.keys - p.queries - p.window + 1;
  return std::clamp<int64_t>(first, 0, p.keys);
}

/// Scales and caps raw products and applies the masks: hidden keys become -inf.
/// With a soft cap, `slopes` gets its derivatives, unless it is null. Returns
/// what the scores are still to be multiplied by: the scale if there is nothing
/// else to do, so that a pass over the tile is saved, or 1.
float scaleAndMask(const AttentionParams &p, const AttentionExtras &operands,
                   const AttentionTile &tile, float *scores, float *slopes);

/// keep[r * kPanelN + lane]: all bits are set if dropout keeps the element.
void dropoutBits(const AttentionParams &p, const AttentionExtras &operands,
                 const AttentionTile &tile, int32_t *keep);

/// to[q * stride + d] (+)= from[d * kPanelN + q] for d < depth, q < queries.
void transposePanel(const float *from, int64_t depth, int64_t queries,
                    float *to, int64_t stride, bool accumulate);

} // namespace tmc::cpu

#endif // TMC_RUNTIME_CPU_ATTENTIONTILE_H
