//===- BatchStatistics.cpp - statistics of a batch on cpu -----------------===//
//
// x [rows, channels] is read once. Rows are cut into at most kStatisticsChunks
// chunks, and chunks into blocks of kBlockRows. A block's mean and its squares
// around that mean are computed in registers, and combined with those of the
// blocks before it. Source: Chan, Golub, LeVeque, "Updating Formulae and a
// Pairwise Algorithm for Computing Sample Variances", 1979. All numbers are
// differences from the chunk's first row, so that a mean far from zero costs no
// digits. If that row is far from the others, the variance is large, too.
// Chunks are combined in double.
//
// The mean has to be right to a few units in the last place: an error shifts
// the whole channel, and values near zero to the other side of a ReLU.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/BatchStatistics.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>
#include <cmath>

namespace tmc {

using simd::V;

namespace {

/// Rows that are combined in registers.
constexpr int64_t kBlockRows = 8;

/// Chunks of rows. Scratch: two tables of one row per chunk.
struct Chunks {
  int64_t count, rows, stride;
  float *sums, *squares;

  Chunks(const BatchStatisticsParams &p, void *scratch) {
    // Enough rows in a chunk to justify handing it to a thread.
    const int64_t least =
        std::min<int64_t>(p.rows, 16384 / std::max<int64_t>(1, p.channels) + 1);
    rows = std::max<int64_t>(
        {1, least, (p.rows + kStatisticsChunks - 1) / kStatisticsChunks});
    count = (p.rows + rows - 1) / rows;
    stride = alignScratch(p.channels * 4) / 4;
    sums = static_cast<float *>(scratch);
    squares = sums + kStatisticsChunks * stride;
  }
};

/// The prefetch distance in elements: a block, if x doesn't stay in a cache,
/// else 0. The hardware prefetcher doesn't help here: a block's rows are too
/// short.
int64_t lookAhead(const BatchStatisticsParams &p) {
  constexpr int64_t kCachedFloats = 1 << 20;
  return p.rows * p.channels > kCachedFloats ? kBlockRows * p.channels : 0;
}

/// Adds rows [row, row + Rows) to the sums and squares of rows [from, row), all
/// of them differences from row `from`.
template <int64_t Rows, typename T>
void addBlock(const BatchStatisticsParams &p, const T *x, int64_t from,
              int64_t row, int64_t next, float *sums, float *squares) {
  const float before = float(row - from), more = float(Rows);
  const V inverse = simd::splat(before > 0 ? 1 / before : 0);
  const V weight = simd::splat(before * more / (before + more));
  eachVector(p.channels, [&](auto lanes, int64_t c) {
    const V shift = lanes.load(x + from * p.channels + c);
    V v[Rows], sum{}, square{};
    for (int64_t k = 0; k < Rows; ++k) {
      const T *at = x + (row + k) * p.channels + c;
      __builtin_prefetch(at + next);
      v[k] = lanes.load(at) - shift;
      sum += v[k];
    }
    const V mean = sum * simd::splat(1 / more);
    for (int64_t k = 0; k < Rows; ++k)
      square = simd::fma(v[k] - mean, v[k] - mean, square);
    V total{}, around{};
    if (before > 0) {
      total = lanes.load(sums + c);
      around = lanes.load(squares + c);
    }
    const V apart = mean - total * inverse;
    lanes.store(sums + c, total + sum);
    lanes.store(squares + c, simd::fma(apart * apart, weight, around + square));
  });
}

} // namespace

struct BatchStatistics::State {};
BatchStatistics::BatchStatistics(const Params &params) : params_(params) {}
BatchStatistics::~BatchStatistics() = default;

Status BatchStatistics::prepare(Device &) {
  return cpu::requireScratch("batch_statistics",
                             scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

/// BatchStatistics::run() for x of type T.
template <typename T>
static void statistics(Stream &stream, const BatchStatisticsParams &p, In ins,
                       Out outs, void *scratch) {
  const T *x = static_cast<const T *>(operand(ins, 0));
  const Chunks chunks(p, scratch);
  const int64_t next = lookAhead(p);
  parallelFor(stream, chunks.count, [&](int64_t chunk, int64_t) {
    const int64_t from = chunk * chunks.rows;
    const int64_t to = std::min(p.rows, from + chunks.rows);
    float *sums = chunks.sums + chunk * chunks.stride;
    float *squares = chunks.squares + chunk * chunks.stride;
    int64_t row = from;
    for (; row + kBlockRows <= to; row += kBlockRows)
      addBlock<kBlockRows>(p, x, from, row, next, sums, squares);
    for (; row < to; ++row)
      addBlock<1>(p, x, from, row, next, sums, squares);
  });

  const float *oldMean = static_cast<const float *>(operand(ins, 1));
  const float *oldVariance = static_cast<const float *>(operand(ins, 2));
  float *newMean = static_cast<float *>(result(outs, 0));
  float *newVariance = static_cast<float *>(result(outs, 1));
  float *mean = static_cast<float *>(result(outs, 2));
  float *inverse = static_cast<float *>(result(outs, 3));
  const float momentum = float(p.momentum);
  const double count = double(p.rows);
  for (int64_t c = 0; c < p.channels; ++c) {
    auto ofChunk = [&](int64_t chunk) {
      const int64_t from = chunk * chunks.rows;
      const double rows = double(std::min(chunks.rows, p.rows - from));
      const double sum = chunks.sums[chunk * chunks.stride + c];
      const float shift = loadLanes<1>(x + from * p.channels + c);
      return std::pair(rows, double(shift) + sum / rows);
    };
    double total = 0, around = 0;
    for (int64_t chunk = 0; chunk < chunks.count; ++chunk) {
      const auto [rows, centre] = ofChunk(chunk);
      total += rows * centre;
    }
    const double middle = total / count;
    for (int64_t chunk = 0; chunk < chunks.count; ++chunk) {
      const auto [rows, centre] = ofChunk(chunk);
      around += chunks.squares[chunk * chunks.stride + c] +
                rows * ((centre - middle) * (centre - middle));
    }
    mean[c] = float(middle);
    inverse[c] = float(1 / std::sqrt(around / count + p.epsilon));
    if (newMean)
      newMean[c] = (1 - momentum) * oldMean[c] + momentum * mean[c];
    if (newVariance)
      newVariance[c] = (1 - momentum) * oldVariance[c] +
                       momentum * float(around / std::max(count - 1, 1.0));
  }
}

void BatchStatistics::run(Stream &stream, In ins, Out outs, void *scratch,
                          bool) {
  withFloats(params_.type, [&](auto like) {
    statistics<decltype(like)>(stream, params_, ins, outs, scratch);
  });
}

} // namespace tmc
