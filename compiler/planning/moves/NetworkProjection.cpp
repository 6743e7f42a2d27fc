#include "compiler/planning/moves/NetworkProjection.h"

#include "compiler/planning/moves/ProjectedRecipe.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <limits>
#include <map>

using namespace tmc::planning;

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

class Projector {
public:
  Projector(const Problem &whole, const std::vector<char> &isShard,
            double price)
      : whole(whole), price(price), family(whole.values.size()),
        projected(whole.values.size(), kNone), heir(projected),
        home(whole.values.size()), isThere(whole.values.size(), 0),
        isGathered(isThere) {
    findFamilies();
    findHomes(isShard);
  }

  absl::StatusOr<NetworkProjection> run() {
    addHouse();
    for (const Segment &s : whole.segments) {
      segment = result.problem.addSegment(s.name, s.trips);
      for (size_t v = 0; v < isGathered.size(); ++v)
        if (isGathered[v])
          isThere[v] = isGathered[v] = 0, projected[v] = kNone;
      for (InstructionId i : s.instructions)
        if (absl::Status status = addInstruction(i); !status.ok())
          return status;
    }
    addOtherRecipes();
    return std::move(result);
  }

private:
  bool isPersistent(ValueId v) const {
    return whole.values[whole.contentOf(v)].kind == ValueKind::Persistent;
  }
  /// True if the family of v is at home, or has its content's main form.
  bool isOwn(ValueId v) const {
    return family[v] == family[home[whole.contentOf(v)]];
  }

  /// Forms that copy engines connect are one family, named by its value on the
  /// device; networks lead from one family to another.
  void findFamilies() {
    const size_t n = whole.values.size();
    for (size_t v = 0; v < n; ++v)
      family[v] = ValueId(v);
    auto unite = [&](ValueId a, ValueId b) {
      const ValueId from = family[b], to = family[a];
      for (ValueId &f : family)
        f = f == from ? to : f;
    };
    for (const Recipe &r : whole.recipes)
      if (infoOf(whole.engines[r.engine].kind).copies)
        unite(r.reads[0], r.writes[0]);
    std::vector<ValueId> name(n, kNone);
    for (size_t v = 0; v < n; ++v)
      if (ValueId &its = name[family[v]];
          its == kNone || (whole.values[its].space && !whole.values[v].space))
        its = ValueId(v);
    for (ValueId &f : family)
      f = name[f];
  }

  void findHomes(const std::vector<char> &isShard) {
    for (size_t v = 0; v < home.size(); ++v) {
      home[v] = ValueId(v);
      if (ValueId old = whole.values[v].updates; old != kNone)
        heir[old] = ValueId(v);
    }
    for (const ShardableContent &c : shardableContents(whole))
      if (isShard[c.whole]) {
        home[c.whole] = c.shard;
        result.homes.push_back(c.shard);
      }
    for (size_t v = 0; v < home.size(); ++v)
      if (const Value &value = whole.values[v];
          value.kind == ValueKind::Persistent && value.formOf == kNone) {
        if (value.updates == kNone)
          isThere[home[v]] = 1;
        else if (ValueId next = heir[home[whole.contentOf(value.updates)]];
                 next != kNone)
          home[v] = next;
      } else if (value.kind == ValueKind::Carried && value.formOf == kNone) {
        isThere[v] = 1;
      }
  }

  void addHouse() {
    Problem &p = result.problem;
    p.spaces = whole.spaces;
    p.engines.clear();
    p.reservedBytes = whole.reservedBytes;
    for (const Engine &e : whole.engines) {
      const bool isNetwork = e.kind == EngineKind::Network;
      engineOf.push_back(isNetwork ? 0 : EngineId(p.engines.size()));
      if (!isNetwork)
        p.engines.push_back(e);
    }
    for (size_t v = 0; v < whole.values.size(); ++v)
      if (isPersistent(ValueId(v)) && isOwn(ValueId(v)) &&
          whole.values[v].updates == kNone)
        at(ValueId(v));
  }

