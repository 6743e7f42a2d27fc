//===- Step.h - a compiled step at work -------------------------*- C++ -*-===//
//
// Owns the device, the arena and the kernels of one emitted program, and does
// everything that happens between two steps: filling parameters, feeding
// inputs, running, reading results, checkpoints.
//
//     create -> (load | initRandom | resume) -> { write batch; run } ... ->
//     save
//
// The C interface (tmc.h) and the trainer (Train.cpp) are thin covers of this.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_STEP_H
#define TMC_RUNTIME_STEP_STEP_H

#include "runtime/kernels/Status.h"
#include "runtime/step/Device.h"
#include "runtime/step/FileArena.h"
#include "runtime/step/Homes.h"
#include "runtime/step/Profile.h"
#include "runtime/step/Program.h"
#include "runtime/step/Safetensors.h"
#include "runtime/step/Trace.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

struct StepOptions {
  DeviceOptions device;
  /// Overwrites each buffer at its death: a use after death shows as NaN.
  bool poison = false;
  /// Fails at the first launch that makes a NaN or an infinity, by its name.
  bool checkFinite = false;
  /// Times each launch.
  bool profile = false;
  bool trace = false; // keeps when each entry of a step ran
  uint64_t seed = 0;  // of dropout and other draws
  /// Where the file arena of a program that has one is kept.
  std::string nvmeDirectory;
  FileArenaOptions file;
};

struct StepStatistics {
  int64_t arenaBytes = 0;
  int64_t highWaterBytes = 0;
  int64_t hostArenaBytes = 0, hostHighWaterBytes = 0, fileArenaBytes = 0;
  int64_t allocations = -1;            // over 1 KiB in the last step
  int64_t largestAllocationBytes = -1; // in the last step
  int64_t steps = 0;                   // done, resumed ones included
  double lastStepSeconds = 0;
  double gradNorm = 0;      // NaN where the program doesn't compute it
  double lossScale = 0;     // of the next step; NaN where the loss isn't scaled
  int64_t skippedSteps = 0; // so far, in which nothing moved
  int64_t saturations = -1; // so far; -1: nothing that could is counted
};

class Step {
public:
  static Status create(const StepProgram &program, const StepOptions &options,
                       std::unique_ptr<Step> &step);
  ~Step();

  const StepProgram &program() const { return program_; }
  const TensorInfo *find(const std::string &name) const;

  /// Parameters and states by name from a safetensors file; half-precision
  /// floats are widened. States that the file lacks start at their initial
  /// value, moments at zero. Parameters that aren't trained and that it lacks
  /// come from the file `beside`, if it has them.
  Status load(const std::string &path, const std::string &beside = "");
  /// By each tensor's own rule; the same numbers on every machine. Parameters
  /// that aren't trained (tables, frozen ones) keep the values that they have,
  /// and else take those that the file `beside` has of them.
  Status initRandom(uint64_t seed, const std::string &beside = "");

  /// A weight's copies follow it, and aren't written by themselves.
  Status write(const TensorInfo &tensor, const void *data, int64_t bytes);
  Status read(const TensorInfo &tensor, void *data, int64_t bytes);

  void setLearningRate(double rate) { learningRate_ = rate; }
  /// One whole step. Where one fails on its way (a transfer, the device), the
  /// values are lost: it and all that would use them say so, until they are
  /// loaded, initialized or resumed anew.
  /// Of a program that clips, a step whose gradients' norm isn't finite moves
  /// nothing: neither parameters and moments, nor states, nor the optimizer's
  /// count. It counts as a step that was skipped.
  Status run(double &loss);

  /// Everything a later run needs, in `directory`/checkpoint.safetensors, with
  /// a checksum. Code::BadInput, and no file is touched, where something that
  /// is finite in the file that is there isn't in the step.
  Status save(const std::string &directory);
  /// The model, in `directory`/model.safetensors: parameters and states under
  /// all of their names, floats in `type` (F32, BF16 or F16), rounded to
  /// nearest, or as the step keeps them; and what the file `beside` has of the
  /// model that no step needs (counts of batches, unused buffers).
  /// Code::BadInput where `type` can't hold a finite number, and as save().
  Status saveWeights(const std::string &directory,
                     std::optional<DType> type = std::nullopt,
                     const std::string &beside = "");
  Status resume(const std::string &directory);

  /// Batches that were run, those of resumed runs included: where the data
  /// goes on.
  int64_t batches() const { return batches_; }

  StepStatistics statistics() const;
  /// Where the time went, or nullptr where no profile was asked for.
  const Profile *profile() const { return profile_.get(); }
  /// When the last step's entries ran, or nullptr.
  const Trace *trace() const { return trace_.get(); }
  Device &device() { return *device_; }
  /// Where the program keeps bytes in a file, or nullptr.
  const FileArena *file() const { return file_.get(); }
  int64_t steps() const { return steps_; }

private:
  class Observer;
  Step(const StepProgram &program, const StepOptions &options);
  Status prepare();
  Status startQueues();
  Status checkRange(const TensorInfo &tensor, const void *data) const;
  Status checkElement(const TensorInfo &tensor, const void *data, int64_t index,
                      const IndexRange &range) const;
  Status faultOf(const IndexFault &fault) const;
  /// States that start as a number have it before any values are given.
  Status startStates();
  /// Where the first values are written one by one, the others of the kinds
  /// that no model's weights hold start as in a fresh run.
  Status startMoments();
  /// Rounds the copies of a weight anew; of all weights where none is given.
  Status roundCopies(const TensorInfo *weight = nullptr);
  /// All values are there.
  Status finishValues();
  /// Code::Usage where a parameter, or an input that takes data, was never
  /// given.
  Status checkParams() const;
  Status checkInputs() const;
  /// States of the model as they were before a step that may be skipped.
  Status keepStates();
  Status returnStates();
  /// A checkpoint is as it was written.
  static Status checkSum(const SafetensorsFile &file);
  Status feed();
  Homes homes() const { return Homes(*device_, file_.get()); }
  double scalar(int64_t index) const;

  const StepProgram &program_;
  StepOptions options_;
  std::unique_ptr<FileArena> file_; // outlives the device's engines
  std::unique_ptr<Device> device_;
  std::unique_ptr<Observer> observer_;
  std::unique_ptr<Profile> profile_;
  std::unique_ptr<Trace> trace_;
  void *kernels_ = nullptr;
  bool started_ = false;
  std::vector<bool> given_; // by tensor: it has been written
  /// Why the values are lost, where a step failed in its middle.
  Status lost_;
  double learningRate_ = 1e-3;
  int64_t steps_ = 0, batches_ = 0;
  int64_t skipped_ = 0;                 // of a program with skipsNonFinite
  std::vector<std::vector<char>> kept_; // of states, in their order
  double lastSeconds_ = 0, gradNorm_ = 0, lossScale_ = 0;
  int64_t allocations_ = -1, largestAllocation_ = -1;
  mutable int64_t highWater_ = 0, hostHighWater_ = 0, highWaterSteps_ = -1;
};

/// The file of a checkpoint directory.
constexpr const char *kCheckpointFile = "checkpoint.safetensors";
constexpr const char *kModelFile = "model.safetensors";

} // namespace tmc

#endif // TMC_RUNTIME_STEP_STEP_H
