//===- Queues.h - the queues of an emitted step -----------------*- C++ -*-===//
//
// An emitted `run(Queues &q, void *kernels)` is one list of calls, in the order
// of the plan. Six engines take the calls and run concurrently; each engine is
// first in, first out:
//
//     compute   kernels of the step, on the device's arena
//     d2h, h2d  copies between the device's arena and the host's
//     read, write   transfers between the host's arena and the file's
//     host      kernels of the cpu backend, on the host's arena
//
// Work of an engine other than compute has two entries in the list: its start
// (copy, readFile, writeFile, onHost), and the point where it must be done.
// Between the two, its operands and results must not be touched. Events order
// engines:
//
//     k.gelu_0.run(q.compute(), {at(0x1000)}, {at(0x9000)}, nullptr);
//     q.launched(17);                             // makes the value
//     q.record(Engine::Compute, 0);
//     q.wait(Engine::ToHost, 0);                  // d2h begins after it
//     q.copy(18, Engine::ToHost, host(0), at(0x9000), 4096);   // its start
//     q.record(Engine::ToHost, 1);
//     k.matmul_3.run(q.compute(), ...);           // meanwhile
//     q.launched(19);
//     q.wait(Engine::Compute, 1);
//     q.done(20);                                 // its done: 0x9000 is free
//
// `wait(engine, event)` holds that engine until it reaches the event's latest
// record before this call. Events are small integers, reused in each loop
// iteration and step. Every wait points backwards in the list, so no cycle of
// waits exists and there is no deadlock, for any timing. The program states its
// needs (runtime/step/Program.h): engines without a row in its table of
// launches aren't started, and steps without moves have no extra cost.
//
// On the cpu backend kernels run in the calling thread: a record on compute is
// immediate, and a wait by compute blocks the caller. On cuda the caller runs
// ahead of all engines.
//
// Errors: the first failed transfer is kept, and later work on engines other
// than compute is skipped. The device's synchronize() returns the error, and
// the step is void (Step.h).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_QUEUES_H
#define TMC_RUNTIME_KERNELS_QUEUES_H

#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Stream.h"

#include <cstdint>

namespace tmc {

enum class Engine : uint8_t {
  Compute,
  ToHost,
  ToDevice,
  FileRead,
  FileWrite,
  Host
};
constexpr int kEngineCount = 6;

constexpr const char *nameOf(Engine engine) {
  constexpr const char *names[] = {"compute", "d2h",   "h2d",
                                   "read",    "write", "host"};
  return names[int(engine)];
}

/// The most operands of one kind of a host kernel: AdamW8bit with an overflow
/// flag has nine.
constexpr int kMostHostOperands = 16;

class Queues;

/// Receives each entry of the list when run() reaches it. Indices are those of
/// StepProgram::launches.
class LaunchObserver {
public:
  virtual ~LaunchObserver() = default;
  /// A kernel was queued on compute.
  virtual void launched(Queues &queues, int64_t launch) = 0;
  /// Work of another engine was queued.
  virtual void started(Queues &, int64_t) {}
  /// The work of an earlier entry counts as done from here on.
  virtual void done(Queues &, int64_t) {}
  /// An event is recorded; an engine will wait for an event.
  virtual void recorded(Engine, int32_t) {}
  virtual void waiting(Engine, int32_t) {}
};

class Queues {
public:
  explicit Queues(Stream &compute) : compute_(compute) {}
  virtual ~Queues() = default;
  Queues(const Queues &) = delete;
  Queues &operator=(const Queues &) = delete;

  /// The stream of kernels on compute.
  Stream &compute() { return compute_; }
  /// The first bytes of the arenas. Offsets in the file's arena are plain
  /// numbers.
  char *device() const { return device_; }
  char *host() const { return host_; }

  /// Called after each kernel on compute; costs one test of a pointer.
  void launched(int64_t launch) {
    if (observer_)
      observer_->launched(*this, launch);
  }
  void done(int64_t launch) {
    if (observer_)
      observer_->done(*this, launch);
  }

  /// Copies between the arenas: Engine::ToHost or Engine::ToDevice.
  virtual void copy(int64_t launch, Engine engine, void *to, const void *from,
                    int64_t bytes) = 0;
  /// Transfers between the host's arena and the file's. Offsets in the file are
  /// multiples of kFileBlockBytes, addresses of kFileAlign
  /// (runtime/step/FileArena.h).
  virtual void writeFile(int64_t launch, int64_t fileOffset, const void *from,
                         int64_t bytes) = 0;
  virtual void readFile(int64_t launch, void *to, int64_t fileOffset,
                        int64_t bytes) = 0;
  /// A kernel of the cpu backend on operands in the host's arena, run by the
  /// host engine's threads. The operands are copied into the queue; at most
  /// kMostHostOperands of a kind.
  virtual void onHost(int64_t launch, Kernel &kernel, In ins, Out outs,
                      void *scratch, bool accumulate = false) = 0;

  void record(Engine engine, int32_t event) {
    if (observer_)
      observer_->recorded(engine, event);
    recordEvent(engine, event);
  }
  void wait(Engine engine, int32_t event) {
    if (observer_)
      observer_->waiting(engine, event);
    waitForEvent(engine, event);
  }
  /// Blocks the caller until all engines are idle.
  virtual void drain() = 0;

  void setObserver(LaunchObserver *observer) { observer_ = observer; }
  LaunchObserver *observer() const { return observer_; }

protected:
  virtual void recordEvent(Engine engine, int32_t event) = 0;
  virtual void waitForEvent(Engine engine, int32_t event) = 0;
  void setArenas(char *device, char *host) {
    device_ = device;
    host_ = host;
  }
  void started(int64_t launch) {
    if (observer_)
      observer_->started(*this, launch);
  }

private:
  Stream &compute_;
  LaunchObserver *observer_ = nullptr;
  char *device_ = nullptr, *host_ = nullptr;
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_QUEUES_H
