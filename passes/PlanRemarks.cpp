#include "passes/PlanRemarks.h"

#include "compiler/planning/driver/Account.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace tmc;
using planning::kNone;
using planning::ValueId;
using remark::metric;

namespace {

class Remarks {
public:
  Remarks(train::StepOp step, const StepProblem &stated,
          const planning::Problem &problem, const planning::Plan &plan,
          const planning::Account &counted)
      : step(step), stated(stated), problem(problem), plan(plan),
        counted(counted) {}

  void emit() {
    remark::analysis(locOfRow(counted.peakRow), opts("Peak"))
        << metric("at", nameOfRow(counted.peakRow))
        << metric("launch", counted.peakRow)
        << metric("bytes", counted.peakBytes)
        << metric("unconstrained_bytes", counted.levers.inPlacePeak);
    for (const planning::GapDecision &gap : counted.gaps)
      emitGap(gap);
    int32_t row = 0;
    for (const auto &list : plan.solution.segments)
      for (const planning::Execution &execution : list)
        emitExecution(execution, row++);
    emitEarlyUpdates();
  }

private:
  mutable train::StepOp step; // Ops have no const.
  const StepProblem &stated;
  const planning::Problem &problem;
  const planning::Plan &plan;
  const planning::Account &counted;

  remark::RemarkOpts opts(StringRef name) const {
    return remark::RemarkOpts::name(name).category("plan").function(
        step.getSymName());
  }

  Location locOf(ValueId id) const {
    Value value = stated.valueOf[id];
    return value ? value.getLoc() : step.getLoc();
  }

  Location locOfRow(int32_t row) const {
    if (size_t(row) >= counted.rows.size())
      return step.getLoc();
    Operation *op = stated.kernelOf[counted.rows[row].recipe].op;
    return op ? op->getLoc() : step.getLoc();
  }

  std::string nameOfRow(int32_t row) const {
    return size_t(row) < counted.rows.size()
               ? problem.recipes[counted.rows[row].recipe].name
               : "end of the step";
  }

  void emitGap(const planning::GapDecision &gap) {
    const planning::Value &value = problem.values[gap.value];
    auto tell = [&](auto remark) {
      remark << metric("value", value.name) << metric("bytes", value.bytes)
             << metric("from", gap.from) << metric("to", gap.to)
             << metric("over_peak", gap.overPeak);
      if (gap.leastCost >= 0)
        remark << metric("least_ps", gap.leastCost);
      if (!gap.held)
        remark << metric("paid_ps", gap.paidCost);
      if (gap.worth >= 0)
        remark << metric("worth_ps", gap.worth);
    };
    if (gap.held)
      tell(remark::analysis(locOf(gap.value), opts("Kept")));
    else
      tell(remark::passed(locOf(gap.value),
                          opts(gap.space ? "Moved" : "Recomputed")));
  }

  std::string names(const std::vector<ValueId> &values) const {
    std::string text;
    for (ValueId v : values)
      text += (text.empty() ? "" : ", ") + problem.values[v].name;
    return text;
  }

  void emitExecution(const planning::Execution &execution, int32_t row) {
    const planning::Recipe &recipe = problem.recipes[execution.recipe];
    const RecipeKernel &kernel = stated.kernelOf[execution.recipe];
    if (execution.instruction == kNone && !kernel.wanted.empty())
      remark::passed(locOfRow(row), opts("Recipe"))
          << metric("launch", row) << metric("makes", names(recipe.writes))
          << metric("from", names(recipe.reads))
          << metric("picoseconds", recipe.cost)
          << metric("kept_results", int64_t(kernel.given.size()));
    for (int32_t taken : execution.overwrites) {
      const planning::Overwrite &overwrite = recipe.overwrites[taken];
      if (overwrite.must)
        continue; // An update must overwrite.
      remark::passed(locOfRow(row), opts("InPlace"))
          << metric("launch", row)
          << metric("value", problem.values[overwrite.written].name)
          << metric("over", problem.values[overwrite.read].name)
          << metric("bytes", problem.values[overwrite.written].bytes);
    }
  }

  /// Reports updates with other work behind them: finds the launch after which
  /// only updates run.
  void emitEarlyUpdates() {
    auto isKernel = [&](int32_t row) {
      return counted.rows[row].phase != planning::Phase::Done &&
             !problem.isMove(problem.recipes[counted.rows[row].recipe]);
    };
    auto updates = [&](int32_t row) {
      const planning::Recipe &recipe =
          problem.recipes[counted.rows[row].recipe];
      return isKernel(row) && llvm::any_of(recipe.writes, [&](ValueId v) {
               return problem.values[v].updates != kNone;
             });
    };
    int32_t last = int32_t(counted.rows.size()) - 1;
    while (last >= 0 && (updates(last) || !isKernel(last)))
      --last;
    for (int32_t row = 0; row < last; ++row) {
      if (!updates(row))
        continue;
      int64_t freed = 0;
      for (ValueId v : problem.recipes[counted.rows[row].recipe].reads)
        if (problem.values[v].valueClass == planning::ValueClass::Gradient)
          freed += problem.values[v].bytes;
      remark::passed(locOfRow(row), opts("EarlyUpdate"))
          << metric("launch", row) << metric("of", nameOfRow(row))
          << metric("launches_behind", last - row)
          << metric("gradient_bytes", freed);
    }
  }
};

} // namespace

void tmc::emitPlanRemarks(train::StepOp step, const StepProblem &stated,
                          const planning::Problem &problem,
                          const planning::Plan &plan) {
  if (!step.getContext()->getRemarkEngine())
    return;
  absl::StatusOr<planning::Account> counted = account(problem, plan);
  if (counted.ok())
    Remarks(step, stated, problem, plan, *counted).emit();
}
