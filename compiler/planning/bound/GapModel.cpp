#include "compiler/planning/bound/GapModel.h"

#include "compiler/planning/bound/GapCharges.h"

#include <algorithm>
#include <limits>

namespace tmc::planning {

namespace {

using Range = GapModel::Range;

/// Walks the instructions once, in the order of the model.
class Building {
public:
  Building(const Problem &problem, GapModel &out);
  void run();

private:
  using Place = GapCharges::Place;
  struct Draft {
    GapModel::Gap gap;
    bool isPlain = true;
    GapCharges::Span span;
    Range moments[2];
  };
  /// A gap whose second range begins after the last touch of `value` in this
  /// segment.
  struct Wrap {
    int32_t draft;
    ValueId value;
  };
  /// Gaps that end at the current instruction.
  struct Ending {
    ValueId value;
    Range drafts;
  };

  int64_t tripsOf(SegmentId s) const { return problem.segments[s].trips; }
  bool hasMiddle(SegmentId s) const { return tripsOf(s) > 2; }
  bool isStraight(SegmentId from, SegmentId to) const {
    return std::all_of(problem.segments.begin() + from,
                       problem.segments.begin() + to + 1,
                       [](const Segment &s) { return s.trips == 1; });
  }
  SegmentId lastSegment() const {
    return SegmentId(problem.segments.size()) - 1;
  }
  ValueId named(ValueId v, SegmentId s) const { return namedIn(problem, v, s); }
  bool isCounted(ValueId v) const { return v != kNone && !facts.resident[v]; }
  bool isInput(ValueId v) const {
    return problem.values[v].kind == ValueKind::Temporary &&
           !facts.ownWritten[v];
  }
  bool hasMaker(ValueId v) const { return !facts.makersOf(v).empty(); }

  void addRun(SegmentId s, int32_t k);
  void addVariant(const Recipe &recipe, SegmentId s, int32_t k, bool isPlain);
  void addOperands(const Recipe &recipe, SegmentId s);
  Range endGaps(ValueId v, SegmentId s, int32_t k, bool isPlain);
  int32_t addGap(ValueId v, Range moments, bool isPlain);
  void addCharges(Draft &draft, ValueId v, SegmentId from, SegmentId to,
                  const GapCharges::Runs &runsIn) {
    charges.add(draft.gap, draft.span, v, from, to, runsIn);
  }
  int32_t beginAfter(const Place &from) const;
  void addLeaving(Draft &draft, ValueId v, const Place &from, SegmentId to,
                  const GapCharges::Runs &runsIn);
  void endSegment(SegmentId s);
  void addHomes();
  void addResults();
  void findLargest();
  void finish();

