//===- Attention.h - scaled dot-product attention ---------------*- C++ -*-===//
//
//   P = softmax(cap(scale q k^T) + mask + bias) over the keys
//   out = dropout(P) v
//
// computed block by block: P is never stored. The gradient recomputes P from q,
// k and the log-sum-exp of each row, which the forward pass saves beside its
// output.
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
#include "runtime/kernels/Portable.h"

namespace tmc {

enum class MaskKind : uint8_t {
  None,
  Additive, // f32; added after scaling
  Boolean,  // i1; true: attend
};
TMC_WORDS(MaskKind, MaskKind::None, MaskKind::Additive, MaskKind::Boolean)

/// The effect of a fill on the score of a hidden key.
enum class FillKind : uint8_t {
  Adds,          // The fill is added to the score.
  ReplacesScore, // The fill replaces it; mask and bias are added.
  ReplacesAll,   // The fill replaces score, mask and bias.
};
TMC_WORDS(FillKind, FillKind::Adds, FillKind::ReplacesScore,
          FillKind::ReplacesAll)

struct AttentionStrides {
  int64_t batch, time, head; // elements

  TMC_FIELDS(batch, time, head)
};

struct AttentionParams {
  DType type;
  int64_t batch, heads, kvHeads, queries, keys, headDim;
  AttentionStrides q, k, v;
  /// Query t, at position p = t + keys - queries, sees the keys s <= p, and
  /// those below the sample's prefix.
  bool causal;
  double scale;
  /// Scores are softcap * tanh(score / softcap); 0: no cap.
  double softcap;
  /// Query t sees the keys with |s - p| < window; 0: all.
  int64_t window;
  MaskKind mask;
  /// Elements from one batch, head and query of the mask to the next; 0 if the
  /// mask is broadcast. Keys are contiguous.
  int64_t maskBatchStride, maskHeadStride, maskQueryStride;
  /// Numbers that are added in addition to the mask, and have a gradient;
  /// strides as for the mask.
  bool bias = false;
  int64_t biasBatchStride = 0, biasHeadStride = 0, biasQueryStride = 0;
  /// The fill of hidden keys, in rows that see no key; 0: hidden keys have no
  /// probability in these rows either.
  double fill = 0;
  FillKind fillKind = FillKind::Adds;
  /// Groups and prefix, if given: elements from one sample to the next; 0 if
  /// all samples share them.
  int64_t groupsBatchStride, prefixBatchStride;
  /// Probability of dropping an element of P; 0: no dropout.
  double dropout;
  /// For bf16 on cuda: probabilities and their gradients enter products as two
  /// numbers, 16 bits in total, and not rounded to bf16.
  bool exact = false;
  /// For f32 on cuda: factors, probabilities and their gradients are rounded to
  /// TF32 when they are multiplied, in heads of up to kMostTensorChannels. The
  /// cpu multiplies f32.
  bool tf32 = false;
  /// The gradient has dq, dk and dv as the heads of one result.
  bool packed = false;
  int64_t rowsPerSample; // samples has batch / rowsPerSample entries; 0: 1
  uint32_t stream;       // of the random numbers
  int64_t scratchBytes = 0;

