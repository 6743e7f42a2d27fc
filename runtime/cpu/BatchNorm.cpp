//===- BatchNorm.cpp - batch normalization on cpu -------------------------===//
//
// Column sums of [rows, channels]: rows are cut into at most kBatchNormChunks
// chunks, and chunks into blocks of kBlockRows. Rows are added up within a
// block, blocks within a chunk, chunks in double, each in order, so the error
// of a mean is a few units in the last place for any number of rows. One long
// chain of additions could have a much larger error, which shifts the whole
// channel and moves values near zero to the other side of a ReLU. The variance
// is computed around the mean in a second pass.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/BatchNorm.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace tmc {

using simd::V;

namespace {

/// Rows that are added up in one chain.
constexpr int64_t kBlockRows = 16;
/// Rows that are processed together: a channel's parameters are then loaded
/// once for all of them, and each row is still read contiguously.
constexpr int64_t kRows = 4;
/// Channels whose sums stay in the cache during a pass over rows.
constexpr int64_t kRange = 1024;

/// Runs body(std::integral_constant<int64_t, rows>, row) for rows [from, to),
/// kRows at a time, the last rows one by one.
template <typename F> void eachRows(int64_t from, int64_t to, F &&body) {
  for (; from + kRows <= to; from += kRows)
    body(std::integral_constant<int64_t, kRows>(), from);
  for (; from < to; ++from)
    body(std::integral_constant<int64_t, 1>(), from);
}

/// Scratch: two tables of one row per chunk, and two rows of totals.
struct Sums {
  int64_t chunks, rowsPerChunk, stride;
  float *first, *second, *total1, *total2;

  Sums(const BatchNormParams &p, void *scratch) {
    // Enough rows in a chunk to justify handing it to a thread.
    const int64_t wanted = std::max<int64_t>(
        (p.rows + kBatchNormChunks - 1) / kBatchNormChunks,
        std::min<int64_t>(p.rows,
                          16384 / std::max<int64_t>(1, p.channels) + 1));
    rowsPerChunk = std::max<int64_t>(1, wanted);
    chunks = (p.rows + rowsPerChunk - 1) / rowsPerChunk;
    stride = alignScratch(p.channels * 4) / 4;
    first = static_cast<float *>(scratch);
    second = first + kBatchNormChunks * stride;
    total1 = second + kBatchNormChunks * stride;
    total2 = total1 + stride;
  }
};

/// Computes `count` sums over all rows, 1 or 2, into total1 and total2.
/// `column(lanes, channel)` returns a function of (row, V (&sums)[count]) that
/// adds to them.
template <int count, typename F>
void columnSums(Stream &stream, const BatchNormParams &p, const Sums &sums,
                F &&column) {
  float *const tables[] = {sums.first, sums.second};
  parallelFor(stream, sums.chunks, [&](int64_t chunk, int64_t) {
    const int64_t r0 = chunk * sums.rowsPerChunk;
    const int64_t r1 = std::min(p.rows, r0 + sums.rowsPerChunk);
    for (int64_t c0 = 0; c0 < p.channels; c0 += kRange) {
      const int64_t channels = std::min(kRange, p.channels - c0);
      float whole[count][kRange] = {}, part[count][kRange];
      for (int64_t block = r0; block < r1; block += kBlockRows) {
        const int64_t end = std::min(r1, block + kBlockRows);
        eachRows(block, end, [&](auto rows, int64_t r) {
          const bool first = r == block, last = r + rows == end;
          eachVector(channels, [&](auto lanes, int64_t c) {
            V acc[count];
            for (int i = 0; i < count; ++i)
              acc[i] = first ? V{} : lanes.load(part[i] + c);
            const auto add = column(lanes, c0 + c);
            for (int64_t row = r; row < r + rows; ++row)
              add(row, acc);
            for (int i = 0; i < count; ++i)
              if (last)
                lanes.store(whole[i] + c, lanes.load(whole[i] + c) + acc[i]);
              else
                lanes.store(part[i] + c, acc[i]);
          });
        });
      }
      for (int i = 0; i < count; ++i)
        std::copy_n(whole[i], channels, tables[i] + chunk * sums.stride + c0);
    }
  });
  float *const totals[] = {sums.total1, sums.total2};
  for (int64_t c0 = 0; c0 < p.channels; c0 += kRange) {
    const int64_t channels = std::min(kRange, p.channels - c0);
    for (int i = 0; i < count; ++i) {
      double total[kRange] = {};
      for (int64_t chunk = 0; chunk < sums.chunks; ++chunk) {
        const float *row = tables[i] + chunk * sums.stride + c0;
        for (int64_t c = 0; c < channels; ++c)
          total[c] += row[c];
      }
      for (int64_t c = 0; c < channels; ++c)
        totals[i][c0 + c] = float(total[c]);
    }
  }
}

/// Visits all elements, chunk by chunk: `column(lanes, channel)` returns a
/// function of the row.
template <typename F>
void eachElement(Stream &stream, const BatchNormParams &p, const Sums &sums,
                 F &&column) {
  parallelFor(stream, sums.chunks, [&](int64_t chunk, int64_t) {
    const int64_t r0 = chunk * sums.rowsPerChunk;
    eachRows(r0, std::min(p.rows, r0 + sums.rowsPerChunk),
             [&](auto rows, int64_t r) {
               eachVector(p.channels, [&](auto lanes, int64_t c) {
                 const auto element = column(lanes, c);
                 for (int64_t row = r; row < r + rows; ++row)
                   element(row);
               });
             });
  });
}

/// The prefetch distance in elements: kRows rows, if a tensor doesn't stay in a
/// cache between two passes, else 0. The hardware prefetcher doesn't help here:
/// each group of rows is too short.
int64_t lookAhead(const BatchNormParams &p) {
  constexpr int64_t kCachedFloats = 1 << 20;
  return p.rows * p.channels > kCachedFloats ? kRows * p.channels : 0;
}

/// Returns p, and prefetches the element at `distance`.
template <typename T> const T *ahead(const T *p, int64_t distance) {
  __builtin_prefetch(p + distance);
  return p;
}

const float *floats(const void *p) { return static_cast<const float *>(p); }
float *floats(void *p) { return static_cast<float *>(p); }

} // namespace

