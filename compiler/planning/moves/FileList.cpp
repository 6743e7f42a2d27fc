#include "compiler/planning/moves/FileList.h"

#include "compiler/planning/moves/FileWork.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <utility>

using namespace tmc::planning;

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// The bytes on the host while a list is made: those of tracked values, which
/// come and go with the work of the new list, and those of all others, by the
/// plan.
class HostBytes {
public:
  HostBytes(const Problem &problem, SpaceId host,
            const FileListOptions &options, std::vector<int64_t> base,
            const std::vector<char> &isDynamic)
      : problem(problem), host(host), options(options), base(std::move(base)),
        isDynamic(isDynamic) {}

  bool isTracked(ValueId v) const {
    return problem.values[v].space == host &&
           (isDynamic[v] || options.isFiled[v]);
  }
  bool isHeld(ValueId v) const { return pending.contains(v); }
  /// `v` is on the host until `pieces` pieces of work are done.
  void hold(ValueId v, size_t pieces) {
    count(v, 1);
    pending[v] = pieces;
  }
  /// A piece of work is done.
  void release(const Recipe &r) {
    for (const std::vector<ValueId> *values : {&r.reads, &r.writes})
      for (ValueId v : *values)
        if (auto it = pending.find(v);
            it != pending.end() && --it->second == 0) {
          count(v, -1);
          pending.erase(it);
        }
  }
  /// A new value has the storage of `v` from now on.
  void giveStorage(ValueId v) {
    if (pending.erase(v))
      count(v, -1);
  }
  bool fits(int64_t more, size_t entry) const {
    const int64_t others = entry < base.size() ? base[entry]
                           : base.empty()      ? 0
                                               : base.back();
    return options.hostBytes < 0 || held + more + others <= options.hostBytes;
  }
  /// Bytes of values of the file.
  int64_t filedBytes() const { return filed; }

private:
  void count(ValueId v, int64_t times) {
    held += times * problem.values[v].bytes;
    if (options.isFiled[v])
      filed += times * problem.values[v].bytes;
  }

  const Problem &problem;
  const SpaceId host;
  const FileListOptions &options;
  const std::vector<int64_t> base; // Per entry: of values that aren't tracked.
  const std::vector<char> &isDynamic;
  std::map<ValueId, size_t> pending; // Tracked values on the host.
  int64_t held = 0, filed = 0;       // Bytes of tracked values.
};

class SegmentList : FileWork {
public:
  SegmentList(const Problem &problem, const FileForms &forms,
              const FileListOptions &options,
              const std::vector<Execution> &list, std::vector<int64_t> base,
              std::vector<int64_t> unfiled, const std::vector<char> &isDynamic,
              EngineClock &planned, EngineClock &clock)
      : FileWork(problem, forms, list, options.isFiled, options.keepsForUpdates,
                 planned),
        options(options), unfiled(std::move(unfiled)),
        host(problem, forms.host, options, std::move(base), isDynamic),
        clock(clock), open(problem.engines.size()), isDone(list.size(), 0) {}

  absl::StatusOr<std::vector<Execution>> run() {
    for (at = 0; at < list.size(); ++at) {
      if (role[at] == Role::Task && list[at].phase == Phase::Start &&
          tasks[taskAt[at]].unread == 0)
        ready.push_back(taskAt[at]);
      if (role[at] == Role::Fixed && !emitFixed())
        return absl::FailedPreconditionError(absl::StrCat(
            "nothing makes room for '", problem.recipes[list[at].recipe].name,
            "' with a file"));
      advance(clock.now());
    }
    if (!finish())
      return absl::FailedPreconditionError("work is left behind a list's end");
    return std::move(out);
  }

private:
  struct Open {
    int32_t work;
    RecipeId recipe;
    InstructionId instruction;
    int64_t end;
    size_t entry; // In the plan's list, or kNowhere.
    size_t load;  // Or kNowhere.
  };

