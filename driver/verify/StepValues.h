// StepValues.h - a step's arguments and results as the tensors of its library.
//
// An argument or result is one tensor of the library, or several that lie one
// after another (`train.parts`). Bytes here are those of all of them.

#ifndef TMC_DRIVER_VERIFY_STEPVALUES_H
#define TMC_DRIVER_VERIFY_STEPVALUES_H

#include "dialects/train/Train.h"
#include "driver/verify/StepLibrary.h"
#include "runtime/step/SafetensorsSet.h"

namespace tmc {

using TensorBytes = std::vector<char>;

class StepValues {
public:
  StepValues() = default;
  /// `directory` names the step in messages.
  StepValues(train::StepOp step, StepLibrary &library, std::string directory)
      : step(step), library(&library), directory(std::move(directory)) {}

  /// Fails unless the library has each argument, of the type that the text
  /// states.
  Expected<void> check() const;

  llvm::SmallVector<train::NamedTensor> tensorsOf(unsigned argument) const;
  /// Arguments that have a value before the first step.
  std::vector<unsigned> ofModel() const;

  Expected<TensorBytes> readArgument(unsigned argument) const;
  Expected<TensorBytes> readResult(unsigned result) const;
  Expected<void> write(unsigned argument, const char *bytes) const;

  /// An argument's bytes from a file, rounded if the step has narrower floats.
  /// None if a tensor is missing or has another size.
  std::optional<TensorBytes> from(const SafetensorsSet &file,
                                  unsigned argument) const;

private:
  Expected<void> check(const train::NamedTensor &wanted) const;
  Expected<TensorBytes> read(llvm::ArrayRef<train::NamedTensor> tensors) const;

  mutable train::StepOp step; // Ops' accessors aren't const.
  StepLibrary *library = nullptr;
  std::string directory;
};

} // namespace tmc

#endif // TMC_DRIVER_VERIFY_STEPVALUES_H
