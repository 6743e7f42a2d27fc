//===- Step.h - runs a compiled step ----------------------------*- C++ -*-===//
//
// Owns the device, the arenas and the kernels of one emitted program, and does
// all work between two steps: fills parameters, feeds inputs, runs, reads
// results, writes checkpoints.
//
//     create -> (load | initRandom | resume)
//            -> { write batch; run } ... -> save
//
// The C interface (tmc.h) and the trainer (Train.cpp) are thin layers over
// this.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_STEP_H
#define TMC_RUNTIME_STEP_STEP_H

#include "runtime/kernels/Status.h"
#include "runtime/step/Device.h"
#include "runtime/step/Figures.h"
#include "runtime/step/Homes.h"
#include "runtime/step/Profile.h"
#include "runtime/step/Program.h"
#include "runtime/step/Safetensors.h"
#include "runtime/step/SwapFile.h"
#include "runtime/step/Trace.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

struct StepOptions {
  DeviceOptions device;
  /// Overwrites each buffer at its death, so a use after death gives NaN.
  bool poison = false;
  /// Fails at the first launch that produces a NaN or an infinity, and names
  /// it.
  bool checkFinite = false;
  /// Times each launch.
  bool profile = false;
  bool trace = false; // keeps the time of each entry of a step
  uint64_t seed = 0;  // of dropout and other draws
  /// cuda: queues the launches of a step as one graph where that is possible.
  bool graph = true;
  /// The directory of the swap file, if the program has one.
  std::string nvmeDirectory;
  SwapFileOptions file;
};

/// Facts of a run that its checkpoints keep: the samples of the data behind
/// their position, and the loss of an evaluation.
struct RunNotes {
  int64_t samples = 0;             // of an epoch; 0: unknown
  std::optional<uint64_t> shuffle; // the seed; none: the order of the files
  std::optional<double> evaluationLoss;
};

/// The contents of a file of the model's values.
struct SavedWeights {
  /// The type of floats: F32, BF16 or F16; none: the step's types.
  std::optional<DType> type = std::nullopt;
  /// A file whose tensors that belong to the model, but that no step needs, are
  /// written, too (counts of batches, unused buffers); "": there is none.
  std::string beside = "";
  bool trainedAlone = false; // Only parameters that are trained.
  /// Names that begin with `oldPrefix` begin with `newPrefix` in the file.
  std::string oldPrefix = "", newPrefix = "";
};

struct StepStatistics {
  PerSpace<int64_t> arenaBytes, highWaterBytes;
  int64_t allocations = -1;            // over 1 KiB in the last step
  int64_t largestAllocationBytes = -1; // in the last step
  int64_t steps = 0;                   // done, resumed ones included
  double lastStepSeconds = 0;
  double gradNorm = 0;      // NaN where the program doesn't compute it
  double lossScale = 0;     // of the next step; NaN where the loss isn't scaled
  int64_t skippedSteps = 0; // so far, in which nothing was updated
  int64_t saturations = -1; // so far; -1: the program doesn't count them
};

class Step {
public:
  static Status create(const StepProgram &program, const StepOptions &options,
                       std::unique_ptr<Step> &step);
  ~Step();

  const StepProgram &program() const { return program_; }
  const TensorInfo *find(const std::string &name) const;

  /// Loads parameters and states by name from a safetensors file.
  /// Half-precision floats are widened. States that the file lacks get their
  /// initial value, moments get zero. Parameters that aren't trained and that
  /// the file lacks come from the file `beside`, if it has them.
  /// Adapters that the file lacks start by their rules, with `seed`.
  Status load(const std::string &path, const std::string &beside = "",
              uint64_t seed = 0);
  /// Fills each tensor by its own rule, with the same numbers on every machine.
  /// Parameters that aren't trained (tables, frozen ones) keep their values if
  /// they have any, else get those of the file `beside`.
  Status initRandom(uint64_t seed, const std::string &beside = "");

  /// A weight's copies are updated with it, and can't be written alone.
  Status write(const TensorInfo &tensor, const void *data, int64_t bytes);
  Status read(const TensorInfo &tensor, void *data, int64_t bytes);

  void setLearningRate(double rate) { learningRate_ = rate; }
  /// Runs one whole step. If it fails in the middle (a transfer, the device),
  /// the values are lost: this and all later uses of the values fail until they
  /// are loaded, initialized or resumed again. If the program clips and the
  /// norm of the gradients isn't finite, the step changes nothing: no
  /// parameters, moments or states, and not the optimizer's count. It counts as
  /// a skipped step.
  Status run(double &loss);

