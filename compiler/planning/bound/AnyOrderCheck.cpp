#include "compiler/planning/bound/AnyOrderCheck.h"

#include "compiler/planning/bound/AnyOrderWalk.h"
#include "compiler/planning/bound/BoundCheck.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

template <typename... Parts> absl::Status refused(const Parts &...parts) {
  return absl::InvalidArgumentError(absl::StrCat("certificate: ", parts...));
}

/// An error if the certificate's numbers don't belong to this problem.
absl::Status checkNumbers(const Problem &p, const AnyOrderCertificate &c) {
  if (!isOneSpace(p))
    return refused("the problem has another space or engine");
  if (c.denominator < 1)
    return refused("the denominator is ", c.denominator);
  if (c.budgetBytes < 0 && !c.prices.empty())
    return refused("prices, but no budget");
  std::set<InstructionId> priced;
  for (const AnyOrderCertificate::Price &x : c.prices) {
    if (x.moment < 0 || size_t(x.moment) >= p.instructions.size())
      return refused("a price of instruction ", x.moment);
    if (x.price < 0)
      return refused("a price of ", x.price);
    if (!priced.insert(x.moment).second)
      return refused("two prices of '", p.instructions[x.moment].name, "'");
  }
  std::set<InstructionId> withInputs;
  for (const AnyOrderCertificate::InputMoment &x : c.inputMoments) {
    if (x.moment < 0 || size_t(x.moment) >= p.instructions.size())
      return refused("inputs at instruction ", x.moment);
    const std::string &name = p.instructions[x.moment].name;
    if (c.budgetBytes < 0 || x.price < 0)
      return refused("a price of ", x.price, " at '", name, "'");
    if (!withInputs.insert(x.moment).second)
      return refused("inputs of '", name, "' twice");
    std::set<std::pair<ValueId, ValueId>> rows;
    for (const AnyOrderCertificate::Input &row : x.inputs) {
      if (row.price < 0)
        return refused("an input's price of ", row.price);
      if (!rows.insert({row.value, row.input}).second)
        return refused("an input of value ", row.value, " twice");
    }
  }
  std::set<ValueId> cut;
  for (const AnyOrderCertificate::Chain &chain : c.chains) {
    if (chain.value < 0 || size_t(chain.value) >= p.values.size())
      return refused("a chain of value ", chain.value);
    if (!cut.insert(chain.value).second)
      return refused("two chains of '", p.values[chain.value].name, "'");
    for (InstructionId b : chain.readers)
      if (b < 0 || size_t(b) >= p.instructions.size())
        return refused("a chain with instruction ", b);
  }
  return absl::OkStatus();
}

class Checker : EventWalk, CheckedMath {
public:
  Checker(const Problem &p, const AnyOrderCertificate &c)
      : EventWalk(p), c(c) {}
  absl::StatusOr<int64_t> run();

private:
  absl::Status checkChains() const;
  bool isUsedBehind(ValueId v, InstructionId k, const EventSide &behind) const;
  bool isReadWithin(ValueId v, SegmentId s) const;
  Wide leastOperands(InstructionId k);
  Wide persistentBytes();
  Wide carriedBytes(InstructionId k, const EventSide &behind,
                    std::set<ValueId> &touched);
  /// The values and bytes around a moment.
  struct Around {
    Wide need = 0;
    std::set<ValueId> touched; // And sources that count with a carried one.
    std::set<ValueId> there;   // Surely written before, and read behind.
    /// Those of `there` that some execution may write again; true: the loop
    /// that makes the value is over.
    std::map<ValueId, bool> mayGo;
  };
  Around around(InstructionId k);
  std::vector<int> gapsAround(ValueId v, bool isPast, InstructionId k);
  std::vector<int> gapsFrom(ValueId v, InstructionId k);
  bool isInTrip(ValueId v, InstructionId k) const;
  absl::Status addMoment(const AnyOrderCertificate::Price &price);
  absl::Status addInputs(const AnyOrderCertificate::InputMoment &at);
  absl::Status checkPair(const Around &here, InstructionId k, ValueId v,
                         ValueId input) const;
  Wide shareOf(RecipeId r, ValueId v) const;
  Wide leastShare(ValueId v, bool behindLoop) const;
  Wide costOf(ValueId v, int gap);

  const AnyOrderCertificate &c;
  std::map<ValueId, std::vector<InstructionId>> chains;
  /// The points before and behind each priced moment.
  std::map<InstructionId, std::pair<EventSide, EventSide>> sides;
  /// Prices x bytes by value and gap; gap -1 stands behind the value's loop.
  std::map<std::pair<ValueId, int>, Wide> rents;
  Wide sum = 0;
};

