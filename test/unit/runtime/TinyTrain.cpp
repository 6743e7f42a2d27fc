//===- TinyTrain.cpp - the trainer of the tiny program --------------------===//
//
// What `tmc compile` would link: an emitted step with the trainer's main.
//
//===----------------------------------------------------------------------===//

#include "TinyProgram.h"

extern "C" const tmc::StepProgram *tmc_step_program() {
  static const tmc::StepProgram program = tmc::test::tiny::program();
  return &program;
}
const tmc::CompiledFor tmc_step_compiled_for = {"cpu:v3", tmc::kInstructions};
