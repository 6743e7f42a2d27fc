// tmc-solve - the planners on plain files, without a compiler around them.
//
//   tmc-solve remat FILE --budget 0.8x|SIZE [--order fixed|free] [--seed N]
//                        [--effort N] [--time-limit S] [--without NAME,...]
//                        [--planner NAME|exec:CMD] [--json FILE]
//   tmc-solve fit   FILE --budget 0.8x|SIZE [--seed N] [--without NAME,...]
//                        [--json FILE]
//   tmc-solve bound FILE [--budget 0.8x|SIZE] [--order fixed|free]
//                        [--effort N] [--json FILE]
//   tmc-solve offload FILE --budget 0.8x|SIZE [--host-budget SIZE]
//                        [--file-bandwidth N] [--file-budget SIZE]
//                        [--bandwidth GB/s] [--host-bandwidth GB/s]
//                        [--move CLASS] [--planner NAME] [--coarse] [--seed N]
//                        [--without NAME,...] [--sweep N] [--json FILE]
//   tmc-solve verify FILE PLAN.json [--budget 0.8x|SIZE]
//                        [--host-budget SIZE] [--file-budget SIZE] [--json
//                        FILE]
//   tmc-solve pack  FILE.csv [--capacity N] [-o OUT.csv]
//   tmc-solve generate transformer|unet|random-layered --nodes N [--seed N]
//                        [--repeats] [--lifetimes] [-o FILE]
//   tmc-solve generate step --nodes N [--seed N] [--bandwidth GB/s]
//                        [--file-bandwidth GB/s] [--micro-batches N] [-o FILE]
//   tmc-solve strategies
//
// Exit codes: 0 done; 1 wrong input; 2 wrong usage; 3 the budget or the
// capacity is too small; 4 the planner doesn't support this problem; 70 a bug
// in tmc; 74 an error of the system.

#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/driver/Strategies.h"
#include "compiler/planning/laboratory/Laboratory.h"
#include "tools/solve/Arguments.h"
#include "tools/solve/Commands.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

using namespace tmc::planning;

namespace {

/// The text of `--help` after the usage; the planners follow it.
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
    "  --order fixed|free    the program's order (default), or every order: on "
    "the\n"
    "                        device alone\n"
    "  --effort N            counted work, in percent (default 100)\n"
    "  --json FILE           the bound and its proof; - is standard output\n"
    "\n"
    "offload: what moves to the host and back, what is recomputed, which "
    "updates\n"
    "run on the host. A problem of the device alone gets a host beside it.\n"
    "  --budget              as above; of the device\n"
    "  --host-budget SIZE    default: no limit\n"
    "  --bandwidth N         GB/s of the link, each way (default 25)\n"
    "  --host-bandwidth N    GB/s of updates on the host (default 50)\n"
    "  --memory-bandwidth N  GB/s of the host's memory, which copies and "
    "updates\n"
    "                        share (default: no limit)\n"
    "  --file-bandwidth N    GB/s from a file behind the host (default: there "
    "is\n"
    "                        none)\n"
    "  --file-write-bandwidth N, --file-budget SIZE   of that file (default: "
    "as\n"
    "                        from it; no limit)\n"
    "  --move CLASS          all (default), activations or states\n"
    "  --planner NAME        as above. Those of recomputation move nothing; "
    "the rules\n"
    "                        for moves are oldest-first, zero-offload,\n"
    "                        zero-offload-blocks, knapsack and chain; optimum "
    "is the\n"
    "                        fastest plan, of steps of some ten kernels\n"
    "  --without             as above\n"
    "  --coarse              a plan and a bound in a tenth of the time\n"
    "  --sweep N             N budgets in equal steps up to this one, none "
    "slower\n"
    "                        than a smaller one: a line for each\n"
    "  --seed N, --json FILE as above\n"
    "\n"
    "verify: whether a plan of FILE is right, by the checker of all plans, "
    "which\n"
    "counts its time and its bytes. PLAN.json is what --json wrote, or a plan "
    "of\n"
    "the same form by another program; docs/planning/search.md describes it.\n"
    "  --budget, --host-budget, --file-budget   default: what PLAN.json says,\n"
    "                        else FILE\n"
    "  --json FILE           the verdict; - is standard output\n"
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

/// Runs the command line; the exit code.
int runCommand(int argc, char **argv) {
  std::string command = argc > 1 ? argv[1] : "";
  registerLaboratory();
  for (int i = 2; i < argc; ++i)
    if (std::string(argv[i]) == "--help" || std::string(argv[i]) == "-h")
      command = "--help";
  if (command == "remat")
    return solveRemat(argc, argv);
  if (command == "fit")
    return solveFit(argc, argv);
  if (command == "bound")
    return solveBound(argc, argv);
  if (command == "offload")
    return solveOffload(argc, argv);
  if (command == "verify")
    return solveVerify(argc, argv);
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
      printf("  %-20s%s\n", name.c_str(), summary.c_str());
    return kDone;
  }
  if (!command.empty())
    fail(kUsage, "there is no command '" + command + "'");
  fputs(kUsageText, stderr);
  return kUsage;
}

} // namespace

int main(int argc, char **argv) {
  const int code = runCommand(argc, argv);
  // A full disk behind `>` is noticed here.
  if (code == kDone && (fflush(stdout) || ferror(stdout)))
    return fail(kWorld, std::string("can't write to standard output: ") +
                            strerror(errno));
  return code;
}
