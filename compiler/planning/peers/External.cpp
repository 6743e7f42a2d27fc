#include "compiler/planning/peers/External.h"

#include "compiler/planning/model/ProblemFile.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <limits>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tmc::planning;

extern char **environ;

namespace {

/// Default time limit of an external planner.
constexpr double kPatienceSeconds = 600;
constexpr size_t kMostAnswerBytes = size_t(1) << 30;

/// Standard output of `/bin/sh -c 'COMMAND "$1" "$2"'`.
absl::StatusOr<std::string> run(const std::string &command,
                                const std::string &file,
                                const std::string &budget, double seconds) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC))
    return absl::UnavailableError("no pipe for the external planner");
  std::string script = command + " \"$1\" \"$2\"";
  std::string words[] = {"sh", "-c", script, "sh", file, budget};
  char *argv[] = {words[0].data(), words[1].data(), words[2].data(),
                  words[3].data(), words[4].data(), words[5].data(),
                  nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
  pid_t child = 0;
  int error = posix_spawn(&child, "/bin/sh", &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  auto named = [&](auto... what) {
    return absl::StrCat("the external planner '", command, "' ", what...);
  };
  if (error) {
    close(fds[0]);
    return absl::UnavailableError(named("doesn't start"));
  }
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  auto left = [&] { // Milliseconds, at most a quarter of a second.
    double ms =
        std::chrono::duration<double, std::milli>(end - Clock::now()).count();
    return int(std::clamp(ms, 0.0, 250.0));
  };
  std::string out, defect;
  char buffer[65536];
  for (bool open = true; open && defect.empty();) {
    pollfd ready = {fds[0], POLLIN, 0};
    if (poll(&ready, 1, left()) > 0) {
      ssize_t n = read(fds[0], buffer, sizeof buffer);
      if (n > 0)
        out.append(buffer, size_t(n));
      open = n > 0 || (n < 0 && errno == EINTR);
    }
    if (out.size() > kMostAnswerBytes)
      defect = named("writes more than ", kMostAnswerBytes, " bytes");
    else if (open && Clock::now() >= end)
      defect = named("hasn't ended after ", seconds,
                     " s; --time-limit says how long it may take");
  }
  close(fds[0]);
  int status = 0;
  // The program may close its output and continue.
  while (defect.empty()) {
    pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child || (done < 0 && errno != EINTR))
      break;
    if (Clock::now() >= end)
      defect = named("hasn't ended after ", seconds,
                     " s; --time-limit says how long it may take");
    else
      poll(nullptr, 0, std::min(left(), 5));
  }
  if (!defect.empty()) {
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
      ;
    return absl::FailedPreconditionError(defect);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status))
    return absl::FailedPreconditionError(
        named("ended with ", WIFEXITED(status) ? "exit code " : "signal ",
              WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
  return out;
}

/// A temporary file with the problem; removed at the end of its life.
class ProblemFileOnDisk {
public:
  explicit ProblemFileOnDisk(const Problem &problem) {
    const char *directory = std::getenv("TMPDIR");
    path = absl::StrCat(directory && *directory ? directory : "/tmp",
                        "/tmc-problem-XXXXXX");
    const int fd = mkstemp(path.data());
    if (fd < 0) {
      path.clear();
      return;
    }
    const std::string text = printProblem(problem);
    size_t done = 0;
    while (done < text.size()) {
      ssize_t n = write(fd, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        break;
      done += size_t(n);
    }
    isWhole = close(fd) == 0 && done == text.size();
  }
  ~ProblemFileOnDisk() {
    if (!path.empty())
      unlink(path.c_str());
  }
  ProblemFileOnDisk(const ProblemFileOnDisk &) = delete;
  ProblemFileOnDisk &operator=(const ProblemFileOnDisk &) = delete;

  std::string path;
  bool isWhole = false;
};

/// The words of an answer, one after the other.
class Words {
public:
  explicit Words(std::string_view text) : rest(text) { skipBlanks(); }

  bool atEnd() const { return rest.empty(); }
  /// Takes the next word if it is `word`.
  bool take(std::string_view word) {
    if (rest.substr(0, rest.find_first_of(kBlanks)) != word)
      return false;
    rest.remove_prefix(word.size());
    skipBlanks();
    return true;
  }
  absl::StatusOr<int64_t> number() {
    int64_t number = 0;
    auto [stop, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || number < 0 ||
        number > std::numeric_limits<int32_t>::max())
      return absl::InvalidArgumentError(absl::StrCat(
          "the planner's answer has no number after ", count, " of them"));
    ++count;
    rest.remove_prefix(size_t(stop - rest.data()));
    skipBlanks();
    return number;
  }

private:
  static constexpr std::string_view kBlanks = " \t\r\n";
  void skipBlanks() {
    rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  }
  std::string_view rest;
  int64_t count = 0;
};

/// Builds the lists of a full problem, entry by entry.
class AnswerLists {
public:
  explicit AnswerLists(const Problem &problem)
      : problem(problem), ran(problem.instructions.size(), 0),
        open(problem.segments.size() * problem.engines.size()) {
    solution.segments.resize(problem.segments.size());
  }

  absl::Status add(Words &words) {
    const bool isHome = words.take("home");
    absl::StatusOr<int64_t> first = words.number();
    if (first.ok() && isHome) {
      solution.homes.push_back(ValueId(*first)); // The verifier looks at it.
      return absl::OkStatus();
    }
    absl::StatusOr<int64_t> recipe = first.ok() ? words.number() : first;
    if (!recipe.ok())
      return recipe.status();
    if (*first >= int64_t(problem.segments.size()) ||
        *recipe >= int64_t(problem.recipes.size()))
      return absl::InvalidArgumentError(absl::StrCat(
          "the planner's answer runs recipe ", *recipe, " in segment ", *first,
          ", of ", problem.recipes.size(), " and ", problem.segments.size()));
    Execution e{RecipeId(*recipe), kNone, {}, Phase::Whole, kNone};
    if (words.take("start"))
      e.phase = Phase::Start;
    else if (words.take("done"))
      e.phase = Phase::Done;
    return run(SegmentId(*first), std::move(e));
  }

  Solution solution;

private:
  /// The first run of an instruction's recipe is its own. A done ends the
  /// engine's oldest work.
  absl::Status run(SegmentId s, Execution e) {
    std::vector<Execution> &list = solution.segments[s];
    const Recipe &r = problem.recipes[e.recipe];
    std::deque<int32_t> &work = open[s * problem.engines.size() + r.engine];
    if (e.phase == Phase::Done) {
      if (work.empty() || list[work.front()].recipe != e.recipe)
        return absl::InvalidArgumentError(absl::StrCat(
            "the planner's answer ends '", r.name, "', but ",
            work.empty() ? "it isn't under way"
                         : "its engine runs other work before it"));
      e.work = work.front();
      e.instruction = list[e.work].instruction;
      work.pop_front();
    } else if (r.instruction != kNone && !ran[r.instruction]++) {
      e.instruction = r.instruction;
    }
    if (e.phase == Phase::Start)
      work.push_back(e.work = int32_t(list.size()));
    list.push_back(std::move(e));
    return absl::OkStatus();
  }

  const Problem &problem;
  std::vector<char> ran;                 // Per instruction.
  std::vector<std::deque<int32_t>> open; // Starts, per segment and engine.
};

/// True if the file holds a graph, and no full problem.
bool isGraphFile(const std::string &path) {
  constexpr std::string_view kBegin = kOneSpaceLine.substr(0, 11);
  std::string begin(kBegin.size(), ' ');
  return !std::ifstream(path).read(begin.data(), begin.size()) ||
         begin != kBegin;
}

} // namespace

absl::StatusOr<Solution>
tmc::planning::solutionOfNodes(const Problem &problem,
                               const std::vector<int64_t> &nodes) {
  Solution solution;
  solution.segments.resize(1);
  std::vector<char> ran(problem.instructions.size(), 0);
  for (int64_t node : nodes) {
    if (node < 0 || size_t(node) >= ran.size())
      return absl::InvalidArgumentError(
          absl::StrCat("the sequence names node ", node, " of ", ran.size()));
    solution.segments[0].push_back(
        {RecipeId(node), ran[node] ? kNone : InstructionId(node), {}});
    ran[node] = 1;
  }
  return solution;
}

absl::StatusOr<Solution> tmc::planning::parseAnswer(const Problem &problem,
                                                    std::string_view text,
                                                    bool isGraph) {
  Words words(text);
  AnswerLists lists(problem);
  std::vector<int64_t> nodes;
  while (!words.atEnd()) {
    absl::StatusOr<int64_t> node = 0;
    if (isGraph)
      node = words.number();
    if (absl::Status status = isGraph ? node.status() : lists.add(words);
        !status.ok())
      return status;
    nodes.push_back(*node);
  }
  return isGraph ? solutionOfNodes(problem, nodes) : std::move(lists.solution);
}

absl::StatusOr<Solution>
tmc::planning::planByProgram(const std::string &command, const Problem &problem,
                             const PlanRequest &request,
                             const std::string &problemFile) {
  std::optional<ProblemFileOnDisk> written;
  if (problemFile.empty() && !written.emplace(problem).isWhole)
    return absl::UnavailableError(
        "the planner's problem file can't be written");
  absl::StatusOr<std::string> out =
      run(command, written ? written->path : problemFile,
          std::to_string(request.budgetBytes),
          request.timeLimitSeconds > 0 ? request.timeLimitSeconds
                                       : kPatienceSeconds);
  if (!out.ok())
    return out.status();
  return parseAnswer(problem, *out, !written && isGraphFile(problemFile));
}
