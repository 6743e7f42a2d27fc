#include "compiler/planning/moves/ModeLoads.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

using namespace tmc::planning;

namespace {

/// Prefixes of groups are tried in steps of a fifth of the groups.
constexpr size_t kPrefixParts = 5;
/// Number of best modes that climb, and number of stretches that a climb
/// changes.
constexpr size_t kClimbs = 2, kStretches = 16;
/// Number of best modes kept for later budgets.
constexpr size_t kStarts = 12;
constexpr int kSweeps = 3;
/// Bytes still missing at the end count as moved this many times.
constexpr double kLackWeight = 4;

} // namespace

//===----------------------------------------------------------------------===//
// The sketch of a choice
//===----------------------------------------------------------------------===//

void ModeLoads::addMode(Sketch &s, const Group &g, GroupMode mode) const {
  auto add = [&](Range range, int64_t bytes) {
    if (range.isEmpty())
      return;
    s.live[range.first] += bytes;
    if (range.last < int32_t(kPieces))
      s.live[range.last] -= bytes;
  };
  const Range everywhere{0, int32_t(kPieces)};
  const bool isOfHost = isHosted(mode);
  if (leavesStates(mode)) {
    add(everywhere, -g.stateBytes);
    s.homes += g.stateBytes;
    if (!isOfHost) {
      s.most[g.update] = std::max(s.most[g.update], g.stateBytes);
      s.in[g.update] += g.statesIn;
      s.out[g.update] += g.statesOut;
      s.moved += g.statesIn + g.statesOut;
    }
  }
  if (leavesShared(mode)) {
    s.homes += g.sharedBytes;
    int32_t first = g.firstUse, last = g.lastUse;
    if (!isOfHost && g.returnIn > 0) // The update uses it too.
      first = std::min(first, g.update), last = std::max(last, g.update);
    if (g.lastUse < 0 && isOfHost)
      add(everywhere, -g.sharedBytes);
    else
      add({0, first}, -g.sharedBytes),
          add({last + 1, int32_t(kPieces)}, -g.sharedBytes);
    if (g.lastUse >= 0 || !isOfHost)
      s.in[first] += g.sharedIn * g.trips;
    if (!isOfHost)
      s.out[g.update] += g.sharedOut;
    s.moved += g.sharedIn * g.trips + g.sharedOut;
  }
  if (!isOfHost)
    return;
  s.compute[g.update] -= g.device;
  int32_t ready = 0;
  for (const Gradient &gradient : g.gradients) {
    add(gradient.waits, -gradient.bytes);
    s.out[gradient.made] += gradient.out;
    s.moved += gradient.out;
    ready = std::max(ready, gradient.made);
  }
  s.host[ready] += g.host;
  if (mode == GroupMode::Returned) {
    s.copied[ready] += g.copyOut;
    s.returned[ready] += g.returnIn;
    s.moved += g.copyOut + g.returnIn;
  }
}

/// Breaks gaps until no bytes are missing; returns whether that succeeds.
/// `lackTime`: the penalty for missing bytes, in link time.
bool ModeLoads::relieve(Sketch &s, const UpdateModes &modes, size_t price,
                        int64_t &lackTime) const {
  if (budget < 0)
    return true;
  int32_t lacking = 0;
  for (size_t b = 0; b < kPieces; ++b)
    lacking += s.live[b] > budget;
  auto isWorth = [&](Range range) {
    for (int32_t b = range.first; b < range.last; ++b)
      if (s.live[b] > budget)
        return true;
    return false;
  };
  auto take = [&](Range range, int64_t bytes) {
    for (int32_t b = range.first; b < range.last; ++b) {
      lacking -= s.live[b] > budget && s.live[b] - bytes <= budget;
      s.live[b] -= bytes;
    }
  };
  auto refetch = [&] {
    for (size_t i = 0; i < groups.size() && lacking > 0; ++i)
      if (const Group &g = groups[i];
          leavesShared(modes[i]) && isWorth(g.gap)) {
        take(g.gap, g.sharedBytes);
        s.in[g.gap.last] += g.sharedIn * g.trips;
        s.release[g.gap.last] = std::max(s.release[g.gap.last], g.gap.first);
        s.moved += g.sharedIn * g.trips;
      }
  };
  bool hasRefetched = false;
  for (int32_t i : order[price]) {
    if (lacking == 0)
      break;
    const Gap &gap = gaps[i];
    if (gap.group != kNone && isHosted(modes[gap.group]))
      continue;
    const double link = kPrices[price] * double(gap.in + gap.out);
    const bool moves =
        gap.in >= 0 && (gap.again < 0 || link <= double(gap.again));
    if (!hasRefetched &&
        (moves ||
         double(gap.again) > kPrices[price] * linkTime * double(gap.bytes))) {
      hasRefetched = true;
      refetch();
    }
    if (!isWorth(gap.inside))
      continue;
    take(gap.inside, gap.bytes);
    if (moves) {
      s.out[gap.from] += gap.out;
      s.in[gap.to] += gap.in;
      s.release[gap.to] = std::max(s.release[gap.to], gap.from + 1);
      s.homes += gap.bytes;
      s.moved += gap.in + gap.out;
    } else {
      s.compute[gap.to] += gap.again;
    }
  }
  if (lacking > 0 && !hasRefetched)
    refetch();
  int64_t most = 0;
  for (size_t b = 0; b < kPieces; ++b)
    most = std::max(most, s.live[b] - budget);
  lackTime = int64_t(double(most) * linkTime * kLackWeight);
  return lacking == 0;
}

