//===- Winograd.cpp - 3 x 3 windows with fewer products -------------------===//

#include "runtime/cpu/Winograd.h"

#include "runtime/cpu/ConvInner.h"
#include "runtime/cpu/ConvPack.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tmc::conv {

using gemm::kPanelM;
using gemm::kPanelN;
using gemm::kVectors;
using simd::kWidth;
using simd::V;

static_assert(kWinogradRows % kPanelM == 0 && kWinogradColumns % kPanelN == 0 &&
              kWinogradStep % kWidth == 0);

namespace {

/// Images whose pixels are cut into tiles of 2 x 2: of a result, or of dy.
struct Tiling {
  int64_t height, width;

  struct Tile {
    int64_t image, h, w; // its first pixel
  };
  Tile at(int64_t number) const {
    const int64_t wide = ceilDiv(width, 2), high = ceilDiv(height, 2);
    return {number / wide / high, number / wide % high * 2, number % wide * 2};
  }
};

/// Images from which patches are taken.
template <typename T> struct Images {
  const T *data; // at the first used channel
  int64_t height, width, channels;

  /// The channels of a pixel; zeros if it is outside the image.
  const T *pixel(int64_t image, int64_t h, int64_t w) const {
    static const T zeros[kWinogradDepth] = {};
    if (h < 0 || h >= height || w < 0 || w >= width)
      return zeros;
    return data + ((image * height + h) * width + w) * channels;
  }
};

/// A vector of channels, widened.
template <typename T> V loadWide(const T *p) { return V(loadLanes<kWidth>(p)); }

/// B' d B, channel by channel, of the 4 x 4 pixels from (h, w) on, at most
/// kWinogradDepth channels. Point i goes to to + i * pointStride; groups of
/// kPanelN channels are panelStride apart.
template <typename T>
void transformPatch(const Images<T> &images, int64_t image, int64_t h,
                    int64_t w, int64_t channels, float *to, int64_t pointStride,
                    int64_t panelStride) {
  const T *d[4][4];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      d[i][j] = images.pixel(image, h + i, w + j);
  for (int64_t c = 0; c < channels; c += kWidth) {
    V t[4][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const V d0 = loadWide(d[0][j] + c), d1 = loadWide(d[1][j] + c),
              d2 = loadWide(d[2][j] + c), d3 = loadWide(d[3][j] + c);
      t[0][j] = d0 - d2;
      t[1][j] = d1 + d2;
      t[2][j] = d2 - d1;
      t[3][j] = d1 - d3;
    }
    float *point = to + c / kPanelN * panelStride + c % kPanelN;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      simd::store(point, t[i][0] - t[i][2]);
      simd::store(point + pointStride, t[i][1] + t[i][2]);
      simd::store(point + 2 * pointStride, t[i][2] - t[i][1]);
      simd::store(point + 3 * pointStride, t[i][1] - t[i][3]);
      point += 4 * pointStride;
    }
  }
}

/// G g G' of a panel's filters, in place: the first nine points hold their
/// taps.
void transformFilters(const PackedFilter &packed, int64_t panel,
                      int64_t depth) {
  const V half = simd::splat(0.5f);
  const int64_t pointStride = packed.depth * kPanelN;
  for (int64_t d = 0; d < depth; ++d)
    for (int v = 0; v < kVectors; ++v) {
      float *at = packed.row({0, kWinogradPoints, 0}, panel, d) + v * kWidth;
      V t[4][3];
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) {
        const V g0 = simd::load(at + j * pointStride),
                g1 = simd::load(at + (3 + j) * pointStride),
                g2 = simd::load(at + (6 + j) * pointStride);
        t[0][j] = g0;
        t[1][j] = (g0 + g2 + g1) * half;
        t[2][j] = (g0 + g2 - g1) * half;
        t[3][j] = g2;
      }
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        simd::store(at, t[i][0]);
        simd::store(at + pointStride, (t[i][0] + t[i][2] + t[i][1]) * half);
        simd::store(at + 2 * pointStride, (t[i][0] + t[i][2] - t[i][1]) * half);
        simd::store(at + 3 * pointStride, t[i][2]);
        at += 4 * pointStride;
      }
    }
}

