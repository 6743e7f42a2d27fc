//===- Figures.h - the numbers that a step reports --------------*- C++ -*-===//
//
// The loss, the norm of the gradients, the loss scale and two counts. Most of
// them are in the device's arena: Device::synchronize() reads these at the end
// of a step, on cuda by one copy.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_FIGURES_H
#define TMC_RUNTIME_STEP_FIGURES_H

#include "runtime/step/Device.h"
#include "runtime/step/Homes.h"
#include "runtime/step/Program.h"

namespace tmc {

class Figures {
public:
  enum Figure : size_t { Loss, GradNorm, LossScale, UpdateCount, Saturations };

  explicit Figures(const StepProgram &program) : program_(program) {}

  /// Called when the arenas exist.
  void place(const Device &device);
  /// For the end of a step; finish() reads the numbers of other arenas.
  StepNumbers &numbers() { return numbers_; }
  void finish(const Homes &homes);
  /// The values have changed without a step.
  void forget() { isCurrent_ = false; }

  bool has(Figure figure) const { return tensorOf(figure); }
  /// Reads the loss as it is now; the other numbers stay those of the last
  /// step.
  Status readLoss(const Homes &homes, double &loss) const;
  /// The last step's; NaN if the program has none.
  double number(Figure figure) const;
  /// The count in the values as they are now; the program must have it.
  int64_t count(Figure figure, const Homes &homes) const;

private:
  const TensorInfo *tensorOf(Figure figure) const;

  const StepProgram &program_;
  StepNumbers numbers_; // by Figure
  bool isCurrent_ = false;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_FIGURES_H
