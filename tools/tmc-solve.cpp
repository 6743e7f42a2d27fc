// tmc-solve - the planners on plain files, without a compiler around them.
//
//   tmc-solve remat FILE --budget 0.8x|SIZE [--order fixed|free] [--seed N]
//                        [--effort N] [--time-limit S] [--without NAME,...]
//                        [--planner NAME|exec:CMD] [--json FILE]
//   tmc-solve fit   FILE --budget 0.8x|SIZE [--seed N] [--without NAME,...]
//                        [--json FILE]
//   tmc-solve bound FILE [--budget 0.8x|SIZE] [--effort N] [--json FILE]
//   tmc-solve pack  FILE.csv [--capacity N] [-o OUT.csv]
//   tmc-solve generate transformer|unet|random-layered --nodes N [--seed N]
//                        [--repeats] [--lifetimes] [-o FILE]
//   tmc-solve generate step --nodes N [--seed N] [--bandwidth GB/s]
//                        [--file-bandwidth GB/s] [--micro-batches N] [-o FILE]
//   tmc-solve strategies
//
// Exit codes: 0 done; 1 the input is at fault; 2 usage; 3 the budget or the
// capacity isn't met; 4 the planner can't take this problem; 70 a defect of
// ours; 74 the world is at fault.

#include "compiler/planning/bound/SpaceBound.h"
#include "compiler/planning/bound/SpaceBoundCheck.h"
#include "compiler/planning/driver/ArenaFit.h"
#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/model/Generate.h"
#include "compiler/planning/model/GenerateStep.h"
#include "compiler/planning/model/Graph.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Text.h"
#include "compiler/planning/pack/ArenaFile.h"
#include "compiler/planning/pack/Buffers.h"
#include "compiler/planning/peers/Milp.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace tmc::planning;

namespace {

enum Exit {
  kDone = 0,
  kInput = 1,
  kUsage = 2,
  kBudget = 3,
  kUnsupported = 4,
  kDefect = 70,
  kWorld = 74
};

/// Of the arena's buffers, as built-in targets have it.
constexpr int64_t kArenaAlignment = 256;

constexpr const char *kUsageText =
    "usage: tmc-solve remat FILE --budget 0.8x|SIZE [options]\n"
    "       tmc-solve fit FILE --budget 0.8x|SIZE [options]\n"
    "       tmc-solve bound FILE [--budget 0.8x|SIZE] [options]\n"
    "       tmc-solve pack FILE.csv [--capacity SIZE] [options]\n"
    "       tmc-solve generate FAMILY --nodes N [options]\n"
    "       tmc-solve strategies\n"
    "       tmc-solve --help\n";

/// What `--help` prints after the usage; planners follow.
constexpr const char *kHelpText =
    "\n"
    "remat: which values to recompute, and when, within a budget of bytes.\n"
    "FILE is a graph (n m; n lines: bytes cost; m lines: from to) or a full\n"
    "problem, as tmc plan --problem writes it.\n"
    "  --budget 0.8x|SIZE    of the peak without recomputation, or bytes, "
    "KiB,\n"
    "                        MiB, GiB, KB, MB, GB\n"
    "  --order fixed|free    keep the order of first executions (default) or "
    "not\n"
    "  --planner NAME        one of those below, or exec:CMD: a program that "
    "gets\n"
    "                        FILE and the budget, and writes executions\n"
    "  --frontier            look for the smallest budget with a plan as well\n"
    "  --seed N              another search (default 1)\n"
    "  --effort N            counted work, in percent (default 100)\n"
    "  --without NAME,...    leave strategies out, to measure what they gain\n"
    "  --time-limit S        stop after S seconds with the best so far\n"
    "  --json FILE           the plan and its proof; - is standard output\n"
    "\n"
    "fit: plans and packs as the compiler does, so that the arena fits.\n"
    "  --budget, --seed, --without, --json   as above\n"
    "\n"
    "bound: what no plan in the program's order is faster than, in any of its\n"
    "spaces and on all of its engines, and whether the checker says so, too.\n"
    "  --budget              of the device; default: what FILE says\n"
    "  --effort N            counted work, in percent (default 100)\n"
    "  --json FILE           the bound and its proof; - is standard output\n"
    "\n"
    "pack: offsets for buffers with lifetimes, in one arena.\n"
    "FILE.csv has columns id,lower,upper,size and may have "
    "alignment,inside,distance,fixed.\n"
    "  --capacity SIZE       what the arena must fit (default: as small as "
    "found)\n"
    "  --seed N, --effort N  as above\n"
    "  -o OUT.csv            the rows with their offset\n"
    "\n"
    "generate: graphs of training steps; FAMILY is transformer, unet or "
    "random-layered;\n"
    "step is a problem with a host, and all that may move there.\n"
    "  --nodes N             about as many nodes; of step: layers\n"
    "  --bandwidth N         step: GB/s of its link, each way (default 25)\n"
    "  --file-bandwidth N    step: GB/s of a file (default: there is none)\n"
    "  --micro-batches N     step: trips of its body (default 1)\n"
    "  --seed N              another graph (default 1)\n"
    "  --repeats             all layers alike\n"
    "  --lifetimes           its buffers, for pack\n"
    "  -o FILE               default: standard output\n"
    "\n"
    "strategies: the names that --without takes, one per line.\n"
    "\n"
    "exit codes: 0 done, 1 the input is at fault, 2 usage, 3 the budget or "
    "the\n"
    "capacity isn't met, 4 the planner can't take this problem, 70 a defect "
    "of\n"
    "tmc-solve, 74 a file can't be written\n"
    "\n"
    "planners:\n";

int fail(int code, const std::string &message) {
  fprintf(stderr, "error: %s\n", message.c_str());
  return code;
}

void note(const std::string &message) {
  fprintf(stderr, "note: %s\n", message.c_str());
}

/// Options by name; the one positional argument is `file`.
struct Arguments {
  std::string file;
  std::map<std::string, std::string> options;
  std::string error;

