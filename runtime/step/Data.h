//===- Data.h - what a trainer feeds its step -------------------*- C++ -*-===//
//
// Batches from files (DataFile.h), in order, from the start again when they
// end:
//
//     --data FILE          every token-shaped integer input
//     --data NAME=FILE     one input
//     --data NAME=FILE+1   the same tokens, one further on (targets)
//     --data NAME=FILE*0.00392157-0.5   floats, multiplied and moved
//
// Tokens in one dimension are a stream: a batch of B x T takes the next B * T
// of them, sample after sample. An array of the shape of an input that isn't a
// batch's is the same in each step. Anything else has samples along its first
// dimension.
//
// The position is one number, the batches taken so far; a checkpoint keeps it.
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

/// What takes data: inputs of a program, and how many samples a step has.
struct DataInputs {
  std::vector<const TensorInfo *> inputs;
  int64_t samplesPerStep = 0;

  static DataInputs of(const StepProgram &program);
};

class DataReader {
public:
  /// Opens what the `--data` values name and fits it to the inputs. Each input
  /// must get data, where `needsAll`.
  static Status create(const DataInputs &inputs,
                       const std::vector<std::string> &specs,
                       DataReader &reader, bool needsAll = true);

  /// What may be wrong with the data, or "": labels that are the tokens
  /// themselves.
  std::string warning() const;

  /// Takes the whole tensor of one input, in its own type.
  using Writer =
      std::function<Status(const TensorInfo &, const char *, int64_t bytes)>;
  /// Gives the next batch of each input to `write`.
  Status next(const Writer &write);

  /// Of the batch that next() read last: what says that none of its labels
  /// counts, or "".
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
    int64_t first = 0;    // element of the batch that was read last
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
