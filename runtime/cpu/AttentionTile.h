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

namespace tmc::cpu {

/// Where a tile lies in the whole.
struct AttentionTile {
  int64_t batch, head;
  int64_t query, queries; // first, and how many lanes count
  int64_t key, keys;      // first, and how many rows
};

/// The operands that every tile reads.
struct AttentionOperands {
  const void *mask;
  const int64_t *seed, *samples;
};

/// How many keys, from key 0 on, the queries below `queryEnd` can see.
inline int64_t visibleKeys(const AttentionParams &p, int64_t queryEnd) {
  if (!p.causal)
    return p.keys;
  const int64_t seen = queryEnd + p.keys - p.queries;
  return seen < 0 ? 0 : seen < p.keys ? seen : p.keys;
}

/// Scales raw products and applies the masks: what isn't seen becomes -inf.
void scaleAndMask(const AttentionParams &p, const AttentionOperands &operands,
                  const AttentionTile &tile, float *scores);

/// keep[r * kPanelN + lane]: all bits set where dropout keeps the element.
void dropoutBits(const AttentionParams &p, const AttentionOperands &operands,
                 const AttentionTile &tile, int32_t *keep);

/// to[q * stride + d] (+)= from[d * kPanelN + q] for d < depth, q < queries.
void transposePanel(const float *from, int64_t depth, int64_t queries,
                    float *to, int64_t stride, bool accumulate);

} // namespace tmc::cpu

#endif // TMC_RUNTIME_CPU_ATTENTIONTILE_H
