//===- Step.cpp - runs a compiled step ------------------------------------===//

#include "runtime/step/Step.h"

#include "runtime/kernels/Ranks.h"
#include "runtime/step/AllocationCounter.h"
#include "runtime/step/Ranges.h"
#include "runtime/step/Values.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <sys/stat.h>
#include <utility>

namespace tmc {

/// Entries of a queue: enough that its caller seldom waits.
static constexpr int64_t kMostQueued = 1024;

AllocationCounter *allocationCounter() {
  return tmc_allocation_counter ? tmc_allocation_counter() : nullptr;
}

/// Poisons and checks buffers between launches, through host memory: for
/// debugging only.
class Step::Observer final : public LaunchObserver {
public:
  Observer(Step &step, bool poison, bool checkFinite)
      : step_(step), poison_(poison), checkFinite_(checkFinite) {}

  void launched(Queues &, int64_t index) override { look(index, index); }
  /// Checks the results of work on another engine, and poisons dead buffers.
  void done(Queues &queues, int64_t index) override {
    const StepProgram &program = step_.program_;
    if (index < 0 || index >= program.launchCount)
      return;
    queues.drain();
    const int64_t start = program.launches[index].startedBy;
    look(index, start >= 0 ? start : index);
  }

  void start() { bad_ = Status::ok(); }
  const Status &bad() const { return bad_; }

private:
  void look(int64_t index, int64_t madeBy) {
    const StepProgram &program = step_.program_;
    if (index < 0 || index >= program.launchCount ||
        madeBy >= program.launchCount)
      return;
    const LaunchInfo &launch = program.launches[index];
    const LaunchInfo &maker = program.launches[madeBy];
    if (checkFinite_ && bad_.isOk())
      for (int32_t i = 0; i < maker.writeCount; ++i)
        check(maker, maker.writes[i]);
    if (!poison_ || launch.deathCount == 0)
      return;
    for (int32_t i = 0; i < launch.deathCount; ++i)
      step_.homes().poison(launch.deaths[i]);
    // No event of the program follows that other engines could wait for.
    if (program.eventCount > 0)
      step_.device_->queues().drain();
  }

  void check(const LaunchInfo &launch, const Region &region) {
    if (region.type != DType::F32 && region.type != DType::F64)
      return;
    step_.device_->queues().drain();
    buffer_.resize(size_t(region.bytes));
    if (Status s = step_.homes().read(region, buffer_.data()); !s) {
      bad_ = s;
      return;
    }
    const int64_t count = region.bytes / sizeOf(region.type);
    for (int64_t i = 0; i < count; ++i) {
      double value;
      if (region.type == DType::F32) {
        float x;
        std::memcpy(&x, buffer_.data() + i * 4, 4);
        value = x;
      } else {
        std::memcpy(&value, buffer_.data() + i * 8, 8);
      }
      if (std::isfinite(value))
        continue;
      std::string where = launch.location && *launch.location
                              ? std::string(" (") + launch.location + ")"
                              : "";
      bad_ = {Code::BadInput,
              std::string(launch.name) + where + " makes " +
                  (std::isnan(value) ? "a NaN" : "an infinity") +
                  " at element " + std::to_string(i) + " of " +
                  std::to_string(count)};
      return;
    }
  }

  Step &step_;
  bool poison_, checkFinite_;
  Status bad_;
  std::vector<char> buffer_;
};

/// Tells the other ranks the entry that this one has come to.
class Step::Progress final : public LaunchObserver {
public:
  Progress(Peers &peers, LaunchObserver *next) : peers_(peers), next_(next) {}

