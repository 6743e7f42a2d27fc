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
  absl::Status addMoment(const AnyOrderCertificate::Price &price);
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

absl::Status Checker::addMoment(const AnyOrderCertificate::Price &price) {
  const InstructionId k = price.moment;
  const SegmentId s = segmentOf(k);
  const auto &[before, behind] = sides[k];
  std::set<ValueId> touched;
  for (RecipeId r : p.instructions[k].recipes) {
    for (ValueId v : readsBy(r, s))
      touched.insert(v);
    touched.insert(p.recipes[r].writes.begin(), p.recipes[r].writes.end());
  }
  Wide live = plus(persistentBytes(), leastOperands(k));
  live = plus(live, carriedBytes(k, behind, touched));
  std::vector<std::pair<ValueId, int>> crossed;
  for (ValueId v = 0; v < ValueId(p.values.size()); ++v) {
    if (p.values[v].kind != ValueKind::Temporary || touched.count(v))
      continue;
    const SegmentId home = segmentOf(maker[v]);
    const bool isPast = trips(home) > 1 && home < s; // Its loop is over.
    if (!(isPast || (first[v] != First::Unknown && before.holds(firstOf(v)))) ||
        !isUsedBehind(v, k, behind))
      continue;
    live = plus(live, p.values[v].bytes);
    if (leastShare(v, isPast) < 0)
      continue;
    if (isPast) {
      crossed.push_back({v, -1});
      continue;
    }
    const std::vector<InstructionId> &chain = chains[v];
    int gap = 0;
    while (size_t(gap) < chain.size() && before.events.count(chain[gap]))
      ++gap;
    crossed.push_back({v, gap});
    while (size_t(gap) < chain.size() && !behind.events.count(chain[gap]))
      crossed.push_back({v, ++gap});
  }
  const Wide need = live - (Wide(c.budgetBytes) - p.reservedBytes);
  if (need <= 0)
    return refused("a price of '", p.instructions[k].name, "', which has room");
  sum = plus(sum, times(price.price, need));
  for (auto x : crossed)
    rents[x] =
        plus(rents[x],
             times(price.price, std::min<Wide>(need, p.values[x.first].bytes)));
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
  for (const AnyOrderCertificate::Chain &chain : c.chains)
    chains[chain.value] = chain.readers;
  if (absl::Status status = checkChains(); !status.ok())
    return status;
  for (const AnyOrderCertificate::Price &x : c.prices)
    if (absl::Status status = addMoment(x); !status.ok())
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
