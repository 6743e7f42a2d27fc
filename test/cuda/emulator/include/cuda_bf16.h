//===- cuda_bf16.h - see Types.h -*- C++ -*-===//
#ifndef TMC_TEST_CUDA_EMULATOR_CUDA_BF16_H
#define TMC_TEST_CUDA_EMULATOR_CUDA_BF16_H

#include "test/cuda/emulator/Types.h"

#endif // TMC_TEST_CUDA_EMULATOR_CUDA_BF16_H
