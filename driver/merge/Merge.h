// Merge.h - `tmc merge`: a base and an adapter become one model.
//
//     base/     config.json, tokenizer.json, model*.safetensors
//     adapter/  adapter_config.json, adapter_model.safetensors
//        |
//        v      for each tensor, piece by piece: read, add s B A, round, write
//     merged/   the same files as base/, in shards of at most --shard
//
// A piece has a million numbers, so that the memory is that of the adapter's
// largest pair of matrices and some 20 MiB, whatever the model's size. Files
// are written into a folder beside the output, which takes the output's name
// at the end: a merge that fails, is stopped or killed leaves no output.

#ifndef TMC_DRIVER_MERGE_MERGE_H
#define TMC_DRIVER_MERGE_MERGE_H

#include "compiler/support/Failure.h"
#include "runtime/kernels/DType.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

struct MergeOptions {
  std::string base, adapter; // Folders.
  std::string output;        // A folder that is new or empty.
  std::optional<DType> type; // For all floats; else the base's own.
  int64_t shardBytes = 5'000'000'000;
  /// Receives what is done by now; "" at the end. May be empty.
  std::function<void(const std::string &)> progress;
};

struct MergeReport {
  size_t tensors = 0, changed = 0; // The base's.
  size_t files = 0;
  int64_t bytes = 0; // All that were written.
  std::vector<std::string> notes;
};

/// Writes the merged model. Fails with `Usage` if the output holds files, with
/// `Unsupported` and `Input` as readAdapter does, with `Input` if a number is
/// too large for its type, and with `World` if a file can't be written.
Expected<MergeReport> mergeAdapter(const MergeOptions &options);

} // namespace tmc

#endif // TMC_DRIVER_MERGE_MERGE_H
