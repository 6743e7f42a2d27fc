//===- TensorCore.h - mma, ldmatrix and cp.async of a warp ------*- C++ -*-===//
//
// Behind runtime/cuda/TensorCore.h, which says what they do. What is checked:
//
//   mma, loadMatrices   all 32 lanes of the warp exist, haven't left, and call
//                       one of them at one source line, with the same operation
//   mma                 operands of tf32 have no digits beyond tf32's
//   loadMatrices        every lane's address is aligned to 16 bytes and in
//                       shared memory; what is read is read by the lane that
//                       gave its address, so that races are found (Shadow.h)
//   copyAsync           alignment to the size, from device to shared memory.
//                       Between the call and the wait that covers it nobody may
//                       touch what is written: an access is reported as a race.
//                       What is read must have the same bytes at the wait.
//                       The copy counts as written by its thread, when it waits
//
// The bytes arrive as late as they may: at the wait. What a wait left out would
// have brought is never there.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_TENSORCORE_H
#define TMC_TEST_CUDA_EMULATOR_TENSORCORE_H

#include "test/cuda/emulator/Types.h"

#include <cstdint>

namespace tmc::emulator {

/// c += a * b of the lane's shares; each sum is c and the products with k
/// ascending, added by fmaf.
void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
         Format typeOfA, Format typeOfB);
void loadMatrices(uint32_t *words, int count, bool transposed, const void *row);
void copyAsync(void *to, const void *from, int bytes, int valid);
void commitGroup();
void waitGroup(int pending);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_TENSORCORE_H
