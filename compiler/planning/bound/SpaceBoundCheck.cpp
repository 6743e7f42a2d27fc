#include "compiler/planning/bound/SpaceBoundCheck.h"

#include "compiler/planning/bound/BoundCheck.h"

#include "absl/strings/str_cat.h"

#include <limits>
#include <map>
#include <set>

namespace tmc::planning {

namespace {

// No step has more executions; beyond this the walk would take minutes.
constexpr int64_t kMostExecutions = 100'000'000;

template <typename... Parts> absl::Status refused(const Parts &...parts) {
  return absl::InvalidArgumentError(absl::StrCat("certificate: ", parts...));
}

class Checker {
public:
  Checker(const Problem &p, const SpaceCertificate &c) : p(p), c(c) {}
  absl::StatusOr<int64_t> run();

private:
  /// The last moment at which an instruction might touch a value, or the step's
  /// begin.
  struct Touch {
    bool ever = false;
    Wide rent = 0; // Per byte, up to and with that moment.
    SegmentId segment = 0;
  };

  absl::Status readCertificate();
  void findFacts();
  bool aloneAtHome(ValueId content) const;
  Wide priceOf(InstructionId i, SpaceId s) const {
    auto it = prices.find({i, s});
    return it == prices.end() ? Wide(0) : it->second;
  }
  bool isFree(const Recipe &r) const;
  /// The least charge of an extra run that writes v in segments [from, to]; -1:
  /// none.
  Wide leastCharge(ValueId v, SegmentId from, SegmentId to) const;
  Wide operands(const Recipe &r, InstructionId i);
  Wide owed(const Recipe &r, InstructionId i, SegmentId now);
  Wide tailRent(ValueId v) const;
  void execute(InstructionId i, SegmentId now);
  Wide plus(Wide a, Wide b) {
    Wide out;
    overflow |= __builtin_add_overflow(a, b, &out);
    return out;
  }
  Wide times(Wide a, Wide b) {
    Wide out;
    overflow |= __builtin_mul_overflow(a, b, &out);
    return out;
  }

  const Problem &p;
  const SpaceCertificate &c;
  std::map<std::pair<InstructionId, SpaceId>, Wide> prices;
  std::set<ValueId> resident, madeByOwn;
  std::map<ValueId, std::vector<const Recipe *>> makers; // By extra runs.
  std::map<ValueId, int64_t> mayRead;                    // Executions.
  std::map<ValueId, ValueId> next;         // The value that updates it.
  std::vector<std::vector<ValueId>> forms; // Per content.
  std::vector<Wide> rent;                  // Per byte, by space, so far.
  std::vector<Wide> wholeRent, freeBytes;
  std::vector<Touch> touches;
  /// From a first walk: the rents of all spaces up to a value's last touch.
  std::vector<std::vector<Wide>> lastTouch;
  CheckedSum sum;
  bool overflow = false;
};

absl::Status Checker::readCertificate() {
  if (c.denominator < 1)
    return refused("the denominator is ", c.denominator);
  if (c.weights.size() != p.segments.size())
    return refused("weights of ", c.weights.size(), " segments, not of ",
                   p.segments.size());
  for (size_t s = 0; s < c.weights.size(); ++s) {
    if (c.weights[s].size() != p.engines.size())
      return refused("weights of ", c.weights[s].size(), " engines, not of ",
                     p.engines.size());
    Wide all = 0;
    for (int64_t w : c.weights[s]) {
      if (w < 0)
        return refused("a weight of ", w);
      all += w;
    }
    if (all > c.denominator)
      return refused("the weights of segment '", p.segments[s].name,
                     "' sum to more than 1");
  }
  for (const SpaceCertificate::Price &x : c.prices) {
    if (x.moment < 0 || size_t(x.moment) >= p.instructions.size() ||
        x.space < 0 || size_t(x.space) >= p.spaces.size())
      return refused("a price of instruction ", x.moment, " in space ",
                     x.space);
    if (x.price < 0)
      return refused("a price of ", x.price);
    if (p.spaces[x.space].budgetBytes < 0)
      return refused("a price in '", p.spaces[x.space].name,
                     "', which has no budget");
    if (!prices.insert({{x.moment, x.space}, x.price}).second)
      return refused("two prices of '", p.instructions[x.moment].name, "'");
  }
  return absl::OkStatus();
}

/// Whether only one form can be the content's home.
bool Checker::aloneAtHome(ValueId content) const {
  if (p.values[content].pinned)
    return true;
  int homes = 0;
  for (ValueId v : forms[content])
    homes += p.values[v].kind == ValueKind::Persistent;
  return homes == 1;
}

void Checker::findFacts() {
  forms.resize(p.values.size());
  for (size_t v = 0; v < p.values.size(); ++v)
    forms[p.contentOf(ValueId(v))].push_back(ValueId(v));
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].updates != kNone)
      next[p.values[v].updates] = ValueId(v);
  for (const Recipe &r : p.recipes)
    if (r.recomputable)
      for (ValueId w : r.writes)
        makers[w].push_back(&r);
  for (const Instruction &i : p.instructions) {
    std::set<ValueId> reads;
    for (RecipeId r : i.recipes) {
      madeByOwn.insert(p.recipes[r].writes.begin(), p.recipes[r].writes.end());
      reads.insert(p.recipes[r].reads.begin(), p.recipes[r].reads.end());
    }
    for (ValueId v : reads)
      mayRead[v] += p.segments[i.segment].trips;
  }
  freeBytes.assign(p.spaces.size(), 0);
  for (size_t s = 0; s < p.spaces.size(); ++s)
    freeBytes[s] = Wide(p.spaces[s].budgetBytes) - p.reservedOf(SpaceId(s));
  for (size_t v = 0; v < p.values.size(); ++v) {
    if (p.values[v].kind != ValueKind::Persistent ||
        p.values[v].updates != kNone)
      continue;
    std::vector<ValueId> chain = {ValueId(v)};
    while (next.count(chain.back()))
      chain.push_back(next[chain.back()]);
    bool stays = true;
    int64_t bytes = p.values[v].bytes;
    for (ValueId u : chain) {
      ValueId content = p.contentOf(u);
      stays &=
          aloneAtHome(content) && (u == content || !p.values[content].pinned);
      bytes = std::min(bytes, p.values[u].bytes);
    }
    if (stays) {
      resident.insert(chain.begin(), chain.end());
      freeBytes[p.values[v].space] -= bytes;
    }
  }
}

