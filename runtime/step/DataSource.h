//===- DataSource.h - the files that feed one input -------------*- C++ -*-===//
//
// Arrays that are one stream of elements, and the part of it that a sample
// takes. Inputs of JSON lines have a source without files (Data.h).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_DATASOURCE_H
#define TMC_RUNTIME_STEP_DATASOURCE_H

#include "runtime/step/DataFile.h"
#include "runtime/step/Program.h"

#include <limits>
#include <string>
#include <vector>

namespace tmc {

struct DataSource {
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

  const TensorInfo *input = nullptr;
  DataSpec spec;
  std::vector<DataFile> files;         // one stream; none: JSON lines
  bool isStream = false;               // of tokens
  bool isFixed = false;                // the same in each step
  bool isWhole = false;                // a step takes its elements together
  int64_t perSample = 0, perBatch = 0; // elements, of one rank
  int64_t ranks = 1;                   // that share a step's samples
  int64_t samples = 0;                 // kUnbounded: isFixed
  std::vector<char> raw, buffer;       // of a batch: as in the files, and fed

  /// Matches the files to the input. `samplesPerStep` is one rank's.
  Status fit(int64_t samplesPerStep, int64_t ranks);
  /// The error of too few samples: fewer than one, or than a step takes.
  Status tooShort(bool needsStep) const;
  int64_t elements() const;
  /// Reads and converts elements of the stream.
  Status read(int64_t first, int64_t count, char *to);
  /// Leaves out the labels in the buffer from a sample on.
  void ignoreFrom(int64_t sample);
};

/// True for an input that `--data FILE` feeds without naming it.
bool takesTokens(const TensorInfo &input);
/// "[4, 8]".
std::string shapeOf(const TensorInfo &input);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DATASOURCE_H
