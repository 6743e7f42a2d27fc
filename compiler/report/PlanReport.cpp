#include "compiler/report/PlanReport.h"

#include "compiler/emit/Emit.h"
#include "compiler/support/Json.h"

#include "llvm/Support/Format.h"

using namespace mlir;
using namespace tmc;

namespace json = llvm::json;

const char *tmc::nameOf(ModelValue::Kind kind) {
  constexpr const char *kNames[] = {"trained", "frozen", "state"};
  return kNames[kind];
}

int64_t PlanFigures::offloadedBytes() const {
  int64_t sum = 0;
  for (auto [engine, bytes] : record.movedBytes)
    if (engine.copies && onDevice(engine.reads))
      sum += std::max<int64_t>(bytes, 0);
  return sum;
}

double PlanFigures::overheadPct() const {
  return unconstrainedSeconds > 0
             ? 100 * (stepSeconds() / unconstrainedSeconds - 1)
             : 0;
}

double PlanFigures::lowerBoundPct() const {
  return unconstrainedSeconds > 0 && record.boundPs >= 0
             ? 100 * (boundSeconds() / unconstrainedSeconds - 1)
             : 0;
}

double PlanFigures::anyOrderPct() const {
  return unconstrainedSeconds > 0 && anyOrderPs >= 0
             ? 100 * (secondsOf(anyOrderPs) / unconstrainedSeconds - 1)
             : 0;
}

double PlanFigures::provedSharePct() const {
  const int64_t proven = std::max(record.boundPs, anyOrderPs);
  if (proven < 0 || record.loadPs < 0 || record.costPs <= record.loadPs)
    return -1;
  return 100 * double(std::max<int64_t>(proven - record.loadPs, 0)) /
         double(record.costPs - record.loadPs);
}

bool PlanFigures::isBoundByOrder() const {
  constexpr double kWorthTelling = 1; // In percent of the time.
  return record.boundPs >= 0 &&
         (anyOrderPs < 0 || lowerBoundPct() >= anyOrderPct() + kWorthTelling);
}

/// A figure, or null if it isn't known.
static json::Value known(int64_t value) {
  return value < 0 ? json::Value(nullptr) : json::Value(value);
}

static json::Value known(double value) {
  return value < 0 ? json::Value(nullptr) : json::Value(value);
}

/// The number, bytes and names of the model's values, by kind.
static json::Object valuesJson(const Planned &planned) {
  json::Object object;
  for (auto kind :
       {ModelValue::Trained, ModelValue::Frozen, ModelValue::State}) {
    int64_t bytes = 0;
    json::Array names;
    for (const ModelValue &value : planned.values)
      if (value.kind == kind) {
        bytes += value.bytes;
        names.push_back(value.name);
      }
    int64_t count = names.size();
    object[nameOf(kind)] = json::Object{
        {"count", count}, {"bytes", bytes}, {"names", std::move(names)}};
  }
  return object;
}

/// The place of the peak; null if there is no plan.
static json::Value peakJson(const PlanTrace &trace) {
  if (size_t(trace.peakLaunch) >= trace.launches.size())
    return nullptr;
  const PlanTrace::Launch &peak = trace.launches[trace.peakLaunch];
  return json::Object{{"at", peak.name},
                      {"line", peak.where.empty() ? json::Value(nullptr)
                                                  : json::Value(peak.where)},
                      {"phase", nameOf(peak.phase)},
                      {"launch", trace.peakLaunch},
                      {"tensors_alive", int64_t(aliveAtPeak(trace).size())}};
}

/// The precision that was asked for, and its effect; null if there is no plan.
static json::Value precisionJson(const PlanTrace &trace,
                                 const PlanFigures &plan) {
  if (trace.launches.empty())
    return nullptr;
  json::Object products, exceptions, bytes;
  for (const PlanTrace::Products &each : trace.products)
    products[each.name] = each.count;
  for (const PlanTrace::Products &each : trace.exceptions)
    exceptions[each.name] = each.count;
  for (const auto &[type, alive] : trace.peakByType())
    bytes[type] = alive;
  return json::Object{{"asked", trace.precision},
                      {"products", std::move(products)},
                      {"exceptions", std::move(exceptions)},
                      {"peak_by_type", std::move(bytes)},
                      {"kept_copies_bytes", plan.keptCopyBytes}};
}

