// WeightsFile.h - DIR/weights.safetensors: the values that a step starts from.
//
//     --weights F.safetensors, --+ wins
//     an index or a folder       +--> gather: found, checked --> write: as they
//     the model's own values ----+    against the model          are, piece by
//     (in its file or beside it)                                 piece
//
// Values are mapped and written from the mapping: none is copied through memory
// of tmc. The file also has values of the model that its graph doesn't read
// (counts of batches, unused buffers): a trainer passes them on to the model
// that it saves. Names outside of the model's state_dict are in the metadata,
// one a line, since such a saved model must not have them. A model without its
// external data compiles as well; the trainer then asks for --weights or
// --init.

#ifndef TMC_DRIVER_PIPELINE_WEIGHTSFILE_H
#define TMC_DRIVER_PIPELINE_WEIGHTSFILE_H

#include "compiler/report/Planned.h"
#include "driver/pipeline/OutputDirectory.h"
#include "frontends/common/Weights.h"
#include "runtime/step/SafetensorsSet.h"

#include <string>
#include <string_view>
#include <vector>

namespace tmc {

/// The source of each known value. The views refer to mapped files.
struct WeightSources {
  SafetensorsSet given; // --weights, if any.
  std::vector<std::pair<std::string, SafeTensor>> tensors;
  std::vector<std::string_view> bytes; // For each of `tensors`.
  int64_t totalBytes = 0;
  std::vector<std::string> transient; // Names outside of the state_dict.
  std::vector<std::string> missing;   // Values without a source.
  std::string why;                    // The reason, for a note.
  std::string codes; // The --base of coded parameters; empty: none is.
  std::vector<std::string> warnings;

  /// A text that differs if a value, a name or a type differs.
  std::string digest() const;
};

constexpr const char *kWeightsFile = "weights.safetensors";

/// "OLD=NEW": names that begin with OLD in a file begin with NEW in the model.
/// Either may be empty.
struct WeightsPrefix {
  std::string inFile, inModel;
  /// The file's name of the model's `name`.
  std::string nameInFile(const std::string &name) const;
};

/// Finds the values of `values`: in the files of `path` (a SafetensorsSet),
/// unless that is empty, else in the model. Fails where a file contradicts the
/// model, where `path` lacks a parameter, and where the model names a file that
/// it may not; a file that isn't there only leaves values missing. With
/// `takesCodes` a frozen parameter may be in codes of bitsandbytes, which are
/// taken as they are.
Expected<WeightSources> gatherWeights(const std::vector<ModelValue> &values,
                                      Weights &model, const std::string &path,
                                      const WeightsPrefix &prefix,
                                      bool takesCodes);

/// Writes the values to the staged file weights.safetensors, marked with the
/// step's `identity`; writes no file if there are no values.
Expected<void> writeWeights(const WeightSources &sources,
                            const std::string &identity,
                            OutputDirectory &directory);

/// Whether an earlier compilation left a weights.safetensors in `directory`,
/// and nobody else put it there.
bool hasOldWeights(const std::string &directory);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_WEIGHTSFILE_H
