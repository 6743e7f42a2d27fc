// SmallLoops.h - small random steps with a loop in which a budget presses: what
// a body makes has to leave and come back in each trip, weights are at home on
// the host, gradients are summed over the trips, and the update behind the loop
// may be the host's.

#ifndef TMC_TEST_UNIT_PLANNING_SMALLLOOPS_H
#define TMC_TEST_UNIT_PLANNING_SMALLLOOPS_H

#include "test/unit/planning/SpaceProblem.h"

#include "compiler/planning/model/Random.h"

namespace tmc::planning {

/// What a small loop has; in each kind one thing more may move.
enum class LoopKind {
  Activations, // Come and go within a trip.
  Weights,     // Are fetched anew in each trip, or held over all.
  Updates,     // On either side, behind the loop; states at home on either.
  Peeled,      // Two trips, and the last beside what is behind.
  Outside,     // What is made before the loop, and read in it or behind it.
  Carried,     // The sum itself, beside activations.
};
inline constexpr int kLoopKinds = 6;

/// Builds one. A trip runs f, g, k and h: `a` waits over g and k, the weight is
/// read by f and h, and h adds to the sum. Some have no k; then h reads b.
///
///     f(w) -> a    g(a) -> b    k(b) -> d    h(d, a, w, c) -> t
///
/// c is carried from t. A peeled trip and what is behind the loop are one
/// segment.
class SmallLoop {
public:
  SmallLoop(Random &random, LoopKind kind) : random(random), kind(kind) {
    w.p.spaces.pop_back();
    w.p.engines.resize(4);
    const bool isPeeled = kind == LoopKind::Peeled;
    before = w.p.addSegment("before");
    body = w.p.addSegment("body", isPeeled ? 2 : 2 + int64_t(random.below(3)));
    after = w.p.addSegment("after");
    if (kind == LoopKind::Weights || (kind == LoopKind::Updates && coin()))
      addWeight();
    if (kind == LoopKind::Outside)
      addKernel(before, "e", "", "u", coin());
    addTrip(body, "");
    if (isPeeled)
      addTrip(after, "'");
    addEnd();
    addMoves();
  }

  SpaceProblem w;

private:
  bool coin() { return random.chance(0.5); }
  int64_t bytes() { return 1 + random.below(9); }
  int64_t cost() { return 1 + random.below(9); }

  void addWeight() {
    w.value("w", bytes()).kind = ValueKind::Persistent;
    w.form("w@host", "w");
    hasWeight = true;
  }

  void addKernel(SegmentId s, const std::string &name, const std::string &reads,
                 const std::string &made, bool recomputable = false,
                 int64_t size = 0) {
    w.value(made, size ? size : bytes());
    Recipe r = w.recipe(name, reads, made, cost());
    r.recomputable = recomputable;
    if (random.chance(0.2))
      r.workspaceBytes = bytes();
    w.p.addInstruction(s, r);
  }

  void addTrip(SegmentId s, const std::string &mark) {
    const std::string weight = hasWeight ? "w " : "";
    addKernel(s, "f" + mark, weight + (reads(0.3) ? "u" : ""), "a" + mark,
              random.chance(0.3));
    addKernel(s, "g" + mark, coin() ? "a" + mark : "", "b" + mark);
    std::string last = "b";
    if (random.chance(0.6))
      addKernel(s, "k" + mark, "b" + mark, "d" + mark), last = "d";
    std::string sum = "t";
    if (s == body) {
      w.value("t", sumBytes = bytes());
      Value &c = w.value("c", sumBytes);
      c.kind = ValueKind::Carried;
      c.carriedFrom = w.id("t");
      sum = "c";
    } else {
      w.value("t" + mark, sumBytes);
    }
    Recipe h = w.recipe("h" + mark,
                        last + mark + " a" + mark + " " + weight + sum +
                            (reads(0.5) ? " u" : ""),
                        "t" + mark, cost());
    if (random.chance(0.7))
      h.overwrites = {{w.id(sum), w.id("t" + mark), false}};
    w.p.addInstruction(s, h);
  }
  bool reads(double chance) {
    return kind == LoopKind::Outside && random.chance(chance);
  }

  /// An update of m by the sum, or a value that is read outside.
  void addEnd() {
    const std::string sum = kind == LoopKind::Peeled ? "t'" : "t";
    if (kind != LoopKind::Updates &&
        !(kind == LoopKind::Peeled && random.chance(0.3))) {
      addKernel(after, "end", sum + (kind == LoopKind::Outside ? " u" : ""),
                "y");
      w.p.values.back().liveOut = true;
      return;
    }
    w.value("m", sumBytes).kind = ValueKind::Persistent;
    w.form("m@host", "m");
    Value &n = w.value("n", sumBytes);
    n.kind = ValueKind::Persistent;
    n.updates = w.id("m");
    w.form("n@host", "n").updates = w.id("m@host");
    Recipe update = w.recipe("update", sum + " m", "n", cost());
    update.overwrites = {{w.id("m"), w.id("n"), true}};
    InstructionId i = w.p.addInstruction(after, update);
    w.move("get_m", "m@host", "m", kH2D, cost());
    w.move("put_n", "n", "n@host", kD2H, cost());
    if (random.chance(0.3))
      return;
    w.form(sum + "@host", sum);
    Recipe adam =
        w.recipe("adam", sum + "@host m@host", "n@host", cost(), kHostEngine);
    adam.overwrites = {{w.id("m@host"), w.id("n@host"), true}};
    adam.workspaceSpace = kHost;
    w.p.addVariant(i, adam);
    w.move("down", sum, sum + "@host", kD2H, cost());
    w.move("new", "n@host", "n", kH2D, cost());
  }

  void addMoves() {
    if (hasWeight)
      w.move("get_w", "w@host", "w", kH2D, cost());
    if (kind == LoopKind::Carried)
      addMovesOfSum();
    if (kind == LoopKind::Outside) {
      addBoth("u");
    } else if (kind != LoopKind::Weights || coin()) {
      addBoth("a", body);
      if (kind == LoopKind::Peeled && coin())
        addBoth("a'", after);
    }
  }
  void addBoth(const std::string &v, SegmentId s = kNone) {
    w.form(v + "@host", v).liveOut = false;
    w.move("stash_" + v, v, v + "@host", kD2H, cost()).segment = s;
    w.move("fetch_" + v, v + "@host", v, kH2D, cost()).segment = s;
  }

  void addMovesOfSum() {
    w.form("t@host", "t");
    w.form("c@host", "c").carriedFrom = w.id("t@host");
    w.move("stash_t", "t", "t@host", kD2H, cost()).segment = body;
    w.move("fetch_c", "c@host", "c", kH2D, cost()).segment = body;
    w.move("fetch_t", "t@host", "t", kH2D, cost());
  }

  Random &random;
  const LoopKind kind;
  SegmentId before = 0, body = 0, after = 0;
  int64_t sumBytes = 0;
  bool hasWeight = false;
};

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_SMALLLOOPS_H
