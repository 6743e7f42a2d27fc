//===- Api.cpp - the C interface over Step --------------------------------===//

#include "runtime/kernels/Names.h"
#include "runtime/step/AdapterFile.h"
#include "runtime/step/CallerPeers.h"
#include "runtime/step/DLPack.h"
#include "runtime/step/Identity.h"
#include "runtime/step/Processor.h"
#include "runtime/step/Sized.h"
#include "runtime/step/Step.h"
#include "runtime/step/Values.h"
#include "runtime/step/View.h"
#include "runtime/step/WeightsRecord.h"
#include "runtime/tmc.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <optional>
#include <string>
#include <unistd.h>

struct tmc_step {
  std::shared_ptr<tmc::Step> step; // DLPack's tensors share it.
};

namespace {
/// A step and the ranks that it calls until its end.
struct StepOfRank {
  std::unique_ptr<tmc::CallerPeers> peers;
  std::unique_ptr<tmc::Step> step;
};

thread_local std::string lastError;
/// Why the processor can't run the step, or nullptr. Kept apart from the other
/// errors: reading it runs no code compiled for the step's target.
thread_local const char *lastFault = nullptr;

/// The sizes of version 1's structs; no program has smaller ones.
constexpr uint32_t kLeastOptions = 56, kLeastPeers = 64, kLeastTensor = 104,
                   kLeastView = 160, kLeastStatistics = 88, kLeastSpace = 32;
static_assert(TMC_ABI_VERSION == 1 && sizeof(tmc_options) >= kLeastOptions &&
              sizeof(tmc_tensor) >= kLeastTensor &&
              sizeof(tmc_view) >= kLeastView &&
              sizeof(tmc_statistics) >= kLeastStatistics &&
              sizeof(tmc_space) >= kLeastSpace);

int give(const tmc::Status &status) {
  lastFault = nullptr;
  lastError = tmc::visible(status.message());
  return static_cast<int>(status.code());
}

/// Runs `body` and turns each C++ exception into an error code.
template <typename F> int guarded(F &&body) {
  try {
    return give(body());
  } catch (const std::bad_alloc &) {
    return give({tmc::Code::World, "out of host memory"});
  } catch (...) {
    return give({tmc::Code::Defect, "an unexpected exception"});
  }
}

const tmc::TensorInfo *findTensor(tmc_step *step, const char *name,
                                  tmc::Status &status) {
  const tmc::TensorInfo *tensor = step->step->find(name);
  if (!tensor)
    status = {tmc::Code::Usage,
              std::string("no tensor has the name '") + name + "'"};
  return tensor;
}

tmc::Status findView(tmc_step *step, const char *name, tmc::TensorView &view) {
  tmc::Status status;
  if (const tmc::TensorInfo *tensor = findTensor(step, name, status))
    status = tmc::viewOf(*step->step, *tensor, view);
  return status;
}

/// The folder of this library. If the library's path has none, it belongs to a
/// program found through the search path: the result is "".
std::string ownFolder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&tmc_step_create), &info) ||
      !info.dli_fname)
    return "";
  const std::string self = info.dli_fname;
  const size_t slash = self.rfind('/');
  return slash == std::string::npos ? "" : self.substr(0, slash);
}

/// The values that the compilation left beside this library, if it left any.
std::string shippedWeights() {
  const std::string folder = ownFolder();
  return folder.empty() ? "" : tmc::shippedIn(folder);
}

/// Loads them, if all that the step needs are there.
tmc::Status loadShipped(tmc::Step &step) {
  const std::string path = shippedWeights();
  if (path.empty())
    return {tmc::Code::Usage, "the compilation left no values beside the step"};
  if (tmc::Status s = tmc::checkShipped(path, tmc::stepIdentity()); !s)
    return s;
  std::vector<std::string> missing;
  if (tmc::Status s = tmc::values::findLacking(step.program(), path, missing);
      !s)
    return s;
  if (!missing.empty())
    return {tmc::Code::Usage, "the compilation left no " +
                                  tmc::values::listNames(missing) +
                                  " beside the step"};
  return step.load(path);
}

tmc::Status checkAdapters(const tmc::Step &step) {
  return step.program().adapterConfig[0]
             ? tmc::Status::ok()
             : tmc::Status(tmc::Code::Usage,
                           "the step has no adapters: tmc compile --lora gives "
                           "it some");
}
} // namespace

