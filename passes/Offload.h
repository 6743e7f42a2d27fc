// Offload.h - `--offload`: what of a step may leave the device.
//
//     none           nothing
//     activations    what kernels make: activations, gradients
//     optimizer      moments; an update on the device has them fetched, one on
//                    the host has the parameter brought, and sends it back
//     parameters     parameters
//     all            all of them; or several, as "activations,optimizer"
//     auto           all of them, where the step doesn't fit without, or is
//                    slowed down by recomputing and a hundredth quicker so
//
// What may leave leaves where that makes the step quicker.

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

  /// The specification as the flag takes it.
  std::string text() const;
  /// An error: a message for the user.
  static llvm::Expected<OffloadSpec> parse(llvm::StringRef text);
};

/// The specification that the option of a pass says in words. Fails at `op`.
mlir::FailureOr<OffloadSpec> offloadNamed(mlir::Operation *op,
                                          llvm::StringRef text);

/// Bytes that a plan may take of each space.
struct SpaceBudgets {
  int64_t device = -1; // -1: no limit.
  int64_t host = -1;   // -1: the target's memory.
  int64_t file = 0;    // 0: there is none; -1: the target's.
};

/// Offers in a step's problem what `spec` lets leave, at the rates of `target`,
/// and sets its budgets.
absl::Status offerMoves(StepProblem &stated, const OffloadSpec &spec,
                        const Target &target, const SpaceBudgets &budgets);

} // namespace tmc

#endif // TMC_PASSES_OFFLOAD_H
