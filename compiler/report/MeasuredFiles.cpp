// MeasuredFiles.cpp - reads a trainer's profile and log.

#include "compiler/report/Measured.h"
#include "compiler/support/Escape.h"
#include "compiler/support/Json.h"
#include "compiler/target/Target.h"

#include <algorithm>
#include <cmath>

using namespace tmc;
using llvm::StringRef;
namespace json = llvm::json;

/// A profile's row has a dozen values; a step of a hundred thousand launches
/// has some millions.
static constexpr JsonLimits kProfileLimits{.maxDepth = 8,
                                           .maxValues = 32 << 20};
/// A line of a log has some dozen values.
static constexpr JsonLimits kLineLimits{.maxDepth = 8, .maxValues = 100000};
/// The last format of a log's lines (runtime/step/TrainLog.h); the first had no
/// kinds.
static constexpr int64_t kLogSchema = 2;

double MeasuredLog::medianSeconds() const {
  std::vector<double> seconds;
  for (size_t i = 1; i < steps.size(); ++i)
    if (std::isfinite(steps[i].seconds))
      seconds.push_back(steps[i].seconds);
  if (seconds.empty())
    return -1;
  auto middle = seconds.begin() + ptrdiff_t(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

/// A finite number that isn't negative; -1: there is none.
static double positive(const json::Object &object, StringRef key) {
  const auto value = object.getNumber(key);
  return value && std::isfinite(*value) && *value >= 0 ? *value : -1;
}

/// The planned seconds a step of a launch, or of the kernels' wait for it.
static double plannedSeconds(const PlanTrace::Launch &launch,
                             const PlanTrace::Segment &segment) {
  if (!launch.isDone())
    return double(launch.costPs) * double(segment.trips) * 1e-12;
  auto wait = [&](size_t shown) {
    return (double(launch.endPs[shown]) - double(launch.beginPs[shown])) *
           1e-12;
  };
  const size_t last = segment.tripPs.size() - 1;
  if (last == 0 || segment.trips < 2)
    return wait(0) * double(segment.trips);
  return wait(0) + wait(segment.middle()) * double(segment.trips - 2) +
         wait(last);
}

namespace {

/// Reads the rows of a profile, one for each launch of the plan.
class ProfileReader {
public:
  ProfileReader(const PlanTrace &trace, MeasuredProfile &profile)
      : trace(trace), profile(profile) {}

  Expected<void> read(const json::Array &rows) {
    if (rows.size() != trace.launches.size())
      return Failure::input("is of another step: it has " +
                            std::to_string(rows.size()) +
                            " launches, and the plan has " +
                            std::to_string(trace.launches.size()));
    size_t others = 0;
    for (const PlanTrace::Segment &segment : trace.segments)
      for (int32_t l = segment.begin; l < segment.end; ++l) {
        const json::Object *row = rows[size_t(l)].getAsObject();
        const auto name = row ? row->getString("name") : std::nullopt;
        if (!name || positive(*row, "seconds") < 0 ||
            positive(*row, "runs") < 0)
          return Failure::input("is no profile of a step: launch " +
                                std::to_string(l + 1) +
                                " lacks its name, seconds or runs");
        // A plan writes "stash" and the like before the name.
        others += !StringRef(visible(trace.launches[l].name)).ends_with(*name);
        add(*row, visible(name->str()), l, segment);
      }
    if (others > rows.size() / 2)
      return Failure::input("is of another step: " + std::to_string(others) +
                            " launches have other names in the plan");
    return {};
  }

private:
  const PlanTrace &trace;
  MeasuredProfile &profile;
  int64_t joined = 0; // The following rows that ran with the last one.

  void add(const json::Object &row, const std::string &name, int32_t l,
           const PlanTrace::Segment &segment) {
    const PlanTrace::Launch &launch = trace.launches[l];
    const double planned = plannedSeconds(launch, segment);
    if (joined > 0 && !profile.launches.empty()) {
      --joined;
      ++profile.launches.back().count;
      profile.launches.back().planned += planned;
      return;
    }
    // Other engines work beside the kernels, and the profile doesn't time them.
    if (!launch.isDone() &&
        (launch.isMove() || launch.engine != EngineKind::Compute))
      return;
    joined = std::max<int64_t>(row.getInteger("together").value_or(1), 1) - 1;
    MeasuredLaunch measured;
    measured.name = name;
    measured.family = launch.isDone()
                          ? "waits for moves"
                          : visible(row.getString("family").value_or("").str());
    measured.launch = l;
    measured.planned = planned;
    measured.measured = positive(row, "seconds") / double(profile.steps);
    measured.fastest = std::max(positive(row, "least_seconds"), 0.) *
                       positive(row, "runs") / double(profile.steps);
    profile.launches.push_back(std::move(measured));
  }
};

} // namespace

Expected<MeasuredProfile> tmc::readProfile(StringRef text,
                                           const PlanTrace &trace) {
  Expected<json::Object> read = parseJsonObject(text, kProfileLimits);
  if (!read)
    return Failure::input("is no profile of a step: it " +
                          read.failure().message);
  const json::Array *rows = read->getArray("launches");
  const auto device = read->getString("device");
  const auto steps = read->getInteger("steps");
  if (read->getInteger("schema") != kProfileSchema || !rows || !device ||
      !steps)
    return Failure::input("is no profile of a step: its schema isn't " +
                          std::to_string(kProfileSchema) +
                          ", or it lacks its device, steps or launches");
  if (*steps < 1)
    return Failure::input(
        "has no times: a profile begins with the second step");
  MeasuredProfile profile;
  profile.device = visible(device->str());
  profile.steps = *steps;
  if (double wall = positive(*read, "wall_seconds"); wall > 0)
    profile.wallSeconds = wall / double(*steps);
  TMC_TRY(ProfileReader(trace, profile).read(*rows));
  return profile;
}

/// Adds a line of a step.
static void addStep(const json::Object &line, MeasuredLog &log) {
  auto number = [&](StringRef key) {
    return line.getNumber(key).value_or(std::nan(""));
  };
  log.steps.push_back({number("step"), number("loss"), number("seconds")});
  for (auto [space, bytes] : log.highWaterBytes) {
    const std::string key =
        onDevice(space.kind) ? "" : std::string(space.name) + "_";
    bytes = std::max(bytes, positive(line, key + "high_water_bytes"));
  }
}

Expected<MeasuredLog> tmc::readLog(StringRef text, const std::string &plan) {
  MeasuredLog log;
  bool isOurs = true; // The lines before the first run, as in an old log.
  std::string other;
  int64_t number = 0;
  while (!text.empty()) {
    const bool isWhole = text.contains('\n');
    auto [line, rest] = text.split('\n');
    text = rest;
    ++number;
    if (line.trim().empty())
      continue;
    Expected<json::Object> read = parseJsonObject(line, kLineLimits);
    if (!read && !isWhole)
      break; // The trainer is writing it.
    if (!read)
      return Failure::input("is no log of a trainer: line " +
                            std::to_string(number) + " " +
                            read.failure().message);
    const StringRef kind = read->getString("kind").value_or("step");
    if (kind == "run") {
      if (read->getInteger("schema") != kLogSchema)
        return Failure::input("has another schema than " +
                              std::to_string(kLogSchema));
      const StringRef of = read->getString("plan_fingerprint").value_or("");
      isOurs = plan.empty() || of.empty() || of == plan;
      if (!isOurs)
        other = visible(of.str());
      log.runs += isOurs;
    } else if (isOurs && kind == "step" && read->get("loss")) {
      addStep(*read, log);
    } else if (isOurs && kind == "eval") {
      const auto step = read->getNumber("step"),
                 loss = read->getNumber("eval_loss");
      if (step && loss)
        log.evaluations.push_back({*step, *loss});
    }
  }
  if (!log.steps.empty())
    return log;
  if (!other.empty())
    return Failure::input("is of another plan: its fingerprint is " + other +
                          ", not " + plan);
  return Failure::input("is no log of a trainer: it has no line of a step");
}
