#include "driver/calibrate/Calibrate.h"

#include "compiler/support/Escape.h"
#include "driver/calibrate/MeasureMoves.h"
#include "driver/calibrate/MeasureNetwork.h"
#include "driver/calibrate/MoveFit.h"
#include "driver/calibrate/ProbeRun.h"
#include "driver/calibrate/Probes.h"
#include "driver/calibrate/ProfileLaunches.h"
#include "driver/pipeline/Compile.h"
#include "driver/pipeline/Folder.h"
#include "driver/pipeline/Messages.h"
#include "driver/pipeline/SystemMemory.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tmc;

namespace {
/// A probe that was compiled, and its launches as measured so far.
struct CompiledProbe {
  std::string name, directory;
  std::vector<std::string> data; // The trainer's flags.
  std::vector<MeasuredLaunch> launches;
};
} // namespace

static tmc::Expected<void> readProfile(const std::string &path,
                                       std::vector<MeasuredLaunch> &launches) {
  auto file = MemoryBuffer::getFile(path);
  if (!file)
    return Failure::world("can't read the profile '" + path + "'");
  return keepFastest((*file)->getBuffer().str(), launches);
}

/// Compiles a probe and writes its data into `directory`.
static tmc::Expected<CompiledProbe> compileProbe(const Probe &probe,
                                                 const std::string &target,
                                                 const std::string &directory) {
  std::string base = directory + "/" + probe.name;
  CompiledProbe compiled{probe.name, base, {}, {}};
  CompileOptions compile;
  compile.model = base + ".mlir";
  compile.target = target;
  compile.output = base;
  compile.levers[kLossChunk].count = 0; // The probe sets its own chunks.
  compile.levers[kPrecision].name = probe.precision;
  compile.quiet = true;
  TMC_TRY(writeProbeFile(compile.model, probe.forward));
  TMC_TRY(compileModel(compile));
  for (const ProbeInput &input : probe.inputs) {
    std::string path = base + "." + input.name + ".npy";
    TMC_TRY(writeProbeFile(path, npyOf(input)));
    compiled.data.push_back("--data=" + input.name + "=" + path);
  }
  return compiled;
}

/// Runs a probe once more.
static tmc::Expected<void> measure(CompiledProbe &probe,
                                   const CalibrateOptions &options) {
  std::string profile = probe.directory + ".json";
  ProbeRun run{probe.name, probe.directory, probe.data, options.threads};
  run.flags.insert(
      run.flags.end(),
      {"--steps=" + std::to_string(options.steps + 1), "--profile=" + profile});
  if (auto done = runProbe(run); !done)
    return std::move(done.failure());
  return readProfile(profile, probe.launches);
}

/// Describes the engines beside the device. Without `fileDirectory` the size
/// of the file is left out, because a step's file may lie on another disk.
static void describe(const MoveRunner &moves, const CalibrateOptions &options,
                     Calibration &calibration) {
  calibration.rates = moves.fastest;
  describeMoves(moves.fastest, calibration.target);
  calibration.target.memoryBytes[SpaceKind::Host] = systemMemory().totalBytes;
  if (!options.fileDirectory.empty())
    if (auto room = sys::fs::disk_space(options.fileDirectory))
      calibration.target.memoryBytes[SpaceKind::File] =
          int64_t(room->available);
}

