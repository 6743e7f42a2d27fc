//===- Steps.cpp - what a launch of an emitted step may touch -------------===//

#include "test/cuda/emulator/Steps.h"

#include "test/cuda/emulator/Shadow.h"
#include "test/cuda/emulator/Streams.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tmc::emulator {

namespace {

const StepProgram *original = nullptr;

/// The work that one launch of the program queues.
struct Scope {
  int64_t launch = -1; // not said yet
  bool begun = false, ended = false;
};
std::shared_ptr<Scope> open, running;

struct Buffer {
  uintptr_t end;
  std::string name;
};
/// What exists at the moment that work has reached, by its first byte.
std::map<uintptr_t, Buffer> buffers;
std::vector<Extent> extents;
uintptr_t arena = 0;

bool isWithin(uintptr_t begin, uintptr_t end) {
  const auto after = buffers.upper_bound(begin);
  return after != buffers.begin() && std::prev(after)->second.end >= end;
}

/// A buffer begins to exist, in place of what overlaps it.
void add(uintptr_t begin, uintptr_t end, const std::string &name) {
  if (begin == end || isWithin(begin, end))
    return;
  for (auto at = buffers.begin(); at != buffers.end();)
    at = at->first < end && at->second.end > begin ? buffers.erase(at)
                                                   : std::next(at);
  buffers[begin] = {end, name};
  setWritten(begin, end - begin, false);
}

void removeRegion(const Region &region) {
  const uintptr_t begin = arena + uintptr_t(region.offset);
  const auto found = buffers.find(begin);
  if (found != buffers.end() &&
      found->second.end == begin + uintptr_t(region.bytes))
    buffers.erase(found);
  setWritten(begin, size_t(region.bytes), false);
}

void begin(Scope &scope) {
  scope.begun = true;
  const LaunchInfo &launch = original->launches[scope.launch];
  const std::string name = launch.name;
  for (int i = 0; i < launch.writeCount; ++i) {
    const uintptr_t at = arena + uintptr_t(launch.writes[i].offset);
    add(at, at + uintptr_t(launch.writes[i].bytes),
        "result " + std::to_string(i) + " of " + name);
  }
  for (int i = 0; i < launch.deathCount; ++i) {
    const uintptr_t at = arena + uintptr_t(launch.deaths[i].offset);
    add(at, at + uintptr_t(launch.deaths[i].bytes), "scratch of " + name);
  }
}

void end(Scope &scope) {
  scope.ended = true;
  const LaunchInfo &launch = original->launches[scope.launch];
  for (int i = 0; i < launch.deathCount; ++i)
    removeRegion(launch.deaths[i]);
}

void restrict(const Scope &scope) {
  const LaunchInfo &launch = original->launches[scope.launch];
  extents.clear();
  for (const auto &[at, buffer] : buffers) {
    bool writable = false;
    auto overlaps = [&](const Region &region) {
      const uintptr_t from = arena + uintptr_t(region.offset);
      return from < buffer.end && from + uintptr_t(region.bytes) > at;
    };
    for (int i = 0; i < launch.writeCount; ++i)
      writable = writable || overlaps(launch.writes[i]);
    for (int i = 0; i < launch.deathCount; ++i)
      writable = writable || overlaps(launch.deaths[i]);
    extents.push_back({at, buffer.end, buffer.name, writable});
  }
  restrictTo(&extents, arena, size_t(original->arenaBytes));
}

/// Work runs after all that was queued before it on its stream: the launch
/// before is over when work of another one comes.
std::function<void()> wrapWork(std::function<void()> run) {
  if (!open)
    return run;
  return [scope = open, run = std::move(run)] {
    if (scope->launch < 0) // the host waited in the middle of a launch
      return run();
    if (!scope->begun)
      begin(*scope);
    restrict(*scope);
    run();
    restrictTo(nullptr, 0, 0);
  };
}

/// Closes the scope of each launch when it was queued.
class Observer final : public LaunchObserver {
public:
  explicit Observer(LaunchObserver *outer) : outer_(outer) { start(); }
  ~Observer() override { finish(); }

  void launched(Queues &queues, int64_t launch) override {
    open->launch = launch;
    const std::shared_ptr<Scope> scope = open;
    queueWork(static_cast<cudaStream_t>(queues.compute().native()),
              "the end of a launch", [scope] {
                if (!scope->begun)
                  begin(*scope); // it queued nothing
                end(*scope);
              });
    finish();
    if (outer_)
      outer_->launched(queues, launch);
    start();
  }

private:
  void start() {
    open = std::make_shared<Scope>();
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

/// At the start of a step only what outlives one exists.
void startStep(char *at) {
  arena = reinterpret_cast<uintptr_t>(at);
  buffers.clear();
  std::vector<std::pair<uintptr_t, uintptr_t>> fixed;
  auto keep = [&](int64_t offset, int64_t bytes, const std::string &name) {
    const uintptr_t from = arena + uintptr_t(offset);
    if (bytes > 0)
      buffers[from] = {from + uintptr_t(bytes), name};
  };
  for (int64_t i = 0; i < original->tensorCount; ++i)
    if (original->tensors[i].role != Role::Output)
      keep(original->tensors[i].offset, original->tensors[i].bytes(),
           original->tensors[i].name);
  for (int64_t i = 0; i < original->constantCount; ++i)
    keep(original->constants[i].offset, original->constants[i].bytes,
         "constant " + std::to_string(i));
  uintptr_t free = arena;
  for (const auto &[from, buffer] : buffers) {
    if (from > free)
      setWritten(free, from - free, false);
    free = std::max(free, buffer.end);
  }
  const uintptr_t last = arena + uintptr_t(original->arenaBytes);
  if (free < last)
    setWritten(free, last - free, false);
}

void runWatched(Queues &queues, void *kernels) {
  queueWork(static_cast<cudaStream_t>(queues.compute().native()),
            "the start of a step", [at = queues.device()] { startStep(at); });
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
