// Report.cpp - report.html: the page of ReportPage.html with a plan's data.
//
// The page draws on canvases from columns of numbers, so that it stays fast
// with thousands of buffers. Everything is inline; the page loads nothing from
// a network.

#include "compiler/emit/Emit.h"
#include "compiler/report/Explain.h"
#include "compiler/report/Page.h"
#include "compiler/report/PlanReport.h"
#include "compiler/support/Escape.h"
#include "compiler/support/Json.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

using namespace tmc;
namespace json = llvm::json;

static constexpr char kPage[] =
#include "compiler/report/ReportPage.inc"
    ;

/// Text in a script must not contain anything that looks like the script's end.
static std::string inScript(json::Value value) {
  std::string safe;
  for (char c : jsonText(value))
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  return safe;
}

namespace {

// The page's script uses the same numbers.
enum Layer {
  Parameters,
  Optimizer,
  Batch,
  Gradients,
  Kept,
  Again,
  Away,
  Workspace
};
enum Fate { Persistent, Held, Remade, InPlace, Short, Moved };

Layer layerOf(const PlanTrace::Value &value, const std::string &decision) {
  bool ofStates =
      value.valueClass == "parameters" || value.valueClass == "optimizer";
  if (!value.persistent &&
      (ofStates || decision == "moved" || !onDevice(value.space)))
    return Away;
  if (ofStates)
    return value.valueClass == "parameters" ? Parameters : Optimizer;
  if (value.persistent)
    return Batch;
  if (value.valueClass == "gradients")
    return Gradients;
  return decision == "recomputed" ? Again : Kept;
}

/// The class of the value that a launch moves.
int64_t groupOf(const PlanTrace &trace, const PlanTrace::Launch &launch) {
  if (!launch.isMove())
    return -1;
  const std::string &its = trace.values[launch.reads[0]].valueClass;
  return its == "parameters"  ? Parameters
         : its == "optimizer" ? Optimizer
         : its == "gradients" ? Gradients
                              : Away;
}

Fate fateOf(const std::string &decision) {
  return decision == "moved"         ? Moved
         : decision == "persistent"  ? Persistent
         : decision == "recomputed"  ? Remade
         : decision == "in place"    ? InPlace
         : decision == "short-lived" ? Short
                                     : Held;
}

template <typename List, typename F> json::Array column(const List &list, F f) {
  json::Array array;
  for (const auto &each : list)
    array.push_back(f(each));
  return array;
}

/// The names of a table's rows.
json::Array names(const auto &table) {
  json::Array array;
  for (auto [row, value] : table)
    array.push_back(row.name);
  return array;
}

json::Object launchColumns(const PlanTrace &trace) {
  using Launch = PlanTrace::Launch;
  const auto &list = trace.launches;
  std::vector<int64_t> clock = trace.clockPs();
  json::Array begins, ends;
  int64_t segmentBegin = 0;
  for (const PlanTrace::Segment &segment : trace.segments) {
    for (int32_t l = segment.begin; l < segment.end; ++l) {
      begins.push_back(segmentBegin + list[l].beginPs[segment.middle()]);
      ends.push_back(segmentBegin + list[l].endPs[segment.middle()]);
    }
    segmentBegin += segment.tripPs[segment.middle()];
  }
  return json::Object{
      {"clock", json::Array(clock)},
      {"begin", std::move(begins)},
      {"end", std::move(ends)},
      {"other", column(list, [](const Launch &l) { return l.other; })},
      {"done", column(list, [](const Launch &l) { return int(l.isDone()); })},
      {"engine", column(list, [](const Launch &l) { return int(l.engine); })},
      {"moved", column(list,
                       [&](const Launch &l) {
                         return l.isMove() ? trace.values[l.reads[0]].bytes : 0;
                       })},
      {"group",
       column(list, [&](const Launch &l) { return groupOf(trace, l); })},
      {"value",
       column(list,
              [&](const Launch &l) { return l.isMove() ? l.reads[0] : -1; })},
      {"workSpace",
       column(list, [](const Launch &l) { return int(l.workspaceSpace); })},
      {"name", column(list, [](const Launch &l) { return visible(l.name); })},
      {"where", column(list, [](const Launch &l) { return visible(l.where); })},
      {"phase", column(list, [](const Launch &l) { return int64_t(l.phase); })},
      {"again",
       column(list, [](const Launch &l) { return int(l.recomputes); })},
      {"cost", column(list, [](const Launch &l) { return l.costPs; })},
      {"work", column(list, [](const Launch &l) { return l.workspaceBytes; })}};
}

json::Object tensorColumns(const PlanTrace &trace) {
  using Tensor = PlanTrace::Tensor;
  const auto &list = trace.tensors;
  return json::Object{
      {"value", column(list, [](const Tensor &t) { return t.value; })},
      {"begin", column(list, [](const Tensor &t) { return t.begin; })},
      {"end", column(list, [](const Tensor &t) { return t.end; })},
      {"alone", column(list,
                       [&](const Tensor &t) {
                         return std::min(trace.aloneFrom(t), t.end);
                       })},
      {"offset", column(list, [&](const Tensor &t) {
         return t.buffer < 0 ? int64_t(-1) : trace.buffers[t.buffer].offset;
       })}};
}

json::Object valueColumns(const PlanTrace &trace) {
  std::vector<std::vector<int32_t>> tensors = trace.tensorsOf();
  json::Array names, layers, spaces, fates, bytes, worths, costs, agains, types,
      whys, contents, paids;
  for (size_t v = 0; v < trace.values.size(); ++v) {
    const PlanTrace::Value &value = trace.values[v];
    std::string decision = decisionOf(trace, value.content, tensors[v]);
    if (value.persistent)
      decision = "persistent";
    int64_t worth = -1, cost = value.gaps.empty() ? -1 : 0, again = 0;
    int64_t paid = 0;
    for (const PlanTrace::Gap &gap : value.gaps) {
      paid += gap.held ? 0 : onDevice(gap.space) ? gap.paidPs : gap.waitedPs;
      cost += gap.held ? gap.breakPs : gap.paidPs;
      if (gap.worthPs >= 0)
        worth = std::max<int64_t>(worth, 0) + gap.worthPs;
    }
    for (int32_t t : tensors[v])
      again += trace.launches[trace.tensors[t].begin].recomputes &&
               !value.persistent;
    names.push_back(visible(value.name));
    layers.push_back(int64_t(layerOf(value, decision)));
    spaces.push_back(int(value.space));
    fates.push_back(int64_t(fateOf(decision)));
    bytes.push_back(value.bytes);
    worths.push_back(worth);
    costs.push_back(cost);
    agains.push_back(again);
    types.push_back(value.type);
    whys.push_back(visible(typeText(value)));
    contents.push_back(value.content);
    paids.push_back(paid);
  }
  return json::Object{
      {"name", std::move(names)},   {"layer", std::move(layers)},
      {"space", std::move(spaces)}, {"fate", std::move(fates)},
      {"bytes", std::move(bytes)},  {"worth", std::move(worths)},
      {"cost", std::move(costs)},   {"again", std::move(agains)},
      {"type", std::move(types)},   {"why", std::move(whys)},
      {"paid", std::move(paids)},   {"content", std::move(contents)}};
}

/// The text of `tmc explain` about each content. Lines repeat, so each is there
/// once: {"lines": [text ...], "of": [[line ...] ...]}, by value.
json::Object explainedColumns(const PlanTrace &trace) {
  llvm::StringMap<int64_t> known;
  json::Array lines, of;
  for (const std::string &text : explainContents(trace)) {
    json::Array indices;
    for (llvm::StringRef rest = text; !rest.empty();) {
      auto [line, after] = rest.split('\n');
      rest = after;
      const auto [at, isNew] = known.try_emplace(line, known.size());
      if (isNew)
        lines.push_back(visible(line.str()));
      indices.push_back(at->second);
    }
    of.push_back(std::move(indices));
  }
  return json::Object{{"lines", std::move(lines)}, {"of", std::move(of)}};
}

json::Array cards(const PlanFigures &plan) {
  json::Array array;
  auto card = [&](const std::string &value, const std::string &name) {
    array.push_back(json::Array{value, name});
  };
  auto percent = [](double value) {
    char text[32];
    snprintf(text, sizeof text, "%.2f %%", value);
    return std::string(text);
  };
  card(readableBytes(plan.arenaBytes.device() + plan.record.reservedBytes),
       plan.budgetBytes.device() < 0
           ? "needed, no budget"
           : "of a budget of " + readableBytes(plan.budgetBytes.device()));
  card(readableSeconds(plan.stepSeconds()), "predicted step");
  card(percent(plan.overheadPct()), "overhead over no budget");
  if (plan.record.boundPs >= 0)
    card(percent(plan.lowerBoundPct()), "proven at least");
  card(std::to_string(plan.record.recomputedOps),
       "of " + std::to_string(plan.launches) + " launches again");
  if (plan.unconstrainedBytes >= 0)
    card(readableBytes(plan.unconstrainedBytes + plan.record.reservedBytes),
         "without recomputation");
  if (plan.record.smallestFoundBytes >= 0)
    card(readableBytes(plan.record.smallestFoundBytes),
         "smallest known to work");
  return array;
}

std::string valueLists(const Planned &planned) {
  std::string text;
  for (auto kind :
       {ModelValue::Trained, ModelValue::Frozen, ModelValue::State}) {
    std::string names;
    int64_t count = 0;
    for (const ModelValue &value : planned.values)
      if (value.kind == kind && ++count)
        names += inHtml(value.name) + "\n";
    if (count)
      text += "<details><summary>" + std::to_string(count) + " " +
              nameOf(kind) + (count == 1 ? " tensor" : " tensors") +
              "</summary><pre>" + names + "</pre></details>";
  }
  return text;
}

} // namespace

