// EventOrder.h - the events that order engines as a plan requires.
//
// A plan orders work by the places of its start and its done among the kernels
// (compiler/planning/model/Problem.h, R12). A program orders it by events:
//
//     plan       f1   stash(                    f2   )stash   f3
//     program    f1   record 0 on compute       f2   wait 1   f3
//                     wait 0 on d2h                  done 1
//                     copy, record 1 on d2h
//
// Work waits for the kernels before its start, for the work whose done is
// before its start, and for the producers of its inputs. The kernels wait for
// work at its done, if it touches the device. At the border of a trip and of a
// segment they wait for all work. Waits that follow from earlier ones aren't
// repeated: each engine keeps a vector clock of the other engines.

#ifndef TMC_PASSES_EVENTORDER_H
#define TMC_PASSES_EVENTORDER_H

#include "dialects/mem/Mem.h"

#include "mlir/IR/Builders.h"

#include <vector>

namespace tmc {

class EventOrder {
public:
  /// A kernel was launched.
  void launched() { ++at[EngineKind::Compute]; }

  /// Prints the waits before work of `engine` that reads the results of the
  /// works `makers`, numbered by the results of `started`.
  void beforeStart(EngineKind engine, llvm::ArrayRef<int32_t> makers,
                   mlir::OpBuilder &b, mlir::Location loc);
  /// Prints the event of work that is now in the program; returns the work's
  /// number.
  int32_t started(EngineKind engine, mlir::OpBuilder &b, mlir::Location loc);
  /// Prints the done of a work, and the kernels' wait if it touches the device.
  void done(int32_t work, bool touchesDevice, mlir::OpBuilder &b,
            mlir::Location loc);

  /// The kernels wait for all engines. Later work remembers no earlier waits,
  /// since a loop repeats it.
  void border(mlir::OpBuilder &b, mlir::Location loc);

private:
  using Clock = PerEngine<int64_t>;
  struct Event {
    int64_t number;
    EngineKind engine;
    Clock clock; // Entries that come before this event.
  };

  Clock at;                        // Entries of each engine so far.
  PerEngine<Clock> known;          // Entries before the next entry.
  std::vector<Event> works;        // Their events.
  std::vector<int32_t> overOnHost; // Done in this trip; no kernel waited.
  PerEngine<int32_t> last = PerEngine<int32_t>::all(-1); // Works.
  int64_t events = 0;
  Event computed = {-1, EngineKind::Compute, {}}; // The kernels' last event.
  bool computedIsFresh = false;

  Event record(EngineKind engine, mlir::OpBuilder &b, mlir::Location loc);
  void wait(const Event &event, EngineKind engine, mlir::OpBuilder &b,
            mlir::Location loc);
};

} // namespace tmc

#endif // TMC_PASSES_EVENTORDER_H
