// PlanTable.cpp - a plan as a table for a terminal.

#include "compiler/emit/Emit.h"
#include "compiler/report/PlanReport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace tmc;

static constexpr int kNameWidth = 30, kValueWidth = 12;

std::string tmc::readableSeconds(double seconds) {
  char text[64];
  if (seconds >= 1)
    snprintf(text, sizeof text, "%.2f s", seconds);
  else if (seconds >= 1e-3)
    snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
  else
    snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  return text;
}

static std::string signedBytes(int64_t bytes) {
  return (bytes < 0   ? "-"
          : bytes > 0 ? "+"
                      : "") +
         readableBytes(bytes < 0 ? -bytes : bytes);
}

static std::string signedSeconds(double seconds) {
  return (seconds < 0 ? "-" : "+") + readableSeconds(std::abs(seconds));
}

static std::string percent(double value, const char *format = "%.2f %%") {
  char text[64];
  snprintf(text, sizeof text, format, value);
  return text;
}

namespace {

/// Rows of a name, a right-aligned value and remarks.
class Table {
public:
  explicit Table(std::string &text) : text(text) {}

  void heading(const std::string &title) { text += "\n" + title + "\n"; }
  void row(const std::string &name, const std::string &value,
           const std::string &rest = "") {
    std::string line = "  " + name;
    line.resize(std::max<size_t>(line.size(), kNameWidth), ' ');
    if (value.size() < kValueWidth)
      line.append(kValueWidth - value.size(), ' ');
    line += value;
    if (!rest.empty())
      line += "   " + rest;
    text += line + "\n";
  }
  void bytes(const std::string &name, int64_t value,
             const std::string &rest = "") {
    if (value >= 0)
      row(name, readableBytes(value), rest);
  }

private:
  std::string &text;
};

} // namespace

std::string tmc::peakPlace(const PlanTrace &trace) {
  if (size_t(trace.peakLaunch) >= trace.launches.size())
    return "";
  const PlanTrace::Launch &peak = trace.launches[trace.peakLaunch];
  return peak.name + (peak.where.empty() ? "" : " (" + peak.where + ")");
}

std::vector<int32_t> tmc::aliveAtPeak(const PlanTrace &trace) {
  std::vector<int32_t> alive;
  for (size_t i = 0; i < trace.tensors.size(); ++i)
    if (onDevice(trace.values[trace.tensors[i].value].space) &&
        trace.tensors[i].begin <= trace.peakLaunch &&
        trace.peakLaunch < trace.tensors[i].end)
      alive.push_back(int32_t(i));
  llvm::stable_sort(alive, [&](int32_t a, int32_t b) {
    return trace.values[trace.tensors[a].value].bytes >
           trace.values[trace.tensors[b].value].bytes;
  });
  return alive;
}

/// "of an assumed 24.00 GiB", "of a budget of 2.00 GiB", or "".
static std::string budgetText(const PlanFigures &plan, SpaceKind space) {
  const int64_t budget = plan.budgetBytes[space];
  if (budget < 0)
    return "";
  return (plan.isBudgetAssumed(space) ? "of an assumed " : "of a budget of ") +
         readableBytes(budget);
}

static void tellMemory(Table &table, const PlanFigures &plan,
                       const PlanTrace &trace) {
  table.heading("memory");
  using planning::ValueClass;
  auto byClass = [&](ValueClass which) {
    return std::max<int64_t>(0, plan.record.peakByClass[size_t(which)]);
  };
  for (ValueClass which :
       {ValueClass::Parameter, ValueClass::Gradient, ValueClass::Optimizer,
        ValueClass::Activation, ValueClass::Workspace})
    table.bytes(planning::nameOf(which), byClass(which));
  table.bytes("batch and others",
              byClass(ValueClass::Batch) + byClass(ValueClass::Other));
  table.bytes("live at the peak", plan.record.livePeakBytes.device());
  const int64_t arenaBytes = plan.arenaBytes.device();
  if (arenaBytes >= 0)
    table.bytes("lost to packing",
                arenaBytes - plan.record.livePeakBytes.device());
  table.bytes("reserved", plan.record.reservedBytes);
  if (arenaBytes >= 0)
    table.bytes("arena and reserved", arenaBytes + plan.record.reservedBytes,
                budgetText(plan, kSpaces[0].kind));
  if (trace.launches.empty())
    return;
  const PlanTrace::Launch &peak = trace.launches[trace.peakLaunch];
  std::vector<int32_t> alive = aliveAtPeak(trace);
  table.heading("the peak");
  table.row("at", "", peakPlace(trace) + ", " + nameOf(peak.phase));
  table.row("launch", std::to_string(trace.peakLaunch + 1),
            "of " + std::to_string(trace.launches.size()) + ", with " +
                std::to_string(alive.size()) + " tensors alive");
  int shown = 0;
  for (int32_t each : alive) {
    const PlanTrace::Value &value = trace.values[trace.tensors[each].value];
    if (value.persistent)
      continue;
    if (++shown > 3)
      break;
    table.bytes(shown == 1 ? "largest beside the model's" : "", value.bytes,
                value.name);
  }
}

