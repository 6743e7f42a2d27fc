//===- JsonLines.h - samples in JSON, one a line ----------------*- C++ -*-===//
//
// Reads the samples of .jsonl files: a line is an object with the inputs of one
// sample by name, and blank lines are passed over.
//
//     {"input_ids": [5, 7, 9], "labels": [-100, 7, 9], "source": "a.txt"}
//     {"input_ids": [4, 2], "labels": [4, 2]}
//
// The value of an input [B, T] is a row of at most T numbers, that of an input
// [B] is a number, and that of an input [B, X, Y] is X rows of Y numbers.
// Integer inputs take whole numbers. Other keys are skipped. A row that is
// shorter than T is filled up where its column says so; a longer one is an
// error.
//
// Memory: 8 bytes a sample for the place of its line (and 2 % of that for the
// list's blocks), and the longest line, which may have 16 MiB.
//
// An error names file, line and column. Columns count bytes from 1:
//
//     'a.jsonl', line 2, column 15: 'input_ids' has 9 numbers, and ...
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_JSONLINES_H
#define TMC_RUNTIME_STEP_JSONLINES_H

#include "runtime/step/DataFile.h"
#include "runtime/step/Program.h"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

/// An input that takes the values of its name's key.
struct JsonColumn {
  const TensorInfo *input = nullptr;
  DataSpec spec; // the scale of floats
  /// Fills up the end of a short row [T]; none: rows have all T numbers.
  std::optional<int64_t> padding;
  char *to = nullptr; // a sample in the input's type

  /// Numbers of one sample, if the input holds one sample for each of its first
  /// dimension.
  int64_t perSample() const;
};

class JsonLines {
public:
  /// Finds the lines of the files, in order. Fails if there is none.
  static Status open(const std::vector<std::string> &paths, JsonLines &lines);

  int64_t samples() const { return int64_t(offsets_.size()); }
  /// Parses one sample, and writes the columns. All columns must have a value.
  Status read(int64_t sample, const std::vector<JsonColumn> &columns);
  /// "line 7 of 'a.jsonl'". Reads the file up to the line.
  std::string place(int64_t sample) const;

private:
  struct File {
    std::string path;
    MappedFile file;
    int64_t firstSample;
  };
  Status findLines(const File &file);
  const File &fileOf(int64_t sample) const;
  int64_t lineAt(const File &file, int64_t offset) const;

  std::vector<File> files_;
  std::deque<int64_t> offsets_; // of each sample's line in its file
  std::string line_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_JSONLINES_H
