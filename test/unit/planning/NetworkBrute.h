// NetworkBrute.h - small random problems with the work of one or two networks
// (R18), some with a host.

#ifndef TMC_TEST_UNIT_PLANNING_NETWORKBRUTE_H
#define TMC_TEST_UNIT_PLANNING_NETWORKBRUTE_H

#include "test/unit/planning/SpaceProblem.h"

#include "compiler/planning/model/Random.h"

namespace tmc::planning {

inline constexpr int kNetworkKinds = 4;

/// Kinds: two kernels read a weight that may be at home as a shard; an exchange
/// beside kernels; an update on shards; sums of shards in a loop.
class NetworkProblem {
public:
  NetworkProblem(Random &random, int kind) : random(random) {
    const bool host = random.chance(kind == 3 ? 0.2 : 0.4);
    w.p.spaces.resize(host ? 2 : 1);
    w.p.engines.resize(host ? 3 : 1);
    hasHost = host;
    dp = w.p.addNetwork("dp");
    tp = random.chance(0.5) ? w.p.addNetwork("tp") : dp;
    w.p.addSegment(kind == 3 ? "before" : "step");
    if (kind == 0)
      addReaders();
    else if (kind == 1)
      addExchange();
    else if (kind == 2)
      addUpdate();
    else
      addLoop();
  }

  SpaceProblem w;

private:
  Random &random;
  bool hasHost = false;
  EngineId dp = 0, tp = 0;

  int64_t small() { return 1 + int64_t(random.below(9)); }
  EngineId network() { return random.chance(0.5) ? dp : tp; }

  void kernel(const std::string &name, const std::string &reads,
              const std::string &made, EngineId engine = kCompute,
              SegmentId segment = 0) {
    Recipe r = w.recipe(name, reads, made, small(), engine);
    r.recomputable = random.chance(0.3);
    r.workspaceBytes = random.chance(0.3) ? small() : 0;
    const Value &made0 = w.p.values[r.writes[0]];
    if (!r.reads.empty() && random.chance(0.4) &&
        w.p.values[r.reads.back()].bytes == made0.bytes &&
        made0.kind == ValueKind::Temporary)
      r.overwrites = {{r.reads.back(), r.writes[0], false}};
    w.p.addInstruction(segment, r);
  }
  Recipe &gather(const std::string &v, const std::string &from) {
    Recipe &r = w.move("gather_" + v, from, v, network(), small());
    if (random.chance(0.3))
      r.workspaceBytes = small();
    return r;
  }
  void hostMoves(const std::string &v, bool out, bool in) {
    if (out)
      w.move("stash_" + v, v, v + "@host", kD2H, small());
    if (in)
      w.move("fetch_" + v, v + "@host", v, kH2D, small());
  }
  /// A form with a part of the bytes, in the same space; and one on the host.
  void shard(const std::string &v, int64_t bytes, const std::string &old = "") {
    w.form(v + "@shard", v, kDevice).bytes = bytes;
    if (!old.empty())
      w.p.values.back().updates = w.id(old + "@shard");
    if (!hasHost)
      return;
    Value &away = w.form(v + "@shard@host", v);
    away.bytes = bytes;
    if (!old.empty())
      w.p.values[w.id(v + "@shard@host")].updates = w.id(old + "@shard@host");
  }

  void addReaders() {
    const int64_t bytes = 2 + int64_t(random.below(8));
    w.value("w", bytes).kind = ValueKind::Persistent;
    shard("w", (bytes + 1) / 2);
    gather("w", "w@shard");
    if (random.chance(0.3))
      w.move("cut", "w", "w@shard", kCompute, int64_t(random.below(3)));
    if (hasHost)
      hostMoves("w@shard", false, true);
    w.value("a", small());
    kernel("f", "w", "a");
    w.value("b", small());
    kernel("g", random.chance(0.5) ? "a" : "", "b");
    w.value("y", small()).liveOut = true;
    kernel("h", random.chance(0.7) ? "a b w" : "b w", "y");
  }

  void addExchange() {
    const int64_t bytes = small();
    w.value("g", bytes);
    w.value("pieces", random.chance(0.7) ? bytes : small());
    w.value("b", small());
    w.value("G", random.chance(0.5) ? w.p.values[w.id("b")].bytes : small());
    w.value("y", small()).liveOut = true;
    kernel("f", "", "g");
    kernel("exchange", "g", "pieces", dp);
    kernel("k", random.chance(0.4) ? "g" : "", "b");
    kernel("sum", random.chance(0.3) ? "pieces b" : "pieces", "G",
           random.chance(0.2) ? tp : kCompute);
    kernel("last", random.chance(0.5) ? "G b" : "G", "y");
    if (hasHost) {
      const std::string moved = random.chance(0.5) ? "g" : "G";
      w.form(moved + "@host", moved);
      hostMoves(moved, true, true);
    }
  }

  void addUpdate() {
    const int64_t bytes = 2 + int64_t(random.below(8)), part = (bytes + 1) / 2;
    w.value("w", bytes).kind = ValueKind::Persistent;
    shard("w", part);
    Value &next = w.value("w'", bytes);
    next.kind = ValueKind::Persistent;
    next.updates = w.id("w");
    shard("w'", part, "w");
    w.value("g", bytes);
    w.value("G", part);
    kernel("f", "w", "g");
    kernel("exchange", "g", "G", dp);
    // On shards: from the whole weight, or in place.
    const InstructionId update =
        w.p.addInstruction(0, w.recipe("update", "G w", "w'@shard", small()));
    Recipe inPlace = w.recipe("inplace", "G w@shard", "w'@shard", small());
    inPlace.overwrites = {{w.id("w@shard"), w.id("w'@shard"), true}};
    w.p.addVariant(update, inPlace);
    gather("w", "w@shard");
    gather("w'", "w'@shard");
    if (hasHost) {
      hostMoves("w@shard", false, true);
      hostMoves("w'@shard", true, false);
    }
    if (random.chance(0.3)) {
      w.value("y", small()).liveOut = true;
      kernel("last", random.chance(0.5) ? "w'" : "G", "y");
    }
  }

  void addLoop() {
    w.p.addSegment("body", 2 + random.below(3));
    w.p.addSegment("after");
    const int64_t bytes = 2 + int64_t(random.below(8)), part = (bytes + 1) / 2;
    w.value("v", small());
    kernel("begin", "", "v");
    w.value("g", small());
    w.value("t", part);
    w.form("t@whole", "t", kDevice).bytes = bytes;
    Value &c = w.value("c", part);
    c.kind = ValueKind::Carried;
    c.carriedFrom = w.id("t");
    w.form("c@whole", "c", kDevice).carriedFrom = w.id("t@whole");
    w.p.values[w.id("c@whole")].bytes = bytes;
    kernel("f", "v", "g", kCompute, 1);
    w.value("pieces", w.p.values[w.id("g")].bytes);
    kernel("exchange", "g", "pieces", dp, 1);
    w.p.recipes.back().recomputable &= random.chance(0.3);
    Recipe add = w.recipe("add", "pieces c", "t", small());
    if (random.chance(0.5))
      add.overwrites = {{w.id("c"), w.id("t"), false}};
    const InstructionId sum = w.p.addInstruction(1, add);
    if (random.chance(0.5)) {
      w.p.addVariant(sum, w.recipe("whole", "pieces c@whole", "t", small()));
      gather("c@whole", "c").segment = 1;
    }
    gather("t@whole", "t");
    w.value("y", small()).liveOut = true;
    kernel("last", random.chance(0.6) ? "t@whole" : "t v", "y", kCompute, 2);
  }
};

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_NETWORKBRUTE_H