  /// Whether a need's bytes have room from now until its user begins.
  bool hasRoom(const Need &need) {
    if (options.hostBytes < 0)
      return true;
    int64_t more = 0;
    for (size_t l : need.loads)
      more += problem.values[loads[l].value].bytes;
    if (!host.fits(more, at))
      return false;
    if (need.user == blocked.user && at <= blocked.entry &&
        host.filedBytes() >= blocked.filed)
      return false; // As in the last test.
    for (size_t e = at; e <= need.user && e < list.size(); ++e) {
      int64_t comes = 0; // Bytes that come and go.
      if (list[e].phase == Phase::Start && role[e] == Role::Fixed)
        for (ValueId v : recipeAt(e).writes)
          if (problem.values[v].space == forms.host && options.isFiled[v])
            comes += problem.values[v].bytes;
      if (host.filedBytes() + more + comes + unfiled[e] <= options.hostBytes)
        continue;
      blocked = {need.user, e, host.filedBytes()};
      return false;
    }
    return true;
  }

  //===--------------------------------------------------------------------===//
  // The list
  //===--------------------------------------------------------------------===//

  void start(RecipeId recipe, InstructionId instruction, size_t entry,
             size_t load = kNowhere) {
    const Recipe &r = problem.recipes[recipe];
    const int64_t end = clock.start(r).end;
    open[r.engine].push_back({works, recipe, instruction, end, entry, load});
    out.push_back({recipe, instruction, {}, Phase::Start, works++});
  }
  void finishFront(size_t engine) {
    const Open work = open[engine].front();
    open[engine].pop_front();
    if (work.entry != kNowhere)
      isDone[work.entry] = 1;
    const Recipe &r = problem.recipes[work.recipe];
    out.push_back({work.recipe, work.instruction, {}, Phase::Done, work.work});
    clock.end(r, work.end);
    host.release(r);
    if (work.load == kNowhere || loads[work.load].task == kNowhere)
      return;
    const size_t task = loads[work.load].task;
    if (--tasks[task].unread == 0 && tasks[task].start <= at)
      ready.push_back(task);
  }
  /// Writes v to the file, after its maker.
  void save(ValueId v) {
    if (options.isFiled[v] && forms.write[v] != kNone &&
        (problem.values[v].kind != ValueKind::Persistent ||
         problem.values[v].updates != kNone))
      start(forms.write[v], kNone, kNowhere);
  }

  /// Whether entry e, a writer, has begun. Updates float, so one may be late.
  bool isMade(size_t e) const {
    return e < at && (role[e] != Role::Task || tasks[taskAt[e]].isStarted);
  }
  bool canLoad(const Need &need) const {
    for (size_t l : need.loads) {
      if (loads[l].isIssued)
        continue;
      if (host.isHeld(loads[l].value))
        return false;
      for (auto [e, writes] : touches[loads[l].value])
        if (writes && e < loads[l].user && !isMade(e))
          return false;
    }
    return true;
  }
  void load(const Need &need) {
    for (size_t l : need.loads) {
      Load &one = loads[l];
      if (one.isIssued)
        continue;
      one.isIssued = true;
      host.hold(one.value, 1 + one.users);
      start(forms.read[one.value], kNone, kNowhere, l);
    }
  }

  /// The time at which all inputs of a task are there. Its loads are done.
  int64_t readyTime(const Task &task) const {
    int64_t time = 0;
    for (ValueId v : recipeAt(task.start).reads)
      time = std::max(time, clock.made[v]);
    return time;
  }
  /// Whether all tasks before it have started.
  bool isFirst(const Task &task) const {
    return std::all_of(task.after.begin(), task.after.end(),
                       [&](size_t other) { return tasks[other].isStarted; });
  }
  /// The first ready task and its time, or kNowhere.
  std::pair<size_t, int64_t> nextTask() const {
    std::pair<size_t, int64_t> next = {kNowhere, kNever};
    for (size_t t : ready)
      if (const int64_t time = readyTime(tasks[t]);
          time < next.second && isFirst(tasks[t]))
        next = {t, time};
    return next;
  }
  void startTask(Task &task) {
    const Execution &e = list[task.start];
    const Recipe &r = recipeAt(task.start);
    task.isStarted = true;
    std::erase(ready, taskAt[task.start]);
    start(e.recipe, e.instruction, task.start);
    for (const Overwrite &o : r.overwrites)
      if (host.isTracked(o.written))
        host.giveStorage(o.read);
    for (ValueId v : r.writes)
      if (host.isTracked(v))
        host.hold(v, piecesOf(v));
    for (ValueId v : r.writes)
      save(v);
    while (firstTask < tasks.size() && tasks[firstTask].isStarted)
      ++firstTask;
  }

