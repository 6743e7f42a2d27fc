#include "compiler/planning/model/VerifyWalk.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

using Wide = __int128;
using Defect = std::optional<std::string>;

template <typename... Words> Defect defect(const Words &...words) {
  return absl::StrCat(words...);
}

/// The bytes of one write, or of a home at the step's begin.
struct Version {
  ValueId value = kNone;
  int32_t from = -1; // Its writer's Start (or only entry); -1: none.
  int32_t made = -1; // Its writer's Done.
};
constexpr int32_t kUnmade = -1, kNothing = -2;

/// One entry of the unrolled step.
struct Entry {
  const Execution *execution = nullptr;
  const Recipe *recipe = nullptr;
  SegmentId segment = 0;
  int32_t start = 0, done = 0;        // The entries of the same work.
  std::vector<int32_t> reads, writes; // Versions; a Done has none.
  bool idle = false;                  // A move of a first trip's nothing.
  /// Pairs of old homes and new homes that the entry writes in their places.
  std::vector<std::pair<int32_t, int32_t>> oldHomes;
};

class Walk {
public:
  Walk(const Problem &problem, const Solution &solution, WalkMeasure &measure)
      : problem(problem), solution(solution), measure(measure),
        meaning(problem.values.size(), kUnmade),
        initial(problem.values.size(), kUnmade),
        homeWrites(problem.values.size(), 0) {}

  Defect run() {
    if (Defect d = verifyLists(problem, solution))
      return d;
    if (Defect d = chooseHomes())
      return d;
    for (SegmentId s = 0; s < SegmentId(problem.segments.size()); ++s)
      if (Defect d = nameSegment(s))
        return d;
    if (Defect d = checkHomes())
      return d;
    return walkBack();
  }

private:
  const std::string &nameOf(ValueId v) const { return problem.values[v].name; }
  ValueId mainOf(ValueId v) const {
    ValueId main = problem.values[v].formOf;
    return main == kNone ? v : main;
  }
  bool onDevice(const Recipe &r) const {
    for (const std::vector<ValueId> *list : {&r.reads, &r.writes})
      for (ValueId v : *list)
        if (problem.values[v].space == 0)
          return true;
    return false;
  }

  Defect chooseHomes();
  Defect nameSegment(SegmentId s);
  Defect nameTrip(SegmentId s, bool first);
  Defect nameEntry(SegmentId s, int32_t index, Entry &entry);
  Defect nameWrites(Entry &entry, int32_t at);
  Defect checkTakes(const Entry &entry) const;
  Defect checkHomes();
  Wide timeFrom(size_t begin) const;

  Defect walkBack();
  void hold(const Entry &entry);
  Defect checkHomePlace(const Entry &entry, int32_t old, int32_t now) const;
  Defect release(const Entry &entry, int32_t at);
  void change(int32_t version, int needs, int holds);
  /// Pairs (old, new) of versions: the new one takes the old one's place.
  std::vector<std::pair<int32_t, int32_t>> takesOf(const Entry &entry) const;

  const Problem &problem;
  const Solution &solution;
  WalkMeasure &measure;
  std::vector<ValueId> homes; // Per main form.
  std::vector<Version> versions;
  std::vector<Entry> entries;
  std::vector<int32_t> meaning; // The version that a name means.
  std::vector<int32_t> initial; // A home's version at the begin.
  std::vector<int32_t> homeWrites;
  std::vector<int32_t> busyUntil; // Per value: a Done.
  std::vector<char> needed;       // Per version, by later entries.
  std::vector<int32_t> held;      // By how many works in flight.
  std::vector<int32_t> taker;     // The entry that takes its place.
  std::vector<Wide> bytes;        // Per space.
};

Defect Walk::chooseHomes() {
  homes.assign(problem.values.size(), kNone);
  for (ValueId h : solution.homes) {
    if (h < 0 || size_t(h) >= problem.values.size())
      return defect("R14: there is no value ", h, " to be a home");
    const Value &v = problem.values[h];
    ValueId main = mainOf(h);
    if (v.kind != ValueKind::Persistent && !v.liveOut)
      return defect("R14: '", v.name, "' may not be a home");
    if (homes[main] != kNone)
      return defect("R14: '", nameOf(main), "' has two homes");
    if (problem.values[main].pinned && main != h)
      return defect("R14: '", nameOf(main), "' is pinned, but '", v.name,
                    "' is its home");
    homes[main] = h;
  }
  // First the homes of contents at the step's begin, then those of their
  // updates.
  std::vector<ValueId> heir(problem.values.size(), kNone);
  for (ValueId v = 0; v < ValueId(problem.values.size()); ++v) {
    const Value &value = problem.values[v];
    if (value.updates != kNone)
      heir[value.updates] = v;
    if (mainOf(v) != v || value.updates != kNone)
      continue;
    if (homes[v] == kNone)
      homes[v] = v;
    if (value.kind == ValueKind::Persistent) {
      meaning[homes[v]] = initial[homes[v]] = int32_t(versions.size());
      versions.push_back({homes[v]});
    }
  }
  for (ValueId v = 0; v < ValueId(problem.values.size()); ++v) {
    if (mainOf(v) != v || problem.values[v].updates == kNone)
      continue;
    ValueId old = homes[mainOf(problem.values[v].updates)];
    if (heir[old] == kNone || mainOf(heir[old]) != v ||
        (homes[v] != kNone && homes[v] != heir[old]))
      return defect("R14: the home of '", nameOf(v),
                    "' isn't that of what it updates, '", nameOf(old), "'");
    homes[v] = heir[old];
  }
  return std::nullopt;
}

