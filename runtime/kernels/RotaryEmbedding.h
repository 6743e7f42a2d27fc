//===- RotaryEmbedding.h - rotation of pairs by angles ----------*- C++ -*-===//
//
// A row of x holds pairs of elements, which are turned by angles:
//
//   halves        columns i and i + rotated / 2
//   interleaved   columns i and i + 1, for even i
//
//   y[first]  = x[first] * cos[first] - x[second] * sin[first]
//   y[second] = x[second] * cos[second] + x[first] * sin[second]
//
// Columns from `rotated` on are copied, and so are all columns of the rows from
// `heads` on along the inner dimension. If the result takes the operand's
// place, they are neither read nor written. Both products and the sum are f32,
// each rounded once, so that backends agree bit for bit.
//
// Source: J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position
// Embedding", 2021.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ROTARYEMBEDDING_H
#define TMC_RUNTIME_KERNELS_ROTARYEMBEDDING_H

#include "runtime/kernels/Kernel.h"

namespace tmc {

/// One number for each of the dimensions along which rows are counted.
struct RotaryDims {
  int64_t outer, middle, inner;

  TMC_FIELDS(outer, middle, inner)
};

/// ins: x, rows of `columns` elements; cos, sin f32, rows of `rotated`
/// elements. outs: y, contiguous. It may be x.
class RotaryEmbedding : public Kernel {
public:
  struct Params {
    DType type; // of x and y
    RotaryDims rows;
    int64_t columns, rotated, heads;
    /// Elements from one row to the next, of x and of the tables; 0 where all
    /// rows share a table's row. The elements of a row are contiguous.
    RotaryDims strides, tableStrides;
    bool interleaved;
    /// The adjoint: sin is that of the other element of a pair, and the signs
    /// are swapped.
    bool transposed;
    int64_t scratchBytes = 0;

    TMC_FIELDS(type, rows, columns, rotated, heads, strides, tableStrides,
               interleaved, transposed)
  };
  static constexpr bool takes(const Params &params, Backend) {
    return params.type == DType::F32 || isHalf(params.type);
  }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(RotaryEmbedding)
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_ROTARYEMBEDDING_H
