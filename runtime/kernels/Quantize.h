//===- Quantize.h - floats as 8-bit codes and scales ------------*- C++ -*-===//
//
//   codes[i] = round(x[i] * (1 / scale))        scale = amax / most, about
//
// A scale is shared by the whole tensor, or by a block of a matrix; then it is
// a power of two. `nn.quantize` (dialects/nn/Quantize.td) defines the result to
// the last bit; ScaleOf.h computes it for both backends.
//
// Scales of blocks are stored as a matrix of their own, or packed in the order
// in which cuBLASLt reads the scales of a factor that it sums along rows. For
// codes [rows, columns] with L = ceil(columns / 128):
//
//     128 of a row        [L, rows]: those of all rows, one block after another
//     128 x 128           [ceil(rows / 128), L rounded up to a multiple of 4],
//                         zeros behind each row's L
//
//     codes [256, 640], 128 of a row     s00 s10 s20 .. | s01 s11 s21 .. | ..
//                       128 x 128        s00 s01 s02 s03 s04 0 0 0 | s10 ..
//
// Source: cuBLAS library of CUDA 13, "128-element 1D and 128x128 2D Block
// Scaling For FP8 Data Types".
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_QUANTIZE_H
#define TMC_RUNTIME_KERNELS_QUANTIZE_H

#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Portable.h"

namespace tmc {

/// Values of a block that share a scale, along each of its blocked dimensions.
constexpr int64_t kScaleBlock = 128;

/// Rows and columns of a matrix that share a scale; zeros: all of the tensor.
struct ScaleBlock {
  int64_t rows = 0, columns = 0;
  constexpr bool isWhole() const { return rows == 0; }
};
TMC_HD constexpr int64_t blocksIn(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

/// Each row of packed square scales fills whole 16 bytes.
constexpr int64_t kPackedScales = 4;

/// The layout of packed scales in memory, and the index of the scale of element
/// (row, column).
struct PackedScales {
  int64_t rows, columns;
  bool areSquares;

  TMC_HD constexpr int64_t along() const {
    const int64_t blocks = blocksIn(columns, kScaleBlock);
    return areSquares ? blocksIn(blocks, kPackedScales) * kPackedScales
                      : blocks;
  }
  constexpr int64_t count() const {
    return along() * (areSquares ? blocksIn(rows, kScaleBlock) : rows);
  }
  TMC_HD constexpr int64_t at(int64_t row, int64_t column) const {
    return areSquares ? row / kScaleBlock * along() + column / kScaleBlock
                      : column / kScaleBlock * rows + row;
  }
};

/// ins: x [batch, rows, columns]; the amax history if `history`. outs: codes of
/// the same shape; scales, one, or [batch, blocks of rows, blocks of columns];
/// if `turned` (cuda), the codes transposed, as [batch, columns, rows]; if
/// `history`, the amax of x and the count of its numbers that saturate (i64).
///
/// With `packed` (cuda): codes and packed scales of a matrix x, then those of x
/// transposed, [columns, rows], with blocks along the transposed rows. Either
/// pair may be absent.
class Quantize : public Kernel {
public:
  struct Params {
    DType in, codes;
    int64_t batch, rows, columns;
    int64_t blockRows, blockColumns; // 0, 0: the whole tensor
    int64_t history = 0; // amaxes of earlier steps, which give the scale
    bool turned = false;
    bool packed = false;
    int64_t scratchBytes = 0;

    TMC_FIELD_GROUPS(TMC_GIVEN(in, codes, batch, rows, columns, blockRows,
                               blockColumns),
                     TMC_OPTIONAL(history), TMC_OPTIONAL(turned),
                     TMC_OPTIONAL(packed))

    constexpr int64_t elements() const { return batch * rows * columns; }
  };
  /// cuda makes one scale for a tensor, or packed ones: for squares, or for 128
  /// elements of a row.
  static constexpr bool takes(const Params &p, Backend backend) {
    if (!(p.in == DType::F32 || isHalf(p.in)) || !isFloat8(p.codes))
      return false;
    if (backend == Backend::Cpu)
      return !p.turned && !p.packed;
    return p.packed ? p.batch == 1 && p.blockColumns == kScaleBlock &&
                          (p.blockRows == 1 || p.blockRows == kScaleBlock)
                    : p.blockRows == 0;
  }
  static int64_t scratchCap(const Params &params, Backend backend);
  static int64_t cudaLaunches(const Params &params, Wanted) {
    return params.packed ? 1 : 3;
  }
  TMC_KERNEL(Quantize)
};

/// Elements of a tile. Each tile has one maximum, and with a history one count.
constexpr int64_t kQuantizeTile = 1 << 14;

/// Tiles of a tensor: contiguous elements, or squares of a matrix.
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