  /// The first that is wrong is what is told.
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

/// At most two letters swapped, missing, added or wrong.
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

Arguments parseArguments(int argc, char **argv,
                         const std::map<std::string, bool> &known) {
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
    } else {
      out.wrong("two files given, '" + out.file + "' and '" + word + "'");
    }
  }
  if (out.file.empty())
    out.wrong("no file given");
  return out;
}

bool parseInteger(const std::string &text, int64_t least, int64_t &value) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() &&
         value >= least;
}

/// The whole file, or an exit code.
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

/// "-" is standard output.
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

/// The tree of cases with its prices (`Branch.h`).
void describe(JsonWriter &json, const BranchCertificate &cases,
              int64_t baseCost) {
  auto pairs = [&](const char *name,
                   const std::vector<std::pair<int32_t, int64_t>> &list) {
    json.key(name);
    json.beginArray();
    for (auto [index, price] : list) {
      json.beginArray();
      json.value(int64_t(index));
      json.value(price);
      json.endArray();
    }
    json.endArray();
  };
  json.beginObject();
  json.member("kind", "cases");
  json.member("scope", "fixed-order");
  json.member("lower_bound_pct", percent(cases.extraCost, baseCost));
  json.member("denominator", cases.denominator);
  json.key("moments");
  json.beginArray();
  for (int32_t k : cases.moments)
    json.value(int64_t(k));
  json.endArray();
  json.key("rows"); // value, moment before its gap, moment number, input
  json.beginArray();
  for (const DependencyRow &row : cases.rows) {
    json.beginArray();
    for (int32_t x : {row.value, row.after, row.moment, row.read})
      json.value(int64_t(x));
    json.endArray();
  }
  json.endArray();
  json.key("nodes"); // Preorder: a split, its kept case, its broken one.
  json.beginArray();
  for (const BranchCertificate::Node &node : cases.nodes) {
    json.beginObject();
    if (node.value != kNone) {
      json.member("value", int64_t(node.value));
      json.member("after", int64_t(node.after));
    } else {
      pairs("lambda", node.lambda);
      pairs("mu", node.mu);
    }
    json.endObject();
  }
  json.endArray();
  json.endObject();
}

