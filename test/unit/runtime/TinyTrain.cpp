//===- TinyTrain.cpp - the trainer of the tiny program --------------------===//
//
// What `tmc compile` would link: an emitted step with the trainer's main. With
// TMC_TINY_CLIPS in the environment it is the step that clips.
//
//===----------------------------------------------------------------------===//

#include "TinyProgram.h"

#include <cstdlib>

extern "C" const tmc::StepProgram *tmc_step_program() {
  static const tmc::StepProgram program =
      std::getenv("TMC_TINY_CLIPS") ? tmc::test::tiny::clippedProgram()
                                    : tmc::test::tiny::program();
  return &program;
}
const tmc::CompiledFor tmc_step_compiled_for = {"cpu:v3", tmc::kInstructions};