/// "40.00 ms for h2d, 3.00 ms at the end".
static std::string waitsText(const PlanFigures &plan, const PlanTrace &trace,
                             double waited) {
  std::string text;
  for (auto [engine, seconds] : trace.waitSeconds()) {
    if (seconds <= 0)
      continue;
    waited -= seconds;
    text += ", " + readableSeconds(seconds) + " for " + engine.name;
  }
  // Work that still runs after the last kernel of a trip.
  if (waited > 1e-6 * plan.stepSeconds())
    text += ", " + readableSeconds(waited) + " at the end";
  return text;
}

/// Prints the memory beside the device, and each engine's work in a step.
static void tellSpaces(Table &table, const PlanFigures &plan,
                       const PlanTrace &trace) {
  if (!plan.record.hasOthers())
    return;
  table.heading("beside the device");
  auto isUsed = [&](SpaceKind space) {
    return onDevice(space) || plan.record.livePeakBytes[space] > 0;
  };
  for (auto [space, bytes] : plan.arenaBytes)
    if (!onDevice(space.kind) && isUsed(space.kind))
      table.bytes(
          std::string(space.name) + (space.hasAddresses ? " arena" : ""), bytes,
          budgetText(plan, space.kind) +
              (plan.budgetBytes[space.kind] >= 0 ? ", " : "") +
              readableBytes(plan.record.livePeakBytes[space.kind]) +
              " alive at most");
  auto busy = [&](EngineKind engine) {
    double seconds = plan.busySeconds(engine);
    return "a step, busy " + readableSeconds(seconds) + " (" +
           percent(100 * seconds / plan.stepSeconds(), "%.0f %%") + ")";
  };
  for (auto [engine, bytes] : plan.record.movedBytes)
    if (bytes >= 0 && isUsed(engine.reads) && isUsed(engine.writes))
      table.bytes(engine.work, bytes, busy(engine.kind));
  if (plan.hostUpdates > 0)
    table.row("updates on the host", std::to_string(plan.hostUpdates),
              busy(EngineKind::Host));
  if (double seconds = plan.hostMemorySeconds(); seconds >= 0)
    table.row("host memory",
              percent(100 * seconds / plan.stepSeconds(), "%.0f %%"),
              "of its bandwidth, by copies and updates");
  double waited = plan.stepSeconds() - plan.busySeconds(EngineKind::Compute);
  table.row("kernels wait", readableSeconds(waited),
            "of " + readableSeconds(plan.stepSeconds()) +
                waitsText(plan, trace, waited));
}

/// Says where most of the kernels' time is from, and how far it is to be
/// trusted.
static std::string aboutPrices(const Planned &planned) {
  // The library's and the driver's versions stand behind the card's name.
  const std::string card =
      planned.measuredOn.substr(0, planned.measuredOn.find(',')) + ", " +
      planned.measuredDate;
  switch (planned.trace.prices.mainSource()) {
  case PriceSource::Measured:
    return planned.ownMeasuredOn.empty()
               ? "by tmc calibrate"
               : "by --prices: " + planned.ownMeasuredOn;
  case PriceSource::Class:
    return "of kernels like these: " + card;
  case PriceSource::Stale:
    return "of older versions of the kernels: " + card;
  case PriceSource::Scaled:
    return "by this card's peak rates; measured: " + card;
  case PriceSource::Published:
    return "peak rates: steps on an H200 took 1.7 to 3.9 times as long";
  case PriceSource::Nominal:
    return "roughly one core's; tmc calibrate measures a machine";
  }
  llvm_unreachable("a source");
}