std::string describe(const Problem &problem, const Plan &plan,
                     const SolveOptions &options, bool isGraph) {
  JsonWriter json;
  json.beginObject();
  json.member("schema_version", int64_t(1));
  json.member("budget", options.budgetBytes);
  json.member("feasible", plan.feasible);
  if (plan.feasible) {
    json.member("peak", plan.peakBytes + problem.reservedBytes);
    json.member("base_cost", plan.baseCost);
    json.member("cost", plan.cost);
    json.member("overhead_pct",
                percent(plan.cost - plan.baseCost, plan.baseCost));
  } else {
    json.nullMember("peak");
    json.member("base_cost", plan.baseCost);
    json.nullMember("cost");
    json.nullMember("overhead_pct");
  }
  json.member("lower_bound_pct",
              percent(plan.certificate.extraCost, plan.baseCost));
  json.member("lower_bound_scope", "fixed-order");
  json.key("lambda");
  json.beginArray();
  for (auto [moment, price] : plan.certificate.lambda) {
    json.beginArray();
    json.value(int64_t(moment));
    json.value(price);
    json.endArray();
  }
  json.endArray();
  json.member("lambda_denominator", plan.certificate.denominator);
  json.key("other_bounds");
  json.beginArray();
  if (plan.cases)
    describe(json, *plan.cases, plan.baseCost);
  json.endArray();
  json.member("smallest_found_bytes", plan.smallestFoundBytes);
  json.member("impossible_below_bytes", plan.impossibleBelowBytes);
  json.member("frontier_ratio", plan.impossibleBelowBytes
                                    ? double(plan.smallestFoundBytes) /
                                          double(plan.impossibleBelowBytes)
                                    : 1.0);
  json.key("sequence");
  if (!plan.feasible) {
    json.null();
  } else {
    json.beginArray();
    if (isGraph)
      for (int32_t node : sequenceOf(problem, plan.solution))
        json.value(int64_t(node));
    else
      for (size_t s = 0; s < plan.solution.segments.size(); ++s)
        for (const Execution &e : plan.solution.segments[s]) {
          json.beginArray();
          json.value(int64_t(s));
          json.value(int64_t(e.recipe));
          json.endArray();
        }
    json.endArray();
  }
  json.member("order", options.order == OrderMode::Free ? "free" : "fixed");
  json.key("first_executions");
  json.beginArray();
  for (const std::vector<InstructionId> &order : plan.orders)
    for (InstructionId i : order)
      json.value(int64_t(i));
  json.endArray();
  json.member("recomputed_ops", plan.stats.recomputedExecutions);
  json.member("repeated_instructions", plan.stats.repeatedInstructions);
  json.member("work", plan.stats.work);
  json.member("time_limit_hit", plan.stats.timeLimitHit);
  json.member("seconds", plan.stats.seconds);
  json.endObject();
  return json.take();
}

/// Strategies by name that are left out.
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

/// The problem of a file, graph or full; an exit code where there is none.
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

/// `--budget`: a factor of the peak without recomputation, or bytes.
int readBudget(const std::string &text, const Problem &problem,
               int64_t &budget) {
  if (absl::StatusOr<Factor> factor = parseFactor(text); factor.ok())
    budget =
        factor->times(simulate(problem, baseSolution(problem))->peakBytes) +
        problem.reservedBytes;
  else if (absl::StatusOr<int64_t> size = parseSize(text); size.ok())
    budget = *size;
  else
    return fail(kUsage, "--budget " + std::string(size.status().message()) +
                            ", or a factor such as 0.8x");
  return kDone;
}