absl::Status Checker::checkChains() const {
  for (const auto &[v, chain] : chains) {
    for (size_t i = 0; i < chain.size(); ++i) {
      const std::string &name = p.instructions[chain[i]].name;
      if (maker[v] == kNone || !sure[chain[i]].count(v))
        return refused("'", name, "' may spare '", p.values[v].name, "'");
      if (trips(segmentOf(maker[v])) > 1 &&
          segmentOf(chain[i]) != segmentOf(maker[v]))
        return refused("'", name, "' reads '", p.values[v].name,
                       "' outside of its loop");
      bool inOrder = i == 0;
      for (const auto &[k, side] : sides)
        inOrder = inOrder || (side.first.events.count(chain[i - 1]) &&
                              side.second.events.count(chain[i]));
      if (!inOrder)
        return refused("gaps of '", p.values[v].name, "' overlap at '", name,
                       "'");
    }
  }
  return absl::OkStatus();
}

bool Checker::isReadWithin(ValueId v, SegmentId s) const {
  if (auto found = readers.find(v); found != readers.end())
    for (EventPoint x : found->second)
      if (segmentOf(x) == s)
        return true;
  return false;
}

/// True if v is surely read behind k, where the bytes must be there for it.
bool Checker::isUsedBehind(ValueId v, InstructionId k,
                           const EventSide &behind) const {
  const SegmentId s = segmentOf(k);
  bool inside = false, anywhere = false;
  if (auto found = readers.find(v); found != readers.end())
    for (EventPoint x : found->second)
      if (behind.holds(x)) {
        anywhere = true;
        inside |= segmentOf(x) == s;
      }
  if (trips(s) == 1)
    return anywhere || p.values[v].liveOut;
  if (maker[v] != kNone && segmentOf(maker[v]) == s) {
    bool isNext = false; // The next trip surely reads it.
    for (ValueId w = 0; w < ValueId(p.values.size()) && trips(s) > 2; ++w)
      isNext |= p.values[w].carriedFrom == v && isReadWithin(w, s);
    return inside || isNext;
  }
  return isReadWithin(v, s) ? inside : anywhere || p.values[v].liveOut;
}

Wide Checker::persistentBytes() {
  std::map<ValueId, ValueId> updated;
  for (ValueId v = 0; v < ValueId(p.values.size()); ++v)
    if (p.values[v].updates != kNone)
      updated[p.values[v].updates] = v;
  Wide bytes = 0;
  for (ValueId v = 0; v < ValueId(p.values.size()); ++v) {
    if (p.values[v].kind != ValueKind::Persistent ||
        p.values[v].updates != kNone)
      continue;
    Wide least = p.values[v].bytes;
    if (updated.count(v))
      least = std::min<Wide>(least, p.values[updated[v]].bytes);
    bytes = plus(bytes, least);
  }
  return bytes;
}

Wide Checker::leastOperands(InstructionId k) {
  auto bytesOf = [&](ValueId v) -> Wide {
    return v == kNone || p.values[v].kind == ValueKind::Persistent
               ? 0
               : p.values[v].bytes;
  };
  Wide least = -1;
  for (RecipeId r : p.instructions[k].recipes) {
    Wide bytes = p.recipes[r].workspaceBytes;
    for (ValueId v : readsBy(r, segmentOf(k)))
      bytes = plus(bytes, bytesOf(v));
    for (ValueId w : p.recipes[r].writes) {
      Wide kept = bytesOf(w);
      for (const Overwrite &o : p.recipes[r].overwrites)
        if (o.written == w)
          kept = std::min(
              kept, std::max<Wide>(0, bytesOf(w) - bytesOf(aliasOf(
                                                       o.read, segmentOf(k)))));
      bytes = plus(bytes, kept);
    }
    if (least < 0 || bytes < least)
      least = bytes;
  }
  return least;
}

/// Bytes of carried values and of sources that are there in turn with them.
Wide Checker::carriedBytes(InstructionId k, const EventSide &behind,
                           std::set<ValueId> &touched) {
  const SegmentId s = segmentOf(k);
  Wide bytes = 0;
  if (trips(s) == 1)
    return 0;
  for (ValueId v = 0; v < ValueId(p.values.size()); ++v) {
    const Value &value = p.values[v];
    if (value.kind != ValueKind::Carried || touched.count(v) ||
        segmentOf(maker[value.carriedFrom]) != s)
      continue;
    const ValueId source = value.carriedFrom;
    const bool inTurn = trips(s) > 2 && extra[source].empty() &&
                        sure[maker[source]].count(v) && !touched.count(source);
    if (inTurn)
      touched.insert(source);
    if (inTurn || isUsedBehind(v, k, behind))
      bytes = plus(bytes, value.bytes);
  }
  return bytes;
}

