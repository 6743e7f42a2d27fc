#include "compiler/planning/bound/BoundCheck.h"

#include <algorithm>

using namespace tmc::planning;

static bool contains(const std::vector<ValueId> &list, ValueId v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

GapWalk::GapWalk(const Problem &problem)
    : problem(problem), residentBytes(problem.spaces.size(), 0) {
  for (const Segment &s : problem.segments) {
    starts.push_back(int64_t(order.size()));
    order.insert(order.end(), s.instructions.begin(), s.instructions.end());
  }
  starts.push_back(int64_t(order.size()));
}

ValueId GapWalk::aliasIn(ValueId v, SegmentId s) const {
  return problem.values[v].kind == ValueKind::Carried && trips(s) == 1
             ? problem.values[v].initial
             : v;
}

static bool isFree(const Problem &problem, const Recipe &r) {
  if (!problem.isMove(r))
    return false;
  for (ValueId v : r.reads)
    if (problem.values[v].kind == ValueKind::Carried)
      return true;
  return false;
}

/// True if compute runs every variant.
static bool isComputes(const GapWalk &walk, int64_t moment) {
  const Problem &problem = walk.problem;
  for (RecipeId r : problem.instructions[walk.order[moment]].recipes)
    if (problem.recipes[r].engine != 0)
      return false;
  return true;
}

/// True if only one form can be the content's home.
bool GapWalk::aloneAtHome(ValueId content) const {
  if (problem.values[content].pinned)
    return true;
  int homes = 0;
  for (ValueId v : forms[content])
    homes += problem.values[v].kind == ValueKind::Persistent;
  return homes == 1;
}

void GapWalk::findFacts() {
  const size_t n = problem.values.size();
  forms.resize(n);
  makers.resize(n);
  parts.resize(n);
  next.assign(n, kNone);
  madeByOwn.assign(n, 0);
  mayRead.assign(n, 0);
  for (size_t v = 0; v < n; ++v) {
    forms[problem.contentOf(ValueId(v))].push_back(ValueId(v));
    if (ValueId old = problem.values[v].updates; old != kNone)
      next[old] = ValueId(v);
  }
  for (const Recipe &r : problem.recipes) {
    Wide all = 0;
    bool may = r.recomputable;
    for (ValueId w : r.writes) {
      all += problem.values[w].bytes;
      may &= !problem.values[w].pinned;
    }
    for (ValueId w : r.writes) {
      if (!may)
        continue;
      makers[w].push_back(&r);
      parts[w].push_back(
          r.writes.size() == 1 ? r.cost
          : all ? int64_t(Wide(r.cost) * problem.values[w].bytes / all)
                : 0);
    }
  }
  madeAt.assign(n, -1);
  for (size_t k = order.size(); k-- > 0;)
    for (RecipeId r : problem.instructions[order[k]].recipes)
      for (ValueId w : problem.recipes[r].writes)
        madeAt[problem.contentOf(w)] = int64_t(k);
  for (size_t v = 0; v < n; ++v)
    if (problem.values[v].kind != ValueKind::Temporary &&
        problem.values[v].updates == kNone)
      madeAt[problem.contentOf(ValueId(v))] = -1;
  for (const Instruction &i : problem.instructions) {
    std::set<ValueId> reads;
    for (RecipeId r : i.recipes) {
      for (ValueId w : problem.recipes[r].writes)
        madeByOwn[w] = 1;
      for (ValueId v : problem.recipes[r].reads)
        if (ValueId u = aliasIn(v, i.segment); u != kNone)
          reads.insert(u);
    }
    for (ValueId v : reads)
      mayRead[v] += trips(i.segment);
  }
}

/// Finds values that never leave, and the homes that are there at first.
void GapWalk::findResident() {
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const Value &value = problem.values[v];
    if (value.kind != ValueKind::Persistent || value.updates != kNone)
      continue;
    bool stays = true;
    int64_t bytes = value.bytes;
    std::vector<ValueId> chain;
    for (ValueId u = ValueId(v); u != kNone; u = next[u]) {
      const ValueId content = problem.contentOf(u);
      stays &= aloneAtHome(content) &&
               (u == content || !problem.values[content].pinned);
      bytes = std::min(bytes, problem.values[u].bytes);
      chain.push_back(u);
    }
    if (stays) {
      resident.insert(chain.begin(), chain.end());
      residentBytes[value.space] += bytes;
    }
  }
}