  /// The projection of a value, added if it doesn't exist yet.
  ValueId at(ValueId v) {
    if (projected[v] != kNone)
      return projected[v];
    Value value = whole.values[v];
    value.formOf = family[v] == v ? kNone : at(family[v]);
    if (isOwn(v)) {
      for (ValueId *other :
           {&value.updates, &value.carriedFrom, &value.initial})
        if (*other != kNone)
          *other = at(*other);
    } else {
      value.kind = ValueKind::Temporary;
      value.updates = value.carriedFrom = value.initial = kNone;
      value.liveOut = false;
    }
    if (projected[v] != kNone)
      return projected[v];
    result.values.push_back(v);
    return projected[v] = result.problem.addValue(std::move(value));
  }

  int64_t priceOf(const Recipe &r) const {
    return std::max<int64_t>(1, int64_t(double(r.cost) * price));
  }

  Recipe kernel(const Recipe &r) {
    Recipe k = onValues(r, [this](ValueId v) { return at(v); });
    const bool isNetwork = whole.isOnNetwork(r);
    if (isNetwork)
      k.cost = r.recomputable ? priceOf(r) : 0;
    if (isNetwork || whole.spaces.size() == 1)
      for (ValueId w : r.writes)
        if (isPersistent(w) && isOwn(w)) {
          updateInPlace(result.problem, k, at(w));
          k.recomputable = false;
        }
    k.engine = engineOf[r.engine];
    k.instruction = kNone;
    if (segment != kNone)
      k.segment = kNone; // `addInstruction` binds it.
    return k;
  }

  RecipeId gatherOf(ValueId v) const {
    for (size_t r = 0; r < whole.recipes.size(); ++r)
      if (const Recipe &recipe = whole.recipes[r];
          whole.isGather(recipe) && recipe.writes[0] == v &&
          isThere[family[recipe.reads[0]]] &&
          (recipe.segment == kNone || recipe.segment == segment))
        return RecipeId(r);
    return kNone;
  }
  void addGather(RecipeId gather) {
    const Recipe &r = whole.recipes[gather];
    result.problem.addInstruction(segment, kernel(r));
    result.origins.push_back({gather, kNone});
    isThere[family[r.writes[0]]] = 1;
  }

  /// Bytes that the recipe's reads lack, and those of values that aren't at
  /// home; kNever: one can't be made.
  int64_t lackOf(const Recipe &r) const {
    int64_t bytes = 0;
    for (ValueId v : r.reads) {
      const bool there = isThere[family[v]];
      if (!there && gatherOf(v) == kNone)
        return kNever;
      if (!there || (isPersistent(v) && !isOwn(v)))
        bytes += whole.values[v].bytes;
    }
    return bytes;
  }

  absl::Status addInstruction(InstructionId i) {
    const std::vector<RecipeId> &recipes = whole.instructions[i].recipes;
    RecipeId first = kNone;
    int64_t least = kNever;
    for (RecipeId r : recipes)
      if (const Recipe &recipe = whole.recipes[r];
          recipe.engine == 0 || whole.isOnNetwork(recipe))
        if (const int64_t lack = lackOf(recipe); lack < least)
          first = r, least = lack;
    if (first == kNone)
      return absl::NotFoundError(absl::StrCat(
          "nothing makes what '", whole.instructions[i].name, "' reads"));
    const Recipe &chosen = whole.recipes[first];
    for (ValueId v : chosen.reads)
      if (!isThere[family[v]]) {
        isGathered[v] = 1;
        addGather(gatherOf(v));
      }
    const InstructionId made =
        result.problem.addInstruction(segment, kernel(chosen));
    result.origins.push_back({first, i});
    const std::vector<ValueId> contents = familiesOf(chosen.writes);
    for (RecipeId r : recipes) {
      const Recipe &other = whole.recipes[r];
      const bool canRun =
          std::all_of(other.reads.begin(), other.reads.end(),
                      [&](ValueId v) { return isThere[family[v]]; });
      if (r == first || !canRun || familiesOf(other.writes) != contents)
        continue;
      result.problem.addVariant(made, kernel(other));
      result.origins.push_back({r, i});
    }
    for (ValueId w : chosen.writes)
      isThere[family[w]] = 1;
    for (ValueId w : chosen.writes)
      if (const ValueId now = home[whole.contentOf(w)];
          (isPersistent(w) || whole.values[whole.contentOf(w)].liveOut) &&
          !isThere[family[now]]) {
        const RecipeId gather = gatherOf(now);
        if (gather == kNone)
          return absl::NotFoundError(absl::StrCat(
              "nothing makes '", whole.values[now].name, "', which is a home"));
        addGather(gather);
      }
    return absl::OkStatus();
  }
  std::vector<ValueId> familiesOf(const std::vector<ValueId> &values) const {
    std::vector<ValueId> families;
    for (ValueId v : values)
      families.push_back(family[v]);
    std::sort(families.begin(), families.end());
    return families;
  }

