// The timeline and the verifier on every list of small random problems, and
// each of the verifier's and the letter's numbers against the other's.

#include "test/unit/planning/SpaceBrute.h"
#include "test/unit/Rounds.h"
#include "test/unit/planning/NetworkBrute.h"
#include "test/unit/planning/SpaceMachine.h"
#include "test/unit/planning/SpaceOptimum.h"

#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <deque>

using namespace tmc::planning;

namespace {

std::string textOf(const Problem &p, const Solution &s) {
  std::string text;
  for (const std::vector<Execution> &list : s.segments) {
    for (const Execution &e : list) {
      const std::string &name = p.recipes[e.recipe].name;
      text += e.phase == Phase::Start  ? name + "( "
              : e.phase == Phase::Done ? ")" + name + " "
                                       : name + " ";
    }
    text += "| ";
  }
  for (ValueId h : s.homes)
    text += p.values[h].name + " ";
  return text + "\n" + printProblem(p);
}

struct Tally {
  int64_t instances = 0, lists = 0, valid = 0;
};

/// Whether the timeline and the verifier say the same of a list; counts it.
void compare(const Problem &p, const Solution &s, Tally &tally) {
  ++tally.lists;
  absl::StatusOr<Profile> profile = simulate(p, s);
  absl::StatusOr<Claim> claim = measure(p, s);
  ASSERT_EQ(profile.ok(), claim.ok())
      << profile.status().message() << " / " << claim.status().message() << "\n"
      << textOf(p, s);
  if (!profile.ok())
    return;
  ++tally.valid;
  std::vector<int64_t> peaks = {claim->peakBytes};
  peaks.insert(peaks.end(), claim->otherPeakBytes.begin(),
               claim->otherPeakBytes.end());
  ASSERT_EQ(profile->spacePeakBytes, peaks) << textOf(p, s);
  ASSERT_EQ(profile->makespan, claim->cost) << textOf(p, s);
}

/// Takes every overwrite that is declared, allowed or not.
bool takeAll(const Problem &p, Solution &s) {
  bool changed = false;
  for (std::vector<Execution> &list : s.segments)
    for (Execution &e : list)
      for (size_t o = 0; o < p.recipes[e.recipe].overwrites.size(); ++o)
        if (e.phase != Phase::Done && e.overwrites.size() <= o) {
          e.overwrites.push_back(int32_t(o));
          changed = true;
        }
  return changed;
}

/// Every list of a problem: with the overwrites that are allowed, and with all.
void compareAll(const Problem &p, int extras, Tally &tally) {
  ASSERT_TRUE(check(p).ok()) << check(p).message() << printProblem(p);
  EveryList(p, extras, [&](const Solution &bare) {
    if (testing::Test::HasFatalFailure())
      return;
    Solution s = bare;
    takeOverwrites(p, s);
    compare(p, s, tally);
    if (!testing::Test::HasFatalFailure() && takeAll(p, s))
      compare(p, s, tally);
  }).run();
}

TEST(SpaceBrute, TimelineAndVerifierAgreeOnEveryList) {
  Random random(7);
  Tally tally;
  const int64_t instances = tmc::test::rounds(900, 2400);
  for (; tally.instances < instances; ++tally.instances) {
    SpaceProblem w = randomSpaces(random, tally.instances % 3);
    // Some with three executions more than their own, the others with two.
    ASSERT_NO_FATAL_FAILURE(
        compareAll(w.p, tally.instances % 50 ? 2 : 3, tally));
  }
  EXPECT_GT(tally.lists, instances * 160);
  EXPECT_GT(tally.valid, tally.lists / 10);
  EXPECT_LT(tally.valid, tally.lists * 9 / 10);
  RecordProperty("lists", std::to_string(tally.lists));
  RecordProperty("valid", std::to_string(tally.valid));
}

/// A list with one of its entries elsewhere, or with one overwrite more or
/// less.
Solution spoilt(const Problem &p, Solution s, Random &random) {
  std::vector<Execution> &list =
      s.segments[random.below(uint32_t(s.segments.size()))];
  if (list.empty())
    return s;
  const auto from = list.begin() + random.below(uint32_t(list.size()));
  if (random.chance(0.8)) {
    const Execution moved = *from;
    list.erase(from);
    list.insert(list.begin() + random.below(uint32_t(list.size()) + 1), moved);
  } else if (!from->overwrites.empty()) {
    from->overwrites.clear();
  } else if (!p.recipes[from->recipe].overwrites.empty()) {
    from->overwrites = {0};
  }
  return s;
}

/// Every list with the work of networks, and each with a random defect.
TEST(SpaceBrute, TimelineAndVerifierAgreeOnTheNetwork) {
  Random random(18);
  Tally tally, mutants;
  const int64_t instances = tmc::test::rounds(600, 2400);
  for (; tally.instances < instances; ++tally.instances) {
    const Problem p =
        NetworkProblem(random, int(tally.instances % kNetworkKinds)).w.p;
    ASSERT_NO_FATAL_FAILURE(compareAll(p, 2, tally));
    EveryList(p, 1, [&](const Solution &bare) {
      Solution s = bare;
      takeOverwrites(p, s);
      if (!HasFatalFailure() && simulate(p, s).ok())
        compare(p, spoilt(p, s, random), mutants);
    }).run();
    ASSERT_FALSE(HasFatalFailure());
  }
  std::printf("  %lld lists, %lld valid; %lld with a change, %lld valid\n",
              (long long)tally.lists, (long long)tally.valid,
              (long long)mutants.lists, (long long)mutants.valid);
  EXPECT_GT(tally.lists, instances * 160);
  EXPECT_GT(tally.valid, tally.lists / 10);
  EXPECT_LT(tally.valid, tally.lists * 9 / 10);
  EXPECT_GT(mutants.lists, instances * 8);
  EXPECT_GT(mutants.valid, mutants.lists / 10);
  EXPECT_LT(mutants.valid, mutants.lists * 9 / 10);
}

/// Both time work on shared memory alike. It is no quicker than alone, moves no
/// more than the memory can, and takes no longer than its engines one by one.
TEST(SpaceBrute, TimelineAndVerifierAgreeOnSharedMemory) {
  Random random(11);
  Tally tally;
  int64_t slowed = 0;
  const int64_t instances = tmc::test::rounds(300, 2400);
  for (; tally.instances < instances; ++tally.instances) {
    SpaceProblem w = randomSpaces(random, tally.instances % 3);
    shareMemory(random, w.p);
    ASSERT_TRUE(check(w.p).ok()) << check(w.p).message() << printProblem(w.p);
    Problem alone = w.p;
    for (Recipe &r : alone.recipes)
      r.busShare = 0;
    EveryList(w.p, 2, [&](const Solution &bare) {
      if (HasFatalFailure())
        return;
      Solution s = bare;
      takeOverwrites(w.p, s);
      compare(w.p, s, tally);
      absl::StatusOr<Profile> profile = simulate(w.p, s),
                              quick = simulate(alone, s);
      ASSERT_EQ(profile.ok(), quick.ok());
      if (!profile.ok())
        return;
      ASSERT_GE(profile->makespan, quick->makespan) << textOf(w.p, s);
      slowed += profile->makespan > quick->makespan;
      EXPECT_EQ(profile->engineBusy[0], quick->engineBusy[0]);
      int64_t sum = 0;
      for (int64_t busy : quick->engineBusy)
        sum += busy;
      ASSERT_LE(profile->makespan, sum + int64_t(profile->moments.size()) *
                                             w.p.segments.size() * 5)
          << textOf(w.p, s);
    }).run();
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(tally.valid, tally.lists / 10);
  EXPECT_GT(slowed, instances / 2);
  RecordProperty("valid", std::to_string(tally.valid));
  RecordProperty("slowed", std::to_string(slowed));
}

/// Five engines with several pieces of work each, begun and done at random.
TEST(SpaceBrute, TimelineAndVerifierAgreeOnWorkOfAllEngines) {
  Random random(12);
  Tally tally;
  const int64_t instances = tmc::test::rounds(3000, 20000);
  int64_t slowed = 0;
  for (; tally.instances < instances; ++tally.instances) {
    SpaceProblem w;
    w.p.addSegment("step", random.chance(0.2) ? 3 : 1);
    auto cost = [&] { return int64_t(random.below(30)); };
    auto persistent = [&](const std::string &name, SpaceId space) {
      w.value(name, 1).kind = ValueKind::Persistent;
      w.form(name + "@far", name, space);
    };
    Solution s;
    s.segments.resize(1);
    std::vector<std::string> ready; // Moves that may begin.
    for (int i = 0; i < 5; ++i) {
      const std::string n = std::to_string(i);
      w.value("y" + n, 1);
      w.form("y@host" + n, "y" + n);
      w.form("y@file" + n, "y" + n, kFile);
      persistent("z" + n, kHost);
      persistent("q" + n, kFile);
      w.form("q@host" + n, "q" + n).kind = ValueKind::Temporary;
      s.homes.push_back(w.id("z" + n + "@far"));
      s.homes.push_back(w.id("q" + n + "@far"));
      w.p.addInstruction(0, w.recipe("k" + n, "", "y" + n, cost()));
      w.move("stash" + n, "y" + n, "y@host" + n, kD2H, cost());
      w.move("write" + n, "y@host" + n, "y@file" + n, kWrite, cost());
      w.move("bring" + n, "z" + n + "@far", "z" + n, kH2D, cost());
      w.move("read" + n, "q" + n + "@far", "q@host" + n, kRead, cost());
      ready.insert(ready.end(), {"bring" + n, "read" + n});
    }
    shareMemory(random, w.p);
    ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
    std::string text;
    std::vector<std::deque<std::string>> open(w.p.engines.size());
    for (int kernel = 0; kernel < 5 || !ready.empty();) {
      std::deque<std::string> &oldest =
          open[random.below(uint32_t(open.size()))];
      if (kernel < 5 && random.chance(0.3)) {
        text += "k" + std::to_string(kernel) + " ";
        ready.push_back("stash" + std::to_string(kernel++));
      } else if (!oldest.empty() && random.chance(0.5)) {
        text += ")" + oldest.front() + " ";
        oldest.pop_front();
      } else if (!ready.empty()) {
        const size_t i = random.below(uint32_t(ready.size()));
        const std::string name = ready[i];
        ready.erase(ready.begin() + ptrdiff_t(i));
        text += name + "( ";
        open[w.p.recipes[w.recipeId(name)].engine].push_back(name);
        if (name.starts_with("stash"))
          ready.push_back("write" + name.substr(5));
      }
    }
    for (const std::deque<std::string> &rest : open)
      for (const std::string &name : rest)
        text += ")" + name + " ";
    s.segments = w.list(text).segments;
    compare(w.p, s, tally);
    ASSERT_FALSE(HasFatalFailure()) << text;
    const int64_t shared = simulate(w.p, s)->makespan;
    for (Recipe &r : w.p.recipes)
      r.busShare = 0;
    const int64_t alone = simulate(w.p, s)->makespan;
    ASSERT_GE(shared, alone);
    slowed += shared > alone;
  }
  EXPECT_EQ(tally.valid, tally.lists);
  EXPECT_GT(slowed, instances / 2);
}

/// The fastest of all lists of some more executions, within budgets of two or
/// three spaces, is exactly the machine's optimum: no tolerance. Where that
/// takes more executions than the lists have, no list is faster.
TEST(SpaceBrute, TheBestListIsWhatAMachineNeeds) {
  Random random(21);
  int64_t budgets = 0, feasible = 0, slower = 0, more = 0;
  const int64_t problems = tmc::test::rounds(800, 2000);
  for (int64_t i = 0; i < problems; ++i) {
    // Every fourth with the work of networks, without the loops.
    const Problem p = i % 4 == 3 ? NetworkProblem(random, int(i / 4 % 3)).w.p
                                 : randomSpaces(random, i % 2).p;
    int extras = i % 16 < 2 ? 3 : 2;
    const std::vector<Plans::Plan> found = Plans(p, extras).all;
    ASSERT_FALSE(found.empty());
    for (int trial = 0; trial < 2; ++trial) {
      // Budgets of what some plan takes, or a little less of the device.
      const Plans::Plan &one = found[random.below(uint32_t(found.size()))];
      std::vector<int64_t> budget = one.peaks;
      budget[0] -= random.below(2);
      if (budget.size() > 1 && random.chance(0.3))
        budget[1] = -1;
      std::optional<int64_t> best, any;
      for (const Plans::Plan &f : found) {
        bool fits = f.homes == one.homes;
        for (size_t s = 0; s < budget.size(); ++s)
          fits &= budget[s] < 0 || f.peaks[s] <= budget[s];
        if (fits && (!best || f.makespan < *best))
          best = f.makespan;
        if (f.homes == one.homes && (!any || f.makespan < *any))
          any = f.makespan;
      }
      std::optional<SpaceMachine::Optimum> optimum =
          SpaceMachine(p, one.homes, budget, best.value_or(*any + 10)).run();
      ++budgets;
      feasible += optimum.has_value();
      slower += optimum && optimum->makespan > *any;
      if (optimum && optimum->extras > extras) {
        ++more; // Out of the lists' reach.
        ASSERT_TRUE(!best || *best >= optimum->makespan) << printProblem(p);
        continue;
      }
      ASSERT_EQ(best.has_value(), optimum.has_value()) << printProblem(p);
      ASSERT_EQ(best.value_or(0), optimum ? optimum->makespan : 0)
          << printProblem(p);
    }
  }
  std::printf("  %lld budgets: %lld can be met, %lld only slower than without; "
              "%lld by more executions than the lists have\n",
              (long long)budgets, (long long)feasible, (long long)slower,
              (long long)more);
  EXPECT_GE(feasible, budgets / 3);
  EXPECT_GE(slower, problems / 40);
  EXPECT_LE(more, budgets / 100);
}

} // namespace
