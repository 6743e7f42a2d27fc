#include "driver/calibrate/MeasureMoves.h"

#include "driver/calibrate/MoveFit.h"
#include "driver/calibrate/MoveProbe.h"
#include "driver/calibrate/ProbeRun.h"
#include "driver/pipeline/HostCompiler.h"
#include "driver/pipeline/SystemMemory.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace tmc;

tmc::Expected<void> MoveRunner::fit() {
  llvm::ErrorOr<sys::fs::space_info> room = sys::fs::disk_space(fileDirectory);
  if (!room)
    return Failure::world("can't keep a file in '" + fileDirectory +
                          "': " + room.getError().message());
  tmc::Expected<MoveWork> fitting = workThatFits(
      systemMemory().availableBytes, int64_t(room->available), fileDirectory);
  if (!fitting)
    return std::move(fitting.failure());
  work = *fitting;
  return {};
}

tmc::Expected<void> MoveRunner::compile(const MoveWork &probe,
                                        const std::string &step) const {
  if (std::error_code error = sys::fs::create_directory(step))
    return Failure::world("can't make '" + step + "': " + error.message());
  std::string source =
      step + (target.backend == Backend::Cuda ? "/step.cu" : "/step.cpp");
  TMC_TRY(writeProbeFile(source, moveProbeText(target, probe)));
  // The trainer requires data.
  TMC_TRY(writeProbeFile(step + ".npy",
                         npyOf({"input", /*isTokens=*/false, {1}, 0})));
  tmc::Expected<Installation> installation = Installation::find();
  if (!installation)
    return std::move(installation.failure());
  return compileStep(*installation, target, {{source, /*computes=*/false}},
                     {step + "/libstep.so", /*exports=*/"", step + "/train"});
}

tmc::Expected<EngineRates> MoveRunner::run(const std::string &step) const {
  const std::string trace = step + ".trace.json";
  auto done = runProbe({"transfers",
                        step,
                        {"--steps=2", "--data=input=" + step + ".npy",
                         "--trace=" + trace, "--nvme=" + fileDirectory},
                        threads,
                        unsigned(limitSeconds)});
  if (!done)
    return std::move(done.failure())
        .note("the file is in '" + fileDirectory +
              "'; --nvme=DIR measures one elsewhere");
  if (*done == ProbeEnd::TimedOut)
    return EngineRates();
  auto file = MemoryBuffer::getFile(trace);
  if (!file)
    return Failure::world("can't read the trace '" + trace + "'");
  EngineRates rates = fitRates(movesOfTrace((*file)->getBuffer()));
  if (rates.empty())
    return Failure::defect("a trace shows no transfers");
  return rates;
}

tmc::Expected<void> MoveRunner::prepare() {
  const std::string first = directory + "-first";
  TMC_TRY(compile(firstWork(work), first));
  tmc::Expected<EngineRates> rates = run(first);
  if (!rates)
    return std::move(rates.failure());
  if (rates->empty())
    return tooSlow();
  work = balancedWork(work, *rates);
  return compile(work, directory);
}

tmc::Expected<void> MoveRunner::measure() {
  tmc::Expected<EngineRates> rates = run(directory);
  if (!rates)
    return std::move(rates.failure());
  if (areFaster(*rates, fastest))
    fastest = *rates;
  return {};
}

Failure MoveRunner::tooSlow() const {
  return Failure::world("transfers were ended after " +
                        std::to_string(limitSeconds) + " s, in each round")
      .note("the disk of '" + fileDirectory +
            "' is slow, or other programs have the machine; --patience=SECONDS "
            "waits longer, --nvme=DIR measures a file elsewhere");
}
