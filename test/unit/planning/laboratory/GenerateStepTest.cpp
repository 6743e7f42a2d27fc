// Problems of a real step's shape, and plans of other systems in them.

#include "compiler/planning/laboratory/GenerateStep.h"
#include "compiler/planning/laboratory/ProblemReader.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

RecipeId recipeOf(const Problem &p, const std::string &name) {
  for (size_t r = 0; r < p.recipes.size(); ++r)
    if (p.recipes[r].name == name)
      return RecipeId(r);
  ADD_FAILURE() << "no recipe '" << name << "'";
  return kNone;
}

/// Appends work that is done at once, or only at the end of `list`.
void append(const Problem &p, std::vector<Execution> &list,
            const std::string &name, std::vector<Execution> *dones = nullptr) {
  RecipeId r = recipeOf(p, name);
  InstructionId i = p.recipes[r].instruction;
  if (p.recipes[r].engine == 0) {
    list.push_back({r, i, {}});
    return;
  }
  int32_t work = 0;
  for (const Execution &e : list)
    work = std::max(work, e.work + 1);
  list.push_back({r, i, {}, Phase::Start, work});
  (dones ? *dones : list).push_back({r, i, {}, Phase::Done, work});
}

/// ZeRO-Offload's rule: moments and updates on the host, parameters too, which
/// come to the device for the step.
Solution offloadedUpdates(const Problem &p, int64_t layers) {
  Solution s;
  std::vector<Execution> &list = s.segments.emplace_back(), dones;
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].kind == ValueKind::Persistent &&
        p.values[v].updates == kNone && p.values[v].space == 1)
      s.homes.push_back(ValueId(v));
  auto each = [&](const std::string &verb, int64_t l,
                  std::vector<Execution> *later = nullptr) {
    append(p, list, verb + std::to_string(l), later);
  };
  for (int64_t l = 0; l < layers; ++l) {
    each("fetch w", l);
    each("forward ", l);
  }
  append(p, list, "loss");
  for (int64_t l = layers - 1; l >= 0; --l) {
    each("backward ", l);
    each("stash g", l);
  }
  for (int64_t l = 0; l < layers; ++l)
    append(p, list, "update " + std::to_string(l) + " on the host", &dones);
  list.insert(list.end(), dones.begin(), dones.end());
  takeOverwrites(p, s);
  return s;
}

TEST(GenerateStep, EveryShapeIsAProblemThatTheBasePlanSolves) {
  for (int64_t bandwidth : {6, 25, 55})
    for (int64_t trips : {1, 2, 5})
      for (int64_t file : {0, 3}) {
        StepOptions options;
        options.linkBandwidth = bandwidth * 1'000'000'000;
        options.fileBandwidth = file * 1'000'000'000;
        options.microBatches = trips;
        Problem p = generateStep(options);
        ASSERT_TRUE(check(p).ok()) << check(p).message();
        Solution base = baseSolution(p);
        absl::StatusOr<Profile> profile = simulate(p, base);
        absl::StatusOr<Claim> claim = measure(p, base);
        ASSERT_TRUE(claim.ok()) << claim.status().message();
        EXPECT_EQ(profile->peakBytes, claim->peakBytes);
        EXPECT_EQ(profile->makespan, claim->cost);
        EXPECT_EQ(profile->makespan, baseCost(p));
        EXPECT_EQ(profile->spacePeakBytes[1], 0);
        absl::StatusOr<Problem> again = parseProblem(printProblem(p));
        ASSERT_TRUE(again.ok());
        EXPECT_EQ(printProblem(*again), printProblem(p));
      }
}

TEST(GenerateStep, UpdatesOnTheHostAreAPlanOfIt) {
  StepOptions options;
  Problem p = generateStep(options);
  Profile base = *simulate(p, baseSolution(p));
  Solution s = offloadedUpdates(p, options.layers);
  absl::StatusOr<Profile> profile = simulate(p, s);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  Claim claim = *measure(p, s);
  EXPECT_EQ(verifySolution(p, s, claim), std::nullopt);
  EXPECT_EQ(profile->makespan, claim.cost);
  EXPECT_EQ(profile->spacePeakBytes[1], claim.otherPeakBytes[0]);
  // Eight moments of some 64 MiB leave the device.
  EXPECT_LT(profile->peakBytes, base.peakBytes - (int64_t(480) << 20));
  EXPECT_GT(profile->spacePeakBytes[1], int64_t(700) << 20);
  // It waits for its links and for the host, which is the slower the slower
  // they are.
  EXPECT_GT(profile->makespan, base.makespan);
  options.linkBandwidth = 6'000'000'000;
  Problem slow = generateStep(options);
  EXPECT_GT(simulate(slow, offloadedUpdates(slow, options.layers))->makespan,
            profile->makespan);
}

} // namespace
