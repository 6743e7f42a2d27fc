#include "compiler/planning/moves/Projection.h"

#include "compiler/planning/moves/ProjectedRecipe.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

using namespace tmc::planning;

namespace {

const Recipe &chosenRecipe(const Problem &problem, const SpaceChoice &choice,
                           InstructionId i) {
  return problem.recipes[problem.instructions[i].recipes[choice.variants[i]]];
}

/// Marks contents of the device that work on the host reads, by main form.
std::vector<char> stashedContents(const Problem &problem,
                                  const SpaceChoice &choice,
                                  const std::vector<ValueId> &home) {
  std::vector<char> isStashed(problem.values.size(), 0);
  std::vector<char> isMadeThere = isStashed;
  for (const Segment &s : problem.segments)
    for (InstructionId i : s.instructions)
      if (const Recipe &r = chosenRecipe(problem, choice, i);
          problem.isBeside(r)) {
        for (ValueId v : r.reads)
          if (ValueId main = problem.contentOf(v);
              home[v] != v && !isMadeThere[main])
            isStashed[main] = 1;
        for (ValueId v : r.writes)
          isMadeThere[problem.contentOf(v)] = 1;
      }
  return isStashed;
}

/// Marks contents that are carried to the next trip, by main form.
std::vector<char> carriedContents(const Problem &problem) {
  std::vector<char> isCarried(problem.values.size(), 0);
  for (const Value &value : problem.values)
    if (value.carriedFrom != kNone)
      isCarried[problem.contentOf(value.carriedFrom)] = 1;
  return isCarried;
}

class Projector {
public:
  Projector(const Problem &whole, const SpaceChoice &choice, double price)
      : whole(whole), choice(choice), price(price),
        moves(fastestMoves(whole, 0)) {
    Solution homes;
    homes.homes = choice.homes;
    home = homesOf(whole, homes);
    isStashed = stashedContents(whole, choice, home);
    isCarried = carriedContents(whole);
  }

  absl::StatusOr<Projection> run() {
    addValues();
    start();
    result.problem.reservedBytes = whole.reservedBytes;
    for (const Segment &s : whole.segments) {
      segment = result.problem.addSegment(s.name, s.trips);
      forgetFetched();
      for (InstructionId i : s.instructions)
        addInstruction(i);
      fetchHeld();
      if (!failure.ok())
        return failure;
    }
    addRecomputations();
    return std::move(result);
  }

private:
  bool isOnDevice(ValueId v) const { return whole.values[v].space == 0; }
  bool isAtHome(ValueId v) const { return home[v] == v; }
  bool isPersistent(ValueId v) const {
    return whole.values[v].kind == ValueKind::Persistent;
  }
  const Recipe &chosen(InstructionId i) const {
    return chosenRecipe(whole, choice, i);
  }

  void addValues() {
    projected.assign(whole.values.size(), kNone);
    for (size_t v = 0; v < whole.values.size(); ++v)
      if (isOnDevice(ValueId(v)) && isAtHome(ValueId(v)) &&
          isPersistent(ValueId(v)))
        at(ValueId(v));
  }
  /// The projection of the value, added if it doesn't exist yet.
  ValueId at(ValueId v) {
    if (projected[v] != kNone)
      return projected[v];
    Value value = whole.values[v];
    value.formOf = kNone;
    if (value.kind == ValueKind::Persistent && !isAtHome(v)) {
      value.kind = ValueKind::Temporary;
      value.updates = kNone;
    } else if (value.updates != kNone) {
      value.updates = at(value.updates);
    }
    if (value.carriedFrom != kNone)
      value.carriedFrom = at(value.carriedFrom);
    if (value.initial != kNone) {
      value.initial = at(value.initial);
      result.problem.values[value.initial].pinned = true;
    }
    return projected[v] = addValue(std::move(value), v);
  }

  /// A value from a home elsewhere comes anew in each segment, as a value of
  /// its own: held from one segment to the next, it would be alive in every
  /// trip.
  void forgetFetched() {
    const bool isLoop = whole.segments[segment].trips > 1;
    for (size_t v = 0; v < whole.values.size(); ++v)
      if ((isFetched[v] && isPersistent(ValueId(v)) &&
           !(isLoop && isHeld[v])) ||
          (comesAnew[v] && isThere[v])) {
        isThere[v] = isFetched[v] = 0;
        projected[v] = kNone;
      }
  }

