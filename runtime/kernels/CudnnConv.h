//===- CudnnConv.h - convolutions by cuDNN on cuda --------------*- C++ -*-===//
//
// On cuda, cuDNN's graphs compute convolutions (Conv.h) and their gradients.
// Operands and results are the same as those of the backend's own kernels,
// which compute what the library doesn't.
//
//   forward        y = x * filter             both types of activations
//   input gradient dx = dy * filter           both types of activations
//   filter gradient
//     of f32       dfilter = x * dy           in f32
//     of 16 bits   identity(x * dy)           in f32; a product by cuBLASLt for
//                                             a 1 x 1 window with stride 1
//
// No version up to 9.26 has an f32 result of a filter gradient alone, if its
// operands have 16 bits. But all generations from sm_80 on have
// deterministic plans for it if a pointwise identity follows. The sums then
// stay in f32 from the first product to the result.
//
// whyNotCudnn() says what the library isn't asked for, by the shape and the
// types alone. prepare() asks the library for the rest. Its answer depends on
// the shape, the types, the card and the library's version. Its workspace is
// at most kCudaConvScratchBytes (Conv.h), whatever the budget: plans that want
// more are left out. test/cuda/CudnnTest.cpp asks the library whether a plan is
// left for each shape.
//
// Source: cuDNN's documentation, "Graph API", convolutions.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_CUDNNCONV_H
#define TMC_RUNTIME_KERNELS_CUDNNCONV_H

#include "runtime/kernels/ConvParams.h"

namespace tmc {

enum class ConvPass { Forward, GradInput, GradFilter };

/// Filter gradients of 16 bits have multiples of so many channels. The library
/// takes even numbers, but plans for others than whole accesses of 16 bytes
/// take it up to 45 seconds to compile.
constexpr int64_t kCudnnConvChannels = 8;

namespace detail {

/// True if the bytes of an array of these sizes are an int64_t.
inline bool fitsBytes(int64_t a, int64_t b, int64_t c, int64_t d) {
  int64_t bytes = 4;
  for (int64_t size : {a, b, c, d})
    if (size <= 0 || __builtin_mul_overflow(bytes, size, &bytes))
      return false;
  return true;
}

/// True if sliding a window over `in` elements gives `out` of them.
inline bool slidesTo(int64_t in, int64_t out, int64_t before, int64_t after,
                     int64_t taps, int64_t dilation, int64_t stride) {
  int64_t padded = 0, reach = 0;
  if (taps <= 0 || dilation <= 0 || stride <= 0 || before < 0 || after < 0 ||
      __builtin_add_overflow(in, before, &padded) ||
      __builtin_add_overflow(padded, after, &padded) ||
      __builtin_mul_overflow(taps - 1, dilation, &reach) || reach >= padded)
    return false;
  return (padded - reach - 1) / stride + 1 == out;
}

} // namespace detail

/// The reason why cuDNN isn't asked for this pass of a convolution; null if it
/// is.
inline const char *whyNotCudnn(const ConvParams &p, ConvPass pass) {
  if (p.groups <= 0 || p.inChannels % p.groups || p.outChannels % p.groups ||
      !detail::fitsBytes(p.batch, p.inHeight, p.inWidth, p.inChannels) ||
      !detail::fitsBytes(p.batch, p.outHeight, p.outWidth, p.outChannels) ||
      !detail::fitsBytes(p.outChannels, p.kernelHeight, p.kernelWidth,
                         p.inChannels / p.groups))
    return "its tensors have no size in 64 bits";
  if (!detail::slidesTo(p.inHeight, p.outHeight, p.padTop, p.padBottom,
                        p.kernelHeight, p.dilationHeight, p.strideHeight) ||
      !detail::slidesTo(p.inWidth, p.outWidth, p.padLeft, p.padRight,
                        p.kernelWidth, p.dilationWidth, p.strideWidth))
    return "its result has another size in the library";
  if (pass != ConvPass::GradFilter || !isHalf(p.type))
    return nullptr;
  if (p.groups > 1)
    return "it has no f32 filter gradients of several groups";
  if (p.inChannels % kCudnnConvChannels || p.outChannels % kCudnnConvChannels)
    return "f32 filter gradients of 16 bits want multiples of 8 channels";
  if (conv::isPointwise(p))
    return "it is a product, which cuBLASLt computes with f32 sums";
  return nullptr;
}

/// False if a filter in the model's order and type is the one that kernels on
/// cuda read: OHWI, in the type of the activations.
inline bool packsFilter(const ConvParams &p) {
  return p.filter != p.type || p.kernelHeight * p.kernelWidth > 1;
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_CUDNNCONV_H
