//===- ConvWindow.cpp - the windows of a convolution as rows --------------===//

#include "runtime/cpu/ConvWindow.h"

#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/NarrowRows.h"

#include <algorithm>
#include <cstring>

namespace tmc::conv {

using gemm::kLineFloats;

namespace {

/// Runs of up to this many floats prefetch the elements after them.
constexpr int64_t kAheadFloats = 64;

/// One dimension of a residue's taps: the window positions that use it, with
/// the source position of each for the residue's first pixel.
std::vector<Tap> seenAlong(int64_t residue, int64_t kernel, int64_t dilation,
                           int64_t stride, int64_t pad) {
  std::vector<Tap> taps;
  for (int64_t i = kernel - 1; i >= 0; --i) {
    const int64_t at = residue + pad - i * dilation;
    if (at % stride == 0)
      taps.push_back({at / stride, 0, i});
  }
  return taps;
}

inline void clear(int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = 0;
}

} // namespace

static std::vector<Grid> grids(const ConvParams &p, bool gradInput) {
  std::vector<Grid> result;
  if (!gradInput) {
    Grid grid{
        0, 0, 1, 1, p.outHeight, p.outWidth, p.strideHeight, p.strideWidth, {}};
    for (int64_t i = 0; i < p.kernelHeight; ++i)
      for (int64_t j = 0; j < p.kernelWidth; ++j)
        grid.taps.push_back({i * p.dilationHeight - p.padTop,
                             j * p.dilationWidth - p.padLeft,
                             i * p.kernelWidth + j});
    result.push_back(std::move(grid));
    return result;
  }
  for (int64_t h = 0; h < p.strideHeight && h < p.inHeight; ++h)
    for (int64_t w = 0; w < p.strideWidth && w < p.inWidth; ++w) {
      Grid grid{h,
                w,
                p.strideHeight,
                p.strideWidth,
                ceilDiv(p.inHeight - h, p.strideHeight),
                ceilDiv(p.inWidth - w, p.strideWidth),
                1,
                1,
                {}};
      for (const Tap &y : seenAlong(h, p.kernelHeight, p.dilationHeight,
                                    p.strideHeight, p.padTop))
        for (const Tap &x : seenAlong(w, p.kernelWidth, p.dilationWidth,
                                      p.strideWidth, p.padLeft))
          grid.taps.push_back({y.h, x.h, y.index * p.kernelWidth + x.index});
      result.push_back(std::move(grid));
    }
  return result;
}

Windows::Windows(const ConvParams &p, bool gradInput)
    : grids(conv::grids(p, gradInput)),
      places(size_t(p.kernelHeight * p.kernelWidth), Place{-1, 1, 0}) {
  int64_t before = 0;
  for (const Grid &grid : grids) {
    const int64_t taps = int64_t(grid.taps.size());
    for (int64_t t = 0; t < taps; ++t)
      places[size_t(grid.taps[size_t(t)].index)] = {before, taps, t};
    before += taps;
  }
  // An input smaller than the stride lacks some residues: their taps come last.
  for (Place &place : places)
    if (place.before < 0)
      place.before = before++;
}

template <typename T>
int64_t segments(const Grid &grid, const Source<T> &source, int64_t first,
                 int64_t count, Segment<T> *to) {
  const int64_t image = source.height * source.width * source.stride;
  int64_t x = first % grid.width, y = first / grid.width % grid.height;
  int64_t n = first / grid.width / grid.height, made = 0;
  for (int64_t left = count; left > 0; ++made) {
    const int64_t rows = std::min(left, grid.width - x);
    to[made] = {source.data + n * image, y * grid.strideH, x * grid.strideW,
                rows};
    left -= rows;
    x = 0;
    if (++y == grid.height) {
      y = 0;
      ++n;
    }
  }
  return made;
}

namespace {

/// Elements [begin, end) of a run of taps, for each row of a segment.
template <typename T> struct Run {
  const Source<T> &source;
  int64_t step;       // between the windows of two rows
  int64_t reach;      // of the run, in pixels: its taps minus one
  int64_t begin, end; // of its elements
  bool ahead;
};

/// One row, whose run begins at pixel w of a line of the image and may extend
/// beyond it.
template <typename T>
void gatherEdge(const Run<T> &run, const T *line, int64_t w, float *out) {
  const int64_t channels = run.source.channels;
  const int64_t low = std::clamp(-w * channels, run.begin, run.end);
  const int64_t high =
      std::clamp((run.source.width - w) * channels, low, run.end);
  clear(low - run.begin, out);
  widenRow(line + w * run.source.stride + low, high - low,
           out + (low - run.begin));
  clear(run.end - high, out + (high - run.begin));
}

/// Rows that are inside the image, of `length` elements; 0: the length isn't
/// known at compile time.
template <int length, typename T>
void gatherInside(const Run<T> &run, int64_t rows, const T *from, float *out,
                  int64_t stride) {
  const int64_t step = run.step * run.source.stride;
  const int64_t count = length ? length : run.end - run.begin;
  for (int64_t r = 0; r < rows; ++r, from += step, out += stride) {
    if (run.ahead)
      for (int64_t i = 0; i < count; i += kLineFloats)
        __builtin_prefetch(from + count + i, 0, 2);
    widenRow(from, count, out);
  }
}

template <typename T>
void gatherRun(const Run<T> &run, const Tap &tap, const Segment<T> &segment,
               float *out, int64_t stride) {
  const Source<T> &source = run.source;
  const int64_t h = segment.h + tap.h, rows = segment.rows;
  if (h < 0 || h >= source.height) {
    for (int64_t r = 0; r < rows; ++r)
      clear(run.end - run.begin, out + r * stride);
    return;
  }
  const T *line = segment.image + h * source.width * source.stride;
  // Rows [first, last) are completely inside the image.
  const int64_t w = segment.w + tap.w;
  const int64_t first = std::min(rows, w >= 0 ? 0 : ceilDiv(-w, run.step));
  const int64_t room = source.width - run.reach - w; // w + r * step < room + w
  const int64_t last =
      std::max(first, room <= 0 ? 0 : std::min(rows, ceilDiv(room, run.step)));
  for (int64_t r = 0; r < first; ++r)
    gatherEdge(run, line, w + r * run.step, out + r * stride);
  const T *from = line + (w + first * run.step) * source.stride + run.begin;
  constexpr int panel = gemm::kPanelN;
  (run.end - run.begin == panel ? gatherInside<panel, T>
                                : gatherInside<0, T>)(run, last - first, from,
                                                      out + first * stride,
                                                      stride);
  for (int64_t r = last; r < rows; ++r)
    gatherEdge(run, line, w + r * run.step, out + r * stride);
}

} // namespace

template <typename T>
void gather(const Grid &grid, const Source<T> &source,
            const Segment<T> *segments, int64_t count, int64_t from, int64_t to,
            float *result, int64_t stride) {
  const int64_t channels = source.channels;
  const bool merge = source.stride == channels;
  const int64_t taps = int64_t(grid.taps.size());
  for (int64_t t = from / channels, last; t < taps && t * channels < to;
       t = last) {
    const Tap &tap = grid.taps[size_t(t)];
    last = t + 1;
    while (merge && last < taps && last * channels < to &&
           grid.taps[size_t(last)].h == tap.h &&
           grid.taps[size_t(last)].w == tap.w + (last - t))
      ++last;
    const int64_t begin = std::max<int64_t>(0, from - t * channels);
    const int64_t end = std::min(to, last * channels) - t * channels;
    const Run<T> run{source, grid.strideW, last - t - 1,
                     begin,  end,          end - begin <= kAheadFloats};
    float *out = result + t * channels + begin - from;
    for (int64_t i = 0; i < count; out += segments[i++].rows * stride)
      gatherRun(run, tap, segments[i], out, stride);
  }
}

#define TMC_INSTANTIATE(T)                                                     \
  template int64_t segments(const Grid &, const Source<T> &, int64_t, int64_t, \
                            Segment<T> *);                                     \
  template void gather(const Grid &, const Source<T> &, const Segment<T> *,    \
                       int64_t, int64_t, int64_t, float *, int64_t);
TMC_INSTANTIATE(float)
TMC_INSTANTIATE(bf16)
TMC_INSTANTIATE(f16)
#undef TMC_INSTANTIATE

} // namespace tmc::conv
