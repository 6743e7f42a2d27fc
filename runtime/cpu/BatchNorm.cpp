//===- BatchNorm.cpp - batch normalization on cpu -------------------------===//
//
// Column sums of [rows, channels]: rows are cut into at most kBatchNormChunks
// chunks, these into blocks of kBlockRows. Rows are added up within a block,
// blocks within a chunk, chunks in double, each in order: a mean is wrong by a
// few units in the last place however many rows there are. One long chain of
// additions would shift the whole channel by many, and what is near zero to the
// other side of a ReLU. The variance is taken around the mean in a second pass.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/BatchNorm.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Simd.h"

#include <algorithm>
#include <cmath>

namespace tmc {

using simd::kWidth;
using simd::V;

namespace {

/// Rows that are added up in one chain.
constexpr int64_t kBlockRows = 16;

V loadSome(const float *p, int64_t count) {
  return count == kWidth ? simd::load(p) : simd::loadPart(p, count);
}
void storeSome(float *p, V v, int64_t count) {
  if (count == kWidth)
    simd::store(p, v);
  else
    simd::storePart(p, v, count);
}

/// Scratch: two tables of one row per chunk, and two rows of totals.
struct Sums {
  int64_t chunks, rowsPerChunk, stride;
  float *first, *second, *total1, *total2;