  void launched(Queues &queues, int64_t index) override {
    peers_.computes(index + 1);
    if (next_)
      next_->launched(queues, index);
  }
  void started(Queues &queues, int64_t index) override {
    if (next_)
      next_->started(queues, index);
  }
  void done(Queues &queues, int64_t index) override {
    peers_.computes(index + 1);
    if (next_)
      next_->done(queues, index);
  }
  void recorded(EngineKind engine, int32_t event) override {
    if (next_)
      next_->recorded(engine, event);
  }
  void waiting(EngineKind engine, int32_t event) override {
    if (next_)
      next_->waiting(engine, event);
  }

private:
  Peers &peers_;
  LaunchObserver *next_;
};

/// Ranks of one host have a folder each in `directory`: "dp-1".
static Status makeOwnFolder(const Peers &peers, std::string &directory) {
  std::string name;
  for (const Axis axis : {Axis::Data, Axis::Tensor, Axis::Pipeline})
    if (peers.size(axis) > 1)
      name += (name.empty() ? "" : "-") + std::string(nameOf(axis)) + "-" +
              std::to_string(peers.place(axis));
  directory += "/" + name;
  if (mkdir(directory.c_str(), 0777) && errno != EEXIST)
    return {Code::World,
            "can't make '" + directory + "': " + std::strerror(errno)};
  return Status::ok();
}

/// Makes the arena of a space: memory of the device or the host, or `file`.
static Status createArena(const StepProgram &program,
                          const StepOptions &options, SpaceKind space,
                          int64_t bytes, Device &device,
                          std::unique_ptr<SwapFile> &file) {
  switch (space) {
  case SpaceKind::Device:
  case SpaceKind::Host:
    return device.allocateArena(space, bytes);
  case SpaceKind::File:
    break;
  }
  std::string directory = options.nvmeDirectory.empty() ? program.fileDirectory
                                                        : options.nvmeDirectory;
  if (directory.empty())
    return {Code::Usage, "the step keeps " + std::to_string(bytes) +
                             " bytes in a file: give --nvme DIR"};
  if (device.peers)
    if (Status s = makeOwnFolder(*device.peers, directory); !s)
      return s;
  return SwapFile::create(directory, bytes, options.file, file);
}

static Status startQueues(const StepProgram &program, Device &device,
                          SwapFile *file) {
  QueueNeeds needs;
  needs.events = program.eventCount;
  needs.file = file;
  PerEngine<int64_t> rows;
  for (int64_t i = 0; i < program.launchCount; ++i)
    if (program.launches[i].startedBy < 0)
      ++rows[program.launches[i].engine];
  int64_t most = 0;
  for (auto [engine, count] : rows) {
    if (engine.kind == EngineKind::Compute)
      continue;
    needs.engines[engine.kind] = count > 0;
    most = std::max(most, count);
  }
  // Each entry may have two waits before it.
  needs.depth = std::min(3 * most, kMostQueued);
  return device.startQueues(needs);
}

Status faultOf(const IndexFault &fault) {
  return {Code::BadInput, "an index is " + std::to_string(fault.value) +
                              " in row " + std::to_string(fault.row) +
                              ", outside [0, " + std::to_string(fault.limit) +
                              ")"};
}

/// Saves the model's states before a step that may be skipped.
static Status keepStates(const StepProgram &program, const Homes &homes,
                         std::vector<std::vector<char>> &kept) {
  size_t at = 0;
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    if (info.role != Role::State)
      continue;
    const auto [begin, end] = homes.heldBytes(info);
    if (kept.size() == at)
      kept.emplace_back(size_t(end - begin));
    if (Status s = homes.readHeld(info, begin, kept[at++].data(), end - begin);
        !s)
      return s;
  }
  return Status::ok();
}

static Status returnStates(const StepProgram &program, const Homes &homes,
                           const std::vector<std::vector<char>> &kept) {
  size_t at = 0;
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    if (info.role != Role::State)
      continue;
    const auto [begin, end] = homes.heldBytes(info);
    if (Status s = homes.writeHeld(info, begin, kept[at++].data(), end - begin);
        !s)
      return s;
  }
  return Status::ok();
}

Step::Step(const StepProgram &program, const StepOptions &options)
    : program_(program), options_(options), figures_(program),
      given_(size_t(program.tensorCount)),
      viewed_(size_t(program.tensorCount)) {}

Step::~Step() {
  if (kernels_)
    program_.destroyKernels(kernels_);
}

Status Step::create(const StepProgram &program, const StepOptions &options,
                    std::unique_ptr<Step> &step) {
  if (program.version != kProgramVersion)
    return {Code::Defect, "the step was emitted for version " +
                              std::to_string(program.version) +
                              " of the runtime; this is version " +
                              std::to_string(kProgramVersion)};
  std::unique_ptr<Step> made(new Step(program, options));
  DeviceOptions device = options.device;
  device.reservedBytes = program.plan.reservedBytes;
  device.algorithms = &program.algorithms;
  if (Status s = createDevice(device, made->device_); !s)
    return s;
  for (const SpaceInfo &space : kSpaces) {
    const int64_t bytes = program.arenaBytes[space.kind];
    if (onDevice(space.kind) || bytes > 0)
      if (Status s = createArena(program, made->options_, space.kind, bytes,
                                 *made->device_, made->file_);
          !s)
        return s;
  }
  if (Status s = made->prepare(); !s)
    return s;
  step = std::move(made);
  return Status::ok();
}

