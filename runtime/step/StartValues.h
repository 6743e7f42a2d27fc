//===- StartValues.h - the values that a trainer starts from ----*- C++ -*-===//
//
// A trainer goes on from a checkpoint, or its values come from --weights, by
// --init, or from the files that the compilation left beside the program.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_STARTVALUES_H
#define TMC_RUNTIME_STEP_STARTVALUES_H

#include "runtime/step/Arguments.h"
#include "runtime/step/Step.h"

#include <string>

namespace tmc {

/// The folder of the program; "": unknown.
std::string ownFolder();

/// Makes --resume-if-there a --resume if there is a checkpoint. It has the
/// seed, the order of the samples, an adapter, and the parameters but for the
/// base: flags that say these are for the first start alone. Code::World if
/// nothing can be seen there.
Status resumeIfThere(const StepValueKinds &kinds, Arguments &arguments);

/// Values for a new run.
Status startValues(const Arguments &arguments, Step &step);

/// Values of the checkpoint of --resume, in the folder `place`. Parameters that
/// aren't trained aren't in it.
Status resumedValues(const Arguments &arguments, Step &step, std::string &place,
                     RunNotes &notes);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_STARTVALUES_H
