// JoinUpdates.cpp - -tmc-join-updates: updates that stand side by side become
// one launch.

#include "passes/Passes.h"

#include "compiler/analysis/MemLiveness.h"
#include "compiler/analysis/StepProblem.h"
#include "compiler/planning/driver/GatherUpdates.h"
#include "compiler/planning/pack/Buffers.h"
#include "dialects/interfaces/Interfaces.h"
#include "runtime/kernels/Optimizer.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_JOINUPDATES
#include "passes/Passes.h.inc"

namespace {

/// Launches side by side that one launch can run.
using Group = SmallVector<mem::LaunchOp>;

/// True if the parameters of two launches differ only in those that each update
/// has for itself.
bool haveSameParams(mem::LaunchOp a, mem::LaunchOp b) {
  auto isShared = [](Attribute pair) {
    return !isOwnOfUpdate(cast<StringAttr>(cast<ArrayAttr>(pair)[0]).str());
  };
  return llvm::equal(llvm::make_filter_range(a.getParams(), isShared),
                     llvm::make_filter_range(b.getParams(), isShared));
}

/// The buffers of a launch's scalar operands, in order: the learning rate, the
/// step's number, the factor that clips.
SmallVector<Operation *> scalarsOf(mem::LaunchOp launch) {
  SmallVector<Operation *> buffers;
  for (Value input : launch.getInputs())
    if (cast<MemRefType>(input.getType()).getRank() == 0)
      buffers.push_back(bufferOf(input));
  return buffers;
}

/// True if one of the launches writes a buffer that the other one touches.
bool doesMeet(mem::LaunchOp a, mem::LaunchOp b) {
  auto writes = [](mem::LaunchOp launch) {
    llvm::DenseSet<Operation *> buffers;
    for (Value output : launch.getOutputs())
      buffers.insert(bufferOf(output));
    if (launch.getScratch())
      buffers.insert(bufferOf(launch.getScratch()));
    return buffers;
  };
  auto touchesAny = [](mem::LaunchOp launch,
                       const llvm::DenseSet<Operation *> &buffers) {
    return llvm::any_of(launch->getOperands(), [&](Value operand) {
      return buffers.contains(bufferOf(operand));
    });
  };
  return touchesAny(a, writes(b)) || touchesAny(b, writes(a));
}

bool canJoin(const Group &group, mem::LaunchOp launch) {
  mem::LaunchOp first = group.front();
  return int64_t(group.size()) < kMostJoinedUpdates && launch.getJoinable() &&
         launch.getCallee() == first.getCallee() &&
         launch.getAccumulate() == first.getAccumulate() &&
         haveSameParams(launch, first) &&
         scalarsOf(launch) == scalarsOf(first) &&
         llvm::none_of(group, [&](mem::LaunchOp other) {
           return doesMeet(launch, other);
         });
}

/// The groups of a block and of its loops, each as large as it can be.
void collectGroups(Block &block, std::vector<Group> &groups) {
  Group open;
  auto close = [&] {
    if (open.size() > 1)
      groups.push_back(open);
    open.clear();
  };
  for (Operation &op : block) {
    if (isa<mem::BufferOp, mem::ViewOp, mem::PieceOp>(op))
      continue;
    auto launch = dyn_cast<mem::LaunchOp>(op);
    if (!launch || open.empty() || !canJoin(open, launch))
      close();
    if (launch && launch.getJoinable())
      open.push_back(launch);
    if (auto loop = dyn_cast<mem::LoopOp>(op))
      collectGroups(loop.getBlock(), groups);
  }
  close();
}

void join(const Group &group, bool joins) {
  for (mem::LaunchOp launch : ArrayRef(group).drop_back())
    launch.setJoinsNext(joins);
}

/// Splits a group into halves.
void split(std::vector<Group> &groups, size_t index) {
  const Group whole = groups[index];
  join(whole, false);
  const size_t half = whole.size() / 2;
  groups[index].assign(whole.begin(), whole.begin() + half);
  groups.emplace_back(whole.begin() + half, whole.end());
  join(groups[index], true);
  join(groups.back(), true);
}

/// The group of the launch at a moment; groups.size(): none.
size_t groupAt(const std::vector<Group> &groups, Operation *op) {
  return llvm::find_if(groups,
                       [&](const Group &group) {
                         return group.size() > 1 &&
                                llvm::is_contained(group,
                                                   dyn_cast<mem::LaunchOp>(op));
                       }) -
         groups.begin();
}

struct JoinUpdates : impl::JoinUpdatesBase<JoinUpdates> {
  using JoinUpdatesBase::JoinUpdatesBase;

  void runOnOperation() override {
    mem::ProgramOp program = getOperation();
    std::vector<Group> groups;
    collectGroups(program.getBlock(), groups);
    if (groups.empty())
      return markAllAnalysesPreserved();
    const MemLiveness alone = memLiveness(program);
    for (const Group &group : groups)
      join(group, true);
    limitPeak(program, groups, peakOf(alone).first);
    limitArena(program, groups,
               planning::arenaRoom(arenaOf(alone), arenaLimit));
    for (const Group &group : groups) {
      int64_t most = 0;
      for (mem::LaunchOp launch : group)
        most = std::max<int64_t>(most, launch.getDeviceLaunches());
      for (mem::LaunchOp launch : group)
        launch.setDeviceLaunches(launch == group.front() ? most : 0);
    }
  }

private:
  static constexpr SpaceKind kDevice = kSpaces[0].kind;

  std::pair<int64_t, int64_t> peakOf(const MemLiveness &liveness) const {
    return liveness.peak(alignmentOf(kDevice, alignment), kDevice);
  }

  int64_t arenaOf(const MemLiveness &liveness) const {
    planning::PackOptions how{.seed = uint64_t(int64_t(seed)),
                              .effort = effort};
    return planning::packSorted(
               liveness.buffersIn(kDevice, alignmentOf(kDevice, alignment))
                   .problem,
               how)
        .arenaBytes;
  }

  /// Splits the groups during which more than `most` bytes are alive.
  void limitPeak(mem::ProgramOp program, std::vector<Group> &groups,
                 int64_t most) const {
    while (true) {
      const MemLiveness liveness = memLiveness(program);
      const auto [bytes, moment] = peakOf(liveness);
      if (bytes <= most)
        return;
      const size_t at = groupAt(groups, liveness.moments[moment]);
      assert(at < groups.size() && "only joined updates raise the peak");
      split(groups, at);
    }
  }

  /// Splits all groups until the arena has at most `most` bytes.
  void limitArena(mem::ProgramOp program, std::vector<Group> &groups,
                  int64_t most) const {
    while (arenaOf(memLiveness(program)) > most)
      for (size_t i = 0, count = groups.size(); i < count; ++i)
        if (groups[i].size() > 1)
          split(groups, i);
  }
};

} // namespace
} // namespace tmc
