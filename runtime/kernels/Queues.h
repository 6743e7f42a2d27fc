//===- Queues.h - the queues of an emitted step -----------------*- C++ -*-===//
//
// An emitted `run(Queues &q, void *kernels)` is one list of calls, in the order
// of the plan. The engines (Machine.h) take the calls and run concurrently;
// each engine is first in, first out.
//
// Work of an engine other than compute has two entries in the list: its start
// (copy, beside), and the point where it must be done. Between the two, its
// operands and results must not be touched. Events order engines:
//
//     k.gelu_0.run(q.compute(), {at(0x1000)}, {at(0x9000)}, nullptr);
//     q.launched(17);                             // makes the value
//     q.record(engine("compute"), 0);
//     q.wait(engine("d2h"), 0);                   // d2h begins after it
//     q.copy(18, engine("d2h"), 0x0, 0x9000, 4096);   // its start
//     q.record(engine("d2h"), 1);
//     k.matmul_3.run(q.compute(), ...);           // meanwhile
//     q.launched(19);
//     q.wait(engine("compute"), 1);
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
#include "runtime/kernels/Machine.h"
#include "runtime/kernels/Stream.h"

#include <cstdint>

namespace tmc {

/// The most operands of one kind of a kernel beside compute's: AdamW8bit with
/// an overflow flag has nine.
constexpr int kMostOperandsBeside = 16;

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
  virtual void recorded(EngineKind, int32_t) {}
  virtual void waiting(EngineKind, int32_t) {}
};

class Queues {
public:
  explicit Queues(Stream &compute) : compute_(compute) {}
  virtual ~Queues() = default;
  Queues(const Queues &) = delete;
  Queues &operator=(const Queues &) = delete;

  /// The stream of kernels on compute.
  Stream &compute() { return compute_; }
  /// The first byte of a space's arena; null if the space has no addresses.
  char *arena(SpaceKind space) const { return arenas_[space]; }

  /// Called after each kernel on compute; costs one test of a pointer.
  void launched(int64_t launch) {
    if (observer_)
      observer_->launched(*this, launch);
  }
  void done(int64_t launch) {
    if (observer_)
      observer_->done(*this, launch);
  }

  /// Copies from the space that `engine` reads to the space that it writes.
  /// `to` and `from` are offsets in their arenas, multiples of the spaces'
  /// alignment where those have one.
  virtual void copy(int64_t launch, EngineKind engine, int64_t to, int64_t from,
                    int64_t bytes) = 0;
  /// A kernel of another engine than compute: of the host, run by its threads
  /// on operands in the host's arena; or of the network. The operands are
  /// copied into the queue; at most kMostOperandsBeside of a kind.
  virtual void beside(int64_t launch, EngineKind engine, Kernel &kernel, In ins,
                      Out outs, void *scratch, bool accumulate = false) = 0;

  void record(EngineKind engine, int32_t event) {
    if (observer_)
      observer_->recorded(engine, event);
    recordEvent(engine, event);
  }
  void wait(EngineKind engine, int32_t event) {
    if (observer_)
      observer_->waiting(engine, event);
    waitForEvent(engine, event);
  }
  /// Blocks the caller until all engines are idle. Within a step only the
  /// checks of values between launches need it (--poison, --check-finite): they
  /// read and write the arenas from the host.
  virtual void drain() = 0;

  void setObserver(LaunchObserver *observer) { observer_ = observer; }
  LaunchObserver *observer() const { return observer_; }

protected:
  virtual void recordEvent(EngineKind engine, int32_t event) = 0;
  virtual void waitForEvent(EngineKind engine, int32_t event) = 0;
  void setArenas(const PerSpace<char *> &arenas) { arenas_ = arenas; }
  void started(int64_t launch) {
    if (observer_)
      observer_->started(*this, launch);
  }

private:
  Stream &compute_;
  LaunchObserver *observer_ = nullptr;
  PerSpace<char *> arenas_;
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_QUEUES_H