Defect Walk::nameSegment(SegmentId s) {
  const Segment &segment = problem.segments[s];
  std::vector<ValueId> carried;
  int64_t lag = 1; // The most.
  std::vector<char> makes(problem.values.size(), 0);
  for (InstructionId i : segment.instructions)
    for (ValueId w : problem.recipes[problem.instructions[i].recipes[0]].writes)
      makes[mainOf(w)] = 1;
  for (ValueId v = 0; v < ValueId(problem.values.size()); ++v)
    if (ValueId from = problem.values[v].carriedFrom;
        from != kNone && makes[mainOf(from)]) {
      carried.push_back(v);
      lag = std::max<int64_t>(lag, problem.values[v].lag);
    }
  std::vector<int32_t> outside = meaning;
  // One more than shows every moment, as a check of that.
  const int64_t unrolled = 2 * lag + 2;
  int64_t trips = std::min(segment.trips, unrolled);
  std::vector<std::vector<int32_t>> after; // Meanings at the end of each trip.
  for (int64_t trip = 0; trip < trips; ++trip) {
    if (trip > 0)
      after.push_back(meaning);
    meaning = outside;
    for (ValueId c : carried) {
      const Value &value = problem.values[c];
      if (trip >= value.lag)
        meaning[c] = after[size_t(trip - value.lag)][value.carriedFrom];
      else
        meaning[c] = value.initial == kNone ? kNothing : outside[value.initial];
    }
    size_t begin = entries.size();
    if (Defect d = nameTrip(s, trip == 0))
      return d;
    Wide time = timeFrom(begin);
    bool stands = trip == lag && segment.trips > unrolled;
    measure.makespan += stands ? time * (segment.trips - unrolled + 1) : time;
  }
  return std::nullopt;
}

Defect Walk::nameTrip(SegmentId s, bool first) {
  busyUntil.assign(problem.values.size(), -1);
  const std::vector<Execution> &list = solution.segments[s];
  size_t base = entries.size();
  std::vector<int32_t> startAt(list.size(), kNone), doneAt(list.size(), kNone);
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].phase != Phase::Whole)
      (list[i].phase == Phase::Start ? startAt : doneAt)[list[i].work] =
          int32_t(base + i);
  for (size_t i = 0; i < list.size(); ++i) {
    Entry &entry = entries.emplace_back();
    entry.execution = &list[i];
    entry.recipe = &problem.recipes[list[i].recipe];
    entry.segment = s;
    bool whole = list[i].phase == Phase::Whole;
    entry.start = whole ? int32_t(base + i) : startAt[list[i].work];
    entry.done = whole ? int32_t(base + i) : doneAt[list[i].work];
    if (list[i].phase == Phase::Done)
      continue;
    if (Defect d = nameEntry(s, int32_t(i), entry))
      return absl::StrCat(*d, first ? "" : " in a later trip");
  }
  return std::nullopt;
}

Defect Walk::nameEntry(SegmentId s, int32_t index, Entry &entry) {
  const Recipe &r = *entry.recipe;
  int32_t at = entry.start;
  for (ValueId v : r.reads) {
    int32_t version = meaning[v];
    if (version == kUnmade)
      return defect("R1: '", r.name, "' (entry ", index, " of '",
                    problem.segments[s].name, "') reads '", nameOf(v),
                    "' before it is made");
    if (r.engine == 0 && version >= 0 && versions[version].made > at)
      return defect("R11: '", r.name, "' (entry ", index, " of '",
                    problem.segments[s].name, "') reads '", nameOf(v),
                    "', whose maker isn't done");
    entry.reads.push_back(version);
  }
  if (Defect d = checkTakes(entry))
    return d;
  bool copies = r.reads.size() == 1 && r.writes.size() == 1 &&
                mainOf(r.reads[0]) == mainOf(r.writes[0]);
  if (copies && entry.reads[0] == kNothing) {
    const EngineKind kind = problem.engines[r.engine].kind;
    entry.idle = infoOf(kind).copies || kind == EngineKind::Network;
    meaning[r.writes[0]] = kNothing;
    return std::nullopt;
  }
  return nameWrites(entry, at);
}

