// Measured.h - a trained step beside its plan: the times of its launches, by
// the trainer's --profile, and its steps, by the trainer's --log.
//
//     plan-trace.json   launch 12  conv      predicted 41.2 us
//     profile.json      launch 12  Conv      22 runs, 1.02 ms, fastest 40.1 us
//     log.jsonl         a line a step        seconds, loss, bytes
//
// A profile lists the launches in the order of the plan.

#ifndef TMC_COMPILER_REPORT_MEASURED_H
#define TMC_COMPILER_REPORT_MEASURED_H

#include "compiler/report/PlanFile.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace tmc {

/// A launch of the kernels' engine, or a wait, in seconds a step.
struct MeasuredLaunch {
  std::string name, family;
  int32_t launch = 0; // In the plan.
  int64_t count = 1;  // Launches of the plan that ran as one.
  double planned = 0, measured = 0, fastest = 0;
};

/// A profile beside its plan.
struct MeasuredProfile {
  std::string device;
  int64_t steps = 0;
  double wallSeconds = -1; // A step; -1: not in the profile.
  std::vector<MeasuredLaunch> launches;
};

/// The steps of a log that ran this plan.
struct MeasuredLog {
  struct Step {
    double step, loss, seconds; // NaN: unknown.
  };
  std::vector<Step> steps;
  std::vector<std::pair<double, double>> evaluations; // Step and loss.
  /// The most of all steps; -1: unknown.
  PerSpace<double> highWaterBytes = PerSpace<double>::all(-1);
  int64_t runs = 0; // Lines of runs; an old log has none.

  /// The median of all steps but the first of the log; -1: no such step.
  double medianSeconds() const;
};

/// Reads the text of a profile of `trace`. Error: it is no profile, or one of
/// another step; the message continues after the file's name.
Expected<MeasuredProfile> readProfile(llvm::StringRef text,
                                      const PlanTrace &trace);

/// Reads the text of a log. Runs of plans with another fingerprint than `plan`
/// don't count. Error: it is no log, or has no step of this plan.
Expected<MeasuredLog> readLog(llvm::StringRef text, const std::string &plan);

/// Measured figures beside planned ones; null: there is no such file.
struct Measured {
  const PlanDirectory &planned;
  const MeasuredProfile *profile = nullptr;
  const MeasuredLog *log = nullptr;
};
std::string measuredText(const Measured &measured);
std::string measuredHtml(const Measured &measured);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_MEASURED_H