  /// Starts all work that can start until `until`.
  void issue(int64_t until) {
    while (firstNeed < needs.size() && isIssued(needs[firstNeed]))
      ++firstNeed;
    for (size_t n = firstNeed; n < needs.size() && needs[n].wanted <= until;
         ++n) {
      if (isIssued(needs[n]))
        continue;
      if (!canLoad(needs[n]) || !hasRoom(needs[n]))
        break;
      load(needs[n]);
    }
    for (;;) {
      const auto [task, time] = nextTask();
      if (task == kNowhere || time > std::max(until, clock.now()))
        break;
      startTask(tasks[task]);
    }
    if (at >= list.size())
      for (auto &[e, task] : backs)
        if (e != kNowhere && tasks[task].isStarted &&
            clock.made[recipeAt(e).reads[0]] <= std::max(until, clock.now())) {
          start(list[e].recipe, list[e].instruction, e);
          e = kNowhere;
        }
  }

  /// The engine whose first work ends first, among floating work or all work. A
  /// fixed Done that is brought forward shortens lives, but compute waits at
  /// it.
  size_t nextEngine(bool ofAll) const {
    size_t next = kNowhere;
    for (size_t e = 0; e < open.size(); ++e) {
      if (open[e].empty())
        continue;
      const size_t entry = open[e].front().entry;
      if (!ofAll && entry != kNowhere && role[entry] == Role::Fixed)
        continue;
      if (next == kNowhere || open[e].front().end < open[next].front().end)
        next = e;
    }
    return next;
  }
  /// Runs all events until `until`.
  void advance(int64_t until) {
    for (;;) {
      issue(until);
      const size_t engine = nextEngine(false);
      if (engine == kNowhere || open[engine].front().end > until)
        return;
      finishFront(engine);
    }
  }
  /// Runs the next event at any time; false: there is none.
  bool step() {
    const size_t before = out.size();
    issue(clock.now());
    if (out.size() > before)
      return true;
    const size_t engine = nextEngine(true);
    const int64_t time = nextTask().second;
    if (engine == kNowhere && time == kNever)
      return false;
    if (engine == kNowhere || time < open[engine].front().end)
      issue(time);
    else
      finishFront(engine);
    return true;
  }

  bool forceLoad(const Need &need) {
    while (!isIssued(need)) {
      if (canLoad(need) && host.fits(bytesOf(need), at)) {
        load(need);
        break;
      }
      if (step())
        continue;
      if (!canLoad(need))
        return false;
      load(need); // More bytes than the host has.
    }
    return true;
  }
  bool forceTask(Task &task) {
    for (size_t other : task.after)
      if (!tasks[other].isStarted && !forceTask(tasks[other]))
        return false;
    if (needOf[task.start] != kNowhere && !forceLoad(needs[needOf[task.start]]))
      return false;
    while (!task.isStarted) {
      if (task.unread == 0)
        startTask(task);
      else if (!step())
        return false;
    }
    if (!task.endsBefore)
      return true;
    const size_t engine = size_t(recipeAt(task.start).engine);
    while (std::any_of(open[engine].begin(), open[engine].end(),
                       [&](const Open &o) { return o.entry == task.start; }))
      finishFront(engine);
    return true;
  }

