// SpaceBrute.h - small random problems with spaces, engines and loops, every
// list of them, and what a list takes by the letter of R1 to R16.

#ifndef TMC_TEST_UNIT_PLANNING_SPACEBRUTE_H
#define TMC_TEST_UNIT_PLANNING_SPACEBRUTE_H

#include "test/unit/planning/SpaceProblem.h"

#include "compiler/planning/model/Random.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace tmc::planning {

/// Draws a share of the host's memory for the work of each engine.
inline void shareMemory(Random &random, Problem &p) {
  const int64_t scale = random.chance(0.5) ? 1 : 1 + random.below(1000);
  for (Recipe &r : p.recipes) {
    r.cost *= scale;
    if (r.engine != 0 && random.chance(0.9))
      r.busShare = random.chance(0.3) ? kWholeBus : 1 + random.below(kWholeBus);
  }
}

/// A small problem. Two or three spaces, three to five engines; kinds take
/// turns: activations, an update on the device or on the host, a loop.
inline SpaceProblem randomSpaces(Random &random, int kind) {
  SpaceProblem w;
  bool file = random.chance(0.3), host = !file && random.chance(0.6);
  if (!file)
    w.p.spaces.pop_back(), w.p.engines.resize(host ? 4 : 3);
  else
    w.p.engines.erase(w.p.engines.begin() + kHostEngine);
  EngineId read = 3, write = 4; // Where the host's engine isn't.
  auto bytes = [&] { return int64_t(1 + random.below(9)); };
  auto cost = [&] { return int64_t(1 + random.below(9)); };
  auto move = [&](const std::string &v, bool carried = false) {
    w.move("stash " + v, v, v + "@host", kD2H, cost());
    w.move("fetch " + v, v + "@host", v, kH2D, cost());
    for (size_t r = w.p.recipes.size() - 2; r < w.p.recipes.size(); ++r) {
      std::replace(w.p.recipes[r].name.begin(), w.p.recipes[r].name.end(), ' ',
                   '_');
      w.p.recipes[r].segment = carried ? 1 : kNone;
      if (random.chance(0.3)) {
        w.p.recipes[r].workspaceBytes = bytes();
        w.p.recipes[r].workspaceSpace = random.chance(0.5) ? kHost : kDevice;
      }
    }
    if (!file || carried)
      return;
    w.form(v + "@file", v, kFile);
    w.move("out_" + v, v + "@host", v + "@file", write, cost());
    w.move("in_" + v, v + "@file", v + "@host", read, cost());
  };
  bool loop = kind == 2;
  w.p.addSegment(loop ? "before" : "step");
  if (loop) {
    w.p.addSegment("body", 2 + random.below(4));
    w.p.addSegment("after");
  }
  std::vector<std::string> made;
  auto instruct = [&](SegmentId s, const std::string &also, int64_t size = 0) {
    std::string name = "v" + std::to_string(w.p.instructions.size());
    w.value(name, size ? size : bytes());
    std::string reads = also;
    if (!made.empty())
      reads += " " + made[random.chance(0.5) ? 0 : made.size() - 1];
    Recipe r = w.recipe("f" + std::to_string(w.p.instructions.size()), reads,
                        name, cost());
    r.recomputable = random.chance(0.2);
    r.workspaceBytes = random.chance(0.3) ? bytes() : 0;
    if (!made.empty() && random.chance(0.4))
      r.overwrites = {{r.reads.back(), r.writes[0], false}};
    w.p.addInstruction(s, r);
    made.push_back(name);
  };
  if (kind == 0) {
    for (uint32_t i = 0, n = 2 + random.below(3); i < n; ++i)
      instruct(0, "");
    w.form(made[0] + "@host", made[0]);
    move(made[0]);
    w.p.values[w.id(made.back())].liveOut = true;
    if (random.chance(0.2)) {
      w.form(made.back() + "@host", made.back());
      w.move("leave", made.back(), made.back() + "@host", kD2H, cost());
    }
    return w;
  }
  if (kind == 1) {
    int64_t size = bytes();
    w.value("m", size).kind = ValueKind::Persistent;
    w.form("m@host", "m");
    Value &n = w.value("n", size);
    n.kind = ValueKind::Persistent;
    n.updates = w.id("m");
    w.form("n@host", "n").updates = w.id("m@host");
    if (file && random.chance(0.3))
      w.form("n@file", "n", kFile).kind = ValueKind::Temporary;
    instruct(0, random.chance(0.5) ? "m" : "");
    w.form("v0@host", "v0");
    Recipe r = w.recipe("update", "v0 m", "n", cost());
    r.overwrites = {{w.id("m"), w.id("n"), random.chance(0.5)}};
    w.p.addInstruction(0, r);
    if (host) {
      Recipe adam =
          w.recipe("adam", "v0@host m@host", "n@host", cost(), kHostEngine);
      adam.overwrites = {{w.id("m@host"), w.id("n@host"), true}};
      adam.workspaceBytes = random.below(3);
      adam.workspaceSpace = kHost;
      w.p.addVariant(1, adam);
      w.move("down", "v0", "v0@host", kD2H, cost());
      w.move("new", "n@host", "n", kH2D, cost());
    }
    w.move("get", "m@host", "m", kH2D, cost());
    w.move("put", "n", "n@host", kD2H, cost());
    if (random.chance(0.5)) {
      w.value("z").liveOut = true;
      w.p.addInstruction(
          0, w.recipe("last", random.chance(0.5) ? "n" : "v0", "z", cost()));
    }
    return w;
  }
  instruct(0, "");
  int64_t size = bytes();
  w.value("t", size);
  w.form("t@host", "t");
  Value &c = w.value("c", size);
  c.kind = ValueKind::Carried;
  c.carriedFrom = w.id("t");
  bool begins = random.chance(0.3); // As something.
  if (begins)
    w.p.values.back().initial = w.id("v0");
  if (begins)
    w.p.values[w.id("v0")].bytes = size;
  Value &ch = w.form("c@host", "c");
  ch.carriedFrom = w.id("t@host");
  w.form("v0@host", "v0");
  if (begins)
    w.p.values[w.id("c@host")].initial = w.id("v0@host");
  if (random.chance(0.5))
    instruct(1, "");
  Recipe add = w.recipe("add", made.back() + " c", "t", cost());
  if (random.chance(0.5))
    add.overwrites = {{w.id("c"), w.id("t"), false}};
  w.p.addInstruction(1, add);
  w.value("y").liveOut = true;
  w.p.addInstruction(
      2, w.recipe("last", random.chance(0.5) ? "t" : "t v0", "y", cost()));
  if (random.chance(0.5)) {
    w.move("stash_t", "t", "t@host", kD2H, cost()).segment = 1;
    w.move("fetch_c", "c@host", "c", kH2D, cost()).segment = 1;
    w.move("fetch_t", "t@host", "t", kH2D, cost());
  } else {
    w.move("stash_v", "v0", "v0@host", kD2H, cost());
    w.move("fetch_v", "v0@host", "v0", kH2D, cost());
  }
  return w;
}

