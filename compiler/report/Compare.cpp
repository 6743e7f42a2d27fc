#include "compiler/report/Compare.h"

#include "compiler/emit/Emit.h"
#include "compiler/report/Explain.h"
#include "compiler/report/Page.h"

#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <cmath>

using namespace tmc;

static constexpr PlanFigure kFigures[] = {
    {"model", "model", Unit::Text},
    {"target", "compiled_for", Unit::Text},
    {"precision", "precision.asked", Unit::Text},
    {"budget", "budget_bytes", Unit::Bytes},
    {"arena and reserved", "arena_bytes", Unit::Bytes},
    {"live at the peak", "live_peak_bytes", Unit::Bytes},
    {"the peak is at", "peak.at", Unit::Text},
    {"without recomputation", "unconstrained_bytes", Unit::Bytes},
    {"smallest known to work", "smallest_found_bytes", Unit::Bytes},
    {"predicted step", "step_time_s", Unit::Seconds},
    {"without a budget", "unconstrained_time_s", Unit::Seconds},
    {"overhead", "overhead_pct", Unit::Percent},
    {"proven at least", "lower_bound_pct", Unit::Percent},
    {"micro-batches", "micro_batches", Unit::Count},
    {"rows of logits at once", "loss_chunk", Unit::Count},
    {"launches", "launches", Unit::Count},
    {"of them again", "recomputed_ops", Unit::Count},
    {"kernels of the card", "device_launches", Unit::Count},
    {"read and written", "bytes_moved", Unit::Bytes},
    {"arena of the host", "spaces.host.arena_bytes", Unit::Bytes},
    {"arena of the file", "spaces.file.arena_bytes", Unit::Bytes},
    {"to the host", "spaces.moved_bytes.d2h", Unit::Bytes},
    {"to the device", "spaces.moved_bytes.h2d", Unit::Bytes},
    {"made", "made.date", Unit::Text},
    {"by tmc", "made.version", Unit::Text},
    {"model's fingerprint", "made.model_fingerprint", Unit::Text},
    {"plan's fingerprint", "made.plan_fingerprint", Unit::Text}};

namespace {

/// A row of two figures; "-" where one is unknown.
struct FigureRow {
  std::string title, first, second, difference;
  bool isSame() const { return first == second; }
};

std::vector<FigureRow> figureRows(const PlanFile &first,
                                  const PlanFile &second) {
  std::vector<FigureRow> rows;
  for (const PlanFigure &figure : kFigures) {
    FigureRow row{figure.title, first.shown(figure), second.shown(figure), ""};
    if (row.first.empty() && row.second.empty())
      continue;
    const auto one = first.number(figure.path),
               other = second.number(figure.path);
    if (one && other)
      row.difference = differenceAs(figure.unit, *one, *other);
    for (std::string *text : {&row.first, &row.second})
      if (text->empty())
        *text = "-";
    rows.push_back(std::move(row));
  }
  return rows;
}

/// A plan's decision about a tensor.
struct Decision {
  std::string word; // "": the plan has no such tensor.
  int64_t bytes = 0;
  double paidSeconds = 0;

  /// True if bytes leave the device for a while, or for good.
  bool frees() const {
    return word == "recomputed" || word == "moved" ||
           llvm::StringRef(word).starts_with("at home");
  }
};

llvm::StringMap<Decision> decisionsOf(const PlanTrace &trace) {
  llvm::StringMap<Decision> decisions;
  std::vector<std::vector<int32_t>> tensors = trace.tensorsOf();
  for (size_t v = 0; v < trace.values.size(); ++v) {
    const PlanTrace::Value &value = trace.values[v];
    if (value.content != int32_t(v) || tensors[v].empty())
      continue;
    Decision decision{decisionOf(trace, int32_t(v), tensors[v]), value.bytes};
    for (const PlanTrace::Gap &gap : value.gaps)
      if (!gap.held)
        decision.paidSeconds +=
            double(onDevice(gap.space) ? gap.paidPs : gap.waitedPs) * 1e-12;
    decisions[value.name] = decision;
  }
  return decisions;
}

struct DecisionRow {
  std::string name;
  Decision first, second;
  double costs() const {
    return std::abs(first.paidSeconds - second.paidSeconds);
  }
  int64_t bytes() const { return std::max(first.bytes, second.bytes); }
  std::string text(const Decision &decision) const {
    if (decision.word.empty())
      return "not there";
    return decision.word +
           (decision.paidSeconds > 0
                ? ", " + shownAs(Unit::Seconds, decision.paidSeconds)
                : "");
  }
};

/// The tensors that one plan frees and the other doesn't, or otherwise.
std::vector<DecisionRow> decisionRows(const PlanTrace &first,
                                      const PlanTrace &second) {
  std::vector<DecisionRow> rows;
  llvm::StringMap<Decision> one = decisionsOf(first),
                            other = decisionsOf(second);
  auto add = [&](llvm::StringRef name, const Decision &a, const Decision &b) {
    if (a.word != b.word && (a.frees() || b.frees()))
      rows.push_back({name.str(), a, b});
  };
  for (const auto &entry : one)
    add(entry.first(), entry.second, other.lookup(entry.first()));
  for (const auto &entry : other)
    if (!one.contains(entry.first()))
      add(entry.first(), {}, entry.second);
  llvm::sort(rows, [](const DecisionRow &a, const DecisionRow &b) {
    return std::tuple(-a.costs(), -double(a.bytes()), a.name) <
           std::tuple(-b.costs(), -double(b.bytes()), b.name);
  });
  return rows;
}

} // namespace

