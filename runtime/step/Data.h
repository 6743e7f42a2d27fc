//===- Data.h - the data of a trainer's steps -------------------*- C++ -*-===//
//
// Reads batches from files (DataFile.h) in order, and begins again at the end:
//
//     --data FILE          every token-shaped integer input
//     --data NAME=FILE     one input
//     --data NAME=FILE+1   the same tokens, shifted by one (targets)
//     --data NAME=FILE*0.00392157-0.5   floats, multiplied and shifted
//
// A one-dimensional array of tokens is a stream: a batch of B x T takes the
// next B * T of them, sample after sample. An array of the same shape as an
// input without a batch dimension is the same in each step. Any other array has
// its samples along its first dimension.
//
// The position is one number, the count of batches; a checkpoint keeps it.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_DATA_H
#define TMC_RUNTIME_STEP_DATA_H

#include "runtime/step/DataFile.h"
#include "runtime/step/Program.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tmc {

/// The inputs of a program that take data, and the samples of one step.
struct DataInputs {
  std::vector<const TensorInfo *> inputs;
  int64_t samplesPerStep = 0;

  static DataInputs of(const StepProgram &program);
};

class DataReader {
public:
  /// Opens the files of the `--data` values and matches them to the inputs.
  /// With `needsAll`, an input without data is an error.
  static Status create(const DataInputs &inputs,
                       const std::vector<std::string> &specs,
                       DataReader &reader, bool needsAll = true);

  /// A likely mistake in the data, or "": the labels are the tokens themselves.
  std::string warning() const;

  /// Takes the whole tensor of one input, in its own type.
  using Writer =
      std::function<Status(const TensorInfo &, const char *, int64_t bytes)>;
  /// Gives the next batch of each input to `write`.
  Status next(const Writer &write);

  /// If no label of the last batch of next() counts, a sentence that says so;
  /// else "".
  std::string withoutLabels() const;

  int64_t position() const { return position_; }
  void setPosition(int64_t position) { position_ = position; }
  /// Batches from the start of the shortest file to its end.
  int64_t batchesPerEpoch() const { return batchesPerEpoch_; }

private:
  struct Source {
    const TensorInfo *input;
    DataSpec spec;
    DataFile file;
    bool isStream = false;
    bool isFixed = false; // the same in each step
    int64_t perBatch = 0; // elements
    int64_t first = 0;    // first element of the last batch
    std::vector<char> raw, buffer;
  };
  static Status fit(Source &source, int64_t samplesPerStep, int64_t &batches);
  static Status readBatch(Source &source);
  static std::string place(const Source &source);

  std::vector<std::unique_ptr<Source>> sources_;
  int64_t position_ = 0, batchesPerEpoch_ = 0;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DATA_H