int solveRemat(int argc, char **argv) {
  Arguments args = parseArguments(argc, argv,
                                  {{"--budget", true},
                                   {"--order", true},
                                   {"--seed", true},
                                   {"--effort", true},
                                   {"--time-limit", true},
                                   {"--planner", true},
                                   {"--json", true},
                                   {"--without", true},
                                   {"--frontier", false}});
  SolveOptions options;
  options.wantFrontier = args.has("--frontier");
  options.effort = Effort::thorough();
  int64_t seed = 1;
  if (args.error.empty() && !args.has("--budget"))
    args.wrong("no --budget given");
  if (args.has("--seed") && !parseInteger(args.get("--seed"), 0, seed))
    args.wrong("--seed wants a whole number, not '" + args.get("--seed") + "'");
  if (args.has("--effort") &&
      !parseInteger(args.get("--effort"), 0, options.effort.percent))
    args.wrong("--effort wants a percentage, not '" + args.get("--effort") +
               "'");
  addWithout(args, options);
  if (std::string limit = args.get("--time-limit"); !limit.empty()) {
    char *end = nullptr;
    options.timeLimitSeconds = strtod(limit.c_str(), &end);
    if (*end || !(options.timeLimitSeconds > 0))
      args.wrong("--time-limit wants seconds, not '" + limit + "'");
  }
  std::string order = args.get("--order", "fixed");
  if (order != "fixed" && order != "free")
    args.wrong("--order is fixed or free, not '" + order + "'");
  std::string planner = args.get("--planner", "tmc");
  if (!isPlanner(planner))
    args.wrong("there is no planner '" + planner + "'; there are " +
               plannerNames());
  if (!args.error.empty()) {
    fail(kUsage, args.error);
    fputs(kUsageText, stderr);
    return kUsage;
  }
  options.seed = uint64_t(seed);
  options.order = order == "free" ? OrderMode::Free : OrderMode::Fixed;

  Problem problem;
  bool isGraph = false;
  if (int code = readProblem(args.file, problem, isGraph))
    return code;
  if (int code = readBudget(args.get("--budget"), problem, options.budgetBytes))
    return code;

  absl::StatusOr<Plan> plan = planBy(planner, problem, options, args.file);
  if (!plan.ok()) {
    int code = plan.status().code() == absl::StatusCode::kInternal ? kDefect
               : plan.status().code() == absl::StatusCode::kUnavailable ? kWorld
               : plan.status().code() == absl::StatusCode::kUnimplemented
                   ? kUnsupported
                   : kInput;
    if (code == kDefect)
      note("the input '" + args.file + "' reproduces it");
    return fail(code, std::string(plan.status().message()));
  }
  if (std::optional<std::string> defect =
          checkCertificate(problem, plan->certificate);
      defect && order == "fixed") {
    note("the input '" + args.file + "' reproduces it");
    return fail(kDefect, "the certificate is wrong: " + *defect);
  }
  if (plan->cases && order == "fixed")
    if (std::optional<std::string> defect =
            checkBranching(problem, *plan->cases)) {
      note("the input '" + args.file + "' reproduces it");
      return fail(kDefect, "the proof by cases is wrong: " + *defect);
    }
  std::string json = args.get("--json");
  if (!json.empty())
    if (int code = writeFile(json, describe(problem, *plan, options, isGraph)))
      return code;
  if (!plan->feasible) {
    fail(kBudget,
         "needs " + std::to_string(plan->smallestFoundBytes) + " bytes, " +
             std::to_string(plan->smallestFoundBytes - options.budgetBytes) +
             " over the budget of " + std::to_string(options.budgetBytes));
    note("the smallest budget with a known plan is " +
         std::to_string(plan->smallestFoundBytes) + " bytes; below " +
         std::to_string(plan->impossibleBelowBytes) + " there is none");
    return kBudget;
  }
  if (plan->stats.timeLimitHit)
    note("the time limit ended the search: another run may find another plan");
  const int64_t peak = plan->peakBytes + problem.reservedBytes;
  if (json != "-")
    fprintf(stderr,
            "peak %lld of %lld bytes, overhead %.4f%%, at least %.4f%% (order "
            "%s), %lld recomputed, frontier ratio %.3f, %.2f s\n",
            (long long)peak, (long long)options.budgetBytes,
            plan->overheadPct(),
            percent(plan->provenExtraCost(), plan->baseCost), order.c_str(),
            (long long)plan->stats.recomputedExecutions,
            plan->impossibleBelowBytes ? double(plan->smallestFoundBytes) /
                                             double(plan->impossibleBelowBytes)
                                       : 1.0,
            plan->stats.seconds);
  return kDone;
}

