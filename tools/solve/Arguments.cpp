#include "tools/solve/Arguments.h"

#include "compiler/planning/driver/Strategies.h"
#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/laboratory/ProblemReader.h"
#include "compiler/planning/laboratory/Text.h"
#include "compiler/support/Escape.h"
#include "runtime/kernels/Sizes.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace tmc::planning {

const char *const kUsageText =
    "usage: tmc-solve remat FILE --budget 0.8x|SIZE [options]\n"
    "       tmc-solve fit FILE --budget 0.8x|SIZE [options]\n"
    "       tmc-solve bound FILE [--budget 0.8x|SIZE] [options]\n"
    "       tmc-solve offload FILE --budget 0.8x|SIZE [options]\n"
    "       tmc-solve verify FILE PLAN.json [--budget 0.8x|SIZE] [options]\n"
    "       tmc-solve pack FILE.csv [--capacity SIZE] [options]\n"
    "       tmc-solve generate FAMILY --nodes N [options]\n"
    "       tmc-solve strategies\n"
    "       tmc-solve --help\n";

int fail(int code, const std::string &message) {
  fprintf(stderr, "error: %s\n", visible(message).c_str());
  return code;
}

void note(const std::string &message) {
  fprintf(stderr, "note: %s\n", visible(message).c_str());
}

namespace {

/// True if at most two letters are swapped, missing, extra or wrong.
bool isNear(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t here = std::min(
          {row[j] + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1])});
      corner = row[j];
      row[j] = here;
    }
  }
  return row[b.size()] <= 2;
}

std::optional<Strategy> strategyNamed(std::string_view name) {
  for (const StrategyRow &row : kStrategies)
    if (row.name == name)
      return row.strategy;
  return std::nullopt;
}

/// All names, for messages.
std::string strategyNames() {
  std::string names;
  for (const StrategyRow &row : kStrategies)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

} // namespace

Arguments parseArguments(int argc, char **argv,
                         const std::map<std::string, bool> &known,
                         const std::string &second) {
  Arguments out;
  for (int i = 2; i < argc; ++i) {
    std::string word = argv[i];
    if (word.size() > 1 && word[0] == '-') {
      size_t equals = word.find('=');
      std::string name = word.substr(0, equals);
      auto it = known.find(name);
      if (it == known.end()) {
        std::string what = "unknown option '" + name + "'";
        for (const auto &[other, takesValue] : known)
          if (isNear(name, other))
            what += "; did you mean '" + other + "'?";
        out.wrong(what);
      } else if (!it->second) {
        out.options[name] = "";
      } else if (equals != std::string::npos) {
        out.options[name] = word.substr(equals + 1);
      } else if (i + 1 < argc) {
        out.options[name] = argv[++i];
      } else {
        out.wrong("option '" + name + "' wants a value");
      }
    } else if (out.file.empty()) {
      out.file = word;
    } else if (!second.empty() && out.second.empty()) {
      out.second = word;
    } else if (!second.empty()) {
      out.wrong("three files given, the last is '" + word + "'");
    } else {
      out.wrong("two files given, '" + out.file + "' and '" + word + "'");
    }
  }
  if (out.file.empty())
    out.wrong("no file given");
  else if (!second.empty() && out.second.empty())
    out.wrong("no " + second + " given");
  return out;
}

int failUsage(const Arguments &args) {
  fail(kUsage, args.error);
  fputs(kUsageText, stderr);
  return kUsage;
}

bool parseInteger(const std::string &text, int64_t least, int64_t &value) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() &&
         value >= least;
}

int readFile(const std::string &path, std::string &out) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(fopen(path.c_str(), "rb"),
                                              fclose);
  if (!file)
    return fail(kInput, "can't open '" + path + "': " + strerror(errno));
  char buffer[65536];
  while (size_t n = fread(buffer, 1, sizeof buffer, file.get()))
    out.append(buffer, n);
  if (ferror(file.get()))
    return fail(kInput, "can't read '" + path + "': " + strerror(errno));
  return kDone;
}

int writeFile(const std::string &path, const std::string &text) {
  FILE *file = path == "-" ? stdout : fopen(path.c_str(), "wb");
  bool good = file && fwrite(text.data(), 1, text.size(), file) == text.size();
  good = (file && (file == stdout ? fflush(file) : fclose(file)) == 0) && good;
  if (good)
    return kDone;
  std::string why = strerror(errno);
  if (file && file != stdout)
    remove(path.c_str());
  return fail(kWorld, "can't write '" + path + "': " + why);
}

double percent(int64_t part, int64_t whole) {
  return whole ? 100.0 * double(part) / double(whole) : 0;
}

void addWithout(Arguments &args, SolveOptions &options) {
  std::string names = args.get("--without");
  for (size_t begin = 0; begin < names.size();) {
    size_t end = std::min(names.find(',', begin), names.size());
    std::string name = names.substr(begin, end - begin);
    if (std::optional<Strategy> strategy = strategyNamed(name))
      options.without.add(*strategy);
    else
      args.wrong("there is no strategy '" + name + "'; there are " +
                 strategyNames());
    begin = end + 1;
  }
}

int readProblem(const std::string &path, Problem &problem, bool &isGraph) {
  std::string text;
  if (int code = readFile(path, text))
    return code;
  isGraph = !isProblemFile(text);
  absl::StatusOr<Problem> read = absl::InternalError("");
  if (isGraph) {
    absl::StatusOr<Graph> graph = parseGraph(text);
    read = graph.ok() ? problemOf(*graph) : graph.status();
  } else {
    read = parseProblem(text);
  }
  if (read.ok())
    if (absl::Status status = check(*read); !status.ok())
      read = status;
  if (!read.ok())
    return fail(kInput, path + ": " + std::string(read.status().message()));
  problem = std::move(*read);
  return kDone;
}

absl::StatusOr<int64_t> readBytes(const std::string &text) {
  absl::StatusOr<int64_t> size = parseSize(text);
  if (const std::string said = readSize(text).note; size.ok() && !said.empty())
    note(said);
  return size;
}

int readBudget(const std::string &text, const Problem &problem,
               int64_t &budget) {
  if (absl::StatusOr<Factor> factor = parseFactor(text); factor.ok())
    budget =
        factor->times(simulate(problem, baseSolution(problem))->peakBytes) +
        problem.reservedBytes;
  else if (absl::StatusOr<int64_t> size = readBytes(text); size.ok())
    budget = *size;
  else
    return fail(kUsage, "--budget " + std::string(size.status().message()) +
                            ", or a factor such as 0.8x");
  return kDone;
}

int setOtherBudgets(const Arguments &args, Problem &problem) {
  for (MemorySpace &space : problem.spaces) {
    const char *flag = space.kind == SpaceKind::Host   ? "--host-budget"
                       : space.kind == SpaceKind::File ? "--file-budget"
                                                       : "";
    if (args.has(flag))
      if (int code = readBudget(args.get(flag), problem, space.budgetBytes))
        return code;
  }
  return kDone;
}

absl::Status plansOneSpace(const Problem &problem) {
  if (isOneSpace(problem))
    return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "this planner takes one space and one engine; the problem has ",
      problem.spaces.size(), " spaces and ", problem.engines.size(),
      " engines"));
}

int64_t fetchableValues(const Problem &problem) {
  std::vector<char> isFetchable(problem.values.size(), 0);
  for (const Recipe &r : problem.recipes)
    if (problem.isFetch(r))
      isFetchable[r.writes[0]] = 1;
  return std::count(isFetchable.begin(), isFetchable.end(), 1);
}

} // namespace tmc::planning
