// MergeCommand.h - `tmc merge`: its flags and its work.

#ifndef TMC_TOOLS_MERGECOMMAND_H
#define TMC_TOOLS_MERGECOMMAND_H

#include "llvm/Support/CommandLine.h"

namespace tmc {

struct MergeCommand {
  llvm::cl::SubCommand command{"merge", "add an adapter to its base"};
  llvm::cl::OptionCategory category{"options"};
  llvm::cl::opt<std::string> base{
      "base", llvm::cl::value_desc("DIR"),
      llvm::cl::desc("the model that the adapter was trained for: a folder of\n"
                     "                          Hugging Face, with "
                     "model.safetensors or its shards"),
      llvm::cl::sub(command), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> adapter{
      "adapter", llvm::cl::value_desc("DIR"),
      llvm::cl::desc("a LoRA adapter of PEFT: adapter_config.json and\n"
                     "                          adapter_model.safetensors"),
      llvm::cl::sub(command), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> output{
      "o", llvm::cl::value_desc("DIR"),
      llvm::cl::desc("a folder that is new or empty"), llvm::cl::sub(command),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> type{
      "type", llvm::cl::value_desc("TYPE"),
      llvm::cl::desc("f32, bf16 or f16: of all floats (default: as the\n"
                     "                          base has them)"),
      llvm::cl::sub(command), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> shard{
      "shard",
      llvm::cl::init("5GB"),
      llvm::cl::value_desc("SIZE"),
      llvm::cl::desc("bytes of a file of weights, at most (default: 5GB)"),
      llvm::cl::sub(command),
      llvm::cl::cat(category)};

  /// Merges, prints a line and returns the exit code.
  int run();
};

} // namespace tmc

#endif // TMC_TOOLS_MERGECOMMAND_H
