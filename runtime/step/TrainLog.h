//===- TrainLog.h - the file of --log ---------------------------*- C++ -*-===//
//
// A JSON object a line, each with a "kind" and the seconds since 1970 ("time"):
//
//     {"kind":"run",  ...}   at each start: the command, the compilation
//     {"kind":"step", ...}   loss, rate, seconds, bytes
//     {"kind":"eval", ...}   the loss over the data of --eval
//     {"kind":"save", ...}   a checkpoint that was written
//
// docs/schemas/log.schema.json describes them. `python -m tmc.log` converts
// them. A key whose meaning changes, or that goes, raises kLogSchema.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_TRAINLOG_H
#define TMC_RUNTIME_STEP_TRAINLOG_H

#include "runtime/kernels/Status.h"
#include "runtime/step/Step.h"

#include <cstdio>
#include <string>
#include <vector>

namespace tmc {

/// The second one has kinds on all lines, and lines of runs and of saves.
constexpr int kLogSchema = 2;

/// One training step, as it ended; of all ranks.
struct StepLine {
  int64_t step = 0;
  double loss = 0, rate = 0, perSecond = 0;
  StepStatistics stats;
  int slowestRank = -1; // -1: there is one device
  double slowestSeconds = 0;
};

class TrainLog {
public:
  TrainLog() = default;
  ~TrainLog();
  TrainLog(const TrainLog &) = delete;
  TrainLog &operator=(const TrainLog &) = delete;

  /// Begins a file, or goes on with one, by a line of the run. `command`: its
  /// words. Without a call, the lines below go nowhere.
  Status open(const std::string &path, bool append, const Step &step,
              const std::vector<std::string> &command);
  Status step(const Step &step, const StepLine &line);
  /// The mean loss over `samples` after a step. `isBest`: the least so far.
  Status evaluation(int64_t step, double loss, int64_t samples, double seconds,
                    bool isBest);
  Status saved(int64_t step, const std::string &path, double seconds);

private:
  Status line(const std::string &kind, const std::string &fields);
  Status failed(const char *what) const;

  std::FILE *file_ = nullptr;
  std::string path_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_TRAINLOG_H