  Sums(const BatchNormParams &p, void *scratch) {
    // Enough rows in a chunk to be worth handing out.
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

/// Runs body(row, channel, lanes, &a, &b), which adds to a and b, over all
/// rows; the sums end in total1 and total2.
template <typename F>
void columnSums(Stream &stream, const BatchNormParams &p, const Sums &sums,
                F &&body) {
  parallelFor(stream, sums.chunks, [&](int64_t chunk, int64_t) {
    const int64_t r0 = chunk * sums.rowsPerChunk;
    const int64_t r1 = std::min(p.rows, r0 + sums.rowsPerChunk);
    // Four vectors of channels at a time, so that a row's cache lines are used
    // together.
    constexpr int64_t group = 4 * kWidth;
    for (int64_t c0 = 0; c0 < p.channels; c0 += group) {
      const int64_t width = std::min<int64_t>(group, p.channels - c0);
      V a[4] = {}, b[4] = {};
      for (int64_t block = r0; block < r1; block += kBlockRows) {
        V blockA[4] = {}, blockB[4] = {};
        for (int64_t r = block; r < std::min(r1, block + kBlockRows); ++r)
          for (int64_t j = 0; j * kWidth < width; ++j)
            body(r, c0 + j * kWidth,
                 std::min<int64_t>(kWidth, width - j * kWidth), blockA[j],
                 blockB[j]);
        for (int64_t j = 0; j < 4; ++j)
          a[j] += blockA[j], b[j] += blockB[j];
      }
      for (int64_t j = 0; j * kWidth < width; ++j) {
        const int64_t n = std::min<int64_t>(kWidth, width - j * kWidth);
        const int64_t at = chunk * sums.stride + c0 + j * kWidth;
        storeSome(sums.first + at, a[j], n);
        storeSome(sums.second + at, b[j], n);
      }
    }
  });
  for (int64_t c = 0; c < p.channels; ++c) {
    double a = 0, b = 0;
    for (int64_t chunk = 0; chunk < sums.chunks; ++chunk) {
      a += sums.first[chunk * sums.stride + c];
      b += sums.second[chunk * sums.stride + c];
    }
    sums.total1[c] = float(a);
    sums.total2[c] = float(b);
  }
}

/// Runs body(row, channel, lanes) over everything, chunk by chunk.
template <typename F>
void eachElement(Stream &stream, const BatchNormParams &p, const Sums &sums,
                 F &&body) {
  parallelFor(stream, sums.chunks, [&](int64_t chunk, int64_t) {
    const int64_t r1 = std::min(p.rows, (chunk + 1) * sums.rowsPerChunk);
    for (int64_t r = chunk * sums.rowsPerChunk; r < r1; ++r)
      for (int64_t c = 0; c < p.channels; c += kWidth)
        body(r, c, std::min<int64_t>(kWidth, p.channels - c));
  });
}

const float *floats(const void *p) { return static_cast<const float *>(p); }
float *floats(void *p) { return static_cast<float *>(p); }

} // namespace

struct BatchNorm::State {};
BatchNorm::BatchNorm(const Params &params) : params_(params) {}
BatchNorm::~BatchNorm() = default;

Status BatchNorm::prepare(Device &) {
  if (Status s = cpu::requireType("batch_norm", params_.type); !s)
    return s;
  return cpu::requireScratch("batch_norm", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void BatchNorm::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const Params &p = params_;
  const float *x = floats(operand(ins, 0));
  const float *gamma = floats(operand(ins, 1));
  const float *beta = floats(operand(ins, 2));
  const float *oldMean = floats(operand(ins, 3));
  const float *oldVariance = floats(operand(ins, 4));
  float *y = floats(result(outs, 0));
  float *newMean = floats(result(outs, 1));
  float *newVariance = floats(result(outs, 2));
  float *mean = floats(result(outs, 3));
  float *inverse = floats(result(outs, 4));

  const Sums sums(p, scratch);
  columnSums(stream, p, sums, [&](int64_t r, int64_t c, int64_t n, V &a, V &) {
    a += loadSome(x + r * p.channels + c, n);
  });
  for (int64_t c = 0; c < p.channels; ++c)
    mean[c] = sums.total1[c] / float(p.rows);
  columnSums(stream, p, sums, [&](int64_t r, int64_t c, int64_t n, V &a, V &) {
    const V d = loadSome(x + r * p.channels + c, n) - loadSome(mean + c, n);
    a = simd::fma(d, d, a);
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
  eachElement(stream, p, sums, [&](int64_t r, int64_t c, int64_t n) {
    const V d = loadSome(x + r * p.channels + c, n) - loadSome(mean + c, n);
    const V scale = loadSome(inverse + c, n) * loadSome(gamma + c, n);
    storeSome(y + r * p.channels + c,
              simd::fma(d, scale, loadSome(beta + c, n)), n);
  });
}

struct BatchNormGrad::State {};
BatchNormGrad::BatchNormGrad(const Params &params) : params_(params) {}
BatchNormGrad::~BatchNormGrad() = default;

Status BatchNormGrad::prepare(Device &) {
  if (Status s = cpu::requireType("batch_norm_grad", params_.type); !s)
    return s;
  return cpu::requireScratch("batch_norm_grad",
                             scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void BatchNormGrad::run(Stream &stream, In ins, Out outs, void *scratch,
                        bool accumulate) {
  const Params &p = params_;
  const float *x = floats(operand(ins, 0));
  const float *gamma = floats(operand(ins, 1));
  const float *mean = floats(operand(ins, 2));
  const float *inverse = floats(operand(ins, 3));
  const float *dy = floats(operand(ins, 4));
  float *dx = floats(result(outs, 0));
  float *dgamma = floats(result(outs, 1));
  float *dbeta = floats(result(outs, 2));

  const Sums sums(p, scratch);
  // total1: sum of dy; total2: sum of dy * normalized x.
  columnSums(stream, p, sums, [&](int64_t r, int64_t c, int64_t n, V &a, V &b) {
    const V g = loadSome(dy + r * p.channels + c, n);
    const V normal =
        (loadSome(x + r * p.channels + c, n) - loadSome(mean + c, n)) *
        loadSome(inverse + c, n);
    a += g;
    b = simd::fma(g, normal, b);
  });
  if (dx) {
    const V count = simd::splat(1 / float(p.rows));
    eachElement(stream, p, sums, [&](int64_t r, int64_t c, int64_t n) {
      const V rstd = loadSome(inverse + c, n);
      const V normal =
          (loadSome(x + r * p.channels + c, n) - loadSome(mean + c, n)) * rstd;
      const V g = loadSome(dy + r * p.channels + c, n);
      const V centred = g - loadSome(sums.total1 + c, n) * count -
                        normal * (loadSome(sums.total2 + c, n) * count);
      storeSome(dx + r * p.channels + c,
                loadSome(gamma + c, n) * rstd * centred, n);
    });
  }
  for (int64_t c = 0; c < p.channels; ++c) {
    if (dgamma)
      dgamma[c] = accumulate ? dgamma[c] + sums.total2[c] : sums.total2[c];
    if (dbeta)
      dbeta[c] = accumulate ? dbeta[c] + sums.total1[c] : sums.total1[c];
  }
}

} // namespace tmc
