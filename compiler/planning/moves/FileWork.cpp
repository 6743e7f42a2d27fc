#include "compiler/planning/moves/FileWork.h"

using namespace tmc::planning;

/// Two uses share one load if they lie closer together than this many of its
/// reads take.
static constexpr int64_t kSharedReads = 2;
static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

FileWork::FileWork(const Problem &problem, const FileForms &forms,
                   const std::vector<Execution> &list,
                   const std::vector<char> &isFiled, bool keepsForTasks,
                   EngineClock &planned)
    : problem(problem), forms(forms), list(list), isFiled(isFiled),
      keepsForTasks(keepsForTasks), touches(problem.values.size()) {
  takeTimes(planned);
  findTouches();
  findTasks();
  findLoads();
  findNeeds();
}

void FileWork::takeTimes(EngineClock &planned) {
  begins.assign(list.size(), 0);
  std::vector<int64_t> ends(list.size() + 1, 0);
  size_t works = 0;
  for (const Execution &e : list)
    works = std::max(works, size_t(e.work + 1));
  startOf.assign(works, kNowhere);
  doneOf.assign(works, kNowhere);
  for (size_t e = 0; e < list.size(); ++e) {
    const Recipe &r = recipeAt(e);
    begins[e] = planned.compute;
    if (list[e].phase == Phase::Whole) {
      planned.run(r);
    } else if (list[e].phase == Phase::Start) {
      startOf[list[e].work] = e;
      const TimeSpan time = planned.start(r);
      begins[e] = time.begin, ends[e] = time.end;
    } else {
      doneOf[list[e].work] = e;
      planned.end(r, ends[startOf[list[e].work]]);
    }
  }
  planned.border();
}

void FileWork::findTouches() {
  for (size_t e = 0; e < list.size(); ++e) {
    if (list[e].phase == Phase::Done)
      continue;
    const Recipe &r = recipeAt(e);
    for (ValueId v : r.reads)
      touches[v].push_back({e, false});
    for (ValueId v : r.writes)
      touches[v].push_back({e, true});
  }
}

void FileWork::findTasks() {
  role.assign(list.size(), Role::Fixed);
  taskAt.assign(list.size(), kNowhere);
  for (size_t e = 0; e < list.size(); ++e) {
    if (list[e].phase != Phase::Start || !problem.isBeside(recipeAt(e)))
      continue;
    const size_t done = doneOf[list[e].work];
    role[e] = role[done] = Role::Task;
    taskAt[e] = tasks.size();
    tasks.push_back({e, done, list.size(), false, {}, {}});
  }
  for (size_t t = 0; t < tasks.size(); ++t)
    orderTask(t);
}

/// Later entries that touch the same values: fixed entries limit the task,
/// other tasks follow it.
void FileWork::orderTask(size_t t) {
  Task &task = tasks[t];
  const size_t e = task.start;
  const Recipe &r = recipeAt(e);
  bool hasLoads = false;
  for (ValueId v : r.reads)
    hasLoads |= bool(isFiled[v]);
  auto precede = [&](size_t other) {
    if (other <= e)
      return;
    if (taskAt[other] != kNowhere)
      tasks[taskAt[other]].after.push_back(t);
    else if (hasLoads && canComeBack(other)) {
      role[other] = role[doneOf[list[other].work]] = Role::Back;
      backs.push_back({other, t});
    } else
      task.limit = std::min(task.limit, other);
  };
  for (ValueId v : r.writes)
    for (auto [other, writes] : touches[v])
      precede(other);
  for (ValueId v : r.reads)
    for (auto [other, writes] : touches[v])
      if (writes)
        precede(other);
  task.endsBefore = task.done < task.limit;
}

/// A fetch of a value that nothing reads in this segment, from bytes that stay
/// on the host until then. A temporary content in the file doesn't: it is read
/// for the fetch.
bool FileWork::canComeBack(size_t e) const {
  const Recipe &r = recipeAt(e);
  if (!problem.isFetch(r) ||
      (isFiled[r.reads[0]] &&
       problem.values[r.reads[0]].kind != ValueKind::Persistent))
    return false;
  const ValueId v = r.writes[0];
  return touches[v].back().first == e;
}

void FileWork::findLoads() {
  for (size_t v = 0; v < problem.values.size(); ++v) {
    if (problem.values[v].space != forms.host || !isFiled[v])
      continue;
    // A new content at home stays on the host until its last use here.
    bool isThere = false;
    size_t last = kNowhere;
    for (auto [e, writes] : touches[v]) {
      if (writes) {
        isThere = problem.values[v].kind == ValueKind::Persistent;
        last = kNowhere;
        continue;
      }
      if (isThere)
        continue;
      const int64_t cost = problem.recipes[forms.read[v]].cost;
      if (last == kNowhere || doneOf[list[last].work] >= e ||
          ((keepsForTasks || taskAt[e] == kNowhere) &&
           begins[e] - begins[last] < kSharedReads * cost)) {
        if (last == kNowhere)
          addLoad(ValueId(v), e);
        else
          ++loads.back().users;
      } else {
        addLoad(ValueId(v), e);
      }
      last = e;
    }
  }
}

void FileWork::addLoad(ValueId v, size_t user) {
  const size_t task = taskAt[user];
  if (task != kNowhere) {
    tasks[task].loads.push_back(loads.size());
    ++tasks[task].unread;
  }
  loads.push_back({v, user, 1, task});
}

/// Needs in the order of their users. Each is wanted early enough that all
/// later needs come in time.
void FileWork::findNeeds() {
  std::vector<std::vector<size_t>> byUser(list.size());
  for (size_t l = 0; l < loads.size(); ++l)
    byUser[loads[l].user].push_back(l);
  needOf.assign(list.size(), kNowhere);
  for (size_t e = 0; e < list.size(); ++e)
    if (!byUser[e].empty()) {
      needOf[e] = needs.size();
      needs.push_back({e, byUser[e], taskAt[e]});
    }
  int64_t next = kNever;
  for (size_t i = needs.size(); i-- > 0;) {
    int64_t cost = 0;
    for (size_t l : needs[i].loads)
      cost += problem.recipes[forms.read[loads[l].value]].cost;
    next = std::min(next, begins[needs[i].user]) - cost;
    needs[i].wanted = next - cost; // One read ahead.
  }
}

size_t FileWork::readsOf(ValueId v) const {
  return size_t(std::count_if(touches[v].begin(), touches[v].end(),
                              [](const auto &t) { return !t.second; }));
}

size_t FileWork::piecesOf(ValueId v) const {
  if (!isFiled[v])
    return 1 + readsOf(v);
  const bool isHome = problem.values[v].kind == ValueKind::Persistent;
  return 2 + (isHome ? readsOf(v) : 0);
}

bool FileWork::isIssued(const Need &need) const {
  return std::all_of(need.loads.begin(), need.loads.end(),
                     [&](size_t l) { return loads[l].isIssued; });
}

int64_t FileWork::bytesOf(const Need &need) const {
  int64_t bytes = 0;
  for (size_t l : need.loads)
    bytes += loads[l].isIssued ? 0 : problem.values[loads[l].value].bytes;
  return bytes;
}
