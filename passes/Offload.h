// Offload.h - `--offload`: the values of a step that may leave the device.
//
//     none           nothing
//     activations    results of kernels: activations, gradients
//     optimizer      moments; an update on the device fetches them, one on
//                    the host fetches the parameter and sends it back
//     parameters     parameters
//     all            all of them; or several, as "activations,optimizer"
//     auto           all of them, if the step doesn't fit without moves, or
//                    recomputes and gets at least 1 % faster by moves
//
// A value leaves only if that makes the step faster.

#ifndef TMC_PASSES_OFFLOAD_H
#define TMC_PASSES_OFFLOAD_H

#include "compiler/analysis/StepProblem.h"
#include "compiler/target/Target.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace tmc {

struct OffloadSpec {
  bool activations = false, optimizer = false, parameters = false;
  bool onlyIfNeeded = false; // auto

  bool operator==(const OffloadSpec &) const = default;
  bool isNone() const { return !activations && !optimizer && !parameters; }

  static constexpr OffloadSpec all() { return {true, true, true, false}; }
  static constexpr OffloadSpec asNeeded() { return {true, true, true, true}; }

  /// The specification as text for the flag.
  std::string text() const;
  /// An error: a message for the user.
  static llvm::Expected<OffloadSpec> parse(llvm::StringRef text);
};

/// The specification in the text of a pass's option. Fails at `op`.
mlir::FailureOr<OffloadSpec> offloadNamed(mlir::Operation *op,
                                          llvm::StringRef text);

/// A budget in bytes: no limit but the target's own, if that is known.
inline constexpr int64_t kNoLimit = -1;

/// Adds the moves that `spec` allows to a step's problem, at the rates of
/// `target`, and sets its budgets: bytes that a plan may take of each space
/// (compiler/analysis/HostMoves.h).
absl::Status offerMoves(StepProblem &stated, const OffloadSpec &spec,
                        const Target &target, const PerSpace<int64_t> &budgets);

} // namespace tmc

#endif // TMC_PASSES_OFFLOAD_H