/// Plans and packs as the compiler does: what must fit is the arena.
int solveFit(int argc, char **argv) {
  Arguments args = parseArguments(argc, argv,
                                  {{"--budget", true},
                                   {"--seed", true},
                                   {"--without", true},
                                   {"--json", true}});
  SolveOptions options;
  options.order = OrderMode::Free;
  int64_t seed = 1;
  if (args.error.empty() && !args.has("--budget"))
    args.wrong("no --budget given");
  if (args.has("--seed") && !parseInteger(args.get("--seed"), 0, seed))
    args.wrong("--seed wants a whole number, not '" + args.get("--seed") + "'");
  addWithout(args, options);
  if (!args.error.empty()) {
    fail(kUsage, args.error);
    fputs(kUsageText, stderr);
    return kUsage;
  }
  options.seed = uint64_t(seed);
  Problem problem;
  bool isGraph = false;
  if (int code = readProblem(args.file, problem, isGraph))
    return code;
  if (absl::Status status = plansOneSpace(problem); !status.ok())
    return fail(kUnsupported, args.file + ": " + std::string(status.message()));
  int64_t budget = -1;
  if (int code = readBudget(args.get("--budget"), problem, budget))
    return code;
  PlanCache cache(problem, kArenaAlignment, options);
  absl::StatusOr<const FittedPlan *> found = cache.fit(budget);
  absl::StatusOr<const FittedPlan *> smallest = cache.smallest();
  for (const absl::Status &status : {found.status(), smallest.status()})
    if (!status.ok())
      return fail(kInput, args.file + ": " + std::string(status.message()));
  const FittedPlan *fitted = *found;
  int64_t least = (*smallest)->arenaBytes + problem.reservedBytes;
  Plan proved = (fitted ? fitted : *smallest)->plan;
  recertify(problem, proved, budget);
  if (fitted)
    proveByCases(problem, proved, budget);
  JsonWriter json;
  json.beginObject();
  json.member("schema_version", int64_t(1));
  json.member("budget", budget);
  json.member("feasible", fitted != nullptr);
  json.member("arena_bytes", (fitted ? fitted->arenaBytes : least) +
                                 (fitted ? problem.reservedBytes : 0));
  json.member("overhead_pct", proved.overheadPct());
  json.member("lower_bound_pct",
              percent(proved.provenExtraCost(), proved.baseCost));
  json.member("smallest_found_bytes", least);
  json.member("impossible_below_bytes", cache.impossibleBelowBytes());
  json.endObject();
  if (std::string path = args.get("--json"); !path.empty())
    if (int code = writeFile(path, json.take()))
      return code;
  if (!fitted)
    return fail(kBudget, "needs " + std::to_string(least) + " bytes, " +
                             std::to_string(least - budget) +
                             " over the budget of " + std::to_string(budget));
  const int64_t arena = fitted->arenaBytes + problem.reservedBytes;
  fprintf(stderr,
          "arena %lld of %lld bytes, overhead %.4f%%, at least %.4f%%\n",
          (long long)arena, (long long)budget, proved.overheadPct(),
          percent(proved.provenExtraCost(), proved.baseCost));
  return kDone;
}

std::string describe(const Problem &problem, const SpaceCertificate &proof,
                     int64_t bound, int64_t load) {
  JsonWriter json;
  json.beginObject();
  json.member("schema_version", int64_t(1));
  json.member("budget", problem.spaces[0].budgetBytes);
  json.member("lower_bound", bound);
  json.member("scope", "fixed-order");
  json.member("base_load", load);
  json.member("denominator", proof.denominator);
  json.key("weights"); // Of each segment, of each engine.
  json.beginArray();
  for (const std::vector<int64_t> &row : proof.weights) {
    json.beginArray();
    for (int64_t weight : row)
      json.value(weight);
    json.endArray();
  }
  json.endArray();
  json.key("prices"); // instruction, space, price of a byte
  json.beginArray();
  for (const SpaceCertificate::Price &price : proof.prices) {
    json.beginArray();
    json.value(int64_t(price.moment));
    json.value(int64_t(price.space));
    json.value(price.price);
    json.endArray();
  }
  json.endArray();
  json.endObject();
  return json.take();
}