  /// Moves between forms of a family that is there, and kernels that only
  /// recompute.
  void addOtherRecipes() {
    segment = kNone;
    auto isKept = [&](ValueId v) {
      return isThere[family[v]] && !isGathered[family[v]] &&
             (whole.values[v].space == 0 || isOwn(v));
    };
    for (size_t i = 0; i < whole.recipes.size(); ++i) {
      const Recipe &r = whole.recipes[i];
      if (r.instruction != kNone || whole.isOnNetwork(r) ||
          !std::all_of(r.reads.begin(), r.reads.end(), isKept) ||
          !std::all_of(r.writes.begin(), r.writes.end(), isKept) ||
          (r.engine == 0 && whole.isCopy(r)))
        continue;
      result.problem.addRecipe(kernel(r));
      result.origins.push_back({RecipeId(i), kNone});
    }
  }

  const Problem &whole;
  const double price;
  NetworkProjection result;
  SegmentId segment = kNone;   // The current one.
  std::vector<ValueId> family; // Per value.
  std::vector<EngineId> engineOf;
  std::vector<ValueId> projected, heir;
  std::vector<ValueId> home; // Per main form.
  /// Per family: there so far, and by a gather of this segment.
  std::vector<char> isThere, isGathered;
};

} // namespace

std::vector<ShardableContent>
tmc::planning::shardableContents(const Problem &problem) {
  std::map<ValueId, ValueId> shards; // By main form.
  for (const Recipe &r : problem.recipes) {
    if (!problem.isGather(r) || !r.recomputable)
      continue;
    const Value &main = problem.values[r.writes[0]];
    const Value &shard = problem.values[r.reads[0]];
    if (main.formOf == kNone && main.kind == ValueKind::Persistent &&
        main.updates == kNone && !main.pinned &&
        shard.kind == ValueKind::Persistent)
      shards.emplace(r.writes[0], r.reads[0]);
  }
  std::vector<ShardableContent> contents;
  for (auto [whole, shard] : shards)
    contents.push_back({whole, shard});
  return contents;
}

absl::StatusOr<NetworkProjection>
tmc::planning::projectNetwork(const Problem &problem,
                              const std::vector<char> &isShard, double price) {
  return Projector(problem, isShard, price).run();
}

Solution tmc::planning::restoreNetwork(const Problem &problem,
                                       const NetworkProjection &projection,
                                       const Solution &planned) {
  Solution solution;
  std::vector<char> isHome(problem.values.size(), 0);
  for (ValueId h : planned.homes) {
    const ValueId v = projection.values[h];
    isHome[problem.contentOf(v)] = 1;
    solution.homes.push_back(v);
  }
  for (ValueId h : projection.homes)
    if (!isHome[problem.contentOf(h)])
      solution.homes.push_back(h);
  for (const std::vector<Execution> &list : planned.segments) {
    std::vector<Execution> &out = solution.segments.emplace_back();
    std::map<int32_t, int32_t> numbers; // By the plan's.
    int32_t next = 0;
    for (const Execution &e : list) {
      const NetworkProjection::Origin &origin = projection.origins[e.recipe];
      const InstructionId instruction =
          e.instruction == kNone ? kNone : origin.instruction;
      Execution made{origin.recipe, instruction, {}, e.phase};
      if (problem.isOnNetwork(problem.recipes[origin.recipe])) {
        made.phase = Phase::Start;
        made.work = next++;
        out.push_back(made);
        made.phase = Phase::Done;
      } else if (e.phase != Phase::Whole) {
        auto [number, isNew] = numbers.emplace(e.work, next);
        next += isNew;
        made.work = number->second;
      }
      out.push_back(std::move(made));
    }
  }
  takeOverwrites(problem, solution);
  return solution;
}
