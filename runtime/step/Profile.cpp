//===- Profile.cpp - where the time of a step goes ------------------------===//

#include "runtime/step/Profile.h"

#include "runtime/step/Json.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <map>

namespace tmc {

namespace {

using Clock = std::chrono::steady_clock;

/// Rows of the second table.
constexpr size_t kMostKernels = 24;

__attribute__((format(printf, 2, 3))) void append(std::string &to,
                                                  const char *format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  to += text;
}

/// The rate in 10^9 per second, or "" if the amount is unknown.
std::string rate(double amount, double seconds) {
  std::string text;
  if (amount > 0 && seconds > 0)
    append(text, "%.1f", amount / seconds * 1e-9);
  return text;
}

} // namespace

void Profile::Time::add(double seconds) {
  least = runs ? std::min(least, seconds) : seconds;
  total += seconds;
  ++runs;
}

void Profile::start() {
  if (steps_ == 1) { // Discards the first step.
    std::fill(times_.begin(), times_.end(), Time{});
    for (std::vector<LaunchTime> &launches : launchTimes_)
      launches.clear();
    wall_ = 0;
  }
  last_ = Clock::now();
}

void Profile::addSinceLast(int64_t launch) {
  const Clock::time_point now = Clock::now();
  if (isEntry(launch))
    times_[size_t(launch)].add(
        std::chrono::duration<double>(now - last_).count());
}

void Profile::launched(Queues &queues, int64_t launch) {
  if (!byDevice_)
    addSinceLast(launch);
  if (next_)
    next_->launched(queues, launch);
  last_ = Clock::now();
}

void Profile::started(Queues &queues, int64_t launch) {
  if (next_)
    next_->started(queues, launch);
}

/// The time that compute waited is added to the done entry. On a device that
/// runs behind the caller, the wait is a gap between two launches.
void Profile::done(Queues &queues, int64_t launch) {
  if (!byDevice_)
    addSinceLast(launch);
  if (next_)
    next_->done(queues, launch);
  last_ = Clock::now();
}

void Profile::add(const StepTimes &step) {
  wall_ += step.wallSeconds();
  for (const TimedEntry &run : step.entries) {
    if (!isEntry(run.entry))
      continue;
    std::vector<LaunchTime> &known = launchTimes_[size_t(run.entry)];
    double seconds = 0;
    for (size_t i = run.first; i < run.first + run.count; ++i) {
      const DeviceLaunch &launch = step.launches[i];
      auto at =
          std::find_if(known.begin(), known.end(), [&](const LaunchTime &one) {
            return one.name == launch.name;
          });
      if (at == known.end())
        at = known.insert(at, {launch.name, {}});
      at->time.add(launch.seconds());
      seconds += launch.seconds();
    }
    times_[size_t(run.entry)].add(seconds);
  }
}

void Profile::finish() { ++steps_; }

double Profile::leastOf(const Time &time, int64_t steps) {
  return time.least * double(time.runs) / double(steps);
}

void Profile::Row::add(const Time &time, int64_t steps) {
  launches += int64_t(double(time.runs) / double(steps) + 0.5);
  mean += time.total / double(steps);
  least += leastOf(time, steps);
}

Profile::Row &Profile::Row::part(const std::string &name) {
  for (Row &row : parts)
    if (row.name == name)
      return row;
  parts.push_back({name, ""});
  return parts.back();
}

bool Profile::slower(const Row &a, const Row &b) { return a.mean > b.mean; }

std::vector<Profile::Row> Profile::rowsBy(const char *LaunchInfo::*key) const {
  std::vector<Row> rows;
  std::map<std::string, size_t> indexOf;
  for (int64_t i = 0; i < program_.launchCount; ++i) {
    const LaunchInfo &launch = program_.launches[i];
    const Time &time = times_[size_t(i)];
    const char *name = launch.*key && *(launch.*key) ? launch.*key : "other";
    const auto [at, isNew] = indexOf.try_emplace(name, rows.size());
    if (isNew)
      rows.push_back({name, launch.name});
    Row &row = rows[at->second];
    const double perStep = double(time.runs) / double(steps());
    row.add(time, steps());
    row.flops += double(launch.flops) * perStep;
    row.bytes += double(launch.bytes) * perStep;
    row.elements += double(launch.elements) * perStep;
    if (byDevice_)
      for (const LaunchTime &one : launchTimes_[size_t(i)])
        row.part("  " + one.name).add(one.time, steps());
  }
  std::sort(rows.begin(), rows.end(), slower);
  return rows;
}

std::string Profile::heading() const {
  double total = 0, least = 0;
  for (const Time &time : times_) {
    total += time.total / double(steps());
    least += leastOf(time, steps());
  }
  std::string text;
  append(text, "profile of %lld step%s after the first: ",
         static_cast<long long>(steps()), steps() == 1 ? "" : "s");
  if (byDevice_)
    append(text, "device busy %.1f ms of %.1f ms a step", total * 1e3,
           wall_ / double(steps()) * 1e3);
  else
    append(text, "%.1f ms a step", total * 1e3);
  append(text, ", %.1f ms of each launch's fastest\n", least * 1e3);
  return text;
}

std::string Profile::rowText(const Row &row, double whole) {
  std::string text, perElement;
  if (row.elements > 0)
    append(perElement, "%.2f", row.least / row.elements * 1e9);
  append(text, "%-24s %8lld %9.2f %9.2f %5.1f%% %8s %6s %8s", row.name.c_str(),
         static_cast<long long>(row.launches), row.mean * 1e3, row.least * 1e3,
         whole > 0 ? 100 * row.mean / whole : 0,
         rate(row.flops, row.least).c_str(), rate(row.bytes, row.least).c_str(),
         perElement.c_str());
  return text;
}

std::string Profile::rowsText(const char *heading, std::vector<Row> rows,
                              bool areKernels) const {
  double whole = 0;
  for (const Row &row : rows)
    whole += row.mean;
  const size_t most = areKernels ? kMostKernels : SIZE_MAX;
  if (rows.size() > most) {
    Row rest{"the rest", ""};
    for (size_t i = most; i < rows.size(); ++i) {
      rest.launches += rows[i].launches;
      rest.mean += rows[i].mean;
      rest.least += rows[i].least;
    }
    rows.resize(most);
    rows.push_back(rest);
  }
  std::string text;
  append(text, "\n%-24s %8s %9s %9s %6s %8s %6s %8s%s\n", heading, "launches",
         "ms", "least", "share", "GFLOP/s", "GB/s", "ns/elem",
         areKernels ? "  such as" : "");
  for (Row &row : rows) {
    text += rowText(row, whole);
    if (areKernels)
      append(text, "  %.80s", row.example.c_str());
    text += "\n";
    int64_t launches = 0;
    for (const Row &part : row.parts)
      launches += part.launches;
    if (!areKernels || launches <= row.launches)
      continue;
    std::sort(row.parts.begin(), row.parts.end(), slower);
    for (const Row &part : row.parts) {
      text += rowText(part, whole);
      text.resize(text.find_last_not_of(' ') + 1); // its rates are unknown
      text += "\n";
    }
  }
  return text;
}

std::string Profile::table() const {
  if (!steps())
    return "";
  std::string text = heading() +
                     rowsText("family", rowsBy(&LaunchInfo::family), false) +
                     rowsText("kernel", rowsBy(&LaunchInfo::kernel), true);
  text += "\nRates are of the least time; a kernel that reads a cache may "
          "exceed the memory's.\n";
  if (byDevice_)
    text += "Times are the device's. Between launches it is idle: it waits for "
            "the caller or\nfor a copy. Indented rows are the launches of a "
            "kernel object that makes several.\n";
  return text;
}

/// The fields of a time, without braces.
std::string Profile::jsonOf(const Time &time) {
  std::string text;
  append(text, "\"runs\": %lld, \"seconds\": %.9g, \"least_seconds\": %.9g",
         static_cast<long long>(time.runs), time.total, time.least);
  return text;
}

std::string Profile::json() const {
  std::string text = "{\"schema\": 3, \"steps\": " + std::to_string(steps()) +
                     ", \"device\": " + jsonQuoted(device_);
  if (byDevice_)
    append(text, ", \"wall_seconds\": %.9g", steps() ? wall_ : 0);
  text += ", \"objects\": {";
  for (int64_t i = 0; i < program_.objectCount; ++i)
    text += (i ? ",\n  " : "\n  ") + jsonQuoted(program_.objects[i].name) +
            ": " + jsonQuoted(program_.objects[i].object);
  text += "},\n \"launches\": [";
  for (int64_t i = 0; i < program_.launchCount && steps(); ++i) {
    const LaunchInfo &launch = program_.launches[i];
    text += i ? ",\n  " : "\n  ";
    text += "{\"name\": " + jsonQuoted(launch.name) +
            ", \"location\": " + jsonQuoted(launch.location) +
            ", \"family\": " + jsonQuoted(launch.family) +
            ", \"kernel\": " + jsonQuoted(launch.kernel) + ", " +
            jsonOf(times_[size_t(i)]);
    append(text, ", \"flops\": %lld, \"bytes\": %lld, \"elements\": %lld",
           static_cast<long long>(launch.flops),
           static_cast<long long>(launch.bytes),
           static_cast<long long>(launch.elements));
    if (launch.together > 1)
      append(text, ", \"together\": %d", int(launch.together));
    if (byDevice_) {
      text += ", \"device_launches\": [";
      const char *separator = "";
      for (const LaunchTime &one : launchTimes_[size_t(i)]) {
        text += separator + ("{\"name\": " + jsonQuoted(one.name)) + ", " +
                jsonOf(one.time) + "}";
        separator = ", ";
      }
      text += "]";
    }
    text += "}";
  }
  return text + "\n]}\n";
}

Status Profile::writeJson(const std::string &path) const {
  return writeText(path, json());
}

} // namespace tmc
