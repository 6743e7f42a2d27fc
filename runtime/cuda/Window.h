//===- Window.h - the elements under a sliding window -----------*- C++ -*-===//
//
// One dimension of a pooling or convolution window:
//
//     in = out * stride - pad + tap * dilation        0 <= in < inSize
//
// forwards (the inputs of an output) and backwards (the outputs that use an
// input; a gradient gathers over them, so that no two threads add to one
// place). Int is wide enough for all sums of sizes.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_WINDOW_H
#define TMC_RUNTIME_CUDA_WINDOW_H

#include "runtime/kernels/Portable.h"

#include <cstdint>

namespace tmc::cuda {

template <typename Int> struct WindowOf {
  Int inSize, outSize, taps, stride, pad, dilation;

  /// The input under `tap` of output `out`, or -1 in the padding.
  TMC_HD Int input(Int out, Int tap) const {
    const Int in = out * stride - pad + tap * dilation;
    return in >= 0 && in < inSize ? in : -1;
  }
  /// The output that sees input `in` under `tap`, or -1.
  TMC_HD Int output(Int in, Int tap) const {
    const Int at = in + pad - tap * dilation;
    if (at < 0 || at % stride != 0)
      return -1;
    return at / stride < outSize ? at / stride : -1;
  }
  /// The number of taps of `out` that are inside the input.
  TMC_HD Int covered(Int out) const {
    Int count = 0;
    for (Int tap = 0; tap < taps; ++tap)
      count += input(out, tap) >= 0;
    return count;
  }
  /// Distance from the input under the first tap to the one under the last.
  TMC_HD Int reach() const { return (taps - 1) * dilation; }
  /// The outputs that may use one of the inputs [in, in + count) are [first,
  /// end).
  TMC_HD void outputsOf(Int in, Int count, Int &first, Int &end) const {
    const Int least = in + pad - reach();
    first = least <= 0 ? 0 : (least + stride - 1) / stride;
    end = (in + count - 1 + pad) / stride + 1;
    end = end < outSize ? end : outSize;
    first = first < end ? first : end;
  }
};

using Window = WindowOf<int64_t>;

/// True if 32 bits hold all sums of a window's sizes.
inline bool fitsInt(const Window &w) {
  constexpr int64_t kMost = int64_t(1) << 30;
  return w.inSize + w.taps * w.dilation + w.pad <= kMost &&
         w.outSize * w.stride <= kMost;
}
inline WindowOf<int> toInt(const Window &w) {
  return {int(w.inSize), int(w.outSize), int(w.taps),
          int(w.stride), int(w.pad),     int(w.dilation)};
}

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_WINDOW_H
