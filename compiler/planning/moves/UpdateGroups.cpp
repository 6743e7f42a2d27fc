#include "compiler/planning/moves/UpdateGroups.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

const Recipe &firstRecipe(const Problem &problem, InstructionId i) {
  return problem.recipes[problem.instructions[i].recipes.front()];
}

class Finder {
public:
  explicit Finder(const Problem &problem)
      : problem(problem), onHost(problem.values.size(), kNone),
        isUpdated(problem.values.size(), 0), readers(problem.values.size(), 0),
        madeAt(problem.values.size(), 0) {
    findForms();
    findUses();
  }

  UpdateGroups run() const {
    UpdateGroups groups;
    for (InstructionId i : order)
      if (UpdateGroup group = groupOf(i);
          group.isHostable() || !group.states.empty() || !group.shared.empty())
        groups.all.push_back(std::move(group));
    for (size_t v = 0; v < problem.values.size(); ++v)
      if (onHost[v] != kNone && !isUpdated[v] &&
          problem.values[v].updates == kNone)
        groups.all.push_back({kNone, kNone, 0, {}, {onHost[v]}});
    std::stable_sort(groups.all.begin(), groups.all.end(),
                     [](const UpdateGroup &a, const UpdateGroup &b) {
                       return a.isHostable() != b.isHostable()
                                  ? a.isHostable()
                                  : a.ready < b.ready;
                     });
    groups.hostable = size_t(
        std::count_if(groups.all.begin(), groups.all.end(),
                      [](const UpdateGroup &g) { return g.isHostable(); }));
    return groups;
  }

private:
  void findForms() {
    const SpaceId host = problem.hostSpace();
    for (size_t v = 0; v < problem.values.size(); ++v) {
      const Value &value = problem.values[v];
      if (value.kind != ValueKind::Persistent)
        continue;
      if (value.formOf != kNone && value.space == host)
        onHost[value.formOf] = ValueId(v);
      if (value.updates != kNone)
        isUpdated[problem.contentOf(value.updates)] = 1;
    }
  }

  void findUses() {
    for (const Segment &segment : problem.segments)
      for (InstructionId i : segment.instructions) {
        order.push_back(i);
        for (ValueId v : firstRecipe(problem, i).reads)
          ++readers[problem.contentOf(v)];
        for (ValueId v : firstRecipe(problem, i).writes)
          madeAt[problem.contentOf(v)] = order.size();
      }
  }

  UpdateGroup groupOf(InstructionId i) const {
    UpdateGroup group;
    group.instruction = i;
    const Recipe &first = firstRecipe(problem, i);
    for (ValueId v : first.reads) {
      const ValueId main = problem.contentOf(v);
      group.ready = std::max(group.ready, madeAt[main]);
      if (onHost[main] != kNone && isUpdatedBy(main, first))
        (readers[main] > 1 ? group.shared : group.states)
            .push_back(onHost[main]);
    }
    const std::vector<RecipeId> &recipes = problem.instructions[i].recipes;
    for (size_t k = 0; k < recipes.size() && !group.isHostable(); ++k)
      if (problem.isBeside(problem.recipes[recipes[k]]))
        group.variant = int32_t(k);
    return group;
  }

  bool isUpdatedBy(ValueId main, const Recipe &r) const {
    return std::any_of(r.writes.begin(), r.writes.end(), [&](ValueId w) {
      ValueId old = problem.values[w].updates;
      return old != kNone && problem.contentOf(old) == main;
    });
  }

  const Problem &problem;
  std::vector<ValueId> onHost; // Forms of main ones.
  std::vector<char> isUpdated;
  std::vector<int32_t> readers;
  std::vector<size_t> madeAt; // Places, from 1.
  std::vector<InstructionId> order;
};

} // namespace

UpdateGroups tmc::planning::findUpdateGroups(const Problem &problem) {
  return Finder(problem).run();
}

GroupMode tmc::planning::possibleMode(const UpdateGroup &group,
                                      GroupMode mode) {
  if (isHosted(mode) && !group.isHostable())
    mode = GroupMode::Away;
  // A group without one kind of contents moves the other.
  if (group.shared.empty() && mode != GroupMode::Device)
    return isHosted(mode)                ? GroupMode::Hosted
           : mode == GroupMode::Streamed ? GroupMode::Device
                                         : GroupMode::Paged;
  if (group.states.empty() && !isHosted(mode))
    return leavesShared(mode) ? GroupMode::Streamed : GroupMode::Device;
  return mode;
}

UpdateModes tmc::planning::plainModes(const UpdateGroups &groups) {
  return UpdateModes(groups.all.size(), GroupMode::Device);
}

UpdateModes tmc::planning::modesOf(const UpdateGroups &groups, size_t hosted,
                                   size_t paged, size_t streamed) {
  UpdateModes modes = plainModes(groups);
  for (size_t i = 0; i < modes.size(); ++i) {
    const bool pages = i - hosted < paged, streams = i - hosted < streamed;
    modes[i] =
        possibleMode(groups.all[i], i < hosted ? GroupMode::Hosted
                                    : !pages   ? streams ? GroupMode::Streamed
                                                         : GroupMode::Device
                                    : streams  ? GroupMode::Away
                                               : GroupMode::Paged);
  }
  return modes;
}

SpaceChoice tmc::planning::choiceOf(const Problem &problem,
                                    const UpdateGroups &groups,
                                    const UpdateModes &modes) {
  SpaceChoice choice = plainChoice(problem);
  auto leave = [&](const std::vector<ValueId> &forms) {
    choice.homes.insert(choice.homes.end(), forms.begin(), forms.end());
  };
  for (size_t i = 0; i < groups.all.size(); ++i) {
    const UpdateGroup &group = groups.all[i];
    if (isHosted(modes[i]))
      choice.variants[group.instruction] = group.variant;
    if (leavesStates(modes[i]))
      leave(group.states);
    if (leavesShared(modes[i]))
      leave(group.shared);
  }
  return choice;
}
