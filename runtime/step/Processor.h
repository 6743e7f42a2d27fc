//===- Processor.h - the instructions that a processor has ------*- C++ -*-===//
//
// A trainer and tmc_step_create first check that the processor can run the
// step.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_PROCESSOR_H
#define TMC_RUNTIME_STEP_PROCESSOR_H

#include "runtime/step/Instructions.h"

#include <cstddef>

namespace tmc {

/// The results of cpuid and xgetbv.
struct CpuidWords {
  uint32_t leaf1Ecx = 0;
  uint32_t leaf7Ebx = 0, leaf7Edx = 0; // Sub-leaf 0.
  uint32_t leaf7Sub1Eax = 0;
  uint32_t extendedEcx = 0; // Of leaf 0x80000001.
  /// The registers that the operating system saves; 0 if it doesn't say.
  uint64_t xcr0 = 0;
};

CpuidWords readCpuid();

/// The bits of `Instructions` that may be used: the processor has them and the
/// operating system saves their registers.
/// Source: Intel 64 and IA-32 Architectures SDM, volume 1, chapters 13 to 18.
uint32_t instructionsOf(const CpuidWords &words);

/// Asks the operating system for permission to use tiles (AMX), which it may
/// refuse even if it saves them. True if all threads may use tiles from now on.
bool permitTiles();

/// Writes the sentence "the step was compiled for cpu:v4; this processor lacks
/// AVX512F ..." to `text` and returns it; nullptr if nothing is missing.
const char *faultOf(const CompiledFor &wanted, uint32_t available, char *text,
                    size_t bytes);

/// The same for this program's step and library on this processor. The text is
/// valid until the thread's next call. Defined in StartCheck.cpp. Uses no
/// inline function of a library and no static initializer: see Instructions.h.
const char *startFault();

} // namespace tmc

#endif // TMC_RUNTIME_STEP_PROCESSOR_H
