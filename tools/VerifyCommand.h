// VerifyCommand.h - `tmc verify DIR`: its flags and its work.

#ifndef TMC_TOOLS_VERIFYCOMMAND_H
#define TMC_TOOLS_VERIFYCOMMAND_H

#include "llvm/Support/CommandLine.h"

namespace tmc {

struct VerifyCommand {
  llvm::cl::SubCommand command{
      "verify", "run the compiled step against the reference interpreter"};
  llvm::cl::OptionCategory category{"options"};
  llvm::cl::opt<std::string> directory{
      llvm::cl::Positional, llvm::cl::Required, llvm::cl::desc("DIR"),
      llvm::cl::sub(command), llvm::cl::cat(category)};
  llvm::cl::opt<int64_t> steps{
      "steps",
      llvm::cl::init(2),
      llvm::cl::value_desc("N"),
      llvm::cl::desc("steps to compare, each by itself (default: 2)"),
      llvm::cl::sub(command),
      llvm::cl::cat(category)};
  llvm::cl::opt<uint64_t> seed{
      "seed",
      llvm::cl::init(0),
      llvm::cl::value_desc("N"),
      llvm::cl::desc("of weights, inputs and dropout (default: 0)"),
      llvm::cl::sub(command),
      llvm::cl::cat(category)};
  llvm::cl::opt<int> threads{
      "threads",
      llvm::cl::init(0),
      llvm::cl::value_desc("N"),
      llvm::cl::desc("of the compiled step (default: one per core)"),
      llvm::cl::sub(command),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> weights{
      "weights", llvm::cl::value_desc("FILE"),
      llvm::cl::desc(
          "a .safetensors file (default: the values that tmc compile "
          "left, else random\n                          ones)"),
      llvm::cl::sub(command), llvm::cl::cat(category)};
  llvm::cl::list<std::string> data{
      "data", llvm::cl::value_desc("FILE|NAME=FILE"),
      llvm::cl::desc("inputs, as DIR/train takes them (default: drawn): for a "
                     "model whose inputs have a domain"),
      llvm::cl::sub(command), llvm::cl::cat(category)};

  /// Prints the worst tensors and returns the exit code.
  int run();
};

} // namespace tmc

#endif // TMC_TOOLS_VERIFYCOMMAND_H
