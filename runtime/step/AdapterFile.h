//===- AdapterFile.h - a step's adapters in PEFT's files --------*- C++ -*-===//
//
// A folder that `PeftModel.from_pretrained` and `tmc merge` read:
//
//     DIR/adapter_config.json           rank, alpha, targets (AdapterText.h)
//     DIR/adapter_model.safetensors     f32, metadata {"format": "pt"}
//         base_model.model.<module>.lora_A.weight   [r, in]
//         base_model.model.<module>.lora_B.weight   [out, r]
//         base_model.model.<parameter>              trained whole
//
// Such a folder may be a stranger's. Its configuration must say what the step
// was compiled for, and its tensors must be the step's, all of them and no
// others, with their shapes. All is checked before a value is changed.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_ADAPTERFILE_H
#define TMC_RUNTIME_STEP_ADAPTERFILE_H

#include "runtime/step/Step.h"

#include <string>

namespace tmc {

/// The model's `name` as the files that it came from have it.
std::string nameInFiles(const StepProgram &program, const char *name);

/// The name of a tensor in an adapter's file.
std::string nameInAdapter(const StepProgram &program, const TensorInfo &info);

/// True if an adapter's file has the tensor: it is trained.
inline bool isInAdapter(const TensorInfo &info) {
  return info.role == Role::Param && info.trainable;
}

/// Writes the adapters of `step` and the parameters that are trained whole to
/// `directory`. A number that isn't finite never replaces a finite one.
/// Code::Usage if the step has no values yet.
Status saveAdapter(const Step &step, const std::string &directory);

/// Gives the adapters of `step`, whose other values are there already, the
/// values of `directory`. Moments and counts stay. Code::Usage if the step has
/// no values yet.
Status loadAdapter(Step &step, const std::string &directory);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_ADAPTERFILE_H
