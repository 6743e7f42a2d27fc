// RankWaits.cpp - the engines of a rank touch the bytes of its calls in time.

#include "compiler/analysis/RankChecks.h"

#include <algorithm>
#include <deque>
#include <map>

using namespace tmc;

namespace {

using Clock = PerEngine<int64_t>;

/// Work, and its number on its engine.
struct Point {
  const RankEntry *entry = nullptr;
  int64_t number = 0;
};

bool meet(const RankBytes &a, const RankBytes &b) {
  return a.space == b.space && a.begin < b.end && b.begin < a.end;
}

/// The bytes of `a` that meet some of `b`'s.
const RankBytes *firstMeeting(const std::vector<RankBytes> &a,
                              const std::vector<RankBytes> &b) {
  for (const RankBytes &x : a)
    for (const RankBytes &y : b)
      if (meet(x, y))
        return &x;
  return nullptr;
}

class Waits {
public:
  explicit Waits(const RankProgram &program) : program(program) {
    for (const RankBuffer &buffer : program.buffers)
      isMade.push_back(buffer.isKept);
  }

  std::optional<RankFault> run() {
    for (const RankEntry &entry : program.entries) {
      if (fault)
        return std::move(fault);
      visit(entry);
    }
    if (!fault && !open.empty())
      report(RankFaultKind::Wait, *open.begin()->second.entry,
             " never waits for " + textOf(*open.begin()->second.entry) +
                 ": it has no done");
    for (const auto &[buffer, cut] : cuts)
      if (!fault)
        report(RankFaultKind::Missing, *cut,
               " takes its piece of '" + cut->name +
                   "', and no gather makes it whole again");
    return std::move(fault);
  }

private:
  const RankProgram &program;
  std::optional<RankFault> fault;
  Clock at;                        // Entries of each engine so far.
  PerEngine<Clock> now;            // Entries that are over before the next one.
  std::map<int64_t, Clock> events; // At the latest record of each.
  std::map<int64_t, Point> workOf; // The call of each event.
  /// Work that the network may not have waited for.
  PerEngine<std::deque<Point>> recent;
  std::vector<Point> calls;                // All so far.
  std::map<const RankEntry *, Point> open; // Calls without a done.
  const RankEntry *last = nullptr;         // The call before this entry.
  std::vector<bool> isMade;                // By buffer.
  /// Cuts of kept buffers, which a gather must write again.
  std::map<int32_t, const RankEntry *> cuts;

  void report(RankFaultKind kind, const RankEntry &at, std::string text,
              const RankEntry *other = nullptr) {
    if (fault)
      return;
    fault = RankFault{kind, std::move(text), at.op, "", nullptr};
    if (other) {
      fault->other = other->op;
      fault->otherMessage = other->call && other->call->travels()
                                ? textOf(*other) + " is here"
                                : "the other access is here";
    }
  }

  std::string nameOf(const RankBytes &bytes) const {
    return "'" + program.buffers[size_t(bytes.buffer)].name + "'";
  }

  void visit(const RankEntry &entry) {
    switch (entry.kind) {
    case RankEntry::Kind::Work:
      return work(entry);
    case RankEntry::Kind::Record: {
      Clock clock = now[entry.engine];
      clock[entry.engine] = at[entry.engine];
      events[entry.event] = clock;
      if (entry.engine == EngineKind::Network && last)
        workOf[entry.event] = {last, at[entry.engine]};
      return;
    }
    case RankEntry::Kind::Wait:
      return wait(entry);
    case RankEntry::Kind::Done:
      return done(entry);
    }
  }

  void wait(const RankEntry &entry) {
    auto event = events.find(entry.event);
    if (event == events.end())
      return report(RankFaultKind::Wait, entry,
                    " waits on " + std::string(tmc::nameOf(entry.engine)) +
                        " for event " + std::to_string(entry.event) +
                        ", which nothing has recorded");
    for (auto [engine, mine] : now[entry.engine])
      mine = std::max(mine, event->second[engine.kind]);
    if (entry.engine != EngineKind::Network)
      return;
    for (auto [engine, points] : recent)
      while (!points.empty() &&
             points.front().number <= now[EngineKind::Network][engine.kind])
        points.pop_front();
  }

