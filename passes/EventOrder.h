// EventOrder.h - the events that order engines as a plan says.
//
// A plan orders work by where its start and its done stand among the kernels
// (compiler/planning/model/Problem.h, R12). A program orders it by events:
//
//     plan       f1   stash(                    f2   )stash   f3
//     program    f1   record 0 on compute       f2   wait 1   f3
//                     wait 0 on d2h                  done 1
//                     copy, record 1 on d2h
//
// Work waits for the kernels before its start; for the work whose done stands
// before its start; and for what makes its inputs. The kernels wait for work at
// its done, if it touches the device. At the border of a trip and of a segment
// they wait for everything. What follows from other waits isn't waited for
// again: each engine remembers how far it is behind each other one.

#ifndef TMC_PASSES_EVENTORDER_H
#define TMC_PASSES_EVENTORDER_H

#include "dialects/mem/Mem.h"

#include "mlir/IR/Builders.h"

#include <array>
#include <vector>

namespace tmc {

class EventOrder {
public:
  /// A kernel was launched.
  void launched() { ++at[kCompute]; }

  /// Prints the waits before work of `engine` that reads what the works
  /// `makers` make. Number the works by what `started` returns.
  void beforeStart(mem::Engine engine, llvm::ArrayRef<int32_t> makers,
                   mlir::OpBuilder &b, mlir::Location loc);
  /// The work stands in the program: prints its event.
  int32_t started(mem::Engine engine, mlir::OpBuilder &b, mlir::Location loc);
  /// Its done, with the kernels' wait if it touches the device.
  void done(int32_t work, bool touchesDevice, mlir::OpBuilder &b,
            mlir::Location loc);

  /// The kernels wait for all engines; work to come knows nothing of what was,
  /// since in a loop it comes again.
  void border(mlir::OpBuilder &b, mlir::Location loc);

private:
  static constexpr size_t kCompute = size_t(mem::Engine::Compute), kEngines = 6;
  using Clock = std::array<int64_t, kEngines>;
  struct Event {
    int64_t number;
    size_t engine;
    Clock clock; // What comes after it comes after that.
  };

  Clock at = {};                          // Entries of each engine so far.
  std::array<Clock, kEngines> known = {}; // What the next entry comes after.
  std::vector<Event> works;               // Their events.
  std::vector<int32_t> overOnHost; // Done, of this trip; no kernel waited.
  std::array<int32_t, kEngines> last = {-1, -1, -1, -1, -1, -1};
  int64_t events = 0;
  Event computed = {-1, kCompute, {}}; // The kernels' last event.
  bool computedIsFresh = false;

  Event record(size_t engine, mlir::OpBuilder &b, mlir::Location loc);
  void wait(const Event &event, size_t engine, mlir::OpBuilder &b,
            mlir::Location loc);
};

} // namespace tmc

#endif // TMC_PASSES_EVENTORDER_H