void GapWalk::findLastTouches() {
  lastClock.assign(problem.values.size(), 0);
  for (size_t k = 0; k < order.size(); ++k) {
    const Instruction &instruction = problem.instructions[order[k]];
    const SegmentId s = instruction.segment;
    for (RecipeId r : instruction.recipes)
      for (const std::vector<ValueId> *list :
           {&problem.recipes[r].reads, &problem.recipes[r].writes})
        for (ValueId touched : *list)
          if (ValueId v = aliasIn(touched, s); v != kNone)
            lastClock[v] = trips(s) > 2 ? starts[s + 1] : int64_t(k) + 1;
  }
}

/// Bytes that run `r` surely holds when it starts, by space.
std::vector<Wide> GapWalk::operands(const Recipe &r, SegmentId s) const {
  std::vector<Wide> out(problem.spaces.size(), 0);
  for (ValueId read : r.reads)
    if (ValueId v = aliasIn(read, s); counts(v))
      out[problem.values[v].space] += problem.values[v].bytes;
  if (isFree(problem, r))
    return out;
  for (ValueId w : r.writes) {
    if (!counts(w) || contains(r.reads, w))
      continue;
    const int64_t bytes = problem.values[w].bytes;
    int64_t shared = 0;
    auto mayShare = [&](ValueId v) {
      shared = std::max(shared, std::min(bytes, problem.values[v].bytes));
    };
    if (problem.values[w].updates != kNone)
      mayShare(problem.values[w].updates);
    for (const Overwrite &o : r.overwrites)
      if (ValueId v = aliasIn(o.read, s); o.written == w && counts(v))
        mayShare(v);
    out[problem.values[w].space] += bytes - shared;
  }
  out[r.workspaceSpace] += r.workspaceBytes;
  return out;
}

WalkedRun GapWalk::open(SegmentId s, int64_t moment) const {
  WalkedRun run;
  run.moment = moment;
  run.segment = s;
  for (RecipeId id : problem.instructions[order[moment]].recipes) {
    const Recipe &r = problem.recipes[id];
    run.variants.push_back({&r,
                            Wide(r.cost) * (trips(s) - isFree(problem, r)),
                            operands(r, s),
                            {}});
  }
  return run;
}

/// A run that breaks the gap stands behind its begin in the list, so compute
/// has run all before that. If compute reads the value, it waits for copies
/// from and to the device.
static void setMoments(const GapWalk &walk, const WalkedGap &gap,
                       const Recipe &r, WalkedGap::Charge &charge) {
  const SegmentId s = charge.segment;
  if (walk.problem.segments[s].trips > 1 && !gap.inTrip)
    return;
  charge.from = std::max(gap.from, walk.starts[s]);
  charge.to = gap.isAwaited && walk.problem.touchesDevice(r)
                  ? std::min(gap.to, walk.starts[s + 1])
                  : walk.starts[s + 1];
}

/// The copies that make a new home of v's content, if `run` updates v on the
/// device and v isn't at home there.
std::vector<WalkedGap::Charge> GapWalk::writesBack(const WalkedRun &run,
                                                   ValueId v) const {
  std::vector<WalkedGap::Charge> out;
  const SegmentId s = run.segment;
  const ValueId u = next[v];
  if (u == kNone || trips(s) > 1)
    return out;
  const ValueId content = problem.contentOf(u);
  bool isUpdated = false;
  for (const WalkedRun::Variant &variant : run.variants)
    for (ValueId w : variant.recipe->writes) {
      const bool reads = contains(variant.recipe->reads, v);
      isUpdated |= reads && w == u;
      if (reads && w != u && problem.contentOf(w) == content)
        return out;
    }
  for (ValueId f : forms[content]) {
    if (!isUpdated || f == u || problem.values[f].kind != ValueKind::Persistent)
      continue;
    if (mayRead[f] > 0)
      return {};
    for (size_t m = 0; m < makers[f].size(); ++m)
      for (SegmentId at = s; at < SegmentId(problem.segments.size()); ++at)
        if (const Recipe &r = *makers[f][m];
            r.segment == kNone || r.segment == at)
          out.push_back({at, r.engine, Wide(parts[f][m]) * trips(at),
                         std::max(run.moment, starts[at]), starts[at + 1]});
  }
  return out;
}

/// Adds ways to break a gap: runs that write v in segments [from, to].
void GapWalk::addCharges(WalkedGap &gap, ValueId v, SegmentId from,
                         SegmentId to, const Count &count) const {
  for (size_t m = 0; m < makers[v].size(); ++m)
    for (SegmentId s = std::max(from, 0); s <= to; ++s) {
      const Recipe &r = *makers[v][m];
      if (r.segment != kNone && r.segment != s)
        continue;
      const int64_t times = std::max<int64_t>(0, count(s) - isFree(problem, r));
      WalkedGap::Charge charge{s, r.engine, Wide(parts[v][m]) * times};
      setMoments(*this, gap, r, charge);
      gap.charges.push_back(charge);
    }
}

