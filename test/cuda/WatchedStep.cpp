//===- WatchedStep.cpp - a watched program in the emitted one's place -----===//
//
// An emitted step is compiled with tmc_step_program renamed; the runtime gets
// this one.
//
//===----------------------------------------------------------------------===//

#include "test/cuda/emulator/Steps.h"

extern "C" const tmc::StepProgram *tmc_step_program_emitted(void);

extern "C" const tmc::StepProgram *tmc_step_program(void) {
  static const tmc::StepProgram *program =
      tmc::emulator::watch(tmc_step_program_emitted());
  return program;
}
