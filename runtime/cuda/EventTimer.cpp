//===- EventTimer.cpp - launches timed by events --------------------------===//

#include "runtime/cuda/EventTimer.h"

#include "runtime/step/EngineThread.h"

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>

namespace tmc::cuda {

namespace {

/// "adamw" of the mangled name of tmc::cuda::adamw<float, float>(...).
std::string shortName(const char *mangled) {
  int status = 0;
  char *text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 && text ? text : mangled;
  std::free(text);
  const std::string anonymous = "(anonymous namespace)";
  for (size_t at; (at = name.find(anonymous)) != std::string::npos;)
    name.erase(at, anonymous.size());
  // The arguments of the template, or those of the function, follow the name.
  name.resize(std::min(name.find_first_of("<("), name.size()));
  const size_t before = name.find_last_of(": ");
  return before == std::string::npos ? name : name.substr(before + 1);
}

/// The name of a __global__ function. "kernel" where the runtime doesn't know
/// names (before CUDA 12.3) or the driver is older than that.
std::string nameOfFunction(const void *kernel) {
#if CUDART_VERSION >= 12030
  const char *mangled = nullptr;
  if (cudaFuncGetName(&mangled, kernel) == cudaSuccess && mangled)
    return shortName(mangled);
  (void)cudaGetLastError(); // later calls start clean
#endif
  return "kernel";
}

} // namespace

EventTimer::~EventTimer() {
  // Nothing can be done about an error here.
  for (cudaEvent_t event : events_)
    (void)cudaEventDestroy(event);
  if (origin_)
    (void)cudaEventDestroy(origin_);
}

void EventTimer::check(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  (void)cudaGetLastError(); // already reported: later calls start clean
  isTiming_ = false;
  if (status_)
    status_ = {Code::World,
               std::string(what) + ": " + cudaGetErrorString(error)};
}

bool EventTimer::grow(size_t events) {
  while (isTiming_ && events_.size() < events) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDefault),
          "can't create an event that times a launch");
    if (isTiming_)
      events_.push_back(event);
  }
  return isTiming_;
}

Status EventTimer::start() {
  times_.launches.clear();
  times_.entries.clear();
  labels_.clear();
  status_ = Status::ok();
  isTiming_ = true;
  if (!origin_)
    check(cudaEventCreateWithFlags(&origin_, cudaEventDefault),
          "can't create an event that times a step");
  if (isTiming_)
    check(cudaEventRecord(origin_, compute_), "can't time the start of a step");
  if (isTiming_)
    check(cudaEventSynchronize(origin_), "can't time the start of a step");
  originSeconds_ = secondsNow();
  return status_;
}

void EventTimer::begin(cudaStream_t stream, const void *kernel,
                       const char *name) {
  if (!isTiming_ || !grow(2 * labels_.size() + 2))
    return;
  labels_.push_back({kernel, name});
  check(cudaEventRecord(events_[2 * labels_.size() - 2], stream),
        "can't time the begin of a launch");
}

void EventTimer::end(cudaStream_t stream) {
  if (isTiming_)
    check(cudaEventRecord(events_[2 * labels_.size() - 1], stream),
          "can't time the end of a launch");
}

void EventTimer::close(int64_t entry) {
  const std::vector<TimedEntry> &entries = times_.entries;
  const size_t first =
      entries.empty() ? 0 : entries.back().first + entries.back().count;
  if (isTiming_)
    times_.entries.push_back({entry, first, labels_.size() - first});
}

const char *EventTimer::nameOf(const Label &label) {
  if (!label.kernel)
    return label.name;
  const char *&name = nameOfKernel_[label.kernel];
  if (!name)
    name = names_.insert(nameOfFunction(label.kernel)).first->c_str();
  return name;
}

Status EventTimer::finish() {
  times_.launches.reserve(labels_.size());
  for (size_t i = 0; i < labels_.size() && isTiming_; ++i) {
    const cudaEvent_t begin = events_[2 * i], end = events_[2 * i + 1];
    float offset = 0, length = 0; // milliseconds
    check(cudaEventElapsedTime(&offset, origin_, begin),
          "can't read the begin of a launch");
    check(cudaEventElapsedTime(&length, begin, end),
          "can't read the time of a launch");
    const double at = originSeconds_ + double(offset) * 1e-3;
    times_.launches.push_back(
        {nameOf(labels_[i]), at, at + double(length) * 1e-3});
  }
  isTiming_ = false;
  return status_;
}

} // namespace tmc::cuda
