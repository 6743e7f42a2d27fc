//===- Identity.h - which compilation a step is of --------------*- C++ -*-===//
//
// The parts of a step directory hold one identity, a hash of what was compiled
// (compiler/emit/StepInterface.h). The step has it as a constant; a step that
// was written by hand may have none.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_IDENTITY_H
#define TMC_RUNTIME_STEP_IDENTITY_H

/// Defined by an emitted step.
extern "C" __attribute__((weak)) const char tmc_identity_of_step[];

namespace tmc {

/// "": it has none.
inline const char *stepIdentity() {
  return tmc_identity_of_step ? tmc_identity_of_step : "";
}

// In the metadata of weights.safetensors, beside who wrote it (Safetensors.h):
// for which step.
constexpr const char *kIdentityKey = "step";

} // namespace tmc

#endif // TMC_RUNTIME_STEP_IDENTITY_H
