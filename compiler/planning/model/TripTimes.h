// TripTimes.h - when each entry of one trip's list runs (R12 and R17).
//
// All follows from the list: the entries that compute runs, the work of every
// other engine, and the makers that work waits for.
//
//     TripTimes trip(engines);
//     trip.add(entry, makers)   in the order of the list
//     trip.run()                `times` of each entry, and `length`
//
// Time passes from event to event: an entry of compute ends, work begins, work
// ends. Work that shares the host's memory is slowed while the shares in flight
// sum to more than the whole, so the end of work isn't known at its beginning.

#ifndef TMC_COMPILER_PLANNING_MODEL_TRIPTIMES_H
#define TMC_COMPILER_PLANNING_MODEL_TRIPTIMES_H

#include "compiler/planning/model/Problem.h"

#include <limits>
#include <span>

namespace tmc::planning {

/// Cost units [begin, end).
struct TimeSpan {
  int64_t begin = 0, end = 0;
};

class TripTimes {
public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  explicit TripTimes(size_t numEngines) : engines(numEngines) {}

  struct Entry {
    /// Null: it moves a first trip's nothing (R15); only its place has a time.
    const Recipe *recipe = nullptr;
    Phase phase = Phase::Whole;
    int32_t start = kNone; // A Done has the entry of its Start.
    bool waits = false;    // Compute waits at this Done.
    bool meets = false;    // Work that begins when `meet` says so.
  };
  /// Adds an entry. Work waits for `makers`, entries before it, as well.
  void add(const Entry &entry, std::span<const int32_t> makers);
  /// Computes the times of all entries since `clear`. None meets others.
  void run();
  void clear();
  /// Entries since `clear`.
  size_t size() const { return entries.size(); }

  // The same step by step, for work that meets that of other ranks
  // (SimulateRanks.h): `begin`, then `settle` at each time.

  Entry &entry(size_t at) { return entries[at]; }
  const Entry &entry(size_t at) const { return entries[at]; }
  void begin();
  /// Lets happen what happens at this time, which never decreases.
  void settle(int64_t time);
  /// The next time at which work or an entry of compute ends; kNever: nothing
  /// is under way.
  int64_t soonest() const;
  bool isOver() const;
  /// The work of an engine that could begin but for other ranks, or kNone.
  int32_t waitingAt(size_t engine) const {
    return engines[engine].waits ? engines[engine].active : kNone;
  }
  /// The work of `waitingAt` begins now, and takes `cost`.
  void meet(size_t engine, int64_t cost);

  /// From the beginning of the trip. A Done lasts from when compute arrives
  /// until it continues.
  std::vector<TimeSpan> times;
  int64_t length = 0; // Until every engine is idle.

private:
  struct Queue {
    std::vector<int32_t> work; // In the order of Starts.
    size_t next = 0;
    int32_t active = kNone;
    int64_t rest = 0;   // Time that it still needs at full speed.
    int64_t since = 0;  // When `rest` was right.
    bool waits = false; // `active` could begin but for other ranks.
  };

  void compute();
  bool passes(size_t at);
  bool beginNext(Queue &queue);
  bool end(Queue &queue);
  int64_t endOf(const Queue &queue) const;
  void share(int64_t by);
  bool isEnded(int32_t entry) const { return ended[size_t(entry)]; }

  std::vector<Entry> entries;
  std::vector<int32_t> makers;
  std::vector<size_t> makersBegin = {0};
  std::vector<Queue> engines;
  std::vector<char> ended;
  /// Dones that compute doesn't wait for, as the entries of their Starts; a
  /// Start waits for those before it.
  std::vector<int32_t> passed;
  std::vector<size_t> gate; // Per entry: those before it.
  size_t complete = 0;      // Those at the front of `passed` that have ended.
  size_t next = 0;          // The entry that compute comes to.
  bool isReached = false;   // Compute has come to it.
  bool isComputing = false;
  int64_t now = 0, computed = 0; // The event; the end of compute's entry.
  int64_t shares = 0;            // The work in flight has them.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_TRIPTIMES_H