  void done(const RankEntry &entry) {
    auto work = workOf.find(entry.event);
    if (work == workOf.end())
      return;
    if (work->second.number > now[EngineKind::Compute][EngineKind::Network])
      report(RankFaultKind::Wait, entry,
             " counts " + textOf(*work->second.entry) +
                 " as done where the kernels haven't waited for it",
             work->second.entry);
    open.erase(work->second.entry);
  }

  void work(const RankEntry &entry) {
    const Point point{&entry, ++at[entry.engine]};
    now[entry.engine][entry.engine] = point.number;
    checkMade(entry);
    if (entry.isCall()) {
      begin(point);
      calls.push_back(point);
      open[&entry] = point;
      last = &entry;
      return;
    }
    if (entry.engine == EngineKind::Network)
      return report(RankFaultKind::Wait, entry,
                    " runs '" + entry.name +
                        "' on the network, which isn't a call");
    checkBeside(entry);
    recent[entry.engine].push_back(point);
  }

  /// An operand is made before it is read.
  void checkMade(const RankEntry &entry) {
    for (const RankBytes &bytes : entry.reads)
      if (!isMade[size_t(bytes.buffer)])
        return report(RankFaultKind::Missing, entry,
                      " reads " + nameOf(bytes) + " in '" + entry.name +
                          "', which nothing has made");
    for (const RankBytes &bytes : entry.writes)
      isMade[size_t(bytes.buffer)] = true;
    if (!entry.call)
      return;
    if (entry.call->kind == RankCall::Kind::Gather)
      for (const RankBytes &bytes : entry.writes)
        cuts.erase(bytes.buffer);
    if (entry.call->kind == RankCall::Kind::Cut)
      for (const RankBytes &bytes : entry.reads)
        if (program.buffers[size_t(bytes.buffer)].isKept)
          cuts[bytes.buffer] = &entry;
  }

  /// The work of other engines that touches a call's bytes is over.
  void begin(const Point &point) {
    const RankEntry &call = *point.entry;
    for (const auto &[engine, points] : recent)
      for (const Point &other : points) {
        auto tell = [&](const RankBytes *bytes, const char *does,
                        const char *did) {
          if (bytes)
            report(RankFaultKind::Wait, call,
                   std::string(" ") + does + " " + nameOf(*bytes) + " in " +
                       textOf(call) + " while " + engine.name + " may still " +
                       did + " it: the network doesn't wait",
                   other.entry);
        };
        tell(firstMeeting(call.reads, other.entry->writes), "reads", "write");
        tell(firstMeeting(call.writes, other.entry->writes), "writes", "write");
        tell(firstMeeting(call.writes, other.entry->reads), "writes", "read");
      }
  }

  /// The calls whose bytes other work touches are over.
  void checkBeside(const RankEntry &entry) {
    const int64_t over = now[entry.engine][EngineKind::Network];
    for (size_t c = size_t(over); c < calls.size(); ++c) {
      const RankEntry &call = *calls[c].entry;
      auto tell = [&](const RankBytes *bytes, const char *does,
                      const char *may) {
        if (bytes)
          report(RankFaultKind::Wait, entry,
                 std::string(" ") + does + " " + nameOf(*bytes) + " on " +
                     tmc::nameOf(entry.engine) + " while " + textOf(call) +
                     " may still " + may + " it",
                 &call);
      };
      tell(firstMeeting(entry.reads, call.writes), "reads", "write");
      tell(firstMeeting(entry.writes, call.writes), "writes", "write");
      tell(firstMeeting(entry.writes, call.reads), "writes", "read");
    }
  }
};

} // namespace

std::optional<RankFault> tmc::checkWaits(const RankProgram &program) {
  return Waits(program).run();
}
