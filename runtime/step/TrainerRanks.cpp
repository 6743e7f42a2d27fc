//===- TrainerRanks.cpp - a trainer as one of several ranks ---------------===//

#include "runtime/step/TrainerRanks.h"

#include "runtime/step/Identity.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

namespace tmc {

namespace {

std::string digits(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", number);
  return text;
}

template <typename T> std::string digits(const std::optional<T> &number) {
  return number ? std::to_string(*number) : "none";
}

/// The flags that all ranks must have in common: those that decide a bit, and
/// those that decide the order of the ranks' calls.
std::vector<std::pair<std::string, std::string>>
factsOf(const StepProgram &program, const Arguments &arguments) {
  const Schedule &schedule = arguments.schedule;
  return {{"step", stepIdentity()},
          {"fingerprint", program.fingerprint},
          {"mesh", program.mesh.text()},
          // Before the facts that a checkpoint has.
          {"start by --resume-if-there",
           arguments.resumeIfThere.empty() ? "not given"
           : arguments.resume.empty()      ? "without a checkpoint"
                                           : "from a checkpoint"},
          {"seed", std::to_string(arguments.seed.value_or(0))},
          {"number of steps", digits(arguments.steps)},
          {"number of epochs", digits(arguments.epochs)},
          {"order of the data", digits(arguments.shuffle)},
          {"learning rate", digits(arguments.rate)},
          {"schedule", std::to_string(int(schedule.kind)) + " " +
                           std::to_string(schedule.warmup) + " " +
                           digits(schedule.least) + " " +
                           std::to_string(schedule.total)},
          {"saved files", std::to_string(arguments.save.empty()) +
                              std::to_string(arguments.saveAdapter.empty()) +
                              std::to_string(arguments.saveBase.empty()) +
                              std::to_string(arguments.saveWeights) + " " +
                              std::to_string(arguments.saveEvery) + " " +
                              std::to_string(arguments.keep)},
          {"evaluation", arguments.evaluation.empty()
                             ? "none"
                             : std::to_string(arguments.evaluateEvery)}};
}

} // namespace

Status TrainerRanks::open(const StepProgram &program,
                          const Arguments &arguments,
                          const std::string &folder) {
  if (program.mesh.ranks() == 1)
    return Status::ok();
  if (!tmc_open_ranks)
    return {Code::Usage, "the step is for " +
                             std::to_string(program.mesh.ranks()) +
                             " ranks, and this trainer was linked without a "
                             "network"};
  RunRanksSettings settings;
  settings.mesh = program.mesh;
  settings.folder = folder;
  settings.network = arguments.network;
  settings.mostSeconds = arguments.networkTimeout;
  settings.bytesPerSecond = arguments.networkBytesPerSecond;
  settings.program = &program;
  settings.facts = factsOf(program, arguments);
  Status status;
  tmc_open_ranks(settings, ranks_, status);
  return status;
}

Status TrainerRanks::compare(int64_t number, bool &alike) const {
  int64_t most = number, least = -number;
  if (Status s = ranks_->agree(most); !s)
    return s;
  const Status s = ranks_->agree(least);
  alike = most == -least;
  return s;
}

Status TrainerRanks::checkAlike(const Step &step, const DataReader &data) {
  if (!ranks_)
    return Status::ok();
  uint64_t values = 0;
  if (Status s = sampleValues(step, values); !s)
    return s;
  const struct {
    int64_t number;
    const char *fault;
  } facts[] = {
      {int64_t(values >> 1), "the ranks begin with different values: give all "
                             "the same --weights, --init or --resume"},
      {data.position(), "the ranks begin at different positions of the data: "
                        "give all the same --resume"},
      {data.samples(), "the ranks have data of different lengths"}};
  for (const auto &[number, fault] : facts) {
    bool alike = false;
    if (Status s = compare(number, alike); !s)
      return s;
    if (alike)
      continue;
    const Status apart = ranks_->finish();
    ranks_.reset();
    return apart ? Status(Code::Usage, fault) : apart;
  }
  return Status::ok();
}

Status TrainerRanks::addUp(int64_t &number) const {
  if (!ranks_)
    return Status::ok();
  std::vector<int64_t> all(size_t(ranks_->ranks()));
  if (Status s = ranks_->gather(all.data(), &number, sizeof number); !s)
    return ranks_->explain(s);
  number = std::accumulate(all.begin(), all.end(), int64_t(0));
  return Status::ok();
}

Status TrainerRanks::share(StepStatistics &stats, RankTimes &times) const {
  if (!ranks_)
    return Status::ok();
  const RankStep own = {stats.lastStepSeconds, ranks_->networkSeconds(),
                        stats.highWaterBytes};
  std::vector<RankStep> all(size_t(ranks_->ranks()));
  if (Status s = ranks_->gather(all.data(), &own, sizeof own); !s)
    return s;
  for (const RankStep &each : all) {
    stats.lastStepSeconds = std::max(stats.lastStepSeconds, each.seconds);
    for (const auto [space, bytes] : each.highWaterBytes)
      stats.highWaterBytes[space.kind] =
          std::max(stats.highWaterBytes[space.kind], bytes);
  }
  times.add(all);
  return Status::ok();
}

Status TrainerRanks::stops(bool hasSignal, bool &stops) const {
  int64_t seen = hasSignal;
  const Status s = ranks_ ? ranks_->agree(seen) : Status::ok();
  stops = seen > 0;
  return s;
}

void TrainerRanks::isWhole(const std::string &place,
                           std::optional<int64_t> step) const {
  if (!ranks_ || !isFirst())
    return;
  const std::string number =
      step ? " of step " + std::to_string(*step) : std::string();
  ranks_->saved(place.empty() ? ""
                              : "the checkpoint" + number + " in '" + place +
                                    "' is whole");
}

Status TrainerRanks::end(const Status &done) const {
  if (!ranks_)
    return done;
  if (done)
    return ranks_->finish();
  ranks_->fail(done);
  return done;
}

} // namespace tmc
