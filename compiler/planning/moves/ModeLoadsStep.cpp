#include "compiler/planning/moves/ModeLoads.h"

#include <algorithm>
#include <limits>

// The data of a step that no choice changes.

using namespace tmc::planning;

ModeLoads::ModeLoads(const Problem &problem, const UpdateGroups &groups)
    : all(groups) {
  const size_t n = problem.values.size();
  inTime.assign(n, -1), outTime.assign(n, -1);
  const SpaceId host = problem.hostSpace();
  struct Rate {
    int64_t time = 0, bytes = 0;
    double shared = 0; // Time of the host's memory.
    double ofByte() const { return bytes ? double(time) / double(bytes) : 0; }
    double share() const { return time ? shared / double(time) : 0; }
  } link, read, write, update;
  for (const Recipe &r : problem.recipes) {
    auto count = [&](Rate &rate) {
      rate.time += r.cost;
      rate.bytes += problem.values[r.writes[0]].bytes;
      rate.shared += double(r.cost) * r.busShare / kWholeBus;
    };
    if (problem.isBeside(r))
      count(update);
    if (!problem.isMove(r))
      continue;
    if (problem.isFetch(r))
      inTime[problem.contentOf(r.writes[0])] = r.cost, count(link);
    else if (problem.isStash(r))
      outTime[problem.contentOf(r.reads[0])] = r.cost, count(link);
    else
      count(problem.values[r.writes[0]].space == host ? read : write);
  }
  linkTime = link.ofByte(), readTime = read.ofByte();
  writeTime = write.ofByte(), hasFile = read.bytes > 0;
  linkShare = link.share(), updateShare = update.share();
  if (host != kNone)
    mostAtHome = problem.liveLimitOf(host);
  whole = problem.liveLimitOf(0);
  keepFree(0);
  addPlaces(problem);
  for (const UpdateGroup &group : all.all)
    addGroup(problem, group);
  addGaps(problem);
}

/// Places of instructions, uses of values, and the live bytes there.
void ModeLoads::addPlaces(const Problem &problem) {
  uses.resize(problem.values.size());
  placeOf.assign(problem.instructions.size(), 0);
  for (const Segment &segment : problem.segments)
    for (InstructionId i : segment.instructions) {
      const Recipe &r = problem.recipes[problem.instructions[i].recipes[0]];
      for (ValueId v : r.reads)
        uses[problem.contentOf(v)].push_back({places, true});
      for (ValueId v : r.writes)
        uses[problem.contentOf(v)].push_back({places, false});
      tripsAt.push_back(segment.trips);
      placeOf[i] = int32_t(places++);
    }
  for (const Segment &segment : problem.segments)
    for (InstructionId i : segment.instructions)
      if (const Recipe &r = problem.recipes[problem.instructions[i].recipes[0]];
          r.engine == 0)
        baseCompute[pieceOf(placeOf[i])] += r.cost * segment.trips;
  const Solution base = baseSolution(problem);
  absl::StatusOr<Profile> profile = simulate(problem, base);
  if (!profile.ok())
    return;
  for (size_t t = 0; t < profile->moments.size(); ++t) {
    const Profile::Moment &at = profile->moments[t];
    const Execution &e = base.segments[at.segment][at.index];
    if (e.instruction == kNone)
      continue;
    int64_t &most = baseLive[pieceOf(placeOf[e.instruction])];
    most = std::max(most, profile->liveBytes[t]);
  }
}

ModeLoads::Range ModeLoads::inside(int64_t from, int64_t to) const {
  return {pieceOf(from) + 1, pieceOf(to)};
}

