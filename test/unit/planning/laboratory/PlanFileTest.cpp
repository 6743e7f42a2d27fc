// PlanFileTest.cpp - plans survive the way through their file, and a stranger's
// plan is refused by the name of its first fault.

#include "compiler/planning/laboratory/PlanFile.h"

#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/laboratory/Optimum.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/pack/Buffers.h"

#include "test/unit/planning/RandomProblem.h"
#include "test/unit/planning/SmallLoops.h"
#include "test/unit/planning/SmallSteps.h"
#include "test/unit/planning/SpaceBrute.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

/// The file of a plan, with an arena of the device and true claims.
std::string fileOf(const Problem &p, const Solution &solution) {
  const Claim claim = *measure(p, solution);
  JsonWriter json;
  json.beginObject();
  json.member("schema_version", int64_t(1));
  json.member("makespan", claim.cost);
  json.key("peaks");
  json.beginArray();
  json.value(claim.peakBytes + p.reservedBytes);
  for (size_t s = 1; s < p.spaces.size(); ++s)
    json.value(claim.otherPeakBytes[s - 1] + p.reservedOf(SpaceId(s)));
  json.endArray();
  writeLists(json, p, solution, /*isGraph=*/false);
  const ArenaProblem arena = arenaOf(p, solution, /*alignment=*/4);
  writeArena(json, arena, packSorted(arena));
  json.endObject();
  return json.take();
}

/// The first fault of a file: in the text, in its numbers, or by the checker.
std::string faultOf(const Problem &p, const std::string &text) {
  absl::StatusOr<PlanFile> plan = parsePlan(text);
  if (!plan.ok())
    return std::string(plan.status().message());
  absl::StatusOr<Solution> solution = solutionOf(*plan, p, /*isGraph=*/false);
  if (!solution.ok())
    return std::string(solution.status().message());
  return judgePlan(*plan, p, *solution).defect.value_or("");
}

bool isSame(const Solution &a, const Solution &b) {
  auto same = [](const Execution &x, const Execution &y) {
    return x.recipe == y.recipe && x.instruction == y.instruction &&
           x.overwrites == y.overwrites && x.phase == y.phase &&
           x.work == y.work;
  };
  return a.homes == b.homes &&
         std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(),
                    b.segments.end(), [&](const auto &x, const auto &y) {
                      return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                                        same);
                    });
}

/// A problem of some kind, and plans of it.
Problem problemOf(Random &random, int kind) {
  switch (kind) {
  case 0: {
    RandomShape shape;
    shape.trips = 1 + int64_t(random.below(3));
    Problem p = randomProblem(random, shape);
    p.reservedBytes = random.below(5);
    return p;
  }
  case 1:
    return SmallStep(random).w.p;
  case 2:
    return SmallLoop(random, LoopKind(random.below(kLoopKinds))).w.p;
  default:
    return randomSpaces(random, int(random.below(3))).p;
  }
}

/// The program's own list, and the fastest plans within smaller budgets.
std::vector<Solution> plansOf(Problem p) {
  std::vector<Solution> plans = {baseSolution(p)};
  const int64_t most = simulate(p, plans[0])->peakBytes;
  for (int64_t tenths : {9, 8, 7, 6}) {
    p.spaces[0].budgetBytes = most * tenths / 10 + p.reservedBytes;
    if (absl::StatusOr<std::optional<OptimalPlan>> plan =
            planOptimum(p, {.mostStates = 1500});
        plan.ok() && *plan)
      plans.push_back((*plan)->solution);
  }
  return plans;
}

} // namespace

TEST(PlanFile, ReadsWhatItWrites) {
  Random random(1);
  int64_t plans = 0, overwrites = 0, starts = 0, homes = 0;
  for (int i = 0; i < 160; ++i) {
    const Problem p = problemOf(random, i % 4);
    ASSERT_TRUE(check(p).ok()) << check(p).message();
    for (const Solution &solution : plansOf(p)) {
      const std::string text = fileOf(p, solution);
      absl::StatusOr<PlanFile> plan = parsePlan(text);
      ASSERT_TRUE(plan.ok()) << plan.status().message() << text;
      absl::StatusOr<Solution> again = solutionOf(*plan, p, false);
      ASSERT_TRUE(again.ok()) << again.status().message() << text;
      ASSERT_TRUE(isSame(*again, solution)) << text;
      ASSERT_EQ(faultOf(p, text), "") << text << printProblem(p);
      ++plans;
      homes += solution.homes.size();
      for (const std::vector<Execution> &list : solution.segments)
        for (const Execution &e : list) {
          overwrites += e.overwrites.size();
          starts += e.phase == Phase::Start;
        }
    }
  }
  EXPECT_GE(plans, 200);
  EXPECT_GE(overwrites, 200);
  EXPECT_GE(starts, 100);
  EXPECT_GE(homes, 20);
}

