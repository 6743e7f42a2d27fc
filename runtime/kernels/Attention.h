//===- Attention.h - scaled dot-product attention ---------------*- C++ -*-===//
//
//   P = softmax(scale q k^T + mask) over the keys;  out = dropout(P) v
//
// computed block by block: P is never held. The gradient recomputes P from q, k
// and the log-sum-exp of each row, which is all that the forward pass saves
// beside its output.
//
// q, k and v may be slices of a packed buffer: each has its own strides, in
// elements; the innermost dimension (headDim) is contiguous. With kvHeads <
// heads, head h reads key head h / (heads / kvHeads).
//
// Source: T. Dao et al., "FlashAttention", NeurIPS 2022.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ATTENTION_H
#define TMC_RUNTIME_KERNELS_ATTENTION_H

#include "runtime/kernels/Kernel.h"

namespace tmc {

enum class MaskKind : uint8_t {
  None,
  Additive, // of the element type; added after scaling
  Boolean,  // i1; true: attend
};

struct AttentionStrides {
  int64_t batch, time, head; // elements
};

struct AttentionParams {
  DType type;
  int64_t batch, heads, kvHeads, queries, keys, headDim;
  AttentionStrides q, k, v;
  /// Query t sees the keys s <= t + keys - queries.
  bool causal;
  double scale;
  MaskKind mask;
  /// Elements from one batch, head and query of the mask to the next; 0 where
  /// it is broadcast. Keys are contiguous.
  int64_t maskBatchStride, maskHeadStride, maskQueryStride;
  /// Probability of dropping an element of P; 0: no dropout.
  double dropout;
  uint32_t stream; // of the random numbers
  int64_t scratchBytes;
};

/// Rows of a block of queries and of a block of keys on cpu.
constexpr int64_t kAttentionBlock = 64;

/// A row that sees no key at all has output 0, and lse -infinity.
///
/// ins: q [B, T, H, D], k, v [B, S, Hkv, D] (strided), mask (if any),
///      seed i64[2] and samples i64[B] (if dropout > 0; see Philox.h; the
///      element number of (h, t, s) is (h * T + t) * S + s of H * T * S).
/// outs: out [B, T, H, D] contiguous, lse f32 [B, H, T].
class Attention : public Kernel {
public:
  using Params = AttentionParams;
  static int64_t scratchCap(const Params &params, Backend backend);
  TMC_KERNEL(Attention)
};

/// ins: q, k, v, out, lse, dout [B, T, H, D], mask, seed, samples.
/// outs: dq [B, T, H, D], dk, dv [B, S, Hkv, D], all contiguous.
class AttentionGrad : public Kernel {
public:
  using Params = AttentionParams;
  static int64_t scratchCap(const Params &params, Backend backend);
  TMC_KERNEL(AttentionGrad)
};

/// cpu: per worker, packed blocks and one block of scores.
inline int64_t Attention::scratchCap(const Params &p, Backend backend) {
  if (backend == Backend::Cuda)
    return alignScratch(p.batch * p.heads * p.queries * 4);
  const int64_t block = kAttentionBlock, depth = (p.headDim + 15) / 16 * 16;
  return kScratchWorkers *
         alignScratch((block * block + 4 * block * depth + 4 * block) * 4);
}
/// cpu: per worker, blocks of scores and of their gradients, packed blocks, and
/// the sums of dout * out of one head's rows.
inline int64_t AttentionGrad::scratchCap(const Params &p, Backend backend) {
  if (backend == Backend::Cuda)
    return alignScratch(p.batch * p.heads * p.queries * 4) +
           alignScratch(p.batch * p.heads * p.queries * p.headDim * 4);
  const int64_t block = kAttentionBlock, depth = (p.headDim + 15) / 16 * 16;
  return kScratchWorkers * alignScratch((4 * block * block + 8 * block * depth +
                                         p.queries + 4 * block) *
                                        4);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_ATTENTION_H