/// Runs the engines side by side, piece by piece. Work of the links counts in
/// their own time: `ahead` is the work done before it is wanted, `behind` the
/// work that waits to leave.
int64_t ModeLoads::timeOf(const Sketch &s) const {
  int64_t now = 0, ahead = 0, behind = 0, hostFree = 0;
  int64_t wanted = 0; // Demand up to `reach` that may come.
  size_t reach = 0;
  int64_t returnFree = 0;
  int64_t spare = 0; // Free time of the link to the host, for copies.
  double shared = 0; // Time of the host's memory.
  auto roomAt = [&](size_t b) {
    if (budget < 0)
      return std::numeric_limits<int64_t>::max() / 4;
    return int64_t(double(std::max<int64_t>(0, budget - s.live[b])) * linkTime);
  };
  auto work = [&](int64_t time, int64_t room) {
    ahead += std::max<int64_t>(
        0, std::min({time, room - ahead - behind, wanted - ahead}));
    spare += std::max<int64_t>(0, time - behind);
    behind = std::max<int64_t>(0, behind - time);
  };
  for (size_t b = 0; b < kPieces; ++b) {
    while (reach < kPieces && s.release[reach] <= int32_t(b))
      wanted += s.in[reach++];
    if (reach <= b) // Released in the piece itself.
      wanted += s.in[b], reach = b + 1;
    if (ahead < s.in[b]) {
      const int64_t stall = s.in[b] - ahead;
      now += stall;
      spare += std::max<int64_t>(0, stall - behind);
      behind = std::max<int64_t>(0, behind - stall);
      ahead = s.in[b];
    }
    ahead -= s.in[b], wanted -= s.in[b];
    const int64_t room = roomAt(b);
    if (behind > room) {
      const int64_t stall = behind - room;
      now += stall;
      work(stall, room);
    }
    const int64_t kernels = std::max<int64_t>(0, baseCompute[b] + s.compute[b]);
    now += kernels;
    work(kernels, room);
    behind += s.out[b];
    spare -= s.copied[b];
    if (spare < 0) // The link is late.
      behind -= spare, spare = 0;
    shared +=
        linkShare * double(s.in[b] + s.out[b] + s.copied[b] + s.returned[b]) +
        updateShare * double(s.host[b]);
    if (s.host[b] > 0)
      hostFree = std::max(hostFree, now + behind) + s.host[b];
    if (s.returned[b] > 0)
      returnFree = std::max(returnFree, hostFree) + s.returned[b];
    else if (returnFree > 0)
      returnFree += s.in[b];
  }
  return std::max({now + behind, hostFree, returnFree, int64_t(shared)});
}

