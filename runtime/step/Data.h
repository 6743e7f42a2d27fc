//===- Data.h - the data of a trainer's steps -------------------*- C++ -*-===//
//
// Reads batches from files (DataFile.h, JsonLines.h), epoch after epoch:
//
//     --data FILE          every token-shaped integer input
//     --data NAME=FILE     one input
//     --data NAME=FILE+1   the same tokens, shifted by one (targets)
//     --data NAME=FILE*0.00392157-0.5   floats, multiplied and shifted
//     --data FILE.jsonl    every input that has no other data
//
// FILE may be a list or a glob (DataPaths.h). Its files are one stream.
//
// A one-dimensional array of tokens is a stream: a sample of an input [B, T]
// takes the next T of them. An array of the same shape as an input without a
// batch dimension is the same in each step. Any other array has its samples
// along its first dimension.
//
// An epoch takes each sample once, in the order of the files or in a random one
// (Permutation.h). If the samples aren't a multiple of the batch, the last
// batch is short:
//
//     10 samples, batches of 4:   0 1 2 3   4 5 6 7   8 9 0' 1'
//
// A sample with ' stands there a second time, and all its labels have the value
// that the loss leaves out. So a mean over labels is one over the real samples.
// The copies have real values, because batch statistics see them. A model
// without such labels leaves the samples of a short batch out.
//
// Of several ranks each reads its part of a batch: the first samples are rank
// 0's, the next ones rank 1's. Position, order and epochs are those of the
// whole batch, as if one device took it.
//
// The position is one number, the count of batches. A checkpoint keeps it, and
// the seed of the order.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_DATA_H
#define TMC_RUNTIME_STEP_DATA_H

#include "runtime/step/DataSource.h"
#include "runtime/step/JsonLines.h"
#include "runtime/step/Permutation.h"
#include "runtime/step/Program.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

/// The inputs of a program that take data, and the samples of one step.
struct DataInputs {
  std::vector<const TensorInfo *> inputs;
  int64_t samplesPerStep = 0;  // Of this rank.
  int64_t ranks = 1, rank = 0; // Each takes as many samples.

  /// `rank`: its number among those that share the batch.
  static DataInputs of(const StepProgram &program, int64_t rank = 0);
};

struct DataOptions {
  /// An input without data is an error.
  bool needsAll = true;
  /// Fills up short rows of inputs that have no labels, in JSON lines.
  int64_t padding = 0;
};

class DataReader {
public:
  /// Opens the files of the `--data` values and matches them to the inputs.
  /// Parses all JSON lines.
  static Status create(const DataInputs &inputs,
                       const std::vector<std::string> &specs,
                       DataReader &reader, const DataOptions &options = {});

  /// Sets a random order of samples in each epoch; none: the files' order.
  /// Code::Usage if an input doesn't come by samples.
  Status setShuffle(std::optional<uint64_t> seed);
  std::optional<uint64_t> shuffle() const { return shuffle_; }

  /// A likely mistake in the data, or "": the labels are the tokens themselves.
  std::string warning() const;
  /// "1000 samples, 63 steps an epoch (the last one has 8 of 16 samples)".
  std::string summary() const;

  /// Takes the whole tensor of one input, in its own type.
  using Writer =
      std::function<Status(const TensorInfo &, const char *, int64_t bytes)>;
  /// Gives the next batch of each input to `write`.
  Status next(const Writer &write);

  /// This rank's labels of the last batch that count, or its samples where no
  /// input has labels: the weight of its loss in a mean over batches.
  int64_t weight() const;

  /// If no label of the last batch of next() counts, a sentence that says so;
  /// else "".
  std::string withoutLabels() const;

  int64_t position() const { return position_; }
  void setPosition(int64_t position) { position_ = position; }
  /// Samples of the shortest source that an epoch takes.
  int64_t samples() const { return samples_; }
  int64_t stepsPerEpoch() const { return stepsPerEpoch_; }

private:
  /// Inputs that one set of JSON lines feeds.
  struct Lines {
    JsonLines lines;
    std::vector<JsonColumn> columns;
    std::vector<DataSource *> sources;
  };

  Status open(const DataInputs &inputs, const std::vector<std::string> &specs);
  Status feed(const std::vector<const TensorInfo *> &inputs,
              const DataSpec &spec);
  bool isTaken(const TensorInfo *input) const;
  Status startEpochs(const DataInputs &inputs, const DataOptions &options);
  Status fitLines(Lines &lines, const DataInputs &inputs,
                  const DataOptions &options) const;
  void choose();
  Status readSource(DataSource &source) const;
  Status readLines(Lines &lines) const;
  std::string listed(const std::function<std::string(int64_t)> &name) const;
  std::string place(const DataSource &source) const;

  std::vector<std::unique_ptr<DataSource>> sources_;
  std::vector<std::unique_ptr<Lines>> lines_;
  int64_t position_ = 0, samples_ = 0, stepsPerEpoch_ = 0;
  int64_t samplesPerStep_ = 1; // Of this rank.
  int64_t batch_ = 1;          // Samples of all ranks in a step.
  int64_t before_ = 0;         // Those of the ranks before this one.
  int64_t leftOut_ = 0;        // samples of a short batch, in each epoch
  bool fillsBatches_ = false;  // by copies
  bool bySamples_ = true;      // all inputs that aren't fixed
  std::optional<uint64_t> shuffle_;
  std::optional<Permutation> order_; // of orderEpoch_
  int64_t orderEpoch_ = -1;
  std::vector<int64_t> chosen_; // the samples of the last batch
  int64_t realSamples_ = 0;     // in it; the others are copies
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DATA_H