int solveBound(int argc, char **argv) {
  Arguments args = parseArguments(
      argc, argv, {{"--budget", true}, {"--effort", true}, {"--json", true}});
  constexpr int64_t kMostEffort = 100'000;
  int64_t effort = 100;
  if (args.has("--effort") &&
      (!parseInteger(args.get("--effort"), 0, effort) || effort > kMostEffort))
    args.wrong("--effort wants a percentage, not '" + args.get("--effort") +
               "'");
  if (!args.error.empty()) {
    fail(kUsage, args.error);
    fputs(kUsageText, stderr);
    return kUsage;
  }
  Problem problem;
  bool isGraph = false;
  if (int code = readProblem(args.file, problem, isGraph))
    return code;
  if (args.has("--budget"))
    if (int code = readBudget(args.get("--budget"), problem,
                              problem.spaces[0].budgetBytes))
      return code;
  auto begin = std::chrono::steady_clock::now();
  SpaceAscentOptions options;
  options.steps = options.steps * effort / 100;
  absl::StatusOr<SpaceCertificate> proof = ascendSpaces(problem, options);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  if (!proof.ok())
    return fail(kUnsupported,
                args.file + ": " + std::string(proof.status().message()));
  absl::StatusOr<int64_t> bound = provenMakespan(problem, *proof);
  absl::StatusOr<int64_t> judged = checkSpaceBound(problem, *proof);
  absl::StatusOr<int64_t> load =
      checkSpaceBound(problem, plainCertificate(problem));
  for (const absl::Status &status :
       {bound.status(), judged.status(), load.status()})
    if (!status.ok())
      return fail(status.code() == absl::StatusCode::kUnimplemented
                      ? kUnsupported
                      : kDefect,
                  args.file + ": " + std::string(status.message()));
  if (*bound != *judged) {
    note("the input '" + args.file + "' reproduces it");
    return fail(kDefect, "the bound is " + std::to_string(*bound) +
                             ", but the checker finds " +
                             std::to_string(*judged));
  }
  if (std::string path = args.get("--json"); !path.empty())
    if (int code = writeFile(path, describe(problem, *proof, *bound, *load)))
      return code;
  fprintf(stderr,
          "no plan is faster than %lld, %.4f%% above the load of compute "
          "alone; checked; %.2f seconds\n",
          (long long)*bound, percent(*bound - *load, *load), seconds.count());
  return kDone;
}

int solvePack(int argc, char **argv) {
  Arguments args = parseArguments(argc, argv,
                                  {{"--capacity", true},
                                   {"--seed", true},
                                   {"--effort", true},
                                   {"-o", true}});
  int64_t capacity = -1, seed = 1;
  PackOptions options;
  if (args.has("--seed") && !parseInteger(args.get("--seed"), 0, seed))
    args.wrong("--seed wants a whole number, not '" + args.get("--seed") + "'");
  if (args.has("--effort") &&
      !parseInteger(args.get("--effort"), 0, options.effort))
    args.wrong("--effort wants a percentage, not '" + args.get("--effort") +
               "'");
  if (args.has("--capacity")) {
    absl::StatusOr<int64_t> size = parseSize(args.get("--capacity"));
    if (size.ok())
      capacity = *size;
    else
      args.wrong("--capacity " + std::string(size.status().message()));
  }
  if (!args.error.empty()) {
    fail(kUsage, args.error);
    fputs(kUsageText, stderr);
    return kUsage;
  }
  options.seed = uint64_t(seed);
  std::string text;
  if (int code = readFile(args.file, text))
    return code;
  absl::StatusOr<ArenaProblem> problem = parseArena(text);
  if (!problem.ok())
    return fail(kInput,
                args.file + ": " + std::string(problem.status().message()));
  problem->capacityBytes = capacity;
  Packing packing = packArena(*problem, options);
  if (std::optional<std::string> defect = verifyPacking(*problem, packing)) {
    note("the input '" + args.file + "' reproduces it");
    return fail(kDefect, "the packing is wrong: " + *defect);
  }
  int64_t peak = peakBytes(*problem);
  if (capacity >= 0 && packing.arenaBytes > capacity) {
    fail(kBudget, "needs " + std::to_string(packing.arenaBytes) + " bytes, " +
                      std::to_string(packing.arenaBytes - capacity) +
                      " over the capacity of " + std::to_string(capacity));
    note("the smallest capacity with a known packing is " +
         std::to_string(packing.arenaBytes) + " bytes; below " +
         std::to_string(peak) + " there is none");
    return kBudget;
  }
  if (args.has("-o"))
    if (int code = writeFile(args.get("-o"), printPacking(*problem, packing)))
      return code;
  fprintf(stderr, "%zu buffers in %lld bytes, live peak %lld (%.4f%% above)\n",
          problem->buffers.size(), (long long)packing.arenaBytes,
          (long long)peak, percent(packing.arenaBytes - peak, peak));
  return kDone;
}