/// An in-place update that isn't said is an error, and a possible one that
/// isn't said costs bytes: the sequence tells the whole plan.
TEST(PlanFile, OverwritesAreAPartOfThePlan) {
  Random random(2);
  int64_t musts = 0, larger = 0;
  for (int i = 0; i < 120; ++i) {
    const Problem p = problemOf(random, i % 4);
    const Solution solution = baseSolution(p);
    for (size_t s = 0; s < solution.segments.size(); ++s)
      for (size_t e = 0; e < solution.segments[s].size(); ++e)
        for (size_t o = 0; o < solution.segments[s][e].overwrites.size(); ++o) {
          Solution less = solution;
          std::vector<int32_t> &taken = less.segments[s][e].overwrites;
          const Overwrite &lost =
              p.recipes[less.segments[s][e].recipe].overwrites[taken[o]];
          taken.erase(taken.begin() + int64_t(o));
          absl::StatusOr<Claim> claim = measure(p, less);
          ASSERT_FALSE(claim.ok() && lost.must) << printProblem(p);
          musts += !claim.ok(); // In place, or a home's (R14).
          if (claim.ok() && claim->peakBytes > measure(p, solution)->peakBytes)
            ++larger;
        }
  }
  EXPECT_GE(musts, 20);
  EXPECT_GE(larger, 20);
}