/// The peak as levers are added one by one, and the cost of each.
static json::Value leversJson(const PlanFigures &plan, const PlanTrace &trace) {
  const planning::Levers &levers = trace.levers;
  if (levers.plainPeak <= 0)
    return nullptr;
  bool split = plan.microBatches > 1 && plan.unsplitBytes >= 0;
  return json::Object{
      {"micro_batches_bytes",
       split ? json::Value(plan.unsplitBytes - levers.plainPeak)
             : json::Value(nullptr)},
      {"micro_batches_s",
       split ? json::Value(plan.kernelSeconds() - plan.unsplitSeconds)
             : json::Value(nullptr)},
      {"in_place_bytes", levers.plainPeak - levers.inPlacePeak},
      {"order_bytes", levers.inPlacePeak - levers.orderPeak},
      {"early_updates_bytes",
       levers.lateUpdatePeak < 0
           ? json::Value(nullptr)
           : json::Value(levers.lateUpdatePeak - levers.orderPeak)},
      {"recompute_bytes", levers.orderPeak - levers.recomputedPeak},
      {"recompute_s", double(levers.recomputeCost) * 1e-12},
      {"moves_bytes", levers.recomputedPeak - levers.planPeak},
      {"moves_s", double(levers.movesCost) * 1e-12},
      {"activations_moved_bytes", levers.activations.bytes},
      {"activations_moved_s", double(levers.activations.cost) * 1e-12},
      {"optimizer_moved_bytes", levers.optimizer.bytes},
      {"optimizer_moved_s", double(levers.optimizer.cost) * 1e-12},
      {"parameters_moved_bytes", levers.parameters.bytes},
      {"parameters_moved_s", double(levers.parameters.cost) * 1e-12}};
}

/// The memory beside the device, and the moves of a step; null if nothing
/// moves.
static json::Value spacesJson(const PlanFigures &plan, const PlanTrace &trace) {
  if (!plan.record.hasOthers())
    return nullptr;
  json::Object spaces{{"transfers", plan.transfers},
                      {"host_updates", plan.hostUpdates}};
  for (const SpaceInfo &space : kSpaces)
    if (!onDevice(space.kind))
      spaces[space.name] = json::Object{
          {"budget_bytes", known(plan.budgetBytes[space.kind])},
          {"budget_is_assumed", plan.isBudgetAssumed(space.kind)},
          {"arena_bytes", known(plan.arenaBytes[space.kind])},
          {"live_peak_bytes", known(plan.record.livePeakBytes[space.kind])}};
  json::Object busy, waits, moved;
  for (const EngineInfo &engine : kEngines)
    busy[engine.name] = plan.busySeconds(engine.kind);
  for (auto [engine, seconds] : trace.waitSeconds())
    if (seconds > 0)
      waits[engine.name] = seconds;
  for (auto [engine, bytes] : plan.record.movedBytes)
    if (bytes >= 0)
      moved[engine.name] = bytes;
  spaces["busy_s"] = std::move(busy);
  spaces["host_memory_s"] = plan.hostMemorySeconds() < 0
                                ? json::Value(nullptr)
                                : json::Value(plan.hostMemorySeconds());
  spaces["waits_s"] = std::move(waits);
  spaces["moved_bytes"] = std::move(moved);
  return spaces;
}

/// The levers that were free; null if none was.
static json::Value chosenJson(const PlanFigures &plan) {
  if (plan.chosenLevers.empty())
    return nullptr;
  json::Array levers;
  for (const ChosenLever &lever : plan.chosenLevers)
    levers.push_back(json::Object{
        {"lever", lever.lever},
        {"value", lever.value},
        {"instead", lever.instead.empty() ? json::Value(nullptr)
                                          : json::Value(lever.instead)},
        {"instead_step_time_s", known(lever.seconds)},
        {"instead_at_least_s", known(lever.atLeast)}});
  return json::Object{{"settings", plan.settings},
                      {"settings_seen", plan.settingsSeen},
                      {"levers", std::move(levers)}};
}

/// The launches of the device and the bytes of each family of kernels.
static json::Value familiesJson(const StepWork &work) {
  json::Object families;
  for (const auto &[name, family] : work.families)
    families[name] =
        json::Object{{"device_launches",
                      known(work.deviceLaunches < 0 ? -1 : family.launches)},
                     {"bytes", family.bytes}};
  return families;
}

static json::Value nameOrNull(const std::string &name) {
  return name.empty() ? json::Value(nullptr) : json::Value(name);
}

/// The sources of the kernels' times. The limits of the step follow from those
/// of its kernels; waits keep their length.
static json::Value pricesJson(const Planned &planned) {
  const PriceSum &prices = planned.trace.prices;
  json::Object seconds;
  for (const auto &[source, ps] : prices.picoseconds)
    seconds[nameOf(source)] = secondsOf(ps);
  const StepLimits limits = stepLimits(planned);
  return json::Object{
      {"from", nameOf(prices.mainSource())},
      {"seconds", std::move(seconds)},
      {"stands_for", nameOrNull(planned.standsFor)},
      {"measured_on", nameOrNull(planned.measuredOn)},
      {"measured_date", nameOrNull(planned.measuredDate)},
      {"own_measured_on", nameOrNull(planned.ownMeasuredOn)},
      {"stale", json::Array(prices.stale)},
      {"step_time_least_s", known(limits.least)},
      {"step_time_most_s", known(limits.most)},
  };
}

/// The table of products' algorithms; null if there is none.
static json::Value algorithmsJson(const AlgorithmFile *file) {
  if (!file)
    return nullptr;
  return json::Object{{"device", file->device},
                      {"library", file->library},
                      {"products", int64_t(file->products.size())},
                      {"sha256", file->sha256}};
}

