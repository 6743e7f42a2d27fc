#include "passes/Offload.h"

#include "compiler/analysis/HostMoves.h"
#include "dialects/interfaces/Fault.h"

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

std::string OffloadSpec::text() const {
  if (isNone())
    return "none";
  if (onlyIfNeeded)
    return "auto";
  if (*this == all())
    return "all";
  llvm::SmallVector<llvm::StringRef, 3> words;
  if (activations)
    words.push_back("activations");
  if (optimizer)
    words.push_back("optimizer");
  if (parameters)
    words.push_back("parameters");
  return llvm::join(words, ",");
}

mlir::FailureOr<OffloadSpec> tmc::offloadNamed(mlir::Operation *op,
                                               llvm::StringRef text) {
  llvm::Expected<OffloadSpec> spec = OffloadSpec::parse(text);
  if (spec)
    return *spec;
  return mlir::LogicalResult(emitFault(op->getLoc(), FailureKind::Input)
                             << llvm::toString(spec.takeError()));
}

/// Values smaller than this part of the step aren't moved. The limit
/// `MoveOptions::leastBytes` holds as well; this part matters for large steps.
static constexpr int64_t kLeastPart = 1024;

/// The runtime's table of the file's blocks is in the host's memory. This
/// reserves the size for the largest possible file.
static void reserveFileTable(planning::Problem &problem) {
  std::optional<planning::SpaceId> file = spaceOf(problem, SpaceKind::File);
  if (!file)
    return;
  int64_t most = 0;
  for (const planning::Value &value : problem.values)
    most += value.space == *file ? value.bytes : 0;
  int64_t budget = problem.spaces[*file].budgetBytes;
  if (budget >= 0)
    most = std::min(most, budget);
  constexpr int64_t block = infoOf(SpaceKind::File).alignment;
  problem.spaces[*spaceOf(problem, SpaceKind::Host)].reservedBytes =
      (most + block - 1) / block * kFileTableBytesOfBlock;
}

absl::Status tmc::offerMoves(StepProblem &stated, const OffloadSpec &spec,
                             const Target &target,
                             const PerSpace<int64_t> &budgets) {
  planning::Problem &problem = stated.problem;
  planning::MoveOptions options = moveOptionsOf(target, budgets);
  options.activations = spec.activations;
  options.optimizer = spec.optimizer;
  options.parameters = spec.parameters;
  absl::StatusOr<planning::Profile> all =
      planning::simulate(problem, planning::baseSolution(problem));
  if (!all.ok())
    return all.status();
  options.leastBytes = std::clamp<int64_t>(all->peakBytes / kLeastPart,
                                           infoOf(SpaceKind::Host).alignment,
                                           options.leastBytes);
  if (absl::Status status = offerMoves(stated, options); !status.ok())
    return status;
  reserveFileTable(problem);
  problem.spaces[0].budgetBytes = budgets.device();
  return absl::OkStatus();
}
