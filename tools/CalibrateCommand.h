// CalibrateCommand.h - `tmc calibrate -o FILE`: its flags and its work.

#ifndef TMC_TOOLS_CALIBRATECOMMAND_H
#define TMC_TOOLS_CALIBRATECOMMAND_H

#include "driver/calibrate/Calibrate.h"

#include "llvm/Support/CommandLine.h"

namespace tmc {

struct CalibrateCommand {
  llvm::cl::SubCommand command{"calibrate",
                               "measure this machine into a target file"};
  llvm::cl::OptionCategory category{"options"};
  llvm::cl::opt<std::string> output{
      "o", llvm::cl::value_desc("FILE"),
      llvm::cl::desc("the target file (NAME.json), for --target"),
      llvm::cl::sub(command), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> target{
      "target",
      llvm::cl::init("cpu"),
      llvm::cl::value_desc("NAME"),
      llvm::cl::desc("what to measure (default: cpu)"),
      llvm::cl::sub(command),
      llvm::cl::cat(category)};
  llvm::cl::opt<int> threads{
      "threads",
      llvm::cl::init(0),
      llvm::cl::value_desc("N"),
      llvm::cl::desc("of the measured steps (default: one per core)"),
      llvm::cl::sub(command),
      llvm::cl::cat(category)};
  llvm::cl::opt<int> patience{
      "patience",
      llvm::cl::init(CalibrateOptions().patienceSeconds),
      llvm::cl::value_desc("SECONDS"),
      llvm::cl::desc("after which a run of transfers is ended, as of a slow\n"
                     "                          disk; 0: never (default: 14)"),
      llvm::cl::sub(command),
      llvm::cl::cat(category)};
  llvm::cl::opt<int> rounds{
      "rounds",
      llvm::cl::init(CalibrateOptions().rounds),
      llvm::cl::value_desc("N"),
      llvm::cl::desc("how often all is measured; the fastest counts, so that\n"
                     "                          more help on a busy machine "
                     "(default: 3)"),
      llvm::cl::sub(command),
      llvm::cl::cat(category)};

  llvm::cl::opt<std::string> nvme{
      "nvme", llvm::cl::value_desc("DIR"),
      llvm::cl::desc("where to measure reads and writes of a file (default:\n"
                     "                          among temporary files)"),
      llvm::cl::sub(command), llvm::cl::cat(category)};

  llvm::cl::opt<int> devices{
      "devices",
      llvm::cl::init(0),
      llvm::cl::value_desc("N"),
      llvm::cl::desc(
          "also measure the network between N ranks on this machine"),
      llvm::cl::sub(command),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> network{
      "network", llvm::cl::value_desc("mpi|gloo"),
      llvm::cl::desc("the library of --devices (default: MPI where there is "
                     "mpirun,\n                          else Gloo)"),
      llvm::cl::sub(command), llvm::cl::cat(category)};

  /// Measures, prints a table, and returns tmc's exit code.
  int run();
};

} // namespace tmc

#endif // TMC_TOOLS_CALIBRATECOMMAND_H
