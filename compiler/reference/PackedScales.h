// PackedScales.h - where the scale of a code is, if scales are packed.
//
// The layouts of Quantize.h (runtime/kernels), written out once more: the
// interpreter shares no text with what it checks.

#ifndef TMC_COMPILER_REFERENCE_PACKEDSCALES_H
#define TMC_COMPILER_REFERENCE_PACKEDSCALES_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace tmc::reference {

/// The index of code (i, j)'s among `scales` packed ones of a matrix of codes.
/// Of rows there are as many scales as rows for each 128 along a row; of
/// squares fewer.
inline int64_t packedScaleAt(llvm::ArrayRef<int64_t> codes, int64_t scales,
                             int64_t i, int64_t j) {
  const int64_t blocks = (codes[1] + 127) / 128;
  if (scales == codes[0] * blocks)
    return j / 128 * codes[0] + i;
  return i / 128 * ((blocks + 3) / 4 * 4) + j / 128;
}

} // namespace tmc::reference

#endif // TMC_COMPILER_REFERENCE_PACKEDSCALES_H