  TMC_FIELD_GROUPS(TMC_GIVEN(type, batch, heads, kvHeads, queries, keys,
                             headDim, q, k, v, causal, scale, softcap, window,
                             mask, maskBatchStride, maskHeadStride,
                             maskQueryStride),
                   TMC_OPTIONAL(bias, biasBatchStride, biasHeadStride,
                                biasQueryStride),
                   TMC_OPTIONAL(fill, fillKind),
                   TMC_GIVEN(groupsBatchStride, prefixBatchStride, dropout),
                   TMC_OPTIONAL(exact), TMC_OPTIONAL(tf32),
                   TMC_OPTIONAL(packed), TMC_GIVEN(rowsPerSample, stream))
};

/// Elements of dq from one query to the next, and of dk and dv from one key to
/// the next.
TMC_HD inline int64_t dqStride(const AttentionParams &p) {
  return (p.heads + (p.packed ? 2 * p.kvHeads : 0)) * p.headDim;
}
TMC_HD inline int64_t dkStride(const AttentionParams &p) {
  return p.packed ? dqStride(p) : p.kvHeads * p.headDim;
}
/// The first element of a query's head in dq, and of a key's in dk and dv.
TMC_HD inline int64_t dqAt(const AttentionParams &p, int64_t batch,
                           int64_t query, int64_t head) {
  return (batch * p.queries + query) * dqStride(p) + head * p.headDim;
}
TMC_HD inline int64_t dkAt(const AttentionParams &p, int64_t batch, int64_t key,
                           int64_t kvHead) {
  return (batch * p.keys + key) * dkStride(p) + kvHead * p.headDim;
}

/// The largest headDim of cuda's kernels for tensor cores.
constexpr int64_t kMostTensorChannels = 128;

/// True if the tensor-core kernels take these operands, on a card whose tensor
/// cores have bf16 and TF32.
inline bool isForTensorCores(const AttentionParams &p) {
  return (p.type == DType::BF16 || (p.type == DType::F32 && p.tf32)) &&
         p.headDim <= kMostTensorChannels;
}

/// A query whose lse is at most this sees no key, or only keys that the mask's
/// numbers hide. A fill is at most twice this.
constexpr float kHiddenScore = -5000;

/// Whether a query with only hidden keys, or keys hidden by the mask's numbers,
/// may have nonzero probabilities.
TMC_HD inline bool mayHideRows(const AttentionParams &p) {
  return p.fill != 0 || p.mask == MaskKind::Additive;
}

/// The optional operands of attention; null if absent.
struct AttentionExtras {
  const void *mask;
  const int64_t *groups, *prefix;
  const int64_t *seed, *samples;
  const float *bias;

  /// The extras among an operator's inputs, from input `first` on.
  static AttentionExtras of(In ins, size_t first) {
    auto ints = [&](size_t i) {
      return static_cast<const int64_t *>(operand(ins, first + i));
    };
    return {operand(ins, first),
            ints(1),
            ints(2),
            ints(3),
            ints(4),
            static_cast<const float *>(operand(ins, first + 5))};
  }
};

/// A row that sees no key has lse -infinity, and output 0, unless there is a
/// fill (AttentionHidden.h). A row whose keys are all hidden by the mask's
/// numbers also gets lse -infinity, because f32 can't represent its lse
/// accurately. Scores and sums are f32 for narrow types too.
///
/// ins: q [B, T, H, D], k, v [B, S, Hkv, D] (strided), mask (if any),
///      groups i64[B or 1, S] (if any; query t sees keys of the group of key
///      t + S - T), prefix i64[B or 1] (if any; of a causal one), seed i64[2]
///      and samples i64[B / rowsPerSample] (if dropout > 0; see Philox.h; the
///      number of element (b, h, t, s) is
///      ((row * H + h) * T + t) * S + s, where row = samples[b / rowsPerSample]
///      * rowsPerSample + b % rowsPerSample), bias f32 (if any).
/// outs: out [B, T, H, D] contiguous, lse f32 [B, H, T].
class Attention : public Kernel {
public:
  using Params = AttentionParams;
  static constexpr bool takes(const Params &p, Backend) {
    return p.type == DType::F32 || isHalf(p.type);
  }
  static int64_t scratchCap(const Params &params, Backend backend);
  static int64_t cudaLaunches(const Params &params, Wanted) {
    return 1 + (params.fill != 0);
  }
  TMC_KERNEL(Attention)
};

/// ins: q, k, v, out, lse, dout [B, T, H, D], mask, groups, prefix, seed,
/// samples, bias.
/// outs: dq [B, T, H, D], dk, dv [B, S, Hkv, D], dbias as bias (if any), all
///       contiguous; if packed, dq, dk and dv are the heads of the first one
///       [B, T, H + 2 Hkv, D], T is S, and there is no bias.
class AttentionGrad : public Kernel {
public:
  using Params = AttentionParams;
  static constexpr bool takes(const Params &p, Backend) {
    return p.type == DType::F32 || isHalf(p.type);
  }
  static int64_t scratchCap(const Params &params, Backend backend);
  static int64_t cudaLaunches(const Params &params, Wanted);
  TMC_KERNEL(AttentionGrad)
};

/// The addresses of dq, dk and dv.
struct AttentionGradResults {
  void *dq, *dk, *dv;