  /// Before a loop, fetches its inputs that are to be held over its trips.
  void fetchHeld() {
    const size_t next = size_t(segment) + 1;
    if (next == whole.segments.size() || whole.segments[segment].trips > 1 ||
        whole.segments[next].trips == 1)
      return;
    for (InstructionId i : whole.segments[next].instructions)
      for (ValueId v : chosen(i).reads)
        if (isHeld[v] && !isThere[v])
          addFetch(v);
  }

  ValueId addValue(Value value, ValueId of) {
    result.values.push_back(of);
    return result.problem.addValue(std::move(value));
  }

  int64_t priceOf(RecipeId move) const {
    const double seconds = std::isinf(price) ? 1 : price;
    return std::max<int64_t>(
        1, int64_t(double(whole.recipes[move].cost) * seconds));
  }

  void origin(Projection::Kind kind, RecipeId recipe,
              InstructionId instruction = kNone, RecipeId stash = kNone) {
    result.origins.push_back({kind, recipe, instruction, stash});
  }

  /// A kernel's recipe without values of other spaces.
  Recipe kernel(const Recipe &r) {
    Recipe k = onValues(r, [this](ValueId v) { return at(v); });
    for (ValueId v : r.writes)
      if (isPersistent(v) && isAtHome(v))
        updateInPlace(result.problem, k, at(v));
    k.instruction = kNone; // Segments have the same numbers.
    return k;
  }

  /// True if a move is offered that `does` something with `v`. If not, the
  /// choice is impossible.
  bool isOffered(RecipeId move, ValueId v, const char *does) {
    if (move == kNone)
      failure.Update(absl::NotFoundError(
          absl::StrCat("nothing ", does, " '", whole.values[v].name, "'")));
    return move != kNone;
  }

  /// Adds `r`, which fetches `v`.
  void addFetchOf(ValueId v, Recipe r) {
    r.name = whole.recipes[moves.in[v]].name;
    result.problem.addInstruction(segment, std::move(r));
    origin(Projection::Kind::Fetch, moves.in[v]);
    isThere[v] = 1;
  }

  void addFetch(ValueId v) {
    if (!isOffered(moves.in[v], v, "fetches"))
      return;
    Recipe r;
    r.writes = {at(v)};
    r.cost = priceOf(moves.in[v]);
    r.recomputable = true;
    if (ValueId mark = comesAnew[v] ? marks[v] : markOf(v); mark != kNone)
      r.reads = {mark};
    addFetchOf(v, std::move(r));
    isFetched[v] = 1;
  }

  void addStash(ValueId v) {
    RecipeId move = moves.out[v];
    if (!isOffered(move, v, "stashes"))
      return;
    Recipe r;
    r.name = whole.recipes[move].name;
    r.reads = {at(v)};
    if (whole.values[v].kind == ValueKind::Temporary) {
      // The mark keeps a fetch from running before the stash.
      Value mark;
      mark.name = whole.values[v].name + " there";
      marks[v] = addValue(mark, kNone);
      r.writes = {marks[v]};
    } else {
      endOldHome(v, r);
    }
    result.problem.addInstruction(segment, std::move(r));
    origin(Projection::Kind::Stash, move);
    hasStash[v] = 1;
  }

  /// Once `r` has brought `v` home, nothing can fetch the old version from
  /// there.
  void endOldHome(ValueId v, Recipe &r) {
    const ValueId old = whole.values[v].updates;
    const ValueId mark = old == kNone ? kNone : marks[whole.contentOf(old)];
    if (mark == kNone)
      return;
    Value after = result.problem.values[mark];
    after.name += "'";
    after.updates = mark;
    const ValueId next = addValue(after, kNone);
    r.reads.push_back(mark);
    r.writes.push_back(next);
    r.overwrites.push_back({mark, next, true});
  }

