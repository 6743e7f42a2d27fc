#include "driver/verify/StepLibrary.h"

#include <dlfcn.h>

using namespace tmc;

struct StepLibrary::Functions {
  decltype(&tmc_options_init) optionsInit;
  decltype(&tmc_step_create) create;
  decltype(&tmc_step_destroy) destroy;
  decltype(&tmc_last_error) lastError;
  decltype(&tmc_step_tensor_count) tensorCount;
  decltype(&tmc_step_tensor) tensor;
  decltype(&tmc_step_write) write;
  decltype(&tmc_step_read) read;
  decltype(&tmc_step_load) load;
  decltype(&tmc_step_set_learning_rate) setLearningRate;
  decltype(&tmc_step_run) run;
  decltype(&tmc_step_identity) identity;

  /// Looks up all functions, whose names begin with `prefix`. Returns the name
  /// of the first missing one, or "".
  std::string find(void *handle, const std::string &prefix) {
    std::string missing;
    auto get = [&](auto &function, const char *name) {
      const std::string full = prefix + name;
      function = reinterpret_cast<std::decay_t<decltype(function)>>(
          dlsym(handle, full.c_str()));
      if (!function && missing.empty())
        missing = full;
    };
    get(optionsInit, "options_init");
    get(identity, "step_identity");
    get(create, "step_create");
    get(destroy, "step_destroy");
    get(lastError, "last_error");
    get(tensorCount, "step_tensor_count");
    get(tensor, "step_tensor");
    get(write, "step_write");
    get(read, "step_read");
    get(load, "step_load");
    get(setLearningRate, "step_set_learning_rate");
    get(run, "step_run");
    return missing;
  }
};

StepLibrary::StepLibrary() : f(std::make_unique<Functions>()) {}

StepLibrary::~StepLibrary() {
  if (step)
    f->destroy(step);
  if (handle)
    dlclose(handle);
}

std::string StepLibrary::lastError() const { return f->lastError(); }

Expected<std::unique_ptr<StepLibrary>>
StepLibrary::open(const std::string &path, const std::string &name, int threads,
                  uint64_t seed, const tmc_peers *peers) {
  std::unique_ptr<StepLibrary> made(new StepLibrary);
  // The loader searches the system's directories for a name without a slash.
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  made->handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!made->handle)
    return Failure::input("can't load '" + path + "': " + dlerror());
  if (std::string missing =
          made->f->find(made->handle, (name.empty() ? "tmc" : name) + "_");
      !missing.empty())
    return Failure::input("'" + path + "' is no compiled step: it has no " +
                          missing);
  tmc_options options;
  made->f->optionsInit(&options, sizeof options);
  options.threads = threads;
  options.seed = seed;
  options.peers = peers;
  if (int code = made->f->create(&options, &made->step))
    return Failure{static_cast<FailureKind>(code),
                   "the step can't be created: " + made->lastError(),
                   {}};
  int64_t count = made->f->tensorCount(made->step);
  for (int64_t i = 0; i < count; ++i) {
    tmc_tensor tensor;
    tensor.size = sizeof tensor;
    if (made->f->tensor(made->step, i, &tensor))
      return Failure::defect(made->lastError());
    made->list.push_back(tensor);
  }
  return made;
}

const tmc_tensor *StepLibrary::find(const std::string &name) const {
  for (const tmc_tensor &tensor : list)
    if (name == tensor.name)
      return &tensor;
  return nullptr;
}

Expected<void> StepLibrary::write(const std::string &name, const void *data,
                                  int64_t bytes) {
  if (f->write(step, name.c_str(), data, bytes))
    return Failure::input("'" + name + "' can't be written: " + lastError());
  return {};
}

Expected<void> StepLibrary::read(const std::string &name, void *data,
                                 int64_t bytes) {
  if (f->read(step, name.c_str(), data, bytes))
    return Failure::input("'" + name + "' can't be read: " + lastError());
  return {};
}

Expected<void> StepLibrary::load(const std::string &safetensors) {
  if (int code = f->load(step, safetensors.c_str()))
    return Failure{static_cast<FailureKind>(code), lastError(), {}};
  return {};
}

std::string StepLibrary::identity() const { return f->identity(); }

void StepLibrary::setLearningRate(double rate) {
  f->setLearningRate(step, rate);
}

Expected<double> StepLibrary::run() {
  double loss = 0;
  if (int code = f->run(step, &loss))
    return Failure{static_cast<FailureKind>(code),
                   "the compiled step fails: " + lastError(),
                   {}};
  return loss;
}
