//===- Adafactor.h - Adafactor's update -------------------------*- C++ -*-===//
//
// The update, and the code that its kernels on both backends share, so that
// they give the same bits: the arithmetic of an element, and the order of the
// sums.
//
//   a line     the squares of a row's elements, or of kLine elements of a
//              tensor without rows: kLineLanes lanes of f32, lane l adding
//              elements l, l + kLineLanes, ... by fma; then lane i + lane
//              i + 32, + 16, ...
//   a column   tiles of rows, f32, each from its first row to its last by fma;
//              then the tiles in order
//   a tensor   its lines in f64: kTotalLanes lanes, lane l adding lines l,
//              l + kTotalLanes, ...; then lane i + lane i + 512, + 256, ...
//   a mean of rows' moments   as a line, of the numbers themselves
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ADAFACTOR_H
#define TMC_RUNTIME_KERNELS_ADAFACTOR_H

#include "runtime/kernels/Optimizer.h"
#include "runtime/kernels/Portable.h"

#include <cmath>
#include <cstdint>

namespace tmc {

/// PyTorch's Adafactor. A tensor of two or more dimensions is a batch of
/// matrices over its last two. Its second moments are a mean of each row and
/// each column:
///   w = t^beta2Decay; rho = min(lr, 1 / sqrt(t)); p' = p (1 - lr weightDecay)
///   rowVar += w (mean of g g along a row - rowVar), and colVar along a column
///   v = rowVar colVar / max(mean of rowVar, eps1)
///   u = g / sqrt(max(v, eps1^2))
///   p = p' - max(eps2, rms(p)) rho / max(1, rms(u) / d) u
/// For other tensors v has a moment for each element, moved towards g g by w.
/// Source: torch.optim.Adafactor; the order of the sums is above.
///
/// ins: p, g [count], rowVar [batch, rows] or v [count], colVar [batch,
/// columns] or absent, lr, step, clipScale (or absent). outs: p and the moments
/// (the same buffers), squareSum f32 scalar (or absent), copy [count] (or
/// absent).
class Adafactor : public Kernel {
public:
  struct Params {
    DType param, grad;
    DType copy = DType::F32;
    int64_t count;                // batch * rows * columns
    int64_t batch, rows, columns; // rows is 0 where v is of each element
    double beta2Decay, eps1, eps2, d, weightDecay;
    int64_t stream;
    int64_t scratchBytes = 0;

    TMC_FIELD_GROUPS(TMC_GIVEN(param, grad), TMC_OPTIONAL(copy),
                     TMC_GIVEN(count, batch, rows, columns, beta2Decay, eps1,
                               eps2, d, weightDecay, stream))
  };
  static constexpr bool takes(const Params &p, Backend) {
    return isUpdated(p.param) && isGradient(p.grad);
  }
  static int64_t scratchCap(const Params &params, Backend);
  static int64_t cudaLaunches(const Params &params, Wanted wanted) {
    // A matrix has the sums of its rows and columns, and their means.
    return (params.rows > 0 ? 7 : 3) + wanted[3] +
           squareSumLaunches(params.count, wanted[3]);
  }
  TMC_KERNEL(Adafactor)
};

} // namespace tmc

namespace tmc::adafactor {

constexpr int kLineLanes = 64, kTotalLanes = 1024;
constexpr int64_t kLine = 1024;
/// Rows of a tile, if the matrix has as many.
constexpr int64_t kTileRows = 64;

TMC_HD inline int64_t ceilOf(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The structure of a tensor's sums, and their places in a kernel's scratch.
struct Sums {
  bool isFactored;
  int64_t lines;    // Of the whole tensor.
  int64_t tileRows; // The last tile of a matrix may have fewer.
  int64_t tiles;    // Of a matrix.
  // Offsets in bytes: squares of parameters and of updates, a float per line;
  // sums of tiles, a float per column; a mean per matrix; the factor of p.
  int64_t params, updates, columns, means, move, bytes;

  TMC_HD explicit Sums(const Adafactor::Params &q) {
    isFactored = q.rows > 0;
    lines = isFactored ? q.batch * q.rows : ceilOf(q.count, kLine);
    tileRows = tiles = 0;
    if (isFactored) {
      tileRows = q.rows < kTileRows ? q.rows : kTileRows;
      tiles = ceilOf(q.rows, tileRows);
    }
    // After the parts of the gradient's own sum of squares.
    params = ceilOf(partsOfSquares(q.count, Backend::Cuda) * 8, 64) * 64;
    updates = params + ceilOf(lines * 4, 64) * 64;
    columns = updates + ceilOf(lines * 4, 64) * 64;
    means = columns +
            (isFactored ? ceilOf(q.batch * tiles * q.columns * 4, 64) * 64 : 0);
    move = means + (isFactored ? ceilOf(q.batch * 4, 64) * 64 : 0);
    bytes = move + 64;
  }
  /// The sum at `offset` in the scratch of a kernel.
  TMC_HD static float *at(void *scratch, int64_t offset) {
    return reinterpret_cast<float *>(static_cast<char *>(scratch) + offset);
  }
};

// Computed in double; `::sqrt` because `tmc::sqrt` of one float hides it.

/// The factors of one step; computed in double and rounded once.
struct Factors {
  float decay, weight, scale;
  float least, leastSquare; // eps1 and its square.
};

/// The factors from the kernels' scalar operands; `clipScale` may be absent.
TMC_HD inline Factors factors(const Adafactor::Params &q, const float *rate,
                              const int64_t *step, const float *clipScale) {
  return {float(1 - double(*rate) * q.weightDecay),
          float(::pow(double(*step), q.beta2Decay)),
          clipScale ? *clipScale : 1.0f, float(q.eps1), float(q.eps1 * q.eps1)};
}

/// The factor of an update before it is added, from the sums of squares of the
/// parameters and of the updates.
TMC_HD inline float moveOf(const Adafactor::Params &q, float rate, int64_t step,
                           double params, double updates) {
  const double size = ::sqrt(double(q.count)), slow = 1 / ::sqrt(double(step));
  const double rho = slow < double(rate) ? slow : double(rate);
  const double rms = ::sqrt(params) / size;
  const double alpha = (rms > q.eps2 ? rms : q.eps2) * rho;
  const double ratio = ::sqrt(updates) / (size * q.d);
  return float(-(alpha / (ratio > 1 ? ratio : 1)));
}

/// `from` moved towards `to` by `f.weight`, as PyTorch's lerp: at 1 it is
/// exactly `to`. V is a float, or a vector of floats.
template <typename V> TMC_HD inline V moved(V from, V to, const Factors &f) {
  return f.weight < 0.5f ? from + f.weight * (to - from)
                         : to - (to - from) * (1.0f - f.weight);
}

/// The mean of a matrix's row moments; columns are divided by it.
TMC_HD inline float divisorOf(const Factors &f, float sum, int64_t rows) {
  const float mean = sum / float(rows);
  return mean < f.least ? f.least : mean;
}

/// The update before its factor, from a gradient and its second moment. `root`
/// is the square root of V.
template <typename V, typename Root>
TMC_HD inline V updateOf(V grad, V moment, V leastSquare, Root root) {
  const V least = moment < leastSquare ? leastSquare : moment;
  return (1.0f / root(least)) * grad;
}

} // namespace tmc::adafactor

namespace tmc {

inline int64_t Adafactor::scratchCap(const Params &params, Backend) {
  return alignScratch(adafactor::Sums(params).bytes);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_ADAFACTOR_H
