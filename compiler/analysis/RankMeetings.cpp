// RankMeetings.cpp - runs the lists of all ranks until they end or get stuck.
//
// Each wait points backwards in its rank's list. So a rank alone never gets
// stuck, and a rank that stands still has a call in front of its network.

#include "compiler/analysis/RankChecks.h"

#include <algorithm>
#include <deque>
#include <map>

using namespace tmc;

namespace {

/// An entry in the queue of an engine, or the one that compute stands at.
struct Queued {
  const RankEntry *entry = nullptr;
  int64_t record = -1; // The number of its record, or of the one it waits for.
  int64_t call = 0;    // The number of the call.
};

class Rank {
public:
  explicit Rank(const RankProgram &program) : program(program) {}

  bool isAtEnd() const {
    if (next < program.entries.size())
      return false;
    for (auto [engine, queue] : queues)
      if (!queue.empty())
        return false;
    return true;
  }

  /// Goes on until the network has a call in front, or to the end.
  bool advance() {
    bool moved = false, any = true;
    while (any) {
      any = compute();
      for (auto [engine, queue] : queues)
        while (!queue.empty() && passes(queue.front())) {
          queue.pop_front();
          any = true;
        }
      moved |= any;
    }
    return moved;
  }

  /// The call in front of the network; null: there is none.
  const Queued *call() const {
    const auto &queue = queues[EngineKind::Network];
    return !queue.empty() && queue.front().entry->isCall() ? &queue.front()
                                                           : nullptr;
  }
  void endCall() { queues[EngineKind::Network].pop_front(); }

private:
  const RankProgram &program;
  size_t next = 0; // The entry that compute comes to.
  PerEngine<std::deque<Queued>> queues;
  std::map<int64_t, int64_t> latest; // The latest record of each event.
  std::vector<bool> passed;          // By record.
  int64_t calls = 0;

  bool passes(const Queued &queued) {
    switch (queued.entry->kind) {
    case RankEntry::Kind::Work:
      return !queued.entry->isCall();
    case RankEntry::Kind::Record:
      passed[size_t(queued.record)] = true;
      return true;
    case RankEntry::Kind::Wait:
      return queued.record < 0 || passed[size_t(queued.record)];
    case RankEntry::Kind::Done:
      return true;
    }
    return true;
  }

  /// Comes to the next entry: compute runs it, or another engine queues it.
  bool compute() {
    if (next == program.entries.size())
      return false;
    const RankEntry &entry = program.entries[next];
    Queued queued{&entry, -1, 0};
    if (entry.kind == RankEntry::Kind::Wait) {
      auto record = latest.find(entry.event);
      queued.record = record == latest.end() ? -1 : record->second;
    }
    if (entry.engine == EngineKind::Compute &&
        entry.kind == RankEntry::Kind::Wait && !passes(queued))
      return false;
    if (entry.kind == RankEntry::Kind::Record) {
      queued.record = latest[entry.event] = int64_t(passed.size());
      passed.push_back(entry.engine == EngineKind::Compute);
    }
    if (entry.isCall())
      queued.call = ++calls;
    if (entry.engine != EngineKind::Compute)
      queues[entry.engine].push_back(queued);
    ++next;
    return true;
  }
};

class World {
public:
  explicit World(const ShownRanks &shown) : shown(shown) {
    for (const RankProgram *program : shown.programs)
      ranks.emplace_back(*program);
  }

  std::optional<RankFault> run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (Rank &rank : ranks)
        moved |= rank.advance();
      for (int rank = 0; rank < shown.size(); ++rank)
        moved |= meet(rank);
    }
    for (int rank = 0; rank < shown.size(); ++rank)
      if (!ranks[size_t(rank)].isAtEnd())
        return cycleFrom(rank);
    return {};
  }

private:
  const ShownRanks &shown;
  std::vector<Rank> ranks;

  RankSide sideOf(int rank) const {
    const Queued *queued = ranks[size_t(rank)].call();
    return queued ? RankSide{rank, queued->call, queued->entry} : RankSide();
  }

  /// The ranks that a call meets, its own as well.
  std::vector<int> partnersOf(const RankSide &side) const {
    const RankCall &call = *side.entry->call;
    if (call.isMessage())
      return {side.rank, peerOf(shown, side)};
    return shown.mesh.group(call.axis, side.rank);
  }

  /// A partner that isn't there; -1: all are.
  int missingAt(const RankSide &side) const {
    const RankCall &call = *side.entry->call;
    for (int partner : partnersOf(side)) {
      const RankSide other = sideOf(partner);
      if (!other.entry)
        return partner;
      const RankCall &its = *other.entry->call;
      const bool meets =
          partner == side.rank ||
          (its.axis == call.axis && its.isMessage() == call.isMessage() &&
           (!call.isMessage() ||
            (its.kind != call.kind && peerOf(shown, other) == side.rank)));
      if (!meets)
        return partner;
    }
    return -1;
  }

  /// Ends the call that a rank stands at, with those of its partners.
  bool meet(int rank) {
    const RankSide side = sideOf(rank);
    if (!side.entry || missingAt(side) >= 0)
      return false;
    for (int partner : partnersOf(side))
      ranks[size_t(partner)].endCall();
    return true;
  }

  /// All ranks stand still, and one of them is `rank`.
  RankFault cycleFrom(int rank) const {
    std::vector<int> way; // Each waits for the next.
    auto find = [&] { return std::find(way.begin(), way.end(), rank); };
    while (find() == way.end()) {
      way.push_back(rank);
      const RankSide side = sideOf(rank);
      rank = side.entry ? missingAt(side) : rank;
    }
    way.erase(way.begin(), find());
    RankFault fault{RankFaultKind::Cycle, "", nullptr, "", nullptr};
    for (int each : way) {
      const RankSide side = sideOf(each);
      const std::string text =
          side.entry ? textOf(shown, side) : shown.nameOf(each);
      if (fault.message.empty()) {
        fault.message = text;
        fault.at = side.entry ? side.entry->op : nullptr;
        continue;
      }
      if (fault.otherMessage.empty()) {
        fault.message += ", waits for " + text;
        fault.otherMessage = text + ", is here";
        fault.other = side.entry ? side.entry->op : nullptr;
      } else {
        fault.message += ", which waits for " + text;
      }
    }
    fault.message += ", which waits for " + shown.nameOf(way[0]);
    return fault;
  }
};

} // namespace

std::optional<RankFault> tmc::checkMeetings(const ShownRanks &ranks) {
  return World(ranks).run();
}
