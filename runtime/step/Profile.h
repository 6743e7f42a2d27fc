//===- Profile.h - where the time of a step goes ----------------*- C++ -*-===//
//
// Adds up the times of a step by launch. On the cpu backend a launch has
// finished when its call returns, so the profile reads the caller's clock after
// each one. On cuda the device times its own launches (DeviceTimer.h), and the
// profile reads the times when the step is over:
//
//     launches  |-adamw-|addParts|......|-adamw-|addParts|
//     entries   |--embed.update--|      |--head.update---|
//     busy      |----------------|      |----------------|
//     wall      |----------------------------------------|
//
// A gap between launches belongs to no launch: the device waited for the caller
// or for another engine. A step without a profile has no extra cost.
//
// The first step isn't counted: it is the first to touch the memory, and it
// creates what times the launches.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_PROFILE_H
#define TMC_RUNTIME_STEP_PROFILE_H

#include "runtime/kernels/Status.h"
#include "runtime/step/DeviceTimer.h"
#include "runtime/step/Program.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

class Profile final : public LaunchObserver {
public:
  /// `next`, if not null, also receives each launch; its time isn't counted.
  /// `byDevice`: the device times the launches, see add().
  /// `device`: its description.
  Profile(const StepProgram &program, LaunchObserver *next, bool byDevice,
          std::string device)
      : program_(program), next_(next), byDevice_(byDevice),
        device_(std::move(device)), times_(size_t(program.launchCount)),
        launchTimes_(size_t(byDevice ? program.launchCount : 0)) {}

  /// Begins a step.
  void start();
  void launched(Queues &queues, int64_t launch) override;
  void started(Queues &queues, int64_t launch) override;
  void done(Queues &queues, int64_t launch) override;
  /// Adds the device's times of the step.
  void add(const StepTimes &step);
  /// Ends a step.
  void finish();

  /// The number of counted steps.
  int64_t steps() const { return steps_ > 1 ? steps_ - 1 : 0; }

  /// A table of kernel families, then one of the slowest kernels; empty before
  /// a step was counted. Times are means over steps. "least" adds up each
  /// launch's fastest run: on a busy machine it is more reliable. Below a
  /// kernel object of several device launches stand these launches.
  std::string table() const;
  /// The device, the kernel objects as prices know them, and all launches, as
  /// JSON: of each launch the runs, the seconds of all runs and those
  /// of the fastest. If the device timed them, also its launches by name, and
  /// the wall time of all steps.
  std::string json() const;
  Status writeJson(const std::string &path) const;

private:
  struct Time {
    double total = 0, least = 0; // seconds; of all runs, of the fastest one
    int64_t runs = 0;
    void add(double seconds);
  };
  /// The device launches of one name in an entry.
  struct LaunchTime {
    std::string name;
    Time time;
  };
  /// The sums of several launches.
  struct Row {
    std::string name, example;
    int64_t launches = 0;                      // per step
    double mean = 0, least = 0;                // seconds per step
    double flops = 0, bytes = 0, elements = 0; // per step
    std::vector<Row> parts = {};               // the device launches, by name

    void add(const Time &time, int64_t steps);
    Row &part(const std::string &name);
  };
  std::vector<Row> rowsBy(const char *LaunchInfo::*key) const;
  std::string heading() const;
  /// A table of rows under a heading.
  std::string rowsText(const char *heading, std::vector<Row> rows,
                       bool areKernels) const;
  /// `whole`: the seconds of all rows.
  static std::string rowText(const Row &row, double whole);
  static bool slower(const Row &a, const Row &b);
  bool isEntry(int64_t launch) const {
    return launch >= 0 && launch < program_.launchCount;
  }
  /// The time since the last call, of a launch that the caller's clock times.
  void addSinceLast(int64_t launch);
  static double leastOf(const Time &time, int64_t steps);
  static std::string jsonOf(const Time &time);

  const StepProgram &program_;
  LaunchObserver *next_;
  const bool byDevice_;
  const std::string device_;
  std::vector<Time> times_;                          // by launch
  std::vector<std::vector<LaunchTime>> launchTimes_; // by launch, if byDevice_
  double wall_ = 0; // seconds of all steps, if byDevice_
  int64_t steps_ = 0;
  std::chrono::steady_clock::time_point last_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_PROFILE_H
