// Parts.h - the parts of a problem: values, recipes, spaces and engines.
//
// `Problem.h` gives them their meaning, rule by rule.

#ifndef TMC_COMPILER_PLANNING_MODEL_PARTS_H
#define TMC_COMPILER_PLANNING_MODEL_PARTS_H

#include "runtime/kernels/Machine.h"

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace tmc::planning {

using ValueId = int32_t;
using RecipeId = int32_t;
using InstructionId = int32_t;
using SegmentId = int32_t;
using SpaceId = int32_t;
using EngineId = int32_t;
inline constexpr int32_t kNone = -1;

/// The purpose of a value, for reports only; it decides nothing.
enum class ValueClass : uint8_t {
  Parameter,
  Gradient,
  Optimizer,
  Activation,
  Workspace, // An execution's scratch; not the class of a value.
  Batch,
  Other,
};
struct ValueClassInfo {
  ValueClass kind;
  const char *name;
};
inline constexpr ValueClassInfo kValueClasses[] = {
    {ValueClass::Parameter, "parameters"},
    {ValueClass::Gradient, "gradients"},
    {ValueClass::Optimizer, "optimizer"},
    {ValueClass::Activation, "activations"},
    {ValueClass::Workspace, "workspace"},
    {ValueClass::Batch, "batch"},
    {ValueClass::Other, "other"}};
inline constexpr size_t kNumClasses = std::size(kValueClasses);
constexpr const char *nameOf(ValueClass valueClass) {
  return kValueClasses[size_t(valueClass)].name;
}

enum class ValueKind : uint8_t { Temporary, Persistent, Carried };

/// The most trips that a carried value may lag.
inline constexpr int32_t kMostLag = 64;

struct Value {
  std::string name; // From the model, for messages.
  int64_t bytes = 0;
  ValueClass valueClass = ValueClass::Activation;
  ValueKind kind = ValueKind::Temporary;
  bool liveOut = false;        // Temporary: alive to the end of the step.
  bool pinned = false;         // Never recomputed, moved or dropped.
  ValueId updates = kNone;     // Persistent: the old version this replaces.
  ValueId carriedFrom = kNone; // Carried: starts as its last instance.
  /// Carried: its instance in the first trips.
  ValueId initial = kNone;
  int32_t lag = 1;        // Carried: the trips that it lags behind (R19).
  ValueId formOf = kNone; // The content's main form; kNone: this is it (R9).
  SpaceId space = 0;      // It holds its bytes.
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
  int64_t cost = 0;            // Picoseconds of one execution, on `engine`.
  int64_t workspaceBytes = 0;  // Scratch, in `workspaceSpace`.
  std::vector<Overwrite> overwrites; // In order of preference.
  /// The instruction that this recipe can run for. kNone: it only recomputes (a
  /// pruned variant, a cheaper kernel from other values).
  InstructionId instruction = kNone;
  /// May run in addition to the instructions' own executions.
  bool recomputable = false;
  /// The only segment that it may run in; kNone: any. A recipe that reads a
  /// carried value is bound to the segment that carries it.
  SegmentId segment = kNone;
  EngineId engine = 0;
  SpaceId workspaceSpace = 0;
  /// Part of the host's memory bandwidth that it takes at full speed (R17).
  int32_t busShare = 0;
};

/// The whole bandwidth of the host's memory, in units of `Recipe::busShare`.
inline constexpr int32_t kWholeBus = 1024;

/// Runs exactly once in each trip of its segment, by one of its recipes. All
/// recipes of an instruction make the same contents (R16), so with one form of
/// each they write the same values. `recipes[0]` is the default.
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

using tmc::EngineInfo;
using tmc::EngineKind;
using tmc::kEngines;
using tmc::kSpaces;
using tmc::nameOf;
using tmc::SpaceKind;

/// A place for bytes. Space 0 is the device's own memory, the only one of its
/// kind.
struct MemorySpace {
  std::string name = kSpaces[0].name;
  SpaceKind kind = kSpaces[0].kind;
  int64_t budgetBytes = -1; // -1: no limit.
  /// Counted against the budget; space 0 has `Problem::reservedBytes`.
  int64_t reservedBytes = 0;
};

/// Runs work beside the other engines, first in, first out. Engine 0 computes,
/// the only one of its kind.
struct Engine {
  std::string name = kEngines[0].name;
  EngineKind kind = kEngines[0].kind;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_PARTS_H
