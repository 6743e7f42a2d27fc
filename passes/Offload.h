// Offload.h - `--offload`: what of a step may leave the device.
//
//     none           nothing
//     activations    what kernels make: activations, gradients
//     optimizer      moments; an update on the device has them fetched
//     parameters     parameters
//     optimizer,parameters   both, and updates may run on the host
//     all            all of them; or several, as "activations,optimizer"
//     auto           all of them, where the step doesn't fit without
//
// What may leave leaves where that makes the step quicker.

#ifndef TMC_PASSES_OFFLOAD_H
#define TMC_PASSES_OFFLOAD_H

#include "compiler/planning/model/OfferMoves.h"
#include "compiler/target/Target.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tmc {

struct OffloadSpec {
  bool activations = false, optimizer = false, parameters = false;
  bool onlyIfNeeded = false; // auto

  bool isNone() const { return !activations && !optimizer && !parameters; }

  /// An error: a message for the user.
  static llvm::Expected<OffloadSpec> parse(llvm::StringRef text);
};

/// What a target's host offers to a step with this spec. Budgets in bytes; of
/// the host -1: the target's memory; of files -1: no limit, 0: none.
planning::MoveOptions moveOptions(const OffloadSpec &spec, const Target &target,
                                  int64_t hostBudget, int64_t fileBudget);

} // namespace tmc

#endif // TMC_PASSES_OFFLOAD_H
