// The bound of spaces against every list of small problems and against the
// machine's optimum, and the judge against planted faults.

#include "compiler/planning/bound/SpaceBound.h"
#include "compiler/planning/bound/SpaceBoundCheck.h"
#include "compiler/planning/model/GenerateStep.h"
#include "compiler/planning/model/ProblemFile.h"

#include "test/unit/planning/SpaceBrute.h"
#include "test/unit/planning/SpaceMachine.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>

using namespace tmc::planning;

namespace {

SpaceCertificate randomCertificate(Random &random, const Problem &p) {
  SpaceCertificate c;
  c.denominator = 1 + random.below(40);
  for (size_t s = 0; s < p.segments.size(); ++s) {
    std::vector<int64_t> &row = c.weights.emplace_back(p.engines.size(), 0);
    for (int64_t left = c.denominator; left > 0;) {
      int64_t part = 1 + random.below(uint32_t(left));
      row[random.below(uint32_t(row.size()))] += part;
      left -= part;
    }
  }
  for (size_t s = 0; s < p.spaces.size(); ++s)
    for (size_t i = 0; i < p.instructions.size(); ++i)
      if (p.spaces[s].budgetBytes >= 0 && random.chance(0.5))
        c.prices.push_back({InstructionId(i), SpaceId(s), random.below(200)});
  return c;
}

/// What both say that the certificate proves; they must say the same.
int64_t provenBy(const Problem &p, const SpaceCertificate &c) {
  absl::StatusOr<int64_t> judged = checkSpaceBound(p, c);
  absl::StatusOr<int64_t> summed = provenMakespan(p, c);
  EXPECT_TRUE(judged.ok() && summed.ok()) << judged.status().message();
  EXPECT_EQ(*judged, *summed) << printProblem(p);
  return *judged;
}

struct Plans {
  struct Plan {
    std::vector<ValueId> homes;
    std::vector<int64_t> peaks;
    int64_t makespan = 0;
  };
  std::vector<Plan> all;
  Plans(const Problem &p, int extras) {
    EveryList(p, extras, [&](const Solution &bare) {
      Solution s = bare;
      takeOverwrites(p, s);
      if (absl::StatusOr<Profile> profile = simulate(p, s); profile.ok())
        all.push_back(
            {homesOf(p, s), profile->spacePeakBytes, profile->makespan});
    }).run();
  }
};

/// The least makespan within the problem's budgets: of the lists, and, where
/// there is no loop, of any number of executions, whatever the homes.
std::optional<int64_t> optimumOf(const Problem &p, const Plans &plans) {
  std::optional<int64_t> best;
  std::set<std::vector<ValueId>> homes;
  std::vector<int64_t> budgets;
  for (const MemorySpace &space : p.spaces)
    budgets.push_back(space.budgetBytes);
  for (const Plans::Plan &plan : plans.all) {
    homes.insert(plan.homes);
    bool fits = true;
    for (size_t s = 0; s < budgets.size(); ++s)
      fits &= budgets[s] < 0 || plan.peaks[s] <= budgets[s];
    if (fits && (!best || plan.makespan < *best))
      best = plan.makespan;
  }
  if (p.segments.size() == 1 && best)
    for (const std::vector<ValueId> &home : homes)
      if (auto found = SpaceMachine(p, home, budgets, *best).run())
        best = std::min(*best, found->makespan);
  return best;
}

TEST(SpaceBound, NeverExceedsTheOptimumOfSmallProblems) {
  Random random(31);
  int64_t instances = 0, certificates = 0, above = 0, exact = 0, slower = 0;
  std::vector<double> shares;
  for (int i = 0; i < 2400; ++i) {
    SpaceProblem w = randomSpaces(random, i % 3);
    Problem &p = w.p;
    Plans plans(p, 2);
    ASSERT_FALSE(plans.all.empty());
    const Plans::Plan &one =
        plans.all[random.below(uint32_t(plans.all.size()))];
    for (size_t s = 0; s < p.spaces.size(); ++s)
      p.spaces[s].budgetBytes = s && random.chance(0.4) ? -1 : one.peaks[s];
    std::optional<int64_t> optimum = optimumOf(p, plans);
    ASSERT_TRUE(optimum);
    ++instances;
    for (int c = 0; c < 8; ++c, ++certificates) {
      int64_t bound = provenBy(p, randomCertificate(random, p));
      ASSERT_LE(bound, *optimum) << printProblem(p);
    }
    int64_t plain = provenBy(p, plainCertificate(p));
    absl::StatusOr<SpaceCertificate> best = ascendSpaces(p, {200});
    ASSERT_TRUE(best.ok());
    int64_t bound = provenBy(p, *best);
    ASSERT_LE(bound, *optimum) << printProblem(p);
    ASSERT_GE(bound, plain);
    above += bound > plain;
    exact += bound == *optimum;
    if (*optimum > plain) {
      ++slower;
      shares.push_back(double(bound - plain) / double(*optimum - plain));
    }
  }
  std::sort(shares.begin(), shares.end());
  std::printf("  %lld instances, %lld certificates; %lld bounds are the "
              "optimum, %lld above compute's load; of %lld whose optimum is "
              "above it, the median share closed is %.2f\n",
              (long long)instances, (long long)certificates, (long long)exact,
              (long long)above, (long long)slower, shares[shares.size() / 2]);
  EXPECT_GE(instances, 2000);
  EXPECT_GE(above, 200);
  EXPECT_GE(exact, 500);
}

} // namespace