  bool emitFixed() {
    for (size_t t = firstTask; t < tasks.size() && tasks[t].start < at; ++t)
      if (tasks[t].limit == at && !tasks[t].isStarted && !forceTask(tasks[t]))
        return false;
    for (Task &task : tasks) // Started, and must end before.
      if (task.limit == at && task.endsBefore && !forceTask(task))
        return false;
    const Execution &e = list[at];
    const Recipe &r = recipeAt(at);
    if (e.phase == Phase::Done) {
      if (isDone[startOf[e.work]])
        return true; // Brought forward.
      advance(open[r.engine].front().end);
      finishFront(size_t(r.engine));
      return true;
    }
    if (needOf[at] != kNowhere && !forceLoad(needs[needOf[at]]))
      return false;
    int64_t comes = 0;
    for (ValueId v : r.writes)
      if (host.isTracked(v))
        comes += problem.values[v].bytes;
    while (!host.fits(comes > 0 ? comes + reserve() : 0, at) && step()) {
    }
    if (e.phase == Phase::Whole) {
      advance(clock.compute + r.cost);
      out.push_back({e.recipe, e.instruction, {}});
      clock.run(r);
      return true;
    }
    start(e.recipe, e.instruction, at);
    for (ValueId v : r.writes)
      if (host.isTracked(v)) {
        host.hold(v, piecesOf(v));
        save(v);
      }
    return true;
  }
  /// Bytes that the next task must read. Gradients leave this room free;
  /// without it the task could never run and free their bytes.
  int64_t reserve() const {
    for (size_t n = firstNeed; n < needs.size(); ++n)
      if (needs[n].task != kNowhere && !isIssued(needs[n]))
        return bytesOf(needs[n]);
    return 0;
  }

  bool finish() {
    at = list.size();
    for (;;) {
      if (step())
        continue;
      auto need = std::find_if(needs.begin(), needs.end(),
                               [&](const Need &n) { return !isIssued(n); });
      if (need == needs.end())
        break;
      // No need is wanted yet, or there is too little room.
      if (!canLoad(*need))
        return false;
      load(*need);
    }
    return firstTask == tasks.size() &&
           std::all_of(backs.begin(), backs.end(),
                       [](const auto &b) { return b.first == kNowhere; }) &&
           std::all_of(open.begin(), open.end(),
                       [](const auto &queue) { return queue.empty(); });
  }

  const FileListOptions &options;
  /// Bytes on the host at each entry, by the plan, of values that aren't in the
  /// file.
  const std::vector<int64_t> unfiled;
  HostBytes host;
  EngineClock &clock;
  std::vector<std::deque<Open>> open; // Per engine.
  std::vector<char> isDone;           // By Start in the plan.
  struct {
    size_t user = kNowhere, entry = 0;
    int64_t filed = 0;
  } blocked; // The last need without room, and its place.
  size_t at = 0, firstNeed = 0, firstTask = 0;
  std::vector<size_t> ready; // Tasks without pending loads.
  int32_t works = 0;
  std::vector<Execution> out;
};

} // namespace

absl::StatusOr<Solution>
tmc::planning::listWithFile(const Problem &problem, const FileForms &forms,
                            const Solution &solution, const Timeline &timeline,
                            const FileListOptions &options) {
  const std::vector<char> isDynamic = dynamicValues(problem, forms, solution);
  // Per segment and entry.
  auto liveOf = [&](bool withDynamic) {
    std::vector<int64_t> bytes(problem.values.size(), 0);
    for (size_t v = 0; v < bytes.size(); ++v)
      if (problem.values[v].space == forms.host && !options.isFiled[v] &&
          (withDynamic || !isDynamic[v]))
        bytes[v] = problem.values[v].bytes;
    const std::vector<int64_t> live = timeline.liveBytes(bytes);
    std::vector<std::vector<int64_t>> most;
    for (const std::vector<Execution> &list : solution.segments)
      most.emplace_back(list.size(), 0);
    for (size_t t = 0; t < live.size(); ++t) {
      const Profile::Moment &m = timeline.moments[t];
      most[m.segment][m.index] = std::max(most[m.segment][m.index], live[t]);
    }
    return most;
  };
  std::vector<std::vector<int64_t>> base = liveOf(false),
                                    unfiled = liveOf(true);
  Solution made;
  made.homes = homesWithFile(problem, forms, solution, options.isFiled);
  EngineClock planned(problem), clock(problem);
  for (size_t s = 0; s < solution.segments.size(); ++s) {
    absl::StatusOr<std::vector<Execution>> list =
        SegmentList(problem, forms, options, solution.segments[s],
                    std::move(base[s]), std::move(unfiled[s]), isDynamic,
                    planned, clock)
            .run();
    if (!list.ok())
      return list.status();
    made.segments.push_back(std::move(*list));
    clock.border();
  }
  takeOverwrites(problem, made);
  return made;
}
