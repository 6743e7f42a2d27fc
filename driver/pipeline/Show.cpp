#include "driver/pipeline/Show.h"

#include "compiler/report/Explain.h"
#include "compiler/report/PlanReport.h"
#include "compiler/report/Snapshot.h"
#include "compiler/support/Escape.h"
#include "driver/pipeline/Beside.h"
#include "driver/pipeline/Messages.h"
#include "driver/pipeline/Sweep.h"
#include "driver/pipeline/TextFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace tmc;

Expected<void> tmc::planModel(CompileOptions options, const ShowOptions &show) {
  options.emit = Artifact::Plan;
  Compiled compiled = compileTo(options, Phase::Place);
  Expected<void> &done = compiled.done;
  for (const std::string &warning : compiled.warnings)
    warn(warning);
  bool infeasible = !done && done.failure().kind == FailureKind::OverBudget;
  if (!done && !infeasible)
    return done;
  Curve curve;
  if (show.sweep) {
    // The curve doesn't depend on the requested budget.
    if (hasFreeLevers(options) || !options.offload.isNone()) {
      Expected<Curve> made = sweepLevers(*compiled.forward, options);
      if (!made)
        return std::move(made.failure());
      curve = *std::move(made);
    } else {
      curve = sweep(compiled);
    }
    if (show.output.empty()) {
      llvm::outs() << visible(curveCsv(curve));
    } else {
      for (const auto &[name, content] :
           {std::pair(show.output + ".csv", curveCsv(curve)),
            std::pair(show.output + ".svg", curveSvg(curve))})
        TMC_TRY(writeText(name, content));
    }
  } else if (show.json) {
    llvm::outs() << planJson(plannedOf(compiled));
  } else if (done) {
    llvm::outs() << visible(planTable(plannedOf(compiled)));
  }
  if (!done)
    return done;
  const PlanTrace &trace = compiled.step().trace;
  if (!show.report.empty())
    TMC_TRY(writeText(show.report,
                      planHtml(plannedOf(compiled),
                               show.sweep ? curve : knownCurve(compiled))));
  if (!show.snapshot.empty())
    TMC_TRY(writeText(show.snapshot, memorySnapshot(trace)));
  if (!show.trace.empty())
    TMC_TRY(writeText(show.trace, stepTrace(trace)));
  return {};
}

static Expected<void> printReasons(const PlanTrace &trace,
                                   const std::string &glob) {
  if (glob.empty()) {
    llvm::outs() << visible(explainAll(trace));
    return {};
  }
  Expected<std::string> text = explainTensors(trace, glob);
  if (!text)
    return std::move(text.failure());
  llvm::outs() << visible(*text);
  return {};
}

Expected<void> tmc::explainPlan(CompileOptions options,
                                const std::string &glob) {
  if (llvm::sys::fs::is_directory(options.model)) {
    Expected<PlanTrace> trace = traceIn(options.model);
    if (!trace)
      return std::move(trace.failure());
    return printReasons(*trace, glob);
  }
  options.emit = Artifact::Plan;
  Compiled compiled = compileTo(options, Phase::Place);
  Expected<void> &done = compiled.done;
  for (const std::string &warning : compiled.warnings)
    warn(warning);
  if (!done)
    return done;
  if (glob.empty())
    if (const std::string chosen = chosenLeversText(compiled.step().figures);
        !chosen.empty())
      llvm::outs() << visible(chosen.substr(1)) << "\n"; // Begins a section.
  return printReasons(compiled.step().trace, glob);
}
