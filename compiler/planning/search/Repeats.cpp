#include "compiler/planning/search/Repeats.h"

#include <numeric>

using namespace tmc::planning;

/// Largest distance, in stages, at which a difference is seen.
static constexpr int kRounds = 5;
/// The order of inputs is ignored if there are more than this: in a sum over
/// all gradients, say, it means nothing.
static constexpr size_t kMostOrdered = 16;

static uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ 0x2545f4914f6cdd1dull) * 0x9e3779b97f4a7c15ull + b;
  x ^= x >> 31;
  x *= 0xd6e8feb86659fd93ull;
  return x ^ x >> 32;
}

/// One hash per stage, for the stage and its surroundings.
static std::vector<uint64_t> structureOf(const LinearProblem &linear) {
  std::vector<uint64_t> stages(linear.stages.size(), 0);
  std::vector<uint64_t> values(linear.bytes.begin(), linear.bytes.end());
  std::vector<uint64_t> around(values.size());
  for (int round = 0; round < kRounds; ++round) {
    std::fill(around.begin(), around.end(), 0);
    for (size_t k = 0; k < stages.size(); ++k)
      for (OpId o : linear.stages[k].variants) {
        const LinearOp &op = linear.ops[o];
        bool ordered = op.reads.size() <= kMostOrdered;
        uint64_t hash =
            mix(mix(stages[k], uint64_t(op.cost)), uint64_t(op.workspaceBytes));
        for (ValueId v : op.reads)
          hash = ordered ? mix(hash, values[v]) : hash + values[v];
        for (ValueId v : op.writes)
          hash = mix(hash, values[v]);
        stages[k] = hash;
        for (size_t i = 0; i < op.reads.size(); ++i)
          around[op.reads[i]] += mix(hash, ordered ? i : kMostOrdered);
        for (size_t i = 0; i < op.writes.size(); ++i)
          around[op.writes[i]] += mix(~hash, i);
      }
    for (size_t v = 0; v < values.size(); ++v)
      values[v] = mix(uint64_t(linear.bytes[v]), around[v]);
  }
  return stages;
}

Repeats::Repeats(const LinearProblem &linear)
    : linear(linear), group(linear.stages.size()),
      members(linear.stages.size()), counterparts(linear.bytes.size()) {
  std::vector<uint64_t> hashes = structureOf(linear);
  std::iota(members.begin(), members.end(), 0);
  std::sort(members.begin(), members.end(), [&](int32_t a, int32_t b) {
    return std::pair(hashes[a], a) < std::pair(hashes[b], b);
  });
  for (size_t i = 0; i < members.size(); ++i) {
    if (i == 0 || hashes[members[i]] != hashes[members[i - 1]])
      begin.push_back(int32_t(i));
    group[members[i]] = int32_t(begin.size()) - 1;
  }
  begin.push_back(int32_t(members.size()));
  for (size_t g = 0; g + 1 < begin.size(); ++g)
    if (int32_t size = begin[g + 1] - begin[g]; size > 1)
      repeated += size;
}

/// Pairs the inputs of `a` with those of `b`.
bool Repeats::match(const LinearOp &a, const LinearOp &b) {
  if (a.reads.size() != b.reads.size())
    return false;
  for (size_t i = 0; i < a.reads.size(); ++i)
    counterparts[a.reads[i]] = {translation, b.reads[i]};
  return true;
}

bool Repeats::translate(const Schedule &schedule, int32_t from, int32_t to,
                        int32_t shift, std::vector<Schedule::Clone> &out) {
  out.clear();
  ++translation;
  // Readers come after their inputs' makers, so going backward pairs the
  // values.
  for (int32_t k = to; k >= from; --k) {
    if (!areIsomorphic(k, k + shift) ||
        !match(linear.ops[schedule.variantOf(k)],
               linear.ops[schedule.variantOf(k + shift)]))
      return false;
    const std::vector<OpId> &here = schedule.clonesAt(k);
    for (size_t i = here.size(); i-- > 0;) {
      const LinearOp &op = linear.ops[here[i]];
      for (ValueId v : op.writes) {
        if (counterparts[v].translation != translation)
          continue;
        const std::vector<OpId> &mine = linear.recomputes[v];
        const std::vector<OpId> &theirs =
            linear.recomputes[counterparts[v].value];
        size_t way =
            size_t(std::find(mine.begin(), mine.end(), here[i]) - mine.begin());
        if (mine.size() != theirs.size() || !match(op, linear.ops[theirs[way]]))
          return false;
        out.push_back({theirs[way], k + shift});
        break;
      }
    }
  }
  return true;
}
