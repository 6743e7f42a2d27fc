// SpaceProblem.h - problems with a host and a file, and lists as Problem.h's
// examples write them.

#ifndef TMC_TEST_UNIT_PLANNING_SPACEPROBLEM_H
#define TMC_TEST_UNIT_PLANNING_SPACEPROBLEM_H

#include "compiler/planning/model/Problem.h"

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace tmc::planning {

inline constexpr SpaceId kDevice = 0, kHost = 1, kFile = 2;
inline constexpr EngineId kCompute = 0, kD2H = 1, kH2D = 2, kHostEngine = 3,
                          kRead = 4, kWrite = 5;

/// A problem whose values and recipes go by their names.
struct SpaceProblem {
  Problem p;

  SpaceProblem() {
    p.spaces.push_back({"host", SpaceKind::Host});
    p.spaces.push_back({"file", SpaceKind::File});
    p.engines.push_back({"d2h", EngineKind::DeviceToHost});
    p.engines.push_back({"h2d", EngineKind::HostToDevice});
    p.engines.push_back({"cpu", EngineKind::Host});
    p.engines.push_back({"read", EngineKind::FileRead});
    p.engines.push_back({"write", EngineKind::FileWrite});
  }

  Value &value(const std::string &name, int64_t bytes = 100) {
    Value v;
    v.name = name;
    v.bytes = bytes;
    p.addValue(v);
    return p.values.back();
  }
  /// Another form of `of`, with its kind and the same bytes.
  Value &form(const std::string &name, const std::string &of,
              SpaceId space = kHost) {
    Value v = p.values[id(of)];
    v.name = name;
    v.formOf = id(of);
    v.space = space;
    v.updates = v.carriedFrom = v.initial = kNone;
    p.addValue(v);
    return p.values.back();
  }
  ValueId id(const std::string &name) const {
    for (size_t v = 0; v < p.values.size(); ++v)
      if (p.values[v].name == name)
        return ValueId(v);
    return kNone;
  }
  std::vector<ValueId> ids(const std::string &names) const {
    std::istringstream words(names);
    std::vector<ValueId> list;
    for (std::string word; words >> word;)
      list.push_back(id(word));
    return list;
  }
  Recipe recipe(const std::string &name, const std::string &reads,
                const std::string &writes, int64_t cost = 10,
                EngineId engine = kCompute) const {
    Recipe r;
    r.name = name;
    r.reads = ids(reads);
    r.writes = ids(writes);
    r.cost = cost;
    r.engine = engine;
    return r;
  }
  /// A copy that any plan may run anywhere.
  Recipe &move(const std::string &name, const std::string &from,
               const std::string &to, EngineId engine, int64_t cost = 15) {
    Recipe r = recipe(name, from, to, cost, engine);
    r.recomputable = true;
    p.addRecipe(r);
    return p.recipes.back();
  }
  RecipeId recipeId(const std::string &name) const {
    for (size_t r = 0; r < p.recipes.size(); ++r)
      if (p.recipes[r].name == name)
        return RecipeId(r);
    return kNone;
  }

  /// "f1 stash( f2 )stash | g": segments apart by a bar; "name(" begins work
  /// and ")name" is its Done. A recipe of an instruction runs for it the first
  /// time, each overwrite of it taken.
  Solution list(const std::string &text) const {
    Solution solution;
    solution.segments.emplace_back();
    std::map<std::string, int32_t> open;
    std::vector<char> ran(p.instructions.size(), 0);
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      if (word == "|") {
        solution.segments.emplace_back();
        continue;
      }
      std::vector<Execution> &entries = solution.segments.back();
      Execution e;
      if (word.front() == ')') {
        e = entries[open[word.substr(1)]];
        e.phase = Phase::Done;
        e.overwrites.clear();
        entries.push_back(e);
        continue;
      }
      if (word.back() == '(') {
        word.pop_back();
        e.phase = Phase::Start;
        e.work = int32_t(entries.size());
        open[word] = e.work;
      }
      e.recipe = recipeId(word);
      const Recipe &r = p.recipes[e.recipe];
      if (r.instruction != kNone && !ran[r.instruction]++)
        e.instruction = r.instruction;
      for (size_t o = 0; o < r.overwrites.size(); ++o)
        e.overwrites.push_back(int32_t(o));
      entries.push_back(e);
    }
    return solution;
  }
};

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_SPACEPROBLEM_H
