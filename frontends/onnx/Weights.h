// Weights.h - where the values of a model's parameters are.
//
// Importing a model reads no parameter: a step is planned without a weight
// touched, and graph-only files, whose external data aren't shipped, import
// like any other. Whoever wants the values asks here, by name.

#ifndef TMC_FRONTENDS_ONNX_WEIGHTS_H
#define TMC_FRONTENDS_ONNX_WEIGHTS_H

#include "compiler/support/Failure.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tmc {

namespace onnx_import {
class ModelFiles;
struct TensorData;
} // namespace onnx_import

class Weights {
public:
  Weights(std::unique_ptr<onnx_import::ModelFiles> files,
          std::vector<onnx_import::TensorData> tensors);
  ~Weights();

  /// The name of each parameter and state, in the order of the arguments.
  std::vector<std::string> names() const;

  /// Where the values of `name` come from, for messages: "model.onnx.data".
  /// Empty if they are in the model's own file.
  std::string fileOf(const std::string &name) const;

  /// The bytes of `name`: row-major, little endian, of the argument's element
  /// type, not necessarily aligned; valid as long as this object. Fails with
  /// `World` if an external file is missing, with `Input` if it isn't what the
  /// model says.
  Expected<std::string_view> read(const std::string &name);

private:
  const onnx_import::TensorData *find(const std::string &name) const;

  std::unique_ptr<onnx_import::ModelFiles> files;
  std::vector<onnx_import::TensorData> tensors;
};

} // namespace tmc

#endif // TMC_FRONTENDS_ONNX_WEIGHTS_H
