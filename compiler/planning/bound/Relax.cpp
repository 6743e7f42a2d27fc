#include "compiler/planning/bound/Bound.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

/// A use of a value in the chosen trip of its segment.
struct Event {
  int32_t moment;
  SegmentId segment;
  bool certain;       // Every recipe reads it.
  int64_t extra = -1; // Else: the least cost to avoid the read.
};

int64_t mulDiv(int64_t a, int64_t b, int64_t c) {
  return c ? int64_t(__int128(a) * b / c) : 0;
}

bool reads(const Recipe &recipe, ValueId v) {
  return std::find(recipe.reads.begin(), recipe.reads.end(), v) !=
         recipe.reads.end();
}

/// Walks the instructions once, in their order, and then the values.
class Relaxing {
public:
  Relaxing(const Problem &problem, const Orders &orders);
  Relaxation run();

private:
  int64_t bytesOf(ValueId v) const { return problem.values[v].bytes; }
  /// Temporary contents, by their main forms on the device.
  bool counted(ValueId v) const {
    return problem.values[v].kind != ValueKind::Persistent &&
           problem.values[v].formOf == kNone;
  }
  int64_t tripsOf(SegmentId s) const { return problem.segments[s].trips; }
  /// Whether the segment is seen in a middle trip, not in its last.
  bool hasMiddle(SegmentId s) const { return tripsOf(s) > 2; }
  /// In a segment of one trip a carried value goes by its first name.
  ValueId named(ValueId v, SegmentId s) const {
    const Value &value = problem.values[v];
    return value.kind == ValueKind::Carried && tripsOf(s) == 1 ? value.initial
                                                               : v;
  }
  void shareCosts();
  void visit(int32_t k);
  int64_t addReads(int32_t k, const Instruction &instruction, int64_t least);
  int64_t mostSaved(const Instruction &instruction, ValueId written) const;
  int64_t costOfBreaking(ValueId v, SegmentId from, SegmentId to,
                         int64_t extra) const;
  void addGap(ValueId v, int32_t first, int32_t last, SegmentId from,
              SegmentId to, int64_t extra);
  void addGaps(ValueId v);
  void findCarries();

  const Problem &problem;
  Relaxation out;
  int32_t n = 0;
  int64_t constant = 0; // Persistent values.
  std::vector<InstructionId> sequence;
  std::vector<int32_t> segmentBegin;
  std::vector<SegmentId> home; // Segment of a value's maker.
  std::vector<int32_t> made;   // Moment of its production.
  /// Least share of the cost over a value's recipes, in proportion to bytes.
  std::vector<int64_t> share;
  std::vector<std::vector<RecipeId>> remakes;
  std::vector<std::vector<Event>> events; // Per value.
  std::vector<char> carries;              // Needed when its trip ends.
  /// Differences: bytes of unbreakable gaps, and of breakable ones.
  std::vector<int64_t> held, gapped;
};

Relaxing::Relaxing(const Problem &problem, const Orders &orders)
    : problem(problem), segmentBegin(problem.segments.size() + 1, 0),
      home(problem.values.size(), kNone), made(problem.values.size(), -1),
      share(problem.values.size(), -1), remakes(problem.values.size()),
      events(problem.values.size()), carries(problem.values.size(), 0) {
  for (size_t s = 0; s < problem.segments.size(); ++s) {
    segmentBegin[s] = int32_t(sequence.size());
    for (InstructionId i :
         s < orders.size() ? orders[s] : problem.segments[s].instructions) {
      for (ValueId v :
           problem.recipes[problem.instructions[i].recipes.front()].writes) {
        home[v] = SegmentId(s);
        made[v] = int32_t(sequence.size());
      }
      sequence.push_back(i);
    }
  }
  n = int32_t(sequence.size());
  segmentBegin.back() = n;
  for (const Value &v : problem.values)
    if (v.kind == ValueKind::Persistent && v.updates == kNone)
      constant += v.bytes;
}

void Relaxing::shareCosts() {
  for (size_t r = 0; r < problem.recipes.size(); ++r) {
    const Recipe &recipe = problem.recipes[r];
    bool can = recipe.recomputable;
    int64_t bytes = 0;
    for (ValueId v : recipe.writes) {
      can &= !problem.values[v].pinned;
      bytes += bytesOf(v);
    }
    if (!can)
      continue;
    for (ValueId v : recipe.writes) {
      int64_t part = mulDiv(recipe.cost, bytesOf(v), bytes);
      share[v] = share[v] < 0 ? part : std::min(share[v], part);
      remakes[v].push_back(RecipeId(r));
    }
  }
}

/// Records certain reads, and the cost of avoiding uncertain ones; returns the
/// bytes of the certain reads.
int64_t Relaxing::addReads(int32_t k, const Instruction &instruction,
                           int64_t least) {
  SegmentId s = instruction.segment;
  const Recipe &first = problem.recipes[instruction.recipes.front()];
  int64_t bytes = 0;
  for (ValueId read : first.reads) {
    ValueId v = named(read, s);
    if (v == kNone || !counted(v))
      continue;
    bool certain = true;
    int64_t extra = std::numeric_limits<int64_t>::max();
    for (RecipeId r : instruction.recipes) {
      const Recipe &other = problem.recipes[r];
      if (reads(other, read))
        continue;
      certain = false;
      int64_t spared = 0;
      for (ValueId u : first.reads)
        spared += !reads(other, u);
      extra = std::min(extra, (other.cost - least) /
                                  std::max<int64_t>(spared, 1) * tripsOf(s));
    }
    if (certain)
      bytes += bytesOf(v);
    if (certain || extra > 0)
      events[v].push_back({k, s, certain, certain ? -1 : extra});
  }
  return bytes;
}

