//===- Data.h - what a trainer feeds its step -------------------*- C++ -*-===//
//
// Batches from files, in order, from the start again when they end:
//
//     --data FILE          every token-shaped integer input
//     --data NAME=FILE     one input
//     --data NAME=FILE+1   the same tokens, one further on (targets)
//
// A file is a token file (little-endian uint16 after each other), a .npy array,
// or a .safetensors file. Tokens in one dimension are a stream: a batch of
// B x T takes the next B * T of them, sample after sample. Anything else has
// samples along its first dimension.
//
// The position is one number, the batches taken so far; a checkpoint keeps it.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_DATA_H
#define TMC_RUNTIME_STEP_DATA_H

#include "runtime/step/File.h"
#include "runtime/step/Safetensors.h"
#include "runtime/step/Step.h"

#include <memory>
#include <string>
#include <vector>

namespace tmc {

/// An array in a file, unconverted.
struct ArrayView {
  DType type = DType::F32;
  std::vector<int64_t> shape;
  const char *data = nullptr;
  int64_t elements() const;
};

/// Parses the header of a .npy file (versions 1 to 3, C order, little-endian).
Status parseNpy(const std::string &shown, const char *data, int64_t bytes,
                ArrayView &array);

class DataReader {
public:
  /// Opens what the `--data` values name and fits it to the step's inputs. Each
  /// input that wants data must get it.
  static Status create(const StepProgram &program,
                       const std::vector<std::string> &specs,
                       DataReader &reader);

  /// What may be wrong with the data, or "": labels that are the tokens
  /// themselves.
  std::string warning() const;

  /// Writes the next batch of each input.
  Status next(Step &step);

  int64_t position() const { return position_; }
  void setPosition(int64_t position) { position_ = position; }
  /// Batches from the start of the shortest file to its end.
  int64_t batchesPerEpoch() const { return batchesPerEpoch_; }

private:
  struct Source {
    const TensorInfo *input;
    std::string path;
    std::shared_ptr<MappedFile> file;
    std::shared_ptr<SafetensorsFile> tensors;
    ArrayView array;
    int64_t shift = 0;    // elements
    int64_t perBatch = 0; // elements
    std::vector<char> buffer;
  };
  static Status open(const TensorInfo &input, const std::string &path,
                     int64_t shift, Source &source);
  static Status fit(Source &source, int64_t &batches);

  std::vector<Source> sources_;
  int64_t position_ = 0, batchesPerEpoch_ = 0;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DATA_H
