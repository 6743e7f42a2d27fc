//===- FrozenCodes.h - frozen weights back from codes on cuda ---*- C++ -*-===//
//
// Decodes a whole tensor into memory, for a product that reads it next
// (runtime/kernels/FrozenCodes.h has the formats). The kernels are bound by
// memory: a bf16 number of nf4 reads half a byte and writes two.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_FROZENCODES_H
#define TMC_RUNTIME_CUDA_FROZENCODES_H

#include "runtime/cuda/Launch.h"
#include "runtime/kernels/FrozenCodes.h"

namespace tmc::cuda {

/// A tensor of `count` numbers, a multiple of frozen::kBlock, as nf4. Maxima
/// are in f32, or nested: then `absmax` is null.
struct CodedTensor {
  const uint8_t *codes; // aligned to 16 bytes
  const float *absmax;
  const uint8_t *maxima;
  const float *nested;
  int64_t count;
};

/// The numbers of `from`; T is float, bf16 or f16. `out` is aligned to 16
/// bytes.
template <typename T>
void decode(Queue &queue, const CodedTensor &from, T *out);

/// The same for 8-bit codes [rows, columns], with a maximum of each row.
template <typename T>
void decodeRows(Queue &queue, const int8_t *codes, const float *absmax,
                int64_t rows, int64_t columns, T *out);

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_FROZENCODES_H
