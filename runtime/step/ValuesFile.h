//===- ValuesFile.h - writes files of a step's values -----------*- C++ -*-===//
//
// Checkpoints, models and adapters are safetensors files. All ranks write such
// a file together (RankFile.h), in pieces of 1 MiB. The bytes don't depend on
// the number of ranks, nor on what each keeps:
//
//     header  | tensor in shards          | whole tensors          | ...
//     rank 0    rank 0 | rank 1 | rank 2    rank 0 | rank 1 | ...
//
// A rank writes its shards, and an equal part of the tensors that all ranks
// hold. The checksum goes by whole pieces: a piece with bytes of several ranks
// is read back from the file by one of them. Where the ranks don't share a
// folder, all shards travel to rank 0.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_VALUESFILE_H
#define TMC_RUNTIME_STEP_VALUESFILE_H

#include "runtime/step/Homes.h"
#include "runtime/step/Safetensors.h"

#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tmc::values {

constexpr const char *kSumKey = "checksum";
/// The text in a header before the digits of the checksum.
constexpr const char *kSumText = "\"checksum\":\"";
constexpr size_t kSumDigits = 16;

/// The checksum of a file covers its header (with zeros for the checksum's own
/// digits) and the pieces of its tensors, in order.
class FileSum {
public:
  void add(const void *data, int64_t bytes) {
    addPiece(checksumOf(data, bytes));
  }
  /// Adds a piece by its own sum.
  void addPiece(uint64_t sum) {
    sum_ = std::rotl(sum_, 7) * 0x9e3779b97f4a7c15u ^ sum;
  }
  uint64_t get() const { return sum_; }
  std::string digits() const;

private:
  uint64_t sum_ = 0;
};

/// A tensor under one of its names.
struct Named {
  std::string name;
  const TensorInfo *info;
};

/// A tensor that is copied from another file.
struct Passed {
  std::string name;
  SafeTensor tensor;
  int64_t added = 0; // added to a count
};

struct FileContents {
  std::vector<Named> tensors;
  SafetensorsFile beside;
  std::vector<Passed> passed; // of `beside`
  std::optional<DType> type;  // of plain floats; none: the step's type
  std::map<std::string, std::string> metadata;
  bool hasSum = false;
  int64_t step = 0; // for messages
};

/// Writes the tensors in order to `directory`/`name`. All ranks call it, and
/// an error of one is an error of all. Code::BadInput if a type can't hold a
/// number, and if a non-finite value would replace a finite one of the existing
/// file.
Status writeFile(const Homes &homes, const std::string &directory,
                 const std::string &name, const FileContents &contents);

} // namespace tmc::values

#endif // TMC_RUNTIME_STEP_VALUESFILE_H
