// A thousand planted errors: the verifier names the rule of each.

#include "test/unit/planning/SpaceBrute.h"

#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

/// A valid plan, to be spoilt.
struct Plan {
  Problem p;
  Solution s;
  Claim claim;

  std::vector<Execution> &list() { return s.segments.back(); }
  const Recipe &recipeOf(const Execution &e) const {
    return p.recipes[e.recipe];
  }
  bool touches(const Execution &e, ValueId v) const {
    const Recipe &r = recipeOf(e);
    return std::count(r.reads.begin(), r.reads.end(), v) ||
           std::count(r.writes.begin(), r.writes.end(), v);
  }
  size_t doneOf(size_t start) {
    size_t at = start + 1;
    while (list()[at].phase != Phase::Done ||
           list()[at].work != list()[start].work)
      ++at;
    return at;
  }
  /// Takes an entry out; work numbers stay below the length of the list.
  void erase(size_t at) {
    list().erase(list().begin() + at);
    std::map<int32_t, int32_t> number;
    for (Execution &e : list())
      if (e.work != kNone)
        e.work = number.emplace(e.work, int32_t(number.size())).first->second;
  }
  /// Work at the end of the list.
  void append(RecipeId r, InstructionId instruction = kNone) {
    int32_t work = 0;
    for (const Execution &e : list())
      work = std::max(work, e.work + 1);
    list().push_back({r, instruction, {}, Phase::Start, work});
    list().push_back({r, instruction, {}, Phase::Done, work});
    // Numbers are below the length of the list.
    ASSERT_LT(work, int32_t(list().size()));
  }
};

/// Spoils a plan, or says that it has nothing to spoil in that way.
struct Fault {
  const char *name;
  const char *rule; // What the verifier's answer begins with.
  std::function<bool(Plan &, Random &)> plant;
};

bool dropPhase(Plan &plan, Random &random, Phase phase) {
  std::vector<size_t> all;
  for (size_t i = 0; i < plan.list().size(); ++i)
    if (plan.list()[i].phase == phase)
      all.push_back(i);
  if (all.empty())
    return false;
  size_t at = all[random.below(uint32_t(all.size()))];
  // A dropped Start takes its run along: of a recomputation only.
  if (phase == Phase::Start && plan.list()[at].instruction != kNone)
    return false;
  plan.erase(at);
  return true;
}

bool swapDones(Plan &plan, Random &) {
  std::vector<Execution> &list = plan.list();
  for (size_t i = 0; i < list.size(); ++i)
    for (size_t j = i + 1; j < list.size(); ++j) {
      if (list[i].phase != Phase::Done || list[j].phase != Phase::Done ||
          plan.recipeOf(list[i]).engine != plan.recipeOf(list[j]).engine)
        continue;
      // Both in flight at once: else a Done would stand before its Start.
      bool together = true;
      for (size_t k = i; k < j; ++k)
        together &=
            list[k].phase != Phase::Start || list[k].work != list[j].work;
      if (together) {
        std::swap(list[i], list[j]);
        return true;
      }
    }
  return false;
}

/// Moves the Done of work that touches what a later entry reads or writes
/// behind that entry.
bool delayDone(Plan &plan, Random &random, bool behindRead) {
  std::vector<Execution> &list = plan.list();
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].phase != Phase::Done || random.chance(0.3))
      continue;
    for (size_t j = i + 1; j < list.size(); ++j) {
      if (plan.recipeOf(list[j]).engine == plan.recipeOf(list[i]).engine)
        break; // Its engine would be out of order.
      if (list[j].phase == Phase::Done)
        continue;
      bool hit = false;
      const Recipe &later = plan.recipeOf(list[j]);
      if (behindRead)
        for (ValueId v : later.reads)
          hit |= later.engine == 0 && plan.recipeOf(list[i]).writes[0] == v;
      else
        for (ValueId v : later.writes)
          hit |= plan.touches(list[i], v);
      if (!hit)
        continue;
      std::rotate(list.begin() + i, list.begin() + i + 1, list.begin() + j + 1);
      return true;
    }
  }
  return false;
}

/// The old home is fetched behind the update.
bool fetchOldHome(Plan &plan, Random &) {
  for (size_t r = 0; r < plan.p.recipes.size(); ++r)
    if (plan.p.recipes[r].name == "get" && !plan.s.homes.empty() &&
        plan.p.values[plan.s.homes[0]].name == "m@host") {
      plan.append(RecipeId(r));
      return true;
    }
  return false;
}

/// The home is written by a put alone: once more, or never.
bool homeWrites(Plan &plan, bool again) {
  if (plan.s.homes.empty() || plan.p.values[plan.s.homes[0]].name != "m@host")
    return false;
  std::vector<Execution> &list = plan.list();
  for (size_t i = 0; i < list.size(); ++i) {
    if (plan.recipeOf(list[i]).name != "put" || list[i].phase != Phase::Start)
      continue;
    if (again) {
      plan.append(list[i].recipe);
      return true;
    }
    ValueId home = plan.recipeOf(list[i]).writes[0];
    for (const Execution &e : list)
      for (ValueId v : plan.recipeOf(e).reads)
        if (v == home)
          return false;
    plan.erase(plan.doneOf(i));
    plan.erase(i);
    return true;
  }
  return false;
}