/// Lets runs break a gap that leaves segment `from`, where v was touched last.
/// The clock of a gap that leaves three trips starts after them. Of two trips,
/// a wrap has the first one's execution.
void GapWalk::addLeaving(WalkedGap &gap, ValueId v, SegmentId from,
                         SegmentId to, const Count &count) const {
  const bool isLate = from != kNone && trips(from) > 2;
  const bool isCrossing = crossing.count({v, from});
  addCharges(gap, v, isLate ? from + 1 : from, to, [&](SegmentId s) {
    return s != from ? count(s) : isCrossing ? 1 : trips(from);
  });
}

/// The clock after the last touch of a home, or of the form that updates it;
/// -1: the home may be elsewhere then.
int64_t GapWalk::endOfTouches(ValueId v) const {
  int64_t since = lastClock[v];
  const ValueId u = next[v];
  if (u == kNone)
    return since;
  if (problem.values[u].bytes < problem.values[v].bytes || next[u] != kNone)
    return -1;
  for (ValueId f : forms[problem.contentOf(u)])
    if (f == u || madeByOwn[f])
      since = std::max(since, lastClock[f]);
  return since;
}

/// Adds the gap of v from another segment, or from the step's begin.
void GapWalk::meetOutside(WalkedRun &run, ValueId v) {
  const Value &value = problem.values[v];
  const Touch &from = touches[v];
  const bool fromHome = !from.ever && value.kind == ValueKind::Persistent &&
                        value.updates == kNone;
  if (!from.ever && !fromHome)
    return;
  WalkedGap gap{v, WalkedGap::Outer, {{from.clock, clock}}, {}};
  if (int64_t since = fromHome ? endOfTouches(v) : -1; since >= 0)
    gap.spans.push_back({since, int64_t(order.size())});
  gap.from = from.clock;
  gap.to = run.moment;
  gap.isAwaited = isComputes(*this, run.moment);
  addLeaving(gap, v, from.segment, run.segment,
             [&](SegmentId s) { return s == run.segment ? 1 : trips(s); });
  if (fromHome)
    gap.also = writesBack(run, v);
  run.gaps.push_back(std::move(gap));
}

/// A carried value is there when a trip begins, or a copy makes it in the trip.
/// The value that it comes from is then there when the trip before ends.
void GapWalk::meetCarried(WalkedRun &run, ValueId c, int64_t trip) {
  const SegmentId s = run.segment;
  if (trip == 0)
    return; // It may be nothing.
  const ValueId source = problem.values[c].carriedFrom;
  const bool isHeldOn = trip == 2 && tails.count(source);
  if (makers[c].empty() && trip == 2) {
    bool isSure = true;
    for (const WalkedRun::Variant &variant : run.variants)
      isSure &= contains(variant.recipe->reads, c);
    if (isHeldOn && isSure)
      heldOn.insert(source);
    return;
  }
  if (trip == 1) {
    WalkedGap gap{c, WalkedGap::Inside, {{starts[s], clock}}, {}};
    addCharges(gap, c, s, s, [&](SegmentId) { return trips(s); });
    if (!makers[c].empty())
      addCharges(gap, source, s, s, [&](SegmentId) { return trips(s); });
    run.gaps.push_back(std::move(gap));
  } else if (isHeldOn) {
    for (WalkedGap &gap : run.gaps)
      if (gap.value == c)
        gap.spans.push_back({tails.at(source), clock});
  }
}

/// Adds to the gaps of v that end at `run`, in this trip.
void GapWalk::meet(WalkedRun &run, ValueId v, int64_t trip) {
  const SegmentId s = run.segment;
  const Touch &from = touches[v];
  if (isInput(v)) {
    if (trip > 0)
      return;
    WalkedGap gap{v, WalkedGap::Owed, {}, {}};
    const int64_t made = madeAt[problem.contentOf(v)];
    gap.from = std::max<int64_t>(made, 0);
    gap.to = run.moment;
    gap.isAwaited = isComputes(*this, run.moment);
    addCharges(gap, v, made < 0 ? 0 : problem.instructions[order[made]].segment,
               s, [&](SegmentId at) { return trips(at); });
    for (WalkedGap::Charge &charge : gap.charges)
      charge.cost = charge.cost * trips(s) / mayRead[v];
    run.gaps.push_back(std::move(gap));
    return;
  }
  if (from.ever && from.segment == s && from.trip == trip) {
    if (trip != std::min<int64_t>(trips(s), 2) - 1)
      return;
    WalkedGap gap{v, WalkedGap::Inside, {{from.clock, clock}}, {}};
    gap.from = from.clock;
    gap.to = clock;
    gap.inTrip = true;
    gap.isAwaited = isComputes(*this, run.moment);
    addCharges(gap, v, s, s, [&](SegmentId) { return trips(s); });
    run.gaps.push_back(std::move(gap));
  } else if (problem.values[v].kind == ValueKind::Carried) {
    meetCarried(run, v, trip);
  } else if (trip == 0) {
    meetOutside(run, v);
  } else if (from.ever && trip == 1) {
    WalkedGap gap{v, WalkedGap::Wrap, {{from.clock, clock}}, {}};
    addCharges(gap, v, s, s, [&](SegmentId) { return trips(s) - 1; });
    run.gaps.push_back(std::move(gap));
    crossing.insert({v, s});
  } else if (from.ever) {
    for (WalkedGap &gap : run.gaps)
      if (gap.value == v && gap.kind == WalkedGap::Wrap)
        gap.spans.push_back({from.clock, clock});
  }
}

