//===- BatchNorm.h - batch normalization, channels last ---------*- C++ -*-===//
//
// Normalizes the columns of x [rows, channels] (NHWC flattened), in training
// mode. Sums are taken over fixed chunks of rows, added in order. Activations
// of 16 bits are widened as they are read, and results are rounded once;
// parameters and statistics are f32 in any case.
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

/// The largest number of row chunks for statistics.
constexpr int64_t kBatchNormChunks = 32;

/// Two partial sums per chunk and channel, in f32, and two totals.
inline int64_t batchNormScratchCap(const BatchNormParams &params, Backend) {
  return 2 * (kBatchNormChunks + 1) * alignScratch(params.channels * 4);
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
  static int64_t cudaLaunches(const Params &, Wanted) { return 5; }
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
