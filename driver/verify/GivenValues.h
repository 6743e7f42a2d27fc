// GivenValues.h - the values of a compared step that aren't drawn.
//
// Weights come from a file, and inputs from data files, if there are some. All
// ranks have the same weights, and each its own samples of a batch.

#ifndef TMC_DRIVER_VERIFY_GIVENVALUES_H
#define TMC_DRIVER_VERIFY_GIVENVALUES_H

#include "driver/verify/CompiledStep.h"
#include "driver/verify/Verify.h"
#include "runtime/step/Data.h"

#include <map>
#include <string>
#include <vector>

namespace tmc {

class GivenValues {
public:
  /// Opens the files of `options`, and those that `tmc compile` left.
  Expected<void> open(const VerifyOptions &options, train::StepOp step,
                      CompiledStep &compiled);
  /// Reads the next samples, for inputs that have data. `number` counts from 1.
  Expected<void> readBatch(int64_t number);

  /// The values of a rank, by name.
  const std::map<std::string, TensorBytes> &of(int rank) const {
    return given[rank];
  }
  bool hasData() const { return !readers.empty(); }
  /// The file of the weights, for the report; "": they are drawn.
  const std::string &weights() const { return weightsFile; }

private:
  Expected<void> openData(const std::vector<std::string> &data,
                          train::StepOp step, CompiledStep &compiled);
  Expected<void> readOwn(const std::string &path, train::StepOp step,
                         CompiledStep &compiled);
  Expected<void> readWeights(train::StepOp step, CompiledStep &compiled);
  void give(const std::string &name, const TensorBytes &bytes);

  std::vector<std::map<std::string, TensorBytes>> given; ///< By rank.
  std::vector<TensorInfo> inputs;  ///< That data files can supply.
  std::vector<DataReader> readers; ///< By rank; empty: there is no data.
  std::string weightsFile;
};

} // namespace tmc

#endif // TMC_DRIVER_VERIFY_GIVENVALUES_H
