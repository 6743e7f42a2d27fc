#include "compiler/planning/driver/HostRoom.h"

#include "compiler/planning/peers/Blocks.h"
#include "compiler/planning/search/Checkpoint.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace tmc::planning;

namespace {

/// The most kernels that are counted for a value: about two blocks.
constexpr int kMostKernels = 200;
/// Halvings of the least time per byte.
constexpr int kHalvings = 24;

/// The values of one segment, or of a step without loops.
class Room {
public:
  Room(const LinearProblem &linear, const std::vector<char> &mayMove,
       Stretch of, int32_t turn)
      : linear(linear), of(of), turn(turn), seenAt(linear.stages.size(), 0) {
    isChosen.assign(linear.bytes.size(), 0);
    findCandidates(mayMove);
  }

  const std::vector<ValueId> &made() const { return all; }
  bool mayGo(ValueId v) const { return isChosen[v]; }

  /// Chooses values of at most `bytes`; false if all of them fit.
  bool choose(int64_t bytes) {
    if (bytesOf(candidates) <= bytes)
      return false;
    findInputs(bytes);
    double low = 0, high = 0; // Logarithms; the last is of a choice that fits.
    for (ValueId v : candidates)
      high = std::max(high, std::log1p(secondsOf(v)));
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (chooseFrom(std::expm1(middle)) <= bytes ? high : low) = middle;
    }
    chooseFrom(std::expm1(high));
    return true;
  }

private:
  bool isMade(ValueId v) const {
    return linear.madeAt[v] >= of.begin && linear.madeAt[v] < turn;
  }
  /// True if nothing has to recompute the value.
  bool isThere(ValueId v) const {
    return !isMade(v) || isChosen[v] || linear.recomputes[v].empty();
  }
  /// The cheapest kernel that makes `v` from what is there, or else its maker.
  const LinearOp &cheapestOf(ValueId v) const {
    const LinearOp *best = nullptr;
    for (OpId o : linear.recomputes[v]) {
      const LinearOp &op = linear.ops[o];
      if ((!best || op.cost < best->cost) &&
          std::ranges::all_of(op.reads, [&](ValueId u) { return isThere(u); }))
        best = &op;
    }
    return best ? *best
                : linear.ops[linear.stages[linear.madeAt[v]].variants.front()];
  }
  int64_t bytesOf(const std::vector<ValueId> &values) const {
    int64_t bytes = 0;
    for (ValueId v : values)
      bytes += linear.bytes[v];
    return bytes;
  }

  /// Values that cross the turn, and all others that may move: they are needed
  /// to recompute those.
  void findCandidates(const std::vector<char> &mayMove) {
    std::vector<char> isRead(linear.bytes.size(), 0);
    for (int32_t k = turn; k < of.end; ++k)
      for (ValueId v : linear.ops[linear.stages[k].variants.front()].reads)
        isRead[v] = 1;
    for (int32_t k = of.begin; k < turn; ++k)
      for (ValueId v : linear.ops[linear.stages[k].variants.front()].writes) {
        if (linear.madeAt[v] != k)
          continue;
        all.push_back(v);
        if (mayMove[v] && isRead[v] && linear.bytes[v] > 0)
          candidates.push_back(v);
      }
  }

  /// The inputs of as many blocks as fit: all, or each second, fourth, ...
  void findInputs(int64_t bytes) {
    const auto inputs = blockInputs(linear, of, turn);
    for (size_t step = 1; step <= inputs.size(); step *= 2) {
      firsts.clear();
      for (size_t i = 0; i < inputs.size(); i += step)
        for (ValueId v : inputs[i])
          if (!std::ranges::count(firsts, v))
            firsts.push_back(v);
      if (bytesOf(firsts) <= bytes)
        return;
    }
    firsts.clear();
  }

  /// Chooses the inputs, and the values that take longer per byte than `least`;
  /// returns the bytes.
  int64_t chooseFrom(double least) {
    std::fill(isChosen.begin(), isChosen.end(), 0);
    for (ValueId v : firsts)
      isChosen[v] = 1;
    int64_t bytes = bytesOf(firsts);
    for (ValueId v : candidates) {
      if (isChosen[v] || secondsOf(v) <= least)
        continue;
      isChosen[v] = 1;
      bytes += linear.bytes[v];
    }
    return bytes;
  }