/// A fetch of what is on the device by nothing else is left out.
bool dropFetch(Plan &plan, Random &) {
  std::vector<Execution> &list = plan.list();
  for (size_t i = 0; i < list.size(); ++i) {
    if (plan.recipeOf(list[i]).name != "get" || list[i].phase != Phase::Start ||
        plan.p.values[plan.s.homes[0]].name != "m@host")
      continue;
    ValueId m = plan.recipeOf(list[i]).writes[0];
    bool others = false, read = false;
    for (size_t j = 0; j < list.size(); ++j) {
      const Recipe &r = plan.recipeOf(list[j]);
      others |= j != i && list[j].phase == Phase::Start && r.writes[0] == m;
      read |= std::count(r.reads.begin(), r.reads.end(), m) > 0;
    }
    if (others || !read)
      continue;
    plan.erase(plan.doneOf(i));
    plan.erase(i);
    return true;
  }
  return false;
}

/// Takes or leaves overwrites that the plan leaves or takes.
bool changeOverwrites(Plan &plan, bool take) {
  for (std::vector<Execution> &list : plan.s.segments)
    for (Execution &e : list) {
      const std::vector<Overwrite> &all = plan.recipeOf(e).overwrites;
      if (e.phase == Phase::Done || all.size() != 1 ||
          e.overwrites.empty() != take || all[0].must == take)
        continue;
      if (take)
        e.overwrites = {0};
      else
        e.overwrites.clear();
      return true;
    }
  return false;
}

bool exceed(Plan &plan, Random &random) {
  size_t s = random.below(uint32_t(plan.p.spaces.size()));
  int64_t peak = s ? plan.claim.otherPeakBytes[s - 1] : plan.claim.peakBytes;
  if (peak == 0)
    return false;
  plan.p.spaces[s].budgetBytes = peak - 1;
  return true;
}

bool changeInstruction(Plan &plan, Random &random, bool drop) {
  std::vector<Execution> &list = plan.list();
  for (size_t i = random.below(uint32_t(list.size())); i < list.size(); ++i) {
    if (list[i].instruction == kNone || list[i].phase != Phase::Whole)
      continue;
    Execution e = list[i];
    if (drop)
      plan.erase(i);
    else
      list.insert(list.begin() + i, e);
    return true;
  }
  return false;
}

bool computeAsWork(Plan &plan, Random &random) {
  std::vector<Execution> &list = plan.list();
  Execution &e = list[random.below(uint32_t(list.size()))];
  if (e.phase == Phase::Done)
    return false;
  e.phase = e.phase == Phase::Start ? Phase::Whole : Phase::Start;
  e.work = e.phase == Phase::Start ? 0 : kNone;
  return true;
}

const std::vector<Fault> &allFaults() {
  static const std::vector<Fault> faults = {
      {"a done dropped", "R10",
       [](Plan &p, Random &r) { return dropPhase(p, r, Phase::Done); }},
      {"a start dropped", "R10",
       [](Plan &p, Random &r) { return dropPhase(p, r, Phase::Start); }},
      {"an engine out of order", "R10", swapDones},
      {"compute as work, work as compute", "R10", computeAsWork},
      {"a source or result overwritten in flight", "R11",
       [](Plan &p, Random &r) { return delayDone(p, r, false); }},
      {"read before the done", "R11",
       [](Plan &p, Random &r) { return delayDone(p, r, true); }},
      {"a home written too early", "R14", fetchOldHome},
      {"a home written twice", "R14",
       [](Plan &p, Random &) { return homeWrites(p, true); }},
      {"a home never written", "R14",
       [](Plan &p, Random &) { return homeWrites(p, false); }},
      {"a fetch left out", "R1:", dropFetch},
      {"the place of what is needed taken", "R13",
       [](Plan &p, Random &) { return changeOverwrites(p, true); }},
      {"not in place", "R4",
       [](Plan &p, Random &) { return changeOverwrites(p, false); }},
      {"a budget of one space exceeded", "budget", exceed},
      {"a peak claimed too low", "claim",
       [](Plan &p, Random &) { return p.claim.otherPeakBytes[0]-- > 0; }},
      {"a time claimed too low", "claim",
       [](Plan &p, Random &) { return p.claim.cost-- > 0; }},
      {"an instruction dropped", "lists",
       [](Plan &p, Random &r) { return changeInstruction(p, r, true); }},
      {"an instruction twice", "lists",
       [](Plan &p, Random &r) { return changeInstruction(p, r, false); }},
  };
  return faults;
}

TEST(Planted, TheVerifierNamesTheRuleOfEach) {
  Random random(3), chooser(9);
  std::map<std::string, int> planted;
  int total = 0;
  for (int i = 0; i < 450; ++i) {
    SpaceProblem w = randomSpaces(random, i % 3);
    std::vector<Plan> plans;
    EveryList(w.p, 2, [&](const Solution &bare) {
      if (!chooser.chance(0.15))
        return;
      Plan plan{w.p, bare, {}};
      takeOverwrites(plan.p, plan.s);
      absl::StatusOr<Claim> claim = measure(plan.p, plan.s);
      if (!claim.ok())
        return;
      plan.claim = *claim;
      ASSERT_EQ(verifySolution(plan.p, plan.s, plan.claim), std::nullopt);
      plans.push_back(std::move(plan));
    }).run();
    for (const Fault &fault : allFaults())
      for (const Plan &plan : plans) {
        if (planted[fault.name] >= 80)
          break;
        Plan spoilt = plan;
        if (!fault.plant(spoilt, chooser))
          continue;
        ++planted[fault.name], ++total;
        std::optional<std::string> defect =
            verifySolution(spoilt.p, spoilt.s, spoilt.claim);
        ASSERT_TRUE(defect) << fault.name;
        EXPECT_EQ(defect->rfind(fault.rule, 0), 0u)
            << fault.name << ": " << *defect;
      }
  }
  EXPECT_GE(total, 1'000);
  for (const Fault &fault : allFaults())
    EXPECT_GE(planted[fault.name], 20) << fault.name;
}

} // namespace