  AttentionGradResults(const AttentionParams &p, Out outs)
      : dq(result(outs, 0)), dk(result(outs, 1)), dv(result(outs, 2)) {
    if (!p.packed)
      return;
    const int64_t headBytes = p.headDim * sizeOf(p.type);
    dk = static_cast<char *>(dq) + p.heads * headBytes;
    dv = static_cast<char *>(dk) + p.kvHeads * headBytes;
  }
};

/// Blocks of the cpu kernels: the most queries of a panel, panels of a group,
/// and keys of a chunk.
constexpr int64_t kAttentionPanel = 32;
constexpr int64_t kAttentionGroup = 16;
constexpr int64_t kAttentionChunk = 256;

/// Keys of a chunk.
inline int64_t attentionChunk(const AttentionParams &p) {
  return p.keys < kAttentionChunk ? p.keys : kAttentionChunk;
}
/// Panels of a group.
inline int64_t attentionGroup(const AttentionParams &p) {
  const int64_t panels = (p.queries + kAttentionPanel - 1) / kAttentionPanel;
  return panels < kAttentionGroup ? panels : kAttentionGroup;
}
/// Scratch of one worker: packed keys and values, a tile and its dropout bits;
/// per panel the packed queries, the sums, and two numbers per query.
inline int64_t attentionWorkerBytes(const AttentionParams &p) {
  const int64_t chunk = attentionChunk(p);
  return alignScratch(
      4 * (2 * chunk * p.headDim + 2 * chunk * kAttentionPanel +
           attentionGroup(p) * (2 * p.headDim + 2) * kAttentionPanel));
}
/// Elements of a bias, or of its gradient, for one sample.
inline int64_t attentionBiasElements(const AttentionParams &p) {
  return (p.biasHeadStride ? p.heads : 1) *
         (p.biasQueryStride ? p.queries : 1) * p.keys;
}
/// The gradient of a bias that all samples share is a sum over them. The batch
/// is cut into this many slices, each with its own sum, and the sums are added
/// in order. There are enough slices to use many threads, but the sums take at
/// most about the memory of dq and dk. Without a shared bias, each sample is a
/// slice.
inline int64_t attentionBiasSlices(const AttentionParams &p, Backend backend) {
  if (!p.bias || p.biasBatchStride)
    return p.batch;
  // Twice the workers of the cpu, or the blocks that a large device runs.
  const bool cuda = backend == Backend::Cuda;
  const int64_t parts = cuda ? 256 : 2 * kScratchWorkers;
  constexpr int64_t kTile = 64; // rows of a block on cuda
  int64_t perSlice = p.biasHeadStride ? (cuda ? p.heads : p.kvHeads) : 1;
  if (cuda)
    perSlice *= (p.biasQueryStride ? (p.queries + kTile - 1) / kTile : 1) *
                ((p.keys + kTile - 1) / kTile);
  const int64_t wanted = (parts + perSlice - 1) / perSlice;
  const int64_t room =
      p.batch * p.headDim * (p.queries * p.heads + p.keys * p.kvHeads);
  const int64_t cap = 1 + room / attentionBiasElements(p);
  const int64_t slices = wanted < cap ? wanted : cap;
  return slices < p.batch ? slices : p.batch;
}
/// The sums of all slices except the first, whose sum is in the result.
inline int64_t attentionBiasBytes(const AttentionParams &p, Backend backend) {
  if (!p.bias || p.biasBatchStride)
    return 0;
  return alignScratch(4 * (attentionBiasSlices(p, backend) - 1) *
                      attentionBiasElements(p));
}
/// Parts of the work of the cpu kernel: slices of the batch, times the key
/// heads if they don't share a bias.
inline int64_t attentionGradParts(const AttentionParams &p) {
  return attentionBiasSlices(p, Backend::Cpu) *
         (p.bias && !p.biasHeadStride ? 1 : p.kvHeads);
}
/// The maximum and the sum of each query's scores, if queries may see no key.
inline int64_t attentionHiddenBytes(const AttentionParams &p) {
  return mayHideRows(p) ? alignScratch(p.batch * p.heads * p.queries * 8) : 0;
}
/// The words of the elements that dropout removes, which the gradient of keys
/// leaves for the gradient of queries on tensor cores (TensorDropout.h): a bit
/// for each score. There is none if they take more than f32 rows of q, if they
/// can't be counted in 31 bits, or for long f32 heads, whose tiles are small.
/// Then both gradients compute the elements.
inline int64_t attentionDroppedBytes(const AttentionParams &p) {
  if (!(p.dropout > 0) || !isForTensorCores(p) ||
      (p.type == DType::F32 && p.headDim > 64))
    return 0;
  const int64_t queries = (p.queries + 15) / 16 * 16;
  const int64_t keys = (p.keys + 63) / 64 * 64;
  const int64_t words = p.batch * p.heads * (queries / 2) * (keys / 16);
  const bool fits = words <= p.batch * p.heads * p.queries * p.headDim;
  return fits && words < (int64_t(1) << 31) ? alignScratch(words * 4) : 0;
}
/// Packed keys (twice) and values, three tiles, a bias tile and the derivatives
/// of a soft cap; per panel queries and their gradients in both orders.
inline int64_t attentionGradWorkerBytes(const AttentionParams &p) {
  const int64_t chunk = attentionChunk(p);
  const int64_t wide =
      (p.headDim + kAttentionPanel - 1) / kAttentionPanel * kAttentionPanel;
  int64_t floats = 3 * chunk * p.headDim +
                   (3 + (p.softcap > 0) + p.bias) * chunk * kAttentionPanel +
                   (3 * p.headDim + 2 * wide + 2) * kAttentionPanel;
  if (p.type != DType::F32) // Rows of out and dout; sums of dk and dv, dq.
    floats += 2 * p.headDim * kAttentionPanel + 2 * chunk * p.headDim +
              p.heads / p.kvHeads * p.queries * p.headDim;
  return alignScratch(4 * floats);
}
inline int64_t attentionWorkers(int64_t tiles) {
  return tiles < kScratchWorkers ? tiles : kScratchWorkers;
}

inline int64_t Attention::scratchCap(const Params &p, Backend backend) {
  if (backend == Backend::Cuda)
    return alignScratch(p.batch * p.heads * p.queries * 4);
  const int64_t panels = (p.queries + kAttentionPanel - 1) / kAttentionPanel;
  const int64_t groups = (panels + kAttentionGroup - 1) / kAttentionGroup;
  return attentionWorkers(p.batch * p.heads * groups) * attentionWorkerBytes(p);
}
/// The rows' dot products, keys, queries; then the bias and, where all samples
/// share it, the sum of its slices; then what rows that see no key add.
inline int64_t AttentionGrad::cudaLaunches(const AttentionParams &p, Wanted) {
  const bool addsSlices =
      p.bias && !p.biasBatchStride && attentionBiasSlices(p, Backend::Cuda) > 1;
  return 3 + p.bias + addsSlices + (mayHideRows(p) ? 2 + p.bias : 0);
}

inline int64_t AttentionGrad::scratchCap(const Params &p, Backend backend) {
  if (backend == Backend::Cuda)
    return alignScratch(p.batch * p.heads * p.queries * 4) +
           attentionBiasBytes(p, backend) + attentionHiddenBytes(p) +
           attentionDroppedBytes(p);
  return attentionWorkers(attentionGradParts(p)) * attentionGradWorkerBytes(p) +
         attentionBiasBytes(p, backend) + attentionHiddenBytes(p);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_ATTENTION_H
