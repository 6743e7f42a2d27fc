#include "compiler/planning/model/OfferMoves.h"

#include <algorithm>
#include <utility>

using namespace tmc::planning;

namespace {

class MoveOffer {
public:
  MoveOffer(Problem &problem, const MoveOptions &options)
      : problem(problem), options(options),
        onHost(problem.values.size(), kNone),
        canLeave(problem.values.size(), 0), canReturn(canLeave) {}

  void run() {
    host = problem.addSpace(SpaceKind::Host, options.hostBudget);
    toHost = problem.engineBetween(0, host);
    toDevice = problem.engineBetween(host, 0);
    hostEngine = problem.engineBetween(host, host);
    const ValueId count = ValueId(problem.values.size());
    if (options.activations)
      for (ValueId v = 0; v < count; ++v) {
        const Value &value = problem.values[v];
        if (value.kind == ValueKind::Temporary && !value.pinned &&
            value.formOf == kNone && !value.liveOut &&
            value.bytes >= options.leastBytes)
          addMoves(v);
      }
    if (options.optimizer || options.parameters)
      for (InstructionId i = 0; i < InstructionId(problem.instructions.size());
           ++i)
        addUpdate(i);
    if (options.parameters)
      addFrozen(count);
    if (options.fileRead.bandwidth > 0)
      addFile();
  }

private:
  /// Sets time and share of work on `bytes` of the host's memory.
  void price(Recipe &r, int64_t bytes, const MoveRate &rate) const {
    constexpr __int128 kSecond = 1'000'000'000'000;
    const int64_t memory = options.hostBandwidth;
    const int64_t bandwidth =
        memory ? std::min(memory, rate.bandwidth) : rate.bandwidth;
    r.cost = rate.latency + int64_t(bytes * kSecond / bandwidth);
    if (memory == 0 || r.cost == 0)
      return;
    const __int128 most = __int128(r.cost) * memory;
    r.busShare = int32_t(std::min<__int128>(
        kWholeBus, (bytes * kSecond * kWholeBus + most - 1) / most));
  }

  /// The value's form on the host.
  ValueId addForm(ValueId v) {
    problem.values[v].pinned = false;
    return addForm(v, onHost, host, "@host");
  }
  /// The value's form in a space; `forms` holds those that exist.
  ValueId addForm(ValueId v, std::vector<ValueId> &forms, SpaceId space,
                  const char *suffix) {
    if (forms[v] != kNone)
      return forms[v];
    Value form = problem.values[v];
    if (staysHome(v)) {
      form.kind = ValueKind::Temporary;
      form.updates = kNone;
    } else if (form.updates != kNone) {
      problem.values[form.updates].pinned = false;
      form.updates = addForm(form.updates, forms, space, suffix);
    }
    form.name += suffix;
    form.formOf = problem.contentOf(v);
    form.space = space;
    form.liveOut = false;
    form.pinned = false;
    return forms[v] = problem.addValue(form);
  }
  void addStash(ValueId v) {
    if (!std::exchange(canLeave[v], 1))
      addMove("stash ", v, addForm(v), toHost, options.toHost);
  }
  void addFetch(ValueId v) {
    if (!std::exchange(canReturn[v], 1))
      addMove("fetch ", addForm(v), v, toDevice, options.toDevice);
  }
  void addMoves(ValueId v) {
    addStash(v);
    addFetch(v);
    if (ValueId old = problem.values[v].updates; old != kNone)
      addMoves(old);
  }
  void addMove(const char *verb, ValueId from, ValueId to, EngineId engine,
               const MoveRate &rate) {
    Recipe r;
    r.name = verb + problem.values[problem.contentOf(from)].name;
    r.reads = {from};
    r.writes = {to};
    r.engine = engine;
    price(r, problem.values[from].bytes, rate);
    r.recomputable = true;
    problem.addRecipe(std::move(r));
  }

  /// Whether it is a parameter that is only lent to the host for updates there:
  /// it goes and comes back, and its form there is no home.
  bool staysHome(ValueId v) const {
    const Value &value = problem.values[v];
    return value.kind == ValueKind::Persistent && !options.parameters &&
           value.valueClass == ValueClass::Parameter;
  }

  /// Whether it is a parameter or a moment that may be at home on the host.
  bool mayLeave(ValueId v) const {
    const Value &value = problem.values[v];
    return value.kind == ValueKind::Persistent &&
           ((value.valueClass == ValueClass::Parameter && options.parameters) ||
            (value.valueClass == ValueClass::Optimizer && options.optimizer));
  }

