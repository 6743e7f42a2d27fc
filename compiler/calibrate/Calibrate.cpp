#include "compiler/calibrate/Calibrate.h"

#include "compiler/calibrate/Probes.h"
#include "compiler/pipeline/Compile.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <random>

using namespace llvm;
using namespace tmc;

/// Writes `bytes` to `path`.
static tmc::Expected<bool> writeFile(const std::string &path,
                                     const std::string &bytes) {
  std::error_code error;
  raw_fd_ostream os(path, error);
  os << bytes;
  os.close();
  if (!error && !os.has_error())
    return true;
  os.clear_error();
  return Failure::world("can't write '" + path + "'");
}

/// An input's data as .npy: whole numbers below the limit, or numbers around 0.
static std::string npyOf(const ProbeInput &input) {
  int64_t count = 1;
  std::string shape;
  for (int64_t size : input.shape) {
    count *= size;
    shape += std::to_string(size) + ", ";
  }
  std::string header =
      (llvm::Twine("{'descr': '") + (input.isTokens ? "<i8" : "<f4") +
       "', 'fortran_order': False, 'shape': (" + shape + "), }")
          .str();
  constexpr size_t kAlignment = 64, kPreamble = 10;
  header.resize((header.size() + kPreamble + kAlignment) / kAlignment *
                        kAlignment -
                    kPreamble,
                ' ');
  header.back() = '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += char(header.size() & 0xff);
  bytes += char(header.size() >> 8);
  bytes += header;
  std::mt19937_64 random(1); // Its output is the standard's.
  for (int64_t i = 0; i < count; ++i) {
    if (input.isTokens) {
      int64_t value = int64_t(random() % uint64_t(input.limit));
      bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    } else {
      float value = float(int64_t(random() >> 40)) / float(1 << 23) - 1;
      bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    }
  }
  return bytes;
}

namespace {
/// A probe that was compiled, and its launches as measured so far.
struct CompiledProbe {
  std::string name, directory;
  std::vector<std::string> data; // The trainer's flags.
  std::vector<MeasuredLaunch> launches;
};
} // namespace

/// Takes from a profile what was faster than before. No time at all is none:
/// the clock didn't see the launch.
static tmc::Expected<bool> readProfile(const std::string &path,
                                       std::vector<MeasuredLaunch> &launches) {
  auto file = MemoryBuffer::getFile(path);
  if (!file)
    return Failure::world("can't read the profile '" + path + "'");
  llvm::Expected<json::Value> value = json::parse((*file)->getBuffer());
  if (!value)
    return Failure::defect("a profile isn't JSON: " +
                           toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  const json::Array *rows = object ? object->getArray("launches") : nullptr;
  if (!rows)
    return Failure::defect("a profile has no launches");
  launches.resize(rows->size());
  for (size_t i = 0; i < rows->size(); ++i) {
    const json::Object *launch = (*rows)[i].getAsObject();
    auto number = [&](const char *name) {
      return launch ? launch->getNumber(name).value_or(0) : 0;
    };
    MeasuredLaunch &measured = launches[i];
    double seconds = number("least_seconds");
    if (seconds <= 0 || (measured.seconds > 0 && measured.seconds <= seconds))
      continue;
    measured.family =
        launch ? launch->getString("family").value_or("").str() : "";
    measured.flops = number("flops");
    measured.bytes = number("bytes");
    measured.seconds = seconds;
  }
  return true;
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
  compile.lossChunk = 0; // As the probe has it.
  compile.quiet = true;
  if (auto done = writeFile(compile.model, probe.forward); !done)
    return std::move(done.failure());
  if (auto done = compileModel(compile); !done)
    return std::move(done.failure());
  for (const ProbeInput &input : probe.inputs) {
    std::string path = base + "." + input.name + ".npy";
    if (auto done = writeFile(path, npyOf(input)); !done)
      return std::move(done.failure());
    compiled.data.push_back("--data=" + input.name + "=" + path);
  }
  return compiled;
}

/// Runs a probe once more.
static tmc::Expected<bool> measure(CompiledProbe &probe,
                                   const CalibrateOptions &options) {
  const std::string &base = probe.directory;
  std::string profile = base + ".json", log = base + ".log";
  std::vector<std::string> words = {base + "/train", "--init=random:1",
                                    "--steps=" +
                                        std::to_string(options.steps + 1),
                                    "--profile=" + profile, "--quiet"};
  if (options.threads > 0)
    words.push_back("--threads=" + std::to_string(options.threads));
  words.insert(words.end(), probe.data.begin(), probe.data.end());
  SmallVector<StringRef> arguments(words.begin(), words.end());
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log),
                                          StringRef(log)};
  std::string error;
  int code = sys::ExecuteAndWait(words[0], arguments, std::nullopt, redirects,
                                 0, 0, &error);
  if (code != 0) {
    Failure failure = Failure::world(
        "the probe '" + probe.name + "' ended with code " +
        std::to_string(code) + (error.empty() ? "" : ": " + error));
    if (auto text = MemoryBuffer::getFile(log))
      failure.notes.push_back((*text)->getBuffer().trim().str());
    return failure;
  }
  return readProfile(profile, probe.launches);
}

