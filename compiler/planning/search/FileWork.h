// FileWork.h - what of one segment's list can float around its fixed entries.
//
// See FileList.h. Of a plan's list it says which entries are fixed, which
// updates run on the host (tasks) and what they wait for, which values are read
// from the file and for whom (loads, needs), and which fetches can come last
// (backs).

#ifndef TMC_COMPILER_PLANNING_SEARCH_FILEWORK_H
#define TMC_COMPILER_PLANNING_SEARCH_FILEWORK_H

#include "compiler/planning/search/EngineClock.h"
#include "compiler/planning/search/FileForms.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tmc::planning {

inline constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

/// Entries go by their places in the list.
struct FileWork {
  enum class Role : uint8_t { Fixed, Task, Back };
  struct Load {
    ValueId value;
    size_t user, users;     // The first entry, and how many.
    size_t task = kNowhere; // That waits for it.
    bool isIssued = false;
  };
  struct Task {
    size_t start, done, limit; // Entries; it starts before the fixed limit.
    bool endsBefore = false;   // And ends.
    std::vector<size_t> after; // Tasks that start before it.
    std::vector<size_t> loads;
    size_t unread = 0; // Of these.
    bool isStarted = false;
  };
  /// What is read for one user.
  struct Need {
    size_t user;
    std::vector<size_t> loads;
    size_t task = kNowhere;
    int64_t wanted = 0;
  };

  /// `planned` passes over the list's time. `isFiled`: of values on the host,
  /// those that are in the file. `keepsForTasks`: a read before a fetch serves
  /// a task behind it.
  FileWork(const Problem &problem, const FileForms &forms,
           const std::vector<Execution> &list, const std::vector<char> &isFiled,
           bool keepsForTasks, EngineClock &planned);

  const Problem &problem;
  const FileForms &forms;
  const std::vector<Execution> &list;
  const std::vector<char> &isFiled;
  const bool keepsForTasks;
  std::vector<Role> role;                                    // Of entries.
  std::vector<std::vector<std::pair<size_t, bool>>> touches; // Entry, writes.
  std::vector<size_t> startOf, doneOf;                       // By work.
  std::vector<size_t> taskAt, needOf; // Of entries, or kNowhere.
  std::vector<Task> tasks;
  std::vector<Load> loads;
  std::vector<Need> needs;                      // In the order of their users.
  std::vector<std::pair<size_t, size_t>> backs; // Entry, task.

  const Recipe &recipeAt(size_t e) const {
    return problem.recipes[list[e].recipe];
  }

private:
  void takeTimes(EngineClock &planned);
  void findTouches();
  void findTasks();
  void orderTask(size_t task);
  bool canComeBack(size_t e) const;
  void findLoads();
  void addLoad(ValueId v, size_t user);
  void findNeeds();

  std::vector<int64_t> begins; // Of entries, in the plan.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_FILEWORK_H
