#include "compiler/report/Measured.h"

#include "compiler/report/Page.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <map>

using namespace tmc;

namespace {

/// A planned figure and the measured one; negative: unknown.
struct Pair {
  std::string title;
  Unit unit;
  double planned, measured;

  std::vector<std::string> cells() const {
    auto shown = [&](double value) {
      return value < 0 ? std::string("-") : shownAs(unit, value);
    };
    return {title, shown(planned), shown(measured),
            planned < 0 || measured < 0
                ? std::string()
                : differenceAs(unit, planned, measured)};
  }
};

double measuredSum(const MeasuredProfile &profile, bool fastest) {
  double sum = 0;
  for (const MeasuredLaunch &launch : profile.launches)
    sum += fastest ? launch.fastest : launch.measured;
  return sum;
}

std::vector<Pair> figures(const Measured &measured) {
  const PlanFile &plan = measured.planned.plan;
  auto planned = [&](const char *path) {
    return plan.number(path).value_or(-1);
  };
  const double step = planned("step_time_s");
  std::vector<Pair> pairs;
  if (const MeasuredLog *log = measured.log) {
    pairs.push_back(
        {"a step, the median", Unit::Seconds, step, log->medianSeconds()});
    const double reserved = std::max(planned("reserved_bytes"), 0.);
    const double arena = planned("arena_bytes");
    pairs.push_back({"bytes in use on the device", Unit::Bytes,
                     arena < 0 ? -1 : arena - reserved,
                     log->highWaterBytes.device()});
    for (auto [space, bytes] : log->highWaterBytes)
      if (!onDevice(space.kind) && bytes > 0)
        pairs.push_back(
            {std::string("bytes in use on the ") + space.name, Unit::Bytes,
             planned(("spaces." + std::string(space.name) + ".arena_bytes")
                         .c_str()),
             bytes});
  }
  if (const MeasuredProfile *profile = measured.profile) {
    if (profile->wallSeconds >= 0)
      pairs.push_back({"a step, the profile's mean", Unit::Seconds, step,
                       profile->wallSeconds});
    double sum = 0;
    for (const MeasuredLaunch &launch : profile->launches)
      sum += launch.planned;
    pairs.push_back({"kernels and waits", Unit::Seconds, sum,
                     measuredSum(*profile, false)});
    pairs.push_back({"each launch's fastest run", Unit::Seconds, sum,
                     measuredSum(*profile, true)});
  }
  return pairs;
}

/// The launches of a family.
struct Family {
  std::string name;
  int64_t launches = 0;
  double planned = 0, measured = 0, fastest = 0;
};

std::vector<Family> families(const MeasuredProfile &profile) {
  std::map<std::string, Family> byName;
  for (const MeasuredLaunch &launch : profile.launches) {
    Family &family = byName[launch.family];
    family.name = launch.family.empty() ? "others" : launch.family;
    family.launches += launch.count;
    family.planned += launch.planned;
    family.measured += launch.measured;
    family.fastest += launch.fastest;
  }
  std::vector<Family> list;
  for (auto &[name, family] : byName)
    list.push_back(family);
  llvm::stable_sort(list, [](const Family &a, const Family &b) {
    return a.measured > b.measured;
  });
  return list;
}

/// "1.31": measured over planned.
std::string ratio(double planned, double measured) {
  char text[32] = "-";
  if (planned > 0)
    snprintf(text, sizeof text, "%.2f", measured / planned);
  return text;
}

std::vector<std::string> cells(const Family &family) {
  return {family.name,
          std::to_string(family.launches),
          shownAs(Unit::Seconds, family.planned),
          shownAs(Unit::Seconds, family.measured),
          shownAs(Unit::Seconds, family.fastest),
          ratio(family.planned, family.measured)};
}

/// The launches whose times are farthest from the plan first.
std::vector<const MeasuredLaunch *>
byDifference(const MeasuredProfile &profile) {
  std::vector<const MeasuredLaunch *> list;
  for (const MeasuredLaunch &launch : profile.launches)
    list.push_back(&launch);
  auto difference = [](const MeasuredLaunch *launch) {
    return std::abs(launch->measured - launch->planned);
  };
  llvm::stable_sort(list,
                    [&](const MeasuredLaunch *a, const MeasuredLaunch *b) {
                      return difference(a) > difference(b);
                    });
  return list;
}

std::string numberOf(const MeasuredLaunch &launch) {
  return std::to_string(launch.launch + 1) +
         (launch.count > 1 ? " and " + std::to_string(launch.count - 1) : "");
}

std::string sourcesText(const Measured &measured) {
  std::string text;
  if (measured.profile)
    text += "The profile has " + std::to_string(measured.profile->steps) +
            " steps on " + measured.profile->device + ".";
  if (measured.log)
    text += (text.empty() ? "The log has " : " The log has ") +
            std::to_string(measured.log->steps.size()) +
            " steps; the first isn't in the median.";
  return text;
}

/// The losses of the steps and of evaluations.
std::string lossSection(const MeasuredLog &log) {
  constexpr size_t kPoints = 1000;
  Line losses, evaluations;
  evaluations.isDashed = true;
  HtmlTable table("steps of the log",
                  {{"step", true}, {"loss", true}, {"seconds", true}});
  const size_t each = (log.steps.size() + kPoints - 1) / kPoints;
  for (size_t i = 0; i < log.steps.size(); i += each) {
    const MeasuredLog::Step &step = log.steps[i];
    if (std::isfinite(step.loss) && std::isfinite(step.step))
      losses.points.push_back({step.step, step.loss});
    char loss[32];
    snprintf(loss, sizeof loss, "%.6g", step.loss);
    table.row({shownAs(Unit::Count, step.step), loss,
               std::isfinite(step.seconds)
                   ? shownAs(Unit::Seconds, step.seconds)
                   : "-"});
  }
  for (auto [step, loss] : log.evaluations)
    if (std::isfinite(step) && std::isfinite(loss))
      evaluations.points.push_back({step, loss});
  return section(
      "The loss",
      each > 1 ? "Every " + std::to_string(each) +
                     "th step of the log, and evaluations (dashed)."
               : "The steps of the log, and evaluations (dashed).",
      linesSvg("loss over steps", "step", "loss", {losses, evaluations}) +
          "<details><summary>The picture as a table</summary>" + table.html() +
          "</details>");
}

} // namespace

