#include "compiler/planning/peers/Blocks.h"
#include "compiler/planning/peers/OffloadRules.h"
#include "compiler/planning/peers/TurningGaps.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

using Decision = TurningGaps::Decision;

/// State grid: held bytes in parts of the limit, and link time in parts of
/// twice the time that hides behind the kernels.
constexpr int kByteParts = 256, kLinkParts = 16;
/// Most blocks of a chain; longer chains are joined in pairs.
constexpr size_t kMostBlocks = 128;
/// Most blocks recomputed from one input.
constexpr size_t kLongestStretch = 8;
constexpr int64_t kNoCost = std::numeric_limits<int64_t>::max() / 4;

/// A part of the forward chain.
struct Block {
  std::vector<ValueId> saved;  // Read by its backward part.
  std::vector<ValueId> inputs; // From blocks before it.
  int64_t savedBytes = 0, savedLink = 0, inputBytes = 0, inputLink = 0;
  int64_t fixedBytes = 0;  // Bytes that nothing moves.
  int64_t uniqueBytes = 0; // Bytes that nothing recomputes.
  int64_t time = 0;        // Time of its kernels.
  bool inputCanMove = true;
};

class Chain {
public:
  Chain(const TurningGaps &gaps, const Projection &projection) : gaps(gaps) {
    const size_t numValues = projection.problem.values.size();
    std::vector<size_t> blockOf(gaps.turn, 0);
    findBlocks(projection, blockOf);
    std::vector<const TurningGaps::Item *> itemOf(numValues, nullptr);
    canMove.assign(numValues, 0);
    canRecompute = canMove;
    for (const TurningGaps::Item &item : gaps.items) {
      itemOf[item.value] = &item;
      canMove[item.value] = item.fetch != kNone;
      canRecompute[item.value] = item.canRecompute;
    }
    std::vector<size_t> madeIn(numValues, kNoBlock);
    for (size_t e = 0; e < gaps.turn; ++e) {
      Block &block = blocks[blockOf[e]];
      const Recipe &r = gaps.recipeAt(e);
      block.time += r.cost;
      for (ValueId v : r.reads)
        if (madeIn[v] != kNoBlock && madeIn[v] != blockOf[e] &&
            !std::ranges::count(block.inputs, v))
          addInput(block, v, projection.problem.values[v].bytes, itemOf[v]);
      for (ValueId v : r.writes) {
        madeIn[v] = blockOf[e];
        if (const TurningGaps::Item *item = itemOf[v]) {
          block.saved.push_back(v);
          block.savedBytes += item->bytes;
          block.savedLink += item->linkTime;
          if (item->fetch == kNone)
            block.fixedBytes += item->bytes;
          if (!item->canRecompute)
            block.uniqueBytes += item->bytes;
        }
      }
    }
  }

  bool isChain() const { return blocks.size() > 1; }

  std::vector<Decision> within(int64_t bytes) const;

private:
  static constexpr size_t kNoBlock = size_t(-1);
  enum class How : uint8_t { Keep, Move, Again, AgainMoved };
  /// The best way into a state.
  struct Step {
    int64_t cost = kNoCost;
    int32_t from = -1, bytes = 0, link = 0;
    How how = How::Keep;
  };

  void findBlocks(const Projection &projection, std::vector<size_t> &blockOf) {
    const LinearProblem linear = linearize(projection.problem);
    std::vector<size_t> placeOf(projection.problem.instructions.size(),
                                kNoBlock);
    for (size_t e = 0; e < gaps.order().size(); ++e)
      placeOf[gaps.order()[e]] = e;
    std::vector<size_t> starts;
    for (int32_t k : blockStarts(linear))
      if (InstructionId i = linear.stages[k].instruction;
          i != kNone && placeOf[i] < gaps.turn)
        starts.push_back(placeOf[i]);
    while (starts.size() >= kMostBlocks)
      for (size_t i = 1; i < starts.size(); ++i)
        starts.erase(starts.begin() + ptrdiff_t(i));
    size_t next = 0;
    for (size_t e = 0; e < gaps.turn; ++e) {
      while (next < starts.size() && starts[next] <= e)
        ++next;
      blockOf[e] = next;
    }
    blocks.resize(starts.size() + 1);
  }

  static void addInput(Block &block, ValueId v, int64_t bytes,
                       const TurningGaps::Item *item) {
    block.inputs.push_back(v);
    block.inputBytes += bytes;
    block.inputLink += item ? item->linkTime : 0;
    block.inputCanMove &= item && item->fetch != kNone;
  }

  void relax(std::vector<std::vector<Step>> &states, size_t from, size_t to,
             How how, int64_t bytes, int64_t link, int64_t again, int64_t cost,
             int64_t part, int64_t linkPart) const;

  const TurningGaps &gaps;
  std::vector<Block> blocks;
  std::vector<char> canMove, canRecompute; // Per value.
};

