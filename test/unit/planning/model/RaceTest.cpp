// Plans laid out at addresses and run with perturbed durations.

#include "test/unit/planning/Races.h"
#include "test/unit/planning/SpaceBrute.h"

#include "compiler/planning/model/Timeline.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

using namespace tmc::planning;

namespace {

using Memory = std::map<std::pair<int32_t, int64_t>, int32_t>;

/// What a runtime does wrong, for a test of the test.
enum class Fault { None, NoWaitAtDone, FreedAtStart, NoWaitForMaker };

/// A plan as a runtime sees it: addresses and waits.
class Program {
public:
  Program(const Problem &p, const Solution &s, Fault fault)
      : p(p), s(s), fault(fault) {
    t = *timelineOf(p, s);
    shareStorage();
    place();
    addPieces();
  }

  std::vector<Piece> pieces;
  Memory memory;

private:
  struct Buffer {
    SpaceId space = 0;
    int32_t begin = 0, last = 0; // Moments.
    int64_t bytes = 0, address = 0;
  };

  const Execution &executionAt(int32_t m) const {
    return s.segments[t.moments[m].segment][t.moments[m].index];
  }
  const Recipe &recipeAt(int32_t m) const {
    return p.recipes[executionAt(m).recipe];
  }

  /// One buffer for each instance and those that take its place, and one for
  /// each scratch.
  void shareStorage() {
    for (const Instance &i : t.instances) {
      int32_t last = i.last;
      if (fault == Fault::FreedAtStart && last >= 0 &&
          last < int32_t(t.size()) && executionAt(last).phase == Phase::Done) {
        do
          --last;
        while (last > i.begin && t.endOf(last) != i.last);
      }
      if (i.storageOf != kNone) {
        Buffer &b = buffers[bufferOf[i.storageOf]];
        bufferOf.push_back(bufferOf[i.storageOf]);
        b.last = std::max(b.last, last);
        b.bytes = std::max(b.bytes, p.values[i.value].bytes);
        continue;
      }
      bufferOf.push_back(int32_t(buffers.size()));
      buffers.push_back({p.values[i.value].space, std::max(i.begin, 0), last,
                         p.values[i.value].bytes});
    }
    for (int32_t m = 0; m < int32_t(t.size()); ++m) {
      scratchOf.push_back(kNone);
      if (executionAt(m).phase == Phase::Done || t.isIdle[m] ||
          !recipeAt(m).workspaceBytes)
        continue;
      scratchOf.back() = int32_t(buffers.size());
      buffers.push_back({recipeAt(m).workspaceSpace, m, t.endOf(m),
                         recipeAt(m).workspaceBytes});
    }
  }

