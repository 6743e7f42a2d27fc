//===- TrainerRanks.h - a trainer as one of several ranks -------*- C++ -*-===//
//
// The ranks of a trainer (RunRanks.h), or none: a trainer of one device calls
// the same functions, which then do nothing.
//
//     open -> checkAlike -> { stops; within(step) } ... -> end
//
// Ranks that begin with other values, data or flags would train apart without a
// word. So flags are compared when the ranks connect, and the data and samples
// of all values before the first step.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_TRAINERRANKS_H
#define TMC_RUNTIME_STEP_TRAINERRANKS_H

#include "runtime/step/Arguments.h"
#include "runtime/step/Data.h"
#include "runtime/step/RankTimes.h"
#include "runtime/step/RunRanks.h"
#include "runtime/step/Step.h"

#include <memory>
#include <optional>
#include <string>

namespace tmc {

class TrainerRanks {
public:
  /// Connects the ranks that the program is for. `folder`: the step's own.
  Status open(const StepProgram &program, const Arguments &arguments,
              const std::string &folder);

  /// Rank 0 prints and logs.
  bool isFirst() const { return !ranks_ || ranks_->isFirst(); }
  /// The number of this rank among those that share a batch.
  int64_t place() const {
    return ranks_ ? ranks_->peers().place(Axis::Data) : 0;
  }
  /// For the device; null: there is one.
  Peers *peers() const { return ranks_ ? &ranks_->peers() : nullptr; }
  /// "2 ranks by mpi (Open MPI v4.1.4)"; "": there is one.
  std::string description() const {
    return ranks_ ? ranks_->description() : "";
  }

  /// Code::Usage if a rank has other values in its step, another position, or
  /// data of another length. All ranks get it, and are apart then.
  Status checkAlike(const Step &step, const DataReader &data);
  /// A number of this rank becomes the sum of all ranks' numbers.
  Status addUp(int64_t &number) const;
  /// Sets `stops` if any rank has seen a signal: all end after the same step.
  Status stops(bool hasSignal, bool &stops) const;
  /// Runs step `number`, in which all ranks wait for each other.
  template <typename F> Status within(int64_t number, F &&run) const {
    if (!ranks_)
      return run();
    ranks_->startStep(number);
    const Status done = run();
    ranks_->endStep();
    return done ? done : ranks_->explain(done);
  }
  /// Within a step that was run: adds the times of all ranks to `times`, and
  /// makes `stats` those of all, with the longest time and the most bytes.
  Status share(StepStatistics &stats, RankTimes &times) const;
  /// The checkpoint in the folder `place` is whole: that of `step`, or one of
  /// unknown step while a new one replaces it. A fault says so. "": there is
  /// none.
  void isWhole(const std::string &place, std::optional<int64_t> step) const;
  /// Ends together with the others, or tells them the error of this rank.
  Status end(const Status &done) const;

private:
  /// True in `alike` if all ranks give the same number.
  Status compare(int64_t number, bool &alike) const;

  std::unique_ptr<RunRanks> ranks_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_TRAINERRANKS_H
