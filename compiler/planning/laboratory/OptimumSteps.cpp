#include "compiler/planning/laboratory/OptimumSteps.h"

#include <algorithm>
#include <utility>

using namespace tmc::planning;

static EngineId engineOf(const Problem &problem, const OpenWork &work) {
  return problem.recipes[work.recipe].engine;
}

OptimumSteps::OptimumSteps(const Problem &problem, std::vector<Homes> homes)
    : p(problem), model(problem), allHomes(std::move(homes)),
      reach(model, allHomes) {
  for (const Homes &choice : allHomes) {
    std::vector<std::vector<Taking>> &of = takings.emplace_back();
    for (size_t r = 0; r < p.recipes.size(); ++r)
      of.push_back(takingsOf(p, choice, RecipeId(r)));
  }
}

std::vector<OptimumSteps::Next> OptimumSteps::ends() const {
  std::vector<Next> next;
  for (size_t h = 0; h < allHomes.size(); ++h) {
    State end;
    end.homes = int32_t(h);
    enter(end, SegmentId(p.segments.size()) - 1, allHomes[h].atEnd, next);
  }
  return next;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

int64_t OptimumSteps::bytesIn(const State &s, Lane lane, SpaceId space) const {
  Names own = s.need[lane], outside = lane == Others ? s.crosses : 0;
  if (isFirst(s, lane)) {
    outside |= model.outsideNamesOf(s.segment, own & s.outer);
    own &= ~s.outer & ~factsOf(s).nothing;
  }
  int64_t bytes = model.bytesOf(own & model.inSpace[space]) +
                  model.bytesOf(outside & model.inSpace[space]);
  for (const OpenWork &o : s.open) {
    const Recipe &r = p.recipes[o.recipe];
    const bool isIdle = isFirst(s, lane) && movesNothing(s, o.recipe);
    if (r.workspaceSpace == space && !isIdle)
      bytes += r.workspaceBytes;
    bytes -= shared(s, isFirst(s, lane), *o.taking, space);
  }
  return bytes;
}

/// Bytes that givers and takers of storage share.
int64_t OptimumSteps::shared(const State &s, bool first, const Taking &taking,
                             SpaceId space) const {
  int64_t bytes = 0;
  for (auto [given, taker] : taking.places)
    if (p.values[given].space == space &&
        !(first && (factsOf(s).nothing & bitOf(given))))
      bytes += std::min(p.values[given].bytes, p.values[taker].bytes);
  return bytes;
}

/// Whether all budgets hold while `running` runs on compute (kNone: at a Done).
/// Updates the free bytes.
bool OptimumSteps::fits(State &s, RecipeId running,
                        const Taking *taking) const {
  for (Lane lane : {Last, Others}) {
    if (lane == Others && !isLoop(s))
      break;
    const bool first = isFirst(s, lane);
    for (SpaceId space = 0; space < SpaceId(p.spaces.size()); ++space) {
      if (model.budgets[space] < 0)
        continue;
      int64_t bytes = bytesIn(s, lane, space);
      if (running != kNone) {
        const Recipe &r = p.recipes[running];
        Names writes = model.recipes[running].writes & model.inSpace[space];
        if (first)
          writes &= ~factsOf(s).nothing;
        bytes += model.bytesOf(writes) - shared(s, first, *taking, space);
        if (r.workspaceSpace == space)
          bytes += r.workspaceBytes;
      }
      if (bytes > model.budgets[space])
        return false;
      if (lane == Others)
        s.spare[space] = std::min(s.spare[space], model.budgets[space] - bytes);
    }
  }
  return true;
}

/// Adds values from outside that cross the borders of trips.
bool OptimumSteps::cross(State &s, Names names) const {
  names &= ~s.crosses;
  // Initial values of carried values had to be guessed.
  if (model.outsideNamesOf(s.segment, s.carries & factsOf(s).twofold) & names)
    return false;
  s.crosses |= names;
  for (SpaceId space = 0; space < SpaceId(p.spaces.size()); ++space)
    if (model.budgets[space] >= 0) {
      s.spare[space] -= model.bytesOf(names & model.inSpace[space]);
      if (s.spare[space] < 0)
        return false;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

/// Comes to the end of `segment`; later segments read `needed`.
void OptimumSteps::enter(State s, SegmentId segment, Names needed,
                         std::vector<Next> &next) const {
  s.segment = segment;
  s.left = int32_t(p.segments[segment].instructions.size());
  s.carries = s.guessed = s.crosses = s.outer = 0;
  s.need[Last] = needed;
  s.need[Others] = 0;
  s.spare.clear();
  Tails tails;
  tails.engine.assign(p.engines.size(), 0);
  s.tails.assign(isLoop(s) && factsOf(s).movesNothing ? 2 : 1, tails);
  if (isLoop(s)) {
    enterLoop(s, needed, next);
    return;
  }
  // A read that may mean one of two instances means one of them.
  const Names twofold = needed & factsOf(s).twofold;
  for (Names outer = twofold;; outer = (outer - 1) & twofold) {
    s.outer = outer;
    next.push_back({s, {}});
    if (!outer)
      return;
  }
}

void OptimumSteps::enterLoop(const State &s, Names needed,
                             std::vector<Next> &next) const {
  const SegmentFacts &facts = factsOf(s);
  for (Names carries = facts.carried;;
       carries = (carries - 1) & facts.carried) {
    State now = s;
    now.carries = carries;
    forEachName(carries, [&](ValueId c) {
      now.need[Others] |= bitOf(p.values[c].carriedFrom);
    });
    now.crosses = needed & ~writableIn(s) & ~facts.carried;
    now.spare = model.budgets;
    const Names begins =
        model.outsideNamesOf(s.segment, carries & facts.twofold) & ~now.crosses;
    for (Names guessed = begins;; guessed = (guessed - 1) & begins) {
      State guess = now;
      guess.guessed = guessed;
      guess.crosses |= guessed;
      next.push_back({std::move(guess), {}});
      if (!guessed)
        break;
    }
    if (!carries)
      return;
  }
}

/// Comes to the beginning of a segment's trips.
void OptimumSteps::leave(State s, std::vector<Next> &next) const {
  const SegmentFacts &facts = factsOf(s);
  const Names carried = (s.need[Last] | s.need[Others]) & facts.carried;
  // A needed instance of the trip itself has no maker.
  if (s.need[mostNeeding(s)] & facts.twofold & ~s.outer)
    return;
  Names needed = s.need[Last] & ~facts.carried;
  if (isLoop(s)) {
    if ((s.need[Others] & ~facts.carried) || carried != s.carries ||
        (s.guessed & ~needed) || !cross(s, needed))
      return;
    needed = s.crosses;
  }
  needed |= model.outsideNamesOf(s.segment, carried & ~facts.nothing);
  s.behind = boundOf(s) - facts.leastEarlier;
  if (s.segment > 0) {
    enter(s, s.segment - 1, needed, next);
    return;
  }
  if (needed & ~allHomes[s.homes].atBegin)
    return;
  s.segment = kNone;
  next.push_back({std::move(s), {}});
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

std::vector<OptimumSteps::Next> OptimumSteps::before(const State &s) const {
  std::vector<Next> next;
  if (s.left == 0 && s.open.empty())
    leave(s, next);
  for (size_t o = 0; o < s.open.size(); ++o)
    if (o == 0 || engineOf(p, s.open[o]) != engineOf(p, s.open[o - 1]))
      start(s, o, next);
  const std::vector<InstructionId> &own = p.segments[s.segment].instructions;
  for (int32_t i = s.left; i-- > 0;) {
    const bool isOpen =
        std::any_of(s.open.begin(), s.open.end(),
                    [&](const OpenWork &o) { return o.instruction == own[i]; });
    if (isOpen)
      continue;
    for (RecipeId r : p.instructions[own[i]].recipes)
      if (model.recipes[r].isWork || i + 1 == s.left)
        place(s, r, own[i], next);
  }
  for (RecipeId r : factsOf(s).again)
    place(s, r, kNone, next);
  return next;
}

/// Whether the recipe may run, or be done, before the list so far.
bool OptimumSteps::isAllowed(const State &s, RecipeId r,
                             InstructionId own) const {
  const RecipeFacts &facts = model.recipes[r];
  Names given = 0, reading = 0, making = 0;
  for (const OpenWork &o : s.open) {
    given |= o.taking->gives;
    reading |= model.recipes[o.recipe].reads;
    making |= model.recipes[o.recipe].writes;
  }
  // No entry reads or makes a value whose storage open work takes (R13), or
  // writes a value that was read as from before the trip.
  if (((facts.reads | facts.writes) & given) || (facts.writes & s.outer))
    return false;
  if (facts.writes & (facts.isWork ? making : making | reading)) // R11.
    return false;
  if (!facts.isWork && (facts.reads & making))
    return false;
  const Names needed = s.need[Last] | s.need[Others];
  if (own == kNone && !(facts.writes & needed) && !facts.outlastsReaders)
    return false;
  // A new version is written once, in its home's place; the two never coexist
  // (R14).
  bool isRight = true;
  Names old = 0;
  forEachName(facts.writes & persistent(s), [&](ValueId w) {
    const ValueId was = p.values[w].updates;
    isRight &= was != kNone && !isLoop(s) && (needed & bitOf(w)) &&
               !(needed & bitOf(was));
    old |= was == kNone ? 0 : bitOf(was);
  });
  return isRight &&
         !(facts.reads & persistent(s) & ~old & ~(needed | s.crosses));
}

void OptimumSteps::place(const State &s, RecipeId r, InstructionId own,
                         std::vector<Next> &next) const {
  if (!isAllowed(s, r, own))
    return;
  const Names needed = s.need[Last] | s.need[Others];
  for (const Taking &taking : takings[s.homes][r])
    if (!(taking.gives & needed)) // They die here.
      placeReading(s, r, own, taking, next);
}

/// Each first read of a value that may mean two instances means one of them.
void OptimumSteps::placeReading(const State &s, RecipeId r, InstructionId own,
                                const Taking &taking,
                                std::vector<Next> &next) const {
  const SegmentFacts &facts = factsOf(s);
  const Names fresh = model.recipes[r].reads & facts.twofold & ~s.outer &
                      ~s.need[mostNeeding(s)];
  const Names mustBeOuter = fresh & ~writableIn(s);
  Names mustBeOwn =
      fresh & ~(isLoop(s) ? facts.before & ~facts.carried : facts.before) &
      ~(facts.carried & (isLoop(s) ? s.carries : ~Names(0)));
  if (isLoop(s)) // A crossing value gives its place in no trip.
    mustBeOwn |= fresh & taking.gives & ~facts.carried;
  if (mustBeOuter & mustBeOwn)
    return;
  const Names free = fresh & ~mustBeOuter & ~mustBeOwn;
  for (Names some = free;; some = (some - 1) & free) {
    placeAs(s, r, own, taking, mustBeOuter | some, next);
    if (!some)
      return;
  }
}

/// `outer`: values that the recipe reads first, as from before the trip.
void OptimumSteps::placeAs(State s, RecipeId r, InstructionId own,
                           const Taking &taking, Names outer,
                           std::vector<Next> &next) const {
  const SegmentFacts &segment = factsOf(s);
  const RecipeFacts &facts = model.recipes[r];
  const Recipe &recipe = p.recipes[r];
  // An instance from outside may have two names in a first trip.
  const Names given =
      model.outsideNamesOf(s.segment, taking.gives & (s.outer | outer) &
                                          segment.twofold & ~segment.nothing);
  Names held = s.crosses | model.outsideNamesOf(
                               s.segment, s.need[mostNeeding(s)] & s.outer);
  if (given & held)
    return;
  s.outer |= outer;
  if (isLoop(s) && !cross(s, outer & ~segment.carried))
    return;
  for (const OpenWork &o : s.open)
    if (model.outsideNamesOf(s.segment, o.taking->gives & s.outer) &
        model.outsideNamesOf(s.segment, outer))
      return;
  const Names reads = facts.reads | taking.gives;
  for (Names &need : s.need)
    need = (need & ~facts.writes) | reads;
  if (isLoop(s))
    s.need[Others] &= ~(s.outer & ~segment.carried);
  else
    s.need[Others] = 0;
  if (!facts.isWork) {
    if (!fits(s, r, &taking))
      return;
    for (Tails &tails : s.tails)
      tails.compute += recipe.cost;
    s.left -= own != kNone;
    next.push_back({std::move(s), {r, own, Phase::Whole, taking.overwrites}});
    return;
  }
  s.need[Last] |= facts.writes;
  if (isLoop(s))
    s.need[Others] |= facts.writes;
  const auto behind =
      std::find_if(s.open.begin(), s.open.end(), [&](const OpenWork &o) {
        return engineOf(p, o) > recipe.engine;
      });
  const size_t at = size_t(behind - s.open.begin());
  s.open.insert(behind, {r, own, &taking});
  if (!fits(s, kNone, nullptr))
    return;
  const bool waits = p.touchesDevice(recipe);
  for (size_t t = 0; t < s.tails.size(); ++t) {
    Tails &tails = s.tails[t];
    const bool isIdle = t == 0 && movesNothing(s, r);
    tails.work.insert(tails.work.begin() + int64_t(at),
                      isIdle  ? Tails::kNever
                      : waits ? std::max(tails.done, tails.compute)
                              : tails.done);
  }
  next.push_back({std::move(s), {r, own, Phase::Done, 0}});
}

/// Starts open work.
void OptimumSteps::start(State s, size_t open, std::vector<Next> &next) const {
  const OpenWork it = s.open[open];
  const Recipe &recipe = p.recipes[it.recipe];
  const RecipeFacts &facts = model.recipes[it.recipe];
  if (it.instruction != kNone &&
      (s.left == 0 ||
       p.segments[s.segment].instructions[s.left - 1] != it.instruction))
    return;
  Names makers = 0; // Bits of open work.
  for (size_t o = 0; o < s.open.size(); ++o) {
    const RecipeFacts &other = model.recipes[s.open[o].recipe];
    if (o == open)
      continue;
    if ((facts.writes & (other.reads | other.writes)) || // R11.
        (it.taking->gives & other.writes))               // R13.
      return;
    if (facts.reads & other.writes)
      makers |= Names(1) << o;
  }
  for (size_t t = 0; t < s.tails.size(); ++t) {
    Tails &tails = s.tails[t];
    if (t > 0 || !movesNothing(s, it.recipe)) {
      const int64_t tail =
          recipe.cost + std::max(tails.engine[recipe.engine], tails.work[open]);
      tails.engine[recipe.engine] = tail;
      tails.compute = std::max(tails.compute, tail);
      tails.done = std::max(tails.done, tail);
      for (size_t o = 0; o < s.open.size(); ++o)
        if (makers >> o & 1)
          tails.work[o] = std::max(tails.work[o], tail);
    }
    tails.work.erase(tails.work.begin() + int64_t(open));
  }
  for (Names &need : s.need)
    need &= ~facts.writes;
  s.open.erase(s.open.begin() + int64_t(open));
  s.left -= it.instruction != kNone;
  next.push_back(
      {std::move(s),
       {it.recipe, it.instruction, Phase::Start, it.taking->overwrites}});
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// The least time of a trip that makes the needed values and starts the open
/// work before the list.
int64_t OptimumSteps::leastTrip(const State &s, size_t trip,
                                const Reach &before) const {
  const Tails &tails = s.tails[trip];
  const std::vector<InstructionId> &own = p.segments[s.segment].instructions;
  int64_t least = 0, queued = 0;
  Names made = 0; // By work whose Done is in the list.
  for (size_t o = 0; o < s.open.size(); ++o) {
    const OpenWork &open = s.open[o];
    made |= model.recipes[open.recipe].writes;
    if (o == 0 || engineOf(p, open) != engineOf(p, s.open[o - 1]))
      queued = tails.engine[engineOf(p, open)];
    if (trip == 0 && movesNothing(s, open.recipe))
      continue;
    queued = std::max(queued, tails.work[o]) + p.recipes[open.recipe].cost;
    int64_t begin = 0;
    if (open.instruction != kNone)
      begin = factsOf(s).leastBefore[size_t(
          std::find(own.begin(), own.end(), open.instruction) - own.begin())];
    for (ValueId v : p.recipes[open.recipe].reads)
      begin = std::max(begin, before.ready[v]);
    least = std::max(least, queued + begin);
  }
  if (!isLoop(s))
    forEachName(s.need[Last] & ~made, [&](ValueId v) {
      const bool waits = reach.awaited() & bitOf(v);
      const int64_t tail = waits ? tails.compute : tails.done;
      least = std::max(least, before.ready[v] + std::max<int64_t>(0, tail));
    });
  return least;
}

int64_t OptimumSteps::boundOf(const State &s) const {
  if (s.segment == kNone)
    return s.behind;
  const SegmentFacts &facts = factsOf(s);
  const Reach &before = reach.of(s.homes, s.segment, s.left);
  if ((s.need[Last] | s.need[Others] | s.crosses) & ~before.makeable)
    return kNoList;
  int64_t bound = s.behind + facts.leastEarlier;
  for (size_t t = 0; t < s.tails.size(); ++t) {
    const Tails &tails = s.tails[t];
    int64_t trip = std::max(leastTrip(s, t, before),
                            tails.compute + facts.leastBefore[s.left]);
    for (size_t e = 0; e < tails.engine.size(); ++e)
      trip = std::max(trip, tails.engine[e]);
    const bool isOne = t == 0 && s.tails.size() > 1;
    bound += trip * (isOne ? 1 : facts.trips - int64_t(s.tails.size()) + 1);
  }
  return bound;
}
