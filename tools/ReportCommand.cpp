#include "tools/ReportCommand.h"

#include "driver/pipeline/Beside.h"
#include "driver/pipeline/Messages.h"

using namespace tmc;

static Expected<void> runReport(const BesideOptions &options) {
  const bool isMeasured = !options.profile.empty() || !options.log.empty();
  if (options.directories.size() == 2 && isMeasured)
    return Failure::usage("--profile and --log go with one directory");
  if (options.directories.size() == 1 && !isMeasured)
    return Failure::usage("nothing to show beside '" + options.directories[0] +
                          "'")
        .note("a second directory gives a comparison; --profile and --log "
              "give a measured step; the plan alone is in its report.html");
  return showBeside(options);
}

int ReportCommand::run() {
  BesideOptions options;
  options.directories.assign(directories.begin(), directories.end());
  options.profile = profile;
  options.log = log;
  options.output = output;
  Expected<void> done = runReport(options);
  if (done)
    return 0;
  report(done.failure());
  return done.failure().exitCode();
}
