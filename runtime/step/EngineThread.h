//===- EngineThread.h - an engine that is a thread --------------*- C++ -*-===//
//
// A ring of work that one caller fills and one thread empties, in order. Work
// is numbered from 1; `completed()` is the number of the last finished work. An
// event of this engine is not an object but a number: that of the last work
// queued before the event. A wait for the event ends when `completed()` reaches
// the number. If an event is recorded again on another engine, it refers to
// another counter, so two generations are never confused.
//
//     queue   1 copy | 2 wait (file-write, 7) | 3 copy |   queued() = 3
//     record(d2h, e)          e = {counter of this thread, 3}
//     wait(file-write, e)     its ring gets: wait until counter >= 3
//
// The ring is allocated at start. If it is full, the caller waits. The engine
// waits only for work that was queued earlier, so it always makes progress.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_ENGINETHREAD_H
#define TMC_RUNTIME_STEP_ENGINETHREAD_H

#include "runtime/kernels/Status.h"
#include "runtime/step/Device.h"
#include "runtime/step/SwapFile.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace tmc {

/// An increasing number that threads can wait for. (std::atomic's wait() isn't
/// used: it yields several times before it sleeps, and on a busy machine each
/// yield costs a turn of the scheduler.)
class WorkCounter {
public:
  WorkCounter() = default;
  WorkCounter(const WorkCounter &) = delete;
  WorkCounter &operator=(const WorkCounter &) = delete;

  /// Moves the number to `place`, where a device reads it. Call it before any
  /// use.
  void keepAt(std::atomic<uint64_t> *place) { value_ = place; }
  const std::atomic<uint64_t> &place() const { return *value_; }

  uint64_t get() const { return value_->load(std::memory_order_acquire); }
  /// Adds one; by one thread at a time.
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
  /// Returns the fault and clears it. The caller calls it when all engines are
  /// idle.
  Status take();

private:
  std::atomic<bool> isSet_ = false;
  std::mutex mutex_;
  Status status_;
};

struct Work {
  enum class Kind : uint8_t { Copy, Kernel, Wait, Stop };
  Kind kind = Kind::Stop;
  bool accumulate = false;
  uint8_t inCount = 0, outCount = 0;
  int64_t launch = -1;
  int64_t to = 0, from = 0, bytes = 0;  // Copy: offsets in arenas
  const WorkCounter *counter = nullptr; // Wait: until it is `number`
  uint64_t number = 0;
  Kernel *kernel = nullptr; // Kernel
  void *scratch = nullptr;
  const void *ins[kMostOperandsBeside] = {};
  void *outs[kMostOperandsBeside] = {};

  /// False if there are too many operands.
  bool setKernel(Kernel &runs, In in, Out out, void *itsScratch, bool adds);
};

/// The error of work for an engine that the table of launches doesn't name.
Status unnamedEngine(EngineKind engine);
/// The error of a failed Work::setKernel().
Status tooManyOperands();

/// The data that the threads of one device share.
struct EngineContext {
  PerSpace<char *> arenas; // null: a space without addresses
  SwapFile *file = nullptr;
  PerEngine<Stream *> streams;      // of engines that run kernels
  Peers *peers = nullptr;           // hears of each call on the network
  double linkBytesPerSecond = 0;    // of copies; 0: no limit
  WorkObserver *observer = nullptr; // changed only while all are idle
  QueueFault fault;
};

class EngineThread {
public:
  /// `place`: the location of completed(); null: inside this object.
  EngineThread(EngineKind engine, EngineContext &context, int64_t depth,
               std::atomic<uint64_t> *place = nullptr);
  /// Call it after start(). Finishes the queued work, then ends the thread.
  ~EngineThread();
  EngineThread(const EngineThread &) = delete;
  EngineThread &operator=(const EngineThread &) = delete;
  Status start();

  /// The caller fills the entry that next() returns, then commits it.
  Work &next(Work::Kind kind, int64_t launch);
  void commit();
  /// Whether next() would wait.
  bool isFull() const { return queued() - completed_.get() >= ring_.size(); }
  /// Stops the engine until `counter` reaches `number`.
  void wait(const WorkCounter &counter, uint64_t number);

  uint64_t queued() const { return queued_.get(); }
  const WorkCounter &completed() const { return completed_; }
  void drain() const { completed_.waitFor(queued()); }

private:
  void serve();
  void execute(const Work &work);
  Status run(const Work &work);
  Status copy(const Work &work);
  Status runKernel(const Work &work);

  const EngineKind engine_;
  EngineContext &context_;
  FileLane lane_; // of engines that transfer to or from the file
  std::vector<Work> ring_;
  WorkCounter queued_, completed_;
  std::thread thread_;
};

/// Copies at the given rate at most, by sleeping between pieces.
void copyAtRate(void *to, const void *from, int64_t bytes,
                double bytesPerSecond);

/// The time of std::chrono::steady_clock.
double secondsNow();

} // namespace tmc

#endif // TMC_RUNTIME_STEP_ENGINETHREAD_H