static void tellTime(Table &table, const Planned &planned) {
  const PlanFigures &plan = planned.figures;
  table.heading("time");
  table.row("without a budget", readableSeconds(plan.unconstrainedSeconds),
            "needs " + readableBytes(plan.unconstrainedBytes +
                                     plan.record.reservedBytes));
  table.row("this plan", readableSeconds(plan.stepSeconds()),
            "overhead " + percent(plan.overheadPct()));
  if (plan.anyOrderPs >= 0)
    table.row("proven at least", readableSeconds(secondsOf(plan.anyOrderPs)),
              "overhead " + percent(plan.anyOrderPct()) + ", in any order");
  if (plan.isBoundByOrder())
    table.row("proven at least", readableSeconds(plan.boundSeconds()),
              "overhead " + percent(plan.lowerBoundPct()) +
                  (plan.boundOrder == PlanFigures::BoundOrder::Plan
                       ? ", for this order of first runs"
                       : ", for the program's order of first runs"));
  if (double share = plan.provedSharePct(); share >= 0)
    table.row("proved of it", percent(share, "%.0f %%"),
              "of the " +
                  readableSeconds(plan.stepSeconds() -
                                  secondsOf(plan.record.loadPs)) +
                  " above the kernels of every plan");
  const StepLimits limits = stepLimits(planned);
  if (limits.most >= 0)
    table.row("by these prices, from", readableSeconds(limits.least),
              "to " + readableSeconds(limits.most));
  table.row("prices of kernels", nameOf(planned.trace.prices.mainSource()),
            aboutPrices(planned));
  if (!planned.standsFor.empty())
    table.row("card", "", planned.target + " is " + planned.standsFor);
}

static void tellPrecision(Table &table, const PlanTrace &trace,
                          const PlanFigures &plan) {
  if (trace.launches.empty())
    return;
  table.heading("precision");
  table.row("asked for", "", trace.precision);
  std::map<std::string, int64_t> alive = trace.peakByType();
  for (const PlanTrace::Products &products : trace.products)
    table.row("products in " + products.name, std::to_string(products.count),
              alive.count(products.name)
                  ? readableBytes(alive[products.name]) + " of " +
                        products.name + " alive at the peak"
                  : "");
  for (const PlanTrace::Products &exception : trace.exceptions)
    table.row("  by " + exception.name, std::to_string(exception.count));
  if (plan.keptCopyBytes)
    table.bytes("copies of parameters", plan.keptCopyBytes,
                "kept in 16 bits, written by the updates");
}

/// Tells the work of a card, the families with the most bytes first.
static void tellWork(Table &table, const PlanFigures &plan) {
  const StepWork &work = plan.work;
  if (work.deviceLaunches < 0)
    return;
  table.heading("work of the card");
  std::vector<std::pair<std::string, StepWork::Family>> families(
      work.families.begin(), work.families.end());
  llvm::stable_sort(families, [](const auto &a, const auto &b) {
    return a.second.bytes > b.second.bytes;
  });
  table.row("kernels", std::to_string(work.deviceLaunches),
            readableBytes(work.bytesMoved) + " read and written, " +
                readableBytes(work.productBytes) + " by products");
  for (const auto &[name, family] : families)
    table.row("  " + name, std::to_string(family.launches),
              readableBytes(family.bytes));
  table.row("products off 16 bytes", std::to_string(work.unalignedProducts));
  table.row("biases outside products",
            std::to_string(plan.record.unfoldedBiases));
}

/// Prints the bytes that moves free, and their cost: of all together, and of
/// each class beside the plan without it.
static void tellMoves(Table &table, const PlanFigures &plan,
                      const PlanTrace &trace) {
  const planning::Levers &levers = trace.levers;
  auto tell = [&](const char *name, const planning::MovedClass &moved,
                  const std::string &what) {
    std::string time =
        moved.cost ? signedSeconds(double(moved.cost) * 1e-12) : std::string();
    table.row(name, signedBytes(-moved.bytes),
              what + (what.empty() || time.empty() ? "" : ", ") + time);
  };
  auto text = [&](const std::string &kind) {
    PlanTrace::Moved moved = trace.movedOf(kind);
    std::vector<std::string> parts;
    if (moved.homeBytes)
      parts.push_back(readableBytes(moved.homeBytes) + " at home there");
    if (moved.outBytes)
      parts.push_back(readableBytes(moved.outBytes) + " out");
    if (moved.backBytes)
      parts.push_back(readableBytes(moved.backBytes) + " back");
    return llvm::join(parts, ", ");
  };
  tell("moves", {levers.recomputedPeak - levers.planPeak, levers.movesCost},
       "all of them");
  tell("  of activations", levers.activations, text("activations"));
  std::string updates =
      plan.hostUpdates > 0
          ? std::to_string(plan.hostUpdates) + " updates on the host"
          : "";
  std::string states = text("optimizer");
  tell("  of states", levers.optimizer,
       states + (states.empty() || updates.empty() ? "" : ", ") + updates);
  tell("  of parameters", levers.parameters, text("parameters"));
}