Checker::Around Checker::around(InstructionId k) {
  const SegmentId s = segmentOf(k);
  const auto &[before, behind] = sides[k];
  Around here;
  for (RecipeId r : p.instructions[k].recipes) {
    for (ValueId v : readsBy(r, s))
      here.touched.insert(v);
    here.touched.insert(p.recipes[r].writes.begin(), p.recipes[r].writes.end());
  }
  Wide live = plus(persistentBytes(), leastOperands(k));
  live = plus(live, carriedBytes(k, behind, here.touched));
  for (ValueId v = 0; v < ValueId(p.values.size()); ++v) {
    if (p.values[v].kind != ValueKind::Temporary || here.touched.count(v))
      continue;
    const SegmentId home = segmentOf(maker[v]);
    const bool isPast = trips(home) > 1 && home < s; // Its loop is over.
    if (!(isPast || (first[v] != First::Unknown && before.holds(firstOf(v)))) ||
        !isUsedBehind(v, k, behind))
      continue;
    live = plus(live, p.values[v].bytes);
    here.there.insert(v);
    if (leastShare(v, isPast) >= 0)
      here.mayGo[v] = isPast;
  }
  here.need = live - (Wide(c.budgetBytes) - p.reservedBytes);
  return here;
}

/// The gap of v that k stands in, and the later ones.
std::vector<int> Checker::gapsFrom(ValueId v, InstructionId k) {
  std::vector<int> out;
  const std::vector<InstructionId> &chain = chains[v];
  for (int gap = 0; size_t(gap) <= chain.size(); ++gap)
    if (size_t(gap) == chain.size() || !sides[k].first.events.count(chain[gap]))
      out.push_back(gap);
  return out;
}

/// The gaps of v from k's up to the first reader that surely is behind k.
std::vector<int> Checker::gapsAround(ValueId v, bool isPast, InstructionId k) {
  if (isPast)
    return {-1};
  const std::vector<InstructionId> &chain = chains[v];
  std::vector<int> out;
  for (int gap : gapsFrom(v, k)) {
    out.push_back(gap);
    if (size_t(gap) < chain.size() && sides[k].second.events.count(chain[gap]))
      break;
  }
  return out;
}

absl::Status Checker::addMoment(const AnyOrderCertificate::Price &price) {
  const InstructionId k = price.moment;
  const Around here = around(k);
  if (here.need <= 0)
    return refused("a price of '", p.instructions[k].name, "', which has room");
  sum = plus(sum, times(price.price, here.need));
  for (auto [v, isPast] : here.mayGo) {
    const Wide rent =
        times(price.price, std::min<Wide>(here.need, p.values[v].bytes));
    for (int gap : gapsAround(v, isPast, k))
      rents[{v, gap}] = plus(rents[{v, gap}], rent);
  }
  return absl::OkStatus();
}

/// True if what writes v behind k, for k's trip, finds v's inputs in this trip.
bool Checker::isInTrip(ValueId v, InstructionId k) const {
  if (maker[v] == kNone || first[v] == First::Unknown)
    return false;
  const SegmentId home = segmentOf(maker[v]), here = segmentOf(k);
  return trips(home) == 1 ? trips(here) == 1 : home == here;
}

/// An error unless v is gone at k only if `input` is there or written again.
absl::Status Checker::checkPair(const Around &here, InstructionId k, ValueId v,
                                ValueId input) const {
  const int32_t count = int32_t(p.values.size());
  if (v < 0 || v >= count || input < 0 || input >= count)
    return refused("a pair of values ", v, " and ", input);
  const std::string names =
      absl::StrCat("'", p.values[v].name, "', made of '", p.values[input].name,
                   "', at '", p.instructions[k].name, "': ");
  if (!here.mayGo.count(v) || here.mayGo.at(v) || !isInTrip(v, k))
    return refused(names, "the value isn't surely there or written again");
  if (p.values[input].kind != ValueKind::Temporary || !isInTrip(input, k))
    return refused(names, "the input isn't of this trip");
  if (here.touched.count(input) || here.there.count(input))
    return refused(names, "the input's bytes count already");
  for (RecipeId r : writersOf(v))
    if (!readsBy(r, segmentOf(maker[v])).count(input))
      return refused(names, "'", p.recipes[r].name, "' doesn't read it");
  return absl::OkStatus();
}

