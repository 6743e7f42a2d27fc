// ReportCommand.h - `tmc report DIR [DIR]`: its flags and its work.

#ifndef TMC_TOOLS_REPORTCOMMAND_H
#define TMC_TOOLS_REPORTCOMMAND_H

#include "llvm/Support/CommandLine.h"

namespace tmc {

struct ReportCommand {
  llvm::cl::SubCommand command{
      "report", "compare two compiled steps, or a measured one with its plan"};
  llvm::cl::OptionCategory category{"options"};
  llvm::cl::list<std::string> directories{
      llvm::cl::Positional, llvm::cl::OneOrMore, llvm::cl::desc("DIR [DIR]"),
      llvm::cl::sub(command), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> profile{
      "profile", llvm::cl::value_desc("FILE"),
      llvm::cl::desc("with one DIR: the .json file of DIR/train --profile"),
      llvm::cl::sub(command), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> log{
      "log", llvm::cl::value_desc("FILE"),
      llvm::cl::desc("with one DIR: the file of DIR/train --log"),
      llvm::cl::sub(command), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> output{
      "o", llvm::cl::value_desc("FILE"),
      llvm::cl::desc("write the report as a page, too"), llvm::cl::sub(command),
      llvm::cl::cat(category)};

  /// Prints the report and returns the exit code.
  int run();
};

} // namespace tmc

#endif // TMC_TOOLS_REPORTCOMMAND_H
