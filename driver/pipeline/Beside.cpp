#include "driver/pipeline/Beside.h"

#include "compiler/report/Compare.h"
#include "compiler/report/Measured.h"
#include "compiler/support/Escape.h"
#include "driver/pipeline/Folder.h"
#include "driver/pipeline/TextFile.h"

#include "llvm/Support/raw_ostream.h"

using namespace tmc;

/// No plan or trace of tmc is larger, and no profile.
static constexpr int64_t kMostPlanBytes = int64_t(1) << 30;
/// A line of a log has some 400 bytes: two million steps.
static constexpr int64_t kMostLogBytes = int64_t(1) << 30;

/// A file of a directory that tmc compile wrote.
static Expected<std::string> fileIn(const std::string &path,
                                    const std::string &name) {
  Folder directory = Folder::open(path, Folder::Links::Followed);
  std::optional<std::string> text;
  if (directory)
    text = directory.read(name, kMostPlanBytes);
  if (text)
    return *std::move(text);
  return Failure::input("'" + path + "' has no " + name +
                        ": it is no directory that tmc compile wrote");
}

/// A failure of a reader, with the name of the file before it.
static Failure named(const std::string &path, Failure failure) {
  failure.message = "'" + path + "' " + failure.message;
  return failure;
}

Expected<PlanTrace> tmc::traceIn(const std::string &directory) {
  Expected<std::string> text = fileIn(directory, "plan-trace.json");
  if (!text)
    return std::move(text.failure());
  return readPlanTrace(*text);
}

static Expected<PlanDirectory> planIn(const std::string &directory) {
  Expected<std::string> text = fileIn(directory, "plan.json");
  if (!text)
    return std::move(text.failure());
  Expected<PlanFile> plan = PlanFile::read(*text);
  if (!plan)
    return std::move(plan.failure()).note("it is in '" + directory + "'");
  Expected<PlanTrace> trace = traceIn(directory);
  if (!trace)
    return std::move(trace.failure()).note("it is in '" + directory + "'");
  return PlanDirectory{directory, *std::move(plan), *std::move(trace)};
}

static Expected<void> show(const std::string &text, const std::string &page,
                           const std::string &output) {
  if (!output.empty())
    TMC_TRY(writeText(output, page));
  llvm::outs() << visible(text);
  return {};
}

static Expected<void> showMeasured(const BesideOptions &options,
                                   const PlanDirectory &planned) {
  Measured measured{planned};
  Expected<MeasuredProfile> profile = MeasuredProfile();
  Expected<MeasuredLog> log = MeasuredLog();
  if (!options.profile.empty()) {
    Expected<std::string> text = readText(options.profile, kMostPlanBytes);
    if (!text)
      return std::move(text.failure());
    profile = readProfile(*text, planned.trace);
    if (!profile)
      return named(options.profile, std::move(profile.failure()));
    measured.profile = &*profile;
  }
  if (!options.log.empty()) {
    Expected<std::string> text = readText(options.log, kMostLogBytes);
    if (!text)
      return std::move(text.failure());
    log = readLog(*text, planned.plan.made().plan);
    if (!log)
      return named(options.log, std::move(log.failure()));
    measured.log = &*log;
  }
  return show(measuredText(measured), measuredHtml(measured), options.output);
}

Expected<void> tmc::showBeside(const BesideOptions &options) {
  Expected<PlanDirectory> first = planIn(options.directories[0]);
  if (!first)
    return std::move(first.failure());
  if (options.directories.size() == 1)
    return showMeasured(options, *first);
  Expected<PlanDirectory> second = planIn(options.directories[1]);
  if (!second)
    return std::move(second.failure());
  return show(compareText(*first, *second), compareHtml(*first, *second),
              options.output);
}
