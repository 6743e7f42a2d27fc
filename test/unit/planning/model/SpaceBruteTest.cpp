// The timeline and the verifier on every list of small random problems, and
// each of the verifier's and the letter's numbers against the other's.

#include "test/unit/planning/SpaceBrute.h"

#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

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

TEST(SpaceBrute, TimelineAndVerifierAgreeOnEveryList) {
  Random random(7);
  Tally tally;
  for (; tally.instances < 2400; ++tally.instances) {
    SpaceProblem w = randomSpaces(random, tally.instances % 3);
    ASSERT_TRUE(check(w.p).ok()) << check(w.p).message() << printProblem(w.p);
    // Some with three executions more than their own, the others with two.
    EveryList(w.p, tally.instances % 16 ? 2 : 3, [&](const Solution &bare) {
      if (HasFatalFailure())
        return;
      Solution s = bare;
      takeOverwrites(w.p, s);
      compare(w.p, s, tally);
      if (!HasFatalFailure() && takeAll(w.p, s))
        compare(w.p, s, tally);
    }).run();
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(tally.lists, 500'000);
  EXPECT_GT(tally.valid, tally.lists / 10);
  EXPECT_LT(tally.valid, tally.lists * 9 / 10);
  RecordProperty("lists", std::to_string(tally.lists));
  RecordProperty("valid", std::to_string(tally.valid));
}

} // namespace