  /// Time per byte to recompute `v` from the chosen values.
  double secondsOf(ValueId v) {
    if (linear.recomputes[v].empty())
      return std::numeric_limits<double>::max();
    ++visit;
    int64_t cost = 0;
    stack.assign(1, v);
    for (int kernels = 0; !stack.empty() && kernels < kMostKernels;) {
      const ValueId now = stack.back();
      stack.pop_back();
      int32_t &seen = seenAt[linear.madeAt[now]];
      if (seen == visit)
        continue;
      seen = visit;
      ++kernels;
      const LinearOp &op = cheapestOf(now);
      cost += op.cost;
      for (ValueId u : op.reads)
        if (!isThere(u))
          stack.push_back(u);
    }
    return double(cost) / double(linear.bytes[v]);
  }

  const LinearProblem &linear;
  const Stretch of;
  const int32_t turn;
  std::vector<ValueId> all;        // Made before the turn.
  std::vector<ValueId> candidates; // In the order in which they are made.
  std::vector<ValueId> firsts;     // Inputs of blocks.
  std::vector<char> isChosen;
  std::vector<int32_t> seenAt; // Per stage: the last visit.
  std::vector<ValueId> stack;
  int32_t visit = 0;
};

} // namespace

void HostRoom::limit(SpaceChoice &choice, double price) const {
  if (!isOff && price <= tooCheap)
    choice.stays = stayingValues(problem, choice, roomBeside(problem, choice));
}

bool HostRoom::isOver(const std::vector<int64_t> &peakBytes,
                      const SpaceChoice &choice, double price) {
  if (isOff || price <= tooCheap || std::isinf(price) ||
      fitsBudgets(problem, peakBytes, /*first=*/1) ||
      stayingValues(problem, choice, roomBeside(problem, choice)).empty())
    return false;
  tooCheap = price;
  return true;
}

std::vector<char> tmc::planning::stayingValues(const Problem &problem,
                                               const SpaceChoice &choice,
                                               int64_t bytes) {
  const absl::StatusOr<Projection> projection =
      project(problem, choice, std::numeric_limits<double>::infinity());
  if (!projection.ok() || bytes < 0)
    return {};
  const LinearProblem linear = linearize(projection->problem);
  const FastestMoves moves = fastestMoves(problem, 0);
  std::vector<char> mayMove(linear.bytes.size(), 0);
  for (size_t v = 0; v < projection->values.size(); ++v)
    if (const ValueId of = projection->values[v]; of != kNone)
      mayMove[v] = problem.values[of].kind == ValueKind::Temporary &&
                   moves.in[of] != kNone && moves.out[of] != kNone;
  const std::vector<int64_t> across = crossing(linear);
  std::vector<char> stays(problem.values.size(), 0);
  bool isTight = false;
  for (Stretch of : segmentStretches(linear)) {
    Room room(linear, mayMove, of, turningPoint(across, of));
    if (!room.choose(bytes))
      continue;
    isTight = true;
    for (ValueId v : room.made())
      if (const ValueId whole = projection->values[v];
          whole != kNone && !room.mayGo(v))
        stays[whole] = 1;
  }
  return isTight ? stays : std::vector<char>();
}

int64_t tmc::planning::roomBeside(const Problem &problem,
                                  const SpaceChoice &choice) {
  int64_t room = 0;
  for (size_t s = 1; s < problem.spaces.size(); ++s) {
    if (problem.spaces[s].budgetBytes < 0)
      return -1;
    room += problem.spaces[s].budgetBytes - problem.reservedOf(SpaceId(s));
  }
  Solution homes;
  homes.homes = choice.homes;
  const std::vector<ValueId> home = homesOf(problem, homes);
  for (size_t v = 0; v < home.size(); ++v)
    if (home[v] == ValueId(v) && problem.values[v].space != 0 &&
        problem.values[v].kind == ValueKind::Persistent &&
        problem.values[v].updates == kNone)
      room -= problem.values[v].bytes;
  return std::max<int64_t>(room, 0);
}