/// A' m A of one tile, channel by channel: its pixels that are in the image.
template <typename T>
void transformBack(const float *points, int64_t pointStride, int64_t channels,
                   const Tiling &tiling, const Tiling::Tile &tile,
                   int64_t pixelElements, T *to) {
  T *y[2][2];
  bool inside[2][2];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      inside[i][j] = tile.h + i < tiling.height && tile.w + j < tiling.width;
      y[i][j] = to + ((tile.image * tiling.height + tile.h + i) * tiling.width +
                      tile.w + j) *
                         pixelElements;
    }
  for (int64_t c = 0; c < channels; c += kWidth) {
    V t[2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const float *m = points + c + j * pointStride;
      const V m0 = simd::load(m), m1 = simd::load(m + 4 * pointStride),
              m2 = simd::load(m + 8 * pointStride),
              m3 = simd::load(m + 12 * pointStride);
      t[0][j] = m0 + m1 + m2;
      t[1][j] = m1 - m2 - m3;
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const V y0 = t[i][0] + t[i][1] + t[i][2];
      const V y1 = t[i][1] - t[i][2] - t[i][3];
      if (inside[i][0])
        storeLanes<kWidth>(y[i][0] + c, y0);
      if (inside[i][1])
        storeLanes<kWidth>(y[i][1] + c, y1);
    }
  }
}

/// G y G' of a tile of dy, channel by channel; zeros beyond the edge.
template <typename T>
void transformGradient(const Images<T> &dy, const Tiling::Tile &tile,
                       int64_t channels, float *to, int64_t pointStride) {
  const V half = simd::splat(0.5f);
  const T *y[2][2];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      y[i][j] = dy.pixel(tile.image, tile.h + i, tile.w + j);
  for (int64_t c = 0; c < channels; c += kWidth) {
    V t[4][2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const V y0 = loadWide(y[0][j] + c), y1 = loadWide(y[1][j] + c);
      t[0][j] = y0;
      t[1][j] = (y0 + y1) * half;
      t[2][j] = (y0 - y1) * half;
      t[3][j] = y1;
    }
    float *point = to + c;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      simd::store(point, t[i][0]);
      simd::store(point + pointStride, (t[i][0] + t[i][1]) * half);
      simd::store(point + 2 * pointStride, (t[i][0] - t[i][1]) * half);
      simd::store(point + 3 * pointStride, t[i][1]);
      point += 4 * pointStride;
    }
  }
}

/// c [rows, kPanelN] (+)= sum over t < depth of a [t, row] b [t, column]; rows
/// of a and of c are kWinogradSide apart.
template <int rows>
void addProducts(int64_t depth, const float *a, const float *b, float *c,
                 int64_t columns, bool add) {
  V acc[rows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j)
      acc[i][j] = V{};
  for (int64_t t = 0; t < depth; ++t) {
    V row[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j)
      row[j] = simd::load(b + j * kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const V x = simd::splat(a[i]);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j)
        acc[i][j] = simd::fma(x, row[j], acc[i][j]);
    }
    a += kWinogradSide;
    b += kPanelN;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j)
      if (j * kWidth < columns) {
        float *to = c + i * kWinogradSide + j * kWidth;
        simd::store(to, add ? simd::load(to) + acc[i][j] : acc[i][j]);
      }
}
using AddProducts = void (*)(int64_t, const float *, const float *, float *,
                             int64_t, bool);
template <size_t... rows>
constexpr std::array<AddProducts, sizeof...(rows)>
addProductsTable(std::index_sequence<rows...>) {
  return {addProducts<int(rows) + 1>...};
}
/// By the number of rows minus one.
constexpr auto kAddProducts =
    addProductsTable(std::make_index_sequence<kPanelM>());

/// The unit of a filter gradient with a given number.
struct Unit {
  int64_t o, outs, c, channels, part;

  Unit(const ConvParams &p, const WinogradFilterUnits &u, int64_t number) {
    part = number % u.parts;
    c = number / u.parts % u.ranges * kWinogradSide;
    o = number / u.parts / u.ranges * kWinogradSide;
    channels = std::min(p.inChannels - c, kWinogradSide);
    outs = std::min(p.outChannels - o, kWinogradSide);
  }
};

