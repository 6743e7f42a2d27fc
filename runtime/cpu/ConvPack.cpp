//===- ConvPack.cpp - filters as packed panels ----------------------------===//

#include "runtime/cpu/ConvPack.h"

#include "runtime/cpu/TransposeBlock.h"

#include <algorithm>
#include <cstring>

namespace tmc::conv {

using gemm::kPanelN;
using gemm::kVectors;
using simd::kWidth;

FilterView viewFilter(const ConvParams &p, bool gradInput, const void *filter) {
  const int64_t window = p.kernelHeight * p.kernelWidth;
  const int64_t in = p.inChannels / p.groups, out = p.outChannels / p.groups;
  if (gradInput)
    return {filter, p.filter, p.type, window, in, out, window, in * window};
  return {filter, p.filter, p.type, window, out, in, in * window, window};
}

/// Like simd::transposeBlock, for elements that are widened first.
template <typename T>
static void turnBlock(const T *from, int64_t fromStride, float *to,
                      int64_t toStride) {
  if constexpr (std::is_same_v<T, float>) {
    simd::transposeBlock(from, fromStride, to, toStride);
  } else {
    alignas(64) float block[kWidth * kWidth];
    for (int i = 0; i < kWidth; ++i)
      widenRow<kWidth>(from + i * fromStride, block + i * kWidth);
    simd::transposeBlock(block, kWidth, to, toStride);
  }
}

/// packPanel() for elements that are read as T.
template <typename T>
static void packElements(const FilterView &f, const T *data,
                         const std::vector<Place> &places, int64_t panel,
                         const PackedFilter &packed) {
  const int64_t j = panel * kPanelN;
  const int64_t n = std::min<int64_t>(kPanelN, f.columns - j);
  const T *from = data + j * f.columnStride;
  auto packRow = [&](int64_t tap, int64_t channel) {
    float *to = packed.row(places[size_t(tap)], panel, channel);
    const T *line = from + channel * f.depthStride + tap;
    for (int64_t c = 0; c < n; ++c)
      to[c] = loadLanes<1>(line + c * f.columnStride);
    for (int64_t c = n; c < kPanelN; ++c)
      to[c] = 0;
  };
  if (n < kPanelN) {
    for (int64_t d = 0; d < f.depth; ++d)
      for (int64_t t = 0; t < f.window; ++t)
        packRow(t, d);
    return;
  }
  if (f.columnStride == 1) { // the columns of a row are contiguous
    for (int64_t d = 0; d < f.depth; ++d)
      widenRow<kPanelN>(from + d * f.depthStride,
                        packed.row(places[0], panel, d));
    return;
  }
  // Transposed blocks of kWidth elements that are contiguous in each column.
  // The elements are taps of one channel, or of several consecutive channels.
  float turned[kWidth * kPanelN];
  auto turn = [&](const T *block) {
    for (int v = 0; v < kVectors; ++v)
      turnBlock(block + v * kWidth * f.columnStride, f.columnStride,
                turned + v * kWidth, kPanelN);
  };
  auto put = [&](int64_t at, int64_t tap, int64_t channel) {
    std::memcpy(packed.row(places[size_t(tap)], panel, channel),
                turned + at * kPanelN, kPanelN * sizeof(float));
  };
  if (f.depthStride == f.window) {
    const int64_t all = f.window * f.depth;
    int64_t x = 0, tap = 0, channel = 0;
    auto next = [&] {
      if (++tap == f.window) {
        tap = 0;
        ++channel;
      }
    };
    for (; x + kWidth <= all; x += kWidth) {
      turn(from + x);
      for (int64_t i = 0; i < kWidth; ++i, next())
        put(i, tap, channel);
    }
    for (; x < all; ++x, next())
      packRow(tap, channel);
    return;
  }
  // A block may read beyond the last tap, into the next channel's taps; only
  // the last channel has no next one.
  for (int64_t d = 0; d + 1 < f.depth; ++d)
    for (int64_t t = 0; t < f.window; t += kWidth) {
      turn(from + d * f.depthStride + t);
      for (int64_t i = 0; i < std::min<int64_t>(kWidth, f.window - t); ++i)
        put(i, t + i, d);
    }
  for (int64_t t = 0; t < f.window; ++t)
    packRow(t, f.depth - 1);
}

void packPanel(const FilterView &f, const std::vector<Place> &places,
               int64_t panel, const PackedFilter &packed) {
  withFilterElements(f.type, f.readAs, [&](auto like) {
    packElements(f, static_cast<const decltype(like) *>(f.data), places, panel,
                 packed);
  });
}

} // namespace tmc::conv