tmc::Expected<Calibration> tmc::calibrate(const CalibrateOptions &options) {
  tmc::Expected<Target> known = targetNamed(options.target);
  if (!known)
    return std::move(known.failure());
  Calibration calibration;
  calibration.target = *known;
  // Only what is measured stays: the probes' products are of f32.
  Rooflines &rooflines = calibration.target.rooflines;
  rooflines = {{ProductType::F32, rooflines.at(ProductType::F32)}};

  SmallString<128> directory;
  if (std::error_code error =
          sys::fs::createUniqueDirectory("tmc-calibrate", directory))
    return Failure::world("can't make a directory for temporary files: " +
                          error.message());
  llvm::scope_exit clean([&] { sys::fs::remove_directories(directory); });
  auto say = [&](const std::string &what) {
    if (options.progress)
      errs() << "\r\033[K" << what;
  };
  std::vector<CompiledProbe> probes;
  for (const Probe &probe : calibrationProbes()) {
    say("compiling " + probe.name + " ...");
    auto compiled = compileProbe(probe, options.target, directory.str().str());
    say("");
    if (!compiled)
      return std::move(compiled.failure());
    probes.push_back(std::move(*compiled));
  }
  for (int64_t round = 1; round <= options.rounds; ++round)
    for (CompiledProbe &probe : probes) {
      say("round " + std::to_string(round) + " of " +
          std::to_string(options.rounds) + ": " + probe.name + " ...");
      auto done = measure(probe, options);
      say("");
      if (!done)
        return std::move(done.failure());
    }
  for (const CompiledProbe &probe : probes)
    for (const MeasuredLaunch &launch : probe.launches)
      if (launch.seconds > 0 && !launch.family.empty())
        calibration.launches[launch.family].push_back(launch);
  for (const auto &[family, launches] : calibration.launches)
    calibration.target.families[family][ProductType::F32] =
        fitRoofline(launches);
  if (auto generated = calibration.target.families.find("Fused");
      generated != calibration.target.families.end())
    rooflines = generated->second;
  calibration.target.name =
      calibration.target.name + " (measured" +
      (options.threads > 0 ? ", " + std::to_string(options.threads) +
                                 (options.threads > 1 ? " threads" : " thread")
                           : std::string()) +
      ")";
  return calibration;
}

std::string tmc::calibrationTable(const Calibration &calibration) {
  std::string text;
  raw_string_ostream os(text);
  os << left_justify("  family", 26) << right_justify("launches", 9)
     << right_justify("GFLOP/s", 10) << right_justify("GB/s", 9)
     << right_justify("launch us", 11) << right_justify("predicted", 11)
     << "\n";
  for (const auto &[family, launches] : calibration.launches) {
    const Roofline &roofline =
        calibration.target.rooflineOf(family, ProductType::F32);
    // A rate far above what was reached bounds nothing.
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
    os << "  " << left_justify(family, 24) << format("%9zu", launches.size())
       << right_justify(rate(roofline.flopsPerSecond, flopRate), 10)
       << right_justify(rate(roofline.bytesPerSecond, byteRate), 9)
       << format("%11.1f", roofline.launchSeconds * 1e6)
       << format("%9.0f %%\n", 100 * predictedRatio(roofline, launches));
  }
  return text;
}
