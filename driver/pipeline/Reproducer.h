// Reproducer.h - a file that reproduces a defect of tmc.
//
// It holds the IR before the phase that failed and that phase's passes:
//
//     tmc-opt --run-reproducer /tmp/tmc-crash-3f2a....mlir
//
// The model may be secret: the file has a random name, is new, and only its
// owner can read it.

#ifndef TMC_DRIVER_PIPELINE_REPRODUCER_H
#define TMC_DRIVER_PIPELINE_REPRODUCER_H

#include "mlir/Pass/PassManager.h"

#include <functional>
#include <string>

namespace tmc {

class Reproducer {
public:
  /// Keeps the IR before `manager` runs. `isDefect` is called after a failed
  /// pass; if it returns false, nothing is written.
  Reproducer(mlir::PassManager &manager, std::function<bool()> isDefect);

  /// Whether a pass failed or crashed: later diagnostics aren't the pass's.
  bool hasFailed() const { return failed; }

  /// Writes the file in the directory for temporary files; returns a note with
  /// its name, or with the reason of a failure.
  std::string write() const;

private:
  std::string text;
  bool failed = false;
};

/// Writes `text` as a reproducer, and returns such a note.
std::string writeReproducer(const std::string &text);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_REPRODUCER_H
