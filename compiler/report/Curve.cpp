#include "compiler/report/Curve.h"

#include "compiler/emit/Emit.h"
#include "compiler/report/PlotAxis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace tmc;

std::string tmc::curveCsv(const Curve &curve) {
  std::string text = "budget_bytes,arena_bytes,step_time_s,overhead_pct,"
                     "lower_bound_pct,recomputed_ops";
  const bool hasLevers = llvm::any_of(
      curve.points, [](const CurvePoint &p) { return !p.levers.empty(); });
  text += hasLevers ? ",levers\n" : "\n";
  llvm::raw_string_ostream os(text);
  for (const CurvePoint &p : curve.points) {
    os << p.budgetBytes << "," << p.arenaBytes << ","
       << llvm::format("%.9g,%.4f,", p.seconds, p.overheadPct);
    if (p.lowerBoundPct >= 0)
      os << llvm::format("%.4f", p.lowerBoundPct);
    os << "," << p.recomputedOps;
    if (hasLevers)
      os << ",\"" << p.levers << "\"";
    os << "\n";
  }
  return text;
}

std::string tmc::curveSvg(const Curve &curve) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 320\" "
        "class=\"curve\" role=\"img\" aria-label=\"predicted time by budget\">"
        "<style>.curve{font:12px system-ui,sans-serif;color:#24292f}"
        ".curve text,.curve circle{fill:currentColor}.curve "
        ".grid{stroke:currentColor;stroke-opacity:.15}.curve "
        ".plans,.curve .bound,.curve .this{fill:none;stroke:currentColor;"
        "stroke-width:2}.curve .bound{stroke-width:1;stroke-dasharray:4 3}"
        "@media(prefers-color-scheme:dark){.curve{color:#d8dee4}}</style>\n";
  if (curve.points.empty()) {
    os << "<text x=\"20\" y=\"40\">no plan is known</text></svg>\n";
    return text;
  }
  // A plan with moves may be faster than the step without a budget.
  double least = 0, most = 0;
  for (const CurvePoint &p : curve.points) {
    least = std::min(least, p.overheadPct);
    most = std::max(most, p.overheadPct);
  }
  int64_t unit = curve.points.back().budgetBytes >= int64_t(1) << 30 ? 1 << 30
                 : curve.points.back().budgetBytes >= 1 << 20        ? 1 << 20
                                                                     : 1 << 10;
  const char *unitName = unit == 1 << 30   ? "GiB"
                         : unit == 1 << 20 ? "MiB"
                                           : "KiB";
  auto inUnits = [&](int64_t bytes) { return double(bytes) / double(unit); };
  PlotAxis x{inUnits(curve.points.front().budgetBytes),
             inUnits(curve.points.back().budgetBytes), 60, 700};
  PlotAxis y{least * 1.08, std::max(most * 1.08, 0.1), 270, 16};
  double step = y.step(5);
  for (double v = y.first(step); v <= y.high; v += step)
    os << llvm::formatv(
        "<line class=\"grid\" x1=\"60\" x2=\"700\" y1=\"{0:F1}\" "
        "y2=\"{0:F1}\"/><text x=\"54\" y=\"{1:F1}\" "
        "text-anchor=\"end\">{2}</text>",
        y.at(v), y.at(v) + 4, tick(v));
  step = x.step(7);
  for (double v = x.first(step); v <= x.high; v += step)
    os << llvm::formatv("<line class=\"grid\" x1=\"{0:F1}\" x2=\"{0:F1}\" "
                        "y1=\"16\" y2=\"270\"/><text x=\"{0:F1}\" y=\"288\" "
                        "text-anchor=\"middle\">{1}</text>",
                        x.at(v), tick(v));
  os << "<text x=\"380\" y=\"310\" text-anchor=\"middle\">budget, " << unitName
     << "</text><text x=\"14\" y=\"143\" text-anchor=\"middle\" "
        "transform=\"rotate(-90 14 143)\">overhead, %</text>\n";
  auto line = [&](const char *name, auto value) {
    os << "<polyline class=\"" << name << "\" points=\"";
    double before = NAN;
    for (const CurvePoint &p : curve.points)
      if (double v = value(p); !std::isnan(v)) {
        if (curve.isSparse && !std::isnan(before))
          os << llvm::formatv("{0:F1},{1:F1} ", x.at(inUnits(p.budgetBytes)),
                              y.at(before));
        os << llvm::formatv("{0:F1},{1:F1} ", x.at(inUnits(p.budgetBytes)),
                            y.at(v));
        before = v;
      }
    os << "\"/>\n";
  };
  // The bounds of a few points don't hold for the budgets between them.
  if (!curve.isSparse)
    line("bound", [](const CurvePoint &p) {
      return p.lowerBoundPct < 0 ? NAN : p.lowerBoundPct;
    });
  line("plans", [](const CurvePoint &p) { return p.overheadPct; });
  auto dot = [&](const CurvePoint &p, const char *name, double radius) {
    os << llvm::formatv("<circle class=\"{0}\" cx=\"{1:F1}\" cy=\"{2:F1}\" "
                        "r=\"{3}\"><title>{4}: {5:F2} %{6}</title></circle>",
                        name, x.at(inUnits(p.budgetBytes)), y.at(p.overheadPct),
                        radius, readableBytes(p.budgetBytes), p.overheadPct,
                        p.levers.empty() ? "" : ", " + p.levers);
  };
  const std::string *before = nullptr;
  // Labels of neighbours alternate between rows, so that they don't overlap.
  int row = 0;
  for (const CurvePoint &p : curve.points) {
    dot(p, "plan", 3);
    if (!p.levers.empty() && (!before || *before != p.levers)) {
      double at = x.at(inUnits(p.budgetBytes));
      os << llvm::formatv("<text x=\"{0:F1}\" y=\"{1}\" text-anchor=\"{2}\">"
                          "{3}</text>",
                          at, 26 + 14 * (row++ % 5), at > 500 ? "end" : "start",
                          p.levers);
    }
    before = &p.levers;
  }
  if (curve.plan.arenaBytes >= 0) {
    // A budget beyond the curve is drawn at its end.
    CurvePoint shown = curve.plan;
    shown.budgetBytes =
        std::min(shown.budgetBytes, curve.points.back().budgetBytes);
    dot(shown, "this", 7);
  }
  os << "\n</svg>\n";
  return text;
}