/// Most bytes that an overwrite saves for a result: by its best operand.
int64_t Relaxing::mostSaved(const Instruction &instruction,
                            ValueId written) const {
  int64_t best = 0;
  for (RecipeId r : instruction.recipes)
    for (const Overwrite &o : problem.recipes[r].overwrites)
      if (ValueId v = named(o.read, instruction.segment);
          o.written == written && v != kNone && counted(v))
        best = std::max(best, std::min(bytesOf(v), bytesOf(written)));
  return best;
}

void Relaxing::visit(int32_t k) {
  const Instruction &instruction = problem.instructions[sequence[k]];
  const Recipe &first = problem.recipes[instruction.recipes.front()];
  int64_t least = first.cost, workspace = first.workspaceBytes;
  for (RecipeId r : instruction.recipes) {
    least = std::min(least, problem.recipes[r].cost);
    workspace = std::min(workspace, problem.recipes[r].workspaceBytes);
  }
  out.cheaperRecipes += (least - first.cost) * tripsOf(instruction.segment);
  int64_t footprint = constant + workspace + addReads(k, instruction, least);
  for (ValueId v : first.writes)
    if (counted(v))
      footprint += bytesOf(v) - mostSaved(instruction, v);
  out.live[k] = footprint;
}

/// The least cost of breaking a gap; -1: it can't be broken.
int64_t Relaxing::costOfBreaking(ValueId v, SegmentId from, SegmentId to,
                                 int64_t extra) const {
  int64_t cost = -1;
  for (RecipeId r : remakes[v]) {
    const Recipe &recipe = problem.recipes[r];
    for (SegmentId s = from; s <= to; ++s)
      if (recipe.segment == kNone || recipe.segment == s) {
        int64_t here = share[v] * tripsOf(s);
        cost = cost < 0 ? here : std::min(cost, here);
      }
  }
  if (extra >= 0)
    cost = cost < 0 ? extra : std::min(cost, extra);
  return cost;
}

void Relaxing::addGap(ValueId v, int32_t first, int32_t last, SegmentId from,
                      SegmentId to, int64_t extra) {
  if (first > last || bytesOf(v) == 0)
    return;
  int64_t cost = costOfBreaking(v, from, to, extra);
  std::vector<int64_t> &sums = cost < 0 ? held : gapped;
  sums[first] += bytesOf(v);
  sums[last + 1] -= bytesOf(v);
  if (cost >= 0)
    out.gaps.push_back({v, first, last, bytesOf(v), cost,
                        from == to && extra < 0 ? from : kNone});
}

void Relaxing::findCarries() {
  for (size_t c = 0; c < problem.values.size(); ++c)
    if (const Value &value = problem.values[c];
        value.kind == ValueKind::Carried && counted(ValueId(c)) &&
        hasMiddle(home[value.carriedFrom]))
      for (const Event &e : events[c])
        carries[value.carriedFrom] |= e.certain;
}

void Relaxing::addGaps(ValueId v) {
  const Value &value = problem.values[v];
  int32_t from = made[v];
  SegmentId segment = home[v];
  if (value.kind == ValueKind::Carried) {
    segment = home[value.carriedFrom];
    from = segmentBegin[segment] - 1;
  }
  // Begin of a gap that leaves a segment. A middle trip doesn't show it.
  auto leaving = [&] {
    return hasMiddle(segment) ? segmentBegin[segment + 1] : from + 1;
  };
  for (const Event &e : events[v]) {
    if (e.segment == segment) {
      addGap(v, from + 1, e.moment - 1, segment, segment, e.extra);
    } else {
      // Up to the use, or to the beginning of the body with the use. Gaps cross
      // bodies in between whole, in every trip.
      int32_t last =
          tripsOf(e.segment) > 1 ? segmentBegin[e.segment] - 1 : e.moment - 1;
      addGap(v, leaving(), last, segment, e.segment, e.extra);
    }
    from = e.moment;
    segment = e.segment;
  }
  if (carries[v] && segment == home[v])
    addGap(v, from + 1, segmentBegin[segment + 1] - 1, segment, segment, -1);
  if (value.liveOut)
    addGap(v, leaving(), n - 1, segment, SegmentId(problem.segments.size()) - 1,
           -1);
}

Relaxation Relaxing::run() {
  shareCosts();
  out.live.assign(n, 0);
  for (int32_t k = 0; k < n; ++k)
    visit(k);
  out.floor = out.live;
  held.assign(n + 1, 0);
  gapped.assign(n + 1, 0);
  findCarries();
  for (ValueId v = 0; v < ValueId(problem.values.size()); ++v)
    if (counted(v))
      addGaps(v);
  int64_t fixed = 0, all = 0;
  for (int32_t k = 0; k < n; ++k) {
    fixed += held[k];
    all += gapped[k];
    out.floor[k] += fixed;
    out.live[k] += fixed + all;
  }
  return std::move(out);
}

} // namespace

Relaxation tmc::planning::relax(const Problem &problem, const Orders &orders) {
  return Relaxing(problem, orders).run();
}