std::string tmc::measuredText(const Measured &measured) {
  std::string text =
      measured.planned.name + "\n" + sourcesText(measured) +
      "\n\nfigures                         planned    measured\n";
  for (const Pair &pair : figures(measured)) {
    std::vector<std::string> row = pair.cells();
    text += "  " + atLeft(row[0], 26) + " " + atRight(row[1], 10) + "  " +
            atRight(row[2], 10) + (row[3].empty() ? "" : "   ") + row[3] + "\n";
  }
  if (!measured.profile)
    return text;
  text += "\nkernels                launches     planned    measured     "
          "fastest   measured/planned\n";
  for (const Family &family : families(*measured.profile)) {
    std::vector<std::string> row = cells(family);
    text += "  " + atLeft(row[0], 22) + " " + atRight(row[1], 6);
    for (size_t i = 2; i < 5; ++i)
      text += "  " + atRight(row[i], 10);
    text += "   " + row[5] + "\n";
  }
  constexpr size_t kShown = 12;
  text += "\nlaunches, the farthest from the plan first\n";
  std::vector<const MeasuredLaunch *> list = byDifference(*measured.profile);
  list.resize(std::min(list.size(), kShown));
  for (const MeasuredLaunch *launch : list)
    text += "  " + atRight(numberOf(*launch), 8) + "  " +
            atRight(shownAs(Unit::Seconds, launch->planned), 10) + "  " +
            atRight(shownAs(Unit::Seconds, launch->measured), 10) + "   " +
            launch->name + "\n";
  return text;
}

std::string tmc::measuredHtml(const Measured &measured) {
  HtmlTable table("measured beside planned", {{"figure"},
                                              {"planned", true},
                                              {"measured", true},
                                              {"difference", true}});
  for (const Pair &pair : figures(measured))
    table.row(pair.cells());
  std::string body =
      madeHtml(measured.planned.plan.made()) +
      section("Measured beside planned", sourcesText(measured), table.html());
  if (const MeasuredProfile *profile = measured.profile) {
    HtmlTable kernels("families of kernels", {{"kernels"},
                                              {"launches", true},
                                              {"planned", true},
                                              {"measured", true},
                                              {"fastest", true},
                                              {"measured/planned", true}});
    for (const Family &family : families(*profile))
      kernels.row(cells(family));
    HtmlTable launches("launches", {{"name"},
                                    {"launch", true},
                                    {"kernel"},
                                    {"planned", true},
                                    {"measured", true},
                                    {"fastest", true},
                                    {"measured/planned", true}});
    for (const MeasuredLaunch *launch : byDifference(*profile))
      launches.row({launch->name, numberOf(*launch), launch->family,
                    shownAs(Unit::Seconds, launch->planned),
                    shownAs(Unit::Seconds, launch->measured),
                    shownAs(Unit::Seconds, launch->fastest),
                    ratio(launch->planned, launch->measured)});
    body +=
        section("Kernels", "Seconds a step of each family.", kernels.html()) +
        section("Launches", "Seconds a step; the farthest from the plan first.",
                launches.html());
  }
  if (measured.log)
    body += lossSection(*measured.log);
  return plainPage(measured.planned.plan.text("model") + ", measured",
                   "The step of " + measured.planned.name, body);
}