/// A small problem of a device, a host and a file, with budgets in which two
/// contents that leave the device can't both be on the host. Kinds: a content
/// that nothing updates, at home anywhere, beside an activation; an update
/// beside an activation; two activations.
inline SpaceProblem randomFiles(Random &random, int kind) {
  SpaceProblem w;
  auto bytes = [&] { return int64_t(2 + random.below(8)); };
  auto cost = [&] { return int64_t(1 + random.below(9)); };
  w.p.addSegment("step");
  auto forms = [&](const std::string &v, const std::string &old = "") {
    w.form(v + "@host", v).updates = w.id(old + "@host");
    w.form(v + "@file", v, kFile).updates = w.id(old + "@file");
  };
  auto away = [&](const std::string &v) {
    w.move("stash_" + v, v, v + "@host", kD2H, cost());
    w.move("out_" + v, v + "@host", v + "@file", kWrite, cost());
  };
  auto back = [&](const std::string &v) {
    w.move("in_" + v, v + "@file", v + "@host", kRead, cost());
    w.move("fetch_" + v, v + "@host", v, kH2D, cost());
  };
  int64_t least = 0; // Of the device.
  auto add = [&](Recipe r) {
    int64_t needs = 0;
    for (ValueId v : r.reads)
      needs += w.p.values[v].bytes;
    for (ValueId v : r.writes)
      needs += r.overwrites.empty() ? w.p.values[v].bytes : 0;
    least = std::max(least, needs);
    w.p.addInstruction(0, r);
  };
  auto kernel = [&](const std::string &reads, const std::string &made) {
    w.value(made, bytes()).liveOut = made == "y";
    add(w.recipe("f_" + made, reads, made, cost()));
  };
  int64_t most = 0; // Of what moves.
  if (kind < 2) {
    w.value("m", bytes()).kind = ValueKind::Persistent;
    forms("m");
    back("m");
  }
  kernel(random.chance(0.5) && kind < 2 ? "m" : "", "a");
  if (kind == 2) {
    forms("a");
    away("a");
    back("a");
    kernel(random.chance(0.5) ? "a" : "", "b");
    forms("b");
    away("b");
    back("b");
    kernel(random.chance(0.5) ? "b" : "", "c");
    kernel(random.chance(0.5) ? "c b" : "b", "d");
    kernel("d a", "y");
  } else {
    w.form("a@host", "a");
    w.move("stash_a", "a", "a@host", kD2H, cost());
    w.move("fetch_a", "a@host", "a", kH2D, cost());
    kernel(random.chance(0.3) ? "a" : "", "b");
    kernel(kind == 0 && random.chance(0.5) ? "b m" : "b", "c");
    kernel("c a", "y");
  }
  if (kind == 1) {
    Value &n = w.value("n", w.p.values[w.id("m")].bytes);
    n.kind = ValueKind::Persistent;
    n.updates = w.id("m");
    forms("n", "m");
    away("n");
    Recipe r = w.recipe("update", "y m", "n", cost());
    r.overwrites = {{w.id("m"), w.id("n"), true}};
    add(r);
    if (random.chance(0.5)) {
      w.form("y@host", "y").liveOut = false;
      Recipe adam =
          w.recipe("adam", "y@host m@host", "n@host", cost(), kHostEngine);
      adam.overwrites = {{w.id("m@host"), w.id("n@host"), true}};
      adam.workspaceSpace = kHost;
      w.p.addVariant(InstructionId(w.p.instructions.size()) - 1, adam);
      w.move("down", "y", "y@host", kD2H, cost());
    }
  }
  for (const Value &v : w.p.values)
    if (v.space == kHost)
      most = std::max(most, v.bytes);
  w.p.spaces[0].budgetBytes = least + random.below(3);
  w.p.spaces[1].budgetBytes = most + random.below(4);
  if (random.chance(0.2))
    w.p.spaces[2].budgetBytes = random.below(uint32_t(most) + 3);
  return w;
}