/// Prints the levers that tmc chose, and the figures of the alternatives.
static void tellChosen(Table &table, const PlanFigures &plan) {
  if (plan.chosenLevers.empty())
    return;
  table.heading("levers chosen, " + std::to_string(plan.settingsSeen) + " of " +
                std::to_string(plan.settings) + " settings planned coarsely");
  for (const ChosenLever &lever : plan.chosenLevers) {
    std::string other = "no other is known to fit";
    const bool isBound = lever.seconds < 0;
    if (double seconds = isBound ? lever.atLeast : lever.seconds; seconds >= 0)
      other = "with " + lever.instead + (isBound ? " at least " : " ") +
              readableSeconds(seconds) + ", " +
              percent(100 * (seconds / plan.stepSeconds() - 1), "%+.1f %%");
    table.row(lever.lever, lever.value, other);
  }
}

std::string tmc::chosenLeversText(const PlanFigures &plan) {
  std::string text;
  Table table(text);
  tellChosen(table, plan);
  return text;
}

static void tellLevers(Table &table, const PlanFigures &plan,
                       const PlanTrace &trace) {
  const planning::Levers &levers = trace.levers;
  if (levers.plainPeak <= 0 || levers.orderPeak <= 0)
    return;
  table.heading("what each lever bought, at the peak");
  if (plan.microBatches > 1 && plan.unsplitBytes >= 0)
    table.row(
        "micro-batches", signedBytes(levers.plainPeak - plan.unsplitBytes),
        std::to_string(plan.microBatches) + " of them, " +
            percent(100 * (plan.kernelSeconds() / plan.unsplitSeconds - 1),
                    "%+.2f %%") +
            " time");
  else
    table.row("micro-batches", "none");
  table.row("results in place",
            signedBytes(levers.inPlacePeak - levers.plainPeak));
  table.row("order", signedBytes(levers.orderPeak - levers.inPlacePeak),
            levers.lateUpdatePeak > levers.orderPeak
                ? signedBytes(levers.orderPeak - levers.lateUpdatePeak) +
                      " of it by early updates"
                : "");
  int64_t again = trace.recomputations();
  table.row("recomputation",
            signedBytes(levers.recomputedPeak - levers.orderPeak),
            again ? std::to_string(again) + " launches, " +
                        signedSeconds(double(levers.recomputeCost) * 1e-12)
                  : "");
  if (plan.record.moves())
    tellMoves(table, plan, trace);
}

/// The components of a name, "h.3.weight" -> {"h", "*", "weight"}: numbers only
/// count similar components.
static std::vector<std::string> componentsOf(const std::string &name) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(name).split(parts, '.');
  std::vector<std::string> components;
  for (llvm::StringRef part : parts)
    components.push_back(
        !part.empty() && llvm::all_of(part, llvm::isDigit) ? "*" : part.str());
  return components;
}

namespace {
/// Tensors of one kind whose names have the same first components.
struct ValueGroup {
  std::string name;
  int64_t count = 0, bytes = 0;
};
} // namespace

/// `values` by the first component of their names in which they differ, the
/// largest group first.
static std::vector<ValueGroup>
groupsOf(const std::vector<const ModelValue *> &values) {
  std::vector<std::vector<std::string>> names;
  for (const ModelValue *value : values)
    names.push_back(componentsOf(value->name));
  size_t common = 0;
  while (llvm::all_of(names, [&](const auto &name) {
    return common + 1 < name.size() && name[common] == names[0][common];
  }))
    ++common;
  std::map<std::string, ValueGroup> groups;
  for (auto [value, name] : llvm::zip_equal(values, names)) {
    std::string key = llvm::join(
        llvm::ArrayRef(name).take_front(std::min(name.size(), common + 1)),
        ".");
    if (name.size() > common + 1)
      key += ".*";
    ValueGroup &group = groups[key];
    group.name = key;
    ++group.count;
    group.bytes += value->bytes;
  }
  std::vector<ValueGroup> list;
  for (auto &[key, group] : groups)
    list.push_back(std::move(group));
  llvm::stable_sort(list, [](const ValueGroup &a, const ValueGroup &b) {
    return a.bytes > b.bytes;
  });
  return list;
}

