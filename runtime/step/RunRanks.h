//===- RunRanks.h - the ranks of a run, for the trainer ---------*- C++ -*-===//
//
// A step for several devices is trained by a world of processes, its ranks.
// They run one program in step: each calls all of the functions here, in one
// order. Rank 0, the first, prints and logs for all.
//
// The runtime knows the world only by this interface. Its implementation
// (runtime/network) is linked into trainers of steps for several devices alone:
// tmc_open_ranks is null in others.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_RUNRANKS_H
#define TMC_RUNTIME_STEP_RUNRANKS_H

#include "runtime/kernels/Ranks.h"
#include "runtime/kernels/Status.h"
#include "runtime/step/Program.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tmc {

class RunRanks {
public:
  virtual ~RunRanks() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  bool isFirst() const { return rank() == 0; }
  /// "2 ranks by mpi (Open MPI v4.1.4)".
  virtual std::string description() const = 0;
  /// For the device's kernels.
  virtual Peers &peers() = 0;

  /// The `bytes` bytes of each rank r go to `to` + r * bytes, on all ranks. An
  /// error isn't explained yet.
  virtual Status gather(void *to, const void *from, int64_t bytes) = 0;
  /// The largest of all ranks' numbers, on all ranks.
  virtual Status agree(int64_t &number) = 0;
  /// A rank that stands still within a step is an error of all; between steps
  /// it may load or save as long as it must.
  virtual void startStep(int64_t step) = 0;
  virtual void endStep() = 0;
  /// The time that kernels have waited for the network since startStep().
  virtual double networkSeconds() const = 0;

  /// The first rank says which checkpoint is whole, for the sentence about a
  /// rank that ends the run; "": none is known.
  virtual void saved(const std::string &sentence) = 0;
  /// The reason for an error of a step, which is mostly another rank.
  virtual Status explain(const Status &status) = 0;
  /// Tells all that this rank ends with an error of its own.
  virtual void fail(const Status &status) = 0;
  /// Ends the world together with all others.
  virtual Status finish() = 0;
};

struct RunRanksSettings {
  Mesh mesh;
  std::string folder;        // of the step, with the network's libraries
  std::string network;       // "mpi", "gloo", "nccl"; "": WorldSettings says
  double mostSeconds = 0;    // that a rank may stand still; 0: the default
  double bytesPerSecond = 0; // that the network is held to; 0: its own
  /// Facts that must be the same on all ranks: {"seed", "7"}.
  std::vector<std::pair<std::string, std::string>> facts;
  const StepProgram *program = nullptr; // for the names of entries
};

} // namespace tmc

/// Connects the ranks of a run. Null in trainers of one device.
extern "C" __attribute__((weak)) void
tmc_open_ranks(const tmc::RunRanksSettings &settings,
               std::unique_ptr<tmc::RunRanks> &ranks, tmc::Status &status);

#endif // TMC_RUNTIME_STEP_RUNRANKS_H