/// Calls `visit` with every list of fixed order that has at most `extras`
/// executions beyond the instructions' own, each homes. Lists that read what
/// nothing before can have made are left out, and nothing else.
class EveryList {
public:
  EveryList(const Problem &p, int extras,
            std::function<void(const Solution &)> visit)
      : p(p), extras(extras), visit(std::move(visit)) {}

  void run() {
    std::vector<std::vector<ValueId>> choices; // Of each content with a choice.
    for (size_t v = 0; v < p.values.size(); ++v) {
      const Value &main = p.values[v];
      bool persists =
          main.kind == ValueKind::Persistent && main.updates == kNone;
      if (main.formOf != kNone || (!persists && !main.liveOut))
        continue;
      std::vector<ValueId> &forms = choices.emplace_back();
      for (size_t f = 0; f < p.values.size(); ++f)
        if (p.contentOf(ValueId(f)) == ValueId(v) &&
            (persists ? p.values[f].kind == ValueKind::Persistent
                      : p.values[f].liveOut))
          forms.push_back(ValueId(f));
    }
    chooseHome(choices, 0);
  }

private:
  void chooseHome(const std::vector<std::vector<ValueId>> &choices, size_t at) {
    if (at < choices.size()) {
      for (ValueId form : choices[at]) {
        solution.homes.push_back(form);
        chooseHome(choices, at + 1);
        solution.homes.pop_back();
      }
      return;
    }
    solution.segments.assign(p.segments.size(), {});
    made.assign(p.values.size(), 0);
    for (size_t v = 0; v < p.values.size(); ++v)
      made[v] = p.values[v].kind == ValueKind::Carried;
    for (ValueId home : homesOf(p, solution))
      if (p.values[home].kind == ValueKind::Persistent &&
          p.values[home].updates == kNone)
        made[home] = 1;
    extend(0, 0, 0);
  }

  void extend(size_t s, size_t next, int extra) {
    if (s == p.segments.size()) {
      visit(solution);
      return;
    }
    const std::vector<InstructionId> &own = p.segments[s].instructions;
    if (next == own.size() && open.empty())
      extend(s + 1, 0, extra);
    // The oldest work of each engine may be done now.
    std::vector<EngineId> seen;
    for (size_t i = 0; i < open.size(); ++i) {
      Execution done = solution.segments[s][open[i]];
      EngineId engine = p.recipes[done.recipe].engine;
      if (std::count(seen.begin(), seen.end(), engine))
        continue;
      seen.push_back(engine);
      int32_t at = open[i];
      open.erase(open.begin() + i);
      done.phase = Phase::Done;
      solution.segments[s].push_back(done);
      extend(s, next, extra);
      solution.segments[s].pop_back();
      open.insert(open.begin() + i, at);
    }
    if (next < own.size())
      for (RecipeId r : p.instructions[own[next]].recipes)
        begin(s, next + 1, extra, r, own[next]);
    if (extra < extras)
      for (size_t r = 0; r < p.recipes.size(); ++r)
        if (p.recipes[r].recomputable && (p.recipes[r].segment == kNone ||
                                          size_t(p.recipes[r].segment) == s))
          begin(s, next, extra + 1, RecipeId(r), kNone);
  }

  void begin(size_t s, size_t next, int extra, RecipeId r,
             InstructionId instruction) {
    const Recipe &recipe = p.recipes[r];
    for (ValueId v : recipe.reads)
      if (!made[v])
        return;
    std::vector<Execution> &list = solution.segments[s];
    Execution e{r, instruction, {}};
    if (recipe.engine) {
      e.phase = Phase::Start;
      e.work = int32_t(list.size());
      open.push_back(e.work);
    }
    for (ValueId w : recipe.writes)
      ++made[w];
    list.push_back(e);
    extend(s, next, extra);
    solution.segments[s].pop_back();
    for (ValueId w : recipe.writes)
      --made[w];
    if (recipe.engine)
      open.pop_back();
  }

  const Problem &p;
  int extras;
  std::function<void(const Solution &)> visit;
  Solution solution;
  std::vector<int> made;
  std::vector<int32_t> open; // Starts without a Done, in order.
};

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_SPACEBRUTE_H
