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

/// The most parts of the batch that a cpu convolution is cut into, and how many
/// flops one is worth.
constexpr int64_t kConvParts = 4;
constexpr double kConvPartFlops = 4e7;
/// cuDNN's workspace.
constexpr int64_t kCudaConvScratchBytes = 64 << 20;

/// Samples of one part, a function of the shape alone; the last may have fewer.
inline int64_t convPartSamples(const ConvParams &p) {
  const double flops = 2.0 * double(p.batch * p.outHeight * p.outWidth) *
                       double(p.outChannels) * double(p.inChannels / p.groups) *
                       double(p.kernelHeight * p.kernelWidth);
  int64_t parts = kConvParts < p.batch ? kConvParts : p.batch;
  if (flops < kConvPartFlops * double(parts))
    parts = int64_t(flops / kConvPartFlops);
  parts = parts < 1 ? 1 : parts;
  return (p.batch + parts - 1) / parts;
}
inline int64_t convParts(const ConvParams &p) {
  const int64_t samples = convPartSamples(p);
  return (p.batch + samples - 1) / samples;
}

/// True if each channel has one filter of its own.
inline bool isDepthwise(const ConvParams &p) {
  return p.groups > 1 && p.inChannels == p.groups && p.outChannels == p.groups;
}

/// Bytes of one copy of the filter in a blocked layout, channels rounded up to
/// the widest block.
inline int64_t packedFilterBytes(const ConvParams &p) {
  auto up = [](int64_t n, int64_t block) {
    return (n + block - 1) / block * block;
  };
  const int64_t in = p.inChannels / p.groups, out = p.outChannels / p.groups;
  const int64_t channels = p.groups == 1 ? up(out, 64) * up(in, 16)
                           : isDepthwise(p)
                               ? up(p.groups, 64)
                               : p.groups * up(out, 16) * up(in, 16);
  return alignScratch(channels * p.kernelHeight * p.kernelWidth *
                      sizeOf(p.type));
}

/// What one part may take of the library's own scratch: small tables, and where
/// a 1x1 window is strided, a copy of the pixels that it sees.
inline int64_t convPartScratchBytes(const ConvParams &p) {
  const bool compacted = p.kernelHeight == 1 && p.kernelWidth == 1 &&
                         (p.strideHeight > 1 || p.strideWidth > 1);
  return (64 << 10) + (compacted ? alignScratch(p.outHeight * p.outWidth *
                                                p.inChannels * sizeOf(p.type))
                                 : 0);
}

inline int64_t Conv::scratchCap(const Params &params, Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaConvScratchBytes + packedFilterBytes(params);
  return packedFilterBytes(params) +
         convParts(params) * convPartScratchBytes(params);
}
inline int64_t ConvGradInput::scratchCap(const Params &params,
                                         Backend backend) {
  return Conv::scratchCap(params, backend);
}
/// Each part of the batch has a gradient of its own; they are added in order.
/// With one part, there is room for the unpacked one.
inline int64_t ConvGradFilter::scratchCap(const Params &params,
                                          Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaConvScratchBytes + packedFilterBytes(params);
  const int64_t parts = convParts(params);
  return (parts < 2 ? 2 : parts) * packedFilterBytes(params) +
         parts * convPartScratchBytes(params);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_CONV_H