ModeLoads::Loads ModeLoads::of(const UpdateModes &modes) const {
  Sketch base;
  for (size_t i = 0; i < groups.size(); ++i)
    if (modes[i] != GroupMode::Device)
      addMode(base, groups[i], modes[i]);
  int64_t sum = 0;
  for (size_t b = 0; b < kPieces; ++b) {
    sum += base.live[b];
    base.live[b] = baseLive[b] + sum + base.most[b];
  }
  Loads best;
  best.estimate = std::numeric_limits<int64_t>::max();
  for (size_t p = 0; p < kPrices.size(); ++p) {
    Sketch sketch = base;
    int64_t lackTime = 0;
    Loads loads;
    loads.fits = relieve(sketch, modes, p, lackTime);
    loads.price = kPrices[p];
    loads.moved = sketch.moved;
    loads.estimate = timeOf(sketch) + lackTime;
    if (mostAtHome >= 0 && sketch.homes > mostAtHome) {
      loads.fits &= hasFile;
      const double more = double(sketch.homes - mostAtHome);
      loads.estimate = std::max({loads.estimate, int64_t(more * readTime),
                                 int64_t(more * writeTime)}) +
                       (hasFile ? 0 : int64_t(more * linkTime * kLackWeight));
    }
    if (loads.estimate < best.estimate)
      best = loads;
    if (sketch.live == base.live)
      break; // Nothing is missing at any price.
  }
  return best;
}

std::vector<std::pair<size_t, size_t>>
ModeLoads::stretches(size_t count) const {
  std::vector<std::pair<size_t, size_t>> made;
  int64_t sum = 0, done = 0;
  auto bytesOf = [](const Group &g) { return g.stateBytes + g.sharedBytes; };
  for (const Group &g : groups)
    sum += bytesOf(g);
  size_t first = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    done += bytesOf(groups[i]);
    const bool isLast = i + 1 == groups.size();
    // Hostable groups and other groups are in different stretches.
    if (isLast || i + 1 == all.hostable ||
        done * int64_t(count) >= sum * int64_t(made.size() + 1))
      made.push_back({first, i + 1}), first = i + 1;
  }
  return made;
}

/// Changes the modes of stretches while the estimate falls.
void ModeLoads::climb(
    Candidate &candidate,
    const std::vector<std::pair<size_t, size_t>> &stretches) const {
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool gains = false;
    for (auto [first, last] : stretches)
      for (size_t m = 0; m < kNumGroupModes; ++m) {
        UpdateModes modes = candidate.modes;
        for (size_t i = first; i < last; ++i)
          modes[i] = possibleMode(all.all[i], GroupMode(m));
        if (modes == candidate.modes)
          continue;
        const Loads loads = of(modes);
        if (std::pair(loads.estimate, loads.moved) <
            std::pair(candidate.loads.estimate, candidate.loads.moved)) {
          candidate = {loads, std::move(modes)};
          gains = true;
        }
      }
    if (!gains)
      break;
  }
}

std::vector<ModeLoads::Candidate> ModeLoads::ranked(size_t most) {
  std::vector<Candidate> made;
  if (starts.empty()) {
    std::set<UpdateModes> known;
    const size_t n = groups.size();
    auto at = [&](size_t i, size_t whole) { return whole * i / kPrefixParts; };
    for (size_t h = 0; h <= kPrefixParts; ++h)
      for (size_t p = 0; p <= kPrefixParts; ++p)
        for (size_t s = 0; s <= kPrefixParts; ++s) {
          const size_t hosted = at(h, all.hostable);
          UpdateModes modes =
              modesOf(all, hosted, at(p, n - hosted), at(s, n - hosted));
          if (known.insert(modes).second)
            made.push_back({of(modes), std::move(modes)});
        }
  }
  for (UpdateModes &modes : starts)
    made.push_back({of(modes), std::move(modes)});
  auto sort = [&] {
    std::stable_sort(
        made.begin(), made.end(), [](const Candidate &a, const Candidate &b) {
          return std::tuple(a.loads.estimate, a.loads.moved, a.modes) <
                 std::tuple(b.loads.estimate, b.loads.moved, b.modes);
        });
    made.erase(std::unique(made.begin(), made.end(),
                           [](const Candidate &a, const Candidate &b) {
                             return a.modes == b.modes;
                           }),
               made.end());
  };
  sort();
  const auto parts = stretches(kStretches);
  for (size_t i = 0, n = std::min(kClimbs, made.size()); i < n; ++i) {
    Candidate climbed = made[i];
    climb(climbed, parts);
    made.push_back(std::move(climbed));
  }
  sort();
  starts.clear();
  for (size_t i = 0; i < std::min(made.size(), kStarts); ++i)
    starts.push_back(made[i].modes);
  made.resize(std::min(made.size(), most));
  return made;
}