  const Problem &problem;
  GapModel &out;
  const ValueFacts &facts;
  GapCharges charges;
  std::vector<Place> last;
  std::vector<SegmentId> wrapped;  // The last segment with a wrap of it.
  std::vector<int32_t> firstDraft; // From the step's begin.
  std::vector<Draft> drafts;
  // State of this segment, and of this instruction.
  std::vector<Wrap> wraps;
  std::vector<ValueId> carriedOn;
  std::vector<Ending> endings;
  std::vector<int64_t> held; // Bytes of operands, by space.
};

Building::Building(const Problem &problem, GapModel &out)
    : problem(problem), out(out), facts(out.facts), charges(out),
      last(problem.values.size()), wrapped(problem.values.size(), kNone),
      firstDraft(problem.values.size(), kNone), held(problem.spaces.size(), 0) {
  for (size_t v = 0; v < last.size(); ++v)
    last[v].isKnown = problem.values[v].kind == ValueKind::Persistent &&
                      problem.values[v].updates == kNone && !facts.resident[v];
}

int32_t Building::addGap(ValueId v, Range moments, bool isPlain) {
  Draft draft;
  draft.gap.value = v;
  draft.isPlain = isPlain;
  draft.moments[0] = draft.span.moments = moments;
  drafts.push_back(draft);
  return int32_t(drafts.size()) - 1;
}

/// The first moment after `from` outside the trips that aren't shown.
int32_t Building::beginAfter(const Place &from) const {
  return from.segment != kNone && hasMiddle(from.segment)
             ? out.begins[from.segment + 1]
             : from.moment + 1;
}

/// Lets runs break a gap that leaves the segment of `from`; `runsIn(s)` is for
/// later segments. A run after the last touch is too early where no trip that
/// is shown has moments of the gap. Else all its executions lie in it, or the
/// last trip's alone, if those of other trips lie in a wrap.
void Building::addLeaving(Draft &draft, ValueId v, const Place &from,
                          SegmentId to, const GapCharges::Runs &runsIn) {
  const SegmentId f = from.segment;
  if (f == kNone)
    return addCharges(draft, v, 0, to, runsIn);
  addCharges(draft, v, hasMiddle(f) ? f + 1 : f, to, [&](SegmentId s) {
    return s != f ? runsIn(s) : wrapped[v] == f ? 1 : tripsOf(f);
  });
}

/// Adds the gaps of v that end at moment k of segment s.
Range Building::endGaps(ValueId v, SegmentId s, int32_t k, bool isPlain) {
  const Value &value = problem.values[v];
  const int64_t trips = tripsOf(s);
  const int32_t first = int32_t(drafts.size());
  auto range = [&] { return Range{first, int32_t(drafts.size())}; };
  if (isInput(v)) {
    // Some run makes it, in all trips of its segment; each reader pays a part.
    const int32_t d = addGap(v, {}, false);
    const Place made = charges.madeFirst(v);
    drafts[d].gap.isOwed = true;
    drafts[d].span.isWaitedFor = out.isComputes(k);
    drafts[d].span.moments = {std::max(made.moment, 0), k};
    addCharges(drafts[d], v, std::max(made.segment, 0), s,
               [&](SegmentId at) { return tripsOf(at); });
    for (int32_t c = drafts[d].gap.charges.begin; c < drafts[d].gap.charges.end;
         ++c)
      out.charges[c].cost =
          int64_t(__int128(out.charges[c].cost) * trips / facts.readers[v]);
    return range();
  }
  Place &from = last[v];
  if (from.isKnown && from.segment == s) {
    const int32_t d = addGap(v, {from.moment + 1, k}, isPlain);
    drafts[d].gap.within = s;
    drafts[d].span.isInTrip = drafts[d].gap.isTimed = true;
    drafts[d].span.isWaitedFor = out.isComputes(k);
    addCharges(drafts[d], v, s, s, [&](SegmentId) { return trips; });
    return range();
  }
  if (value.kind == ValueKind::Carried) {
    // It is there when the trip begins, or a copy makes it in the trip.
    const int32_t d = addGap(v, {out.begins[s], k}, isPlain);
    drafts[d].gap.within = s;
    if (!hasMaker(v))
      return range();
    addCharges(drafts[d], v, s, s, [&](SegmentId) { return trips; });
    addCharges(drafts[d], value.carriedFrom, s, s,
               [&](SegmentId) { return trips; });
    wraps.push_back({d, value.carriedFrom});
    return range();
  }
  if (!from.isKnown)
    return range();
  const bool isLoop = trips > 1;
  const int32_t d =
      addGap(v, {beginAfter(from), isLoop ? out.begins[s] : k}, isPlain);
  drafts[d].span.isWaitedFor = out.isComputes(k);
  if (from.segment == kNone)
    firstDraft[v] = d;
  drafts[d].gap.isTimed = isStraight(std::max(from.segment, 0), s);
  addLeaving(drafts[d], v, from, s,
             [&](SegmentId at) { return at == s ? 1 : tripsOf(at); });
  if (from.segment == kNone && !isLoop)
    charges.addWriteBack(drafts[d].gap, v, s, k);
  if (!isLoop)
    return range();
  const int32_t w = addGap(v, {out.begins[s], k}, isPlain);
  addCharges(drafts[w], v, s, s, [&](SegmentId) { return trips - 1; });
  wraps.push_back({w, v});
  wrapped[v] = s;
  return range();
}

/// Sets `held` to the bytes that the operands surely take when `recipe` starts.
void Building::addOperands(const Recipe &recipe, SegmentId s) {
  std::fill(held.begin(), held.end(), 0);
  auto bytesOf = [&](ValueId v) { return problem.values[v].bytes; };
  const bool isFree = mayBeFree(problem, recipe);
  for (ValueId read : recipe.reads)
    if (const ValueId v = named(read, s); isCounted(v))
      held[problem.values[v].space] += bytesOf(v);
  if (isFree)
    return;
  for (ValueId w : recipe.writes) {
    if (!isCounted(w) || isRead(recipe, w))
      continue;
    const ValueId old = problem.values[w].updates;
    int64_t saved = old == kNone ? 0 : std::min(bytesOf(w), bytesOf(old));
    for (const Overwrite &o : recipe.overwrites)
      if (const ValueId v = named(o.read, s); o.written == w && isCounted(v))
        saved = std::max(saved, std::min(bytesOf(w), bytesOf(v)));
    held[problem.values[w].space] += bytesOf(w) - saved;
  }
  held[recipe.workspaceSpace] += recipe.workspaceBytes;
}

void Building::addVariant(const Recipe &recipe, SegmentId s, int32_t k,
                          bool isPlain) {
  const int64_t cost =
      recipe.cost * (tripsOf(s) - (mayBeFree(problem, recipe) ? 1 : 0));
  GapModel::Variant variant{recipe.engine, cost, {}, {}};
  variant.bytes.begin = int32_t(out.operands.size());
  variant.gaps.begin = int32_t(out.endingGaps.size());
  addOperands(recipe, s);
  for (size_t space = 0; space < held.size(); ++space)
    if (isPlain)
      out.floor[space][k] += held[space];
    else if (held[space])
      out.operands.push_back({SpaceId(space), held[space]});
  for (ValueId read : recipe.reads) {
    const ValueId v = named(read, s);
    if (!isCounted(v))
      continue;
    auto known = std::find_if(endings.begin(), endings.end(),
                              [&](const Ending &e) { return e.value == v; });
    if (known == endings.end())
      known = endings.insert(known, {v, endGaps(v, s, k, isPlain)});
    if (!isPlain)
      for (int32_t d = known->drafts.begin; d < known->drafts.end; ++d)
        out.endingGaps.push_back(d);
  }
  if (isPlain) {
    out.costs[k] = cost;
    return;
  }
  variant.bytes.end = int32_t(out.operands.size());
  variant.gaps.end = int32_t(out.endingGaps.size());
  out.variants.push_back(variant);
}

void Building::addRun(SegmentId s, int32_t k) {
  const Instruction &instruction = problem.instructions[out.order[k]];
  const Recipe &first = problem.recipes[instruction.recipes.front()];
  endings.clear();
  const bool isPlain = instruction.recipes.size() == 1 && out.isComputes(k) &&
                       std::none_of(first.reads.begin(), first.reads.end(),
                                    [&](ValueId v) { return isInput(v); });
  const int32_t begin = int32_t(out.variants.size());
  for (RecipeId r : instruction.recipes)
    addVariant(problem.recipes[r], s, k, isPlain);
  if (!isPlain)
    out.choices.push_back({k, s, {begin, int32_t(out.variants.size())}});
  for (RecipeId r : instruction.recipes) {
    const Recipe &recipe = problem.recipes[r];
    for (const std::vector<ValueId> *list : {&recipe.reads, &recipe.writes})
      for (ValueId touched : *list)
        if (ValueId v = named(touched, s); v != kNone)
          last[v] = {s, k, true};
  }
  if (!hasMiddle(s))
    return;
  for (ValueId c : first.reads) {
    const Value &value = problem.values[c];
    if (value.kind == ValueKind::Carried && !hasMaker(c) &&
        std::all_of(instruction.recipes.begin(), instruction.recipes.end(),
                    [&](RecipeId r) { return isRead(problem.recipes[r], c); }))
      carriedOn.push_back(value.carriedFrom);
  }
}

void Building::endSegment(SegmentId s) {
  auto tail = [&](ValueId v) {
    return last[v].segment == s ? Range{last[v].moment + 1, out.begins[s + 1]}
                                : Range{};
  };
  if (hasMiddle(s))
    for (auto [draft, value] : wraps)
      drafts[draft].moments[1] = tail(value);
  std::sort(carriedOn.begin(), carriedOn.end());
  carriedOn.erase(std::unique(carriedOn.begin(), carriedOn.end()),
                  carriedOn.end());
  for (ValueId v : carriedOn) {
    if (!isCounted(v) || tail(v).size() <= 0)
      continue;
    const int32_t d = addGap(v, tail(v), true);
    drafts[d].gap.within = s;
    drafts[d].span.isInTrip = drafts[d].gap.isTimed = true;
    addCharges(drafts[d], v, s, s, [&](SegmentId) { return tripsOf(s); });
  }
  wraps.clear();
  carriedOn.clear();
}

/// A home that is there when the step begins is there to its end, in the form
/// that updates it or in its own. That rent is a part of its first gap.
void Building::addHomes() {
  const int32_t n = int32_t(out.numMoments());
  for (size_t v = 0; v < problem.values.size(); ++v) {
    if (firstDraft[v] == kNone)
      continue;
    Place from = last[v];
    if (ValueId u = facts.heir[v]; u != kNone) {
      if (problem.values[u].bytes < problem.values[v].bytes ||
          facts.heir[u] != kNone)
        continue;
      for (ValueId f = problem.contentOf(u); f != kNone; f = facts.nextForm[f])
        if ((f == u || facts.ownWritten[f]) && last[f].isKnown &&
            last[f].key() > from.key())
          from = last[f];
    }
    drafts[firstDraft[v]].moments[1] = {beginAfter(from), n};
  }
}

/// Results stay to the end, if no other form can be their home.
void Building::addResults() {
  for (ValueId v = 0; v < ValueId(problem.values.size()); ++v) {
    const Value &value = problem.values[v];
    if (value.kind != ValueKind::Temporary || !value.liveOut ||
        !facts.ownWritten[v])
      continue;
    int homes = 0;
    for (ValueId f = problem.contentOf(v); f != kNone; f = facts.nextForm[f])
      homes += problem.values[f].liveOut;
    if (homes != 1)
      continue;
    const Place from = last[v];
    const int32_t d =
        addGap(v, {beginAfter(from), int32_t(out.numMoments())}, true);
    if (from.segment == lastSegment())
      drafts[d].gap.within = from.segment;
    else
      drafts[d].gap.isTimed = isStraight(from.segment, lastSegment());
    addLeaving(drafts[d], v, from, lastSegment(),
               [&](SegmentId at) { return tripsOf(at); });
  }
}

void Building::findLargest() {
  std::vector<int64_t> least = out.floor[0];
  out.largestBytes = facts.residentBytes[0];
  for (const GapModel::Choice &choice : out.choices) {
    int64_t bytes = std::numeric_limits<int64_t>::max();
    for (int32_t v = choice.variants.begin; v < choice.variants.end; ++v)
      bytes = std::min(bytes, out.bytesOf(out.variants[v], 0));
    least[choice.moment] += bytes;
  }
  for (int64_t bytes : least)
    out.largestBytes = std::max(out.largestBytes, bytes);
}

/// Adds up the bytes of plain gaps, and keeps the gaps that matter.
void Building::finish() {
  const int32_t n = int32_t(out.numMoments());
  std::vector<std::vector<int64_t>> broken(problem.spaces.size(),
                                           std::vector<int64_t>(n + 1, 0)),
      unbroken = broken;
  std::vector<int32_t> kept, place(drafts.size(), kNone);
  for (size_t d = 0; d < drafts.size(); ++d) {
    const Draft &draft = drafts[d];
    if (!draft.isPlain)
      continue;
    const Value &value = problem.values[draft.gap.value];
    bool isEmpty = value.bytes == 0;
    const bool canBreak = draft.gap.charges.size() > 0;
    std::vector<int64_t> &sums = (canBreak ? unbroken : broken)[value.space];
    int32_t moments = 0;
    for (const Range &range : draft.moments)
      if (range.size() > 0) {
        moments += range.size();
        sums[range.begin] += value.bytes;
        sums[range.end] -= value.bytes;
      }
    isEmpty |= moments == 0;
    if (canBreak && !isEmpty)
      kept.push_back(int32_t(d));
  }
  std::stable_sort(kept.begin(), kept.end(), [&](int32_t a, int32_t b) {
    return drafts[a].gap.value < drafts[b].gap.value;
  });
  out.plainGaps = kept.size();
  for (int32_t d : out.endingGaps)
    if (place[d] == kNone) {
      place[d] = 0;
      kept.push_back(d);
    }
  for (size_t g = 0; g < kept.size(); ++g) {
    place[kept[g]] = int32_t(g);
    GapModel::Gap gap = drafts[kept[g]].gap;
    gap.isTimed &= drafts[kept[g]].moments[0].size() > 0;
    gap.moments.begin = int32_t(out.ranges.size());
    for (const Range &range : drafts[kept[g]].moments)
      if (range.size() > 0)
        out.ranges.push_back(range);
    gap.moments.end = int32_t(out.ranges.size());
    out.gaps.push_back(gap);
  }
  for (int32_t &gap : out.endingGaps)
    gap = place[gap];
  findLargest();
  out.live = out.floor;
  for (size_t s = 0; s < out.live.size(); ++s) {
    int64_t fixed = 0, all = 0;
    for (int32_t k = 0; k < n; ++k) {
      fixed += broken[s][k];
      all += unbroken[s][k];
      out.floor[s][k] += fixed;
      out.live[s][k] += fixed + all;
    }
  }
}

void Building::run() {
  for (SegmentId s = 0; s <= lastSegment(); ++s) {
    for (int32_t k = out.begins[s]; k < out.begins[s + 1]; ++k)
      addRun(s, k);
    endSegment(s);
  }
  addHomes();
  addResults();
  finish();
}

} // namespace

GapModel::GapModel(const Problem &problem, const Orders &orders)
    : problem(problem), facts(problem) {
  for (size_t s = 0; s < problem.segments.size(); ++s) {
    const std::vector<InstructionId> &list =
        s < orders.size() ? orders[s] : problem.segments[s].instructions;
    begins.push_back(int32_t(order.size()));
    order.insert(order.end(), list.begin(), list.end());
  }
  begins.push_back(int32_t(order.size()));
  costs.assign(order.size(), 0);
  for (int64_t bytes : facts.residentBytes)
    floor.emplace_back(order.size(), bytes);
  Building(problem, *this).run();
}

bool GapModel::isComputes(int32_t moment) const {
  const Instruction &instruction = problem.instructions[order[moment]];
  return std::all_of(
      instruction.recipes.begin(), instruction.recipes.end(),
      [&](RecipeId r) { return problem.recipes[r].engine == 0; });
}

int64_t GapModel::bytesOf(const Variant &variant, SpaceId space) const {
  for (int32_t o = variant.bytes.begin; o < variant.bytes.end; ++o)
    if (operands[o].first == space)
      return operands[o].second;
  return 0;
}

} // namespace tmc::planning
