// OfferMoves.cpp - what may move in a step.

#include "compiler/analysis/StepProblem.h"

using namespace tmc;
using planning::kNone;

absl::Status tmc::offerMoves(StepProblem &stated,
                             const planning::MoveOptions &options) {
  planning::Problem &problem = stated.problem;
  size_t values = problem.values.size(), recipes = problem.recipes.size();
  if (absl::Status status = planning::offerMoves(problem, options);
      !status.ok())
    return status;
  for (size_t v = values; v < problem.values.size(); ++v) {
    planning::Value &form = problem.values[v];
    int64_t unit = alignmentOf(form.space, /*deviceAlignment=*/1);
    form.bytes = (form.bytes + unit - 1) / unit * unit;
    stated.valueOf.push_back(stated.valueOf[problem.contentOf(v)]);
  }
  for (size_t r = recipes; r < problem.recipes.size(); ++r) {
    planning::InstructionId of = problem.recipes[r].instruction;
    stated.kernelOf.push_back(
        of == kNone
            ? RecipeKernel()
            : stated.kernelOf[problem.instructions[of].recipes.front()]);
    int64_t &scratch = problem.recipes[r].workspaceBytes;
    if (problem.recipes[r].workspaceSpace == kHostSpace)
      scratch =
          (scratch + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
  }
  return planning::check(problem);
}
