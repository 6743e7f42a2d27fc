//===- CompiledFor.cpp - the instructions of this library -----------------===//

#include "runtime/step/Program.h"

const uint32_t tmc_runtime_instructions = tmc::kInstructions;