  /// A mark of no bytes: a fetch of `v` from its home reads it, and the work
  /// that overwrites the home replaces it. kNone: no work overwrites the home.
  ValueId markOf(ValueId v) {
    ValueId main = whole.contentOf(v);
    if (!isOverwritten[main])
      return kNone;
    if (marks[main] == kNone) {
      Value mark;
      mark.name = whole.values[main].name + " there";
      mark.kind = ValueKind::Persistent;
      marks[main] = addValue(mark, kNone);
    }
    return marks[main];
  }

  void addInstruction(InstructionId i) {
    if (whole.isBeside(chosen(i)))
      return addWork(i);
    const std::vector<RecipeId> &recipes = whole.instructions[i].recipes;
    const Recipe &first = chosen(i);
    for (ValueId v : first.reads)
      if (!isThere[v])
        addFetch(v);
    InstructionId made = result.problem.addInstruction(segment, kernel(first));
    origin(Projection::Kind::Kernel, recipes[choice.variants[i]], i);
    for (RecipeId r : recipes) {
      const Recipe &other = whole.recipes[r];
      bool canRun =
          std::all_of(other.reads.begin(), other.reads.end(),
                      [&](ValueId v) { return isOnDevice(v) && isThere[v]; });
      if (&other == &first || other.engine != 0 || !canRun)
        continue;
      result.problem.addVariant(made, kernel(other));
      origin(Projection::Kind::Kernel, r, i);
    }
    for (ValueId v : first.writes) {
      isThere[v] = 1;
      madeIn[v] = segment;
      bool leaves = isPersistent(v) && !isAtHome(v);
      // A carried value is stashed where the host reads it: after the last
      // trip.
      if (leaves || comesAnew[v] ||
          (isStashed[whole.contentOf(v)] && !isCarried[v]))
        addStash(v);
    }
  }

  void start() {
    isThere.assign(whole.values.size(), 0);
    hasStash = isFetched = isThere;
    madeIn.assign(whole.values.size(), kNone);
    isOverwritten.assign(whole.values.size(), 0);
    comesAnew = isHeld = isOverwritten;
    for (ValueId v : choice.loops.anew)
      comesAnew[v] = 1;
    for (ValueId v : choice.loops.held)
      isHeld[v] = 1;
    marks.assign(whole.values.size(), kNone);
    for (size_t v = 0; v < whole.values.size(); ++v) {
      const Value &value = whole.values[v];
      isThere[v] = isOnDevice(ValueId(v)) &&
                   (value.kind == ValueKind::Carried ||
                    (isPersistent(ValueId(v)) && value.updates == kNone &&
                     isAtHome(ValueId(v))));
      if (value.updates != kNone && isAtHome(ValueId(v)) && value.space != 0)
        isOverwritten[whole.contentOf(value.updates)] = 1;
    }
  }

  void addWork(InstructionId i) {
    const Recipe &r = chosen(i);
    for (ValueId v : r.reads) {
      ValueId main = whole.contentOf(v);
      if (isStashed[main] && isThere[main] && !hasStash[main])
        addStash(main);
    }
    Recipe work;
    work.name = r.name;
    for (ValueId v : r.writes)
      if (isAtHome(v))
        endOldHome(v, work);
    result.problem.addInstruction(segment, std::move(work));
    origin(Projection::Kind::Work,
           whole.instructions[i].recipes[choice.variants[i]], i);
    for (ValueId v : r.writes)
      if (ValueId main = whole.contentOf(v);
          isPersistent(main) && isAtHome(main) && isOnDevice(main))
        addReturn(main);
  }

  /// Fetches a result of the host to its home on the device, in the old
  /// content's place.
  void addReturn(ValueId v) {
    if (!isOffered(moves.in[v], v, "fetches"))
      return;
    Recipe r;
    r.writes = {at(v)};
    if (ValueId old = whole.values[v].updates; old != kNone) {
      r.reads = {at(old)};
      r.overwrites = {{at(old), at(v), true}};
    }
    addFetchOf(v, std::move(r));
  }

