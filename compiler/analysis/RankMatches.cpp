// RankMatches.cpp - each call between ranks has partners that say the same.

#include "compiler/analysis/RankChecks.h"

#include <algorithm>

using namespace tmc;

namespace {

using Calls = std::vector<RankSide>;

bool isSameValue(const RankSide &a, const RankSide &b) {
  return a.entry->name == b.entry->name &&
         a.entry->instance == b.entry->instance;
}

/// True if the calls meet. A send is compared with a receive.
bool match(const RankSide &a, const RankSide &b) {
  const RankCall &x = *a.entry->call, &y = *b.entry->call;
  return isSameValue(a, b) && (x.kind == y.kind || x.isMessage()) &&
         x.type == y.type && x.bytes == y.bytes && x.total == y.total;
}

/// True if a call of `calls` after number k meets `side`.
bool isLater(const Calls &calls, size_t k, const RankSide &side) {
  return std::any_of(
      calls.begin() + std::ptrdiff_t(std::min(k + 1, calls.size())),
      calls.end(), [&](const RankSide &each) { return match(each, side); });
}

class Matcher {
public:
  explicit Matcher(const ShownRanks &ranks) : ranks(ranks) {
    for (int rank = 0; rank < ranks.size(); ++rank)
      calls.push_back(callsOf(ranks, rank));
  }

  std::optional<RankFault> run() {
    for (Axis axis : {Axis::Data, Axis::Tensor, Axis::Pipeline})
      for (int rank = 0; rank < ranks.size() && !fault; ++rank) {
        const int first = ranks.mesh.group(axis, rank)[0];
        if (first != rank &&
            ranks.programs[size_t(first)] != ranks.programs[size_t(rank)])
          compare(collectives(first, axis), collectives(rank, axis));
      }
    if (!fault)
      checkPeers();
    for (int from = 0; from < ranks.size(); ++from)
      for (int to = 0; to < ranks.size() && !fault; ++to)
        compareMessages(from, to);
    return std::move(fault);
  }

private:
  const ShownRanks &ranks;
  std::vector<Calls> calls; // By rank.
  std::optional<RankFault> fault;

  void report(RankFaultKind kind, const RankSide &at, const std::string &text,
              const RankSide *other = nullptr) {
    fault =
        RankFault{kind, textOf(ranks, at) + text, at.entry->op, "", nullptr};
    if (other) {
      fault->otherMessage = textOf(ranks, *other) + ", is here";
      fault->other = other->entry->op;
    }
  }

  Calls collectives(int rank, Axis axis) const {
    Calls found;
    for (const RankSide &side : calls[size_t(rank)])
      if (!side.entry->call->isMessage() && side.entry->call->axis == axis)
        found.push_back(side);
    return found;
  }

  Calls messages(int rank, RankCall::Kind kind, int peer) const {
    Calls found;
    for (const RankSide &side : calls[size_t(rank)])
      if (side.entry->call->kind == kind && peerOf(ranks, side) == peer)
        found.push_back(side);
    return found;
  }

  /// The k-th calls of two sides are partners.
  void compare(const Calls &a, const Calls &b) {
    size_t k = 0;
    while (k < a.size() && k < b.size() && match(a[k], b[k]))
      ++k;
    if (k == a.size() && k == b.size())
      return;
    if (k == a.size())
      return unmatched(b[k], a);
    if (k == b.size())
      return unmatched(a[k], b);
    const bool crossed = isLater(b, k, a[k]) && isLater(a, k, b[k]);
    if (a.size() == b.size() && k + 1 < a.size() && match(a[k], b[k + 1]) &&
        match(a[k + 1], b[k]))
      return outOfOrder(a[k], b[k]);
    if (a.size() > b.size() && k + 1 < a.size() && match(a[k + 1], b[k]))
      return unmatched(a[k], b);
    if (b.size() > a.size() && k + 1 < b.size() && match(a[k], b[k + 1]))
      return unmatched(b[k], a);
    if (isSameValue(a[k], b[k]))
      return differ(a[k], b[k]);
    if (crossed)
      return outOfOrder(a[k], b[k]);
    if (isLater(b, k, a[k])) // B has some more before it.
      return unmatched(b[k], a);
    unmatched(a[k], b);
  }

