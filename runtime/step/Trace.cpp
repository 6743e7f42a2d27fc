//===- Trace.cpp - a step over time, predicted and measured ---------------===//

#include "runtime/step/Trace.h"

#include "runtime/step/EngineThread.h"
#include "runtime/step/Json.h"

#include <algorithm>
#include <cstdio>

namespace tmc {

Trace::Trace(const StepProgram &program, LaunchObserver *next, bool byDevice)
    : program_(program), next_(next), byDevice_(byDevice),
      events_(size_t(std::max(program.eventCount, 0))) {}

void Trace::start() {
  for (PerEngine<std::vector<Span>> *lanes : {&measured_, &predicted_})
    for (std::vector<Span> &lane : lanes->of)
      lane.clear();
  free_ = {};
  std::fill(events_.begin(), events_.end(), 0);
  begin_ = last_ = secondsNow();
}

void Trace::add(const StepTimes &step) {
  for (const TimedEntry &run : step.entries)
    if (isEntry(run.entry) && run.count > 0)
      measured_[EngineKind::Compute].push_back(
          {run.entry, step.launches[run.first].begin - begin_,
           step.launches[run.first + run.count - 1].end - begin_});
}

void Trace::predict(EngineKind engine, int64_t launch) {
  const double seconds =
      std::max(program_.launches[launch].predictedSeconds, 0.0);
  double &free = free_[engine];
  const double begin = std::max(free, free_[EngineKind::Compute]);
  free = begin + seconds;
  predicted_[engine].push_back({launch, begin, free});
}

void Trace::launched(Queues &queues, int64_t launch) {
  if (isEntry(launch)) {
    if (!byDevice_)
      measured_[EngineKind::Compute].push_back(
          {launch, last_ - begin_, secondsNow() - begin_});
    predict(EngineKind::Compute, launch);
  }
  if (next_)
    next_->launched(queues, launch);
  last_ = secondsNow();
}

void Trace::started(Queues &queues, int64_t launch) {
  if (isEntry(launch))
    predict(program_.launches[launch].engine, launch);
  if (next_)
    next_->started(queues, launch);
}

void Trace::done(Queues &queues, int64_t launch) {
  if (next_)
    next_->done(queues, launch);
  last_ = secondsNow(); // compute waited until now
}

void Trace::recorded(EngineKind engine, int32_t event) {
  events_[size_t(event)] = free_[engine];
  if (next_)
    next_->recorded(engine, event);
}

void Trace::waiting(EngineKind engine, int32_t event) {
  double &free = free_[engine];
  free = std::max(free, events_[size_t(event)]);
  if (next_)
    next_->waiting(engine, event);
}

void Trace::ran(EngineKind engine, int64_t launch, double begin, double end) {
  if (isEntry(launch))
    measured_[engine].push_back({launch, begin - begin_, end - begin_});
}

std::string Trace::json() const {
  std::string text = "{\"traceEvents\": [";
  bool isFirst = true;
  auto add = [&](const std::string &event) {
    text += (isFirst ? "\n" : ",\n") + event;
    isFirst = false;
  };
  auto place = [](int process, EngineKind engine) {
    return "\"pid\": " + std::to_string(process) +
           ", \"tid\": " + std::to_string(int(engine));
  };
  for (int process = 1; process <= 2; ++process) {
    add("{\"ph\": \"M\", \"name\": \"process_name\", " +
        place(process, EngineKind::Compute) + ", \"args\": {\"name\": \"" +
        (process == 1 ? "measured" : "predicted") + "\"}}");
    const auto &lanes = process == 1 ? measured_ : predicted_;
    for (auto [engine, lane] : lanes) {
      if (lane.empty())
        continue;
      add("{\"ph\": \"M\", \"name\": \"thread_name\", " +
          place(process, engine.kind) + ", \"args\": {\"name\": \"" +
          engine.name + "\"}}");
      for (const Span &span : lane) {
        const LaunchInfo &launch = program_.launches[span.launch];
        char numbers[160];
        std::snprintf(numbers, sizeof numbers,
                      "\"ts\": %.3f, \"dur\": %.3f, \"args\": {\"entry\": "
                      "%lld, \"bytes\": %lld}",
                      span.begin * 1e6, (span.end - span.begin) * 1e6,
                      static_cast<long long>(span.launch),
                      static_cast<long long>(launch.movedBytes
                                                 ? launch.movedBytes
                                                 : launch.bytes));
        add("{\"ph\": \"X\", \"name\": " + jsonQuoted(launch.name) + ", " +
            place(process, engine.kind) + ", " + numbers + "}");
      }
    }
  }
  return text + "\n], \"displayTimeUnit\": \"ms\"}\n";
}

Status Trace::write(const std::string &path) const {
  return writeText(path, json());
}

} // namespace tmc