/// The caption of the curve.
static std::string curveText(const Curve &curve) {
  if (!curve.isSparse)
    return "Plans for other budgets (dots), what no plan with the same order "
           "can beat (dashed), and this plan (ring).";
  return "The plans that were found on the way to this one (dots), and this "
         "plan (ring). Between the dots nothing was sought: a budget there "
         "works with the plan to its left, and may have a cheaper one. "
         "<code>tmc plan --sweep</code> plans for a row of budgets.";
}

/// The curve's points as rows.
static std::string curveRows(const Curve &curve) {
  std::string text;
  for (const CurvePoint &p : curve.points) {
    char overhead[32];
    snprintf(overhead, sizeof overhead, "%.2f %%", p.overheadPct);
    text += "<tr><td class=\"n\">" + readableBytes(p.budgetBytes) +
            "</td><td class=\"n\">" + readableSeconds(p.seconds) +
            "</td><td class=\"n\">" + overhead + "</td><td class=\"n\">" +
            std::to_string(p.recomputedOps) + "</td><td>" + inHtml(p.levers) +
            "</td></tr>";
  }
  return text;
}

std::string tmc::planHtml(const Planned &planned, const Curve &curve) {
  const PlanTrace &trace = planned.trace;
  const PlanFigures &plan = planned.figures;
  json::Array segments;
  for (const PlanTrace::Segment &segment : trace.segments)
    segments.push_back(json::Object{{"name", segment.name},
                                    {"trips", segment.trips},
                                    {"begin", segment.begin},
                                    {"end", segment.end}});
  json::Object data{{"launches", launchColumns(trace)},
                    {"tensors", tensorColumns(trace)},
                    {"engines", names(PerEngine<bool>())},
                    {"spaces", names(PerSpace<bool>())},
                    {"values", valueColumns(trace)},
                    {"segments", std::move(segments)},
                    {"peak", trace.peakLaunch},
                    {"budget", trace.budgetBytes},
                    {"reserved", trace.reservedBytes},
                    {"explained", explainedColumns(trace)},
                    {"cards", cards(plan)}};
  std::string micro =
      plan.microBatches > 1
          ? ", " + std::to_string(plan.microBatches) + " micro-batches"
          : "";
  return filled(kPage, {{"<!--TITLE-->", inHtml(planned.model)},
                        {"<!--SUBTITLE-->",
                         inHtml("a training step for " + planned.target +
                                " in " + trace.precision + micro +
                                "; the peak is at " + peakPlace(trace))},
                        {"<!--TABLE-->", inHtml(planTable(planned))},
                        {"<!--CURVETEXT-->", curveText(curve)},
                        {"<!--CURVE-->", curveSvg(curve)},
                        {"<!--CURVEROWS-->", curveRows(curve)},
                        {"<!--MADE-->", madeHtml(planned.made)},
                        {"<!--VALUES-->", valueLists(planned)},
                        {"/*DATA*/null", inScript(std::move(data))}});
}
