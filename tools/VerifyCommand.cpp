#include "tools/VerifyCommand.h"

#include "compiler/support/Escape.h"
#include "driver/pipeline/Messages.h"
#include "driver/verify/Verify.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace tmc;

int VerifyCommand::run() {
  if (steps < 1) {
    Failure failure = Failure::usage("--steps=" + std::to_string(steps) +
                                     " is no positive number");
    report(failure);
    return failure.exitCode();
  }
  VerifyOptions options;
  options.directory = directory;
  options.steps = steps;
  options.seed = seed;
  options.threads = threads;
  options.weights = weights;
  options.data.assign(data.begin(), data.end());
  options.progress = isProgressSeen();
  Expected<VerifyReport> done = verifyStep(options);
  if (!done) {
    report(done.failure());
    return done.failure().exitCode();
  }
  llvm::outs() << visible(verifyTable(*done));
  if (done->agrees)
    return 0;
  const Deviation &worst = done->deviations.front();
  std::string text;
  llvm::raw_string_ostream(text)
      << "the compiled step isn't what '" << options.directory
      << "/step.mlir' means: '" << worst.name << "' is off by "
      << llvm::format("%.2g", worst.error()) << " in step " << worst.step
      << ", " << llvm::format("%.2g", worst.allowed) << " may be";
  llvm::outs().flush();
  report(Failure::input(text));
  return 1;
}