Status Step::prepare() {
  kernels_ = program_.createKernels();
  struct Context {
    Device &device;
    Status status;
  } context{*device_, {}};
  program_.visitKernels(
      kernels_, &context, [](void *opaque, const char *name, Kernel &kernel) {
        Context &c = *static_cast<Context *>(opaque);
        if (!c.status)
          return;
        if (Status s = kernel.prepare(c.device); !s)
          c.status = {s.code(), std::string(name) + ": " + s.message()};
      });
  if (!context.status)
    return context.status;
  // A measurement loads many algorithms, of which a step uses few.
  if (!options_.device.tuning)
    if (Status s = device_->checkReserve(); !s)
      return s;
  for (int64_t i = 0; i < program_.constantCount; ++i) {
    const ConstantInfo &constant = program_.constants[i];
    device_->upload(device_->arena(SpaceKind::Device) + constant.offset,
                    constant.data, constant.bytes);
  }
  if (Status s = values::startStates(program_, homes()); !s)
    return s;
  if (Status s = startQueues(program_, *device_, file_.get()); !s)
    return s;
  figures_.place(*device_);
  if (options_.graph)
    recorder_ = device_->recordSteps();
  if (options_.poison || options_.checkFinite) {
    observer_ = std::make_unique<Observer>(*this, options_.poison,
                                           options_.checkFinite);
    device_->queues().setObserver(observer_.get());
  }
  if (options_.profile || options_.trace)
    timer_ = device_->timeLaunches();
  if (options_.profile) {
    profile_ = std::make_unique<Profile>(
        program_, observer_.get(), timer_ != nullptr, device_->description());
    device_->queues().setObserver(profile_.get());
  }
  if (options_.trace) {
    trace_ = std::make_unique<Trace>(program_, device_->queues().observer(),
                                     timer_ != nullptr);
    device_->queues().setObserver(trace_.get());
    device_->observeWork(trace_.get());
  }
  if (Peers *peers = device_->peers) {
    progress_ =
        std::make_unique<Progress>(*peers, device_->queues().observer());
    device_->queues().setObserver(progress_.get());
  }
  if (timer_) {
    timer_->setNext(device_->queues().observer());
    device_->queues().setObserver(timer_);
  }
  return Status::ok();
}

const TensorInfo *Step::find(const std::string &name) const {
  for (int64_t i = 0; i < program_.tensorCount; ++i)
    if (name == program_.tensors[i].name)
      return &program_.tensors[i];
  return nullptr;
}

Status Step::write(const TensorInfo &tensor, const void *data, int64_t bytes) {
  if (bytes != tensor.bytes())
    return {Code::Usage, std::string("'") + tensor.name + "' has " +
                             std::to_string(tensor.bytes()) + " bytes, not " +
                             std::to_string(bytes)};
  if (tensor.role == Role::Output)
    return {Code::Usage, std::string("'") + tensor.name +
                             "' is a result and can't be written"};
  if (tensor.role == Role::Copy)
    return {Code::Usage, std::string("'") + tensor.name + "' follows '" +
                             program_.tensors[tensor.copyOf].name +
                             "' and can't be written"};
  if (Status s = checkRange(tensor, data); !s)
    return s;
  if (tensor.role == Role::Param || tensor.role == Role::State ||
      tensor.role == Role::Moment) {
    figures_.forget();
    if (!std::exchange(started_, true))
      if (Status s = values::startOptimizer(program_, homes()); !s)
        return s;
  }
  if (Status s = homes().write(tensor, 0, data, bytes); !s)
    return s;
  for (int64_t i = 0; i < program_.tensorCount; ++i)
    if (program_.tensors + i == &tensor)
      given_[size_t(i)] = true;
  return tensor.role == Role::Param
             ? values::roundCopies(program_, homes(), &tensor)
             : Status::ok();
}

Status Step::read(const TensorInfo &tensor, void *data, int64_t bytes) {
  if (bytes != tensor.bytes())
    return {Code::Usage, std::string("'") + tensor.name + "' has " +
                             std::to_string(tensor.bytes()) + " bytes, not " +
                             std::to_string(bytes)};
  if (!lost_)
    return lost_;
  return homes().read(tensor, 0, data, bytes);
}

Status Step::feed() {
  const Homes homes = this->homes();
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &tensor = program_.tensors[i];
    switch (tensor.feed) {
    case Feed::None:
    case Feed::Data:
      break;
    case Feed::Samples: {
      // Several at a time: a transfer has a high fixed cost.
      int64_t numbers[128];
      const int64_t count = tensor.elements();
      const Peers *peers = device_->peers;
      const int64_t before = peers ? peers->place(Axis::Data) * count : 0;
      for (int64_t first = 0; first < count;) {
        int64_t some = 0;
        for (; some < 128 && first + some < count; ++some)
          numbers[some] = before + first + some;
        if (Status s = homes.write(tensor, first * 8, numbers, some * 8); !s)
          return s;
        first += some;
      }
      break;
    }
    case Feed::TensorPlace: {
      const Peers *peers = device_->peers;
      const int64_t place = peers ? peers->place(Axis::Tensor) : 0;
      if (Status s = homes.write(tensor, 0, &place, sizeof place); !s)
        return s;
      break;
    }
    case Feed::Seed: {
      const int64_t words[2] = {int64_t(options_.seed), steps_ + 1};
      if (Status s = homes.write(tensor, 0, words, sizeof words); !s)
        return s;
      break;
    }
    case Feed::LearningRate: {
      const float rate = float(learningRate_);
      if (Status s = homes.write(tensor, 0, &rate, sizeof rate); !s)
        return s;
      break;
    }
    case Feed::Step: {
      const int64_t step = steps_ + 1 - skipped_;
      if (Status s = homes.write(tensor, 0, &step, sizeof step); !s)
        return s;
      break;
    }
    }
  }
  return Status::ok();
}