std::vector<std::pair<double, double>> tmc::memoryLine(const PlanTrace &trace) {
  constexpr size_t kColumns = 1000;
  const size_t together = std::max<size_t>(trace.launches.size() / kColumns, 1);
  std::vector<std::pair<double, double>> line;
  double trip = 0;
  for (const PlanTrace::Segment &segment : trace.segments) {
    double most = 0;
    for (int32_t l = segment.begin; l < segment.end; ++l) {
      const PlanTrace::Launch &launch = trace.launches[l];
      most = std::max(most, double(launch.liveBytes.device()));
      const bool isLast = l + 1 == segment.end;
      if (size_t(l) % together + 1 < together && !isLast)
        continue;
      const double bytes = (most + double(trace.reservedBytes)) / 0x1p30;
      const double from = line.empty() ? 0 : line.back().first;
      line.push_back({from, bytes});
      line.push_back(
          {std::max(from,
                    (trip + double(launch.endPs[segment.middle()])) * 1e-9),
           bytes});
      most = 0;
    }
    trip += double(segment.tripPs[segment.middle()]);
  }
  return line;
}

std::string tmc::compareText(const PlanDirectory &first,
                             const PlanDirectory &second) {
  std::string text;
  auto row = [&](const std::string &title, const std::string &one,
                 const std::string &other, const std::string &more) {
    text += "  " + atLeft(title, 24) + " " + atRight(one, 20) + " " +
            atRight(other, 20) + (more.empty() ? "" : "   ") + more + "\n";
  };
  text += "the first:  " + first.name + "\nthe second: " + second.name +
          "\n\nfigures\n";
  size_t same = 0;
  for (const FigureRow &each : figureRows(first.plan, second.plan))
    if (each.isSame())
      ++same;
    else
      row(each.title, each.first, each.second, each.difference);
  text += "  " + std::to_string(same) + " others are the same\n\ndecisions\n";
  constexpr size_t kShown = 24;
  std::vector<DecisionRow> rows = decisionRows(first.trace, second.trace);
  for (size_t i = 0; i < std::min(kShown, rows.size()); ++i)
    row(readableBytes(rows[i].bytes()), rows[i].text(rows[i].first),
        rows[i].text(rows[i].second), rows[i].name);
  if (rows.size() > kShown)
    text += "  ... and " + std::to_string(rows.size() - kShown) + " more\n";
  else if (rows.empty())
    text += "  both plans free the same tensors\n";
  return text;
}

/// The same moments of both steps, as the picture's table.
static std::string memoryTable(const PlanDirectory &first,
                               const PlanDirectory &second) {
  HtmlTable table("memory of both plans", {{"at", true},
                                           {"alive in the first", true},
                                           {"alive in the second", true}});
  const auto one = memoryLine(first.trace), other = memoryLine(second.trace);
  const double end = std::max(one.empty() ? 0 : one.back().first,
                              other.empty() ? 0 : other.back().first);
  auto at = [](const auto &line, double ms) {
    for (auto [when, gib] : line)
      if (when > ms)
        return shownAs(Unit::Bytes, gib * 0x1p30);
    return std::string("-");
  };
  constexpr int kRows = 40;
  for (int i = 0; i < kRows; ++i) {
    const double ms = end * i / kRows;
    table.row({shownAs(Unit::Seconds, ms * 1e-3), at(one, ms), at(other, ms)});
  }
  return "<details><summary>The picture as a table</summary>" + table.html() +
         "</details>";
}

std::string tmc::compareHtml(const PlanDirectory &first,
                             const PlanDirectory &second) {
  HtmlTable figures("figures of both plans", {{"figure"},
                                              {"the first", true},
                                              {"the second", true},
                                              {"difference", true}});
  for (const FigureRow &each : figureRows(first.plan, second.plan))
    figures.row({each.title, each.first, each.second, each.difference});
  HtmlTable decisions(
      "decisions that differ",
      {{"tensor"}, {"bytes", true}, {"the first"}, {"the second"}});
  for (const DecisionRow &each : decisionRows(first.trace, second.trace))
    decisions.row({each.name, readableBytes(each.bytes()),
                   each.text(each.first), each.text(each.second)});
  Line one{memoryLine(first.trace)}, other{memoryLine(second.trace), true};
  return plainPage(
      "Two plans", "The first: " + first.name + ". The second: " + second.name,
      "<h2>The first</h2>" + madeHtml(first.plan.made()) +
          "<h2>The second</h2>" + madeHtml(second.plan.made()) +
          section("Figures", "The difference is the second's.",
                  figures.html()) +
          section("Memory over the step",
                  "Bytes alive on the device at each predicted time: the first "
                  "plan, and the second (dashed).",
                  linesSvg("memory over the step of both plans",
                           "predicted time, ms", "GiB", {one, other}) +
                      memoryTable(first, second)) +
          section("Decisions that differ",
                  "Tensors that one plan recomputes or moves and the other "
                  "doesn't, or in another way. Seconds: the time that a step "
                  "takes longer for it. Sorted by the difference.",
                  decisions.size()
                      ? decisions.html()
                      : "<p>Both plans free the same tensors.</p>"));
}
