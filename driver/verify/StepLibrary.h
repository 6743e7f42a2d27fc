// StepLibrary.h - a compiled step behind its C interface (runtime/tmc.h).
//
// Opens a libstep.so and creates one step from it. No part of the runtime is
// linked here: the verified library is the one that a user would load.

#ifndef TMC_DRIVER_VERIFY_STEPLIBRARY_H
#define TMC_DRIVER_VERIFY_STEPLIBRARY_H

#include "compiler/support/Failure.h"
#include "runtime/tmc.h"

#include <memory>
#include <string>
#include <vector>

namespace tmc {

class StepLibrary {
public:
  /// Loads the library at `path`, of a step with this name ("": none), and
  /// creates its step on `threads` threads (0: one per core), which draws its
  /// random numbers from `seed`. `peers`: of a step for several devices, else
  /// null.
  static Expected<std::unique_ptr<StepLibrary>> open(const std::string &path,
                                                     const std::string &name,
                                                     int threads, uint64_t seed,
                                                     const tmc_peers *peers);
  ~StepLibrary();
  StepLibrary(const StepLibrary &) = delete;
  StepLibrary &operator=(const StepLibrary &) = delete;

  /// All named tensors, in the step's order.
  const std::vector<tmc_tensor> &tensors() const { return list; }
  /// Null if no tensor has that name.
  const tmc_tensor *find(const std::string &name) const;

  /// Transfers a whole tensor; `bytes` is the tensor's size.
  Expected<void> write(const std::string &name, const void *data,
                       int64_t bytes);
  Expected<void> read(const std::string &name, void *data, int64_t bytes);
  Expected<void> load(const std::string &safetensors);
  void setLearningRate(double rate);
  std::string identity() const;
  /// Runs one step; returns its loss.
  Expected<double> run();

private:
  struct Functions;
  StepLibrary();
  std::string lastError() const;

  void *handle = nullptr;
  std::unique_ptr<Functions> f;
  tmc_step *step = nullptr;
  std::vector<tmc_tensor> list;
};

} // namespace tmc

#endif // TMC_DRIVER_VERIFY_STEPLIBRARY_H
