// PlanTable.cpp - a plan as a table for a terminal.

#include "compiler/emit/Emit.h"
#include "compiler/pipeline/PlanReport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

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

std::string tmc::peakPlace(const Story &story) {
  if (size_t(story.peakLaunch) >= story.launches.size())
    return "";
  const Story::Launch &peak = story.launches[story.peakLaunch];
  return peak.name + (peak.where.empty() ? "" : " (" + peak.where + ")");
}

std::vector<int32_t> tmc::aliveAtPeak(const Story &story) {
  std::vector<int32_t> alive;
  for (size_t i = 0; i < story.tensors.size(); ++i)
    if (story.tensors[i].begin <= story.peakLaunch &&
        story.peakLaunch < story.tensors[i].end)
      alive.push_back(int32_t(i));
  llvm::stable_sort(alive, [&](int32_t a, int32_t b) {
    return story.values[story.tensors[a].value].bytes >
           story.values[story.tensors[b].value].bytes;
  });
  return alive;
}

static void tellMemory(Table &table, const PlanFigures &plan,
                       const Story &story) {
  table.heading("memory");
  auto byClass = [&](const char *name) {
    auto it = plan.peakByClass.find(name);
    return it == plan.peakByClass.end() ? 0 : it->second;
  };
  for (const char *name :
       {"parameters", "gradients", "optimizer", "activations", "workspace"})
    table.bytes(name, byClass(name));
  table.bytes("batch and others", byClass("batch") + byClass("other"));
  table.bytes("live at the peak", plan.livePeakBytes);
  if (plan.arenaBytes >= 0)
    table.bytes("lost to packing", plan.arenaBytes - plan.livePeakBytes);
  table.bytes("reserved", plan.reservedBytes);
  if (plan.arenaBytes >= 0)
    table.bytes("arena and reserved", plan.arenaBytes + plan.reservedBytes,
                plan.budgetBytes >= 0
                    ? "of a budget of " + readableBytes(plan.budgetBytes)
                    : "");
  if (story.launches.empty())
    return;
  const Story::Launch &peak = story.launches[story.peakLaunch];
  std::vector<int32_t> alive = aliveAtPeak(story);
  table.heading("the peak");
  table.row("at", "", peakPlace(story) + ", " + nameOf(peak.phase));
  table.row("launch", std::to_string(story.peakLaunch + 1),
            "of " + std::to_string(story.launches.size()) + ", with " +
                std::to_string(alive.size()) + " tensors alive");
  int shown = 0;
  for (int32_t each : alive) {
    const Story::Value &value = story.values[story.tensors[each].value];
    if (value.persistent)
      continue;
    if (++shown > 3)
      break;
    table.bytes(shown == 1 ? "largest beside the model's" : "", value.bytes,
                value.name);
  }
}

static void tellTime(Table &table, const PlanFigures &plan) {
  table.heading("time");
  table.row("without a budget", readableSeconds(plan.unconstrainedSeconds),
            "needs " +
                readableBytes(plan.unconstrainedBytes + plan.reservedBytes));
  table.row("this plan", readableSeconds(plan.stepSeconds),
            "overhead " + percent(plan.overheadPct()));
  if (plan.boundSeconds >= 0)
    table.row("proven at least", readableSeconds(plan.boundSeconds),
              "overhead " + percent(plan.lowerBoundPct()) +
                  ", for this order of first runs");
}

static void tellLevers(Table &table, const PlanFigures &plan,
                       const Story &story) {
  const planning::Levers &levers = story.levers;
  if (levers.plainPeak <= 0 || levers.orderPeak <= 0)
    return;
  table.heading("what each lever bought, at the peak");
  if (plan.microBatches > 1 && plan.unsplitBytes >= 0)
    table.row(
        "micro-batches", signedBytes(levers.plainPeak - plan.unsplitBytes),
        std::to_string(plan.microBatches) + " of them, " +
            percent(100 * (plan.unconstrainedSeconds / plan.unsplitSeconds - 1),
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
  int64_t again = story.recomputations();
  table.row("recomputation", signedBytes(levers.planPeak - levers.orderPeak),
            again ? std::to_string(again) + " launches, +" +
                        readableSeconds(double(levers.recomputeCost) * 1e-12)
                  : "");
}

std::string tmc::planTable(const Compilation &compilation) {
  const PlanFigures &plan = compilation.figures();
  const Story &story = compilation.story();
  std::string text =
      compilation.modelName() + " on " + compilation.target().name + "\n";
  Table table(text);
  tellMemory(table, plan, story);
  tellTime(table, plan);
  tellLevers(table, plan, story);

  table.heading("budgets");
  auto exact = [](int64_t bytes) { return std::to_string(bytes) + " bytes"; };
  table.bytes("smallest known to work", plan.smallestFoundBytes,
              exact(plan.smallestFoundBytes));
  table.bytes("impossible below", plan.impossibleBelowBytes,
              exact(plan.impossibleBelowBytes));

  table.heading("the step");
  if (plan.launches >= 0)
    table.row("launches", std::to_string(plan.launches),
              std::to_string(plan.recomputedOps) + " of them again" +
                  (plan.copies > 0
                       ? ", " + std::to_string(plan.copies) +
                             (plan.copies == 1 ? " copy" : " copies")
                       : ""));
  table.row("micro-batches", std::to_string(plan.microBatches));
  if (plan.lossChunk)
    table.row("rows of logits at once", std::to_string(plan.lossChunk));
  for (auto kind :
       {ModelValue::Trained, ModelValue::Frozen, ModelValue::State}) {
    int64_t count = 0, bytes = 0;
    for (const ModelValue &value : compilation.values())
      if (value.kind == kind) {
        ++count;
        bytes += value.bytes;
      }
    if (count)
      table.row(nameOf(kind) + std::string(" tensors"), std::to_string(count),
                readableBytes(bytes));
  }
  if (const WeightSources *weights = compilation.weights())
    table.row("weights written", weights->tensors.empty()
                                     ? "none"
                                     : readableBytes(weights->totalBytes));
  return text;
}