/// The problem of a step of so many layers; none if `args` are wrong.
std::optional<Problem> generatedStep(Arguments &args, int64_t layers,
                                     int64_t seed) {
  constexpr int64_t kMostLayers = 10'000, kGiga = 1'000'000'000;
  StepOptions options;
  options.layers = layers;
  options.seed = uint64_t(seed);
  if (layers > kMostLayers)
    args.wrong("--nodes of a step wants at most 10000 layers");
  auto number = [&](const char *flag, int64_t most, int64_t scale,
                    int64_t &into) {
    if (!args.has(flag))
      return;
    int64_t given = 0;
    if (!parseInteger(args.get(flag), 1, given) || given > most)
      args.wrong(std::string(flag) + " wants a number from 1 to " +
                 std::to_string(most));
    into = given * scale;
  };
  number("--bandwidth", 10'000, kGiga, options.linkBandwidth);
  number("--file-bandwidth", 10'000, kGiga, options.fileBandwidth);
  number("--micro-batches", 1'000, 1, options.microBatches);
  if (!args.error.empty())
    return std::nullopt;
  return generateStep(options);
}

int generate(int argc, char **argv) {
  Arguments args = parseArguments(argc, argv,
                                  {{"--nodes", true},
                                   {"--seed", true},
                                   {"--repeats", false},
                                   {"--lifetimes", false},
                                   {"--bandwidth", true},
                                   {"--file-bandwidth", true},
                                   {"--micro-batches", true},
                                   {"-o", true}});
  GenerateOptions options;
  int64_t seed = 1;
  if (!args.has("--nodes") ||
      !parseInteger(args.get("--nodes"), 1, options.nodes) ||
      options.nodes > 10'000'000)
    args.wrong("--nodes wants a number from 1 to 10000000");
  if (args.has("--seed") && !parseInteger(args.get("--seed"), 0, seed))
    args.wrong("--seed wants a whole number, not '" + args.get("--seed") + "'");
  for (const char *flag :
       {"--bandwidth", "--file-bandwidth", "--micro-batches"})
    if (args.has(flag) && args.file != "step")
      args.wrong(std::string(flag) + " is for the family step");
  for (const char *flag : {"--repeats", "--lifetimes"})
    if (args.has(flag) && args.file == "step")
      args.wrong(std::string(flag) + " isn't for the family step");
  std::optional<Problem> step;
  if (args.file == "step" && args.error.empty())
    step = generatedStep(args, options.nodes, seed);
  else if (args.file == "transformer")
    options.family = Family::Transformer;
  else if (args.file == "unet")
    options.family = Family::UNet;
  else if (args.file == "random-layered")
    options.family = Family::RandomLayered;
  else if (args.file != "step")
    args.wrong("there is no family '" + args.file +
               "'; there are transformer, unet, random-layered, step");
  if (!args.error.empty()) {
    fail(kUsage, args.error);
    fputs(kUsageText, stderr);
    return kUsage;
  }
  if (step)
    return writeFile(args.get("-o", "-"), printProblem(*step));
  options.seed = uint64_t(seed);
  options.repeats = args.has("--repeats");
  Graph graph = generateGraph(options);
  if (!args.has("--lifetimes"))
    return writeFile(args.get("-o", "-"), printGraph(graph));
  ArenaProblem problem = lifetimesOf(graph);
  return writeFile(args.get("-o", "-"), printLifetimes(problem));
}

} // namespace

int main(int argc, char **argv) {
  std::string command = argc > 1 ? argv[1] : "";
  registerMilp();
  for (int i = 2; i < argc; ++i)
    if (std::string(argv[i]) == "--help" || std::string(argv[i]) == "-h")
      command = "--help";
  if (command == "remat")
    return solveRemat(argc, argv);
  if (command == "fit")
    return solveFit(argc, argv);
  if (command == "bound")
    return solveBound(argc, argv);
  if (command == "pack")
    return solvePack(argc, argv);
  if (command == "generate")
    return generate(argc, argv);
  if (command == "strategies") {
    for (const StrategyRow &row : kStrategies)
      printf("%-16s%-8s%s\n", std::string(row.name).c_str(),
             std::string(row.stage).c_str(), std::string(row.what).c_str());
    return kDone;
  }
  if (command == "--help" || command == "-h" || command == "help") {
    fputs(kUsageText, stdout);
    fputs(kHelpText, stdout);
    for (const auto &[name, summary] : plannerSummaries())
      printf("  %-10s%s\n", name.c_str(), summary.c_str());
    return kDone;
  }
  if (!command.empty())
    fail(kUsage, "there is no command '" + command + "'");
  fputs(kUsageText, stderr);
  return kUsage;
}
