// Window.h - images in either layout, and windows that slide over them.
//
// Convolutions and pools share two functions: the position of element (n, c, h,
// w) of an image, and the elements of the input that the window of an output
// element covers. Elements in the padding don't exist and aren't visited.

#ifndef TMC_COMPILER_REFERENCE_WINDOW_H
#define TMC_COMPILER_REFERENCE_WINDOW_H

#include "compiler/reference/Tensor.h"

namespace tmc::reference {

/// A batch of images, [N, C, H, W] or, channels last, [N, H, W, C].
struct Image {
  int64_t batch, channels, height, width;
  bool channelsLast;

  Image(llvm::ArrayRef<int64_t> shape, bool channelsLast)
      : batch(shape[0]), channels(shape[channelsLast ? 3 : 1]),
        height(shape[channelsLast ? 1 : 2]), width(shape[channelsLast ? 2 : 3]),
        channelsLast(channelsLast) {}

  /// The row-major position of an element.
  int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return channelsLast ? ((n * height + h) * width + w) * channels + c
                        : ((n * channels + c) * height + h) * width + w;
  }
};

/// Attributes of a sliding window; see the nn dialect's spatial ops.
struct Window {
  llvm::ArrayRef<int64_t> strides, padding, dilations, size;

  Window(llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> padding,
         llvm::ArrayRef<int64_t> dilations, llvm::ArrayRef<int64_t> size)
      : strides(strides), padding(padding), dilations(dilations), size(size) {}

  /// Calls `visit(h, w, r, s)` for each element (h, w) of the input under
  /// element (r, s) of the window of output (oh, ow), in row-major order.
  template <typename F>
  void forEach(const Image &input, int64_t oh, int64_t ow, F &&visit) const {
    for (int64_t r = 0; r < size[0]; ++r) {
      for (int64_t s = 0; s < size[1]; ++s) {
        int64_t h = oh * strides[0] - padding[0] + r * dilations[0];
        int64_t w = ow * strides[1] - padding[1] + s * dilations[1];
        if (h >= 0 && h < input.height && w >= 0 && w < input.width)
          visit(h, w, r, s);
      }
    }
  }
};

} // namespace tmc::reference

#endif // TMC_COMPILER_REFERENCE_WINDOW_H