  /// Adds kernels that only recompute, and fetches of values that kernels make.
  void addRecomputations() {
    auto isUsable = [&](ValueId v) { return isOnDevice(v) && isThere[v]; };
    for (size_t i = 0; i < whole.recipes.size(); ++i) {
      const Recipe &r = whole.recipes[i];
      if (r.engine != 0 || r.instruction != kNone ||
          !std::all_of(r.reads.begin(), r.reads.end(), isUsable) ||
          !std::all_of(r.writes.begin(), r.writes.end(), isUsable))
        continue;
      result.problem.addRecipe(kernel(r));
      origin(Projection::Kind::Kernel, RecipeId(i));
    }
    if (std::isinf(price))
      return;
    for (size_t v = 0; v < whole.values.size(); ++v) {
      const Value &value = whole.values[v];
      if (value.space != 0 || value.kind != ValueKind::Temporary ||
          value.pinned || !isThere[v] || isFetched[v] || isCarried[v] ||
          moves.in[v] == kNone || moves.out[v] == kNone ||
          (!choice.stays.empty() && choice.stays[v]))
        continue;
      Recipe r;
      r.name = whole.recipes[moves.in[v]].name;
      r.writes = {at(v)};
      r.cost = priceOf(moves.in[v]) + (hasStash[v] ? 0 : priceOf(moves.out[v]));
      r.recomputable = true;
      if (marks[v] != kNone)
        r.reads = {marks[v]};
      if (whole.segments[madeIn[v]].trips > 1)
        r.segment = madeIn[v];
      result.problem.addRecipe(std::move(r));
      origin(Projection::Kind::Fetch, moves.in[v], kNone, moves.out[v]);
    }
  }

  const Problem &whole;
  const SpaceChoice &choice;
  const double price;
  const FastestMoves moves; // Between the device and the host.
  Projection result;
  absl::Status failure;      // The first move that isn't offered.
  SegmentId segment = kNone; // The current one.
  std::vector<ValueId> home, projected, marks;
  /// Per value: there so far, fetched first, stashed. Per main form: read by
  /// work, overwritten at home by work.
  std::vector<char> isThere, isFetched, hasStash, isStashed, isOverwritten;
  std::vector<char> isCarried;         // To the next trip, of main forms.
  std::vector<char> comesAnew, isHeld; // `LoopChoice`.
  std::vector<SegmentId> madeIn;       // By a kernel.
};

} // namespace

SpaceChoice tmc::planning::plainChoice(const Problem &problem) {
  return {{}, std::vector<int32_t>(problem.instructions.size(), 0)};
}

absl::StatusOr<Projection> tmc::planning::project(const Problem &problem,
                                                  const SpaceChoice &choice,
                                                  double price) {
  return Projector(problem, choice, price).run();
}

int64_t tmc::planning::leastMakespan(const Problem &problem,
                                     const Projection &projection) {
  using Kind = Projection::Kind;
  const Problem &device = projection.problem;
  std::vector<int64_t> there(problem.values.size(), 0); // In this trip.
  int64_t makespan = 0;
  for (const Segment &segment : device.segments) {
    std::vector<int64_t> load(problem.engines.size(), 0);
    __int128 bus = 0; // Cost times share.
    std::fill(there.begin(), there.end(), 0);
    for (InstructionId i : segment.instructions) {
      const Projection::Origin *origin = nullptr;
      int64_t cost = 0;
      __int128 least = 0;
      for (RecipeId r : device.instructions[i].recipes) {
        const Projection::Origin &is = projection.origins[r];
        const Recipe &its = problem.recipes[is.recipe];
        const __int128 shared = __int128(its.cost) * its.busShare;
        least = origin ? std::min(least, shared) : shared;
        if (!origin || its.cost < cost)
          origin = &is, cost = its.cost;
      }
      bus += least;
      const Recipe &recipe = problem.recipes[origin->recipe];
      int64_t &engine = load[recipe.engine];
      if (origin->kind == Kind::Work)
        for (ValueId v : recipe.reads)
          engine = std::max(engine, there[problem.contentOf(v)]);
      engine += cost;
      if (origin->kind == Kind::Stash)
        there[problem.contentOf(recipe.reads[0])] = load[0] + cost;
    }
    load.push_back(int64_t(bus / kWholeBus)); // R17.
    makespan += segment.trips * *std::max_element(load.begin(), load.end());
  }
  return makespan;
}
