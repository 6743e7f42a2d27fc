// FileWork.h - the entries of one segment's list that can float around its
// fixed entries.
//
// See FileList.h. For a plan's list this file finds the fixed entries, the
// updates on the host (tasks) and their predecessors, the values read from the
// file and their users (loads, needs), and the fetches that can come last
// (backs).

#ifndef TMC_COMPILER_PLANNING_MOVES_FILEWORK_H
#define TMC_COMPILER_PLANNING_MOVES_FILEWORK_H

#include "compiler/planning/moves/EngineClock.h"
#include "compiler/planning/moves/FileForms.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tmc::planning {

inline constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

/// Entries are named by their places in the list.
struct FileWork {
  enum class Role : uint8_t { Fixed, Task, Back };
  struct Load {
    ValueId value;
    size_t user, users;     // First entry; number of users.
    size_t task = kNowhere; // The task that waits for it.
    bool isIssued = false;
  };
  struct Task {
    size_t start, done, limit; // Entries; it starts before fixed `limit`.
    bool endsBefore = false;   // And ends before it.
    std::vector<size_t> after; // Tasks that start before it.
    std::vector<size_t> loads;
    size_t unread = 0; // Loads not done yet.
    bool isStarted = false;
  };
  /// All loads for one user.
  struct Need {
    size_t user;
    std::vector<size_t> loads;
    size_t task = kNowhere;
    int64_t wanted = 0;
  };

  /// Advances `planned` over the list. `isFiled`: by values on the host, those
  /// in the file. `keepsForTasks`: one read serves a fetch and a later task.
  FileWork(const Problem &problem, const FileForms &forms,
           const std::vector<Execution> &list, const std::vector<char> &isFiled,
           bool keepsForTasks, EngineClock &planned);

  const Problem &problem;
  const FileForms &forms;
  const std::vector<Execution> &list;
  const std::vector<char> &isFiled;
  const bool keepsForTasks;
  std::vector<Role> role;                                    // Per entry.
  std::vector<std::vector<std::pair<size_t, bool>>> touches; // Entry, writes.
  std::vector<size_t> startOf, doneOf;                       // By work.
  std::vector<size_t> taskAt, needOf; // Per entry, or kNowhere.
  std::vector<Task> tasks;
  std::vector<Load> loads;
  std::vector<Need> needs;                      // In the order of their users.
  std::vector<std::pair<size_t, size_t>> backs; // Entry, task.

  const Recipe &recipeAt(size_t e) const {
    return problem.recipes[list[e].recipe];
  }
  /// Number of the list's reads of `v`.
  size_t readsOf(ValueId v) const;
  /// Number of pieces of work that hold a new value of `v` on the host.
  size_t piecesOf(ValueId v) const;
  bool isIssued(const Need &need) const;
  /// Bytes of the loads that aren't issued yet.
  int64_t bytesOf(const Need &need) const;

private:
  void takeTimes(EngineClock &planned);
  void findTouches();
  void findTasks();
  void orderTask(size_t task);
  bool canComeBack(size_t e) const;
  void findLoads();
  void addLoad(ValueId v, size_t user);
  void findNeeds();

  std::vector<int64_t> begins; // Per entry, in the plan.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_FILEWORK_H