  /// The instruction's first recipe; with networks the one on compute that
  /// reads the fewest bytes, which is on shards.
  RecipeId recipeOnShards(InstructionId i) const {
    auto bytesOf = [&](RecipeId r) {
      int64_t bytes = 0;
      for (ValueId v : problem.recipes[r].reads)
        bytes += problem.values[v].bytes;
      return bytes;
    };
    const std::vector<RecipeId> &recipes = problem.instructions[i].recipes;
    RecipeId least = recipes.front();
    if (hasNetwork(problem))
      for (RecipeId r : recipes)
        if (problem.recipes[r].engine == 0 && bytesOf(r) < bytesOf(least))
          least = r;
    return least;
  }

  /// Offers moves and a host variant for an optimizer's update, which replaces
  /// moments or a parameter.
  void addUpdate(InstructionId i) {
    const Recipe own = problem.recipes[recipeOnShards(i)];
    if (std::none_of(own.writes.begin(), own.writes.end(), [&](ValueId v) {
          const Value &value = problem.values[v];
          return value.updates != kNone &&
                 (value.valueClass == ValueClass::Optimizer ||
                  value.valueClass == ValueClass::Parameter);
        }))
      return;
    for (const std::vector<ValueId> *list : {&own.reads, &own.writes})
      for (ValueId v : *list)
        if (mayLeave(v))
          addMoves(v);
    if (!options.optimizer || (options.runsOnHost && !options.runsOnHost(i)))
      return;
    Recipe there = own;
    int64_t bytes = 0;
    for (std::vector<ValueId> *list : {&there.reads, &there.writes})
      for (ValueId &v : *list) {
        bytes += problem.values[v].bytes;
        // Small values only go to the side that reads them.
        if (problem.values[v].kind == ValueKind::Persistent && !staysHome(v))
          addMoves(v);
        else if (list == &there.reads)
          addStash(v);
        else
          addFetch(v);
        v = addForm(v);
      }
    for (Overwrite &o : there.overwrites)
      o = {onHost[o.read], onHost[o.written], o.must};
    there.name += " on the host";
    there.engine = hostEngine;
    price(there, bytes, options.update);
    there.workspaceSpace = host;
    there.recomputable = false;
    problem.addVariant(i, std::move(there));
  }

  /// Offers fetches of parameters, among the first `count` values, that nothing
  /// updates: their home is never written, so they need no stash.
  void addFrozen(ValueId count) {
    std::vector<char> isUpdated(size_t(count), 0);
    for (ValueId v = 0; v < count; ++v)
      if (ValueId old = problem.values[v].updates; old != kNone)
        isUpdated[v] = isUpdated[old] = 1;
    for (ValueId v = 0; v < count; ++v)
      if (const Value &value = problem.values[v];
          !isUpdated[v] && value.kind == ValueKind::Persistent &&
          value.valueClass == ValueClass::Parameter &&
          value.bytes >= options.leastBytes)
        addFetch(v);
  }

  /// A file behind the host, for all contents that are large enough.
  void addFile() {
    file = problem.addSpace(SpaceKind::File, options.fileBudget);
    const EngineId read = problem.engineBetween(file, host),
                   write = problem.engineBetween(host, file);
    MoveRate toFile = options.fileWrite;
    if (toFile.bandwidth == 0)
      toFile.bandwidth = options.fileRead.bandwidth;
    inFile.assign(problem.values.size(), kNone);
    for (ValueId v = 0; v < ValueId(onHost.size()); ++v) {
      const ValueId here = onHost[v];
      if (here == kNone || problem.values[v].bytes < options.leastBytes ||
          problem.values[v].kind == ValueKind::Carried)
        continue;
      const ValueId there = addForm(v, inFile, file, "@file");
      addMove("write ", here, there, write, toFile);
      addMove("read ", there, here, read, options.fileRead);
    }
  }

  Problem &problem;
  const MoveOptions &options;
  std::vector<ValueId> onHost, inFile;   // Form per value.
  std::vector<char> canLeave, canReturn; // Moves offered.
  SpaceId host = 0, file = 0;
  EngineId toHost = 0, toDevice = 0, hostEngine = 0;
};

} // namespace

absl::Status tmc::planning::offerMoves(Problem &problem,
                                       const MoveOptions &options) {
  const bool isOnDevice =
      problem.spaces.size() == 1 &&
      std::all_of(
          problem.engines.begin(), problem.engines.end(),
          [](const Engine &e) { return touches(e.kind, SpaceKind::Device); });
  if (!isOnDevice)
    return absl::FailedPreconditionError(
        "the problem has other spaces already");
  MoveOffer(problem, options).run();
  return check(problem);
}