  /// Each at the lowest address that is free, so that places are reused as soon
  /// as they can be.
  void place() {
    std::vector<size_t> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return buffers[a].begin < buffers[b].begin;
    });
    for (size_t i = 0; i < order.size(); ++i) {
      Buffer &b = buffers[order[i]];
      bool moved = true;
      while (moved) {
        moved = false;
        for (size_t j = 0; j < i; ++j) {
          const Buffer &o = buffers[order[j]];
          if (o.space == b.space && o.begin <= b.last && b.begin <= o.last &&
              o.address < b.address + b.bytes &&
              b.address < o.address + o.bytes)
            b.address = o.address + o.bytes, moved = true;
        }
      }
    }
    for (int32_t i = 0; i < int32_t(t.instances.size()); ++i)
      if (t.instances[i].begin < 0)
        for (int64_t at = 0; at < p.values[t.instances[i].value].bytes; ++at) {
          const Buffer &b = buffers[bufferOf[i]];
          memory[{b.space, b.address + at}] = i;
        }
  }

  Touch touch(int32_t buffer, int64_t bytes, bool writes, int32_t content) {
    const Buffer &b = buffers[buffer];
    return {b.space, b.address, b.address + bytes, writes, content};
  }

  void addPieces() {
    std::vector<int32_t> pieceOf(t.size(), kNone), before;
    std::vector<int32_t> last(p.engines.size(), kNone), awaited, done;
    std::map<int32_t, int32_t> pieceOfWork;
    for (int32_t m = 0; m < int32_t(t.size()); ++m) {
      const Profile::Moment &at = t.moments[m];
      if (at.index == 0) { // All engines are idle at the border.
        before.resize(pieces.size());
        std::iota(before.begin(), before.end(), 0);
        awaited.clear(), done.clear(), pieceOfWork.clear();
        std::fill(last.begin(), last.end(), kNone);
      }
      if (t.isIdle[m])
        continue;
      const Execution &e = executionAt(m);
      const Recipe &r = recipeAt(m);
      if (e.phase == Phase::Done) {
        done.push_back(pieceOfWork[e.work]);
        if (p.touchesDevice(r) && fault != Fault::NoWaitAtDone)
          awaited.push_back(pieceOfWork[e.work]);
        continue;
      }
      Piece piece;
      piece.waits = before;
      if (last[r.engine] != kNone)
        piece.waits.push_back(last[r.engine]);
      const std::vector<int32_t> &also = r.engine ? done : awaited;
      piece.waits.insert(piece.waits.end(), also.begin(), also.end());
      if (r.engine && last[0] != kNone)
        piece.waits.push_back(last[0]);
      for (int32_t i : t.readsAt(m)) {
        if (i == kNone)
          continue;
        piece.touches.push_back(
            touch(bufferOf[i], p.values[t.instances[i].value].bytes, false, i));
        int32_t maker = t.instances[i].begin;
        if (r.engine && maker >= 0 && fault != Fault::NoWaitForMaker)
          piece.waits.push_back(pieceOf[maker]);
      }
      for (int32_t i : t.writesAt(m))
        piece.touches.push_back(
            touch(bufferOf[i], p.values[t.instances[i].value].bytes, true, i));
      if (scratchOf[m] != kNone)
        piece.touches.push_back(
            touch(scratchOf[m], r.workspaceBytes, true, -1));
      pieceOf[m] = last[r.engine] = int32_t(pieces.size());
      if (e.phase == Phase::Start)
        pieceOfWork[e.work] = pieceOf[m];
      pieces.push_back(std::move(piece));
    }
  }

  const Problem &p;
  const Solution &s;
  Fault fault;
  Timeline t;
  std::vector<Buffer> buffers;
  std::vector<int32_t> bufferOf;  // Of each instance.
  std::vector<int32_t> scratchOf; // Of each moment.
};

/// Whether some run of `program` with random durations isn't clean.
bool isUnclean(const Program &program, Random &random, int runs) {
  for (int run = 0; run < runs; ++run) {
    std::vector<int64_t> durations;
    for (size_t i = 0; i < program.pieces.size(); ++i)
      durations.push_back(random.chance(0.2) ? 1 + random.below(3)
                                             : 1 + random.below(40));
    if (runPieces(program.pieces, durations, program.memory) !=
        RunResult::Clean)
      return true;
  }
  return false;
}

TEST(Races, NoPlanHasOneWhateverItsWorkTakes) {
  Random random(11), chooser(5);
  int64_t plans = 0;
  std::map<Fault, int64_t> found;
  for (int i = 0; i < 1200; ++i) {
    SpaceProblem w = randomSpaces(random, i % 3);
    EveryList(w.p, 2, [&](const Solution &bare) {
      if (!chooser.chance(0.25))
        return;
      Solution s = bare;
      takeOverwrites(w.p, s);
      if (!simulate(w.p, s).ok())
        return;
      ++plans;
      ASSERT_FALSE(isUnclean(Program(w.p, s, Fault::None), random, 4));
      for (Fault fault :
           {Fault::NoWaitAtDone, Fault::FreedAtStart, Fault::NoWaitForMaker})
        found[fault] += isUnclean(Program(w.p, s, fault), random, 2);
    }).run();
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(plans, 5'000);
  // A runtime that errs is found out wherever the plan relies on it.
  for (Fault fault :
       {Fault::NoWaitAtDone, Fault::FreedAtStart, Fault::NoWaitForMaker})
    EXPECT_GT(found[fault], 50) << int(fault);
}

} // namespace
