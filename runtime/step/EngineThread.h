//===- EngineThread.h - an engine that is a thread --------------*- C++ -*-===//
//
// A ring of work that one caller fills and one thread empties, in order. Work
// is numbered from 1; `completed()` is the number of the last that is over. So
// an event of this engine is no object: it is the number of the last work that
// was queued before it, and waiting for it is waiting until `completed()` has
// come that far. An event that is recorded anew on another engine simply names
// another counter, and no generation can be mistaken for another.
//
//     queue   1 copy | 2 wait (write, 7) | 3 copy |      queued() = 3
//     record(ToHost, e)          e = {counter of this thread, 3}
//     wait(FileWrite, e)         write's ring gets: wait until counter >= 3
//
// The ring is allocated at start. Where it is full the caller waits; the engine
// itself waits only for work that was queued before, so it goes on.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_ENGINETHREAD_H
#define TMC_RUNTIME_STEP_ENGINETHREAD_H

#include "runtime/kernels/Status.h"
#include "runtime/step/Device.h"
#include "runtime/step/FileArena.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace tmc {

/// A number that rises, and that threads sleep for. (Not std::atomic's wait():
/// it yields some times before it sleeps, which on a busy machine takes as many
/// turns of the scheduler.)
class WorkCounter {
public:
  WorkCounter() = default;
  WorkCounter(const WorkCounter &) = delete;
  WorkCounter &operator=(const WorkCounter &) = delete;

  /// Where the number is, for a device that reads it: before it is used.
  void keepAt(std::atomic<uint64_t> *place) { value_ = place; }
  const std::atomic<uint64_t> &place() const { return *value_; }

  uint64_t get() const { return value_->load(std::memory_order_acquire); }
  /// One more, by one thread at a time.
  void raise();
  void waitFor(uint64_t number) const;

private:
  std::atomic<uint64_t> own_{0}, *value_ = &own_;
  mutable std::atomic<int> sleepers_{0};
  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;
};

/// The first error of all engines.
class QueueFault {
public:
  bool isSet() const { return isSet_.load(std::memory_order_acquire); }
  void set(Status status);
  /// What was set; clears it. For the caller, when all engines are idle.
  Status take();

private:
  std::atomic<bool> isSet_ = false;
  std::mutex mutex_;
  Status status_;
};

struct Work {
  enum class Kind : uint8_t { Copy, Write, Read, OnHost, Wait, Stop };
  Kind kind = Kind::Stop;
  bool accumulate = false;
  uint8_t inCount = 0, outCount = 0;
  int64_t launch = -1;
  void *to = nullptr;
  const void *from = nullptr;
  int64_t bytes = 0, fileOffset = 0;
  const WorkCounter *counter = nullptr; // Wait: until it is `number`
  uint64_t number = 0;
  Kernel *kernel = nullptr; // OnHost
  void *scratch = nullptr;
  const void *ins[kMostHostOperands] = {};
  void *outs[kMostHostOperands] = {};

  void setTransfer(void *target, const void *source, int64_t offset,
                   int64_t count) {
    to = target;
    from = source;
    fileOffset = offset;
    bytes = count;
  }
  /// False where there are too many operands.
  bool setKernel(Kernel &runs, In in, Out out, void *itsScratch, bool adds);
};

/// The step gives an engine work, and its table of launches doesn't name it.
Status unnamedEngine(Engine engine);
/// Work::setKernel() couldn't.
Status tooManyOperands();

/// What the threads of one device share.
struct EngineContext {
  FileArena *file = nullptr;
  Stream *hostStream = nullptr;     // of kernels on the host
  double linkBytesPerSecond = 0;    // of copies; 0: as fast as they go
  WorkObserver *observer = nullptr; // changed only while all are idle
  QueueFault fault;
};

class EngineThread {
public:
  /// `place`: where completed() is kept; null: here.
  EngineThread(Engine engine, EngineContext &context, int64_t depth,
               std::atomic<uint64_t> *place = nullptr);
  /// After start(). Runs what is queued, then ends.
  ~EngineThread();
  EngineThread(const EngineThread &) = delete;
  EngineThread &operator=(const EngineThread &) = delete;
  Status start();

  /// The caller fills the next entry and commits it.
  Work &next(Work::Kind kind, int64_t launch);
  void commit();
  /// Whether next() would wait.
  bool isFull() const { return queued() - completed_.get() >= ring_.size(); }
  /// Holds the engine until another's counter has come to `number`.
  void wait(const WorkCounter &counter, uint64_t number);

  uint64_t queued() const { return queued_.get(); }
  const WorkCounter &completed() const { return completed_; }
  void drain() const { completed_.waitFor(queued()); }

private:
  void serve();
  void execute(const Work &work);
  Status move(const Work &work);

  const Engine engine_;
  EngineContext &context_;
  FileLane lane_; // of the file's engines
  std::vector<Work> ring_;
  WorkCounter queued_, completed_;
  std::thread thread_;
};

/// Copies at most so fast, by sleeping between pieces.
void copyAtRate(void *to, const void *from, int64_t bytes,
                double bytesPerSecond);

/// Of std::chrono::steady_clock.
double secondsNow();

} // namespace tmc

#endif // TMC_RUNTIME_STEP_ENGINETHREAD_H
