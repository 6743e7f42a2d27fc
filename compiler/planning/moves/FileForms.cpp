#include "compiler/planning/moves/FileForms.h"

#include <algorithm>
#include <utility>

using namespace tmc::planning;

FileForms::FileForms(const Problem &problem)
    : host(problem.hostSpace()), inFile(problem.values.size(), kNone),
      read(inFile), write(inFile) {
  for (size_t s = problem.spaces.size(); s-- > 1;)
    if (SpaceId(s) != host)
      file = SpaceId(s);
  if (!isThere())
    return;
  FastestMoves moves = fastestMoves(problem, host, file);
  read = std::move(moves.in), write = std::move(moves.out);
  for (size_t h = 0; h < problem.values.size(); ++h)
    if (read[h] != kNone)
      inFile[h] = problem.recipes[read[h]].reads[0];
    else if (write[h] != kNone)
      inFile[h] = problem.recipes[write[h]].writes[0];
}

namespace {

/// Places at which a solution writes and reads values of the host.
class Finder {
public:
  Finder(const Problem &problem, const FileForms &forms,
         const Solution &solution, const Timeline &timeline)
      : problem(problem), forms(forms), timeline(timeline),
        home(homesOf(problem, solution)), uses(problem.values.size()),
        heir(problem.values.size(), kNone) {
    size_t place = 0;
    for (size_t s = 0; s < solution.segments.size(); ++s)
      for (const Execution &e : solution.segments[s]) {
        ++place;
        if (e.phase == Phase::Done)
          continue;
        const Recipe &r = problem.recipes[e.recipe];
        for (ValueId v : r.reads)
          ++uses[v].reads, uses[v].last = place, note(v, s);
        for (ValueId v : r.writes) {
          Uses &use = uses[v];
          if (use.writes++ == 0)
            use.made = place, use.madeIn = s;
          note(v, s);
        }
      }
    for (size_t v = 0; v < problem.values.size(); ++v)
      if (ValueId old = problem.values[v].updates; old != kNone)
        heir[old] = ValueId(v);
  }

  std::vector<FileCandidate> run(bool temporariesFirst) {
    std::vector<std::pair<int64_t, FileCandidate>> persistent, temporary;
    std::vector<int64_t> lengths(problem.values.size(), 0);
    for (const Instance &i : timeline.instances)
      lengths[i.value] =
          std::max(lengths[i.value], int64_t(i.last) - int64_t(i.begin));
    for (size_t v = 0; v < problem.values.size(); ++v) {
      const ValueId h = ValueId(v);
      if (problem.values[h].space != forms.host || forms.inFile[h] == kNone)
        continue;
      if (isAtHome(h) && problem.values[h].updates == kNone) {
        if (canBeAtHome(h))
          persistent.push_back({int64_t(placeOf(h)), persistentOf(h)});
      } else if (canWait(h)) {
        temporary.push_back({-lengths[h], temporaryOf(h)});
      }
    }
    std::vector<FileCandidate> all;
    for (auto *list : {&persistent, &temporary})
      std::stable_sort(
          list->begin(), list->end(),
          [](const auto &a, const auto &b) { return a.first < b.first; });
    if (temporariesFirst)
      std::swap(persistent, temporary);
    for (auto *list : {&persistent, &temporary})
      for (const auto &[rank, candidate] : *list)
        all.push_back(candidate);
    return all;
  }

private:
  struct Uses {
    size_t reads = 0, writes = 0;
    size_t made = 0, last = 0; // Places: first write, last read.
    size_t madeIn = 0;
    bool isElsewhere = false; // In another segment than the first use.
    size_t firstIn = SIZE_MAX;
  };
  void note(ValueId v, size_t segment) {
    Uses &use = uses[v];
    if (use.firstIn == SIZE_MAX)
      use.firstIn = segment;
    use.isElsewhere |= use.firstIn != segment;
  }

