#include "compiler/analysis/PlanRecord.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tmc;

static constexpr StringLiteral kAttribute = "train.plan";

/// "live_peak_bytes", or "host_live_peak_bytes" for another space.
static std::string keyOf(const SpaceInfo &space, const char *figure) {
  return (onDevice(space.kind) ? "" : std::string(space.name) + "_") + figure;
}

/// Calls `f(name, figure)` for each figure of `record`.
template <typename Record, typename F>
static void forEach(Record &record, F f) {
  for (auto [space, bytes] : record.livePeakBytes)
    f(StringRef(keyOf(space, "live_peak_bytes")), bytes);
  f(StringRef("reserved_bytes"), record.reservedBytes);
  f(StringRef("unconstrained_bytes"), record.unconstrainedBytes);
  f(StringRef("cost_ps"), record.costPs);
  f(StringRef("unconstrained_cost_ps"), record.unconstrainedCostPs);
  f(StringRef("load_ps"), record.loadPs);
  f(StringRef("host_memory_ps"), record.hostMemoryPs);
  f(StringRef("bound_ps"), record.boundPs);
  f(StringRef("recomputed_ops"), record.recomputedOps);
  f(StringRef("unfolded_biases"), record.unfoldedBiases);
  f(StringRef("smallest_found_bytes"), record.smallestFoundBytes);
  f(StringRef("impossible_below_bytes"), record.impossibleBelowBytes);
  for (auto [engine, bytes] : record.movedBytes)
    f(StringRef(std::string("moved_bytes_") + engine.name), bytes);
  for (auto [engine, busy] : record.busyPs)
    f(StringRef(std::string("busy_ps_") + engine.name), busy);
  for (size_t i = 0; i < planning::kNumClasses; ++i) {
    std::string name = std::string("peak_") +
                       planning::nameOf(static_cast<planning::ValueClass>(i));
    f(StringRef(name), record.peakByClass[i]);
  }
}

void PlanRecord::attachTo(Operation *op) const {
  Builder b(op->getContext());
  SmallVector<NamedAttribute> figures;
  forEach(*this, [&](StringRef name, int64_t value) {
    if (value >= 0)
      figures.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(value)));
  });
  op->setAttr(kAttribute, b.getDictionaryAttr(figures));
}

std::optional<PlanRecord> PlanRecord::of(Operation *op) {
  auto figures = op->getAttrOfType<DictionaryAttr>(kAttribute);
  if (!figures)
    return std::nullopt;
  PlanRecord record;
  forEach(record, [&](StringRef name, int64_t &value) {
    if (auto figure = figures.getAs<IntegerAttr>(name))
      value = figure.getInt();
  });
  return record;
}

std::optional<PlanRecord> PlanRecord::in(Operation *module) {
  for (Operation &op : module->getRegion(0).front())
    if (std::optional<PlanRecord> record = of(&op))
      return record;
  return std::nullopt;
}