/// Prints the trained values, the frozen ones and the states that a step
/// writes, by groups of names. A user checks here that the file was read as
/// intended.
static void tellValues(Table &table, const std::vector<ModelValue> &values) {
  // The largest groups have a row each; the others share one.
  constexpr size_t kGroups = 3;
  for (auto kind :
       {ModelValue::Trained, ModelValue::Frozen, ModelValue::State}) {
    std::vector<const ModelValue *> some;
    int64_t bytes = 0;
    for (const ModelValue &value : values)
      if (value.kind == kind) {
        some.push_back(&value);
        bytes += value.bytes;
      }
    if (some.empty())
      continue;
    table.row(nameOf(kind) + std::string(" tensors"),
              std::to_string(some.size()), readableBytes(bytes));
    std::vector<ValueGroup> groups = groupsOf(some);
    size_t shown = kind == ModelValue::State      ? 0
                   : groups.size() <= kGroups + 1 ? groups.size()
                                                  : kGroups;
    ValueGroup rest{"others", 0, 0};
    for (auto [i, group] : llvm::enumerate(groups)) {
      if (i < shown) {
        table.row("  " + group.name, std::to_string(group.count),
                  readableBytes(group.bytes));
        continue;
      }
      rest.count += group.count;
      rest.bytes += group.bytes;
    }
    if (shown && rest.count)
      table.row("  " + rest.name, std::to_string(rest.count),
                readableBytes(rest.bytes));
  }
}

std::string tmc::planTable(const Planned &planned) {
  const PlanFigures &plan = planned.figures;
  const PlanTrace &trace = planned.trace;
  std::string text = planned.model + " on " + planned.target + "\n";
  Table table(text);
  tellMemory(table, plan, trace);
  tellSpaces(table, plan, trace);
  tellTime(table, planned);
  tellChosen(table, plan);
  tellLevers(table, plan, trace);
  tellPrecision(table, trace, plan);

  if (plan.record.smallestFoundBytes >= 0 ||
      plan.record.impossibleBelowBytes >= 0)
    table.heading("budgets");
  auto exact = [](int64_t bytes) { return std::to_string(bytes) + " bytes"; };
  table.bytes(
      "smallest known to work", plan.record.smallestFoundBytes,
      exact(plan.record.smallestFoundBytes) +
          (plan.smallestStoppedEarly ? ", not searched to the end" : ""));
  table.bytes("impossible below", plan.record.impossibleBelowBytes,
              exact(plan.record.impossibleBelowBytes));

  tellWork(table, plan);
  table.heading("the step");
  if (plan.launches >= 0)
    table.row("launches", std::to_string(plan.launches),
              std::to_string(plan.record.recomputedOps) + " of them again" +
                  (plan.copies > 0
                       ? ", " + std::to_string(plan.copies) +
                             (plan.copies == 1 ? " copy" : " copies")
                       : ""));
  if (plan.mesh.ranks() > 1)
    table.row("ranks", std::to_string(plan.mesh.ranks()),
              plan.mesh.text() + " zero=" + std::to_string(plan.shardLevel) +
                  (plan.wholeParams
                       ? " whole=" + std::to_string(plan.wholeParams)
                       : "") +
                  (plan.addsShards ? " sums=shards" : ""));
  table.row("micro-batches", std::to_string(plan.microBatches));
  if (plan.lossChunk)
    table.row("rows of logits at once", std::to_string(plan.lossChunk));
  if (plan.tiles > 1)
    table.row("tiles of rows", std::to_string(plan.tiles));
  if (!plan.batchNorm.empty())
    table.row("batch norms", plan.batchNorm);
  tellValues(table, planned.values);
  if (planned.recordedBytes > 0)
    table.row("weights recorded", readableBytes(planned.recordedBytes));
  if (planned.weightBytes > 0 ||
      (planned.weightBytes == 0 && planned.recordedBytes == 0))
    table.row("weights written", planned.weightBytes == 0
                                     ? "none"
                                     : readableBytes(planned.weightBytes));
  return text;
}
