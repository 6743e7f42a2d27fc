//===- Processor.h - the instructions that a processor has ------*- C++ -*-===//
//
// The first thing that a trainer and tmc_step_create do is to ask whether the
// processor can run the step.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_PROCESSOR_H
#define TMC_RUNTIME_STEP_PROCESSOR_H

#include "runtime/step/Instructions.h"

#include <cstddef>

namespace tmc {

/// What cpuid and xgetbv answer.
struct CpuidWords {
  uint32_t leaf1Ecx = 0;
  uint32_t leaf7Ebx = 0, leaf7Edx = 0; // Sub-leaf 0.
  uint32_t leaf7Sub1Eax = 0;
  uint32_t extendedEcx = 0; // Of leaf 0x80000001.
  /// The registers that the operating system saves; 0 where it doesn't say.
  uint64_t xcr0 = 0;
};

CpuidWords readCpuid();

/// The bits of `Instructions` that may be used, given those answers: the
/// processor has them and the operating system saves their registers.
/// Source: Intel 64 and IA-32 Architectures SDM, volume 1, chapters 13 to 18.
uint32_t instructionsOf(const CpuidWords &words);

/// Asks the operating system for this process's tiles (AMX), which it may
/// refuse though it saves them. True if there are any to use, from then on in
/// all threads.
bool permitTiles();

/// Writes the sentence "the step was compiled for cpu:v4; this processor lacks
/// AVX512F ..." to `text` and returns it; nullptr where nothing lacks.
const char *faultOf(const CompiledFor &wanted, uint32_t available, char *text,
                    size_t bytes);

/// The same of this program's step and library on this processor. Valid until
/// the thread's next call. In StartCheck.cpp. Uses no inline function of a
/// library, and no static initializer: see Instructions.h.
const char *startFault();

} // namespace tmc

#endif // TMC_RUNTIME_STEP_PROCESSOR_H
