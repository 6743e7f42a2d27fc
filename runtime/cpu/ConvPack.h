//===- ConvPack.h - filters as packed panels --------------------*- C++ -*-===//
//
// Packs an OIHW filter of any type into the panels of kPanelN columns of floats
// that the inner kernel reads.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CONVPACK_H
#define TMC_RUNTIME_CPU_CONVPACK_H

#include "runtime/cpu/ConvWindow.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/NarrowRows.h"

namespace tmc::conv {

/// The filter of a group in one pass: a matrix [(tap, depth channel), column]
/// with the element at data[tap + channel * depthStride + column *
/// columnStride].
struct FilterView {
  const void *data;
  DType type, readAs; // f32 is rounded to `readAs` when it is read
  int64_t window, columns, depth;
  int64_t columnStride, depthStride;

  /// The filter that begins `elements` elements later.
  FilterView shifted(int64_t elements) const {
    FilterView other = *this;
    other.data = static_cast<const char *>(data) + elements * sizeOf(type);
    return other;
  }
};

/// Calls f with a value of the type as which the elements of a convolution's
/// filter are read.
template <typename F> void withFilterElements(DType type, DType readAs, F &&f) {
  if (type != DType::F32 || readAs == DType::F32)
    return withFloats(type, f);
  if (readAs == DType::BF16)
    return f(ReadAs<bf16>{});
  f(ReadAs<f16>{});
}

/// The layout of a group's packed filter: grids, then panels of columns, then
/// taps, then channels, and for each of these a row of kPanelN.
struct PackedFilter {
  float *data;
  int64_t panels, depth;

  float *row(const Place &place, int64_t panel, int64_t channel) const {
    const int64_t tap =
        place.before * panels + panel * place.taps + place.number;
    return data + (tap * depth + channel) * gemm::kPanelN;
  }
};

/// The filter of group 0 in the forward pass or, if gradInput, in the input
/// gradient.
FilterView viewFilter(const ConvParams &p, bool gradInput, const void *filter);

/// Packs one panel of columns; zeros after the last column. `places` has the
/// place of each element of the window.
void packPanel(const FilterView &f, const std::vector<Place> &places,
               int64_t panel, const PackedFilter &packed);

} // namespace tmc::conv

#endif // TMC_RUNTIME_CPU_CONVPACK_H
