#include "tools/CalibrateCommand.h"

#include "driver/pipeline/Messages.h"
#include "driver/pipeline/TextFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace tmc;

int CalibrateCommand::run() {
  auto fail = [](const Failure &failure) {
    report(failure);
    return failure.exitCode();
  };
  if (!isTargetFile(output))
    return fail(
        Failure::usage("-o needs the path of a file that ends in .json"));
  if (threads < 0)
    return fail(Failure::usage("--threads=" + std::to_string(threads) +
                               " is negative"));
  if (rounds < 1)
    return fail(Failure::usage("--rounds=" + std::to_string(rounds) +
                               " is no positive number"));
  if (patience < 0)
    return fail(Failure::usage("--patience=" + std::to_string(patience) +
                               " is negative"));
  if (devices.getNumOccurrences() > 0 && devices < 2)
    return fail(Failure::usage("--devices=" + std::to_string(devices) +
                               ": a network joins at least 2 ranks"));
  if (!network.empty() && network != "mpi" && network != "gloo")
    return fail(
        Failure::usage("--network takes mpi or gloo, not '" + network + "'"));
  if (!network.empty() && !devices)
    return fail(Failure::usage("--network needs --devices N"));
  // A minute of measurement must not be lost because of a mistyped path.
  std::string directory = llvm::sys::path::parent_path(output).str();
  if (llvm::sys::fs::access(directory.empty() ? "." : directory,
                            llvm::sys::fs::AccessMode::Write))
    return fail(Failure::world("can't write in '" + directory + "'"));
  CalibrateOptions options;
  options.target = target;
  options.threads = threads;
  options.rounds = rounds;
  options.fileDirectory = nvme;
  options.patienceSeconds = patience;
  options.devices = devices;
  options.network = network;
  options.progress = isProgressSeen();
  Expected<Calibration> done = calibrate(options);
  if (!done)
    return fail(done.failure());
  if (auto written = writeText(output, targetToJson(done->target)); !written)
    return fail(written.failure());
  summarize(done->target.name + "\n" + calibrationTable(*done) + "  wrote " +
            output + "; use it with --target=" + output + "\n");
  return 0;
}
