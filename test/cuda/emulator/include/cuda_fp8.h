//===- cuda_fp8.h - see Types.h -*- C++ -*-===//
#ifndef TMC_TEST_CUDA_EMULATOR_CUDA_FP8_H
#define TMC_TEST_CUDA_EMULATOR_CUDA_FP8_H

#include "test/cuda/emulator/Types.h"

#endif // TMC_TEST_CUDA_EMULATOR_CUDA_FP8_H