/// The ranks along each axis, and what each keeps; null: there is one.
static json::Value meshJson(const PlanFigures &plan) {
  if (plan.mesh.ranks() == 1)
    return nullptr;
  json::Object sizes{{"zero", plan.shardLevel},
                     {"whole", plan.wholeParams},
                     {"sums", plan.addsShards ? "shards" : "whole"}};
  for (const Axis axis : {Axis::Data, Axis::Tensor, Axis::Pipeline})
    sizes[nameOf(axis)] = plan.mesh.size(axis);
  return sizes;
}

/// The command that made a plan, and the fingerprints.
static json::Object madeJson(const Provenance &made) {
  json::Array command;
  // A path may be of other bytes than UTF-8.
  for (const std::string &word : made.command)
    command.push_back(json::fixUTF8(word));
  return json::Object{{"version", made.version},
                      {"command", std::move(command)},
                      {"date", nameOrNull(made.date)},
                      {"model_fingerprint", nameOrNull(made.model)},
                      {"plan_fingerprint", nameOrNull(made.plan)}};
}

StepLimits tmc::stepLimits(const Planned &planned) {
  const PriceSum &prices = planned.trace.prices;
  if (prices.most < prices.least || prices.most <= 0)
    return {};
  const double waits =
      std::max(0.0, planned.figures.stepSeconds() - secondsOf(prices.total()));
  return {secondsOf(prices.least) + waits, secondsOf(prices.most) + waits};
}

std::string tmc::planJson(const Planned &planned) {
  const PlanFigures &plan = planned.figures;
  json::Object classes;
  for (size_t i = 0; i < planning::kNumClasses; ++i)
    if (int64_t bytes = plan.record.peakByClass[i]; bytes >= 0)
      classes[planning::nameOf(planning::ValueClass(i))] = bytes;
  const int64_t arenaBytes = plan.arenaBytes.device();
  bool timed = plan.unconstrainedSeconds > 0;
  return jsonText(
      json::Object{
          {"schema", kPlanSchema},
          {"made", madeJson(planned.made)},
          {"model", planned.model},
          {"target", planned.target},
          {"compiled_for", planned.compiledFor},
          {"prices", pricesJson(planned)},
          {"algorithms", algorithmsJson(planned.algorithms)},
          {"identity", nameOrNull(planned.identity)},
          {"library", nameOrNull(planned.library)},
          {"budget_bytes", known(plan.budgetBytes.device())},
          {"arena_bytes",
           known(arenaBytes < 0 ? arenaBytes
                                : arenaBytes + plan.record.reservedBytes)},
          {"live_peak_bytes", known(plan.record.livePeakBytes.device())},
          {"reserved_bytes", plan.record.reservedBytes},
          {"load_staging_bytes", known(plan.loadStagingBytes)},
          {"unconstrained_bytes", known(plan.unconstrainedBytes)},
          {"peak_by_class", std::move(classes)},
          {"step_time_s", known(plan.stepSeconds())},
          {"unconstrained_time_s", known(plan.unconstrainedSeconds)},
          {"overhead_pct",
           timed ? json::Value(plan.overheadPct()) : json::Value(nullptr)},
          {"lower_bound_pct", timed && plan.record.boundPs >= 0
                                  ? json::Value(plan.lowerBoundPct())
                                  : json::Value(nullptr)},
          {"lower_bound_scope", plan.boundOrder == PlanFigures::BoundOrder::Plan
                                    ? "fixed-order"
                                    : "program-order"},
          {"proved_share_pct", known(plan.provedSharePct())},
          {"any_order_bound_pct", timed && plan.anyOrderPs >= 0
                                      ? json::Value(plan.anyOrderPct())
                                      : json::Value(nullptr)},
          {"smallest_found_bytes", known(plan.record.smallestFoundBytes)},
          {"smallest_found_stopped_early", plan.smallestStoppedEarly},
          {"impossible_below_bytes", known(plan.record.impossibleBelowBytes)},
          {"precision", precisionJson(planned.trace, plan)},
          {"mesh", meshJson(plan)},
          {"micro_batches", plan.microBatches},
          {"loss_chunk",
           plan.lossChunk ? json::Value(plan.lossChunk) : json::Value(nullptr)},
          {"tiles", plan.tiles},
          {"batchnorm", plan.batchNorm.empty() ? json::Value(nullptr)
                                               : json::Value(plan.batchNorm)},
          {"recomputed_ops", known(plan.record.recomputedOps)},
          {"offloaded_bytes", plan.offloadedBytes()},
          {"spaces", spacesJson(plan, planned.trace)},
          {"copies", known(plan.copies)},
          {"launches", known(plan.launches)},
          {"device_launches", known(plan.work.deviceLaunches)},
          {"bytes_moved", known(plan.work.bytesMoved)},
          {"product_bytes", known(plan.work.productBytes)},
          {"families", familiesJson(plan.work)},
          {"unaligned_products", known(plan.work.unalignedProducts)},
          {"unfolded_biases", known(plan.record.unfoldedBiases)},
          {"plan_seconds", plan.planSeconds},
          {"peak", peakJson(planned.trace)},
          {"levers", leversJson(plan, planned.trace)},
          {"chosen_levers", chosenJson(plan)},
          {"values", valuesJson(planned)},
      },
      2);
}
