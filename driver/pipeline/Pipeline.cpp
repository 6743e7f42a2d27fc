#include "driver/pipeline/Pipeline.h"

#include "compiler/emit/StepInterface.h"
#include "driver/pipeline/Config.h"

#include <ctime>

using namespace tmc;

/// The time in UTC, by ISO 8601.
static std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts;
  char text[32];
  if (!gmtime_r(&seconds, &parts) ||
      !std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts))
    return "";
  return text;
}

std::string tmc::planFingerprint(const Compiled &compiled) {
  PlanTrace trace = compiled.step().trace;
  if (trace.launches.empty())
    return "";
  // A plan is the same by another name and within another budget.
  trace.model = trace.target = "";
  trace.budgetBytes = -1;
  return identityOf({planTraceJson(trace)});
}

Planned tmc::plannedOf(const Compiled &compiled) {
  const Forward &forward = *compiled.forward;
  const WeightSources *weights = forward.weights.get();
  const CompileOptions &options = compiled.candidate->options;
  const bool copies =
      weights && copiesWeights(*weights, options.output, options.copyWeights);
  return {forward.model,
          forward.device.name,
          forward.device.compiledFor(),
          forward.device.standsFor,
          forward.device.measuredOn,
          forward.device.measuredDate,
          forward.device.ownMeasuredOn,
          compiled.step().figures,
          compiled.step().trace,
          forward.values,
          weights ? weights->copiedBytes(copies) : -1,
          weights ? weights->totalBytes - weights->copiedBytes(copies) : 0,
          /*library=*/"",
          /*identity=*/"",
          forward.table(),
          {TMC_VERSION, options.command, compiled.date, forward.fingerprint,
           planFingerprint(compiled)}};
}

/// The candidate of pinned levers.
static PlannedCandidate onlyCandidate(const Forward &forward,
                                      const CompileOptions &options,
                                      Phase last) {
  auto candidate = std::make_unique<Candidate>(forward, options);
  Expected<void> done =
      buildPrograms(*candidate, Phase::Raise, std::min(last, Phase::Shape));
  if (done && last >= Phase::Plan)
    done = planCandidate(*candidate, last);
  if (done && last >= Phase::Plan)
    measureUnsplit(*candidate);
  return {std::move(candidate), std::move(done)};
}

PlannedCandidate tmc::planForward(const Forward &forward,
                                  const CompileOptions &options, Phase last) {
  return hasFreeLevers(options) && last > Phase::Import
             ? chooseCandidate(forward, options, last)
             : onlyCandidate(forward, options, last);
}

Compiled tmc::compileTo(const CompileOptions &options, Phase last) {
  Compiled compiled;
  compiled.date = now();
  Expected<Forward> read = readModel(options, compiled.warnings);
  if (!read) {
    compiled.done = std::move(read.failure());
    return compiled;
  }
  compiled.forward = std::make_unique<const Forward>(std::move(*read));
  const Forward &forward = *compiled.forward;
  PlannedCandidate made = planForward(forward, options, last);
  compiled.candidate = std::move(made.candidate);
  compiled.done = std::move(made.done);
  if (!compiled.candidate)
    return compiled;
  llvm::append_range(compiled.warnings, compiled.candidate->warnings);
  if (!compiled.done &&
      compiled.done.failure().kind == FailureKind::OverBudget &&
      options.planner.empty())
    suggest(compiled.done.failure(), *compiled.candidate, options);
  return compiled;
}
