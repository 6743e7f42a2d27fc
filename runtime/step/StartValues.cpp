//===- StartValues.cpp - the values that a trainer starts from ------------===//

#include "runtime/step/StartValues.h"

#include "runtime/step/AdapterFile.h"
#include "runtime/step/Identity.h"
#include "runtime/step/KeptCheckpoints.h"
#include "runtime/step/SafetensorsSet.h"
#include "runtime/step/WeightsRecord.h"

#include <unistd.h>

namespace tmc {

std::string ownFolder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || size_t(length) == sizeof path)
    return "";
  const std::string self(path, size_t(length));
  return self.substr(0, self.rfind('/'));
}

namespace {

/// The values that the compilation left beside the program, if it left any.
std::string shippedWeights() {
  const std::string folder = ownFolder();
  return folder.empty() ? "" : shippedIn(folder);
}

Status checkOwn(const std::string &path) {
  return checkShipped(path, stepIdentity());
}

/// The file for what --weights lacks. The files of a record may have moved:
/// --weights then says where they are, and the values beside the record count.
std::string besideGiven() {
  const std::string shipped = shippedWeights();
  SafetensorsSet set;
  if (isRecordPath(shipped) && !SafetensorsSet::open(shipped, set))
    return unusedIn(ownFolder());
  return checkOwn(shipped) ? shipped : "";
}

/// Values come from --weights, by --init, or from the file beside the program.
Status baseValues(const Arguments &arguments, Step &step) {
  if (!arguments.weights.empty())
    return step.load(arguments.weights, besideGiven(), arguments.initSeed);
  const std::string shipped = shippedWeights();
  const Status known = checkOwn(shipped);
  if (!known)
    return known;
  if (arguments.init)
    return step.initRandom(arguments.initSeed, shipped);
  const Status done = shipped.empty()
                          ? Status(Code::Usage, "the model came without values")
                          : step.load(shipped);
  if (done)
    return done;
  return {done.code(), done.message() + "; give --weights FILE or --init "
                                        "random:SEED"};
}

} // namespace

Status resumeIfThere(const StepValueKinds &kinds, Arguments &arguments) {
  if (arguments.resumeIfThere.empty())
    return Status::ok();
  bool isThere = false;
  if (Status s = KeptCheckpoints::look(arguments.resumeIfThere, isThere);
      !s || !isThere)
    return s;
  arguments.resume = arguments.resumeIfThere;
  arguments.seed.reset();
  arguments.shuffle.reset();
  arguments.adapter.clear();
  if (!kinds.hasBase) {
    arguments.weights.clear();
    arguments.init = false;
  }
  return Status::ok();
}

Status startValues(const Arguments &arguments, Step &step) {
  if (Status s = baseValues(arguments, step); !s || arguments.adapter.empty())
    return s;
  return loadAdapter(step, arguments.adapter);
}

Status resumedValues(const Arguments &arguments, Step &step, std::string &place,
                     RunNotes &notes) {
  const std::string shipped = shippedWeights();
  const bool isGiven = !arguments.weights.empty() || arguments.init;
  if (isGiven)
    if (Status s = baseValues(arguments, step); !s)
      return s;
  const std::string beside = isGiven             ? besideGiven()
                             : checkOwn(shipped) ? shipped
                                                 : "";
  place = KeptCheckpoints::newestIn(arguments.resume);
  return step.resume(place, beside, &notes);
}

} // namespace tmc
