//===- Window.h - the elements under a sliding window -----------*- C++ -*-===//
//
// One dimension of a pooling or convolution window:
//
//     in = out * stride - pad + tap * dilation        0 <= in < inSize
//
// forwards (the inputs of an output) and backwards (the outputs that use an
// input; a gradient gathers over them, so that no two threads add to one
// place).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_WINDOW_H
#define TMC_RUNTIME_CUDA_WINDOW_H

#include "runtime/kernels/Portable.h"

#include <cstdint>

namespace tmc::cuda {

struct Window {
  int64_t inSize, outSize, taps, stride, pad, dilation;

  /// The input under `tap` of output `out`, or -1 in the padding.
  TMC_HD int64_t input(int64_t out, int64_t tap) const {
    const int64_t in = out * stride - pad + tap * dilation;
    return in >= 0 && in < inSize ? in : -1;
  }
  /// The output that sees input `in` under `tap`, or -1.
  TMC_HD int64_t output(int64_t in, int64_t tap) const {
    const int64_t at = in + pad - tap * dilation;
    if (at < 0 || at % stride != 0)
      return -1;
    return at / stride < outSize ? at / stride : -1;
  }
  /// The number of taps of `out` that are inside the input.
  TMC_HD int64_t covered(int64_t out) const {
    int64_t count = 0;
    for (int64_t tap = 0; tap < taps; ++tap)
      count += input(out, tap) >= 0;
    return count;
  }
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_WINDOW_H
