#include "compiler/planning/search/ModeLoads.h"

#include <algorithm>
#include <tuple>

using namespace tmc::planning;

ModeLoads::Group::Group(const Problem &problem, const UpdateGroup &group,
                        const std::vector<int64_t> &in,
                        const std::vector<int64_t> &out,
                        const std::vector<int64_t> &madeAt) {
  for (ValueId form : group.states) {
    statesIn += in[problem.contentOf(form)];
    stateBytes += problem.values[form].bytes;
  }
  for (ValueId form : group.shared) {
    sharedIn += in[problem.contentOf(form)];
    sharedBytes += problem.values[form].bytes;
  }
  if (group.instruction == kNone)
    return;
  const std::vector<RecipeId> &recipes =
      problem.instructions[group.instruction].recipes;
  const Recipe &own = problem.recipes[recipes[0]];
  device = own.cost;
  if (group.isHostable())
    host = problem.recipes[recipes[group.variant]].cost;
  auto isOf = [&](const std::vector<ValueId> &forms, ValueId v) {
    return std::any_of(forms.begin(), forms.end(), [&](ValueId form) {
      return problem.contentOf(form) == problem.contentOf(v);
    });
  };
  if (group.isHostable())
    for (ValueId w : own.writes) {
      const ValueId old = problem.values[w].updates;
      if (old == kNone || isOf(group.states, old) || isOf(group.shared, old))
        continue;
      lentOut += out[problem.contentOf(old)];
      lentIn += in[problem.contentOf(w)];
    }
  for (ValueId v : own.reads)
    if (ValueId main = problem.contentOf(v); madeAt[main]) {
      gradients += out[main];
      ready = std::max(ready, madeAt[main] + out[main]);
    }
  for (ValueId v : own.writes)
    if (problem.values[v].updates != kNone)
      statesOut += out[problem.contentOf(v)];
  // What others read as well takes its part of what goes out.
  if (const int64_t bytes = stateBytes + sharedBytes)
    sharedOut =
        int64_t(double(statesOut) * double(sharedBytes) / double(bytes));
  statesOut -= sharedOut;
}

ModeLoads::ModeLoads(const Problem &problem, const UpdateGroups &all)
    : hostable(all.hostable) {
  const size_t n = problem.values.size();
  std::vector<int64_t> in(n, 0), out(n, 0), madeAt(n, 0);
  struct Rate {
    int64_t time = 0, bytes = 0;
    double ofByte() const { return bytes ? double(time) / double(bytes) : 0; }
  } link, read, write;
  for (const Recipe &r : problem.recipes) {
    const EngineKind kind = problem.engines[r.engine].kind;
    auto count = [&](Rate &rate) {
      rate.time += r.cost;
      rate.bytes += problem.values[r.writes[0]].bytes;
    };
    if (kind == EngineKind::HostToDevice)
      in[problem.contentOf(r.writes[0])] = r.cost, count(link);
    else if (kind == EngineKind::DeviceToHost)
      out[problem.contentOf(r.reads[0])] = r.cost, count(link);
    else if (kind == EngineKind::FileRead)
      count(read);
    else if (kind == EngineKind::FileWrite)
      count(write);
  }
  linkTime = link.ofByte(), readTime = read.ofByte(),
  writeTime = write.ofByte();
  hasFile = read.bytes > 0;
  for (size_t s = problem.spaces.size(); s-- > 1;)
    if (problem.spaces[s].kind == SpaceKind::Host)
      hostBudget =
          problem.spaces[s].budgetBytes < 0
              ? -1
              : std::max<int64_t>(0, problem.spaces[s].budgetBytes -
                                         problem.spaces[s].reservedBytes);
  for (const Segment &segment : problem.segments)
    for (InstructionId i : segment.instructions) {
      const Recipe &r = problem.recipes[problem.instructions[i].recipes[0]];
      if (r.engine == 0)
        compute += r.cost * segment.trips;
      for (ValueId v : r.writes)
        madeAt[problem.contentOf(v)] = compute;
    }
  for (const UpdateGroup &group : all.all)
    groups.emplace_back(problem, group, in, out, madeAt);
  for (const Value &value : problem.values)
    if (value.kind == ValueKind::Persistent && value.space == 0 &&
        value.updates == kNone)
      resident += value.bytes;
  if (absl::StatusOr<Profile> base = simulate(problem, baseSolution(problem));
      base.ok())
    others = std::max<int64_t>(0, base->peakBytes - resident);
  if (problem.spaces[0].budgetBytes >= 0)
    budget = std::max<int64_t>(0, problem.spaces[0].budgetBytes -
                                      problem.reservedBytes);
}

ModeLoads::Loads ModeLoads::of(const UpdateModes &modes) const {
  int64_t kernels = compute, host = 0, in = 0, out = 0, bytes = resident;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group &g = groups[i];
    if (i < modes.hosted) {
      kernels -= g.device;
      host = std::max(host, g.ready) + g.host;
      out += g.gradients + g.lentOut;
      in += g.sharedIn + g.lentIn;
      bytes -= g.stateBytes + g.sharedBytes;
      continue;
    }
    if (i - modes.hosted < modes.paged) {
      in += g.statesIn;
      out += g.statesOut;
      bytes -= g.stateBytes;
    }
    if (i - modes.hosted < modes.streamed) {
      in += g.sharedIn;
      out += g.sharedOut;
      bytes -= g.sharedBytes;
    }
  }
  Loads loads;
  loads.moved = in + out;
  loads.fits = budget < 0 || bytes <= budget;
  const int64_t lacks =
      budget < 0 ? 0 : std::max<int64_t>(0, bytes + others - budget);
  const int64_t forced = int64_t(double(lacks) * linkTime);
  loads.estimate = std::max({kernels, host, in + forced, out + forced});
  const int64_t homes = resident - bytes; // On the host.
  if (hostBudget < 0 || homes + lacks <= hostBudget)
    return loads;
  loads.fits &= hasFile || homes <= hostBudget;
  const double more = double(homes + lacks - hostBudget);
  loads.estimate = std::max(
      {loads.estimate, int64_t(more * readTime), int64_t(more * writeTime)});
  return loads;
}

std::vector<UpdateModes> ModeLoads::ranked(size_t parts) const {
  std::vector<std::tuple<int64_t, int64_t, UpdateModes>> all;
  const size_t n = groups.size();
  auto at = [&](size_t i, size_t most) { return most * i / parts; };
  for (size_t h = 0; h <= parts; ++h)
    for (size_t p = 0; p <= parts; ++p)
      for (size_t s = 0; s <= parts; ++s) {
        const size_t hosted = at(h, hostable);
        const UpdateModes modes{hosted, at(p, n - hosted), at(s, n - hosted)};
        if (const Loads loads = of(modes); loads.fits)
          all.push_back({loads.estimate, loads.moved, modes});
      }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<UpdateModes> ranked;
  for (auto &[estimate, moved, modes] : all)
    ranked.push_back(modes);
  return ranked;
}
