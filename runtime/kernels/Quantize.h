//===- Quantize.h - floats as codes of 8 bits and scales --------*- C++ -*-===//
//
//   codes[i] = round(x[i] * (1 / scale))        scale = amax / most, about
//
// What shares a scale is the whole tensor, or a block of a matrix; then the
// scale is a power of two. `nn.quantize` (dialects/nn/Quantize.td) says what is
// computed to the last bit; ScaleOf.h computes it for both backends.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_QUANTIZE_H
#define TMC_RUNTIME_KERNELS_QUANTIZE_H

#include "runtime/kernels/Kernel.h"

namespace tmc {

/// Values of a block that share a scale, along each of its blocked dimensions.
constexpr int64_t kScaleBlock = 128;

/// Rows and columns of a matrix that share a scale; zeros: all of the tensor.
struct ScaleBlock {
  int64_t rows = 0, columns = 0;
  constexpr bool isWhole() const { return rows == 0; }
};
constexpr int64_t blocksIn(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

/// ins: x [batch, rows, columns]; the amax history if `history`. outs: codes of
/// the same shape; scales, one, or [batch, blocks of rows, blocks of columns];
/// if `turned` (cuda), the codes once more, as [batch, columns, rows]; x's amax
/// and how many of its numbers saturate (i64) if `history`.
class Quantize : public Kernel {
public:
  struct Params {
    DType in, codes;
    int64_t batch, rows, columns;
    int64_t blockRows, blockColumns; // 0, 0: the whole tensor
    int64_t history = 0; // amaxes of steps before, which the scale is made of
    bool turned = false;
    int64_t scratchBytes = 0;

    constexpr int64_t elements() const { return batch * rows * columns; }
  };
  /// cuda makes one scale of a tensor.
  static constexpr bool takes(const Params &p, Backend backend) {
    return (p.in == DType::F32 || isHalf(p.in)) && isFloat8(p.codes) &&
           (backend == Backend::Cpu ? !p.turned : p.blockRows == 0);
  }
  static int64_t scratchCap(const Params &params, Backend backend);
  TMC_KERNEL(Quantize)
};

/// Elements whose maximum is found at a time: a maximum each is kept, and with
/// a history a count.
constexpr int64_t kQuantizeTile = 1 << 14;

/// Such tiles of a tensor: of what lies together, or squares of a matrix.
constexpr int64_t kQuantizeSide = 128;
static_assert(kQuantizeSide * kQuantizeSide == kQuantizeTile);
constexpr int64_t quantizeTiles(const Quantize::Params &p) {
  return p.turned ? p.batch * blocksIn(p.rows, kQuantizeSide) *
                        blocksIn(p.columns, kQuantizeSide)
                  : blocksIn(p.elements(), kQuantizeTile);
}

inline int64_t Quantize::scratchCap(const Params &p, Backend) {
  const int64_t tiles = quantizeTiles(p);
  return p.blockRows ? 0 : alignScratch(tiles * (p.history ? 8 : 4));
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_QUANTIZE_H
