//===- Steps.cpp - what a launch of an emitted step may touch -------------===//

#include "test/cuda/emulator/Steps.h"

#include "test/cuda/emulator/Graphs.h"
#include "test/cuda/emulator/Shadow.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tmc::emulator {

namespace {

const StepProgram *original = nullptr;

/// The work that one entry of the program queues, and what it may touch. That
/// is known when the entry is queued: the list says what exists there, whatever
/// runs beside it. In a graph an entry runs in many steps.
struct Scope {
  int64_t launch = -1; // not said yet
  uint64_t begun = 0;  // the latest step in which it began
  uintptr_t arena = 0;
  std::vector<Extent> extents;
  /// What begins to exist with it, unwritten.
  std::vector<std::pair<uintptr_t, size_t>> fresh;
};
std::shared_ptr<Scope> open;

struct Buffer {
  uintptr_t end;
  std::string name;
};
/// What exists where the list has come to, by its first byte.
std::map<uintptr_t, Buffer> buffers;
uintptr_t arena = 0;
/// Steps that have begun on the device.
uint64_t steps = 0;

bool isWithin(uintptr_t begin, uintptr_t end) {
  const auto after = buffers.upper_bound(begin);
  return after != buffers.begin() && std::prev(after)->second.end >= end;
}

/// A buffer begins to exist, in place of what overlaps it.
void add(Scope &scope, const Region &region, const std::string &name) {
  if (!onDevice(region.space))
    return;
  const uintptr_t begin = arena + uintptr_t(region.offset);
  const uintptr_t end = begin + uintptr_t(region.bytes);
  if (begin == end || isWithin(begin, end))
    return;
  for (auto at = buffers.begin(); at != buffers.end();)
    at = at->first < end && at->second.end > begin ? buffers.erase(at)
                                                   : std::next(at);
  buffers[begin] = {end, name};
  scope.fresh.push_back({begin, end - begin});
}

/// What is dead exists no longer.
void removeDeaths(const LaunchInfo &launch) {
  for (int i = 0; i < launch.deathCount; ++i) {
    const Region &region = launch.deaths[i];
    const uintptr_t begin = arena + uintptr_t(region.offset);
    const auto found = buffers.find(begin);
    if (onDevice(region.space) && found != buffers.end() &&
        found->second.end == begin + uintptr_t(region.bytes))
      buffers.erase(found);
  }
}

/// The entry comes into being, with those that run in its launch: their
/// results, their scratch, what they may touch.
void name(Scope &scope, int64_t index) {
  scope.launch = index;
  std::vector<Region> mine;
  for (int64_t i = index; i < index + original->launches[index].together; ++i) {
    const LaunchInfo &launch = original->launches[i];
    const std::string name = launch.name;
    for (int w = 0; w < launch.writeCount; ++w) {
      add(scope, launch.writes[w],
          "result " + std::to_string(w) + " of " + name);
      mine.push_back(launch.writes[w]);
    }
    for (int d = 0; d < launch.deathCount; ++d) {
      add(scope, launch.deaths[d], "scratch of " + name);
      mine.push_back(launch.deaths[d]);
    }
  }
  for (const auto &[at, buffer] : buffers) {
    const bool writable =
        std::any_of(mine.begin(), mine.end(),
                    [&, at = at, end = buffer.end](const Region &region) {
                      const uintptr_t from = arena + uintptr_t(region.offset);
                      return onDevice(region.space) && from < end &&
                             from + uintptr_t(region.bytes) > at;
                    });
    scope.extents.push_back({at, buffer.end, buffer.name, writable});
  }
}

void begin(Scope &scope) {
  if (std::exchange(scope.begun, steps) == steps)
    return;
  for (const auto &[at, bytes] : scope.fresh)
    setWritten(at, bytes, false);
}

/// Work runs after all that was queued before it on its stream.
std::function<void()> wrapWork(std::function<void()> run) {
  if (!open)
    return run;
  return [scope = open, run = std::move(run)] {
    if (scope->launch < 0) // the host waited in the middle of a launch
      return run();
    begin(*scope);
    restrictTo(&scope->extents, scope->arena,
               size_t(original->arenaBytes.device()));
    run();
    restrictTo(nullptr, 0, 0);
  };
}

/// Closes the scope of each entry when it was queued.
class Observer final : public LaunchObserver {
public:
  explicit Observer(LaunchObserver *outer) : outer_(outer) { start(); }
  ~Observer() override { finish(); }

