//===- TrainLog.cpp - the file of --log -----------------------------------===//

#include "runtime/step/TrainLog.h"

#include "runtime/kernels/Names.h"
#include "runtime/step/Identity.h"

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

namespace tmc {

namespace {

/// A number in JSON; null if it isn't finite.
std::string number(double value, int digits = 9) {
  if (!std::isfinite(value))
    return "null";
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

/// `,"name":value`.
std::string field(const std::string &name, const std::string &value) {
  return ",\"" + name + "\":" + value;
}

std::string field(const std::string &name, int64_t value) {
  return field(name, std::to_string(value));
}

std::string field(const std::string &name, double value) {
  return field(name, number(value));
}

/// A count, or null if it isn't known.
std::string known(int64_t count) {
  return count < 0 ? "null" : std::to_string(count);
}

/// A text, or null if there is none.
std::string textField(const std::string &name, const std::string &text) {
  return field(name, text.empty() ? "null" : jsonQuoted(text));
}

/// "arena_bytes" and "high_water_bytes" of each space; those beside the device
/// have the space's name before them.
std::string spaceFields(const StepStatistics &stats) {
  std::string text;
  for (const SpaceInfo &space : kSpaces) {
    const std::string key =
        onDevice(space.kind) ? "" : std::string(space.name) + "_";
    const int64_t arena = stats.arenaBytes[space.kind];
    if (!onDevice(space.kind) && arena == 0)
      continue;
    text += field(key + "arena_bytes", arena);
    if (space.hasAddresses)
      text += field(key + "high_water_bytes", stats.highWaterBytes[space.kind]);
  }
  return text;
}

} // namespace

TrainLog::~TrainLog() {
  if (file_)
    std::fclose(file_);
}

Status TrainLog::failed(const char *what) const {
  return {Code::World, std::string("can't ") + what + " '" + path_ +
                           "': " + std::strerror(errno)};
}

Status TrainLog::line(const std::string &kind, const std::string &fields) {
  if (!file_)
    return Status::ok();
  const double now = std::chrono::duration<double>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  constexpr int kMilliseconds = 13; // Digits, for the next 200 years.
  const std::string text = "{\"kind\":\"" + kind + "\"" + fields +
                           field("time", number(now, kMilliseconds)) + "}\n";
  return std::fputs(text.c_str(), file_) < 0 || std::fflush(file_)
             ? failed("write")
             : Status::ok();
}

Status TrainLog::open(const std::string &path, bool append, const Step &step,
                      const std::vector<std::string> &command) {
  path_ = path;
  file_ = std::fopen(path.c_str(), append ? "ae" : "we");
  if (!file_)
    return failed("open");
  const StepProgram &program = step.program();
  const StepOrigin &origin = program.origin;
  std::string words;
  for (const std::string &word : command)
    words += (words.empty() ? "" : ",") + jsonQuoted(word);
  return line("run", field("schema", int64_t(kLogSchema)) +
                         textField("version", origin.version) +
                         field("command", "[" + words + "]") +
                         textField("model", program.model) +
                         textField("target", origin.target) +
                         textField("identity", stepIdentity()) +
                         textField("model_fingerprint", origin.model) +
                         textField("plan_fingerprint", origin.plan) +
                         field("steps_before", step.steps()));
}

Status TrainLog::step(const Step &step, const StepLine &done) {
  const StepProgram &program = step.program();
  const StepStatistics &stats = done.stats;
  const bool hasTokens = program.tokensPerStep > 0;
  const int64_t each = program.mesh.data * (hasTokens ? program.tokensPerStep
                                                      : program.samplesPerStep);
  std::string text = field("step", done.step) + field("loss", done.loss) +
                     field("grad_norm", stats.gradNorm);
  const bool isScaled = program.lossScaleTensor >= 0;
  if (isScaled)
    text += field("loss_scale", stats.lossScale);
  if (isScaled || program.skipsNonFinite)
    text += field("skipped_steps", stats.skippedSteps);
  if (stats.saturations >= 0)
    text += field("saturations", stats.saturations);
  if (done.slowestRank >= 0)
    text += field("slowest_rank", int64_t(done.slowestRank)) +
            field("slowest_rank_seconds", done.slowestSeconds);
  const std::string unit = hasTokens ? "tokens" : "samples";
  return line("step", text + field("lr", done.rate) +
                          field("seconds", stats.lastStepSeconds) +
                          field(unit + "_per_second", done.perSecond) +
                          field(unit, done.step * each) + spaceFields(stats) +
                          field("allocations", known(stats.allocations)) +
                          field("largest_allocation_bytes",
                                known(stats.largestAllocationBytes)));
}

Status TrainLog::evaluation(int64_t step, double loss, int64_t samples,
                            double seconds, bool isBest) {
  return line("eval", field("step", step) + field("eval_loss", loss) +
                          field("eval_samples", samples) +
                          field("eval_seconds", seconds) +
                          field("is_best", isBest ? "true" : "false"));
}

Status TrainLog::saved(int64_t step, const std::string &path, double seconds) {
  return line("save", field("step", step) + textField("path", path) +
                          field("save_seconds", seconds));
}

} // namespace tmc
