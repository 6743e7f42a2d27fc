//===- BatchNorm.h - batch normalization, channels last ---------*- C++ -*-===//
//
// Normalizes the columns of x [rows, channels] (NHWC flattened), in training
// mode. Sums are taken over fixed chunks of rows and combined in a fixed order.
// Activations of 16 bits are widened as they are read, and results are rounded
// once; parameters and statistics are f32 in any case.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_BATCHNORM_H
#define TMC_RUNTIME_KERNELS_BATCHNORM_H

#include "runtime/kernels/Kernel.h"

namespace tmc {

struct BatchNormParams {
  DType type; // of x, y and their gradients
  int64_t rows, channels;
  double epsilon;
  /// The weight of the batch's statistics in the new running ones (PyTorch's
  /// convention: new = (1 - momentum) old + momentum batch).
  double momentum;
  /// The running variance takes the batch's with rows - 1 in the divisor, as
  /// PyTorch does; the normalization itself always divides by rows.
  bool unbiasedRunning;
  int64_t scratchBytes = 0;

  TMC_FIELDS(type, rows, channels, epsilon, momentum, unbiasedRunning)
};

/// The largest number of row chunks for statistics on cpu.
constexpr int64_t kBatchNormChunks = 32;

/// The cut of [rows, channels] into blocks of threads on cuda. It depends on
/// the shape only.
///
///     columns:  groups of `across` vectors of kBatchNormVector channels
///     rows:     chunks; line y of a block takes rows y, y + lines, ...
struct BatchNormCut {
  int64_t vectors, groups;
  int64_t across, lines; // threads of a block
  int64_t rowsPerChunk, chunks;
  int64_t stride; // floats of a row of a table in scratch
};
constexpr int64_t kBatchNormVector = 8;
constexpr int64_t kBatchNormBlock = 256;
/// Blocks that compute statistics: about two waves of three blocks on each of
/// 132 multiprocessors.
constexpr int64_t kBatchNormBlocks = 768;
/// Rows that a thread reads together, and the fewest that it has.
constexpr int64_t kBatchNormRows = 4;
constexpr int64_t kBatchNormLeastRows = 2 * kBatchNormRows;
/// Rows of coefficients that follow the partial sums in scratch.
constexpr int64_t kBatchNormCoefficients = 4;

inline BatchNormCut batchNormCut(const BatchNormParams &p) {
  auto divide = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  constexpr int64_t kMostAcross = 32;
  BatchNormCut c{};
  c.vectors = divide(p.channels, kBatchNormVector);
  c.groups = divide(c.vectors, kMostAcross);
  c.across = c.groups > 0 ? divide(c.vectors, c.groups) : 1;
  c.lines = kBatchNormBlock / c.across;
  const int64_t chunks = c.groups < kBatchNormBlocks
                             ? kBatchNormBlocks / (c.groups + !c.groups)
                             : 1;
  const int64_t step = kBatchNormRows * c.lines;
  c.rowsPerChunk = divide(divide(p.rows, chunks), step) * step;
  if (c.rowsPerChunk < kBatchNormLeastRows * c.lines)
    c.rowsPerChunk = kBatchNormLeastRows * c.lines;
  c.chunks = divide(p.rows, c.rowsPerChunk);
  c.stride = alignScratch(p.channels * 4) / 4;
  return c;
}

/// Two partial sums per chunk and channel, in f32, and totals or coefficients.
inline int64_t batchNormScratchCap(const BatchNormParams &params,
                                   Backend backend) {
  const int64_t row = alignScratch(params.channels * 4);
  if (backend == Backend::Cpu)
    return 2 * (kBatchNormChunks + 1) * row;
  return (2 * batchNormCut(params).chunks + kBatchNormCoefficients) * row;
}

/// The types of activations that both kernels take.
constexpr bool batchNormTakes(const BatchNormParams &p) {
  return p.type == DType::F32 || isHalf(p.type);
}

/// ins: x [rows, channels], gamma, beta, runningMean, runningVariance
///      [channels].
/// outs: y, newRunningMean, newRunningVariance [channels] (may be the ins' own
///       buffers, or nullptr: dropped), mean, inverseStd (f32 [channels], for
///       the gradient).
class BatchNorm : public Kernel {
public:
  using Params = BatchNormParams;
  static constexpr bool takes(const Params &params, Backend) {
    return batchNormTakes(params);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return batchNormScratchCap(params, backend);
  }
  static int64_t cudaLaunches(const Params &, Wanted) { return 3; }
  TMC_KERNEL(BatchNorm)
};

/// ins: x, gamma, mean, inverseStd, dy. outs: dx (may be dy's buffer), dgamma,
/// dbeta [channels]. `accumulate` adds to dgamma and dbeta.
class BatchNormGrad : public Kernel {
public:
  using Params = BatchNormParams;
  static constexpr bool takes(const Params &params, Backend) {
    return batchNormTakes(params);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return batchNormScratchCap(params, backend);
  }
  static int64_t cudaLaunches(const Params &, Wanted wanted) {
    return 2 + wanted[0];
  }
  TMC_KERNEL(BatchNormGrad)
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_BATCHNORM_H
