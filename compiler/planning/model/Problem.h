// Problem.h - what a schedule of a training step has to decide, as plain
// values.
//
// A step is a list of *segments*; a segment is a list of *instructions* that
// runs `trips` times: prologue x 1, body x N (one micro-batch each), a peeled
// last body x 1, epilogue x 1. An instruction makes *values* from values by a
// *recipe*. Every instruction runs once in each trip of its segment; beyond
// that, any recomputable recipe may run again, anywhere it is allowed, so that
// a value need not be held between its uses:
//
//     keep        F1 F2 F3 | B3 B2 B1        a1 and a2 held from F to B
//     recompute   F1 F2 F3 | B3 F1 F2 B2 B1  a1 and a2 computed twice
//
// A *solution* says for each segment which recipes run, in which order. One
// entry of that list is an *execution*; the bytes a value holds from one
// execution that writes it on are an *instance* of the value. All of memory
// follows from the solution by these rules, and nothing else is modelled:
//
//  R1 A read takes the latest instance: the one of the last execution before
//     it that writes the value. It is an error if there is none.
//  R2 An instance is alive from the execution that writes it through its last
//     read, both included. An instance without reads is alive only while
//     it is written (unless R5 keeps it).
//  R3 While an execution runs, the instances it reads, those it writes, and
//     `workspaceBytes` are alive together. Each execution is one *moment*.
//  R4 `Overwrite{read, written}`: `written` may take the storage of `read` if
//     that instance of `read` dies at this execution. Then only the larger of
//     the two counts at this moment. A *must* is an in-place update: it is an
//     error if it isn't taken, that is, if anything (a recomputed clone, a tied
//     use, the next trip) reads the old instance later. Each read and each
//     written value takes part in at most one taken overwrite of an execution.
//  R5 A *persistent* value is in memory when the step begins, and when it ends:
//     parameters, optimizer moments, the batch, scalars. It is alive at every
//     moment, its life goes around the end of the step. If value v has
//     `updates = u`, then u is what the step finds and v what it leaves, v must
//     overwrite u, and one of the two is alive at every moment. A temporary
//     value with `liveOut` is alive to the end of the step (the loss).
//  R6 In each trip of its segment but the first, a *carried* value c is the
//     instance that `carriedFrom` had at the end of the trip before: to read c
//     is to read that instance. In the first trip c is the instance of
//     `initial`, or nothing where `initial` is none: the first pass writes
//     where the others add, and a read of nothing costs no bytes.
//  R7 Segments with several trips run the same list each trip. What the
//     segment's own instructions write is forgotten at the start of a trip (a
//     read must come after a write of the same trip; carrying is the only
//     bridge). A value made outside may be read in each trip, so it is alive
//     over all of them but the last, and there to its last read.
//  R8 A buffer has one place for all trips. So what is alive in a body is what
//     is alive in a middle trip, which begins with what is carried and ends
//     with what the next one needs, even where there are but two trips.
//
// So the live bytes of a step are those of its unrolled execution list, of
// which the first, a middle and the last trip of each segment of several show
// every moment there is (`simulate`). The peak is their maximum;
// `reservedBytes` is added where the peak is compared with a budget of the
// device.
//
// A view is not a value: the builder of a problem collapses a view into the
// value whose storage it reads. Sizes are as they will be placed, that is,
// already rounded up to the arena's alignment.
//
// Costs are int64 picoseconds (or any other unit, the same everywhere): sums
// are exact, so a plan and its bound are the same on every machine.

#ifndef TMC_COMPILER_PLANNING_MODEL_PROBLEM_H
#define TMC_COMPILER_PLANNING_MODEL_PROBLEM_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tmc::planning {

using ValueId = int32_t;
using RecipeId = int32_t;
using InstructionId = int32_t;
using SegmentId = int32_t;
inline constexpr int32_t kNone = -1;

/// What a value is for; decides nothing, reports are broken down by it.
enum class ValueClass : uint8_t {
  Parameter,
  Gradient,
  Optimizer,
  Activation,
  Workspace, // An execution's scratch; not the class of a value.
  Batch,
  Other,
};
inline constexpr size_t kNumClasses = 7;
const char *nameOf(ValueClass valueClass);

enum class ValueKind : uint8_t { Temporary, Persistent, Carried };

struct Value {
  std::string name; // The model's own, for messages and reports.
  int64_t bytes = 0;
  ValueClass valueClass = ValueClass::Activation;
  ValueKind kind = ValueKind::Temporary;
  bool liveOut = false;        // Temporary: alive to the end of the step.
  bool pinned = false;         // Never recomputed, moved or dropped.
  ValueId updates = kNone;     // Persistent: the old version this replaces.
  ValueId carriedFrom = kNone; // Carried: whose last instance it begins as.
  ValueId initial = kNone;     // Carried: what it is in the first trip; pinned.
};

/// `written` may (or must) take the storage of `read`.
struct Overwrite {
  ValueId read = kNone;
  ValueId written = kNone;
  bool must = false;
};

