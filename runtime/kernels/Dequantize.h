//===- Dequantize.h - frozen weights back from codes ------------*- C++ -*-===//
//
// A weight that isn't trained is stored as codes (FrozenCodes.h has the
// formats). This kernel writes its numbers into memory, for a product that
// reads them next:
//
//     codes, maxima  --> w [rows, columns], each number rounded once
//
// Both backends and all instruction sets give the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_DEQUANTIZE_H
#define TMC_RUNTIME_KERNELS_DEQUANTIZE_H

#include "runtime/kernels/FrozenCodes.h"
#include "runtime/kernels/Kernel.h"

namespace tmc {

/// ins: codes, i8. Of nf4: [rows * columns / 2], two to a byte; then absmax,
/// f32 [blocks], or with `nested` codes i8 [blocks] and nested maxima, f32
/// [nestedFloats(blocks)]; a block has 64 numbers. With `byRows`: [rows,
/// columns]; then absmax, f32 [rows]. outs: w [rows, columns].
class Dequantize : public Kernel {
public:
  struct Params {
    DType out;
    int64_t rows, columns;
    bool byRows, nested;
    int64_t scratchBytes = 0;

    TMC_FIELDS(out, rows, columns, byRows, nested)
  };
  static constexpr bool takes(const Params &p, Backend) {
    return (p.out == DType::F32 || p.out == DType::BF16 ||
            p.out == DType::F16) &&
           (p.byRows ? !p.nested : p.rows * p.columns % frozen::kBlock == 0);
  }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(Dequantize)
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_DEQUANTIZE_H