Defect Walk::nameWrites(Entry &entry, int32_t at) {
  const Recipe &r = *entry.recipe;
  for (ValueId w : r.writes) {
    if (busyUntil[w] > at)
      return defect("R11: '", r.name, "' writes '", nameOf(w),
                    "' while work that reads or writes it isn't done");
    meaning[w] = int32_t(versions.size());
    entry.writes.push_back(meaning[w]);
    versions.push_back({w, at, entry.done});
    const Value &value = problem.values[w];
    if (value.kind != ValueKind::Persistent || homes[mainOf(w)] != w)
      continue;
    if (value.updates == kNone || homeWrites[w]++ ||
        problem.segments[entry.segment].trips > 1)
      return defect("R14: '", r.name, "' writes the home '", value.name, "' ",
                    value.updates == kNone ? "anew" : "once more");
    entry.oldHomes.push_back({initial[value.updates], meaning[w]});
  }
  if (r.engine != 0)
    for (const std::vector<ValueId> *list : {&r.reads, &r.writes})
      for (ValueId v : *list)
        busyUntil[v] = std::max(busyUntil[v], entry.done);
  return std::nullopt;
}

/// R4: the list overwrites each storage once and takes each must.
Defect Walk::checkTakes(const Entry &entry) const {
  const Recipe &r = *entry.recipe;
  const std::vector<int32_t> &taken = entry.execution->overwrites;
  for (size_t i = 0; i < taken.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (r.overwrites[taken[i]].read == r.overwrites[taken[j]].read ||
          r.overwrites[taken[i]].written == r.overwrites[taken[j]].written)
        return defect("R4: '", r.name, "' overwrites the same storage twice");
  for (size_t o = 0; o < r.overwrites.size(); ++o)
    if (r.overwrites[o].must &&
        std::find(taken.begin(), taken.end(), int32_t(o)) == taken.end())
      return defect("R4: '", r.name, "' doesn't update '",
                    nameOf(r.overwrites[o].read), "' in place");
  return std::nullopt;
}

Defect Walk::checkHomes() {
  needed.assign(versions.size(), 0);
  held.assign(versions.size(), 0);
  taker.assign(versions.size(), kNone);
  bytes.assign(problem.spaces.size(), 0);
  measure.peakBytes.assign(problem.spaces.size(), 0);
  std::vector<char> replaced(problem.values.size(), 0);
  for (const Value &value : problem.values)
    if (value.updates != kNone)
      replaced[value.updates] = 1;
  for (ValueId v = 0; v < ValueId(problem.values.size()); ++v) {
    const Value &value = problem.values[v];
    if (value.formOf != kNone || replaced[homes[v]] ||
        (value.kind != ValueKind::Persistent && !value.liveOut))
      continue;
    if (meaning[homes[v]] < 0)
      return defect("R14: nothing makes '", nameOf(homes[v]),
                    "', which is a home");
    change(meaning[homes[v]], 1, 0);
  }
  return std::nullopt;
}

/// Time of the entries from `begin` on, one trip.
Wide Walk::timeFrom(size_t begin) const {
  std::vector<TimedEntry> timed;
  for (size_t at = begin; at < entries.size(); ++at) {
    const Entry &entry = entries[at];
    TimedEntry &one = timed.emplace_back();
    one.phase = entry.execution->phase;
    if (!entries[entry.start].idle)
      one.recipe = entry.recipe;
    one.start = entry.start - int32_t(begin);
    one.onDevice = onDevice(*entry.recipe);
    for (int32_t version : entry.reads)
      if (version >= 0 && versions[version].from >= int32_t(begin))
        one.makers.push_back(versions[version].from - int32_t(begin));
  }
  return timeOfTrip(problem, timed);
}

void Walk::change(int32_t version, int needs, int holds) {
  const Value &value = problem.values[versions[version].value];
  bool was = needed[version] || held[version];
  needed[version] = char(needs);
  held[version] += holds;
  bool is = needed[version] || held[version];
  bytes[value.space] += (int(is) - int(was)) * Wide(value.bytes);
}

std::vector<std::pair<int32_t, int32_t>>
Walk::takesOf(const Entry &entry) const {
  std::vector<std::pair<int32_t, int32_t>> takes;
  const Recipe &r = *entry.recipe;
  auto at = [](const std::vector<ValueId> &list, ValueId v) {
    return std::find(list.begin(), list.end(), v) - list.begin();
  };
  if (entry.writes.empty())
    return takes;
  for (int32_t o : entry.execution->overwrites)
    if (int32_t old = entry.reads[at(r.reads, r.overwrites[o].read)]; old >= 0)
      takes.push_back(
          {old, entry.writes[at(r.writes, r.overwrites[o].written)]});
  for (auto home : entry.oldHomes)
    if (std::find(takes.begin(), takes.end(), home) == takes.end())
      takes.push_back(home);
  return takes;
}

/// Walks back over an entry's Done.
void Walk::hold(const Entry &entry) {
  for (const std::vector<int32_t> *list : {&entry.reads, &entry.writes})
    for (int32_t version : *list)
      if (version >= 0)
        change(version, needed[version], 1);
  for (auto [old, now] : takesOf(entry)) {
    // A later need or another taker is reported at its Start.
    if (taker[old] == kNone && !needed[old])
      taker[old] = entry.start;
    bool reads = std::count(entry.reads.begin(), entry.reads.end(), old);
    if (!reads)
      change(old, needed[old], 1);
    const Value &a = problem.values[versions[old].value];
    const Value &b = problem.values[versions[now].value];
    bytes[a.space] -= std::min(a.bytes, b.bytes);
  }
  if (!entry.idle)
    bytes[entry.recipe->workspaceSpace] += entry.recipe->workspaceBytes;
}

/// R14: a new home takes only the old home's place, and declares that if it
/// reads the old home.
Defect Walk::checkHomePlace(const Entry &entry, int32_t old,
                            int32_t now) const {
  const Recipe &r = *entry.recipe;
  bool reads = std::count(entry.reads.begin(), entry.reads.end(), old);
  for (int32_t o : entry.execution->overwrites) {
    if (r.overwrites[o].written != versions[now].value)
      continue;
    size_t at =
        std::find(r.reads.begin(), r.reads.end(), r.overwrites[o].read) -
        r.reads.begin();
    if (entry.reads[at] == old)
      return std::nullopt;
    return defect("R14: '", r.name, "' writes the home '",
                  nameOf(versions[now].value), "' in another value's place");
  }
  if (reads)
    return defect("R14: '", r.name, "' reads the old home of '",
                  nameOf(versions[now].value), "', but isn't in place");
  return std::nullopt;
}

/// Walks back over an entry's Start.
Defect Walk::release(const Entry &entry, int32_t at) {
  const Recipe &r = *entry.recipe;
  for (int32_t version : entry.reads)
    if (version >= 0 && taker[version] != kNone && taker[version] != at)
      return defect("R13: '", entries[taker[version]].recipe->name,
                    "' takes the place of '", nameOf(versions[version].value),
                    "', which '", r.name, "' still reads");
  for (auto [old, now] : takesOf(entry)) {
    ValueId v = versions[old].value;
    bool reads = std::count(entry.reads.begin(), entry.reads.end(), old);
    bool home = std::count(entry.oldHomes.begin(), entry.oldHomes.end(),
                           std::pair(old, now));
    const char *rule = home ? "R14" : "R13";
    if (home)
      if (Defect d = checkHomePlace(entry, old, now))
        return d;
    if (taker[old] != at)
      return defect(rule, ": '", r.name, "' takes the place of '", nameOf(v),
                    "', which is needed later");
    if (held[old] != 1 || versions[old].made >= at)
      return defect(rule, ": '", r.name, "' takes the place of '", nameOf(v),
                    "', which other work still reads or makes");
    taker[old] = kNone;
    const Value &a = problem.values[v];
    bytes[a.space] +=
        std::min(a.bytes, problem.values[versions[now].value].bytes);
    if (!reads)
      change(old, 1, -1);
  }
  for (int32_t version : entry.writes)
    change(version, 0, -1);
  for (int32_t version : entry.reads)
    if (version >= 0)
      change(version, 1, -1);
  if (!entry.idle)
    bytes[r.workspaceSpace] -= r.workspaceBytes;
  return std::nullopt;
}

Defect Walk::walkBack() {
  for (int32_t at = int32_t(entries.size()) - 1; at >= 0; --at) {
    const Entry &entry = entries[at];
    if (at == entry.done)
      hold(entries[entry.start]);
    for (size_t s = 0; s < bytes.size(); ++s)
      measure.peakBytes[s] = std::max(measure.peakBytes[s], bytes[s]);
    if (at == entry.start)
      if (Defect d = release(entry, at))
        return d;
  }
  return std::nullopt;
}

} // namespace

std::optional<std::string> tmc::planning::measureWalk(const Problem &problem,
                                                      const Solution &solution,
                                                      WalkMeasure &measure) {
  return Walk(problem, solution, measure).run();
}