/// Says which gaps each variant ends.
void GapWalk::close(WalkedRun &run) const {
  for (WalkedRun::Variant &variant : run.variants)
    for (size_t g = 0; g < run.gaps.size(); ++g)
      for (ValueId named : variant.recipe->reads)
        if (aliasIn(named, run.segment) == run.gaps[g].value) {
          variant.gaps.push_back(g);
          break;
        }
}

void GapWalk::visit(WalkedRun &run, int64_t trip) {
  const SegmentId s = run.segment;
  const bool isShown = trip == std::min<int64_t>(trips(s), 2) - 1;
  std::vector<ValueId> read;
  for (const WalkedRun::Variant &variant : run.variants)
    for (ValueId named : variant.recipe->reads)
      if (ValueId v = aliasIn(named, s); counts(v) && !contains(read, v)) {
        read.push_back(v);
        meet(run, v, trip);
      }
  if (isShown)
    clock = run.moment + 1;
  for (const WalkedRun::Variant &variant : run.variants)
    for (const std::vector<ValueId> *list :
         {&variant.recipe->reads, &variant.recipe->writes})
      for (ValueId touched : *list)
        if (ValueId v = aliasIn(touched, s); v != kNone)
          touches[v] = {true, clock, s, trip};
}

/// Values that the next trip surely reads as carried are held to the end of a
/// trip.
void GapWalk::endCarried(SegmentId s) {
  for (ValueId v : heldOn) {
    if (!counts(v))
      continue;
    WalkedGap gap{v, WalkedGap::Inside, {{tails.at(v), starts[s + 1]}}, {}};
    gap.from = tails.at(v);
    gap.to = starts[s + 1];
    gap.inTrip = true;
    addCharges(gap, v, s, s, [&](SegmentId) { return trips(s); });
    onGap(gap);
  }
  heldOn.clear();
  tails.clear();
}

void GapWalk::walkSegment(SegmentId s) {
  std::vector<WalkedRun> runs;
  for (int64_t k = starts[s]; k < starts[s + 1]; ++k)
    runs.push_back(open(s, k));
  for (int64_t trip = 0; trip < std::min<int64_t>(trips(s), 3); ++trip) {
    for (WalkedRun &run : runs)
      visit(run, trip);
    if (trip != 1 || trips(s) == 2)
      continue;
    for (const Value &value : problem.values)
      if (ValueId v = value.carriedFrom;
          v != kNone && touches[v].segment == s) {
        crossing.insert({v, s});
        tails[v] = touches[v].clock;
      }
  }
  clock = starts[s + 1];
  for (WalkedRun &run : runs) {
    close(run);
    onRun(run);
  }
  endCarried(s);
}

/// Results stay to the end, if no other form can be their home.
void GapWalk::addResults() {
  for (ValueId v = 0; v < ValueId(problem.values.size()); ++v) {
    const Value &value = problem.values[v];
    if (value.kind != ValueKind::Temporary || !value.liveOut || !madeByOwn[v])
      continue;
    bool isAlone = true;
    for (ValueId f : forms[problem.contentOf(v)])
      isAlone &= f == v || !problem.values[f].liveOut;
    if (!isAlone)
      continue;
    WalkedGap gap{v, WalkedGap::Outer, {{touches[v].clock, clock}}, {}};
    gap.from = touches[v].clock;
    gap.to = clock;
    const SegmentId end = SegmentId(problem.segments.size()) - 1;
    if (touches[v].segment == end)
      gap.kind = WalkedGap::Inside;
    addLeaving(gap, v, touches[v].segment, end,
               [&](SegmentId s) { return trips(s); });
    onGap(gap);
  }
}

void GapWalk::run() {
  findFacts();
  findResident();
  findLastTouches();
  touches.assign(problem.values.size(), {});
  for (size_t s = 0; s < problem.segments.size(); ++s)
    walkSegment(SegmentId(s));
  addResults();
}
