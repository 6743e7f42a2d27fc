//===- Identity.h - the compilation that made a step ------------*- C++ -*-===//
//
// The parts of a step directory carry one identity, a hash of the compiled
// program (compiler/emit/StepInterface.h). The step has it as a constant; a
// hand-written step may have none.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_IDENTITY_H
#define TMC_RUNTIME_STEP_IDENTITY_H

/// Defined by an emitted step.
extern "C" __attribute__((weak)) const char tmc_identity_of_step[];

namespace tmc {

/// The identity, or "" if the step has none.
inline const char *stepIdentity() {
  return tmc_identity_of_step ? tmc_identity_of_step : "";
}

// The identity in the metadata of weights.safetensors, beside the name of its
// maker (Safetensors.h).
constexpr const char *kIdentityKey = "step";

} // namespace tmc

#endif // TMC_RUNTIME_STEP_IDENTITY_H
