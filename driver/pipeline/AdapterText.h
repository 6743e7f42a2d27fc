// AdapterText.h - adapter_config.json of a step with adapters.
//
// A compiled step keeps the text, and its trainer writes it beside the adapter
// that it saves. The words are PEFT's, so that `PeftModel.from_pretrained` and
// `tmc merge` read it:
//
//     {"peft_type": "LORA", "r": 16, "lora_alpha": 32, ...,
//      "target_modules": ["q_proj", "v_proj"]}
//
// PEFT has no globs and no `all-linear` in a file: such targets are written as
// the full names of the modules. Names are those of the weights' files, where
// --weights-prefix says that they differ from the graph's.

#ifndef TMC_DRIVER_PIPELINE_ADAPTERTEXT_H
#define TMC_DRIVER_PIPELINE_ADAPTERTEXT_H

#include "compiler/emit/Emit.h"
#include "driver/pipeline/Options.h"
#include "driver/pipeline/WeightsFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace tmc {

/// The configuration and the names of the adapters in an adapted `forward`.
AdapterFiles adapterFilesOf(mlir::func::FuncOp forward, const LoraSpec &spec,
                            const CompileOptions &options);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_ADAPTERTEXT_H