bool Checker::isFree(const Recipe &r) const {
  if (!p.isMove(r))
    return false;
  for (ValueId v : r.reads)
    if (p.values[v].kind == ValueKind::Carried)
      return true;
  return false;
}

Wide Checker::leastCharge(ValueId v, SegmentId from, SegmentId to) const {
  Wide least = -1;
  auto found = makers.find(v);
  if (found == makers.end())
    return least;
  for (const Recipe *r : found->second)
    for (SegmentId s = from; s <= to; ++s) {
      if (r->segment != kNone && r->segment != s)
        continue;
      Wide charge = isFree(*r) ? Wide(0)
                               : Wide(c.weights[s][r->engine]) * r->cost /
                                     Wide(r->writes.size());
      if (least < 0 || charge < least)
        least = charge;
    }
  return least;
}

/// Price of the bytes that run `r` of instruction `i` surely holds.
Wide Checker::operands(const Recipe &r, InstructionId i) {
  Wide out = 0;
  std::set<ValueId> read(r.reads.begin(), r.reads.end());
  auto holds = [&](ValueId v) {
    return !resident.count(v) && p.values[v].kind != ValueKind::Carried;
  };
  for (ValueId v : read)
    if (holds(v))
      out = plus(out, times(priceOf(i, p.values[v].space), p.values[v].bytes));
  if (isFree(r))
    return out;
  for (ValueId w : r.writes) {
    if (!holds(w) || read.count(w))
      continue;
    Wide bytes = p.values[w].bytes, shared = 0;
    auto mayShare = [&](ValueId v) {
      shared = std::max<Wide>(shared, std::min<Wide>(bytes, p.values[v].bytes));
    };
    if (p.values[w].updates != kNone)
      mayShare(p.values[w].updates);
    for (const Overwrite &o : r.overwrites)
      if (o.written == w)
        mayShare(o.read);
    out = plus(out, times(priceOf(i, p.values[w].space), bytes - shared));
  }
  return plus(out, times(priceOf(i, r.workspaceSpace), r.workspaceBytes));
}

/// Rent of a home, or of the form that updates it, after the last touch.
Wide Checker::tailRent(ValueId v) const {
  SpaceId space = p.values[v].space;
  Wide since = lastTouch[v][space];
  auto heir = next.find(v);
  if (heir != next.end()) {
    ValueId u = heir->second;
    if (p.values[u].bytes < p.values[v].bytes || next.count(u))
      return 0;
    for (ValueId f : forms[p.contentOf(u)])
      if (f == u || madeByOwn.count(f))
        since = std::max(since, lastTouch[f][space]);
  }
  return wholeRent[space] - since;
}

