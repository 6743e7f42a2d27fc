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
      {"values", valuesJson(compilation)},
  };
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}", json::Value(std::move(object))) << "\n";
  return text;
}

std::string tmc::planTable(const Compilation &compilation) {
  const PlanFigures &plan = compilation.figures();
  std::string text;
  llvm::raw_string_ostream os(text);
  auto row = [&](StringRef name, const std::string &value) {
    os << "  " << llvm::left_justify(name, 22) << llvm::right_justify(value, 14)
       << "\n";
  };
  auto bytes = [&](StringRef name, int64_t value) {
    if (value >= 0)
      row(name, readableBytes(value));
  };
  os << compilation.modelName() << " on " << compilation.target().name << "\n";
  bytes("budget", plan.budgetBytes);
  bytes("arena and reserved", plan.arenaBytes < 0
                                  ? plan.arenaBytes
                                  : plan.arenaBytes + plan.reservedBytes);
  bytes("live peak", plan.livePeakBytes);
  for (const auto &[name, value] : plan.peakByClass)
    if (value > 0)
      bytes("  " + name, value);
  if (plan.reservedBytes > 0)
    bytes("  reserved", plan.reservedBytes);
  bytes("unconstrained", plan.unconstrainedBytes);
  bytes("smallest known", plan.smallestFoundBytes);
  bytes("impossible below", plan.impossibleBelowBytes);
  auto real = [](double value, const char *format) {
    char buffer[64];
    snprintf(buffer, sizeof buffer, format, value);
    return std::string(buffer);
  };
  row("predicted step", real(plan.stepSeconds * 1e3, "%.2f ms"));
  row("overhead", real(plan.overheadPct(), "%.2f %%"));
  if (plan.boundSeconds >= 0)
    row("  proven at least", real(plan.lowerBoundPct(), "%.2f %%"));
  row("recomputed ops", std::to_string(plan.recomputedOps));
  if (plan.launches >= 0)
    row("launches", std::to_string(plan.launches));
  if (plan.copies > 0)
    row("  of them copies", std::to_string(plan.copies));
  row("micro-batches", std::to_string(plan.microBatches));
  for (auto kind :
       {ModelValue::Trained, ModelValue::Frozen, ModelValue::State}) {
    int64_t count = 0, bytes = 0;
    for (const ModelValue &value : compilation.values())
      if (value.kind == kind) {
        ++count;
        bytes += value.bytes;
      }
    if (count)
      row(nameOf(kind) + std::string(" tensors"),
          std::to_string(count) + ", " + readableBytes(bytes));
  }
  if (const WeightSources *weights = compilation.weights())
    row("weights written",
        weights->tensors.empty() ? "none" : readableBytes(weights->totalBytes));
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
