// ModelFiles.h - the files of a model beside its weights.
//
// A merged model keeps the configuration and the tokenizer of its base. The
// configuration says the type of the weights; where that changes, its words
// change in place, so that all other bytes stay.

#ifndef TMC_DRIVER_MERGE_MODELFILES_H
#define TMC_DRIVER_MERGE_MODELFILES_H

#include "driver/merge/Adapter.h"
#include "runtime/kernels/DType.h"

#include <optional>
#include <string>

namespace tmc {

/// The text of config.json in `folder`, or nothing if there is none.
Expected<std::optional<std::string>> readModelConfig(const std::string &folder);

/// The facts of a configuration that merging reads. `shown` is for messages.
Expected<BaseFacts> factsOf(const std::string &shown, const std::string &text);

/// `text` with the type in its `dtype` or `torch_dtype`; without one it gets a
/// `torch_dtype`.
std::string withDType(const std::string &text, DType type);

/// Copies generation_config.json and the files of the tokenizer, as many as
/// there are.
Expected<void> copyModelFiles(const std::string &from, const std::string &to);

/// Writes one small file.
Expected<void> writeModelFile(const std::string &folder,
                              const std::string &name, const std::string &text);

} // namespace tmc

#endif // TMC_DRIVER_MERGE_MODELFILES_H