tmc::Expected<Calibration> tmc::calibrate(const CalibrateOptions &options) {
  tmc::Expected<Target> known = targetNamed(options.target);
  if (!known)
    return std::move(known.failure());
  if (options.devices > 0 && known->backend != Backend::Cpu)
    return Failure::unsupported(
        "--devices measures ranks on cpu targets, and '" + options.target +
        "' is a card");
  Calibration calibration;
  calibration.target = *known;

  // No other user may write the programs that run here.
  SmallString<128> directory(makeTemporaryDirectory("tmc-calibrate"));
  if (directory.empty())
    return Failure::world("can't make a directory for temporary files: " +
                          llvm::sys::StrError());
  llvm::scope_exit clean([&] { sys::fs::remove_directories(directory); });
  auto say = [&](const std::string &what) {
    if (options.progress)
      showProgress(what);
  };
  auto during = [&](const std::string &what, auto &&work) {
    say(what + " ...");
    auto done = work();
    say("");
    return done;
  };
  // The checks of `fit` come before the minute of measuring.
  MoveRunner moves{*known, (directory + "/moves").str(), options.fileDirectory,
                   options.threads, options.patienceSeconds};
  if (moves.fileDirectory.empty())
    moves.fileDirectory = directory.str().str();
  TMC_TRY(moves.fit());
  NetworkRunner network{(directory + "/network").str(), options.devices,
                        options.network};
  if (options.devices > 0) {
    TMC_TRY(during("compiling network", [&] { return network.prepare(); }));
  }
  std::vector<CompiledProbe> probes;
  for (const Probe &probe : calibrationProbes(*known)) {
    auto compiled = during("compiling " + probe.name, [&] {
      return compileProbe(probe, options.target, directory.str().str());
    });
    if (!compiled)
      return std::move(compiled.failure());
    probes.push_back(std::move(*compiled));
  }
  TMC_TRY(during("compiling transfers", [&] { return moves.prepare(); }));
  for (int64_t round = 1; round <= options.rounds; ++round) {
    const std::string its = "round " + std::to_string(round) + " of " +
                            std::to_string(options.rounds) + ": ";
    for (CompiledProbe &probe : probes)
      TMC_TRY(
          during(its + probe.name, [&] { return measure(probe, options); }));
    TMC_TRY(during(its + "transfers", [&] { return moves.measure(); }));
    if (options.devices > 0)
      TMC_TRY(during(its + "network", [&] { return network.measure(); }));
  }
  if (moves.fastest.empty())
    return moves.tooSlow();
  describe(moves, options, calibration);
  if (options.devices > 0) {
    calibration.network = network.fastest;
    calibration.target.network = {network.fastest.level};
  }
  for (const CompiledProbe &probe : probes)
    for (const MeasuredLaunch &launch : probe.launches)
      if (launch.seconds > 0 && !launch.family.empty())
        calibration.launches[launch.family][launch.products].push_back(launch);
  fitFamilies(calibration.launches, calibration.target);
  calibration.target.rates = PriceSource::Measured;
  calibration.target.name =
      calibration.target.name + " (measured" +
      (options.threads > 0 ? ", " + std::to_string(options.threads) +
                                 (options.threads > 1 ? " threads" : " thread")
                           : std::string()) +
      (options.devices > 0 ? "; network of " + std::to_string(options.devices) +
                                 " ranks by " + calibration.network.description
                           : std::string()) +
      ")";
  return calibration;
}

/// Prints the rates of all engines while they are busy at once.
static void printRates(raw_ostream &os, const Calibration &calibration) {
  os << "\n  all at once" << right_justify("GB/s", 14)
     << right_justify("latency us", 12) << "\n";
  for (const auto &[engine, rate] : calibration.rates)
    if (engine != EngineKind::Compute)
      os << "  " << left_justify(nameOf(engine), 17)
         << format("%8.1f%12.1f\n", rate.bytesPerSecond * 1e-9,
                   rate.latencySeconds * 1e6);
  auto products = calibration.rates.find(EngineKind::Compute);
  if (products == calibration.rates.end())
    return;
  const double seconds =
      products->second.seconds(double(MoveWork::productBytes()));
  os << "  " << left_justify("products beside", 17)
     << format("%8.1f GFLOP/s\n", MoveWork::productFlops() / seconds * 1e-9);
}

/// Prints the row of a family's launches with products of one type.
static void printFamily(raw_ostream &os, const Target &target,
                        const std::string &family, ProductType type,
                        const std::vector<MeasuredLaunch> &launches) {
  const Roofline &roofline = target.rooflineOf(family, type);
  // A rate far above the fastest launch bounds nothing.
  double flopRate = 0, byteRate = 0;
  for (const MeasuredLaunch &launch : launches) {
    flopRate = std::max(flopRate, launch.flops / launch.seconds);
    byteRate = std::max(byteRate, launch.bytes / launch.seconds);
  }
  auto rate = [](double fitted, double reached) {
    std::string cell = "-";
    if (reached > 0 && fitted < 2 * reached) {
      cell.clear();
      raw_string_ostream(cell) << format("%.1f", fitted * 1e-9);
    }
    return cell;
  };
  std::string name = family;
  if (type != ProductType::F32)
    name += std::string(" ") + nameOf(type);
  os << "  " << left_justify(name, 33) << format("%9zu", launches.size())
     << right_justify(rate(roofline.flopsPerSecond, flopRate), 10)
     << right_justify(rate(roofline.bytesPerSecond, byteRate), 9)
     << format("%11.1f", roofline.launchSeconds * 1e6)
     << format("%9.0f %%\n", 100 * predictedRatio(roofline, launches));
}

std::string tmc::calibrationTable(const Calibration &calibration) {
  std::string text;
  raw_string_ostream os(text);
  os << left_justify("  family", 35) << right_justify("launches", 9)
     << right_justify("GFLOP/s", 10) << right_justify("GB/s", 9)
     << right_justify("launch us", 11) << right_justify("predicted", 11)
     << "\n";
  for (const auto &[family, types] : calibration.launches)
    for (const auto &[type, launches] : types)
      printFamily(os, calibration.target, family, type, launches);
  printRates(os, calibration);
  if (calibration.network.ranks > 0)
    os << networkTable(calibration.network);
  return text;
}
