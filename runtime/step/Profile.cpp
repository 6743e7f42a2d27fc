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

void Profile::start() {
  if (steps_ == 1) // Discards the first step.
    std::fill(times_.begin(), times_.end(), Time{});
  last_ = Clock::now();
}

void Profile::launched(Queues &queues, int64_t launch) {
  if (program_.backend != Backend::Cpu)
    queues.drain();
  const Clock::time_point now = Clock::now();
  if (launch >= 0 && launch < program_.launchCount)
    add(launch, std::chrono::duration<double>(now - last_).count());
  if (next_)
    next_->launched(queues, launch);
  last_ = Clock::now();
}

void Profile::started(Queues &queues, int64_t launch) {
  if (next_)
    next_->started(queues, launch);
}

/// The time that compute waited is added to the done entry.
void Profile::done(Queues &queues, int64_t launch) {
  const Clock::time_point now = Clock::now();
  if (launch >= 0 && launch < program_.launchCount)
    add(launch, std::chrono::duration<double>(now - last_).count());
  if (next_)
    next_->done(queues, launch);
  last_ = Clock::now();
}

void Profile::add(int64_t launch, double seconds) {
  Time &time = times_[size_t(launch)];
  time.least = time.runs ? std::min(time.least, seconds) : seconds;
  time.total += seconds;
  ++time.runs;
}

void Profile::finish() { ++steps_; }

double Profile::leastOf(const Time &time) const {
  return time.least * double(time.runs) / double(steps());
}

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
    row.launches += int64_t(perStep + 0.5);
    row.mean += time.total / double(steps());
    row.least += leastOf(time);
    row.flops += double(launch.flops) * perStep;
    row.bytes += double(launch.bytes) * perStep;
    row.elements += double(launch.elements) * perStep;
  }
  std::sort(rows.begin(), rows.end(),
            [](const Row &a, const Row &b) { return a.mean > b.mean; });
  return rows;
}

std::string Profile::table() const {
  if (!steps())
    return "";
  double total = 0, least = 0;
  for (const Time &time : times_) {
    total += time.total / double(steps());
    least += leastOf(time);
  }
  std::string text;
  append(text,
         "profile of %lld step%s after the first: %.1f ms a step, %.1f ms of "
         "each launch's fastest\n",
         static_cast<long long>(steps()), steps() == 1 ? "" : "s", total * 1e3,
         least * 1e3);
  auto print = [&](const char *heading, std::vector<Row> rows, size_t most,
                   bool examples) {
    append(text, "\n%-24s %8s %9s %9s %6s %8s %6s %8s%s\n", heading, "launches",
           "ms", "least", "share", "GFLOP/s", "GB/s", "ns/elem",
           examples ? "  such as" : "");
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
    for (const Row &row : rows) {
      std::string perElement;
      if (row.elements > 0)
        append(perElement, "%.2f", row.least / row.elements * 1e9);
      append(text, "%-24s %8lld %9.2f %9.2f %5.1f%% %8s %6s %8s%s%.80s\n",
             row.name.c_str(), static_cast<long long>(row.launches),
             row.mean * 1e3, row.least * 1e3,
             total > 0 ? 100 * row.mean / total : 0,
             rate(row.flops, row.least).c_str(),
             rate(row.bytes, row.least).c_str(), perElement.c_str(),
             examples ? "  " : "", examples ? row.example.c_str() : "");
    }
  };
  print("family", rowsBy(&LaunchInfo::family), SIZE_MAX, false);
  print("kernel", rowsBy(&LaunchInfo::kernel), kMostKernels, true);
  text += "\nRates are of the least time; a kernel that reads a cache may "
          "exceed the memory's.\n";
  return text;
}

std::string Profile::json() const {
  std::string text = "{\"schema\": 1, \"steps\": " + std::to_string(steps()) +
                     ", \"launches\": [";
  for (int64_t i = 0; i < program_.launchCount && steps(); ++i) {
    const LaunchInfo &launch = program_.launches[i];
    const Time &time = times_[size_t(i)];
    text += i ? ",\n  " : "\n  ";
    text += "{\"name\": " + jsonQuoted(launch.name) +
            ", \"location\": " + jsonQuoted(launch.location) +
            ", \"family\": " + jsonQuoted(launch.family) +
            ", \"kernel\": " + jsonQuoted(launch.kernel);
    append(text,
           ", \"runs\": %lld, \"seconds\": %.9g, \"least_seconds\": %.9g, "
           "\"flops\": %lld, \"bytes\": %lld, \"elements\": %lld}",
           static_cast<long long>(time.runs), time.total, time.least,
           static_cast<long long>(launch.flops),
           static_cast<long long>(launch.bytes),
           static_cast<long long>(launch.elements));
  }
  return text + "\n]}\n";
}

Status Profile::writeJson(const std::string &path) const {
  return writeText(path, json());
}

} // namespace tmc