/// Any number of a plan changed, any text cut: an answer, and no true claim
/// passes with another number.
TEST(PlanFile, TakesNothingOnTrust) {
  Random random(3);
  int64_t changed = 0, refused = 0;
  for (int i = 0; i < 24; ++i) {
    const Problem p = problemOf(random, i % 4);
    for (const Solution &solution : plansOf(p)) {
      const std::string text = fileOf(p, solution);
      for (size_t cut = random.below(7); cut + 2 < text.size();
           cut += 1 + random.below(40))
        ASSERT_NE(faultOf(p, text.substr(0, cut)), "") << text.substr(0, cut);
      for (size_t at = text.find("makespan"); at < text.size(); ++at) {
        if (!isdigit(text[at]) || isdigit(text[at - 1]) || !random.chance(0.3))
          continue;
        size_t end = at;
        while (isdigit(text[end]))
          ++end;
        for (const char *number :
             {"-1", "-7", "0", "1", "3", "99", "2147483648",
              "9223372036854775807", "99999999999999999999", "1.5", "\"a\"",
              "null", "[]"}) {
          std::string other = text;
          other.replace(at, end - at, number);
          if (other == text)
            continue;
          ++changed;
          const std::string fault = faultOf(p, other);
          refused += !fault.empty();
          if (at < text.find("homes")) {
            ASSERT_TRUE(!fault.empty() || number == std::string("null"))
                << other;
          }
        }
      }
    }
  }
  EXPECT_GE(changed, 10'000);
  EXPECT_GE(refused, changed * 9 / 10);
}

TEST(PlanFile, NamesTheFirstFault) {
  SpaceProblem w;
  w.p.addSegment("step");
  for (const char *v : {"a", "b"})
    w.value(v);
  w.form("a@host", "a");
  w.value("c").liveOut = true;
  w.move("stash", "a", "a@host", kD2H);
  w.move("fetch", "a@host", "a", kH2D);
  w.p.addInstruction(0, w.recipe("f", "", "a"));
  w.p.addInstruction(0, w.recipe("g", "", "b"));
  Recipe k = w.recipe("k", "a b", "c");
  k.overwrites = {{w.id("a"), w.id("c"), false}};
  w.p.addInstruction(0, k);
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  auto fault = [&](const std::string &text) { return faultOf(w.p, text); };
  auto listed = [&](const std::string &sequence) {
    return fault("{\"sequence\": [" + sequence + "]}");
  };
  const std::string f = "[0, 2, 0, -1, 0, []], ", g = "[0, 3, 1, -1, 0, []], ",
                    last = "[0, 4, 2, -1, 0, []]";
  EXPECT_EQ(listed(f + g + last), "");
  // The text.
  EXPECT_EQ(fault(""), "'{' expected (at byte 0 of the plan)");
  EXPECT_EQ(fault("{}"), "the plan has no 'sequence'");
  EXPECT_EQ(fault("{\"sequence\": null}"),
            "'sequence' is null: no plan was found for that budget (at byte 17 "
            "of the plan)");
  EXPECT_EQ(fault("{\"sequence\": [], \"sequence\": []}"),
            "the key 'sequence' stands twice (at byte 28 of the plan)");
  EXPECT_EQ(listed(f + "[0, 3]"), "entry 1 of 'sequence': ',' expected (at "
                                  "byte 41 of the plan)");
  EXPECT_EQ(listed(f + "3"),
            "entry 1 of 'sequence': '[' expected (at byte 36 of the plan)");
  EXPECT_EQ(listed("[0, 2, 0, -1, 2, []]"),
            "entry 0 of 'sequence': a done is 2, not from 0 to 1 (at byte 28 "
            "of the plan)");
  EXPECT_EQ(listed("0, 1"),
            "'sequence' has node numbers, but the problem is no graph");
  // The numbers.
  EXPECT_EQ(listed("[0, 77, 0, -1, 0, []]"),
            "entry 0 of 'sequence' names recipe 77 of 5");
  EXPECT_EQ(listed("[-1, 2, 0, -1, 0, []]"),
            "entry 0 of 'sequence' names segment -1 of 1");
  EXPECT_EQ(listed("[0, 2, 3, -1, 0, []]"),
            "entry 0 of 'sequence' names instruction 3 of 3");
  EXPECT_EQ(listed("[0, 2, 0, -2, 0, []]"),
            "entry 0 of 'sequence' names work -2 of 2147483647");
  EXPECT_EQ(listed("[0, 2, 0, -1, 0, [[0, 1]]]"),
            "entry 0 of 'sequence' writes value 1 in the place of 0, which "
            "recipe 'f' doesn't offer");
  EXPECT_EQ(listed(f + g + "[0, 4, 2, -1, 0, [[1, 3]]]"),
            "entry 2 of 'sequence' writes value 3 in the place of 1, which "
            "recipe 'k' doesn't offer");
  EXPECT_EQ(listed(f + g + "[0, 4, 2, -1, 0, [[0, 3], [0, 3]]]"),
            "entry 2 of 'sequence' has one overwrite twice");
  EXPECT_EQ(listed(f + g + "[0, 4, 2, -1, 0, [[0, 3]]]"), "");
  EXPECT_EQ(fault("{\"homes\": [4], \"sequence\": []}"),
            "'homes' names value 4 of 4");
  EXPECT_EQ(fault("{\"arenas\": [{\"space\": 3}], \"sequence\": []}"),
            "'arenas' names space 3 of 3");
  // The checker.
  EXPECT_EQ(listed(f + last),
            "lists: instruction 'g' runs 0 times for itself, not once");
  EXPECT_EQ(listed(f + g + "[0, 1, -1, 0, 0, []], " + last),
            "R10: 'fetch' starts, but is never done");
  EXPECT_EQ(fault("{\"peak\": 299, \"sequence\": [" + f + g + last + "]}"),
            "claim: the peak is 300 bytes, not 299 as claimed");
  EXPECT_EQ(fault("{\"cost\": 31, \"sequence\": [" + f + g + last + "]}"),
            "claim: the cost is 30, not 31 as claimed");
  EXPECT_EQ(
      fault("{\"peaks\": [300, 1], \"sequence\": [" + f + g + last + "]}"),
      "claim: the peak of 'host' is 0 bytes, not as claimed");
  // Places.
  auto placed = [&](const std::string &buffers) {
    return fault("{\"arenas\": [{\"buffers\": [" + buffers +
                 "]}], \"sequence\": [" + f + g + last + "]}");
  };
  const std::string ab = "[\"a\", 0, 3, 100, 0], [\"b\", 1, 3, 100, 100]";
  EXPECT_EQ(placed(ab + ", [\"c\", 2, 3, 100, 200]"), "");
  EXPECT_EQ(placed(ab), "arena: there is no place for 'c' of 100 bytes in [2, "
                        "3)");
  EXPECT_EQ(placed(ab + ", [\"c\", 2, 3, 100, 200], [\"d\", 2, 3, 1, 300]"),
            "arena: the lists have no buffer 'd' of 1 bytes in [2, 3)");
  EXPECT_NE(placed(ab + ", [\"c\", 2, 3, 100, 150]").find("arena: "),
            std::string::npos);
  // Budgets come last.
  w.p.spaces[0].budgetBytes = 299;
  EXPECT_EQ(listed(f + last),
            "lists: instruction 'g' runs 0 times for itself, not once");
  EXPECT_TRUE(listed(f + g + last).starts_with("budget: "));
}
