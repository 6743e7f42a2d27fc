#include "driver/pipeline/RunPasses.h"

#include "dialects/interfaces/Fault.h"
#include "driver/pipeline/Messages.h"
#include "driver/pipeline/PlantDefect.h"
#include "driver/pipeline/Reproducer.h"
#include "passes/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tmc;

void tmc::showProgress(const CompileOptions &options, const std::string &what) {
  if (options.progress)
    showProgress(what);
}

/// The location of a diagnostic, in the model's own names: name and line.
static FailurePlace placeOf(Location loc) {
  FailurePlace place;
  loc->walk([&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part); named && place.name.empty())
      place.name = named.getName().str();
    if (auto file = dyn_cast<FileLineColLoc>(part); file && place.line.empty())
      place.line = llvm::sys::path::filename(file.getFilename()).str() + ":" +
                   std::to_string(file.getLine());
    return WalkResult::advance();
  });
  return place;
}

static std::string describe(const FailurePlace &place) {
  if (!place.name.empty() && !place.line.empty())
    return place.name + " (" + place.line + ")";
  return place.name + place.line;
}

namespace {
/// The diagnostics of a run: the first error, its notes, and the warnings.
struct DiagnosticCollector {
  std::string error;
  std::vector<std::string> notes, warnings;
  std::vector<FailurePlace> places; // Of the error and its notes, if known.
  std::optional<FailureKind> fault; // Cause of the first error; none: a defect.
  std::function<bool()> isOver = [] { return false; };
  ScopedDiagnosticHandler handler;

  explicit DiagnosticCollector(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (!isOver())
            hear(diagnostic);
          return success();
        }) {}

  void hear(Diagnostic &diagnostic) {
    auto textOf = [](Diagnostic &d) {
      std::string where = describe(placeOf(d.getLocation()));
      return d.str() + (where.empty() ? "" : " [" + where + "]");
    };
    if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
      return warnings.push_back(textOf(diagnostic));
    if (error.empty())
      fault = faultOf(diagnostic);
    (error.empty() ? error : notes.emplace_back()) = textOf(diagnostic);
    keepPlace(diagnostic);
    for (Diagnostic &note : diagnostic.getNotes()) {
      notes.push_back(textOf(note));
      keepPlace(note);
    }
  }

  void keepPlace(Diagnostic &diagnostic) {
    FailurePlace place = placeOf(diagnostic.getLocation());
    if (place.name.empty() && place.line.empty())
      return;
    place.reason = diagnostic.str();
    places.push_back(std::move(place));
  }

  /// `reproducer`: the last note of a defect.
  Failure failure(Phase phase, llvm::function_ref<std::string()> reproducer) {
    if (fault) {
      Failure theirs{*fault, error, notes};
      if (fault == FailureKind::Unsupported)
        theirs.places = places;
      return theirs;
    }
    Failure ours = Failure::defect(std::string("a defect of tmc in its ") +
                                   nameOf(phase) + " phase");
    if (!error.empty())
      ours.message += ": " + error;
    ours.notes = notes;
    ours.notes.push_back(reproducer());
    return ours;
  }
};
} // namespace

Expected<void> tmc::runPasses(ModuleOp module, Phase phase,
                              const BuildPasses &build,
                              const CompileOptions &options,
                              const Target &device,
                              std::vector<std::string> &warnings) {
  PassManager pm(module.getContext());
  build(pm);
  pm.addPass(createVerifyPhase({nameOf(phase), device.arenaAlignment}));
  StringRef planted(options.plantDefect);
  if (planted.consume_front(nameOf(phase)) && planted.consume_front(":"))
    pm.addPass(createPlantDefect(planted.str()));
  DiagnosticCollector collector(module.getContext());
  Reproducer reproducer(pm, [&] { return !collector.fault; });
  collector.isOver = [&] { return reproducer.hasFailed(); };
  bool done = succeeded(pm.run(module));
  // Programs of several forms say the same.
  for (std::string &warning : collector.warnings)
    if (!llvm::is_contained(warnings, warning))
      warnings.push_back(std::move(warning));
  if (done)
    return {};
  return collector.failure(phase, [&] { return reproducer.write(); });
}

Expected<StepText> tmc::printStep(ModuleOp module, const EmitOptions &options) {
  DiagnosticCollector collector(module.getContext());
  FailureOr<StepText> text = emitStep(module, options);
  if (succeeded(text))
    return *text;
  return collector.failure(Phase::Emit, [&] {
    std::string printed;
    llvm::raw_string_ostream os(printed);
    module.print(os);
    return writeReproducer(printed);
  });
}