void ModeLoads::addGroup(const Problem &problem, const UpdateGroup &group) {
  Group g;
  auto in = [&](ValueId v) { return std::max<int64_t>(0, inTime[v]); };
  auto out = [&](ValueId v) { return std::max<int64_t>(0, outTime[v]); };
  const int64_t update =
      group.instruction == kNone ? places : placeOf[group.instruction];
  g.update = pieceOf(std::min(update, places - 1));
  for (ValueId form : group.states) {
    g.statesIn += in(problem.contentOf(form));
    g.stateBytes += problem.values[form].bytes;
  }
  int64_t first = places, last = -1;
  for (ValueId form : group.shared) {
    const ValueId main = problem.contentOf(form);
    g.sharedIn += in(main);
    g.copyOut += out(main);
    g.sharedBytes += problem.values[form].bytes;
    int64_t before = -1, trips = 0, trip = 0;
    for (const Use &use : uses[main]) {
      if (use.place == update)
        continue;
      first = std::min(first, use.place), last = std::max(last, use.place);
      if (tripsAt[use.place] != trip)
        trip = tripsAt[use.place], trips += trip;
      if (before >= 0 && use.place - before > 1)
        if (const Range gap = inside(before, use.place);
            gap.last - gap.first > g.gap.last - g.gap.first)
          g.gap = gap;
      before = use.place;
    }
    g.trips = std::max(g.trips, trips);
  }
  if (last >= 0)
    g.firstUse = pieceOf(first), g.lastUse = pieceOf(last);
  if (group.instruction != kNone) {
    const std::vector<RecipeId> &recipes =
        problem.instructions[group.instruction].recipes;
    const Recipe &own = problem.recipes[recipes[0]];
    g.device = own.cost;
    if (group.isHostable())
      g.host = problem.recipes[recipes[group.variant]].cost;
    for (ValueId v : own.reads) {
      const ValueId main = problem.contentOf(v);
      if (problem.values[main].kind == ValueKind::Persistent)
        continue;
      int64_t made = -1, touched = -1;
      for (const Use &use : uses[main])
        if (use.place < update) {
          touched = std::max(touched, use.place);
          if (!use.reads)
            made = use.place;
        }
      if (made >= 0)
        g.gradients.push_back({pieceOf(made), inside(touched, update),
                               problem.values[main].bytes, out(main)});
    }
    for (ValueId w : own.writes) {
      const ValueId old = problem.values[w].updates,
                    main = problem.contentOf(w);
      if (old == kNone)
        continue;
      const bool isShared =
          std::any_of(group.shared.begin(), group.shared.end(), [&](ValueId f) {
            return problem.contentOf(f) == problem.contentOf(old);
          });
      (isShared ? g.sharedOut : g.statesOut) += out(main);
      if (isShared)
        g.returnIn += in(main);
    }
  }
  groups.push_back(std::move(g));
}

/// Spans between two uses of kernels' results.
void ModeLoads::addGaps(const Problem &problem) {
  std::vector<int64_t> again(problem.values.size(), -1);
  for (const Recipe &r : problem.recipes) {
    if (r.engine != 0 || !r.recomputable)
      continue;
    int64_t bytes = 0;
    for (ValueId v : r.writes)
      bytes += problem.values[v].bytes;
    for (ValueId v : r.writes)
      if (int64_t &least = again[v]; bytes > 0) {
        const int64_t share = int64_t(double(r.cost) / double(bytes) *
                                      double(problem.values[v].bytes));
        least = least < 0 ? share : std::min(least, share);
      }
  }
  std::vector<int32_t> reader(problem.values.size(), kNone);
  for (size_t i = 0; i < all.all.size(); ++i)
    if (const InstructionId update = all.all[i].instruction; update != kNone)
      for (ValueId v :
           problem.recipes[problem.instructions[update].recipes[0]].reads)
        reader[problem.contentOf(v)] = int32_t(i);
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const Value &value = problem.values[v];
    if (value.space != 0 || value.kind != ValueKind::Temporary ||
        value.pinned || value.bytes == 0)
      continue;
    for (size_t i = 1; i < uses[v].size(); ++i) {
      const int64_t from = uses[v][i - 1].place, to = uses[v][i].place;
      Gap gap{inside(from, to), pieceOf(from), pieceOf(to), value.bytes};
      gap.again = again[v] < 0 ? -1 : again[v] * tripsAt[to];
      if (inTime[v] >= 0 && outTime[v] >= 0 && tripsAt[from] == tripsAt[to])
        gap.in = inTime[v] * tripsAt[to], gap.out = outTime[v] * tripsAt[from];
      gap.group = reader[v];
      if (!gap.inside.isEmpty() && (gap.again >= 0 || gap.in >= 0))
        gaps.push_back(gap);
    }
  }
  for (size_t p = 0; p < kPrices.size(); ++p) {
    std::vector<std::pair<double, int32_t>> keys;
    for (size_t i = 0; i < gaps.size(); ++i) {
      const Gap &gap = gaps[i];
      double cost = std::numeric_limits<double>::infinity();
      if (gap.again >= 0)
        cost = double(gap.again);
      if (gap.in >= 0)
        cost = std::min(cost, kPrices[p] * double(gap.in + gap.out));
      keys.push_back({cost / double(gap.bytes), int32_t(i)});
    }
    std::sort(keys.begin(), keys.end());
    for (auto [cost, i] : keys)
      order[p].push_back(i);
  }
}
