// OnTarget.h - passes that need the target, for callers that have it.
//
// A pipeline finds its target once and gives it to each pass as a value. The
// option `target` of these passes names the same target for a reproducer and
// for `tmc-opt`, which have text only: the pass then reads the named file.

#ifndef TMC_PASSES_ONTARGET_H
#define TMC_PASSES_ONTARGET_H

#include "compiler/target/Target.h"
#include "passes/Passes.h"

#include <optional>

namespace tmc {

/// The target of a pass: the value that it was made with, else the one that the
/// option names.
class PassTarget {
public:
  PassTarget() = default;
  explicit PassTarget(Target target) : given(std::move(target)) {}

  /// Fails at `op` where `name` names no target.
  mlir::FailureOr<Target> of(mlir::Operation *op,
                             const std::string &name) const {
    if (given)
      return *given;
    absl::StatusOr<Target> found = findTarget(name);
    if (!found.ok())
      return op->emitError() << found.status().message();
    return *found;
  }

private:
  std::optional<Target> given;
};

std::unique_ptr<mlir::Pass> createPrecision(PrecisionOptions options,
                                            const Target &target);
std::unique_ptr<mlir::Pass> createRoundAsRead(RoundAsReadOptions options,
                                              const Target &target);
std::unique_ptr<mlir::Pass> createVerifyKernels(VerifyKernelsOptions options,
                                                const Target &target);
std::unique_ptr<mlir::Pass> createLower(LowerOptions options,
                                        const Target &target);

} // namespace tmc

#endif // TMC_PASSES_ONTARGET_H