/// One way to make values: a kernel, or a chain of kernels run back to back.
struct Recipe {
  std::string name;
  std::vector<ValueId> reads;  // Each at most once.
  std::vector<ValueId> writes; // Each at most once.
  int64_t cost = 0;            // Picoseconds of one execution.
  int64_t workspaceBytes = 0;
  std::vector<Overwrite> overwrites; // In order of preference.
  /// The instruction whose own execution this recipe can be. kNone: it only
  /// recomputes (a pruned variant, a cheaper kernel from other values).
  InstructionId instruction = kNone;
  /// May run in addition to the instructions' own executions.
  bool recomputable = false;
  /// The only segment it may run in, or kNone for any.
  /// Who reads a carried value is bound to the segment that carries it.
  SegmentId segment = kNone;
};

/// Runs exactly once in each trip of its segment, by one of its recipes; all
/// recipes of an instruction write the same values. `recipes[0]` is what runs
/// when nothing is gained by another.
struct Instruction {
  std::string name;
  SegmentId segment = 0;
  std::vector<RecipeId> recipes;
};

struct Segment {
  std::string name;
  int64_t trips = 1;
  /// The program's own order, which a fixed-order plan keeps for the first
  /// executions.
  std::vector<InstructionId> instructions;
};

/// Where bytes can be. Space 0 is the device's own memory, the one that
/// schedules are planned for.
struct MemorySpace {
  std::string name = "device";
  int64_t budgetBytes = -1; // -1: no limit.
};

enum class EngineKind : uint8_t {
  Compute,
  DeviceToHost,
  HostToDevice,
  Nvme,
  Host
};

/// What does work at its own rate beside the others. Engine 0 computes and is
/// what `Recipe::cost` is spent on; transfers are bytes over `bytesPerSecond`.
struct Engine {
  std::string name = "compute";
  EngineKind kind = EngineKind::Compute;
  double bytesPerSecond = 0;
};

struct Problem {
  std::vector<Value> values;
  std::vector<Recipe> recipes;
  std::vector<Instruction> instructions;
  std::vector<Segment> segments;
  std::vector<MemorySpace> spaces = {MemorySpace{}};
  std::vector<Engine> engines = {Engine{}};
  int64_t reservedBytes = 0; // Context, handles: counted against the budget.

  ValueId addValue(Value value);
  RecipeId addRecipe(Recipe recipe);
  SegmentId addSegment(std::string name, int64_t trips = 1);
  /// Adds an instruction at the end of `segment` with its first recipe, whose
  /// `instruction` it sets; and its `segment`, where that has several trips or
  /// a carried value is read.
  InstructionId addInstruction(SegmentId segment, Recipe recipe);
  /// Another recipe that `instruction` may run by.
  RecipeId addVariant(InstructionId instruction, Recipe recipe);
};

/// The first thing wrong with `problem`, in words with names and numbers:
/// indices, negative sizes, sums that overflow, an order in which something is
/// read before it is made, an in-place update that can't be in place.
absl::Status check(const Problem &problem);

/// One entry of a segment's list.
struct Execution {
  RecipeId recipe = kNone;
  /// The instruction whose own execution this is; kNone for a recomputation.
  InstructionId instruction = kNone;
  /// Indices into the recipe's `overwrites` that are taken.
  std::vector<int32_t> overwrites;
};

struct Solution {
  /// `segments[s]` is the list of segment s, the same for each of its trips.
  std::vector<std::vector<Execution>> segments;
};

/// Every instruction once, by its first recipe, in the program's order, each
/// possible overwrite taken.
Solution baseSolution(const Problem &problem);

/// Replaces the overwrites of every execution by those that R4 permits there,
/// first come first served in the recipe's order. Never raises the live bytes.
void takeOverwrites(const Problem &problem, Solution &solution);

/// Cost of the solution: each execution times the trips of its segment.
int64_t costOf(const Problem &problem, const Solution &solution);
int64_t baseCost(const Problem &problem);

/// Memory of one solution over the moments of its unrolled list, of which
/// segments of several trips show the first, a middle one and the last.
struct Profile {
  struct Moment {
    SegmentId segment = 0;
    int32_t trip = 0;  // 0, 1 or 2 of those shown.
    int32_t index = 0; // Into the segment's list.
  };
  std::vector<Moment> moments;
  std::vector<int64_t> liveBytes; // One per moment, reserved left out.
  int64_t peakBytes = 0;
  size_t peakMoment = 0;
  /// What is alive at `peakMoment`, by class; sums to `peakBytes`.
  std::array<int64_t, kNumClasses> peakByClass = {};
};

/// Live bytes at each moment. An error names the first rule that is broken.
absl::StatusOr<Profile> simulate(const Problem &problem,
                                 const Solution &solution);

/// An instance of a value: written at moment `begin` (-1: before the step),
/// alive through moment `last` inclusive (moments.size(): to the step's end).
struct Instance {
  ValueId value = kNone;
  int32_t begin = 0;
  int32_t last = 0;
  /// The instance whose storage this one took over (overwrite or carry), or
  /// kNone. Those of one chain share an offset.
  int32_t storageOf = kNone;
};

/// Every instance of the unrolled list, moments as in `simulate`: what a
/// packing needs. In ascending order of `begin`.
absl::StatusOr<std::vector<Instance>> instancesOf(const Problem &problem,
                                                  const Solution &solution);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_PROBLEM_H
