// OfferMoves.h - a host beside the device, and a file behind the host: what of
// a step may move there.
//
// A step's problem knows the device alone (`StepProblem.h`). Here it gets a
// space and three engines more, and forms in that space:
//
//   - Of each temporary large enough to be worth a transfer, of parameters and
//     of what updates change: stash and fetch. Of parameters that nothing
//     updates: fetch.
//   - Of an optimizer's updates a variant that the host runs, on the forms
//     there, if it has the kernel; whatever they read or write gets a form,
//     too.
//
// Parameters, moments and whatever else an update changes may be at home on
// either side. Nothing has to move: the plans of the problem before are plans
// of this one.
//
// With a file (`fileRead.bandwidth`) there are a third space, two engines and,
// of what has a form on the host and is large enough, a form in the file:
//
//     a  <- stash, fetch ->  a@host  <- write, read ->  a@file
//
// A form goes to the file and comes back through the host alone. So a plan with
// the states in the file is one of: read, update on the host, write; or read,
// fetch, update on the device, stash, write.

#ifndef TMC_COMPILER_PLANNING_MODEL_OFFERMOVES_H
#define TMC_COMPILER_PLANNING_MODEL_OFFERMOVES_H

#include "compiler/planning/model/Problem.h"

#include "absl/status/status.h"

#include <functional>

namespace tmc::planning {

/// What one transfer, or one update, takes.
struct MoveRate {
  int64_t bandwidth = 0; // Bytes a second.
  int64_t latency = 0;   // Picoseconds, whatever the bytes.
};

struct MoveOptions {
  MoveRate toHost = {25'000'000'000, 10'000'000};
  MoveRate toDevice = toHost;
  MoveRate update = {50'000'000'000, 0}; // On the host; what it touches there.
  int64_t hostBudget = -1;               // Bytes; -1: no limit.
  int64_t leastBytes = 1 << 20;          // Of a temporary that may move.
  /// What may move: temporaries; moments; parameters. The host runs an update
  /// where its moments may be at home there; a parameter that may not comes
  /// and goes.
  bool activations = true, optimizer = true, parameters = true;
  /// Whether the host has the kernel of an instruction's update. Null: of each.
  std::function<bool(InstructionId)> runsOnHost = nullptr;
  /// From and to the file; without a bandwidth from it there is no file, and
  /// without one to it, that is as fast.
  MoveRate fileRead = {0, 100'000'000}, fileWrite = {0, 100'000'000};
  int64_t fileBudget = -1; // Bytes; -1: no limit.
};

/// Offers the moves. An error where the problem has more than one space. Its
/// loops get exact trips (R15); what is carried from trip to trip stays.
absl::Status offerMoves(Problem &problem, const MoveOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_OFFERMOVES_H
