#include "driver/pipeline/Show.h"

#include "compiler/report/Explain.h"
#include "compiler/report/PlanReport.h"
#include "compiler/report/Snapshot.h"
#include "compiler/support/Escape.h"
#include "driver/pipeline/Messages.h"
#include "driver/pipeline/Sweep.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace tmc;

static std::error_code writeTo(llvm::raw_fd_ostream &os,
                               const std::string &content) {
  os << content;
  os.flush();
  std::error_code error = os.error();
  os.clear_error();
  return error;
}

/// Writes a complete file or leaves the old one: a full disk leaves no half
/// file. A file that isn't regular (a terminal, a pipe) is written directly.
static Expected<void> writeFile(const std::string &path,
                                const std::string &content) {
  auto failed = [&](const std::error_code &error) {
    return Failure::world("can't write '" + path + "': " + error.message());
  };
  std::error_code error;
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path)) {
    llvm::raw_fd_ostream os(path, error);
    if (!error)
      error = writeTo(os, content);
    return error ? Expected<void>(failed(error)) : Expected<void>();
  }
  auto file = llvm::sys::fs::TempFile::create(path + ".tmp-%%%%%%");
  if (!file)
    return failed(llvm::errorToErrorCode(file.takeError()));
  llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  if ((error = writeTo(os, content))) {
    llvm::consumeError(file->discard());
    return failed(error);
  }
  if (llvm::Error kept = file->keep(path))
    return failed(llvm::errorToErrorCode(std::move(kept)));
  return {};
}

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
        TMC_TRY(writeFile(name, content));
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
    TMC_TRY(writeFile(show.report,
                      planHtml(plannedOf(compiled),
                               show.sweep ? curve : knownCurve(compiled))));
  if (!show.snapshot.empty())
    TMC_TRY(writeFile(show.snapshot, memorySnapshot(trace)));
  if (!show.trace.empty())
    TMC_TRY(writeFile(show.trace, stepTrace(trace)));
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
    auto file = llvm::MemoryBuffer::getFile(options.model + "/plan-trace.json");
    if (!file)
      return Failure::input(
          "'" + options.model +
          "' has no plan-trace.json: it is no directory that tmc "
          "compile wrote");
    Expected<PlanTrace> trace = readPlanTrace((*file)->getBuffer().str());
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