extern "C" {

int32_t tmc_abi_version(void) { return TMC_ABI_VERSION; }

void tmc_options_init(tmc_options *options, uint32_t size) {
  tmc_options defaults = {};
  defaults.guard_pages = 1;
  // A wrong size stays, for tmc_step_create to refuse.
  options->size = size;
  (void)tmc::giveSized("tmc_options", defaults, kLeastOptions, options);
}

int tmc_step_create(const tmc_options *options, tmc_step **out) {
  lastFault = tmc::startFault();
  if (lastFault)
    return static_cast<int>(tmc::Code::World);
  return guarded([&]() -> tmc::Status {
    if (!out)
      return {tmc::Code::Usage,
              "tmc_step_create needs a place for the step, and got none"};
    tmc_options given;
    tmc_options_init(&given, sizeof given);
    if (options)
      if (tmc::Status s =
              tmc::takeSized("tmc_options", options, kLeastOptions, given);
          !s)
        return s;
    tmc::StepOptions o;
    o.device.threads = given.threads;
    o.device.guardPages = given.guard_pages != 0;
    o.poison = given.poison != 0;
    o.checkFinite = given.check_finite != 0;
    o.seed = given.seed;
    if (given.nvme_directory)
      o.nvmeDirectory = given.nvme_directory;
    o.device.hostThreads = given.host_threads;
    o.device.linkBytesPerSecond = given.link_bytes_per_second;
    o.graph = given.no_graph == 0;
    auto made = std::make_shared<StepOfRank>();
    if (given.peers) {
      tmc_peers peers;
      if (tmc::Status s =
              tmc::takeSized("tmc_peers", given.peers, kLeastPeers, peers);
          !s)
        return s;
      if (tmc::Status s =
              tmc::CallerPeers::check(peers, tmc_step_program()->mesh);
          !s)
        return s;
      made->peers = std::make_unique<tmc::CallerPeers>(peers);
      o.device.peers = made->peers.get();
    }
    if (tmc::Status s = tmc::Step::create(*tmc_step_program(), o, made->step);
        !s)
      return s;
    *out = new tmc_step{{made, made->step.get()}};
    return tmc::Status::ok();
  });
}

int tmc_step_create_of(const char *identity, const tmc_options *options,
                       tmc_step **out) {
  // Plain comparisons: no code compiled for the step's target may run yet.
  if (!identity || std::strcmp(identity, tmc::stepIdentity()) != 0) {
    lastFault = "the program was compiled with the step.h of another "
                "compilation than this library: compile both again";
    return static_cast<int>(tmc::Code::Usage);
  }
  return tmc_step_create(options, out);
}

const char *tmc_step_identity(void) { return tmc::stepIdentity(); }

void tmc_step_destroy(tmc_step *step) { delete step; }

const char *tmc_last_error(void) {
  return lastFault ? lastFault : lastError.c_str();
}

int tmc_step_load(tmc_step *step, const char *path) {
  return guarded(
      [&] { return path ? step->step->load(path) : loadShipped(*step->step); });
}
int tmc_step_init_random(tmc_step *step, uint64_t seed) {
  return guarded(
      [&] { return step->step->initRandom(seed, shippedWeights()); });
}

int64_t tmc_step_tensor_count(const tmc_step *step) {
  return step->step->program().tensorCount;
}
int tmc_step_tensor(const tmc_step *step, int64_t index, tmc_tensor *out) {
  return guarded([&]() -> tmc::Status {
    const tmc::StepProgram &program = step->step->program();
    if (index < 0 || index >= program.tensorCount)
      return {tmc::Code::Usage, "tensor " + std::to_string(index) + " of " +
                                    std::to_string(program.tensorCount) +
                                    " doesn't exist"};
    const tmc::TensorInfo &info = program.tensors[index];
    tmc_tensor full = {};
    full.name = info.name;
    full.dtype = static_cast<tmc_dtype>(info.type);
    full.role = static_cast<tmc_role>(info.role);
    full.rank = info.rank;
    for (int i = 0; i < info.rank; ++i)
      full.dims[i] = info.dims[i];
    full.bytes = info.bytes();
    full.trainable = info.trainable;
    full.fed = info.feed != tmc::Feed::None && info.feed != tmc::Feed::Data;
    return tmc::giveSized("tmc_tensor", full, kLeastTensor, out);
  });
}

int tmc_step_write(tmc_step *step, const char *name, const void *data,
                   int64_t bytes) {
  return guarded([&] {
    tmc::Status status;
    if (const tmc::TensorInfo *tensor = findTensor(step, name, status))
      status = step->step->write(*tensor, data, bytes);
    return status;
  });
}
int tmc_step_read(tmc_step *step, const char *name, void *data, int64_t bytes) {
  return guarded([&] {
    tmc::Status status;
    if (const tmc::TensorInfo *tensor = findTensor(step, name, status))
      status = step->step->read(*tensor, data, bytes);
    return status;
  });
}

int tmc_step_view(tmc_step *step, const char *name, tmc_view *out) {
  return guarded([&]() -> tmc::Status {
    tmc::TensorView view;
    if (tmc::Status s = findView(step, name, view); !s)
      return s;
    const tmc::TensorInfo &info = *view.tensor;
    tmc_view full = {};
    full.dtype = static_cast<tmc_dtype>(info.type);
    full.data = view.data;
    full.device =
        view.backend == tmc::Backend::Cuda ? TMC_DEVICE_CUDA : TMC_DEVICE_CPU;
    full.device_number = view.deviceNumber;
    full.rank = info.rank;
    full.read_only = view.readOnly;
    for (int i = 0; i < info.rank; ++i)
      full.dims[i] = info.dims[i];
    tmc::stridesOf(info, full.strides);
    full.bytes = info.bytes();
    return tmc::giveSized("tmc_view", full, kLeastView, out);
  });
}
int tmc_step_dlpack(tmc_step *step, const char *name,
                    struct DLManagedTensorVersioned **out) {
  return guarded([&]() -> tmc::Status {
    tmc::TensorView view;
    if (tmc::Status s = findView(step, name, view); !s)
      return s;
    *out = tmc::makeDLPack(step->step, view);
    return tmc::Status::ok();
  });
}
int tmc_step_dlpack_unversioned(tmc_step *step, const char *name,
                                struct DLManagedTensor **out) {
  return guarded([&]() -> tmc::Status {
    tmc::TensorView view;
    if (tmc::Status s = findView(step, name, view); !s)
      return s;
    if (view.readOnly)
      return {tmc::Code::Unsupported,
              std::string("'") + name +
                  "' is read-only, which DLPack says from version 1 on"};
    *out = tmc::makeUnversionedDLPack(step->step, view);
    return tmc::Status::ok();
  });
}

void tmc_step_set_learning_rate(tmc_step *step, double rate) {
  step->step->setLearningRate(rate);
}

int tmc_step_run(tmc_step *step, double *loss) {
  return guarded([&] {
    double value = 0;
    tmc::Status status = step->step->run(value);
    if (status && loss)
      *loss = value;
    return status;
  });
}

int tmc_step_evaluate(tmc_step *step, double *loss) {
  return guarded([&] {
    double value = 0;
    tmc::Status status = tmc::evaluate(*step->step, value);
    if (status && loss)
      *loss = value;
    return status;
  });
}

int tmc_step_save(tmc_step *step, const char *directory) {
  return guarded([&] { return step->step->save(directory); });
}
int tmc_step_save_weights(tmc_step *step, const char *directory,
                          const char *type) {
  return guarded([&]() -> tmc::Status {
    std::optional<tmc::DType> stored;
    if (type)
      for (tmc::DType known :
           {tmc::DType::F32, tmc::DType::BF16, tmc::DType::F16})
        if (!std::strcmp(type, tmc::nameOf(known)))
          stored = known;
    if (type && !stored)
      return {tmc::Code::Usage, std::string("weights are saved in f32, bf16 or "
                                            "f16, not '") +
                                    type + "'"};
    return step->step->saveWeights(directory,
                                   {stored, tmc::unusedIn(ownFolder())});
  });
}
int tmc_step_save_adapter(tmc_step *step, const char *directory) {
  return guarded([&]() -> tmc::Status {
    if (tmc::Status s = checkAdapters(*step->step); !s)
      return s;
    return tmc::saveAdapter(*step->step, directory);
  });
}
int tmc_step_load_adapter(tmc_step *step, const char *directory) {
  return guarded([&]() -> tmc::Status {
    if (tmc::Status s = checkAdapters(*step->step); !s)
      return s;
    return tmc::loadAdapter(*step->step, directory);
  });
}
int tmc_step_resume(tmc_step *step, const char *directory) {
  return guarded(
      [&] { return step->step->resume(directory, shippedWeights()); });
}

int tmc_step_get_statistics(const tmc_step *step, tmc_statistics *out) {
  return guarded([&] {
    const tmc::StepStatistics s = step->step->statistics();
    tmc_statistics full = {};
    full.arena_bytes = s.arenaBytes.device();
    full.high_water_bytes = s.highWaterBytes.device();
    full.allocations = s.allocations;
    full.largest_allocation_bytes = s.largestAllocationBytes;
    full.steps = s.steps;
    full.last_step_seconds = s.lastStepSeconds;
    full.grad_norm = s.gradNorm;
    full.loss_scale = s.lossScale;
    full.skipped_steps = s.skippedSteps;
    full.saturations = s.saturations;
    return tmc::giveSized("tmc_statistics", full, kLeastStatistics, out);
  });
}

int64_t tmc_step_space_count(const tmc_step *) { return tmc::kSpaceCount; }
int tmc_step_space(const tmc_step *step, int64_t index, tmc_space *out) {
  return guarded([&]() -> tmc::Status {
    if (index < 0 || index >= int64_t(tmc::kSpaceCount))
      return {tmc::Code::Usage, "space " + std::to_string(index) + " of " +
                                    std::to_string(tmc::kSpaceCount) +
                                    " doesn't exist"};
    const tmc::StepStatistics s = step->step->statistics();
    const tmc::SpaceInfo &space = tmc::kSpaces[index];
    tmc_space full = {};
    full.name = space.name;
    full.arena_bytes = s.arenaBytes[space.kind];
    full.high_water_bytes = s.highWaterBytes[space.kind];
    return tmc::giveSized("tmc_space", full, kLeastSpace, out);
  });
}
}
