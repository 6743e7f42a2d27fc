//===- ConvFilter.h - 16-bit filter gradients on cuda -----------*- C++ -*-===//
//
//   sums[o, (tap, c)] = sum over pixels of dy[pixel, o] window[pixel, (tap, c)]
//
// A parameter's gradient should be f32. Where cuDNN has no f32 sums of 16-bit
// operands (CudnnConv.h), a cuBLASLt product (Gemm.h) computes them. The
// windows are gathered into the workspace several pixels at a time:
//
//     scratch: [ sums, f32 | windows | cuBLASLt's workspace ]
//
//     pieces of pixels, in order:
//       gather their windows, channels innermost, zeros in the padding
//       sums (+)= dy^T windows
//
// For a 1 x 1 window with stride 1, the windows are x itself, so there is one
// product. A piece is as large as fits the workspace. Its size, and so the
// order of the sums, depends on the shape only. Rows of windows and sums are
// padded to 16 bytes (gatheredColumns()).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_CONVFILTER_H
#define TMC_RUNTIME_CUDA_CONVFILTER_H

#include "runtime/cuda/Gemm.h"
#include "runtime/kernels/Conv.h"

namespace tmc::cuda {

/// A filter gradient for which `canGatherWindows` is true.
class GatheredFilter {
public:
  /// A piece's windows take at most `windowBytes`, but a piece has at least one
  /// step.
  Status prepare(CudaDevice &device, const ConvParams &params,
                 int64_t windowBytes = kGatheredBytes);

  /// Queues the computation of the sums, f32 [outChannels, gatheredColumns()],
  /// at the start of `scratch`, which has ConvGradFilter::scratchCap() bytes.
  void run(Queue &queue, const void *x, const void *dy, void *scratch);

private:
  ConvParams params_{};
  int64_t pixels_ = 0, piece_ = 0; // in total, and in each full piece
  bool isProduct_ = false;         // of x itself, without gathering
  Gemm whole_, last_;
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_CONVFILTER_H