/// out [o, c, tap] (+)= A' m A for the unit's channels.
template <bool accumulate>
void putFilters(const ConvParams &p, const Unit &unit, const float *sums,
                float *out) {
  for (int64_t o = 0; o < unit.outs; ++o) {
    float taps[9][kWinogradSide];
    for (int64_t c = 0; c < unit.channels; c += kWidth) {
      V t[3][4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const float *m = sums + j * kWinogradMatrix + o * kWinogradSide + c;
        const V m0 = simd::load(m), m1 = simd::load(m + 4 * kWinogradMatrix),
                m2 = simd::load(m + 8 * kWinogradMatrix),
                m3 = simd::load(m + 12 * kWinogradMatrix);
        t[0][j] = m0 + m1 + m2;
        t[1][j] = m1 - m2;
        t[2][j] = m1 + m2 - m3;
      }
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) {
        simd::store(&taps[3 * i][c], t[i][0] + t[i][1] + t[i][2]);
        simd::store(&taps[3 * i + 1][c], t[i][1] - t[i][2]);
        simd::store(&taps[3 * i + 2][c], t[i][1] + t[i][2] - t[i][3]);
      }
    }
    float *to = out + ((unit.o + o) * p.inChannels + unit.c) * 9;
    for (int64_t c = 0; c < unit.channels; ++c)
      for (int64_t i = 0; i < 9; ++i, ++to)
        *to = accumulate ? *to + taps[i][c] : taps[i][c];
  }
}

} // namespace

template <typename T>
void winograd(Stream &stream, const ConvParams &p, bool gradInput,
              const T *from, const void *filter, T *to, char *scratch) {
  const WinogradUnits u = winogradUnits(p, gradInput);
  const Tiling tiling = gradInput ? Tiling{p.inHeight, p.inWidth}
                                  : Tiling{p.outHeight, p.outWidth};
  const Images<T> images =
      gradInput ? Images<T>{from, p.outHeight, p.outWidth, p.outChannels}
                : Images<T>{from, p.inHeight, p.inWidth, p.inChannels};
  // The start of a result's window: backward, the filter is rotated by 180
  // degrees.
  const int64_t top = gradInput ? 2 - p.padTop : p.padTop;
  const int64_t left = gradInput ? 2 - p.padLeft : p.padLeft;

  std::vector<Place> places;
  for (int64_t tap = 0; tap < 9; ++tap)
    places.push_back({0, kWinogradPoints, gradInput ? 8 - tap : tap});
  const FilterView view = viewFilter(p, gradInput, filter);
  const int64_t panels = ceilDiv(u.columns, kPanelN);
  const PackedFilter packed{reinterpret_cast<float *>(scratch), panels,
                            u.depth + 1};
  parallelFor(stream, panels, [&](int64_t panel, int64_t) {
    packPanel(view, places, panel, packed);
    transformFilters(packed, panel, u.depth);
  });

  int64_t rows[kWinogradRows];
  for (int64_t r = 0; r < kWinogradRows; ++r)
    rows[r] = r * kWinogradColumns;
  constexpr int64_t inputPoint = kWinogradRows * kWinogradStride;
  constexpr int64_t sumPoint = kWinogradRows * kWinogradColumns;
  const int64_t units = u.blocks * u.across;
  parallelFor(
      stream, units, workersOf(units), [&](int64_t number, int64_t worker) {
        const int64_t first = number / u.across * kWinogradRows;
        const int64_t count = std::min(kWinogradRows, u.tiles - first);
        char *mine =
            scratch + u.filterBytes + worker * (u.inputBytes + u.pointBytes);
        float *inputs = reinterpret_cast<float *>(mine);
        float *sums = reinterpret_cast<float *>(mine + u.inputBytes);
        for (int64_t k = 0; k < u.depth; k += kWinogradDepth) {
          float *chunk =
              inputs + k / kWinogradDepth * kWinogradPoints * inputPoint;
          Images<T> channels = images;
          channels.data += k;
          for (int64_t r = 0; r < count; ++r) {
            const Tiling::Tile tile = tiling.at(first + r);
            transformPatch(channels, tile.image, tile.h - top, tile.w - left,
                           std::min(kWinogradDepth, u.depth - k),
                           chunk + r * kWinogradStride, inputPoint, kPanelN);
          }
        }
        const int64_t j0 = number % u.across * u.unitColumns;
        const int64_t j1 = std::min(u.columns, j0 + u.unitColumns);
        for (int64_t j = j0; j < j1; j += kWinogradColumns) {
          const int64_t columns = std::min(kWinogradColumns, j1 - j);
          for (int64_t k = 0; k < u.depth; k += kWinogradDepth) {
            const int64_t depth = std::min(kWinogradDepth, u.depth - k);
            const float *a =
                inputs + k / kWinogradDepth * kWinogradPoints * inputPoint;
            for (int64_t point = 0; point < kWinogradPoints; ++point)
              for (int64_t c = 0; c < columns; c += kPanelN) {
                const float *b = packed.row({0, kWinogradPoints, point},
                                            (j + c) / kPanelN, k);
                const int64_t n = std::min<int64_t>(kPanelN, columns - c);
                for (int64_t r = 0; r < count; r += kPanelM) {
                  const Target target{sums + point * sumPoint + c, rows + r,
                                      std::min<int64_t>(kPanelM, count - r), n,
                                      k > 0};
                  (n > kWidth
                       ? inner<kVectors, kWinogradStride>
                       : inner<1, kWinogradStride>)(depth,
                                                    a + point * inputPoint +
                                                        r * kWinogradStride,
                                                    b, target);
                }
              }
          }
          for (int64_t r = 0; r < count; ++r)
            transformBack(sums + rows[r], sumPoint, columns, tiling,
                          tiling.at(first + r), u.columns, to + j);
        }
      });
}

