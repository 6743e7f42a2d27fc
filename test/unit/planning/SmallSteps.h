// SmallSteps.h - small random training steps of two segments, with a host and a
// file.
//
// Forward and backward kernels stand in the first segment, updates in the
// second. Any content may have forms on the host and in the file, any of the
// moves between its forms may be missing, and an update may run on the host
// where it has its operands: problems that no step of a model comes to, but
// good ones.

#ifndef TMC_TEST_UNIT_PLANNING_SMALLSTEPS_H
#define TMC_TEST_UNIT_PLANNING_SMALLSTEPS_H

#include "test/unit/planning/SpaceProblem.h"

#include "compiler/planning/model/Random.h"

namespace tmc::planning {

class SmallStep {
public:
  explicit SmallStep(Random &random) : random(random) {
    w.p.addSegment("s0");
    w.p.addSegment("s1");
    layers = 1 + int(random.below(3));
    addValues();
    addForms();
    addKernels();
    addMoves();
  }

  SpaceProblem w;

private:
  Random &random;
  int layers = 0;
  std::vector<std::string> contents; // Main forms, what is updated before what
                                     // updates it.
  std::vector<char> hasMoment;

  int64_t small() { return 1 + int64_t(random.below(4)); }
  static std::string name(const char *kind, int layer) {
    return kind + std::to_string(layer);
  }

  void content(const std::string &name, int64_t bytes, bool persists,
               const std::string &old = "") {
    Value &value = w.value(name, bytes);
    if (persists)
      value.kind = ValueKind::Persistent;
    if (!old.empty())
      value.updates = w.id(old);
    contents.push_back(name);
  }

  void addValues() {
    for (int i = 0; i < layers; ++i) {
      const int64_t bytes = small();
      hasMoment.push_back(random.chance(0.6));
      content(name("p", i), bytes, true);
      content(name("p", i) + "'", bytes, true, name("p", i));
      if (hasMoment[i]) {
        const int64_t moment = small();
        content(name("m", i), moment, true);
        content(name("m", i) + "'", moment, true, name("m", i));
      }
      content(name("a", i), small(), false);
      content(name("d", i), small(), false);
      content(name("g", i), bytes, false);
    }
  }

  /// What is updated has forms as what updates it has.
  void addForms() {
    std::vector<char> onHost(w.p.values.size(), 0), inFile = onHost;
    const size_t count = contents.size();
    for (size_t v = 0; v < count; ++v) {
      const ValueId old = w.p.values[v].updates;
      onHost[v] = old == kNone ? random.chance(0.7) : onHost[old];
      inFile[v] = old == kNone ? onHost[v] && random.chance(0.5) : inFile[old];
      for (const char *where : {"@host", "@file"}) {
        const bool isHost = where[1] == 'h';
        if (!(isHost ? onHost : inFile)[v])
          continue;
        Value &form =
            w.form(contents[v] + where, contents[v], isHost ? kHost : kFile);
        if (old != kNone)
          form.updates = w.id(contents[size_t(old)] + where);
      }
    }
  }

  Recipe kernel(const std::string &name, const std::string &reads,
                const std::string &writes, double again) {
    Recipe r = w.recipe(name, reads, writes, small());
    r.recomputable = random.chance(again);
    if (random.chance(0.2))
      r.workspaceBytes = small();
    return r;
  }

  void addKernels() {
    for (int i = 0; i < layers; ++i)
      w.p.addInstruction(
          0,
          kernel(name("F", i), name("p", i) + (i ? " " + name("a", i - 1) : ""),
                 name("a", i), 0.5));
    for (int i = layers; i-- > 0;)
      w.p.addInstruction(
          0, kernel(name("B", i),
                    name("a", i) + " " + name("p", i) +
                        (i + 1 < layers ? " " + name("d", i + 1) : ""),
                    name("d", i) + " " + name("g", i), 0.3));
    for (int i = 0; i < layers; ++i)
      addUpdate(i);
  }

  void addUpdate(int i) {
    std::vector<std::string> states = {name("p", i)};
    if (hasMoment[i])
      states.push_back(name("m", i));
    auto recipe = [&](const std::string &where, EngineId engine) {
      std::string reads = name("g", i) + where, writes;
      for (const std::string &state : states) {
        reads += " " + state + where;
        writes += " " + state + "'" + where;
      }
      Recipe r = w.recipe(name("U", i) + where, reads, writes, small(), engine);
      for (const std::string &state : states)
        r.overwrites.push_back(
            {w.id(state + where), w.id(state + "'" + where), true});
      return r;
    };
    const InstructionId update = w.p.addInstruction(1, recipe("", kCompute));
    bool isThere = w.id(name("g", i) + "@host") != kNone;
    for (const std::string &state : states)
      isThere &= w.id(state + "@host") != kNone;
    if (isThere && random.chance(0.6))
      w.p.addVariant(update, recipe("@host", kHostEngine));
  }

  void addMoves() {
    for (const std::string &c : contents) {
      auto move = [&](const char *verb, const std::string &from,
                      const std::string &to, EngineId engine) {
        if (w.id(from) != kNone && w.id(to) != kNone && random.chance(0.75))
          w.move(verb + c, from, to, engine, 1 + int64_t(random.below(8)));
      };
      move("stash_", c, c + "@host", kD2H);
      move("fetch_", c + "@host", c, kH2D);
      move("write_", c + "@host", c + "@file", kWrite);
      move("read_", c + "@file", c + "@host", kRead);
    }
  }
};

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_SMALLSTEPS_H
