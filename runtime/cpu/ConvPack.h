//===- ConvPack.h - filters as packed panels --------------------*- C++ -*-===//
//
// An OIHW filter, turned into the panels of kPanelN columns that the inner
// kernel reads.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CONVPACK_H
#define TMC_RUNTIME_CPU_CONVPACK_H

#include "runtime/cpu/ConvWindow.h"
#include "runtime/cpu/Gemm.h"

namespace tmc::conv {

/// The filter of a group in one pass: a matrix [(tap, depth channel), column],
/// whose element lies at data[tap + channel * depthStride + column *
/// columnStride].
struct FilterView {
  const float *data;
  int64_t window, columns, depth;
  int64_t columnStride, depthStride;
};

/// Where a group's packed filter lies: grids, then panels of columns, then
/// taps, then channels, and for each a row of kPanelN.
struct PackedFilter {
  float *data;
  int64_t panels, depth;

  float *row(const Place &place, int64_t panel, int64_t channel) const {
    const int64_t tap =
        place.before * panels + panel * place.taps + place.number;
    return data + (tap * depth + channel) * gemm::kPanelN;
  }
};

/// The filter of group 0 in the forward pass or, if gradInput, in that of the
/// input gradient.
FilterView viewFilter(const ConvParams &p, bool gradInput, const float *filter);

/// Packs one panel of columns; zeros behind the last column. `places` says
/// where each element of the window goes.
void packPanel(const FilterView &f, const std::vector<Place> &places,
               int64_t panel, const PackedFilter &packed);

} // namespace tmc::conv

#endif // TMC_RUNTIME_CPU_CONVPACK_H
