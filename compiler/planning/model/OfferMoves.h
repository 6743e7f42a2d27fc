// OfferMoves.h - a host beside the device, and a file behind the host: what of
// a step may move there.
//
// A step's problem knows the device alone (`StepProblem.h`). Here it gets a
// space and three engines more, and forms in that space:
//
//   - Of each temporary large enough to be worth a transfer, of parameters and
//     of what updates change: stash and fetch.
//   - Of an optimizer's updates a variant that the host runs, on the forms
//     there; whatever they read or write gets a form, too.
//
// Parameters, moments and whatever else an update changes may be at home on
// either side. Nothing has to move: the plans of the problem before are plans
// of this one.
//
// With a file (`fileReadBandwidth`) there are a third space, two engines and,
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

namespace tmc::planning {

struct MoveOptions {
  int64_t linkBandwidth = 25'000'000'000; // Bytes a second, each direction.
  int64_t linkLatency = 10'000'000;       // Picoseconds of every transfer.
  int64_t hostBandwidth = 50'000'000'000; // Of an update on the host.
  int64_t hostBudget = -1;                // Bytes; -1: no limit.
  int64_t leastBytes = 1 << 20;           // Of a temporary that may move.
  bool activations = true, states = true; // What may move.
  /// Bytes a second from the file; 0: there is no file.
  int64_t fileReadBandwidth = 0;
  int64_t fileWriteBandwidth = 0;    // 0: as from it.
  int64_t fileLatency = 100'000'000; // Picoseconds of every read and write.
  int64_t fileBudget = -1;           // Bytes; -1: no limit.
};

/// Offers the moves. An error where the problem has more than one space. Its
/// loops get exact trips (R15); what is carried from trip to trip stays.
absl::Status offerMoves(Problem &problem, const MoveOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_OFFERMOVES_H
