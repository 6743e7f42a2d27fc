#include "compiler/analysis/PlanRecord.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tmc;

static constexpr StringLiteral kAttribute = "train.plan";

/// Calls `f(name, figure)` for each figure of `record`.
template <typename Record, typename F>
static void forEach(Record &record, F f) {
  f(StringRef("live_peak_bytes"), record.livePeakBytes);
  f(StringRef("reserved_bytes"), record.reservedBytes);
  f(StringRef("unconstrained_bytes"), record.unconstrainedBytes);
  f(StringRef("cost_ps"), record.costPs);
  f(StringRef("unconstrained_cost_ps"), record.unconstrainedCostPs);
  f(StringRef("bound_ps"), record.boundPs);
  f(StringRef("recomputed_ops"), record.recomputedOps);
  f(StringRef("smallest_found_bytes"), record.smallestFoundBytes);
  f(StringRef("impossible_below_bytes"), record.impossibleBelowBytes);
  f(StringRef("host_peak_bytes"), record.hostPeakBytes);
  f(StringRef("file_peak_bytes"), record.filePeakBytes);
  f(StringRef("to_host_bytes"), record.toHostBytes);
  f(StringRef("to_device_bytes"), record.toDeviceBytes);
  f(StringRef("read_bytes"), record.readBytes);
  f(StringRef("written_bytes"), record.writtenBytes);
  for (size_t i = 0; i < planning::kNumClasses; ++i) {
    std::string name = std::string("peak_") +
                       planning::nameOf(static_cast<planning::ValueClass>(i));
    f(StringRef(name), record.peakByClass[i]);
  }
  for (size_t e = 0; e < PlanRecord::kEngines; ++e) {
    std::string name = std::string("busy_ps_") +
                       planning::nameOf(static_cast<planning::EngineKind>(e));
    f(StringRef(name), record.busyPs[e]);
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