/// Ends a step of the profile and the trace, which may be null, and passes the
/// device's times to them, if it has a timer.
static Status readTimes(DeviceTimer *timer, Profile *profile, Trace *trace) {
  if (timer) {
    if (Status s = timer->finish(); !s)
      return s;
    if (profile)
      profile->add(timer->times());
    if (trace)
      trace->add(timer->times());
  }
  if (profile)
    profile->finish();
  return Status::ok();
}

Status Step::run(double &loss) {
  if (!lost_)
    return lost_;
  if (Status s = values::checkParams(program_, given_); !s)
    return s;
  if (Status s = values::checkInputs(program_, given_); !s)
    return s;
  if (Status s = checkRanges(program_, homes(), viewed_); !s)
    return s;
  if (program_.skipsNonFinite)
    if (Status s = keepStates(program_, homes(), kept_); !s)
      return s;
  // Allocations of a recording don't count as those of a step.
  if (recorder_ && runs_ == 1)
    recorder_->record(program_.run, kernels_);
  AllocationCounter *counter = allocationCounter();
  if (observer_)
    observer_->start();
  else if (counter) {
    counter->large = 0;
    counter->largestBytes = 0;
    counter->counting = true;
  }
  const auto start = std::chrono::steady_clock::now();
  if (Status s = feed(); !s)
    return s;
  if (file_)
    file_->setStep(steps_ + 1);
  Stream &stream = device_->compute();
  stream.fault = {};
  if (profile_)
    profile_->start();
  if (trace_)
    trace_->start();
  if (timer_)
    if (Status s = timer_->start(); !s)
      return s;
  ++runs_;
  if (!recorder_ || !recorder_->replay())
    program_.run(device_->queues(), kernels_);
  figures_.forget();
  const Status done = device_->synchronize(&figures_.numbers());
  lastSeconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (counter && !observer_) {
    counter->counting = false;
    allocations_ = counter->large;
    largestAllocation_ = counter->largestBytes;
  }
  if (!done) {
    lost_ = {done.code(), done.message() + "; step " +
                              std::to_string(steps_ + 1) +
                              " wasn't done, and the values are lost: go on "
                              "from a checkpoint"};
    return lost_;
  }
  // After the last use of the clock: there may be a hundred thousand times.
  const Status timed = readTimes(timer_, profile_.get(), trace_.get());
  if (stream.fault.set)
    return faultOf(stream.fault);
  if (observer_ && !observer_->bad())
    return observer_->bad();

  figures_.finish(homes());
  loss = figures_.number(Figures::Loss);
  ++steps_;
  ++batches_;
  if (program_.skipsNonFinite &&
      !std::isfinite(figures_.number(Figures::GradNorm))) {
    ++skipped_;
    if (Status s = returnStates(program_, homes(), kept_); !s)
      return s;
  }
  return timed; // The step is done, also if its times can't be read.
}

StepStatistics Step::statistics() const {
  StepStatistics s;
  s.arenaBytes = program_.arenaBytes;
  // Scanning a large arena takes milliseconds, and a step touches all its
  // memory at once: scanning after 0, 1, 2, 4, 8, ... steps of this process is
  // enough.
  if (highWaterRuns_ < 0 ||
      (highWaterRuns_ != runs_ && (runs_ & (runs_ - 1)) == 0) ||
      highWaterRuns_ * 2 < runs_) {
    for (auto [space, bytes] : highWater_)
      if (space.hasAddresses)
        bytes = device_->highWaterBytes(space.kind);
    highWaterRuns_ = runs_;
  }
  s.highWaterBytes = highWater_;
  s.allocations = allocations_;
  s.largestAllocationBytes = largestAllocation_;
  s.steps = steps_;
  s.lastStepSeconds = lastSeconds_;
  s.gradNorm = figures_.number(Figures::GradNorm);
  s.lossScale = figures_.number(Figures::LossScale);
  s.skippedSteps = figures_.has(Figures::UpdateCount)
                       ? steps_ - figures_.count(Figures::UpdateCount, homes())
                       : skipped_;
  if (figures_.has(Figures::Saturations))
    s.saturations = figures_.count(Figures::Saturations, homes());
  return s;
}

} // namespace tmc
