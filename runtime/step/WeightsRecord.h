//===- WeightsRecord.h - the values that a compilation left -----*- C++ -*-===//
//
// `tmc compile --weights MODEL` copies no tensor of MODEL. The step's folder
// says where they are, and has the values that MODEL lacks:
//
//     DIR/weights.json              the files of MODEL
//         {"made_by": "tmc compile", "step": "8d1f...",
//          "prefix": {"in_file": "", "in_model": "model."},
//          "files": [{"path": "/models/m/model-00001-of-00002.safetensors",
//                     "header": "77ab..."}, ...],
//          "beside": true}
//     DIR/weights.safetensors       the model's own values
//
// "header" is a hash of a file's header: its names, types, shapes and offsets,
// and its size by them. A file with another header is refused, since the step
// was compiled for this one. "prefix" is that of --weights-prefix. "beside" is
// true if DIR/weights.safetensors belongs to the record. With --copy-weights
// that file has all values, and there is no record.
//
// A record is a form of a SafetensorsSet, so `--weights DIR/weights.json` of a
// trainer works as well.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_WEIGHTSRECORD_H
#define TMC_RUNTIME_STEP_WEIGHTSRECORD_H

#include "runtime/step/Safetensors.h"

#include <string>
#include <vector>

namespace tmc {

constexpr const char *kRecordFile = "weights.json";
constexpr const char *kOwnWeightsFile = "weights.safetensors";

struct WeightsRecord {
  struct File {
    std::string path; // absolute
    std::string header;
  };
  std::string identity;        // of the compilation (Identity.h)
  std::string inFile, inModel; // The beginnings of names.
  std::vector<File> files;
  bool hasBeside = false;

  /// The model's name of a tensor that a file names `name`; "": no name of the
  /// model is this one in the file.
  std::string nameInModel(const std::string &name) const;
};

/// 16 hexadecimal digits of the header of `file`.
Status headerDigits(const SafetensorsFile &file, std::string &digits);

/// The text of weights.json.
std::string recordText(const WeightsRecord &record);

/// True if a path ends with the name of a record.
bool isRecordPath(const std::string &path);

/// Reads weights.json, of at most 1 MiB. Code::BadInput if `path` is no record
/// that `tmc compile` wrote.
Status readRecord(const std::string &path, WeightsRecord &record);

/// The path of the values that a compilation left in `folder`: a record, or
/// weights.safetensors. "": there are none.
std::string shippedIn(const std::string &folder);

/// The weights.safetensors in `folder`, which has the values that no step
/// needs;
/// "": there is none.
std::string unusedIn(const std::string &folder);

/// Fails if the values of `path`, a result of shippedIn, are of another
/// compilation than `identity`: one was interrupted while it published its
/// files.
Status checkShipped(const std::string &path, const std::string &identity);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_WEIGHTSRECORD_H
