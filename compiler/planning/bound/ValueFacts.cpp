#include "compiler/planning/bound/ValueFacts.h"

#include <algorithm>
#include <numeric>

namespace tmc::planning {

ValueId namedIn(const Problem &problem, ValueId v, SegmentId s) {
  const Value &value = problem.values[v];
  return value.kind == ValueKind::Carried && problem.segments[s].trips == 1
             ? value.initial
             : v;
}

bool isRead(const Recipe &recipe, ValueId v) {
  return std::find(recipe.reads.begin(), recipe.reads.end(), v) !=
         recipe.reads.end();
}

bool mayBeFree(const Problem &problem, const Recipe &recipe) {
  return problem.isMove(recipe) &&
         std::any_of(recipe.reads.begin(), recipe.reads.end(), [&](ValueId v) {
           return problem.values[v].kind == ValueKind::Carried;
         });
}

ValueFacts::ValueFacts(const Problem &problem)
    : nextForm(problem.values.size(), kNone), heir(nextForm),
      resident(problem.values.size(), 0),
      residentBytes(problem.spaces.size(), 0), ownWritten(resident),
      readers(problem.values.size(), 0) {
  findForms(problem);
  findResident(problem);
  findMakers(problem);
  findUses(problem);
}

void ValueFacts::findForms(const Problem &problem) {
  for (ValueId v = ValueId(problem.values.size()); v-- > 0;) {
    const Value &value = problem.values[v];
    if (value.formOf != kNone) {
      nextForm[v] = nextForm[value.formOf];
      nextForm[value.formOf] = v;
    }
    if (value.updates != kNone)
      heir[value.updates] = v;
  }
}

/// Finds chains of updates in which every content has one possible home.
void ValueFacts::findResident(const Problem &problem) {
  auto onlyHome = [&](ValueId main) {
    ValueId home = kNone;
    for (ValueId f = main; f != kNone; f = nextForm[f])
      if (problem.values[f].kind == ValueKind::Persistent) {
        if (home != kNone)
          return problem.values[main].pinned ? main : kNone;
        home = f;
      }
    return home;
  };
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const Value &value = problem.values[v];
    if (value.kind != ValueKind::Persistent || value.updates != kNone)
      continue;
    bool only = true;
    int64_t bytes = value.bytes;
    for (ValueId u = ValueId(v); u != kNone; u = heir[u]) {
      only &= onlyHome(problem.contentOf(u)) == u;
      bytes = std::min(bytes, problem.values[u].bytes);
    }
    if (!only)
      continue;
    residentBytes[value.space] += bytes;
    for (ValueId u = ValueId(v); u != kNone; u = heir[u])
      resident[u] = 1;
  }
}

void ValueFacts::findMakers(const Problem &problem) {
  auto makes = [&](const Recipe &recipe) {
    return recipe.recomputable &&
           std::none_of(recipe.writes.begin(), recipe.writes.end(),
                        [&](ValueId w) { return problem.values[w].pinned; });
  };
  makerBegin.assign(problem.values.size() + 1, 0);
  for (const Recipe &recipe : problem.recipes)
    if (makes(recipe))
      for (ValueId w : recipe.writes)
        ++makerBegin[w + 1];
  std::partial_sum(makerBegin.begin(), makerBegin.end(), makerBegin.begin());
  makers.resize(makerBegin.back());
  std::vector<int32_t> at = makerBegin;
  for (size_t r = 0; r < problem.recipes.size(); ++r) {
    const Recipe &recipe = problem.recipes[r];
    if (!makes(recipe))
      continue;
    int64_t bytes = 0;
    for (ValueId w : recipe.writes)
      bytes += problem.values[w].bytes;
    for (ValueId w : recipe.writes) {
      int64_t part = recipe.cost;
      if (recipe.writes.size() > 1)
        part = bytes ? int64_t(__int128(recipe.cost) * problem.values[w].bytes /
                               bytes)
                     : 0;
      makers[at[w]++] = {RecipeId(r), recipe.engine, recipe.segment, part,
                         mayBeFree(problem, recipe)};
    }
  }
}

void ValueFacts::findUses(const Problem &problem) {
  for (const Instruction &instruction : problem.instructions) {
    // A value counts once for each instruction.
    const std::vector<RecipeId> &recipes = instruction.recipes;
    for (size_t r = 0; r < recipes.size(); ++r) {
      const Recipe &recipe = problem.recipes[recipes[r]];
      for (ValueId w : recipe.writes)
        ownWritten[w] = 1;
      for (ValueId read : recipe.reads) {
        bool isNew = true;
        for (size_t q = 0; q < r && isNew; ++q)
          isNew = !isRead(problem.recipes[recipes[q]], read);
        if (ValueId v = namedIn(problem, read, instruction.segment);
            v != kNone && isNew)
          readers[v] += problem.segments[instruction.segment].trips;
      }
    }
  }
}

} // namespace tmc::planning
