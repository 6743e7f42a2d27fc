// PackedScales.h - the index of a code's scale, if scales are packed.
//
// The layouts of Quantize.h (runtime/kernels), implemented again: the
// interpreter shares no text with the code that it checks.

#ifndef TMC_COMPILER_REFERENCE_PACKEDSCALES_H
#define TMC_COMPILER_REFERENCE_PACKEDSCALES_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace tmc::reference {

/// The index of the scale of code (i, j) among the `scales` packed ones of a
/// matrix of codes. Scales by row have one per row and 128 columns; scales by
/// square are fewer.
inline int64_t packedScaleAt(llvm::ArrayRef<int64_t> codes, int64_t scales,
                             int64_t i, int64_t j) {
  const int64_t blocks = (codes[1] + 127) / 128;
  if (scales == codes[0] * blocks)
    return j / 128 * codes[0] + i;
  return i / 128 * ((blocks + 3) / 4 * 4) + j / 128;
}

} // namespace tmc::reference

#endif // TMC_COMPILER_REFERENCE_PACKEDSCALES_H
