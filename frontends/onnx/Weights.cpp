#include "frontends/onnx/Weights.h"
#include "frontends/onnx/Model.h"

using namespace tmc;
using namespace tmc::onnx_import;

Weights::Weights(std::unique_ptr<ModelFiles> files,
                 std::vector<TensorData> tensors)
    : files(std::move(files)), tensors(std::move(tensors)) {}

Weights::~Weights() = default;

std::vector<std::string> Weights::names() const {
  std::vector<std::string> result;
  for (const TensorData &tensor : tensors)
    result.push_back(tensor.name);
  return result;
}

const TensorData *Weights::find(const std::string &name) const {
  for (const TensorData &tensor : tensors)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

std::string Weights::fileOf(const std::string &name) const {
  const TensorData *tensor = find(name);
  return tensor ? tensor->location : std::string();
}

Expected<std::string_view> Weights::read(const std::string &name) {
  const TensorData *tensor = find(name);
  if (!tensor)
    return Failure::input("the model has no parameter '" + name + "'");
  return files->read(*tensor);
}
