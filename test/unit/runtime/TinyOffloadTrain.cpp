//===- TinyOffloadTrain.cpp - the trainer of the tiny program with moves --===//

#include "TinyOffload.h"

extern "C" const tmc::StepProgram *tmc_step_program() {
  static const tmc::StepProgram program = tmc::test::tiny::offloadProgram();
  return &program;
}
const tmc::CompiledFor tmc_step_compiled_for = {"cpu:v3", tmc::kInstructions};
