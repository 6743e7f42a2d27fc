#include "driver/calibrate/MoveFit.h"

#include "compiler/support/Json.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace tmc;

namespace {

/// Smaller moves are scalars that the probe itself needs.
constexpr double kLeastBytes = 4096;
/// If fewer pieces of a size ran while all engines were busy, the first pieces
/// that ran count.
constexpr size_t kLeastMeasured = 3;

/// The time while all engines are busy.
struct Window {
  double begin = 0, end = HUGE_VAL;

  explicit Window(const MeasuredMoves &moves) {
    for (const auto &[engine, list] : moves) {
      double first = HUGE_VAL, last = 0;
      for (const MeasuredMove &move : list) {
        first = std::min(first, move.beginSeconds);
        last = std::max(last, move.endSeconds);
      }
      begin = std::max(begin, first);
      end = std::min(end, last);
    }
  }
  bool holds(const MeasuredMove &move) const {
    return begin <= move.beginSeconds && move.endSeconds <= end;
  }
};

/// Seconds of an engine's pieces that count, by their bytes.
std::map<double, std::vector<double>>
secondsOf(const std::vector<MeasuredMove> &moves, const Window &window) {
  std::map<double, std::vector<double>> inside, first;
  for (const MeasuredMove &move : moves) {
    const double seconds = move.endSeconds - move.beginSeconds;
    if (move.bytes < kLeastBytes || seconds <= 0)
      continue;
    if (window.holds(move))
      inside[move.bytes].push_back(seconds);
    if (std::vector<double> &same = first[move.bytes];
        same.size() < kLeastMeasured)
      same.push_back(seconds);
  }
  for (const auto &[bytes, list] : first)
    if (inside[bytes].size() < list.size())
      inside[bytes] = list;
  return inside;
}

double meanOf(const std::vector<double> &numbers) {
  double sum = 0;
  for (double number : numbers)
    sum += number;
  return sum / double(numbers.size());
}

double medianOf(std::vector<double> numbers) {
  auto middle = numbers.begin() + int64_t(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

} // namespace

MeasuredMoves tmc::movesOfTrace(StringRef text) {
  // The measured process; 2 is the predicted one.
  constexpr int64_t kMeasured = 1;
  constexpr double kMicro = 1e-6;
  MeasuredMoves moves;
  tmc::Expected<json::Value> value = parseJson(text);
  if (!value)
    return moves;
  const json::Object *trace = value->getAsObject();
  const json::Array *events = trace ? trace->getArray("traceEvents") : nullptr;
  if (!events)
    return moves;
  std::map<int64_t, const EngineInfo *> engines; // By thread.
  auto visit = [&](StringRef phase, auto &&each) {
    for (const json::Value &entry : *events) {
      const json::Object *event = entry.getAsObject();
      const json::Object *arguments =
          event ? event->getObject("args") : nullptr;
      if (arguments && event->getString("ph") == phase &&
          event->getInteger("pid") == kMeasured)
        each(*event, *arguments, event->getInteger("tid").value_or(-1));
    }
  };
  visit("M", [&](const json::Object &event, const json::Object &arguments,
                 int64_t thread) {
    if (event.getString("name") == StringRef("thread_name"))
      engines[thread] = findEngine(arguments.getString("name").value_or(""));
  });
  visit("X", [&](const json::Object &event, const json::Object &arguments,
                 int64_t thread) {
    const EngineInfo *engine = engines[thread];
    if (!engine)
      return;
    const double begin = event.getNumber("ts").value_or(0) * kMicro;
    moves[engine->kind].push_back(
        {arguments.getNumber("bytes").value_or(0), begin,
         begin + event.getNumber("dur").value_or(0) * kMicro});
  });
  return moves;
}

EngineRates tmc::fitRates(const MeasuredMoves &moves) {
  const Window window(moves);
  EngineRates rates;
  for (const auto &[engine, list] : moves) {
    std::map<double, std::vector<double>> seconds = secondsOf(list, window);
    if (seconds.empty())
      continue;
    const auto &[large, slow] = *seconds.rbegin();
    const auto &[small, quick] = *seconds.begin();
    const double most = meanOf(slow), least = medianOf(quick);
    Channel channel{0, large / most};
    if (small < large && least < most) {
      // The line through both; a line that would start before zero starts
      // there.
      const double rate = (large - small) / (most - least);
      const double latency = least - small / rate;
      if (latency > 0)
        channel = {latency, rate};
    }
    rates[engine] = channel;
  }
  return rates;
}

bool tmc::areFaster(const EngineRates &a, const EngineRates &b) {
  double gain = 0;
  for (const auto &[engine, channel] : a)
    if (auto at = b.find(engine); at != b.end())
      gain += std::log(at->second.seconds(MoveWork::kMostLargeBytes) /
                       channel.seconds(MoveWork::kMostLargeBytes));
  return a.size() > b.size() || (a.size() == b.size() && gain > 0);
}

void tmc::describeMoves(const EngineRates &rates, Target &target) {
  for (const auto &[engine, channel] : rates)
    if (infoOf(engine).copies)
      target.copies[engine] = channel;
  if (!rates.empty()) // They worked together.
    target.hostBytesPerSecond = 0;
  // The rate in bytes includes a rule's arithmetic, so operations bound
  // nothing.
  constexpr double kFar = 1000;
  if (auto at = rates.find(EngineKind::Host); at != rates.end()) {
    const Channel &update = at->second;
    target.updates = {update.latencySeconds, kFar * update.bytesPerSecond,
                      update.bytesPerSecond};
  }
}
