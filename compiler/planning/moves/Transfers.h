// Transfers.h - where transfers start and end in the device's list.
//
// The list's entries have places 0, 1, ...; each segment has one more, its end.
// A transfer's Start and Done stand before two of these places. Bytes that are
// free between them reduce stalls: a stash may end later while there is room
// for its input; a fetch may start earlier once there is room for its output.
// The place at which no engine stalls follows from the links:
//
//   - *The link to the host* takes kernels' results as soon as they are made,
//     one after the other, and *copies* of values that stay on the device (a
//     parameter that the host updates) whenever it is idle.
//   - *The link to the device* takes kernels' inputs as late as the links
//     allow, in the order in which they are wanted, and *returns* of contents
//     that the host has updated whenever it is idle.
//   - *Work on the host* starts where its copies are done, one after the other.
//
//     d2h    [stash a1][copy w1][stash a2]      [gradient][gradient]
//     host                                              [update][update]
//     h2d                    [fetch a2][fetch a1]               [w1'] [w2']
//
// Times come from the list placed before, at first from the kernels alone. So
// places and times are found in rounds, and the fastest round is kept. The
// times are those of R12 and R17: a transfer that shared the host's memory with
// other work takes longer than its cost, and gets that time in later rounds.

#ifndef TMC_COMPILER_PLANNING_MOVES_TRANSFERS_H
#define TMC_COMPILER_PLANNING_MOVES_TRANSFERS_H

#include "compiler/planning/model/TripTimes.h"

#include <limits>
#include <span>

namespace tmc::planning {

/// One run of a move or of work on the host. Its Start stands before the place
/// `start`, its Done before `done`.
struct Transfer {
  RecipeId recipe = kNone;
  InstructionId instruction = kNone;
  ValueId value = kNone; // On the device; kNone: work.
  /// Stash: the first place after its maker, and the place until which the
  /// value is there anyway or, if earlier, is written anew. Fetch: `first` is
  /// its place in the plan, `last` the first place after the last use of the
  /// instance before. Work: the first and the last place at which it may start.
  size_t first = 0, last = 0;
  size_t nextWrite = 0;      // Stash: next write of its value.
  size_t begin = 0, end = 0; // Its segment's.
  /// A copy of a value that stays, or a return of a result of the host.
  bool isIdle = false;
  int32_t work = kNone; // Copy or return: index into `works`.
  int64_t bytes = 0;
  size_t start = 0, done = 0; // Fetch: `done` is its first read.
};

/// A segment of the list: its end and its number of trips.
struct TransferSegment {
  size_t end = 0;
  int64_t trips = 1;
};

class Transfers {
public:
  /// `kernels`: in each place, or null. `live`: bytes alive there.
  Transfers(const Problem &whole, std::vector<TransferSegment> segments,
            std::vector<const Recipe *> kernels, std::vector<int64_t> live,
            int64_t limit);

  /// Stashes in the order of `first`, fetches in that of `done`; works in the
  /// list's order.
  std::vector<Transfer> stashes, fetches, works;

  /// Places all transfers; returns the makespan. `isEager`: fetches start as
  /// soon as there is room.
  int64_t place(bool isEager);

private:
  /// The transfers of one engine.
  struct Queue {
    std::vector<Transfer> &all;
    std::vector<int32_t> order = {};  // In which the engine runs them.
    std::vector<int64_t> ends = {};   // Times in the last list.
    std::vector<int64_t> takes = {};  // The longest time so far, by transfer.
    std::vector<int32_t> starts = {}; // Entries of the trip, by transfer.
    size_t started = 0, done = 0; // Places in `order` while times are taken.
    std::vector<Transfer> sorted() const;
  };
  /// The fastest list so far.
  struct Placed {
    int64_t makespan = std::numeric_limits<int64_t>::max();
    std::vector<Transfer> stashes = {}, fetches = {}, works = {};
  };
  void placeFrom(bool isEager, Placed &best);
  bool isSlowed() const;
  void round(bool isEager);
  void placeStashes();
  void placeWorks();
  void placeFetches(bool isEager);
  void placeReturns();
  int64_t takeTimes();
  void addTrip(size_t first, size_t last);
  void addStarts(Queue &queue, size_t place);
  void addDones(Queue &queue, size_t place);
  size_t entryAt(int64_t time) const;
  void take(size_t from, size_t to, int64_t bytes);

  const Problem &whole;
  std::vector<TransferSegment> segments;
  std::vector<const Recipe *> kernels;
  std::vector<int64_t> live;
  int64_t limit;
  size_t places = 0;
  Queue out{stashes}, in{fetches}, host{works};
  /// Per place: bytes; the time it is reached in the last list, and without
  /// stalls.
  std::vector<int64_t> room, begin, unstalled;
  TripTimes trip;
  std::vector<int32_t> makers; // Per value: the entry of the trip.
  /// The trip's latest entry that compute passes, and that before each place.
  int32_t passed = kNone;
  std::vector<int32_t> reachedBy;
  std::vector<size_t> stashedAt; // Per content.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_TRANSFERS_H
