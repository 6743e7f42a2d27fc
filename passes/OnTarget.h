// OnTarget.h - passes that need the target, for callers that have it.
//
// A pipeline finds its target once and gives it to each pass as a value. The
// option `target` of these passes names the same target for a reproducer and
// for `tmc-opt`, which have text only: their passes are made with a function
// that finds a target by its name. No pass opens a file by itself.

#ifndef TMC_PASSES_ONTARGET_H
#define TMC_PASSES_ONTARGET_H

#include "compiler/target/Target.h"
#include "passes/Passes.h"

#include <functional>
#include <optional>

namespace tmc {

/// Finds a target by the name that `--target` takes.
using FindTarget = std::function<absl::StatusOr<Target>(const std::string &)>;

/// The target of a pass: the value that it was made with, or the one that is
/// found by the name in its option.
class PassTarget {
public:
  PassTarget() = default;
  PassTarget(Target target) : given(std::move(target)) {}
  explicit PassTarget(FindTarget find) : find(std::move(find)) {}

  /// Fails at `op` where `name` names no target.
  mlir::FailureOr<Target> of(mlir::Operation *op,
                             const std::string &name) const {
    if (given)
      return *given;
    if (!find)
      return op->emitError() << "the pass was made without a target";
    absl::StatusOr<Target> found = find(name);
    if (!found.ok())
      return op->emitError() << found.status().message();
    return *found;
  }

private:
  std::optional<Target> given;
  FindTarget find;
};

/// Registers all passes; those that need the target find it by `find`.
void registerPasses(const FindTarget &find);

std::unique_ptr<mlir::Pass> createPrecision(PrecisionOptions options,
                                            PassTarget target);
std::unique_ptr<mlir::Pass> createRoundAsRead(RoundAsReadOptions options,
                                              PassTarget target);
std::unique_ptr<mlir::Pass>
createChooseAttention(ChooseAttentionOptions options, PassTarget target);
std::unique_ptr<mlir::Pass> createVerifyKernels(VerifyKernelsOptions options,
                                                PassTarget target);
std::unique_ptr<mlir::Pass> createLower(LowerOptions options,
                                        PassTarget target);

} // namespace tmc

#endif // TMC_PASSES_ONTARGET_H
