// Freedom of order never costs anything: whatever is planned with the order
// fixed is planned with it free, for no more, and mostly for less.

#include "compiler/planning/search/Order.h"
#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

// The body begins to add onto what `start` holds: whoever reads that runs
// before, and nothing makes it or reads it again later.
TEST(Order, ReadersComeBeforeWhatIsAddedOnto) {
  Problem p;
  auto value = [&](const char *name, int64_t bytes) {
    Value v;
    v.name = name;
    v.bytes = bytes;
    return p.addValue(v);
  };
  auto run = [&](const char *name, std::vector<ValueId> reads,
                 ValueId written) {
    Recipe r;
    r.name = name;
    r.reads = std::move(reads);
    r.writes = {written};
    r.cost = 1;
    r.recomputable = true;
    return r;
  };
  SegmentId prologue = p.addSegment("prologue"), body = p.addSegment("body"),
            epilogue = p.addSegment("epilogue");
  ValueId start = value("start", 10), seen = value("seen", 40),
          addend = value("addend", 30), sum = value("sum", 10),
          end = value("end", 1);
  p.values[start].pinned = true;
  Value c = p.values[sum];
  c.name = "c";
  c.kind = ValueKind::Carried;
  c.carriedFrom = sum;
  c.initial = start;
  ValueId carried = p.addValue(c);
  p.addInstruction(prologue, run("begin", {}, start));
  p.addInstruction(body, run("make", {}, addend));
  p.addInstruction(body, run("look", {start}, seen));
  Recipe add = run("add", {carried, addend}, sum);
  add.recomputable = false;
  add.overwrites = {{carried, sum, true}};
  p.addInstruction(body, add);
  p.addInstruction(epilogue, run("finish", {seen, sum}, end));
  ASSERT_TRUE(check(p).ok()) << check(p).message();
  // Making `addend` and adding it first would need less.
  for (OrderMode order : {OrderMode::Fixed, OrderMode::Free})
    for (int64_t budget : {40, 51, 60, 79}) {
      SolveOptions options;
      options.budgetBytes = budget;
      options.order = order;
      options.effort.mostWork = 1'000'000;
      absl::StatusOr<Plan> plan = solve(p, options);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_EQ(plan->feasible, false) << "at " << budget;
    }
}

// A small gradient is used up as soon as it is there, though few bytes wait and
// much is alive then: it would be in the way of what must be packed.
TEST(Order, SmallUpdatesDontWait) {
  Problem p;
  SegmentId step = p.addSegment("step");
  auto run = [&](std::vector<ValueId> reads, int64_t bytes) {
    Value value;
    value.bytes = bytes;
    Recipe recipe;
    recipe.reads = std::move(reads);
    recipe.cost = 1;
    if (bytes > 0)
      recipe.writes = {p.addValue(value)};
    p.addInstruction(step, recipe);
    return ValueId(p.values.size()) - 1;
  };
  std::vector<ValueId> kept, small;
  for (int i = 0; i < 20; ++i) // Forward,
    kept.push_back(run(kept.empty() ? kept : std::vector{kept.back()}, 1000));
  ValueId grad = run({kept.back()}, 1000);
  for (int i = 20; i-- > 0;) { // backward,
    small.push_back(run({kept[size_t(i)], grad}, 2));
    grad = run({kept[size_t(i)], grad}, 1000);
  }
  for (ValueId v : small) // and at the end all updates.
    run({v}, 0);
  ASSERT_TRUE(check(p).ok()) << check(p).message();
  Orders orders = programOrders(p);
  Random random(1);
  ReorderOptions options;
  options.limitBytes = 15'000; // Out of reach.
  options.work = 1'000'000;
  int64_t work = 0;
  EXPECT_GT(reorder(p, orders, random, options, work), 0);
  std::vector<size_t> at(p.instructions.size());
  for (size_t i = 0; i < orders[0].size(); ++i)
    at[size_t(orders[0][i])] = i;
  for (size_t i = 0; i < small.size(); ++i) {
    size_t made = at[21 + 2 * i], used = at[21 + 2 * 20 + i];
    EXPECT_LE(used - made, 2u) << "update " << i;
  }
}

TEST(Order, FreeIsNeverDearerThanFixed) {
  int planned = 0, cheaper = 0;
  for (Family family :
       {Family::Transformer, Family::UNet, Family::RandomLayered})
    for (uint64_t graph = 1; graph <= 3; ++graph) {
      Problem p = *problemOf(generateGraph({family, 28, graph, false}));
      int64_t base = simulate(p, baseSolution(p))->peakBytes;
      for (int64_t percent : {85, 70, 55})
        for (uint64_t seed = 1; seed <= 2; ++seed) {
          SCOPED_TRACE("family " + std::to_string(int(family)) + " graph " +
                       std::to_string(graph) + " at " +
                       std::to_string(percent) + " seed " +
                       std::to_string(seed));
          SolveOptions options;
          options.budgetBytes = base * percent / 100;
          options.seed = seed;
          options.effort =
              Effort::thorough(); // Else the program's own order isn't sacred.
          options.effort.percent = 1;
          options.wantCases = false;
          Plan fixed = *solve(p, options);
          options.order = OrderMode::Free;
          Plan free = *solve(p, options);
          ASSERT_EQ(verifySolution(p, free.solution,
                                   {free.peakBytes[0], free.cost,
                                    free.feasible ? options.budgetBytes : -1}),
                    std::nullopt);
          EXPECT_GE(free.feasible, fixed.feasible);
          EXPECT_LE(free.smallestFoundBytes, free.feasible
                                                 ? options.budgetBytes
                                                 : fixed.smallestFoundBytes);
          if (!fixed.feasible)
            continue;
          EXPECT_LE(free.cost, fixed.cost);
          ++planned;
          cheaper += free.cost < fixed.cost;
        }
    }
  EXPECT_GT(planned, 25);
  EXPECT_GT(cheaper, 5) << "of " << planned;
}

} // namespace
