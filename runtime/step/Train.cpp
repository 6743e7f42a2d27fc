//===- Train.cpp - the trainer --------------------------------------------===//
//
// The main program of a step directory: feeds the step, logs, saves. Linked
// with the emitted step and the runtime of a backend.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Names.h"
#include "runtime/step/AdapterFile.h"
#include "runtime/step/AlgorithmChoice.h"
#include "runtime/step/AllocationCounter.h"
#include "runtime/step/Arguments.h"
#include "runtime/step/BaseFile.h"
#include "runtime/step/Data.h"
#include "runtime/step/Json.h"
#include "runtime/step/KeptCheckpoints.h"
#include "runtime/step/Processor.h"
#include "runtime/step/StartValues.h"
#include "runtime/step/Step.h"
#include "runtime/step/TrainLog.h"
#include "runtime/step/TrainerRanks.h"
#include "runtime/step/Values.h"
#include "runtime/step/WeightsRecord.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace tmc {

extern "C" AllocationCounter *tmc_link_allocation_hook();

namespace {

volatile std::sig_atomic_t interrupted = 0;

/// The first signal requests a clean end; the second one ends the program at
/// once.
void onSignal(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

int report(const Status &status) {
  std::fprintf(stderr, "error: %s\n", visible(status.message()).c_str());
  return static_cast<int>(status.code());
}

/// Checks that a checkpoint can be written to `directory`, which may not exist
/// yet. A failure should come before hours of training, not after.
Status checkPlace(const std::string &directory) {
  const bool there = !access(directory.c_str(), F_OK);
  std::string place = directory;
  if (!there) {
    while (place.size() > 1 && place.back() == '/')
      place.pop_back();
    const size_t slash = place.rfind('/');
    place = slash == std::string::npos ? "."
            : slash == 0               ? "/"
                                       : place.substr(0, slash);
  }
  struct stat info;
  int error = 0;
  if (stat(place.c_str(), &info) || access(place.c_str(), W_OK | X_OK))
    error = errno;
  else if (!S_ISDIR(info.st_mode))
    error = ENOTDIR;
  if (error)
    return {Code::World, "can't save in '" + directory +
                             "': " + (there ? "" : "'" + place + "': ") +
                             std::strerror(error)};
  return Status::ok();
}

/// "  scale 65536", or a text that the step was skipped.
std::string scaleText(const StepStatistics &stats, bool isSkipped) {
  char text[80];
  std::snprintf(text, sizeof text, "  %s %g",
                isSkipped ? "overflow, skipped; scale now" : "scale",
                stats.lossScale);
  return text;
}

/// "  12 saturated" if numbers saturated in the step, else "".
std::string saturationText(int64_t count) {
  return count > 0 ? "  " + std::to_string(count) + " saturated" : "";
}

/// The seconds since `start`.
double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

struct Trainer {
  const Arguments &arguments;
  const std::vector<std::string> &command;
  const TrainerRanks &ranks;
  std::unique_ptr<Step> step = nullptr;
  DataReader data = {}, evaluation = {};
  TrainLog log = {};
  RankTimes times = {}; // of several ranks
  KeptCheckpoints kept{arguments.save, arguments.keep};
  std::string wholePlace = ""; // the last checkpoint's; "": there is none
  bool hasSaved = false;       // that one, and not resumed it
  double bestLoss = INFINITY;  // of evaluations
  bool trained = false;        // a step was taken
  int warnings = 0;            // about losses and norms that aren't finite

  Status start() {
    const bool resumes = !arguments.resume.empty();
    StepOptions options;
    options.device.threads = arguments.threads;
    options.poison = arguments.poison;
    options.checkFinite = arguments.checkFinite;
    options.profile = arguments.profile;
    options.trace = !arguments.trace.empty();
    options.nvmeDirectory = arguments.nvme;
    options.device.hostThreads = arguments.hostThreads;
    options.device.linkBytesPerSecond = arguments.linkBytesPerSecond;
    options.seed = arguments.seed.value_or(0);
    options.graph = arguments.graph;
    options.device.peers = ranks.peers();
    const StepProgram &program = *tmc_step_program();
    // The data comes first: a mismatch is found at no cost.
    DataOptions dataOptions;
    dataOptions.padding = arguments.padId;
    const DataInputs inputs = DataInputs::of(program, ranks.place());
    if (Status s =
            DataReader::create(inputs, arguments.data, data, dataOptions);
        !s)
      return s;
    if (Status s = data.setShuffle(arguments.shuffle); !s)
      return s;
    if (!arguments.evaluation.empty()) {
      if (!program.evaluate)
        return {Code::Unsupported, std::string("--eval: the step can't "
                                               "evaluate a batch: ") +
                                       program.noEvaluation};
      if (Status s = DataReader::create(inputs, arguments.evaluation,
                                        evaluation, dataOptions);
          !s)
        return {s.code(), "--eval: " + s.message()};
    }
    if (const std::string warning = data.warning();
        ranks.isFirst() && !warning.empty())
      std::fprintf(stderr, "warning: %s\n", visible(warning).c_str());
    for (const std::string &place :
         {arguments.save, arguments.saveAdapter, arguments.saveBase})
      if (ranks.isFirst() && !place.empty())
        if (Status s = checkPlace(place); !s)
          return s;
    if (ranks.isFirst() && !arguments.save.empty())
      if (Status s =
              kept.start(resumes ? arguments.resume : arguments.resumeIfThere);
          !s)
        return s;
    if (arguments.saveWeights)
      if (Status s = checkSaved(program); !s)
        return s;
    if (Status s = Step::create(program, options, step); !s)
      return s;
    if (const std::string warning = step->device().algorithms.warning();
        !warning.empty())
      std::fprintf(stderr, "warning: %s\n", visible(warning).c_str());
    if (const SwapFile *file = step->file(); file && !arguments.quiet)
      std::printf("swap file in '%s': %s, %s\n",
                  visible(file->directory()).c_str(),
                  formatBytes(file->bytes()).c_str(),
                  visible(file->description()).c_str());
    if (resumes) {
      if (Status s = resume(); !s)
        return s;
    } else if (Status s = startValues(arguments, *step); !s) {
      return s;
    } else if (!arguments.resumeIfThere.empty() && !arguments.quiet) {
      std::printf("no checkpoint in '%s': the run begins\n",
                  visible(arguments.resumeIfThere).c_str());
    }
    if (Status s = writeBase(); !s)
      return s;
    if (const std::string best = kept.bestPlace(); resumes && !best.empty())
      bestLoss = evaluationLossIn(best).value_or(INFINITY);
    return arguments.log.empty()
               ? Status::ok()
               : log.open(arguments.log, resumes, *step, command);
  }

  /// Checks what --save-weights will write.
  Status checkSaved(const StepProgram &program) const {
    if (Status s = values::checkSaved(program, savedWeights()); !s)
      return s;
    const std::string &old = arguments.savePrefix.first;
    bool isFound = old.empty();
    for (int64_t i = 0; i < program.tensorCount; ++i)
      isFound |=
          program.tensors[i].role == Role::Param &&
          !std::strncmp(program.tensors[i].name, old.c_str(), old.size());
    return isFound ? Status::ok()
                   : Status(Code::Usage, "--save-prefix: no parameter's name "
                                         "begins with '" +
                                             old + "'");
  }

  Status resume() {
    RunNotes notes;
    std::string place;
    if (Status s = resumedValues(arguments, *step, place, notes); !s)
      return s;
    ranks.isWhole(wholePlace = place, step->steps());
    const bool isKnown =
        place == arguments.resume && arguments.resumeIfThere.empty();
    if (!isKnown && !arguments.quiet)
      std::printf("resuming from '%s'\n", visible(place).c_str());
    if (ranks.isFirst() && notes.samples && notes.samples != data.samples())
      std::fprintf(stderr,
                   "warning: the checkpoint is of data with %lld samples, and "
                   "this has %lld: its position is of another epoch\n",
                   static_cast<long long>(notes.samples),
                   static_cast<long long>(data.samples()));
    data.setPosition(step->batches());
    return data.setShuffle(notes.shuffle);
  }

  /// Finds the number of steps to take now, and prints what an epoch is.
  Status plan(int64_t &count) {
    int64_t end = 0;
    count = arguments.steps.value_or(INT64_MAX);
    // The same command again ends at the same step.
    if (arguments.steps && !arguments.resumeIfThere.empty())
      count = std::max<int64_t>(0, count - step->steps());
    if (arguments.epochs) {
      if (__builtin_mul_overflow(*arguments.epochs, data.stepsPerEpoch(), &end))
        return {Code::Usage, "--epochs is too large"};
      count = std::min(count, std::max<int64_t>(0, end - step->batches()));
    }
    if (arguments.quiet)
      return Status::ok();
    std::string text = "data: " + data.summary();
    if (arguments.epochs)
      text += "; " + std::to_string(*arguments.epochs) +
              (*arguments.epochs == 1 ? " epoch ends" : " epochs end") +
              " at step " + std::to_string(end);
    std::printf("%s\n", visible(text).c_str());
    return Status::ok();
  }

  /// Before the first step: what is trained whole has the model's numbers.
  Status writeBase() {
    if (arguments.saveBase.empty())
      return Status::ok();
    std::string note;
    if (Status s = saveBase(*step, arguments.saveBase, arguments.weights, note);
        !s)
      return s;
    if (ranks.isFirst() && !note.empty())
      std::fprintf(stderr, "note: %s\n", visible(note).c_str());
    return Status::ok();
  }

  /// All ranks write.
  Status save() {
    if (!arguments.saveAdapter.empty())
      if (Status s = saveAdapter(*step, arguments.saveAdapter); !s)
        return s;
    if (arguments.save.empty())
      return Status::ok();
    if (Status s = saveIn(kept.placeOf(step->steps())); !s || !ranks.isFirst())
      return s;
    return kept.prune();
  }

  SavedWeights savedWeights() const {
    return {arguments.weightsType, unusedIn(ownFolder()),
            arguments.trainedAlone, arguments.savePrefix.first,
            arguments.savePrefix.second};
  }

  /// Writes a checkpoint, and the weights if they are asked for. `loss`: of the
  /// evaluation that it is saved for.
  Status saveIn(const std::string &place,
                std::optional<double> loss = std::nullopt) {
    const auto start = std::chrono::steady_clock::now();
    // The new checkpoint may replace the last one at any time. A folder that
    // the run resumed from may have two names.
    if (!hasSaved || place == wholePlace)
      ranks.isWhole(wholePlace, std::nullopt);
    if (Status s =
            step->save(place, RunNotes{data.samples(), data.shuffle(), loss});
        !s)
      return s;
    ranks.isWhole(wholePlace = place, step->steps());
    hasSaved = true;
    if (arguments.saveWeights)
      if (Status s = step->saveWeights(place, savedWeights()); !s)
        return s;
    return log.saved(step->steps(), place, secondsSince(start));
  }

  /// Gives the next batch of a reader to the step.
  Status feed(DataReader &reader) {
    return reader.next(
        [&](const TensorInfo &input, const char *bytes, int64_t count) {
          return step->write(input, bytes, count);
        });
  }

  /// Prints and logs the mean loss over the data of --eval. A batch counts by
  /// its labels.
  Status evaluateAll() {
    const auto start = std::chrono::steady_clock::now();
    double sum = 0;
    int64_t weight = 0;
    evaluation.setPosition(0);
    bool stops = false;
    for (int64_t i = 0; i < evaluation.stepsPerEpoch(); ++i) {
      if (Status s = ranks.stops(interrupted, stops); !s)
        return s;
      if (stops)
        return Status::ok();
      double loss = 0;
      if (Status s = feed(evaluation); !s)
        return {s.code(), "--eval: " + s.message()};
      int64_t its = evaluation.weight();
      if (Status s = ranks.addUp(its); !s)
        return s;
      if (its == 0)
        continue; // A mean over no label.
      if (Status s = ranks.within(step->steps() + 1,
                                  [&] { return evaluate(*step, loss); });
          !s)
        return s;
      sum += loss * double(its);
      weight += its;
    }
    if (!weight)
      return {Code::BadInput, "--eval: no label of the data counts"};
    const double loss = sum / double(weight);
    const double seconds = secondsSince(start);
    const bool isBest = loss < bestLoss;
    if (!arguments.quiet)
      std::printf("eval loss %.6f after step %lld, %lld samples, %.3f s\n",
                  loss, static_cast<long long>(step->steps()),
                  static_cast<long long>(evaluation.samples()), seconds);
    if (Status s = log.evaluation(step->steps(), loss, evaluation.samples(),
                                  seconds, isBest);
        !s || !isBest)
      return s;
    bestLoss = loss;
    const std::string place = kept.bestPlace();
    return place.empty() || !trained ? Status::ok() : saveIn(place, loss);
  }

  /// True if --eval asks for an evaluation after step `now`.
  bool evaluatesAfter(int64_t now, int64_t last) const {
    const int64_t every = arguments.evaluateEvery;
    return !arguments.evaluation.empty() &&
           (now == last || (every && now % every == 0));
  }

  /// Reports why the loss isn't finite or the step changed nothing, a few times
  /// at most.
  Status checkLoss(int64_t now, double loss, bool isStill) {
    if (std::isfinite(loss) && !isStill)
      return Status::ok();
    std::string labels;
    if (std::isnan(loss)) { // On all ranks.
      int64_t counted = data.weight();
      if (Status s = ranks.addUp(counted); !s)
        return s;
      if (!ranks.peers() || counted == 0)
        labels = data.withoutLabels();
    }
    const std::string at = "step " + std::to_string(now) + ": ";
    const StepProgram &program = step->program();
    const bool isKept = program.skipsNonFinite || program.lossScaleTensor >= 0;
    if (!labels.empty() && !isKept)
      return {Code::BadInput, at + labels + ", and the loss is their mean"};
    constexpr int kMostWarnings = 5;
    if (++warnings > kMostWarnings || !ranks.isFirst())
      return Status::ok();
    const std::string what = !labels.empty() ? labels
                             : isStill
                                 ? "the norm of the gradients isn't finite"
                                 : "the loss isn't finite";
    std::fprintf(stderr, "warning: %s%s%s%s\n", at.c_str(),
                 visible(what).c_str(), isStill ? "; nothing moved" : "",
                 warnings == kMostWarnings ? " (the last warning of this kind)"
                                           : "");
    return Status::ok();
  }

  Status train() {
    const StepProgram &program = step->program();
    int64_t count = 0;
    if (Status s = plan(count); !s)
      return s;
    const int64_t last = step->steps() + count;
    if (count == 0 && !arguments.evaluation.empty())
      if (Status s = evaluateAll(); !s)
        return s;
    int64_t skipped = step->statistics().skippedSteps;
    int64_t saturations = step->statistics().saturations;
    bool stops = false;
    while (step->steps() < last) {
      if (Status s = ranks.stops(interrupted, stops); !s)
        return s;
      if (stops)
        break;
      const int64_t now = step->steps() + 1;
      const double rate = arguments.rate * arguments.schedule.factor(now, last);
      step->setLearningRate(rate);
      if (Status s = feed(data); !s)
        return s;
      double loss = 0;
      StepStatistics stats;
      const Status done = ranks.within(now, [&] {
        if (Status s = step->run(loss); !s)
          return s;
        stats = step->statistics();
        return ranks.share(stats, times);
      });
      if (!done)
        return done;
      const bool isStill =
          program.skipsNonFinite && stats.skippedSteps > skipped;
      if (Status s = checkLoss(now, loss, isStill); !s)
        return s;
      const bool tokens = program.tokensPerStep > 0;
      const double perSecond =
          double(program.mesh.data) *
          double(tokens ? program.tokensPerStep : program.samplesPerStep) /
          stats.lastStepSeconds;
      const bool isScaled = program.lossScaleTensor >= 0;
      const bool isSkipped = stats.skippedSteps > skipped;
      skipped = stats.skippedSteps;
      const int64_t saturated = stats.saturations - saturations;
      saturations = stats.saturations;
      if (!arguments.quiet) {
        std::printf("step %lld/%lld  loss %.6f  grad norm %.5f  %.3f s  "
                    "%.0f %s/s  arena %s%s%s%s\n",
                    static_cast<long long>(now), static_cast<long long>(last),
                    loss, std::fabs(stats.gradNorm), stats.lastStepSeconds,
                    perSecond, tokens ? "tokens" : "samples",
                    formatBytes(stats.highWaterBytes.device()).c_str(),
                    isScaled  ? scaleText(stats, isSkipped).c_str()
                    : isStill ? "  not finite, nothing moved"
                              : "",
                    saturationText(saturated).c_str(), slowestText().c_str());
        std::fflush(stdout);
      }
      if (Status s = log.step(*step, {now, loss, rate, perSecond, stats,
                                      times.slowest(), times.slowestSeconds()});
          !s)
        return s;
      trained = true;
      if (evaluatesAfter(now, last))
        if (Status s = evaluateAll(); !s)
          return s;
      if (arguments.saveEvery && now % arguments.saveEvery == 0 && now < last)
        if (Status s = save(); !s)
          return s;
    }
    if (stops && !arguments.quiet)
      std::fprintf(stderr, "interrupted after step %lld%s\n",
                   static_cast<long long>(step->steps()),
                   arguments.save.empty() ? "" : "; saving");
    if (Status s = save(); !s)
      return s;
    return report();
  }

  /// "  slowest rank 1", if there are several.
  std::string slowestText() const {
    return times.slowest() < 0
               ? ""
               : "  slowest rank " + std::to_string(times.slowest());
  }

  /// Prints the times of the ranks. Writes the trace and the profile, if
  /// requested.
  Status report() const {
    if (!arguments.quiet)
      std::fputs(visible(times.table()).c_str(), stdout);
    if (const Trace *trace = step->trace())
      if (Status s = trace->write(arguments.trace); !s)
        return s;
    const Profile *profile = step->profile();
    if (!profile)
      return Status::ok();
    if (!arguments.profileFile.empty())
      return profile->writeJson(arguments.profileFile);
    if (!profile->steps())
      std::fprintf(stderr, "no profile: it leaves out the first step\n");
    std::fputs(visible(profile->table()).c_str(), stdout);
    return Status::ok();
  }
};

/// Trains, as one of several ranks or alone.
Status trainOnRanks(Arguments given, const std::vector<std::string> &command) {
  if (Status s = resumeIfThere(StepValueKinds::of(*tmc_step_program()), given);
      !s)
    return s;
  TrainerRanks ranks;
  if (Status s = ranks.open(*tmc_step_program(), given, ownFolder()); !s)
    return s;
  const Arguments arguments = ranks.isFirst() ? given : withoutOutput(given);
  if (const std::string text = ranks.description();
      !text.empty() && !arguments.quiet)
    std::printf("%s\n", visible(text).c_str());
  Trainer trainer{arguments, command, ranks};
  Status done = trainer.start();
  if (done)
    done = ranks.checkAlike(*trainer.step, trainer.data);
  if (done)
    done = trainer.train();
  return ranks.end(done);
}

/// Measures the step's products in place of training.
Status tuneAlgorithms(const Arguments &arguments) {
  const StepProgram &program = *tmc_step_program();
  if (program.backend != Backend::Cuda)
    return {Code::Usage, "--tune-algorithms is for steps on cuda"};
  AlgorithmTuning tuning;
  StepOptions options;
  options.nvmeDirectory = arguments.nvme;
  options.device.tuning = &tuning;
  std::unique_ptr<Step> step;
  if (Status s = Step::create(program, options, step); !s)
    return s;
  if (Status s = writeText(arguments.tune, tuning.json()); !s)
    return s;
  if (!arguments.quiet)
    std::printf("%s\n", visible(tuning.summary()).c_str());
  return Status::ok();
}

} // namespace
} // namespace tmc

