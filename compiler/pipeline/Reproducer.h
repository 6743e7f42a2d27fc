// Reproducer.h - a file with which a defect of ours can be seen again.
//
// It holds the IR before the phase that failed and that phase's passes:
//
//     tmc-opt --run-reproducer /tmp/tmc-crash-3f2a....mlir
//
// The model is a user's own: the file has a random name, is new, and nobody
// else can read it.

#ifndef TMC_COMPILER_PIPELINE_REPRODUCER_H
#define TMC_COMPILER_PIPELINE_REPRODUCER_H

#include "mlir/Pass/PassManager.h"

#include <functional>
#include <string>

namespace tmc {

class Reproducer {
public:
  /// Keeps the IR that `manager` begins with. `isDefect` is asked when a pass
  /// has failed; where it says no, nothing is written.
  Reproducer(mlir::PassManager &manager, std::function<bool()> isDefect);

  /// A pass failed or crashed: whatever diagnostics follow aren't the pass's.
  bool hasFailed() const { return failed; }

  /// Writes the file in the directory for temporary files; returns a note that
  /// names it, or says why there is none.
  std::string write() const;

private:
  std::string text;
  bool failed = false;
};

/// Writes `text` as a reproducer, and returns such a note.
std::string writeReproducer(const std::string &text);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_REPRODUCER_H
