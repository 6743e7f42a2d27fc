//===- Profile.h - where the time of a step goes ----------------*- C++ -*-===//
//
// Reads the clock after each launch and adds up the times by launch. A step
// without a profile has no extra cost. On the cpu backend a launch has finished
// when the clock is read. On cuda the device is synchronized first, so launches
// don't overlap and the sum may exceed the usual time of a step.
//
// The first step isn't counted: it is the first to touch the memory.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_PROFILE_H
#define TMC_RUNTIME_STEP_PROFILE_H

#include "runtime/kernels/Status.h"
#include "runtime/step/Device.h"
#include "runtime/step/Program.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

class Profile final : public LaunchObserver {
public:
  /// `next`, if not null, also receives each launch; its time isn't counted.
  Profile(const StepProgram &program, LaunchObserver *next)
      : program_(program), next_(next), times_(size_t(program.launchCount)) {}

  /// Begins a step.
  void start();
  void launched(Queues &queues, int64_t launch) override;
  void started(Queues &queues, int64_t launch) override;
  void done(Queues &queues, int64_t launch) override;
  /// Ends a step.
  void finish();

  /// The number of counted steps.
  int64_t steps() const { return steps_ > 1 ? steps_ - 1 : 0; }

  /// A table of kernel families, then one of the slowest kernels; empty before
  /// a step was counted. Times are means over steps. "least" adds up each
  /// launch's fastest run: on a busy machine it is more reliable.
  std::string table() const;
  /// All launches, as JSON.
  std::string json() const;
  Status writeJson(const std::string &path) const;

private:
  struct Time {
    double total = 0, least = 0; // seconds; of all runs, of the fastest one
    int64_t runs = 0;
  };
  /// The sums of several launches.
  struct Row {
    std::string name, example;
    int64_t launches = 0;                      // per step
    double mean = 0, least = 0;                // seconds per step
    double flops = 0, bytes = 0, elements = 0; // per step
  };
  std::vector<Row> rowsBy(const char *LaunchInfo::*key) const;
  void add(int64_t launch, double seconds);
  double leastOf(const Time &time) const;

  const StepProgram &program_;
  LaunchObserver *next_;
  std::vector<Time> times_;
  int64_t steps_ = 0;
  std::chrono::steady_clock::time_point last_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_PROFILE_H