/// The least cost of the gaps that end at this run, and of its input forms.
Wide Checker::owed(const Recipe &r, InstructionId i, SegmentId now) {
  Wide out = 0;
  for (ValueId v : r.reads) {
    const Value &value = p.values[v];
    if (resident.count(v) || value.kind == ValueKind::Carried)
      continue;
    if (value.kind == ValueKind::Temporary && !madeByOwn.count(v)) {
      Wide charge = leastCharge(v, 0, SegmentId(p.segments.size()) - 1);
      out = plus(out, charge < 0 ? Wide(0) : charge / mayRead[v]);
      continue;
    }
    bool fromHome = !touches[v].ever && value.kind == ValueKind::Persistent &&
                    value.updates == kNone;
    if (!touches[v].ever && !fromHome)
      continue;
    Wide perByte = rent[value.space] - priceOf(i, value.space) -
                   (fromHome ? Wide(0) : touches[v].rent);
    if (fromHome)
      perByte += tailRent(v);
    Wide held = times(perByte, value.bytes);
    Wide broken = leastCharge(v, fromHome ? 0 : touches[v].segment, now);
    out = plus(out, broken >= 0 && broken < held ? broken : held);
  }
  return out;
}

void Checker::execute(InstructionId i, SegmentId now) {
  const Instruction &instruction = p.instructions[i];
  // Rent includes this moment; gaps that end here subtract it again.
  for (size_t s = 0; s < rent.size(); ++s) {
    Wide price = priceOf(i, SpaceId(s));
    rent[s] += price;
    if (price)
      sum.addProduct(-price, freeBytes[s]);
  }
  bool first = true;
  Wide least = 0;
  for (RecipeId id : instruction.recipes) {
    const Recipe &r = p.recipes[id];
    Wide own = isFree(r) ? Wide(0) : Wide(c.weights[now][r.engine]) * r.cost;
    Wide pays = plus(own, plus(operands(r, i), owed(r, i, now)));
    if (first || pays < least)
      least = pays;
    first = false;
  }
  sum.add(least);
  for (RecipeId id : instruction.recipes)
    for (const std::vector<ValueId> *list :
         {&p.recipes[id].reads, &p.recipes[id].writes})
      for (ValueId v : *list) {
        touches[v].ever = true;
        touches[v].rent = rent[p.values[v].space];
        touches[v].segment = now;
      }
}

absl::StatusOr<int64_t> Checker::run() {
  int64_t executions = 0;
  for (const Segment &s : p.segments) {
    int64_t here = 0;
    if (__builtin_mul_overflow(s.trips, int64_t(s.instructions.size()),
                               &here) ||
        here > kMostExecutions - executions)
      return absl::UnimplementedError("too many executions to unroll");
    executions += here;
  }
  if (absl::Status status = readCertificate(); !status.ok())
    return status;
  findFacts();
  // A first walk, for the moments after a value's last touch.
  rent.assign(p.spaces.size(), 0);
  lastTouch.assign(p.values.size(), rent);
  for (const Segment &s : p.segments)
    for (int64_t trip = 0; trip < s.trips; ++trip)
      for (InstructionId i : s.instructions) {
        for (size_t space = 0; space < rent.size(); ++space)
          overflow |= __builtin_add_overflow(
              rent[space], priceOf(i, SpaceId(space)), &rent[space]);
        for (RecipeId id : p.instructions[i].recipes)
          for (const std::vector<ValueId> *list :
               {&p.recipes[id].reads, &p.recipes[id].writes})
            for (ValueId v : *list)
              lastTouch[v] = rent;
      }
  wholeRent = rent;
  rent.assign(p.spaces.size(), 0);
  touches.assign(p.values.size(), {});
  for (size_t s = 0; s < p.segments.size(); ++s)
    for (int64_t trip = 0; trip < p.segments[s].trips; ++trip)
      for (InstructionId i : p.segments[s].instructions)
        execute(i, SegmentId(s));
  // Results stay to the end, if no other form can be their home.
  for (size_t v = 0; v < p.values.size(); ++v) {
    if (p.values[v].kind != ValueKind::Temporary || !p.values[v].liveOut ||
        !madeByOwn.count(ValueId(v)))
      continue;
    bool alone = true;
    for (ValueId f : forms[p.contentOf(ValueId(v))])
      alone &= f == ValueId(v) || !p.values[f].liveOut;
    if (!alone)
      continue;
    Wide held =
        times(rent[p.values[v].space] - touches[v].rent, p.values[v].bytes);
    Wide broken = leastCharge(ValueId(v), touches[v].segment,
                              SegmentId(p.segments.size()) - 1);
    sum.add(broken >= 0 && broken < held ? broken : held);
  }
  if (sum.overflow || overflow)
    return refused("its sums leave 128 bits");
  if (sum.value <= 0)
    return 0;
  Wide bound = (sum.value - 1) / c.denominator + 1;
  return int64_t(std::min<Wide>(bound, std::numeric_limits<int64_t>::max()));
}

} // namespace

absl::StatusOr<int64_t> checkSpaceBound(const Problem &problem,
                                        const SpaceCertificate &certificate) {
  return Checker(problem, certificate).run();
}

} // namespace tmc::planning
