#include "compiler/planning/model/Checks.h"

#include "absl/strings/str_cat.h"

#include <limits>

using namespace tmc::planning;

namespace {

constexpr int64_t kMaxReserved = std::numeric_limits<int64_t>::max() / 4;

template <typename... Words> absl::Status malformed(const Words &...words) {
  return absl::InvalidArgumentError(absl::StrCat(words...));
}

bool isIndex(int32_t index, size_t size) {
  return index >= 0 && size_t(index) < size;
}

absl::Status checkHouse(const Problem &problem) {
  if (problem.spaces.empty() || problem.engines.empty())
    return malformed("a problem has at least one space and one engine");
  for (size_t s = 0; s < problem.spaces.size(); ++s) {
    const MemorySpace &space = problem.spaces[s];
    if ((space.kind == kSpaces[0].kind) != (s == 0))
      return malformed("space ", s, " '", space.name, "' is of kind ",
                       nameOf(space.kind),
                       "; space 0 and no other is the device");
    if (space.budgetBytes < -1 || space.reservedBytes < 0 ||
        space.reservedBytes > kMaxReserved)
      return malformed("space '", space.name, "' has a budget of ",
                       space.budgetBytes, " bytes and ", space.reservedBytes,
                       " reserved");
    if (s == 0 && space.reservedBytes)
      return malformed("what is reserved in space '", space.name,
                       "' is said for the problem");
  }
  for (size_t e = 0; e < problem.engines.size(); ++e)
    if ((problem.engines[e].kind == kEngines[0].kind) != (e == 0))
      return malformed("engine ", e, " '", problem.engines[e].name,
                       "' is of kind ", nameOf(problem.engines[e].kind),
                       "; engine 0 and no other computes");
  return absl::OkStatus();
}

/// Checks that a form's kind and references follow its content's main form.
absl::Status checkForm(const Problem &problem, const Value &form) {
  const Value &main = problem.values[form.formOf];
  if (form.kind != main.kind && form.kind != ValueKind::Temporary)
    return malformed("form '", form.name, "' isn't of the kind of '", main.name,
                     "', nor temporary");
  if (form.liveOut && !main.liveOut)
    return malformed("form '", form.name, "' lives out, but '", main.name,
                     "' doesn't");
  if (form.kind == ValueKind::Temporary)
    return absl::OkStatus();
  const ValueId mine[] = {form.updates, form.carriedFrom, form.initial};
  const ValueId its[] = {main.updates, main.carriedFrom, main.initial};
  const char *what[] = {"updates", "is carried from", "begins as"};
  for (int i = 0; i < 3; ++i) {
    if (mine[i] != kNone && !isIndex(mine[i], problem.values.size()))
      return malformed("value '", form.name,
                       "' refers to a value that isn't there");
    if ((mine[i] == kNone) != (its[i] == kNone) ||
        (mine[i] != kNone &&
         problem.contentOf(mine[i]) != problem.contentOf(its[i])))
      return malformed("form '", form.name, "' ", what[i],
                       " another content than '", main.name, "'");
  }
  if (form.lag != main.lag)
    return malformed("form '", form.name, "' lags by ", form.lag,
                     " trips, but '", main.name, "' by ", main.lag);
  if (form.updates != kNone && problem.values[form.updates].space != form.space)
    return malformed("form '", form.name, "' updates '",
                     problem.values[form.updates].name,
                     "', which is in another space");
  return absl::OkStatus();
}

absl::Status checkForms(const Problem &problem) {
  size_t n = problem.values.size();
  for (const Value &v : problem.values) {
    if (!isIndex(v.space, problem.spaces.size()))
      return malformed("value '", v.name, "' is in space ", v.space, " of ",
                       problem.spaces.size());
    if (v.formOf == kNone)
      continue;
    if (!isIndex(v.formOf, n) || problem.values[v.formOf].formOf != kNone)
      return malformed("value '", v.name,
                       "' is a form of what is no content's main form");
  }
  for (const Value &v : problem.values) {
    for (ValueId other : {v.updates, v.carriedFrom, v.initial})
      if (other != kNone && !isIndex(other, n))
        return malformed("value '", v.name,
                         "' refers to a value that isn't there");
    if (v.updates != kNone && problem.values[v.updates].space != v.space)
      return malformed("value '", v.name, "' updates '",
                       problem.values[v.updates].name,
                       "', which is in another space");
    if (v.formOf != kNone)
      if (absl::Status status = checkForm(problem, v); !status.ok())
        return status;
  }
  return absl::OkStatus();
}

absl::Status checkReach(const Problem &problem, const Recipe &r) {
  const Engine &engine = problem.engines[r.engine];
  const EngineInfo &reach = infoOf(engine.kind);
  auto kindOf = [&](SpaceId s) { return problem.spaces[s].kind; };
  for (ValueId v : r.reads)
    if (SpaceKind is = kindOf(problem.values[v].space); is != reach.reads)
      return malformed("recipe '", r.name, "' reads '", problem.values[v].name,
                       "' in a space of kind ", nameOf(is), ", but engine '",
                       engine.name, "' reads from ", nameOf(reach.reads));
  for (ValueId v : r.writes)
    if (SpaceKind is = kindOf(problem.values[v].space); is != reach.writes)
      return malformed("recipe '", r.name, "' writes '", problem.values[v].name,
                       "' in a space of kind ", nameOf(is), ", but engine '",
                       engine.name, "' writes to ", nameOf(reach.writes));
  SpaceKind scratch = kindOf(r.workspaceSpace);
  if (r.workspaceBytes > 0 &&
      !(touches(engine.kind, scratch) && infoOf(scratch).hasAddresses))
    return malformed("recipe '", r.name,
                     "' has its scratch in a space of kind ", nameOf(scratch),
                     ", which engine '", engine.name, "' doesn't reach");
  return absl::OkStatus();
}

absl::Status checkEngines(const Problem &problem) {
  for (const Recipe &r : problem.recipes) {
    if (!isIndex(r.engine, problem.engines.size()) ||
        !isIndex(r.workspaceSpace, problem.spaces.size()))
      return malformed("recipe '", r.name, "' runs on engine ", r.engine,
                       " of ", problem.engines.size(),
                       ", with scratch in space ", r.workspaceSpace, " of ",
                       problem.spaces.size());
    for (const std::vector<ValueId> *list : {&r.reads, &r.writes})
      for (ValueId v : *list)
        if (!isIndex(v, problem.values.size()))
          return malformed("recipe '", r.name, "' refers to value ", v, " of ",
                           problem.values.size());
    if (absl::Status status = checkReach(problem, r); !status.ok())
      return status;
    if (problem.isMove(r) && (!problem.isCopy(r) || !r.overwrites.empty()))
      return malformed("recipe '", r.name, "' on engine '",
                       problem.engines[r.engine].name,
                       "' doesn't copy one form of a content to another");
    if (r.busShare < 0 || r.busShare > kWholeBus || (r.busShare && !r.engine))
      return malformed("recipe '", r.name, "' on engine '",
                       problem.engines[r.engine].name, "' has a share of ",
                       r.busShare, " of the host's memory; a share is 0 to ",
                       kWholeBus, ", and 0 on the engine that computes");
    if (problem.isOnNetwork(r) && r.busShare)
      return malformed("recipe '", r.name, "' on engine '",
                       problem.engines[r.engine].name,
                       "' of the network has a share of the host's memory");
    if (problem.isCopy(r) && r.reads == r.writes)
      return malformed("recipe '", r.name, "' copies '",
                       problem.values[r.reads[0]].name, "' to itself");
    for (const Overwrite &o : r.overwrites)
      if (isIndex(o.read, problem.values.size()) &&
          isIndex(o.written, problem.values.size()) &&
          problem.values[o.read].space != problem.values[o.written].space)
        return malformed("recipe '", r.name, "' overwrites '",
                         problem.values[o.read].name, "' by '",
                         problem.values[o.written].name,
                         "', which is in another space");
    if (problem.isCopy(r))
      continue;
    for (ValueId w : r.writes) {
      const Value &content = problem.values[problem.contentOf(w)];
      if (content.kind == ValueKind::Carried ||
          (content.kind == ValueKind::Persistent && content.updates == kNone))
        return malformed("recipe '", r.name, "' writes '",
                         problem.values[w].name,
                         "', which is there without it");
    }
  }
  return absl::OkStatus();
}

} // namespace

absl::Status tmc::planning::checkSpaces(const Problem &problem) {
  for (auto check : {checkHouse, checkForms})
    if (absl::Status status = check(problem); !status.ok())
      return status;
  return checkEngines(problem);
}
