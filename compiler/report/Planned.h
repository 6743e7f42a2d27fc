// Planned.h - a planned step as the reports see it: its figures, its trace, the
// model's values. The planner's caller fills it; reports use nothing else.

#ifndef TMC_COMPILER_REPORT_PLANNED_H
#define TMC_COMPILER_REPORT_PLANNED_H

#include "compiler/analysis/PlanRecord.h"
#include "compiler/analysis/StepWork.h"
#include "compiler/report/PlanTrace.h"
#include "compiler/target/AlgorithmFile.h"
#include "runtime/kernels/DType.h"
#include "runtime/kernels/Mesh.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

/// A parameter or state of the model: a value that exists before the first
/// step.
struct ModelValue {
  enum Kind { Trained, Frozen, State };
  std::string name;                 // The model's own.
  std::vector<std::string> aliases; // Other names of the same weight.
  Kind kind = Trained;
  DType type = DType::F32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

/// "trained", "frozen", "state": the keys of plan.json.
const char *nameOf(ModelValue::Kind kind);

/// A lever that tmc chose, and the best coarse plan with another value of it:
/// with a less harmful value if there is one.
struct ChosenLever {
  std::string lever, value; // "precision", "bf16"
  std::string instead;      // "f32"; empty: no other is known.
  double seconds = -1;      // The fastest known plan; -1: no plan.
  double atLeast = -1;      // Without a plan: the bound of every plan.
};

/// The figures of a finished plan, for plan.json and the reports. A negative
/// number is unknown.
struct PlanFigures {
  /// As the IR carries them, but its bounds hold for every plan that the flags
  /// allow with the levers' chosen values, and `boundPs` for the orders that
  /// `boundOrder` says.
  PlanRecord record;
  enum class BoundOrder { Plan, Program } boundOrder = BoundOrder::Plan;
  /// No plan takes less in any order, if nothing may leave the device.
  int64_t anyOrderPs = -1;
  /// -1: no limit, or nothing may leave the device.
  PerSpace<int64_t> budgetBytes = PerSpace<int64_t>::all(-1);
  /// The budgets beside the device are the target's, which assumes them.
  bool isHostAssumed = false;
  /// -1 outside the device: nothing is there, nothing moves.
  PerSpace<int64_t> arenaBytes = PerSpace<int64_t>::all(-1);
  /// Of the step without a budget, in the program's own order: the same for all
  /// budgets. Where a step has several forms the quickest one that was planned;
  /// where levers are free the first setting that any search looks at.
  double unconstrainedSeconds = -1;
  int64_t unconstrainedBytes = -1; // Reserved left out.
  /// The work limit ended the search for the smallest budget.
  bool smallestStoppedEarly = false;
  /// Bytes of the parameters' 16-bit copies that updates write; 0: none.
  int64_t keptCopyBytes = 0;
  /// Bytes that a trainer may take to load values, beside its arenas.
  int64_t loadStagingBytes = -1;
  int64_t launches = -1, copies = -1, transfers = -1, hostUpdates = -1;
  StepWork work;
  Mesh mesh; // The ranks that each run the step on their part of the batch.
  int64_t shardLevel = 0;  // Shards that a rank keeps: passes/Shard.cpp.
  int64_t wholeParams = 0; // Its `whole`.
  bool addsShards = false; // Its `shards`.
  int64_t microBatches = 1;
  int64_t lossChunk = 0; // Rows of logits held at once; 0: all.
  int64_t tiles = 1;     // Tiles of rows between wide products.
  std::string batchNorm; // The source of statistics, if not the whole batch.
  /// With several micro-batches: the peak of the step with one micro-batch and
  /// without in-place results, and its predicted time without a budget.
  int64_t unsplitBytes = -1;
  double unsplitSeconds = -1;
  double planSeconds = 0;
  /// If levers were free: the chosen ones, the number of settings that were
  /// planned, and the number of all settings.
  std::vector<ChosenLever> chosenLevers;
  int64_t settingsSeen = 0, settings = 0;

  bool isBudgetAssumed(SpaceKind space) const {
    return isHostAssumed && !onDevice(space) && infoOf(space).hasAddresses &&
           budgetBytes[space] >= 0;
  }
  double stepSeconds() const { return secondsOf(record.costPs); }
  /// Of all kernels of this step's program, each once.
  double kernelSeconds() const { return secondsOf(record.unconstrainedCostPs); }
  double boundSeconds() const { return secondsOf(record.boundPs); }
  /// The predicted seconds that an engine works; 0 where nothing moves.
  double busySeconds(EngineKind engine) const {
    return std::max(0.0, secondsOf(record.busyPs[engine]));
  }
  /// The predicted seconds that the host's memory would take alone for all
  /// copies and updates; -1: it isn't limited.
  double hostMemorySeconds() const {
    return record.hostMemoryPs < 0 ? -1 : secondsOf(record.hostMemoryPs);
  }
  /// Bytes that a step copies away from the device.
  int64_t offloadedBytes() const;
  double overheadPct() const;
  double lowerBoundPct() const;
  double anyOrderPct() const;
  /// The part of the time above the kernels of every plan that is proved to be
  /// needed, by the better bound. -1: unknown, or there is no such time.
  double provedSharePct() const;
  /// True if the bound for one order says at least a point more than the one
  /// for every order.
  bool isBoundByOrder() const;
};

/// Tells one plan from another. Fingerprints are hexadecimal digits of hashes.
struct Provenance {
  std::string version;              // "0.1.0", tmc's.
  std::vector<std::string> command; // As it was given, with the program's name.
  std::string date;                 // "2026-11-30T07:04:13Z"; empty: unknown.
  /// The forward function's, as it was read: its ops, their types and names.
  std::string model;
  /// That of the plan's trace, without names and budget: the order of launches,
  /// and the place of each buffer.
  std::string plan;
};

struct Planned {
  std::string model, target; // Their names.
  std::string compiledFor;   // "cpu:v4": Target::compiledFor.
  /// Target's, of the same names.
  std::string standsFor, measuredOn, measuredDate, ownMeasuredOn;
  const PlanFigures &figures;
  const PlanTrace &trace;
  const std::vector<ModelValue> &values;
  int64_t weightBytes = -1;  // Copied beside the step; -1: not requested.
  int64_t recordedBytes = 0; // Of weights that stay where they are.
  /// For a compiled step: its library's file and its identity; empty: only a
  /// plan.
  std::string library, identity;
  const AlgorithmFile *algorithms = nullptr; // For products; null: none.
  Provenance made;
};

/// The seconds between which a step should lie, given the certainty of its
/// kernels' prices; -1: unknown. Waits keep their length.
struct StepLimits {
  double least = -1, most = -1;
};
StepLimits stepLimits(const Planned &planned);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_PLANNED_H