  void launched(Queues &queues, int64_t launch) override {
    const std::shared_ptr<Scope> scope = open;
    name(*scope, launch);
    removeDeaths(original->launches[launch]);
    queueWork(static_cast<cudaStream_t>(queues.compute().native()),
              "the end of a launch", {}, [scope] {
                begin(*scope); // if it queued nothing
                const LaunchInfo &launch = original->launches[scope->launch];
                for (int i = 0; i < launch.deathCount; ++i)
                  setWritten(scope->arena + uintptr_t(launch.deaths[i].offset),
                             size_t(launch.deaths[i].bytes), false);
              });
    finish();
    if (outer_)
      outer_->launched(queues, launch);
    start();
  }
  /// A copy or a call of the network has queued its work; that of a thread
  /// touches no device memory.
  void started(Queues &queues, int64_t launch) override {
    name(*open, launch);
    finish();
    if (outer_)
      outer_->started(queues, launch);
    start();
  }
  /// What other engines may write next counts as unwritten when they do.
  void done(Queues &queues, int64_t launch) override {
    removeDeaths(original->launches[launch]);
    if (outer_)
      outer_->done(queues, launch);
  }
  void recorded(EngineKind engine, int32_t event) override {
    if (outer_)
      outer_->recorded(engine, event);
  }
  void waiting(EngineKind engine, int32_t event) override {
    if (outer_)
      outer_->waiting(engine, event);
  }

private:
  void start() {
    open = std::make_shared<Scope>();
    open->arena = arena;
    setWrap(wrapWork);
    holdWork(true);
  }
  void finish() {
    setWrap(nullptr);
    open = nullptr;
    holdWork(false);
  }
  LaunchObserver *outer_;
};

/// At the start of a step only what outlives one exists. Returns what says so
/// on the device.
std::function<void()> startStep(char *at) {
  arena = reinterpret_cast<uintptr_t>(at);
  buffers.clear();
  std::vector<std::pair<uintptr_t, size_t>> gaps;
  auto keep = [&](int64_t offset, int64_t bytes, const std::string &name) {
    const uintptr_t from = arena + uintptr_t(offset);
    if (bytes > 0)
      buffers[from] = {from + uintptr_t(bytes), name};
  };
  for (int64_t i = 0; i < original->tensorCount; ++i) {
    const TensorInfo &tensor = original->tensors[i];
    if (tensor.role == Role::Output || !onDevice(tensor.space))
      continue;
    int64_t bytes =
        tensor.shard ? tensor.shard * sizeOf(tensor.type) : tensor.bytes();
    for (; i + 1 < original->tensorCount && original->tensors[i + 1].continues;
         ++i)
      if (!tensor.shard) // It is of all of them.
        bytes += original->tensors[i + 1].bytes();
    keep(tensor.offset, bytes, tensor.name);
  }
  for (int64_t i = 0; i < original->constantCount; ++i)
    keep(original->constants[i].offset, original->constants[i].bytes,
         "constant " + std::to_string(i));
  uintptr_t free = arena;
  for (const auto &[from, buffer] : buffers) {
    if (from > free)
      gaps.push_back({free, from - free});
    free = std::max(free, buffer.end);
  }
  const uintptr_t last = arena + uintptr_t(original->arenaBytes.device());
  if (free < last)
    gaps.push_back({free, last - free});
  return [gaps] {
    ++steps;
    for (const auto &[at, bytes] : gaps)
      setWritten(at, bytes, false);
  };
}

void runWatched(Queues &queues, void *kernels) {
  const auto compute = static_cast<cudaStream_t>(queues.compute().native());
  const std::function<void()> start =
      startStep(queues.arena(SpaceKind::Device));
  if (isCapturing(compute)) {
    setAgain([&queues, kernels] { original->run(queues, kernels); }, start);
  } else {
    // No engine may be at work for the step before when its memory is
    // forgotten.
    queues.drain();
    start();
  }
  LaunchObserver *outer = queues.observer();
  Observer observer(outer);
  queues.setObserver(&observer);
  original->run(queues, kernels);
  queues.setObserver(outer);
}

} // namespace

const StepProgram *watch(const StepProgram *program) {
  static StepProgram watched;
  original = program;
  watched = *program;
  watched.run = runWatched;
  return &watched;
}

} // namespace tmc::emulator
