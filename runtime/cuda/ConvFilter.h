//===- ConvFilter.h - filter gradients of 16 bits on cuda -------*- C++ -*-===//
//
//   sums [o, (tap, c)] = sum over pixels of dy [pixel, o] window [pixel, (tap,
//   c)]
//
// cuDNN rounds a filter gradient to the type of its operands; a gradient of a
// parameter is to be f32. So it is a product of cuBLASLt's (Gemm.h), whose sums
// are, with windows that are gathered into the workspace some pixels at a time:
//
//     scratch: [ sums, f32 | windows | cuBLASLt's workspace ]
//
//     pieces of pixels, in order:
//       gather their windows, channels innermost, zeros in the padding
//       sums (+)= dy^T windows
//
// The windows of one pixel that move by one are x itself: one product then. A
// piece is what fits the workspace, a function of the shape alone, and so is
// the order of the sums. Rows of windows and sums are padded to 16 bytes
// (gatheredColumns()).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_CONVFILTER_H
#define TMC_RUNTIME_CUDA_CONVFILTER_H

#include "runtime/cuda/Gemm.h"
#include "runtime/kernels/Conv.h"

namespace tmc::cuda {

/// A filter gradient of which `gathersWindows`.
class GatheredFilter {
public:
  /// A piece's windows take at most `windowBytes`, of at least one step.
  Status prepare(CudaDevice &device, const ConvParams &params,
                 int64_t windowBytes = kWindowBytes);

  /// Queues the sums, f32 [outChannels, gatheredColumns()], to the beginning of
  /// `scratch`, of ConvGradFilter::scratchCap() bytes.
  void run(Queue &queue, const void *x, const void *dy, void *scratch);

  static constexpr int64_t kWindowBytes =
      kCudaConvScratchBytes - kCudaMatmulScratchBytes;

private:
  ConvParams params_{};
  int64_t pixels_ = 0, piece_ = 0; // in all, and in each piece but the last
  bool isProduct_ = false;         // of x itself
  Gemm whole_, last_;
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_CONVFILTER_H