struct BatchNorm::State {};
BatchNorm::BatchNorm(const Params &params) : params_(params) {}
BatchNorm::~BatchNorm() = default;

Status BatchNorm::prepare(Device &) {
  return cpu::requireScratch("batch_norm", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

/// BatchNorm::run() for activations of type T.
template <typename T>
static void normalize(Stream &stream, const BatchNormParams &p, In ins,
                      Out outs, void *scratch) {
  const T *x = static_cast<const T *>(operand(ins, 0));
  const float *gamma = floats(operand(ins, 1));
  const float *beta = floats(operand(ins, 2));
  const float *oldMean = floats(operand(ins, 3));
  const float *oldVariance = floats(operand(ins, 4));
  T *y = static_cast<T *>(result(outs, 0));
  float *newMean = floats(result(outs, 1));
  float *newVariance = floats(result(outs, 2));
  float *mean = floats(result(outs, 3));
  float *inverse = floats(result(outs, 4));

  const Sums sums(p, scratch);
  const int64_t next = lookAhead(p);
  columnSums<1>(stream, p, sums, [&](auto lanes, int64_t c) {
    return [=](int64_t r, V(&sum)[1]) {
      sum[0] += lanes.load(ahead(x + r * p.channels + c, next));
    };
  });
  for (int64_t c = 0; c < p.channels; ++c)
    mean[c] = sums.total1[c] / float(p.rows);
  columnSums<1>(stream, p, sums, [&](auto lanes, int64_t c) {
    const V centre = lanes.load(mean + c);
    return [=](int64_t r, V(&sum)[1]) {
      const V d = lanes.load(ahead(x + r * p.channels + c, next)) - centre;
      sum[0] = simd::fma(d, d, sum[0]);
    };
  });
  const float momentum = float(p.momentum);
  const float count = float(p.rows);
  for (int64_t c = 0; c < p.channels; ++c) {
    const float variance = sums.total1[c] / count;
    inverse[c] = 1 / std::sqrt(variance + float(p.epsilon));
    const float kept = p.unbiasedRunning && p.rows > 1
                           ? sums.total1[c] / (count - 1)
                           : variance;
    if (newMean)
      newMean[c] = (1 - momentum) * oldMean[c] + momentum * mean[c];
    if (newVariance)
      newVariance[c] = (1 - momentum) * oldVariance[c] + momentum * kept;
  }
  eachElement(stream, p, sums, [&](auto lanes, int64_t c) {
    const V centre = lanes.load(mean + c), shift = lanes.load(beta + c);
    const V scale = lanes.load(inverse + c) * lanes.load(gamma + c);
    return [=](int64_t r) {
      const int64_t at = r * p.channels + c;
      lanes.store(y + at, simd::fma(lanes.load(ahead(x + at, next)) - centre,
                                    scale, shift));
    };
  });
}

void BatchNorm::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withFloats(params_.type, [&](auto like) {
    normalize<decltype(like)>(stream, params_, ins, outs, scratch);
  });
}

struct BatchNormGrad::State {};
BatchNormGrad::BatchNormGrad(const Params &params) : params_(params) {}
BatchNormGrad::~BatchNormGrad() = default;

Status BatchNormGrad::prepare(Device &) {
  return cpu::requireScratch("batch_norm_grad",
                             scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

/// BatchNormGrad::run() for activations of type T.
template <typename T>
static void gradient(Stream &stream, const BatchNormParams &p, In ins, Out outs,
                     void *scratch, bool accumulate) {
  const T *x = static_cast<const T *>(operand(ins, 0));
  const float *gamma = floats(operand(ins, 1));
  const float *mean = floats(operand(ins, 2));
  const float *inverse = floats(operand(ins, 3));
  const T *dy = static_cast<const T *>(operand(ins, 4));
  T *dx = static_cast<T *>(result(outs, 0));
  float *dgamma = floats(result(outs, 1));
  float *dbeta = floats(result(outs, 2));

  const Sums sums(p, scratch);
  const int64_t next = lookAhead(p);
  // total1: sum of dy; total2: sum of dy * normalized x.
  columnSums<2>(stream, p, sums, [&](auto lanes, int64_t c) {
    const V centre = lanes.load(mean + c), rstd = lanes.load(inverse + c);
    return [=](int64_t r, V(&sum)[2]) {
      const int64_t at = r * p.channels + c;
      const V g = lanes.load(ahead(dy + at, next));
      const V normal = (lanes.load(ahead(x + at, next)) - centre) * rstd;
      sum[0] += g;
      sum[1] = simd::fma(g, normal, sum[1]);
    };
  });
  if (dx) {
    const V count = simd::splat(1 / float(p.rows));
    eachElement(stream, p, sums, [&](auto lanes, int64_t c) {
      const V centre = lanes.load(mean + c), rstd = lanes.load(inverse + c);
      const V shift = lanes.load(sums.total1 + c) * count;
      const V slope = lanes.load(sums.total2 + c) * count;
      const V scale = lanes.load(gamma + c) * rstd;
      return [=](int64_t r) {
        const int64_t at = r * p.channels + c;
        const V normal = (lanes.load(ahead(x + at, next)) - centre) * rstd;
        const V centred =
            lanes.load(ahead(dy + at, next)) - shift - normal * slope;
        lanes.store(dx + at, scale * centred);
      };
    });
  }
  for (int64_t c = 0; c < p.channels; ++c) {
    if (dgamma)
      dgamma[c] = accumulate ? dgamma[c] + sums.total2[c] : sums.total2[c];
    if (dbeta)
      dbeta[c] = accumulate ? dbeta[c] + sums.total1[c] : sums.total1[c];
  }
}

void BatchNormGrad::run(Stream &stream, In ins, Out outs, void *scratch,
                        bool accumulate) {
  withFloats(params_.type, [&](auto like) {
    gradient<decltype(like)>(stream, params_, ins, outs, scratch, accumulate);
  });
}

} // namespace tmc