  /// Writes what steps change, and what a later run needs beside the parameters
  /// that aren't trained, to `directory`/checkpoint.safetensors, with a
  /// checksum. Of the latter parameters, the base, it has names and samples. If
  /// a tensor is finite in the existing file but not in the step, fails with
  /// Code::BadInput and touches no file.
  Status save(const std::string &directory, const RunNotes &notes = {});
  /// Writes the model to `directory`/model.safetensors: parameters and states
  /// under all their names, rounded to nearest. Fails with Code::BadInput if a
  /// type can't hold a finite number, if two tensors would have one name, and
  /// in the cases of save().
  Status saveWeights(const std::string &directory,
                     const SavedWeights &how = {});
  /// Goes on from a checkpoint. Parameters that aren't trained keep their
  /// values or come from the file `beside`; fails if a checkpoint of another
  /// base was written. `notes`, if it isn't null, gets what the run kept.
  Status resume(const std::string &directory, const std::string &beside = "",
                RunNotes *notes = nullptr);

  /// The number of batches run, including those of resumed runs: the position
  /// in the data.
  int64_t batches() const { return batches_; }

  StepStatistics statistics() const;
  /// The times of launches, or nullptr without a requested profile.
  const Profile *profile() const { return profile_.get(); }
  /// The times of the last step's entries, or nullptr.
  const Trace *trace() const { return trace_.get(); }
  Device &device() { return *device_; }
  /// The swap file of the program, or nullptr.
  const SwapFile *file() const { return file_.get(); }
  int64_t steps() const { return steps_; }
  Homes homes() const {
    return Homes(*device_, file_.get(), &samplesOfShards_);
  }

private:
  friend Status evaluate(Step &step, double &loss);
  friend Status checkValues(const Step &step);
  friend Status viewOf(Step &step, const TensorInfo &tensor,
                       struct TensorView &view);
  class Observer;
  class Progress;
  Step(const StepProgram &program, const StepOptions &options);
  Status prepare();
  /// Called when all values are present.
  Status finishValues();
  Status feed();

  const StepProgram &program_;
  StepOptions options_;
  std::unique_ptr<SwapFile> file_; // outlives the device's engines
  mutable std::atomic<uint64_t> samplesOfShards_ = 0;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Observer> observer_;
  std::unique_ptr<Progress> progress_; // of several ranks
  std::unique_ptr<Profile> profile_;
  std::unique_ptr<Trace> trace_;
  /// If steps may be queued as a whole.
  StepRecorder *recorder_ = nullptr;
  int64_t runs_ = 0; // steps that were queued
  /// If the device times launches for the profile or the trace.
  DeviceTimer *timer_ = nullptr;
  void *kernels_ = nullptr;
  Figures figures_;
  bool started_ = false;
  std::vector<bool> given_;  // by tensor: whether it was written
  std::vector<bool> viewed_; // inputs that a program may write unseen
  /// The reason why the values are lost, if a step failed in its middle.
  Status lost_;
  double learningRate_ = 1e-3;
  int64_t steps_ = 0, batches_ = 0;
  int64_t skipped_ = 0;                 // of a program with skipsNonFinite
  std::vector<std::vector<char>> kept_; // of states, in their order
  double lastSeconds_ = 0;
  int64_t allocations_ = -1, largestAllocation_ = -1;
  mutable PerSpace<int64_t> highWater_;
  mutable int64_t highWaterRuns_ = -1; // when it was counted
};

/// Computes the loss of the inputs that were written, without dropout, in the
/// step's arena. Nothing that a later step reads is changed, except for the
/// fed inputs, which are written before each step. Batch statistics are those
/// of the batch. Code::Unsupported if the program can't do it.
Status evaluate(Step &step, double &loss);

/// Code::Usage if a parameter has no value yet; the reason if the values are
/// lost.
Status checkValues(const Step &step);

/// A sum of samples of all parameters, states and moments: two steps with
/// unlike values have the same one only by chance. Of values in shards it knows
/// what was written.
Status sampleValues(const Step &step, uint64_t &sum);

/// The error of an index that a kernel found outside its range.
Status faultOf(const IndexFault &fault);

/// The loss in the notes of the checkpoint in `directory`; none: it has none.
std::optional<double> evaluationLossIn(const std::string &directory);

/// The file of a checkpoint directory.
constexpr const char *kCheckpointFile = "checkpoint.safetensors";
constexpr const char *kModelFile = "model.safetensors";

} // namespace tmc

#endif // TMC_RUNTIME_STEP_STEP_H