int main(int count, char **words) {
  using namespace tmc;
  // Before any code that may be compiled for the step's target.
  if (const char *fault = startFault()) {
    std::fprintf(stderr, "error: %s\n", visible(fault).c_str());
    return static_cast<int>(Code::World);
  }
  Arguments arguments;
  const std::vector<std::string> command(words, words + count);
  if (Status s = parseArguments({words + 1, words + count}, arguments,
                                StepValueKinds::of(*tmc_step_program()));
      !s) {
    const int code = report(s);
    std::fprintf(stderr, "note: %s --help lists the flags\n",
                 visible(words[0]).c_str());
    return code;
  }
  if (arguments.help) {
    std::fputs(visible(helpText(words[0], *tmc_step_program())).c_str(),
               stdout);
    return 0;
  }
  for (const std::string &note : arguments.notes)
    std::fprintf(stderr, "note: %s\n", visible(note).c_str());
  (void)tmc_link_allocation_hook();
  std::signal(SIGINT, onSignal);
  std::signal(SIGTERM, onSignal);
  // Makes a file that grows past a limit an error instead of a fatal signal.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    if (!arguments.tune.empty()) {
      const Status done = tuneAlgorithms(arguments);
      return done ? 0 : report(done);
    }
    if (Status s = trainOnRanks(arguments, command); !s) {
      const int code = report(s);
      // Threads of a network's library may wait for ranks that are gone.
      if (tmc_step_program()->mesh.ranks() > 1)
        _exit(code);
      return code;
    }
    // The results are saved by now.
    if (std::fflush(stdout) || std::ferror(stdout))
      return report({Code::World, std::string("can't write to standard "
                                              "output: ") +
                                      std::strerror(errno)});
  } catch (const std::bad_alloc &) {
    return report({Code::World, "out of host memory"});
  }
  return 0;
}
