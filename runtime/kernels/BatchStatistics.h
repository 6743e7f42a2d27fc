//===- BatchStatistics.h - statistics of a batch, channels last -*- C++ -*-===//
//
// Mean and variance of the columns of x [rows, channels] (NHWC flattened), and
// the running ones after this step. Sums are taken over fixed chunks of rows
// and combined in a fixed order. Activations of 16 bits are widened as they are
// read; statistics are f32 in any case.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_BATCHSTATISTICS_H
#define TMC_RUNTIME_KERNELS_BATCHSTATISTICS_H

#include "runtime/kernels/Kernel.h"

namespace tmc {

struct BatchStatisticsParams {
  DType type; // of x
  int64_t rows, channels;
  double epsilon;
  /// The weight of the batch's statistics in the new running ones (PyTorch's
  /// convention: new = (1 - momentum) old + momentum batch).
  double momentum;
  int64_t scratchBytes = 0;

  TMC_FIELDS(type, rows, channels, epsilon, momentum)
};

/// The largest number of row chunks for statistics on cpu.
constexpr int64_t kStatisticsChunks = 32;

/// The cut of [rows, channels] into blocks of threads on cuda. It depends on
/// the shape only.
///
///     columns:  groups of `across` vectors of kStatisticsVector channels
///     rows:     chunks; line y of a block takes rows y, y + lines, ...
struct StatisticsCut {
  int64_t vectors, groups;
  int64_t across, lines; // threads of a block
  int64_t rowsPerChunk, chunks;
  int64_t stride; // floats of a row of a table in scratch
};
constexpr int64_t kStatisticsVector = 8;
constexpr int64_t kStatisticsBlock = 256;
/// About two waves of three blocks on each of 132 multiprocessors.
constexpr int64_t kStatisticsBlocks = 768;
/// Rows that a thread reads together, and the fewest that it has.
constexpr int64_t kStatisticsRows = 4;
constexpr int64_t kStatisticsLeastRows = 2 * kStatisticsRows;

inline StatisticsCut statisticsCut(const BatchStatisticsParams &p) {
  auto divide = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  constexpr int64_t kMostAcross = 32;
  StatisticsCut c{};
  c.vectors = divide(p.channels, kStatisticsVector);
  c.groups = divide(c.vectors, kMostAcross);
  c.across = c.groups > 0 ? divide(c.vectors, c.groups) : 1;
  c.lines = kStatisticsBlock / c.across;
  const int64_t chunks = c.groups < kStatisticsBlocks
                             ? kStatisticsBlocks / (c.groups + !c.groups)
                             : 1;
  const int64_t step = kStatisticsRows * c.lines;
  c.rowsPerChunk = divide(divide(p.rows, chunks), step) * step;
  if (c.rowsPerChunk < kStatisticsLeastRows * c.lines)
    c.rowsPerChunk = kStatisticsLeastRows * c.lines;
  c.chunks = divide(p.rows, c.rowsPerChunk);
  c.stride = alignScratch(p.channels * 4) / 4;
  return c;
}

/// ins: x [rows, channels], runningMean, runningVariance [channels].
/// outs: newRunningMean, newRunningVariance [channels] (may be the ins' own
///       buffers, or nullptr: dropped), mean, inverseStd (f32 [channels]).
///
/// The running variance takes the batch's with rows - 1 in the divisor, as
/// PyTorch does; inverseStd is 1 / sqrt(variance + epsilon) with rows in it.
class BatchStatistics : public Kernel {
public:
  using Params = BatchStatisticsParams;
  static constexpr bool takes(const Params &p, Backend) {
    return p.type == DType::F32 || isHalf(p.type);
  }
  /// Rows of f32: two sums of each chunk, and on cuda the row that all are
  /// shifted by.
  static int64_t scratchCap(const Params &p, Backend backend) {
    const int64_t row = alignScratch(p.channels * 4);
    if (backend == Backend::Cpu)
      return 2 * kStatisticsChunks * row;
    return (2 * statisticsCut(p).chunks + 1) * row;
  }
  static int64_t cudaLaunches(const Params &, Wanted) { return 2; }
  TMC_KERNEL(BatchStatistics)
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_BATCHSTATISTICS_H
