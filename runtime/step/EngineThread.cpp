//===- EngineThread.cpp - an engine that is a thread ----------------------===//

#include "runtime/step/EngineThread.h"

#include "runtime/kernels/Ranks.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <sys/prctl.h>
#include <utility>

namespace tmc {

namespace {
/// If a copy has a rate limit, the clock is read after each piece.
constexpr int64_t kPieceBytes = 256 << 10;
/// Shorter sleeps are left to the end of the copy.
constexpr double kLeastSleepSeconds = 1e-4;

void sleepUntil(double seconds) {
  timespec at;
  at.tv_sec = time_t(seconds);
  at.tv_nsec = long((seconds - double(at.tv_sec)) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr)) {
  }
}
} // namespace

double secondsNow() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void WorkCounter::raise() {
  // Sequentially consistent with the sleepers' count: a thread that sees the
  // old value has already counted itself.
  value_->store(value_->load(std::memory_order_relaxed) + 1);
  if (sleepers_.load() > 0) {
    std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
}

void WorkCounter::waitFor(uint64_t number) const {
  if (get() >= number)
    return;
  std::unique_lock lock(mutex_);
  sleepers_.fetch_add(1);
  wake_.wait(lock, [&] { return value_->load() >= number; });
  sleepers_.fetch_sub(1);
}

void copyAtRate(void *to, const void *from, int64_t bytes,
                double bytesPerSecond) {
  char *target = static_cast<char *>(to);
  const char *source = static_cast<const char *>(from);
  if (bytesPerSecond <= 0) {
    std::memcpy(target, source, size_t(bytes));
    return;
  }
  const double begin = secondsNow();
  for (int64_t at = 0; at < bytes;) {
    const int64_t piece = std::min(kPieceBytes, bytes - at);
    std::memcpy(target + at, source + at, size_t(piece));
    at += piece;
    const double due = begin + double(at) / bytesPerSecond;
    const double ahead = due - secondsNow();
    if (ahead > (at < bytes ? kLeastSleepSeconds : 0))
      sleepUntil(due);
  }
}

void QueueFault::set(Status status) {
  std::lock_guard lock(mutex_);
  if (isSet_.load(std::memory_order_relaxed))
    return;
  status_ = std::move(status);
  isSet_.store(true, std::memory_order_release);
}

Status QueueFault::take() {
  if (!isSet())
    return Status::ok();
  std::lock_guard lock(mutex_);
  isSet_.store(false, std::memory_order_release);
  return std::exchange(status_, Status::ok());
}

bool Work::setKernel(Kernel &runs, In in, Out out, void *itsScratch,
                     bool adds) {
  if (in.size() > kMostOperandsBeside || out.size() > kMostOperandsBeside)
    return false;
  kernel = &runs;
  scratch = itsScratch;
  accumulate = adds;
  inCount = uint8_t(in.size());
  outCount = uint8_t(out.size());
  std::copy(in.begin(), in.end(), ins);
  std::copy(out.begin(), out.end(), outs);
  return true;
}

Status unnamedEngine(EngineKind engine) {
  return {Code::Defect, std::string("the step gives work to the engine '") +
                            nameOf(engine) + "', which its table doesn't name"};
}

Status tooManyOperands() {
  return {Code::Defect, "a kernel beside the device's has more than " +
                            std::to_string(kMostOperandsBeside) + " operands"};
}

EngineThread::EngineThread(EngineKind engine, EngineContext &context,
                           int64_t depth, std::atomic<uint64_t> *place)
    : engine_(engine), context_(context),
      ring_(size_t(std::max<int64_t>(depth, 2))) {
  if (place)
    completed_.keepAt(place);
}

Status EngineThread::start() {
  if (touches(engine_, SpaceKind::File)) {
    if (!context_.file)
      return {Code::Defect, "the step has file transfers and no file"};
    if (Status s = context_.file->prepare(lane_); !s)
      return s;
  }
  thread_ = std::thread([this] { serve(); });
  return Status::ok();
}

EngineThread::~EngineThread() {
  if (!thread_.joinable())
    return;
  next(Work::Kind::Stop, -1);
  commit();
  thread_.join();
}

Work &EngineThread::next(Work::Kind kind, int64_t launch) {
  const uint64_t number = queued();
  if (number >= ring_.size())
    completed_.waitFor(number - ring_.size() + 1);
  Work &work = ring_[number % ring_.size()];
  work.kind = kind;
  work.launch = launch;
  return work;
}

void EngineThread::wait(const WorkCounter &counter, uint64_t number) {
  Work &work = next(Work::Kind::Wait, -1);
  work.counter = &counter;
  work.number = number;
  commit();
}

void EngineThread::commit() { queued_.raise(); }

void EngineThread::serve() {
  // Lets the sleeps of rate-limited copies end on time.
  (void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  for (uint64_t number = 0;; ++number) {
    queued_.waitFor(number + 1);
    const Work &work = ring_[number % ring_.size()];
    const bool stops = work.kind == Work::Kind::Stop;
    execute(work);
    completed_.raise();
    if (stops)
      return;
  }
}

void EngineThread::execute(const Work &work) {
  if (work.kind == Work::Kind::Wait) {
    work.counter->waitFor(work.number);
    return;
  }
  if (work.kind == Work::Kind::Stop || context_.fault.isSet())
    return;
  if (context_.observer)
    context_.observer->begins(engine_, work.launch);
  const double begin = context_.observer ? secondsNow() : 0;
  if (Status s = run(work); !s)
    context_.fault.set(s);
  if (context_.observer)
    context_.observer->ran(engine_, work.launch, begin, secondsNow());
}

Status EngineThread::copy(const Work &work) {
  const EngineInfo &engine = infoOf(engine_);
  char *to = context_.arenas[engine.writes];
  const char *from = context_.arenas[engine.reads];
  if (engine.writes == SpaceKind::File)
    return context_.file->write(work.to, from + work.from, work.bytes, &lane_);
  if (engine.reads == SpaceKind::File)
    return context_.file->read(work.from, to + work.to, work.bytes, &lane_);
  copyAtRate(to + work.to, from + work.from, work.bytes,
             context_.linkBytesPerSecond);
  return Status::ok();
}

Status EngineThread::runKernel(const Work &work) {
  Stream &stream = *context_.streams[engine_];
  if (engine_ == EngineKind::Network && context_.peers)
    context_.peers->calls(work.launch);
  work.kernel->run(stream, In::of(work.ins, work.inCount),
                   Out::of(work.outs, work.outCount), work.scratch,
                   work.accumulate);
  return std::exchange(stream.failure, Status::ok());
}

Status EngineThread::run(const Work &work) {
  switch (work.kind) {
  case Work::Kind::Copy:
    return copy(work);
  case Work::Kind::Kernel:
    return runKernel(work);
  default:
    return Status::ok();
  }
}

} // namespace tmc
