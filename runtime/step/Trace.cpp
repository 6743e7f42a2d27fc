//===- Trace.cpp - a step over time, predicted and measured ---------------===//

#include "runtime/step/Trace.h"

#include "runtime/step/EngineThread.h"
#include "runtime/step/Json.h"

#include <algorithm>
#include <cstdio>

namespace tmc {

Trace::Trace(const StepProgram &program, LaunchObserver *next)
    : program_(program), next_(next),
      events_(size_t(std::max(program.eventCount, 0))) {}

void Trace::start() {
  for (int i = 0; i < kEngineCount; ++i) {
    measured_[i].clear();
    predicted_[i].clear();
    free_[i] = 0;
  }
  std::fill(events_.begin(), events_.end(), 0);
  begin_ = last_ = secondsNow();
}

void Trace::predict(Engine engine, int64_t launch) {
  const double seconds =
      std::max(program_.launches[launch].predictedSeconds, 0.0);
  double &free = free_[int(engine)];
  const double begin = std::max(free, free_[int(Engine::Compute)]);
  free = begin + seconds;
  predicted_[int(engine)].push_back({launch, begin, free});
}

void Trace::launched(Queues &queues, int64_t launch) {
  if (program_.backend != Backend::Cpu)
    queues.drain();
  if (isEntry(launch)) {
    measured_[int(Engine::Compute)].push_back(
        {launch, last_ - begin_, secondsNow() - begin_});
    predict(Engine::Compute, launch);
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

void Trace::recorded(Engine engine, int32_t event) {
  events_[size_t(event)] = free_[int(engine)];
  if (next_)
    next_->recorded(engine, event);
}

void Trace::waiting(Engine engine, int32_t event) {
  double &free = free_[int(engine)];
  free = std::max(free, events_[size_t(event)]);
  if (next_)
    next_->waiting(engine, event);
}

void Trace::ran(Engine engine, int64_t launch, double begin, double end) {
  if (isEntry(launch))
    measured_[int(engine)].push_back({launch, begin - begin_, end - begin_});
}

std::string Trace::json() const {
  std::string text = "{\"traceEvents\": [";
  bool isFirst = true;
  auto add = [&](const std::string &event) {
    text += (isFirst ? "\n" : ",\n") + event;
    isFirst = false;
  };
  auto place = [](int process, int engine) {
    return "\"pid\": " + std::to_string(process) +
           ", \"tid\": " + std::to_string(engine);
  };
  for (int process = 1; process <= 2; ++process) {
    const std::vector<Span> *lanes = process == 1 ? measured_ : predicted_;
    add("{\"ph\": \"M\", \"name\": \"process_name\", " + place(process, 0) +
        ", \"args\": {\"name\": \"" +
        (process == 1 ? "measured" : "predicted") + "\"}}");
    for (int engine = 0; engine < kEngineCount; ++engine) {
      if (lanes[engine].empty())
        continue;
      add("{\"ph\": \"M\", \"name\": \"thread_name\", " +
          place(process, engine) + ", \"args\": {\"name\": \"" +
          nameOf(Engine(engine)) + "\"}}");
      for (const Span &span : lanes[engine]) {
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
            place(process, engine) + ", " + numbers + "}");
      }
    }
  }
  return text + "\n], \"displayTimeUnit\": \"ms\"}\n";
}

Status Trace::write(const std::string &path) const {
  return writeText(path, json());
}

} // namespace tmc
