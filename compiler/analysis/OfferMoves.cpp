// OfferMoves.cpp - offers the moves of a step to the planner.

#include "compiler/analysis/StepProblem.h"

#include "compiler/analysis/Storage.h"
#include "dialects/interfaces/Interfaces.h"

using namespace tmc;
using planning::kNone;

/// True if the runtime has a kernel for `op` on the host: ops of the train
/// dialect have one. The generated kernels that change histories of scales have
/// none.
static bool hasKernelOnHost(mlir::Operation *op) {
  return llvm::isa_and_nonnull<train::TrainDialect>(op->getDialect());
}

/// Bytes of scratch of `op` on the host: its kernel there sums in other parts.
static int64_t scratchOnHost(mlir::Operation *op) {
  auto kernel = llvm::cast<KernelOpInterface>(op);
  llvm::SmallVector<mlir::MemRefType> layouts;
  for (mlir::Value operand : op->getOperands())
    layouts.push_back(layoutOf(operand));
  return kernel.getKernel(layouts, Backend::Cpu).scratchBytes;
}

absl::Status tmc::offerMoves(StepProblem &stated,
                             const planning::MoveOptions &asked) {
  planning::Problem &problem = stated.problem;
  size_t values = problem.values.size(), recipes = problem.recipes.size();
  planning::MoveOptions options = asked;
  options.runsOnHost = [&](planning::InstructionId i) {
    return hasKernelOnHost(
        stated.kernelOf[problem.instructions[i].recipes.front()].op);
  };
  if (absl::Status status = planning::offerMoves(problem, options);
      !status.ok())
    return status;
  // The device's sizes are rounded up already.
  auto roundUp = [&](int64_t bytes, planning::SpaceId space) {
    int64_t unit =
        alignmentOf(problem.spaces[space].kind, /*deviceAlignment=*/1);
    return (bytes + unit - 1) / unit * unit;
  };
  for (size_t v = values; v < problem.values.size(); ++v) {
    planning::Value &form = problem.values[v];
    form.bytes = roundUp(form.bytes, form.space);
    stated.valueOf.push_back(stated.valueOf[problem.contentOf(v)]);
  }
  for (size_t r = recipes; r < problem.recipes.size(); ++r) {
    planning::InstructionId of = problem.recipes[r].instruction;
    stated.kernelOf.push_back(
        of == kNone
            ? RecipeKernel()
            : stated.kernelOf[problem.instructions[of].recipes.front()]);
    planning::Recipe &recipe = problem.recipes[r];
    if (problem.engines[recipe.engine].kind == EngineKind::Host)
      recipe.workspaceBytes = scratchOnHost(stated.kernelOf.back().op);
    recipe.workspaceBytes =
        roundUp(recipe.workspaceBytes, recipe.workspaceSpace);
  }
  return planning::check(problem);
}
