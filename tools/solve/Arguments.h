// Arguments.h - the common part of the commands of `tmc-solve`: flags, files,
// messages, exit codes.

#ifndef TMC_TOOLS_SOLVE_ARGUMENTS_H
#define TMC_TOOLS_SOLVE_ARGUMENTS_H

#include "compiler/planning/driver/Solve.h"

#include <map>
#include <string>

namespace tmc::planning {

enum Exit {
  kDone = 0,
  kInput = 1,
  kUsage = 2,
  kBudget = 3,
  kUnsupported = 4,
  kDefect = 70,
  kWorld = 74
};

/// The text that a usage error prints after its message.
extern const char *const kUsageText;

/// Prints an error; returns `code`.
int fail(int code, const std::string &message);
void note(const std::string &message);

/// Options by name; the positional argument is `file`, and of some commands
/// `second`.
struct Arguments {
  std::string file, second;
  std::map<std::string, std::string> options;
  std::string error;

  /// Records an error; only the first one is reported.
  void wrong(const std::string &what) {
    if (error.empty())
      error = what;
  }
  bool has(const std::string &name) const { return options.count(name); }
  std::string get(const std::string &name,
                  const std::string &otherwise = "") const {
    auto it = options.find(name);
    return it == options.end() ? otherwise : it->second;
  }
};

/// Parses the arguments after the command, argv[1]. `known` maps each flag to
/// whether it takes a value. `second` says what a second positional argument
/// is; empty: there is none.
Arguments parseArguments(int argc, char **argv,
                         const std::map<std::string, bool> &known,
                         const std::string &second = "");
/// Prints the error of the arguments and the usage; returns the exit code.
int failUsage(const Arguments &args);
/// Parses an integer of at least `least`, with no other text after it.
bool parseInteger(const std::string &text, int64_t least, int64_t &value);
double percent(int64_t part, int64_t whole);

/// Reads the whole file; returns 0 or an exit code.
int readFile(const std::string &path, std::string &out);
/// Writes a file; "-" is standard output.
int writeFile(const std::string &path, const std::string &text);

/// Alignment of buffers in an arena, as in built-in targets.
inline constexpr int64_t kArenaAlignment = 256;

/// Adds the strategies that `--without` excludes, by name.
void addWithout(Arguments &args, SolveOptions &options);
/// Reads a problem, graph or full; returns 0 or an exit code.
int readProblem(const std::string &path, Problem &problem, bool &isGraph);
/// Sets the budgets of the host and the file from their flags, where they are
/// given and the problem has the space; returns 0 or an exit code.
int setOtherBudgets(const Arguments &args, Problem &problem);
/// A size in bytes; a note says what a unit of one letter means.
absl::StatusOr<int64_t> readBytes(const std::string &text);
/// `--budget`: a factor of the peak without recomputation, or bytes.
int readBudget(const std::string &text, const Problem &problem,
               int64_t &budget);

/// An Unimplemented error if the problem has more than one space and engine,
/// which are the limits of a planner.
absl::Status plansOneSpace(const Problem &problem);
/// Number of device values that a move may bring back. An absent one need not
/// be recomputed, so its rows in the bound by cases (`bound/Branch.h`) are
/// void.
int64_t fetchableValues(const Problem &problem);

} // namespace tmc::planning

#endif // TMC_TOOLS_SOLVE_ARGUMENTS_H
