#include "passes/Offload.h"

#include "compiler/analysis/HostMoves.h"

#include "llvm/ADT/StringExtras.h"

using namespace tmc;

llvm::Expected<OffloadSpec> OffloadSpec::parse(llvm::StringRef text) {
  OffloadSpec spec;
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ',');
  for (llvm::StringRef word : words) {
    bool all = word == "all" || word == "auto";
    bool known = all || word == "none" || word == "activations" ||
                 word == "optimizer" || word == "parameters";
    if (!known || (words.size() > 1 && (all || word == "none")))
      return llvm::createStringError(
          "offload: '" + word +
          "' isn't auto, none, all, or a list of activations, optimizer and "
          "parameters");
    spec.activations |= all || word == "activations";
    spec.optimizer |= all || word == "optimizer";
    spec.parameters |= all || word == "parameters";
    spec.onlyIfNeeded |= word == "auto";
  }
  return spec;
}

planning::MoveOptions tmc::moveOptions(const OffloadSpec &spec,
                                       const Target &target, int64_t hostBudget,
                                       int64_t fileBudget) {
  planning::MoveOptions options = moveOptionsOf(target);
  options.activations = spec.activations;
  options.optimizer = spec.optimizer;
  options.parameters = spec.parameters;
  if (hostBudget >= 0)
    options.hostBudget = hostBudget;
  if (fileBudget == 0)
    options.fileRead.bandwidth = options.fileWrite.bandwidth = 0;
  else if (fileBudget > 0)
    options.fileBudget = fileBudget;
  return options;
}