  /// `others`: the calls of the rank that lacks it.
  void unmatched(const RankSide &side, const Calls &others) {
    const RankCall &call = *side.entry->call;
    if (call.isMessage())
      return unmatchedMessage(side);
    std::string text = ", has no partner";
    if (others.empty())
      text += ": another rank of its group makes no such call";
    else
      text += " among the " + std::to_string(others.size()) + " calls of " +
              ranks.nameOf(others[0].rank) + " over " + nameOf(call.axis);
    report(RankFaultKind::Unmatched, side, text);
  }

  void outOfOrder(const RankSide &a, const RankSide &b) {
    report(RankFaultKind::Order, b,
           ", stands where " + ranks.nameOf(a.rank) + " makes " +
               textOf(*a.entry) + ": the two ranks have another order",
           &a);
  }

  /// Two calls of one value.
  void differ(const RankSide &a, const RankSide &b) {
    const RankCall &x = *a.entry->call, &y = *b.entry->call;
    const std::string where = ", where " + ranks.nameOf(a.rank) + "'s ";
    auto number = [](int64_t n) { return std::to_string(n); };
    if (x.kind != y.kind && !x.isMessage())
      return report(RankFaultKind::Operation, b,
                    ", meets " + ranks.nameOf(a.rank) + "'s " + nameOf(x.kind),
                    &a);
    if (x.type != y.type)
      return report(RankFaultKind::Type, b,
                    ", moves " + y.type + where + "moves " + x.type, &a);
    if (x.bytes != y.bytes)
      return report(RankFaultKind::Bytes, b,
                    ", has pieces of " + number(y.bytes) + " bytes" + where +
                        "have " + number(x.bytes),
                    &a);
    report(RankFaultKind::Total, b,
           ", is of " + number(y.total) + " bytes in all" + where + "is of " +
               number(x.total),
           &a);
  }

  void checkPeers() {
    for (const Calls &its : calls)
      for (const RankSide &side : its)
        if (side.entry->call->isMessage() && peerOf(ranks, side) < 0)
          return report(RankFaultKind::Peer, side,
                        ", names place " +
                            std::to_string(side.entry->call->peer) +
                            ", which isn't another rank of its group");
  }

  void compareMessages(int from, int to) {
    if (from != to && !fault)
      compare(messages(from, RankCall::Kind::Send, to),
              messages(to, RankCall::Kind::Receive, from));
  }

  /// A message that isn't expected may be meant for another rank, or be
  /// expected from another one.
  void unmatchedMessage(const RankSide &side) {
    const bool sends = side.entry->call->kind == RankCall::Kind::Send;
    const std::string peer = ranks.nameOf(peerOf(ranks, side));
    const std::string way = (sends ? " to " : " from ") + peer;
    for (const Calls &its : calls)
      for (const RankSide &other : its) {
        const RankCall &call = *other.entry->call;
        const bool isOpposite =
            call.isMessage() && call.kind != side.entry->call->kind;
        if (!isOpposite || !isSameValue(side, other) || isMet(other) ||
            other.rank == side.rank)
          continue;
        return report(RankFaultKind::Peer, side,
                      ", goes" + way + ", where " + textOf(ranks, other) +
                          ", goes" + (sends ? " from " : " to ") +
                          ranks.nameOf(peerOf(ranks, other)),
                      &other);
      }
    report(
        RankFaultKind::Unmatched, side,
        ", has no partner: it goes" + way +
            (sends ? ", which doesn't receive it" : ", which doesn't send it"));
  }

  /// True if a partner of the same value is at the other end.
  bool isMet(const RankSide &side) const {
    const int peer = peerOf(ranks, side);
    const RankCall::Kind opposite =
        side.entry->call->kind == RankCall::Kind::Send ? RankCall::Kind::Receive
                                                       : RankCall::Kind::Send;
    const Calls there = messages(peer, opposite, side.rank);
    return std::any_of(there.begin(), there.end(),
                       [&](const RankSide &each) { return match(each, side); });
  }
};

} // namespace

std::optional<RankFault> tmc::checkMatches(const ShownRanks &ranks) {
  return Matcher(ranks).run();
}
