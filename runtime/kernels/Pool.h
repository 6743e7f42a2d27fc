//===- Pool.h - two-dimensional pooling -------------------------*- C++ -*-===//
//
// Pooling over windows of NHWC activations, and its gradients. The sizes of the
// result are parameters, so that both rounding rules are possible. All tensors
// have one type, f32 or 16 bits; sums are f32 and rounded once.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_POOL_H
#define TMC_RUNTIME_KERNELS_POOL_H

#include "runtime/kernels/Kernel.h"

namespace tmc {

struct PoolParams {
  DType type;
  int64_t batch, inHeight, inWidth, channels;
  int64_t outHeight, outWidth;
  int64_t kernelHeight, kernelWidth;
  int64_t strideHeight, strideWidth;
  int64_t padTop, padLeft, padBottom, padRight;
  int64_t dilationHeight, dilationWidth;
  bool countIncludePad; // averages only: padding counts in the divisor
  int64_t scratchBytes = 0;

  TMC_FIELDS(type, batch, inHeight, inWidth, channels, outHeight, outWidth,
             kernelHeight, kernelWidth, strideHeight, strideWidth, padTop,
             padLeft, padBottom, padRight, dilationHeight, dilationWidth,
             countIncludePad)
};

constexpr bool poolTakes(const PoolParams &p) {
  return p.type == DType::F32 || isHalf(p.type);
}

/// Channels that a narrow gradient sums at a time on cpu.
constexpr int64_t kPoolChannels = 16;

/// Forward passes need no scratch.
inline int64_t poolScratchCap(const PoolParams &, Backend) { return 0; }
/// Gradients on cuda, or those formed in place, need none either. Others need
/// the sums of some channels of an image for each thread.
inline int64_t poolGradWorkers(const PoolParams &p) {
  return p.batch < kScratchWorkers ? p.batch : kScratchWorkers;
}
inline int64_t poolGradSumBytes(const PoolParams &p) {
  return alignScratch(p.inHeight * p.inWidth * kPoolChannels * 4);
}
inline int64_t poolGradScratchCap(const PoolParams &p, Backend backend) {
  return backend == Backend::Cuda || p.type == DType::F32
             ? 0
             : poolGradWorkers(p) * poolGradSumBytes(p);
}

/// ins: x [N, H, W, C]. outs: y [N, outH, outW, C]. Padding counts as minus
/// infinity.
class MaxPool : public Kernel {
public:
  using Params = PoolParams;
  static constexpr bool takes(const Params &params, Backend) {
    return poolTakes(params);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return poolScratchCap(params, backend);
  }
  TMC_KERNEL(MaxPool)
};

/// ins: x, dy. outs: dx. The gradient of a window goes to its first maximum in
/// row-major order, as in PyTorch.
class MaxPoolGrad : public Kernel {
public:
  using Params = PoolParams;
  static constexpr bool takes(const Params &params, Backend) {
    return poolTakes(params);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return poolGradScratchCap(params, backend);
  }
  TMC_KERNEL(MaxPoolGrad)
};

/// ins: x. outs: y.
class AvgPool : public Kernel {
public:
  using Params = PoolParams;
  static constexpr bool takes(const Params &params, Backend) {
    return poolTakes(params);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return poolScratchCap(params, backend);
  }
  TMC_KERNEL(AvgPool)
};

/// ins: dy. outs: dx.
class AvgPoolGrad : public Kernel {
public:
  using Params = PoolParams;
  static constexpr bool takes(const Params &params, Backend) {
    return poolTakes(params);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return poolGradScratchCap(params, backend);
  }
  TMC_KERNEL(AvgPoolGrad)
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_POOL_H
