#include "compiler/planning/moves/LoopChoices.h"

using namespace tmc::planning;

/// Up to this many values with a choice, each is also tried by itself.
static constexpr size_t kFewChoices = 8;

/// All values with a choice; `held` are contents that have it if they are at
/// home elsewhere.
static LoopChoice allOf(const Problem &problem) {
  const size_t n = problem.values.size();
  const FastestMoves moves = fastestMoves(problem, 0);
  // Per device value: the segment that makes it, and whether a loop has read
  // it.
  std::vector<SegmentId> madeIn(n, kNone);
  std::vector<char> isRead(n, 0);
  LoopChoice all;
  for (SegmentId s = 0; s < SegmentId(problem.segments.size()); ++s) {
    const bool isLoop = problem.segments[s].trips > 1;
    for (InstructionId i : problem.segments[s].instructions) {
      const Recipe &first =
          problem.recipes[problem.instructions[i].recipes.front()];
      for (ValueId v : first.writes)
        madeIn[v] = s;
      for (ValueId v : first.reads) {
        const ValueKind kind = problem.values[v].kind;
        if (!isLoop || isRead[v] || moves.in[v] == kNone ||
            problem.values[v].pinned)
          continue;
        isRead[v] = 1;
        if (kind == ValueKind::Persistent && madeIn[v] == kNone && s > 0 &&
            problem.segments[s - 1].trips == 1)
          all.held.push_back(v);
        else if (kind == ValueKind::Temporary && moves.out[v] != kNone &&
                 madeIn[v] != kNone && madeIn[v] != s &&
                 problem.segments[madeIn[v]].trips == 1)
          all.anew.push_back(v);
      }
    }
  }
  return all;
}

std::vector<LoopChoice> tmc::planning::loopChoices(const Problem &problem) {
  const LoopChoice all = allOf(problem);
  std::vector<LoopChoice> choices;
  if (!all.anew.empty())
    choices.push_back({all.anew, {}});
  if (!all.held.empty())
    choices.push_back({{}, all.held});
  if (choices.size() > 1)
    choices.push_back(all);
  const size_t count = all.anew.size() + all.held.size();
  if (count < 2 || count > kFewChoices)
    return choices;
  for (ValueId v : all.anew)
    choices.push_back({{v}, {}});
  for (ValueId v : all.held)
    choices.push_back({{}, {v}});
  return choices;
}