absl::Status Checker::addInputs(const AnyOrderCertificate::InputMoment &at) {
  const Around here = around(at.moment);
  if (here.need <= 0)
    return refused("a price of '", p.instructions[at.moment].name,
                   "', which has room");
  sum = plus(sum, times(at.price, here.need));
  // The price of a value's bytes, less that of its rows.
  std::map<ValueId, Wide> left;
  for (auto [v, isPast] : here.mayGo)
    left[v] = times(at.price, p.values[v].bytes);
  for (const AnyOrderCertificate::Input &row : at.inputs) {
    if (absl::Status status = checkPair(here, at.moment, row.value, row.input);
        !status.ok())
      return status;
    left[row.value] = plus(left[row.value], -Wide(row.price));
    left.insert({row.input, times(at.price, p.values[row.input].bytes)});
    left[row.input] = plus(left[row.input], -Wide(row.price));
    if (leastShare(row.input, false) < 0)
      continue;
    for (int gap : gapsFrom(row.input, at.moment))
      rents[{row.input, gap}] = plus(rents[{row.input, gap}], row.price);
  }
  for (auto [v, rest] : left) {
    auto found = here.mayGo.find(v);
    if (found == here.mayGo.end())
      sum = plus(sum, std::min<Wide>(0, rest)); // Its bytes are paid for.
    else if (rest > 0)
      for (int gap : gapsAround(v, found->second, at.moment))
        rents[{v, gap}] = plus(rents[{v, gap}], rest);
  }
  return absl::OkStatus();
}

Wide Checker::shareOf(RecipeId r, ValueId v) const {
  const Recipe &recipe = p.recipes[r];
  Wide bytes = 0;
  for (ValueId w : recipe.writes)
    bytes += p.values[w].bytes;
  if (recipe.writes.size() == 1)
    return recipe.cost;
  return bytes == 0 ? 0 : Wide(recipe.cost) * p.values[v].bytes / bytes;
}

/// The least that one more execution pays which writes v; -1: there is none.
Wide Checker::leastShare(ValueId v, bool behindLoop) const {
  Wide least = -1;
  auto meet = [&](RecipeId r) {
    if (Wide share = shareOf(r, v); least < 0 || share < least)
      least = share;
  };
  for (RecipeId r : extra[v]) {
    if (behindLoop && p.recipes[r].segment == segmentOf(maker[v]))
      continue;
    meet(r);
  }
  return least;
}

/// The cost of breaking a gap: in each trip, if both its ends are in one loop.
Wide Checker::costOf(ValueId v, int gap) {
  const SegmentId home = segmentOf(maker[v]);
  if (gap < 0)
    return leastShare(v, true);
  Wide factor = trips(home);
  const std::vector<InstructionId> &chain = chains[v];
  if (factor == 1 && gap > 0 && size_t(gap) < chain.size() &&
      segmentOf(chain[gap - 1]) == segmentOf(chain[gap]))
    factor = trips(segmentOf(chain[gap]));
  return times(leastShare(v, false), factor);
}

absl::StatusOr<int64_t> Checker::run() {
  for (const AnyOrderCertificate::Price &x : c.prices)
    sides[x.moment] = {walk(x.moment, false), walk(x.moment, true)};
  for (const AnyOrderCertificate::InputMoment &x : c.inputMoments)
    if (!sides.count(x.moment))
      sides[x.moment] = {walk(x.moment, false), walk(x.moment, true)};
  for (const AnyOrderCertificate::Chain &chain : c.chains)
    chains[chain.value] = chain.readers;
  if (absl::Status status = checkChains(); !status.ok())
    return status;
  for (const AnyOrderCertificate::Price &x : c.prices)
    if (absl::Status status = addMoment(x); !status.ok())
      return status;
  for (const AnyOrderCertificate::InputMoment &x : c.inputMoments)
    if (absl::Status status = addInputs(x); !status.ok())
      return status;
  for (const auto &[x, rent] : rents)
    if (Wide cost = times(c.denominator, costOf(x.first, x.second));
        rent > cost)
      sum = plus(sum, cost - rent);
  Wide base = 0;
  for (const Instruction &i : p.instructions) {
    Wide least = -1;
    for (RecipeId r : i.recipes)
      if (least < 0 || p.recipes[r].cost < least)
        least = p.recipes[r].cost;
    base = plus(base, times(least, trips(i.segment)));
  }
  if (overflow)
    return refused("its sums leave 128 bits");
  const Wide extraCost = sum <= 0 ? Wide(0) : (sum - 1) / c.denominator + 1;
  return int64_t(std::min<Wide>(plus(base, extraCost),
                                std::numeric_limits<int64_t>::max()));
}

} // namespace

absl::StatusOr<int64_t>
tmc::planning::checkAnyOrderBound(const Problem &problem,
                                  const AnyOrderCertificate &certificate) {
  if (absl::Status status = checkNumbers(problem, certificate); !status.ok())
    return status;
  return Checker(problem, certificate).run();
}

std::optional<std::string> tmc::planning::checkAnyOrderCertificate(
    const Problem &problem, const AnyOrderCertificate &certificate) {
  absl::StatusOr<int64_t> proven = checkAnyOrderBound(problem, certificate);
  if (!proven.ok())
    return std::string(proven.status().message());
  if (*proven < certificate.provenCost)
    return absl::StrCat("the certificate proves a cost of ", *proven, ", not ",
                        certificate.provenCost, " as claimed");
  return std::nullopt;
}
