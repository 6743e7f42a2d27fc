//===- Runtime.h - planned failures of the runtime's calls ------*- C++ -*-===//
#ifndef TMC_TEST_CUDA_EMULATOR_RUNTIME_H
#define TMC_TEST_CUDA_EMULATOR_RUNTIME_H

namespace tmc::emulator {

/// Counts a call (Emulator.h: callsOf). True if it was chosen to fail
/// (failNext); once.
bool shouldFail(const char *call);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_RUNTIME_H
