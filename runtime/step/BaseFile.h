//===- BaseFile.h - a frozen base as it is stored, in a file ----*- C++ -*-===//
//
// `train --save-base DIR` writes the model without its adapters. Parameters in
// codes are written as codes, in the form in which bitsandbytes saves them:
//
//     DIR/model.safetensors
//         X.weight                                 u8 [n / 2, 1]     nf4
//         X.weight.absmax                          u8 or f32 [n / 64]
//         X.weight.quant_map                       f32 [16]
//         X.weight.nested_absmax                   f32, a number for 256 maxima
//         X.weight.nested_quant_map                f32 [256]
//         X.weight.quant_state.bitsandbytes__nf4   u8, a text in JSON
//
//         X.weight                                 i8 [out, in]      int8
//         X.SCB                                    f32 [out]
//         X.weight_format                          u8 []
//     DIR/config.json                              quantization_config added
//
// So the next run reads a quarter of the bytes, and has the same bits. The file
// is for `--weights` of tmc and for `from_pretrained` of transformers, which
// needs config.json: it is copied from the folder that the weights came from.
//
// Source: the state_dict of bitsandbytes 0.50.2.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_BASEFILE_H
#define TMC_RUNTIME_STEP_BASEFILE_H

#include "runtime/step/Step.h"

#include <string>

namespace tmc {

/// True if a parameter of the step is stored as codes.
bool hasCodes(const StepProgram &program);

/// Writes the parameters and states of `step` without its adapters to
/// `directory`. `weights`: the file or folder that they came from, beside whose
/// files a config.json may be; "": none. `note`: why there is no config.json,
/// or "". Code::Usage if `directory` is the folder of `weights`, whose file
/// would be replaced.
Status saveBase(const Step &step, const std::string &directory,
                const std::string &weights, std::string &note);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_BASEFILE_H