template <typename T>
void winogradFilterGradient(Stream &stream, const ConvParams &p, const T *x,
                            const T *dy, float *out, char *scratch,
                            bool accumulate) {
  const WinogradFilterUnits u = winogradFilterUnits(p);
  const Tiling tiling{p.outHeight, p.outWidth};
  char *sumsAt = scratch + workersOf(u.units) * 2 * u.sideBytes;
  auto sumsOf = [&](int64_t number) {
    return reinterpret_cast<float *>(sumsAt + number * u.sumBytes);
  };

  parallelFor(
      stream, u.units, workersOf(u.units), [&](int64_t number, int64_t worker) {
        const Unit unit(p, u, number);
        float *left =
            reinterpret_cast<float *>(scratch + worker * 2 * u.sideBytes);
        float *right = left + u.sideBytes / 4;
        float *sums = sumsOf(u.parts > 1 ? number : worker);
        const Images<T> xs{x + unit.c, p.inHeight, p.inWidth, p.inChannels};
        const Images<T> dys{dy + unit.o, p.outHeight, p.outWidth,
                            p.outChannels};
        const int64_t first = unit.part * u.partBlocks * kWinogradSide;
        const int64_t last =
            std::min(u.tiles, first + u.partBlocks * kWinogradSide);
        constexpr int64_t panel = kWinogradSide * kPanelN;
        for (int64_t t = first; t < last; t += kWinogradSide) {
          const int64_t depth = std::min(kWinogradSide, last - t);
          for (int64_t i = 0; i < depth; ++i) {
            const Tiling::Tile tile = tiling.at(t + i);
            transformPatch(xs, tile.image, tile.h - p.padTop,
                           tile.w - p.padLeft, unit.channels,
                           right + i * kPanelN, kWinogradMatrix, panel);
            transformGradient(dys, tile, unit.outs, left + i * kWinogradSide,
                              kWinogradMatrix);
          }
          // About as many rows at a time as the registers hold.
          const int64_t steps = ceilDiv(unit.outs, kPanelM);
          for (int64_t point = 0; point < kWinogradPoints; ++point)
            for (int64_t c = 0; c < unit.channels; c += kPanelN)
              for (int64_t step = 0; step < steps; ++step) {
                const int64_t r0 = unit.outs * step / steps;
                const int64_t r1 = unit.outs * (step + 1) / steps;
                const int64_t at = point * kWinogradMatrix;
                kAddProducts[size_t(r1 - r0 - 1)](
                    depth, left + at + r0, right + at + c / kPanelN * panel,
                    sums + at + r0 * kWinogradSide + c, unit.channels - c,
                    t > first);
              }
        }
        if (u.parts == 1)
          (accumulate ? putFilters<true> : putFilters<false>)(p, unit, sums,
                                                              out);
      });
  if (u.parts > 1)
    parallelFor(stream, u.slabs * u.ranges, [&](int64_t number, int64_t) {
      float *sums = sumsOf(number * u.parts);
      for (int64_t part = 1; part < u.parts; ++part) {
        const float *more = sumsOf(number * u.parts + part);
        for (int64_t i = 0; i < kWinogradPoints * kWinogradMatrix; i += kWidth)
          simd::store(sums + i, simd::load(sums + i) + simd::load(more + i));
      }
      (accumulate
           ? putFilters<true>
           : putFilters<false>)(p, Unit(p, u, number * u.parts), sums, out);
    });
}

#define TMC_INSTANTIATE(T)                                                     \
  template void winograd(Stream &, const ConvParams &, bool, const T *,        \
                         const void *, T *, char *);                           \
  template void winogradFilterGradient(Stream &, const ConvParams &,           \
                                       const T *, const T *, float *, char *,  \
                                       bool);
TMC_INSTANTIATE(float)
TMC_INSTANTIATE(bf16)
TMC_INSTANTIATE(f16)
#undef TMC_INSTANTIATE

} // namespace tmc::conv