/// Extends every state before block `from` to states before block `to`.
/// `again`: bytes in memory while the stretch is recomputed.
void Chain::relax(std::vector<std::vector<Step>> &states, size_t from,
                  size_t to, How how, int64_t bytes, int64_t link,
                  int64_t again, int64_t cost, int64_t part,
                  int64_t linkPart) const {
  // Rounded to the nearest part: the list's own bytes decide whether it fits.
  auto parts = [](int64_t x, int64_t of) { return (x + of / 2) / of; };
  const int64_t heldParts = parts(bytes, part), againParts = parts(again, part),
                linkParts = parts(link, linkPart);
  for (int64_t b = 0; b + heldParts <= kByteParts; ++b) {
    if (b + againParts > kByteParts)
      break;
    for (int64_t l = 0; l + linkParts <= kLinkParts; ++l) {
      const int64_t at = b * (kLinkParts + 1) + l;
      const Step &step = states[from][at];
      if (step.cost == kNoCost)
        continue;
      Step &next =
          states[to][(b + heldParts) * (kLinkParts + 1) + l + linkParts];
      if (step.cost + cost < next.cost)
        next = {step.cost + cost, int32_t(from), int32_t(b), int32_t(l), how};
    }
  }
}

std::vector<Decision> Chain::within(int64_t bytes) const {
  const size_t n = blocks.size();
  const int64_t hidden = std::min(gaps.timeBefore, gaps.timeBehind);
  const int64_t part = std::max<int64_t>(1, bytes / kByteParts),
                linkPart = std::max<int64_t>(1, 2 * hidden / kLinkParts);
  std::vector<std::vector<Step>> states(
      n + 1, std::vector<Step>((kByteParts + 1) * (kLinkParts + 1)));
  states[0][0].cost = 0;
  for (size_t i = 0; i < n; ++i) {
    const Block &first = blocks[i];
    relax(states, i, i + 1, How::Keep, first.savedBytes, 0, first.savedBytes, 0,
          part, linkPart);
    relax(states, i, i + 1, How::Move, first.fixedBytes, first.savedLink,
          first.savedBytes, 0, part, linkPart);
    int64_t again = 0, unique = 0, time = 0;
    for (size_t j = i; j < std::min(n, i + kLongestStretch); ++j) {
      again += blocks[j].savedBytes;
      unique += blocks[j].uniqueBytes;
      time += blocks[j].time;
      relax(states, i, j + 1, How::Again, first.inputBytes + unique, 0,
            first.inputBytes + again, time, part, linkPart);
      if (first.inputCanMove)
        relax(states, i, j + 1, How::AgainMoved, unique, first.inputLink,
              first.inputBytes + again, time, part, linkPart);
    }
  }
  // Compute waits for link time that doesn't hide.
  int64_t least = kNoCost;
  int32_t b = 0, l = 0;
  for (int32_t i = 0; i <= kByteParts; ++i)
    for (int32_t k = 0; k <= kLinkParts; ++k) {
      const int64_t cost = states[n][i * (kLinkParts + 1) + k].cost;
      const int64_t waits = std::max<int64_t>(0, k * linkPart - hidden);
      if (cost < kNoCost && cost + waits < least)
        least = cost + waits, b = i, l = k;
    }
  std::vector<Decision> decisions = gaps.keepingAll();
  if (least == kNoCost)
    for (const TurningGaps::Item &item : gaps.items)
      decisions[item.value] =
          item.canRecompute ? Decision::Recompute : Decision::Fetch;
  std::vector<std::pair<ValueId, Decision>> inputs;
  for (size_t i = least == kNoCost ? 0 : n; i > 0;) {
    const Step &step = states[i][b * (kLinkParts + 1) + l];
    const bool isAgain = step.how == How::Again || step.how == How::AgainMoved;
    for (size_t j = size_t(step.from); j < i; ++j)
      for (ValueId v : blocks[j].saved)
        decisions[v] = isAgain && canRecompute[v] ? Decision::Recompute
                       : step.how == How::Move && canMove[v] ? Decision::Fetch
                                                             : Decision::Keep;
    if (isAgain)
      for (ValueId v : blocks[step.from].inputs)
        inputs.push_back(
            {v, step.how == How::Again ? Decision::Keep : Decision::Fetch});
    i = size_t(step.from);
    b = step.bytes, l = step.link;
  }
  // The inputs of a recomputed stretch stay available: this overrides the
  // decision of their own block.
  for (auto [v, decision] : inputs)
    if (decisions[v] == Decision::Recompute)
      decisions[v] = decision;
  return decisions;
}

} // namespace

absl::StatusOr<MovedPlan> tmc::planning::offloadByChain(const Problem &problem,
                                                        int64_t liveBytes) {
  const SpaceChoice choice = plainChoice(problem);
  absl::StatusOr<Projection> projection = project(problem, choice, 1);
  if (!projection.ok())
    return projection.status();
  const TurningGaps gaps(problem, *projection);
  const Chain chain(gaps, *projection);
  if (!chain.isChain())
    return absl::NotFoundError("the step isn't a chain of blocks");
  return placeWithin(problem, choice, *projection, gaps, liveBytes,
                     [&](int64_t bytes) { return chain.within(bytes); });
}
