//===- Works.cpp - which queued work happens before which -----------------===//

#include "test/cuda/emulator/Works.h"

#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Schedule.h"

#include <algorithm>

namespace tmc::emulator {

bool hasConcurrentWork = false;

namespace {

/// Work that has run, in the order of its serial numbers.
struct Done {
  uint32_t firstSerial;
  size_t stream;
  uint64_t number;     // of its stream's
  const void *kernel;  // or null, and then
  const char *literal; // what it is
};
std::vector<Done> &doneWork() {
  static auto *all = new std::vector<Done>;
  return *all;
}
std::vector<RangeAccess> &ranges() {
  static auto *all = new std::vector<RangeAccess>;
  return *all;
}
/// How much of each stream has run; what the running work knows.
WorkClock ran, known;
bool severalStreams = false;

uint64_t at(const WorkClock &clock, size_t stream) {
  return stream < clock.size() ? clock[stream] : 0;
}

const Done *workOf(uint32_t serial) {
  const std::vector<Done> &all = doneWork();
  const auto after = std::upper_bound(
      all.begin(), all.end(), serial,
      [](uint32_t s, const Done &work) { return s < work.firstSerial; });
  return after == all.begin() ? nullptr : &*(after - 1);
}

} // namespace

void join(WorkClock &into, const WorkClock &from) {
  into.resize(std::max(into.size(), from.size()));
  for (size_t i = 0; i < from.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

bool isWithin(const WorkClock &a, const WorkClock &b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] > at(b, i))
      return false;
  return true;
}

void beginWork(size_t stream, const WorkClock &clock) {
  severalStreams = severalStreams || stream != 0;
  hasConcurrentWork = !isWithin(ran, clock);
  known = clock;
  if (ran.size() <= stream)
    ran.resize(stream + 1);
  ran[stream] = std::max(ran[stream], at(clock, stream));
  doneWork().push_back(
      {takeSerial(), stream, at(clock, stream), nullptr, "work"});
}

void forgetWorks() {
  doneWork().clear();
  ranges().clear();
  hasConcurrentWork = false;
}

bool isOrderedBefore(uint32_t serial) {
  const Done *work = workOf(serial);
  return !work || work->number <= at(known, work->stream);
}

std::string workName(uint32_t serial) {
  const Done *work = workOf(serial);
  if (!work)
    return "work";
  return (work->kernel ? functionName(reinterpret_cast<uintptr_t>(work->kernel))
                       : work->literal) +
         " on stream " + std::to_string(work->stream);
}

void nameWork(const void *kernel) {
  if (!doneWork().empty())
    doneWork().back().kernel = kernel;
}
void nameWork(const char *literal) {
  if (!doneWork().empty())
    doneWork().back().literal = literal;
}

void noteRange(uintptr_t begin, size_t bytes, bool writes) {
  if (severalStreams && !doneWork().empty())
    ranges().push_back(
        {begin, begin + bytes, writes, doneWork().back().firstSerial});
}

const RangeAccess *conflictingRange(uintptr_t begin, size_t bytes,
                                    bool writes) {
  if (!hasConcurrentWork)
    return nullptr;
  for (const RangeAccess &range : ranges())
    if (begin < range.end && range.begin < begin + bytes &&
        (writes || range.writes) && !isOrderedBefore(range.serial))
      return &range;
  return nullptr;
}

} // namespace tmc::emulator
