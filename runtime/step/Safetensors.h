//===- Safetensors.h - reading and writing named tensors --------*- C++ -*-===//
//
// The safetensors format:
//
//     u64 little-endian length of the header | header, JSON | tensors' bytes
//
//     {"__metadata__": {"step": "12"},
//      "fc.weight": {"dtype": "F32", "shape": [64, 32],
//                    "data_offsets": [0, 8192]}}
//
// The reader trusts nothing: it limits the header's size, checks each size
// against the shape, and refuses holes, overlaps, duplicate names, and names
// that aren't UTF-8 or that hold control characters. All offsets count from the
// end of the header.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_SAFETENSORS_H
#define TMC_RUNTIME_STEP_SAFETENSORS_H

#include "runtime/kernels/DType.h"
#include "runtime/step/File.h"

#include <map>
#include <string>
#include <vector>

namespace tmc {

/// "[64, 32]"; "[]" for a scalar.
inline std::string shapeText(const int64_t *dims, size_t rank) {
  std::string text = "[";
  for (size_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}
inline std::string shapeText(const std::vector<int64_t> &shape) {
  return shapeText(shape.data(), shape.size());
}

struct SafeTensor {
  DType type = DType::F32;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;
  bool isUnsigned = false; // I32 and I64 that hold u32 and u64 values
};

class SafetensorsFile {
public:
  /// Maps and checks a file. `path` appears in messages.
  static Status open(const std::string &path, SafetensorsFile &file);
  static Status openBeneath(const std::string &directory,
                            const std::string &name, SafetensorsFile &file);
  /// Checks bytes in memory; they must outlive the object.
  static Status parse(const std::string &shown, const char *data, int64_t bytes,
                      SafetensorsFile &file);

  const std::map<std::string, SafeTensor> &tensors() const { return tensors_; }
  const std::map<std::string, std::string> &metadata() const {
    return metadata_;
  }
  const SafeTensor *find(const std::string &name) const;
  const char *data(const SafeTensor &tensor) const {
    return body_ + tensor.begin;
  }
  /// The offset of a tensor's bytes in the file.
  int64_t offset(const SafeTensor &tensor) const {
    return bodyAt_ + tensor.begin;
  }
  /// The bytes in front of the tensors' bytes.
  int64_t headerBytes() const { return bodyAt_; }
  /// Copies bytes [at, at + bytes) of a tensor of the open file.
  Status read(const SafeTensor &tensor, int64_t at, void *to,
              int64_t bytes) const {
    return mapped_.read(offset(tensor) + at, to, bytes);
  }
  /// The open file.
  const MappedFile &file() const { return mapped_; }
  /// Tells the file that bytes [at, at + bytes) of a tensor are no longer
  /// needed: the pages of a mapped file are freed.
  void release(const SafeTensor &tensor, int64_t at, int64_t bytes) const {
    mapped_.release(data(tensor) + at, bytes);
  }
  const std::string &path() const { return path_; }

private:
  /// Parses the header alone, of a file of `bytes` bytes.
  static Status parseHeader(const std::string &shown, const char *data,
                            int64_t length, int64_t bytes,
                            SafetensorsFile &file);
  Status openHeader(const std::string &shown);

  MappedFile mapped_;
  std::string path_;
  const char *body_ = nullptr;
  int64_t bodyAt_ = 0;
  std::map<std::string, SafeTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Metadata that identifies the weights.safetensors of a compilation, and its
/// list, one name a line, of tensors outside the model's state_dict.
constexpr const char *kMakerKey = "made_by";
constexpr const char *kMaker = "tmc compile";
constexpr const char *kTransientKey = "transient";

/// The header of a file that holds these tensors in order, with its length in
/// front, padded to a multiple of 8 bytes. Sets begin and end.
std::string
safetensorsHeader(std::vector<std::pair<std::string, SafeTensor>> &tensors,
                  const std::map<std::string, std::string> &metadata);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_SAFETENSORS_H
