//===- Queues.h - what an emitted step gives its work to --------*- C++ -*-===//
//
// An emitted `run(Queues &q, void *kernels)` is one list of calls, in the order
// of the plan. Six engines take them, and run beside each other; each of them
// is first in, first out:
//
//     compute   kernels of the step, on the device's arena
//     d2h, h2d  copies between the device's arena and the host's
//     read, write   transfers between the host's arena and the file's
//     host      kernels of the cpu backend, on the host's arena
//
// Work of another engine than compute stands in the list twice: where it is
// given (copy, readFile, writeFile, onHost), and where it must be done. Between
// the two everything that it touches stays as it is. Events order engines:
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
// `wait(engine, event)` holds that engine until the event's latest record
// before this call has been reached. Events are small integers, and used again
// in each trip and step. Every wait points backwards in the list, so that no
// engine can wait for itself through others: there is no deadlock, whatever the
// timing. What a step needs is said by its program (runtime/step/Program.h):
// engines without a row in its table of launches aren't started, and steps
// without moves pay nothing.
//
// On the cpu backend kernels run in the calling thread, as ever: recording on
// compute is immediate, and waiting by compute blocks the caller. On cuda the
// caller runs ahead of all engines.
//
// Errors: a failed transfer is kept, the first one wins, and what is queued on
// other engines than compute after it is skipped. The device's synchronize()
// returns it, and the step is void (Step.h).
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

/// Operands of one kind that a kernel on the host may have: AdamW8bit with an
/// overflow flag has nine.
constexpr int kMostHostOperands = 16;

class Queues;

/// Is told of each entry of the list, when run() has come to it. Indices are
/// those of StepProgram::launches.
class LaunchObserver {
public:
  virtual ~LaunchObserver() = default;
  /// A kernel was queued on compute.
  virtual void launched(Queues &queues, int64_t launch) = 0;
  /// Work of another engine was queued.
  virtual void started(Queues &, int64_t) {}
  /// The work of an earlier entry counts as done from here on.
  virtual void done(Queues &, int64_t) {}
  /// An event is recorded; an engine is told to wait for it.
  virtual void recorded(Engine, int32_t) {}
  virtual void waiting(Engine, int32_t) {}
};

class Queues {
public:
  explicit Queues(Stream &compute) : compute_(compute) {}
  virtual ~Queues() = default;
  Queues(const Queues &) = delete;
  Queues &operator=(const Queues &) = delete;

  /// Kernels run here.
  Stream &compute() { return compute_; }
  /// The arenas' first bytes. Offsets in the file's are given as they are.
  char *device() const { return device_; }
  char *host() const { return host_; }

  /// After each kernel on compute: one test of a pointer.
  void launched(int64_t launch) {
    if (observer_)
      observer_->launched(*this, launch);
  }
  void done(int64_t launch) {
    if (observer_)
      observer_->done(*this, launch);
  }

  /// Between the arenas: Engine::ToHost or Engine::ToDevice.
  virtual void copy(int64_t launch, Engine engine, void *to, const void *from,
                    int64_t bytes) = 0;
  /// Between the host's arena and the file's. Offsets in the file are multiples
  /// of kFileBlockBytes, addresses of kFileAlign (runtime/step/FileArena.h).
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
