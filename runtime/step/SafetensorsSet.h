//===- SafetensorsSet.h - the tensors of a model in several files *- C++
//-*-===//
//
// Hugging Face stores a model's weights in one file, or in shards with an
// index:
//
//     DIR/model.safetensors
//
//     DIR/model.safetensors.index.json
//         {"metadata": {"total_size": 14483464192},
//          "weight_map": {"model.norm.weight":
//          "model-00002-of-00002.safetensors",
//                         ...}}
//     DIR/model-00001-of-00002.safetensors
//     DIR/model-00002-of-00002.safetensors
//
// A set is any of these, or a single file of any name, as one map of names. Its
// header and the headers of all shards are checked when the set is opened; the
// bytes of tensors are mapped and aren't read.
//
// The index may be a stranger's. It names files beside itself, and nothing
// else: no name has a '/', and a shard is opened by MappedFile::openBeneath.
// One link is followed, that of Hugging Face's cache, where a file is a link to
// `../../blobs/` and the hash of its content.
//
// If a folder has both forms, the single file counts, as for transformers.
//
// The record that a compilation left (WeightsRecord.h) is a set as well. The
// names of its tensors are the model's.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_SAFETENSORSSET_H
#define TMC_RUNTIME_STEP_SAFETENSORSSET_H

#include "runtime/step/Safetensors.h"

#include <map>
#include <string>
#include <vector>

namespace tmc {

/// Opens the file `name` in `folder`, which may be a stranger's: a plain file
/// there, or a link of Hugging Face's cache.
Status openBeside(const std::string &folder, const std::string &name,
                  MappedFile &file);
/// Reads such a file, a text of at most 16 MiB.
Status readTextBeside(const std::string &folder, const std::string &name,
                      std::string &text);

/// A tensor, and the number of its file in the set.
struct SetTensor : SafeTensor {
  size_t file = 0;
};

class SafetensorsSet {
public:
  /// Opens a .safetensors file, several with commas between them, an index
  /// (*.index.json), a record (weights.json), or a folder with
  /// `stem`.safetensors or `stem`.safetensors.index.json. Errors: a file that
  /// can't be read or isn't sound, a shard that isn't there, a name that the
  /// index has and its shard hasn't, a name in two shards, a file with another
  /// header than its record says.
  static Status open(const std::string &path, SafetensorsSet &set,
                     const std::string &stem = "model");

  const std::map<std::string, SetTensor> &tensors() const { return tensors_; }
  const SetTensor *find(const std::string &name) const;
  const char *data(const SetTensor &tensor) const {
    return files_[tensor.file].data(tensor);
  }
  /// Copies bytes [at, at + bytes) of a tensor by a system call.
  Status read(const SetTensor &tensor, int64_t at, void *to,
              int64_t bytes) const {
    return files_[tensor.file].read(tensor, at, to, bytes);
  }
  /// The files, in the order of their names; `path()` of each is its own.
  const std::vector<SafetensorsFile> &files() const { return files_; }
  /// The index, or "".
  const std::string &index() const { return index_; }
  /// As it was given to `open`.
  const std::string &path() const { return path_; }

private:
  Status openFolder(const std::string &folder, const std::string &stem);
  Status openList(const std::string &paths);
  Status openIndex(const std::string &folder, const MappedFile &file,
                   const std::string &shown);
  Status openRecord(const std::string &path);
  Status add(SafetensorsFile &&file);

  std::string path_, index_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, SetTensor> tensors_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_SAFETENSORSSET_H
