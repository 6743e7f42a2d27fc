//===- Arguments.h - the trainer's command line -----------------*- C++ -*-===//
//
// The flags of `DIR/train`. The parser is apart from the trainer, so that tests
// can run it alone.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_ARGUMENTS_H
#define TMC_RUNTIME_STEP_ARGUMENTS_H

#include "runtime/kernels/DType.h"
#include "runtime/kernels/Status.h"
#include "runtime/step/Program.h"
#include "runtime/step/Schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

struct Arguments {
  std::vector<std::string> data, evaluation; // of --data, of --eval
  int64_t evaluateEvery = 0;                 // steps; 0: at the end only
  std::optional<int64_t> steps, epochs;
  std::optional<uint64_t> shuffle; // none: the order of the files
  int64_t padId = 0;
  double rate = 1e-3;
  Schedule schedule;
  std::string weights;
  bool init = false; // random values, by initSeed
  uint64_t initSeed = 0;
  std::string save, resume, log;    // "": not requested
  std::string resumeIfThere;        // a folder; "": not requested
  std::string adapter, saveAdapter; // folders; "": not requested
  std::string saveBase;             // a folder; "": not requested
  int64_t saveEvery = 0;            // steps; 0: at the end only
  int64_t keep = 0;                 // checkpoints; 0: one, replaced
  bool saveWeights = false;         // beside each checkpoint: the weights
  std::optional<DType> weightsType; // none: as the step keeps them
  bool trainedAlone = false;        // of the weights, what is trained
  /// Beginnings of names, in the step and in the file of weights.
  std::pair<std::string, std::string> savePrefix;
  int threads = 0;
  std::optional<uint64_t> seed;
  bool poison = false, checkFinite = false, quiet = false, help = false;
  bool profile = false, graph = true;
  std::string profileFile; // "": a table on standard output
  std::string trace;       // "": not requested
  std::string nvme;        // the directory of the swap file
  double linkBytesPerSecond = 0;
  std::string network;       // "mpi", "gloo", "nccl"; "": tmc's choice
  double networkTimeout = 0; // seconds; 0: the default
  double networkBytesPerSecond = 0;
  int hostThreads = 0;
  std::vector<std::string> notes; // about values that were read
  std::string tune; // The file of measured algorithms; "": not requested
};

/// The sources of values that a step takes together.
struct StepValueKinds {
  bool hasAdapters = false; // They start by rule or from --adapter.
  bool hasBase = false;     // Parameters that no checkpoint has.
  bool hasCodes = false;    // Some of these are stored as codes.

  static StepValueKinds of(const StepProgram &program);
};

/// The arguments of a rank that isn't the first, which prints, logs and saves
/// for all.
Arguments withoutOutput(Arguments arguments);

/// Parses the arguments after the program's name, and those of --config. Every
/// error is Code::Usage, but for those of a file that can't be read.
Status parseArguments(std::vector<std::string> arguments, Arguments &parsed,
                      const StepValueKinds &kinds = {});

/// The text of --help for the trainer of `step`; `program` is the name in its
/// usage line.
std::string helpText(const std::string &program, const StepProgram &step);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_ARGUMENTS_H
