// WeightsFile.h - the values that a step starts from, in its directory.
//
//     --weights F.safetensors, --+ wins          +--> weights.json: where they
//     an index or a folder       +--> gather: ---+    are
//                                |    found,     |
//     the model's own values ----+    checked ---+--> weights.safetensors: a
//     (in its file or beside it)                      copy
//
// The values of --weights stay where they are, and DIR/weights.json records
// their files (runtime/step/WeightsRecord.h). With --copy-weights they are
// copied, so that the directory needs no other file. The model's own values are
// always copied. Copies are mapped and written from the mapping: none goes
// through memory of tmc.
//
// The copy also has values of the model that its graph doesn't read
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
#include "runtime/step/WeightsRecord.h"

#include <string>
#include <string_view>
#include <vector>

namespace tmc {

/// "OLD=NEW": names that begin with OLD in a file begin with NEW in the model.
/// Either may be empty.
struct WeightsPrefix {
  std::string inFile, inModel;
  /// The file's name of the model's `name`.
  std::string nameInFile(const std::string &name) const;
};

/// The source of each known value. The views refer to mapped files.
struct WeightSources {
  SafetensorsSet given; // --weights, if any.
  std::vector<std::pair<std::string, SafeTensor>> tensors;
  std::vector<std::string_view> bytes; // For each of `tensors`.
  /// For each of `tensors`: it is in `given` and a record can name it there.
  std::vector<bool> canBeRecorded;
  WeightsPrefix prefix;
  int64_t totalBytes = 0;
  std::vector<std::string> transient; // Names outside of the state_dict.
  std::vector<std::string> missing;   // Values without a source.
  std::string why;                    // The reason, for a note.
  std::string codes; // The --base of coded parameters; empty: none is.
  std::vector<std::string> warnings;

  void add(const std::string &name, const SafeTensor &tensor,
           std::string_view itsBytes, bool isRecordable);
  /// True if a tensor is copied: all are, or no record can name it.
  bool isCopied(size_t tensor, bool all) const {
    return all || !canBeRecorded[tensor];
  }
  /// The bytes that are copied; a record names the others.
  int64_t copiedBytes(bool all) const;
};

constexpr const char *kWeightsFile = kOwnWeightsFile;

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

/// True if the files of --weights are copied into `directory`: `asked`, or one
/// of them is a file of that directory, which the step replaces.
bool copiesWeights(const WeightSources &sources, const std::string &directory,
                   bool asked);

/// A text that differs if a value that is copied differs, or a name, a type or
/// the header of a file that is recorded.
Expected<std::string> digestOf(const WeightSources &sources, bool copiesAll);

/// Writes weights.safetensors and weights.json to staged files, marked with the
/// step's `identity`; each only if there is something to say in it.
Expected<void> writeWeights(const WeightSources &sources, bool copiesAll,
                            const std::string &identity,
                            OutputDirectory &directory);

/// The names of these files in `directory` that an earlier compilation left,
/// and nobody else put there.
std::vector<std::string> oldWeights(const std::string &directory);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_WEIGHTSFILE_H
