//===- ConvFilter.cpp - the filter gradient as a product ------------------===//

#include "runtime/cpu/ConvProduct.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>

namespace tmc::conv {

using gemm::kPanelM;
using gemm::kPanelN;

namespace {

/// The unit of work with a given number.
struct Unit {
  int64_t group, o0, o1, c0, c1, part;

  Unit(const ConvParams &p, const FilterUnits &u, int64_t number) {
    part = number % u.parts;
    number /= u.parts;
    const int64_t range = number % u.ranges;
    number /= u.ranges;
    const int64_t slab = number % u.slabs;
    group = number / u.slabs;
    o0 = slab * u.slabRows;
    o1 = std::min(p.outChannels / p.groups, o0 + u.slabRows);
    c0 = range * u.rangeChannels;
    c1 = std::min(p.inChannels / p.groups, c0 + u.rangeChannels);
  }
};

/// The cache lines of `rows` rows of `width` floats each. Narrow rows have too
/// few bytes for a prefetch to help.
gemm::Ahead slabLines(const void *, int64_t, int64_t, int64_t) { return {}; }
gemm::Ahead slabLines(const float *data, int64_t width, int64_t rows,
                      int64_t stride) {
  gemm::Ahead ahead;
  ahead.base = data;
  while ((gemm::kLineFloats << ahead.shift) < width)
    ++ahead.shift;
  ahead.mask = (int64_t(1) << ahead.shift) - 1;
  ahead.fast = gemm::kLineFloats;
  ahead.slow = stride;
  ahead.end = rows << ahead.shift;
  return ahead;
}

/// Adds the sums of the other parts to those of the first, in order; the sums
/// of part i begin at i * partFloats.
void addParts(int64_t floats, int64_t parts, int64_t partFloats, float *sums) {
  for (int64_t part = 1; part < parts; ++part) {
    const float *from = sums + part * partFloats;
    int64_t i = 0;
    for (; i + simd::kWidth <= floats; i += simd::kWidth)
      simd::store(sums + i, simd::load(sums + i) + simd::load(from + i));
    for (; i < floats; ++i)
      sums[i] += from[i];
  }
}

/// out[o, c, tap] (+)= sums[o, tap, c] for the unit's channels.
template <bool accumulate>
void put(const ConvParams &p, const Unit &unit, const float *sums, float *out) {
  const int64_t window = p.kernelHeight * p.kernelWidth;
  const int64_t in = p.inChannels / p.groups, outs = p.outChannels / p.groups;
  const int64_t channels = unit.c1 - unit.c0;
  for (int64_t o = unit.o0; o < unit.o1; ++o) {
    const float *row = sums + (o - unit.o0) * window * channels;
    float *to = out + ((unit.group * outs + o) * in + unit.c0) * window;
    for (int64_t t = 0; t < window; ++t, row += channels)
      for (int64_t c = 0; c < channels; ++c) {
        float &x = to[c * window + t];
        x = accumulate ? x + row[c] : row[c];
      }
  }
}

} // namespace

template <typename T>
void filterGradient(Stream &stream, const ConvParams &p, const Grid &grid,
                    const T *x, const T *dy, float *out, char *scratch,
                    bool accumulate) {
  const FilterUnits u = filterUnits(p);
  const int64_t window = p.kernelHeight * p.kernelWidth;
  const int64_t in = p.inChannels / p.groups;
  const int64_t pixels = p.batch * p.outHeight * p.outWidth;
  const int64_t workerBytes = u.slabBytes + u.panelBytes;
  char *sumsAt = scratch + workersOf(u.units) * workerBytes;
  auto sumsOf = [&](int64_t number) {
    return reinterpret_cast<float *>(sumsAt + number * u.sumBytes);
  };

  parallelFor(
      stream, u.units, workersOf(u.units), [&](int64_t number, int64_t worker) {
        const Unit unit(p, u, number);
        const int64_t channels = unit.c1 - unit.c0;
        const int64_t columns = channels * window;
        const int64_t height = unit.o1 - unit.o0;
        float *slab = reinterpret_cast<float *>(scratch + worker * workerBytes);
        float *panel = slab + u.slabBytes / 4;
        const int64_t o = unit.group * (p.outChannels / p.groups) + unit.o0;
        float *sums = u.direct ? out + o * in + unit.c0
                               : sumsOf(u.parts > 1 ? number : worker);
        const int64_t ldc = u.direct ? in : columns;
        const Source<T> source{x + unit.group * in + unit.c0, p.inHeight,
                               p.inWidth, p.inChannels, channels};
        const int64_t firstPixel = unit.part * u.partBlocks * kGemmDepth;
        const int64_t lastPixel =
            std::min(pixels, firstPixel + u.partBlocks * kGemmDepth);
        bool add = u.direct && accumulate;
        for (int64_t p0 = firstPixel; p0 < lastPixel; p0 += kGemmDepth) {
          const int64_t depth = std::min(kGemmDepth, lastPixel - p0);
          Segment<T> segment[kGemmDepth];
          const int64_t pieces = segments(grid, source, p0, depth, segment);
          gemm::packA({dy + p0 * p.outChannels + o, 1, p.outChannels, p.type},
                      height, depth, slab);
          // While this block is computed, the next block's slab is prefetched.
          const int64_t calls =
              ceilDiv(columns, kPanelN) * ceilDiv(height, kPanelM);
          gemm::Ahead ahead = slabLines(
              dy + (p0 + depth) * p.outChannels + o, height,
              std::min(kGemmDepth, lastPixel - p0 - depth), p.outChannels);
          const int64_t lines = ahead.end, share = lines / calls + 1;
          for (int64_t j = 0; j < columns; j += kPanelN) {
            const int64_t n = std::min<int64_t>(kPanelN, columns - j);
            gather(grid, source, segment, pieces, j, j + n, panel, kPanelN);
            for (int64_t r = 0; r < height; r += kPanelM) {
              ahead.end = std::min(lines, ahead.line + share);
              gemm::inner(std::min<int64_t>(kPanelM, height - r), n, depth,
                          slab + r * depth, panel, sums + r * ldc + j, ldc, add,
                          ahead);
            }
          }
          add = true;
        }
        if (!u.direct && u.parts == 1)
          (accumulate ? put<true> : put<false>)(p, unit, sums, out);
      });
  if (u.parts > 1)
    parallelFor(stream, u.units / u.parts, [&](int64_t number, int64_t) {
      const Unit unit(p, u, number * u.parts);
      float *sums = sumsOf(number * u.parts);
      addParts((unit.o1 - unit.o0) * (unit.c1 - unit.c0) * window, u.parts,
               u.sumBytes / 4, sums);
      (accumulate ? put<true> : put<false>)(p, unit, sums, out);
    });
}

template void filterGradient(Stream &, const ConvParams &, const Grid &,
                             const float *, const float *, float *, char *,
                             bool);
template void filterGradient(Stream &, const ConvParams &, const Grid &,
                             const bf16 *, const bf16 *, float *, char *, bool);
template void filterGradient(Stream &, const ConvParams &, const Grid &,
                             const f16 *, const f16 *, float *, char *, bool);

} // namespace tmc::conv
