#include "compiler/pipeline/PlanReport.h"

#include "compiler/analysis/MemLiveness.h"
#include "compiler/emit/Emit.h"
#include "dialects/interfaces/Interfaces.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace tmc;

namespace json = llvm::json;

static constexpr int kPlanSchema = 1;

/// A figure, or null where it isn't known.
static json::Value known(int64_t value) {
  return value < 0 ? json::Value(nullptr) : json::Value(value);
}

static json::Value known(double value) {
  return value < 0 ? json::Value(nullptr) : json::Value(value);
}

/// How many values of each kind the model has, their bytes and their names.
static json::Object valuesJson(const Compilation &compilation) {
  json::Object object;
  for (auto kind :
       {ModelValue::Trained, ModelValue::Frozen, ModelValue::State}) {
    int64_t bytes = 0;
    json::Array names;
    for (const ModelValue &value : compilation.values())
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

/// Where the peak is; null where there is no plan.
static json::Value peakJson(const Story &story) {
  if (size_t(story.peakLaunch) >= story.launches.size())
    return nullptr;
  const Story::Launch &peak = story.launches[story.peakLaunch];
  return json::Object{{"at", peak.name},
                      {"line", peak.where.empty() ? json::Value(nullptr)
                                                  : json::Value(peak.where)},
                      {"phase", nameOf(peak.phase)},
                      {"launch", story.peakLaunch},
                      {"tensors_alive", int64_t(aliveAtPeak(story).size())}};
}

/// The peak with one lever more at a time, and what each costs.
static json::Value leversJson(const PlanFigures &plan, const Story &story) {
  const planning::Levers &levers = story.levers;
  if (levers.plainPeak <= 0)
    return nullptr;
  bool split = plan.microBatches > 1 && plan.unsplitBytes >= 0;
  return json::Object{
      {"micro_batches_bytes",
       split ? json::Value(plan.unsplitBytes - levers.plainPeak)
             : json::Value(nullptr)},
      {"micro_batches_s",
       split ? json::Value(plan.unconstrainedSeconds - plan.unsplitSeconds)
             : json::Value(nullptr)},
      {"in_place_bytes", levers.plainPeak - levers.inPlacePeak},
      {"order_bytes", levers.inPlacePeak - levers.orderPeak},
      {"early_updates_bytes",
       levers.lateUpdatePeak < 0
           ? json::Value(nullptr)
           : json::Value(levers.lateUpdatePeak - levers.orderPeak)},
      {"recompute_bytes", levers.orderPeak - levers.planPeak},
      {"recompute_s", double(levers.recomputeCost) * 1e-12}};
}

std::string tmc::planJson(const Compilation &compilation) {
  const PlanFigures &plan = compilation.figures();
  json::Object classes;
  for (const auto &[name, bytes] : plan.peakByClass)
    classes[name] = bytes;
  bool timed = plan.unconstrainedSeconds > 0;
  json::Object object{
      {"schema", kPlanSchema},
      {"model", compilation.modelName()},
      {"target", compilation.target().name},
      {"budget_bytes", known(plan.budgetBytes)},
      {"arena_bytes",
       known(plan.arenaBytes < 0 ? plan.arenaBytes
                                 : plan.arenaBytes + plan.reservedBytes)},
      {"live_peak_bytes", known(plan.livePeakBytes)},
      {"reserved_bytes", plan.reservedBytes},
      {"unconstrained_bytes", known(plan.unconstrainedBytes)},
      {"peak_by_class", std::move(classes)},
      {"step_time_s", known(plan.stepSeconds)},
      {"unconstrained_time_s", known(plan.unconstrainedSeconds)},
      {"overhead_pct",
       timed ? json::Value(plan.overheadPct()) : json::Value(nullptr)},
      {"lower_bound_pct", timed && plan.boundSeconds >= 0
                              ? json::Value(plan.lowerBoundPct())
                              : json::Value(nullptr)},
      {"lower_bound_scope", "fixed-order"},
      {"smallest_found_bytes", known(plan.smallestFoundBytes)},
      {"impossible_below_bytes", known(plan.impossibleBelowBytes)},
      {"micro_batches", plan.microBatches},
      {"recomputed_ops", known(plan.recomputedOps)},
      {"offloaded_bytes", 0},
      {"copies", known(plan.copies)},
      {"launches", known(plan.launches)},
      {"plan_seconds", plan.planSeconds},
      {"peak", peakJson(compilation.story())},
      {"levers", leversJson(plan, compilation.story())},
      {"values", valuesJson(compilation)},
  };
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}", json::Value(std::move(object))) << "\n";
  return text;
}

static std::string escaped(StringRef text) {
  std::string result;
  for (char c : text)
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += c;
    }
  return result;
}

std::string tmc::planHtml(Compilation &compilation) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>"
     << escaped(compilation.modelName())
     << " - tmc</title><style>body{font:15px/1.5 system-ui;margin:2em auto;"
        "max-width:72em;padding:0 1em}svg{width:100%;background:#f6f6f4;border:"
        "1px solid #ddd}rect:hover{stroke:#000}</style><h1>"
     << escaped(compilation.modelName()) << "</h1><pre>"
     << escaped(planTable(compilation)) << "</pre>";
  for (auto program : compilation.module().getOps<mem::ProgramOp>()) {
    MemLiveness live = memLiveness(program);
    double width = std::max<size_t>(live.moments.size(), 1);
    double height = std::max<int64_t>(program.getArenaBytes(), 1);
    constexpr double kWidth = 1000, kHeight = 420;
    os << "<h2>The arena over the step</h2><p>Time from left to right in "
          "launches, offsets from the bottom. Hover for names.</p><svg "
          "viewBox=\"0 0 1000 420\" preserveAspectRatio=\"none\">";
    static const std::map<std::string, const char *> kColours = {
        {"parameters", "#9db4c0"}, {"gradients", "#c06c84"},
        {"optimizer", "#5c6b73"},  {"activations", "#f2b880"},
        {"workspace", "#d8d8c0"},  {"batch", "#84a59d"}};
    for (auto [each, span] : llvm::zip(live.buffers, live.spans)) {
      mem::BufferOp buffer = each;
      if (span.begin == span.end)
        continue;
      int64_t size = sizeInBytes(buffer.getMemref().getType());
      auto colour = kColours.find(buffer.getBufferClass().str());
      os << llvm::format(
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                "fill=\"%s\">",
                span.begin / width * kWidth,
                kHeight * (1 - (int64_t(buffer.getOffset()) + size) / height),
                (span.end - span.begin) / width * kWidth,
                size / height * kHeight,
                colour == kColours.end() ? "#bbb" : colour->second)
         << "<title>" << escaped(buffer.getName()) << ": "
         << readableBytes(size) << " at +" << readableBytes(buffer.getOffset())
         << ", alive [" << span.begin << ", " << span.end << ")</title></rect>";
    }
    os << "</svg><p>";
    for (const auto &[name, colour] : kColours)
      os << "<span style=\"border-left:1em solid " << colour
         << ";padding:0 1em 0 .4em\">" << name << "</span>";
    os << "</p>";
  }
  for (auto kind :
       {ModelValue::Trained, ModelValue::Frozen, ModelValue::State}) {
    std::string names;
    int64_t count = 0;
    for (const ModelValue &value : compilation.values())
      if (value.kind == kind && ++count)
        names += escaped(value.name) + "\n";
    if (count)
      os << "<details><summary>" << count << " " << nameOf(kind)
         << (count == 1 ? " tensor" : " tensors") << "</summary><pre>" << names
         << "</pre></details>";
  }
  os << "</html>\n";
  return text;
}