  bool isAtHome(ValueId h) const {
    return home[h] == h && problem.values[h].kind == ValueKind::Persistent;
  }
  bool isFree(RecipeId r) const {
    return r != kNone && problem.recipes[r].segment == kNone &&
           problem.recipes[r].recomputable;
  }
  bool canBeAtHome(ValueId h) const {
    const ValueId f = forms.inFile[h], next = heir[h];
    if (problem.values[f].kind != ValueKind::Persistent || uses[h].writes ||
        (uses[h].reads && !isFree(forms.read[h])))
      return false;
    if (next == kNone)
      return true;
    return forms.inFile[next] != kNone && isFree(forms.write[next]) &&
           problem.values[forms.inFile[next]].updates == f &&
           uses[next].writes == 1 &&
           problem.segments[uses[next].madeIn].trips == 1 &&
           (!uses[next].isElsewhere || isFree(forms.read[next]));
  }
  bool canWait(ValueId h) const {
    const Value &value = problem.values[h];
    return value.kind == ValueKind::Temporary && !value.liveOut &&
           uses[h].writes == 1 && uses[h].reads > 0 && isFree(forms.read[h]) &&
           isFree(forms.write[h]);
  }
  /// An updated content leaves at its update.
  size_t placeOf(ValueId h) const {
    return heir[h] == kNone ? uses[h].last : uses[heir[h]].made;
  }
  int64_t costOf(RecipeId r) const {
    return r == kNone ? 0 : problem.recipes[r].cost;
  }
  FileCandidate persistentOf(ValueId h) const {
    FileCandidate c;
    c.kept = h;
    c.made = heir[h];
    c.persists = true;
    c.bytes = problem.values[forms.inFile[h]].bytes;
    c.cost = (uses[h].reads ? costOf(forms.read[h]) : 0) +
             (c.made == kNone ? 0 : costOf(forms.write[c.made]));
    return c;
  }
  FileCandidate temporaryOf(ValueId h) const {
    FileCandidate c;
    c.kept = h;
    c.bytes = problem.values[forms.inFile[h]].bytes;
    c.cost = costOf(forms.read[h]) + costOf(forms.write[h]);
    return c;
  }

  const Problem &problem;
  const FileForms &forms;
  const Timeline &timeline;
  const std::vector<ValueId> home;
  std::vector<Uses> uses;
  std::vector<ValueId> heir; // Per value: its new version.
};

} // namespace

std::vector<FileCandidate>
tmc::planning::fileCandidates(const Problem &problem, const FileForms &forms,
                              const Solution &solution,
                              const Timeline &timeline, bool temporariesFirst) {
  return Finder(problem, forms, solution, timeline).run(temporariesFirst);
}

size_t tmc::planning::countToFile(const Problem &problem,
                                  const FileForms &forms,
                                  const Timeline &timeline,
                                  const std::vector<FileCandidate> &candidates,
                                  int64_t limit) {
  auto fits = [&](size_t count) {
    std::vector<int64_t> bytes(problem.values.size(), 0);
    for (size_t v = 0; v < bytes.size(); ++v)
      if (problem.values[v].space == forms.host)
        bytes[v] = problem.values[v].bytes;
    for (size_t i = 0; i < count; ++i)
      for (ValueId v : {candidates[i].kept, candidates[i].made})
        if (v != kNone)
          bytes[v] = 0;
    const std::vector<int64_t> live = timeline.liveBytes(bytes);
    return live.empty() || *std::max_element(live.begin(), live.end()) <= limit;
  };
  size_t low = 0, high = candidates.size();
  while (low < high)
    if (const size_t middle = low + (high - low) / 2; fits(middle))
      high = middle;
    else
      low = middle + 1;
  return low;
}

std::vector<ValueId>
tmc::planning::homesWithFile(const Problem &problem, const FileForms &forms,
                             const Solution &solution,
                             const std::vector<char> &isFiled) {
  std::vector<ValueId> homes;
  for (ValueId h : solution.homes)
    homes.push_back(problem.values[h].space == forms.host && isFiled[h]
                        ? forms.inFile[h]
                        : h);
  // Contents at home in their main form on the host.
  for (size_t h = 0; h < problem.values.size(); ++h)
    if (const Value &value = problem.values[h];
        value.space == forms.host && isFiled[h] &&
        value.kind == ValueKind::Persistent && value.updates == kNone &&
        value.formOf == kNone &&
        !std::count(solution.homes.begin(), solution.homes.end(), ValueId(h)))
      homes.push_back(forms.inFile[h]);
  return homes;
}

std::vector<char> tmc::planning::dynamicValues(const Problem &problem,
                                               const FileForms &forms,
                                               const Solution &solution) {
  std::vector<char> isDynamic(problem.values.size(), 0);
  std::vector<SegmentId> usedIn(problem.values.size(), kNone);
  for (size_t s = 0; s < solution.segments.size(); ++s)
    for (const Execution &e : solution.segments[s]) {
      const Recipe &r = problem.recipes[e.recipe];
      const bool isHostWork = problem.isBeside(r);
      for (const std::vector<ValueId> *values : {&r.reads, &r.writes})
        for (ValueId v : *values) {
          isDynamic[v] |= isHostWork;
          if (usedIn[v] == kNone)
            usedIn[v] = SegmentId(s);
          else if (usedIn[v] != SegmentId(s))
            usedIn[v] = SegmentId(solution.segments.size());
        }
    }
  const std::vector<ValueId> home = homesOf(problem, solution);
  for (size_t v = 0; v < isDynamic.size(); ++v)
    if (problem.values[v].space != forms.host || problem.values[v].liveOut ||
        (problem.values[v].kind == ValueKind::Persistent &&
         home[v] == ValueId(v)) ||
        problem.values[v].kind == ValueKind::Carried ||
        usedIn[v] == SegmentId(solution.segments.size()))
      isDynamic[v] = 0;
  return isDynamic;
}
