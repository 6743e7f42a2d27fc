//===- CudnnAttention.h - attention by cuDNN on cuda ------------*- C++ -*-===//
//
// The computation of Attention.h by cuDNN's graphs for it, in place of the
// backend's own kernels. Operands and results are the same, with the same
// strides, and the log-sum-exp has the same meaning: a forward pass by one and
// a gradient by the other fit together.
//
// The library covers a part of attention: 16-bit operands, with or without a
// causal mask. whyNotCudnn() says what it refuses, by the shape, the type and
// the architecture alone. The compiler asks it before it plans, so that memory
// never decides which of the two computes.
//
// The library wants workspace that its own version chooses. scratchCap() is a
// bound on it, which test/cuda/CudnnTest.cpp compares with the library's
// answers. prepare() compares it again, with the library and the card of the
// run, and fails where it is too little.
//
// Source: cuDNN's documentation, "Graph API", scaled dot-product attention.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_CUDNNATTENTION_H
#define TMC_RUNTIME_KERNELS_CUDNNATTENTION_H

#include "runtime/kernels/Attention.h"

namespace tmc {

/// Strides of operands are multiples of this: the library loads 16 bytes at
/// once.
constexpr int64_t kCudnnStrideElements = 8;

/// The reason why cuDNN doesn't compute this attention, or its gradient, on a
/// card of `capability` (90 for sm_90); null if it does.
inline const char *whyNotCudnn(const AttentionParams &p, bool isGradient,
                               int capability) {
  auto isAligned = [](const AttentionStrides &s) {
    return s.batch % kCudnnStrideElements == 0 &&
           s.time % kCudnnStrideElements == 0 &&
           s.head % kCudnnStrideElements == 0;
  };
  if (!isHalf(p.type))
    return "it takes bf16 and f16 alone";
  if (capability < 80)
    return "it wants sm_80 or newer";
  if (p.exact)
    return "it rounds probabilities, which attention=exact forbids";
  if (p.dropout > 0)
    return "its dropout has other random numbers";
  if (p.mask != MaskKind::None || p.fill != 0)
    return "masks other than a causal one aren't given to it";
  if (p.bias)
    return "a bias isn't given to it";
  if (p.softcap > 0 || p.window > 0)
    return "soft caps and windows aren't given to it";
  if (p.causal && p.queries > p.keys)
    return "some queries see no key";
  if (p.headDim % kCudnnStrideElements != 0)
    return "it takes heads of a multiple of 8 channels";
  const bool isHopper = capability / 10 == 9;
  if (p.headDim > (isGradient && !isHopper ? 128 : 256))
    return isGradient ? "its gradient takes no heads of so many channels here"
                      : "it takes heads of at most 256 channels";
  if (isGradient && p.queries == 1 && p.keys == 1)
    return "its gradient takes more than one query and key";
  if (!isAligned(p.q) || !isAligned(p.k) || !isAligned(p.v))
    return "the rows of q, k or v begin at no multiple of 16 bytes";
  return nullptr;
}

/// ins: q, k, v. outs: out, lse. As those of Attention.
class CudnnAttention : public Kernel {
public:
  using Params = AttentionParams;
  static constexpr bool takes(const Params &p, Backend backend) {
    return backend == Backend::Cuda && isHalf(p.type);
  }
  /// A number for each query, and what kernels want beside it.
  static int64_t scratchCap(const Params &params, Backend backend);
  TMC_KERNEL(CudnnAttention)
};

/// ins: q, k, v, out, lse, dout. outs: dq, dk, dv, or all in one if packed. As
/// those of AttentionGrad. The order of its sums is fixed: the library's
/// deterministic algorithm.
class CudnnAttentionGrad : public Kernel {
public:
  using Params = AttentionParams;
  static constexpr bool takes(const Params &p, Backend backend) {
    return backend == Backend::Cuda && isHalf(p.type);
  }
  /// A bound over cards and versions. Up to sm_90, and on sm_120, the
  /// deterministic algorithm keeps the gradients of all scores, 16 bits each,
  /// in tiles of 64 queries and 128 keys, and with grouped heads dk and dv of
  /// each query head in 16 bits. On sm_100 it keeps the latter alone, in f32.
  /// All keep a number for each query.
  static int64_t scratchCap(const Params &params, Backend backend);
  /// The rows' dot products, the scores' gradients with dk and dv, and dq.
  static int64_t cudaLaunches(const Params &, Wanted) { return 3; }
  TMC_KERNEL(CudnnAttentionGrad)
};

/// Workspace of the library beside what grows with the shape.
constexpr int64_t kCudnnFixedBytes = 4096;

inline int64_t CudnnAttention::scratchCap(const Params &p, Backend) {
  return alignScratch(p.batch * p.heads * p.queries * 4) + kCudnnFixedBytes;
}

inline int64_t CudnnAttentionGrad::scratchCap(const Params &p, Backend) {
  const int64_t rows = p.batch * p.heads;
  const int64_t queries = (p.queries + 63) / 64 * 64;
  const int64_t keys = (p.keys + 127) / 128 * 128;
  const int64_t scores = rows * queries * keys * 2;
  const int64_t grouped =
      p.kvHeads < p.heads ? 2 * rows * p.keys * p.headDim : 0; // elements
  const int64_t most =
      scores + 2 * grouped > 4 * grouped ? scores + 2 * grouped : 4 * grouped;
  return alignScratch(most) + alignScratch(rows * p.queries * 4) +
         kCudnnFixedBytes;
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_CUDNNATTENTION_H
