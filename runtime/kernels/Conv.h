//===- Conv.h - two-dimensional convolution ---------------------*- C++ -*-===//
//
// Activations are NHWC; the filter is OIHW, as it stands in the model's file
// ([outChannels, inChannels / groups, kernelHeight, kernelWidth]), and is
// repacked into scratch on each run.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_CONV_H
#define TMC_RUNTIME_KERNELS_CONV_H

#include "runtime/kernels/Kernel.h"

namespace tmc {

/// The shape of a convolution and of its two gradients.
struct ConvParams {
  DType type;
  int64_t batch, inHeight, inWidth, inChannels;
  int64_t outHeight, outWidth, outChannels;
  int64_t kernelHeight, kernelWidth;
  int64_t strideHeight, strideWidth;
  int64_t padTop, padLeft, padBottom, padRight;
  int64_t dilationHeight, dilationWidth; // 1: dense
  int64_t groups;
  bool bias; // Conv only
  int64_t scratchBytes;
};

/// ins: x [N, H, W, C], filter OIHW, bias [outChannels] if bias.
/// outs: y [N, outH, outW, outChannels]. `accumulate` isn't supported.
class Conv : public Kernel {
public:
  using Params = ConvParams;
  static int64_t scratchCap(const Params &params, Backend backend);
  TMC_KERNEL(Conv)
};

/// ins: dy, filter. outs: dx [N, H, W, C]. `accumulate` isn't supported.
class ConvGradInput : public Kernel {
public:
  using Params = ConvParams;
  static int64_t scratchCap(const Params &params, Backend backend);
  TMC_KERNEL(ConvGradInput)
};

/// ins: x, dy. outs: dfilter OIHW. `accumulate` adds to it.
class ConvGradFilter : public Kernel {
public:
  using Params = ConvParams;
  static int64_t scratchCap(const Params &params, Backend backend);
  TMC_KERNEL(ConvGradFilter)
};

/// The most parts of the batch that a cpu convolution is cut into.
constexpr int64_t kConvTiles = 4;
/// What one part may take of the library's own scratch on cpu.
constexpr int64_t kConvTileScratchBytes = 4 << 20;
/// cuDNN's workspace.
constexpr int64_t kCudaConvScratchBytes = 64 << 20;

/// Bytes of one copy of the filter in a blocked layout, channels rounded up to
/// the widest block.
inline int64_t packedFilterBytes(const ConvParams &p) {
  auto blocks = [](int64_t channels) { return (channels + 63) / 64 * 64; };
  return alignScratch(p.groups * blocks(p.outChannels / p.groups) *
                      blocks(p.inChannels / p.groups) * p.kernelHeight *
                      p.kernelWidth * sizeOf(p.type));
}

inline int64_t Conv::scratchCap(const Params &params, Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaConvScratchBytes + packedFilterBytes(params);
  return packedFilterBytes(params) + kConvTiles * kConvTileScratchBytes;
}
inline int64_t ConvGradInput::scratchCap(const Params &params,
                                         Backend backend) {
  return Conv::scratchCap(params, backend);
}
/// Each part of the batch has a gradient of its own; they are added in order.
inline int64_t ConvGradFilter::scratchCap(const Params &params,
                                          Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaConvScratchBytes + packedFilterBytes(params);
  return kConvTiles * (packedFilterBytes(params) + kConvTileScratchBytes);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_CONV_H
