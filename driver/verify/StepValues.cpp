#include "driver/verify/StepValues.h"

#include "compiler/reference/Tensor.h"

using namespace mlir;
using namespace tmc;
using reference::Tensor;

namespace {

/// "4x8", or "scalar".
std::string sizesText(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

int64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() *
         reference::elementBytes(reference::elementOf(type.getElementType()));
}

/// Appends a tensor of a file to `value`, rounded if `type` has narrower
/// floats. False: it has another size.
bool append(RankedTensorType type, const SafeTensor &tensor, const char *data,
            TensorBytes &value) {
  const int64_t bytes = tensor.end - tensor.begin,
                count = type.getNumElements();
  const reference::Element element =
      reference::elementOf(type.getElementType());
  if (bytes == bytesOf(type)) {
    value.insert(value.end(), data, data + bytes);
    return true;
  }
  if (tensor.type != DType::F32 || bytes != 4 * count ||
      !reference::isNarrow(element))
    return false;
  Tensor rounded =
      Tensor::fromBytes(reference::Element::F32, type.getShape(), data);
  rounded.element = element;
  const size_t before = value.size();
  value.resize(before + bytesOf(type));
  rounded.toBytes(value.data() + before);
  return true;
}

} // namespace

Expected<void> StepValues::check() const {
  for (unsigned i = 0; i < step.getNumArguments(); ++i)
    for (const train::NamedTensor &tensor : tensorsOf(i))
      TMC_TRY(check(tensor));
  return {};
}

Expected<void> StepValues::check(const train::NamedTensor &wanted) const {
  const tmc_tensor *tensor = library->find(wanted.name);
  const std::string what = "'" + directory +
                           "/libstep.so' isn't of step.mlir: '" + wanted.name +
                           "' ";
  if (!tensor)
    return Failure::input(what + "is missing");
  ArrayRef<int64_t> dims(tensor->dims, tensor->rank);
  const int64_t bytes = bytesOf(wanted.type);
  if (dims != wanted.type.getShape() || tensor->bytes != bytes)
    return Failure::input(
        what + "is " + sizesText(dims) + ", " + std::to_string(tensor->bytes) +
        " bytes, instead of " + sizesText(wanted.type.getShape()) + ", " +
        std::to_string(bytes) + " bytes");
  return {};
}

SmallVector<train::NamedTensor> StepValues::tensorsOf(unsigned argument) const {
  return train::namedTensors(
      step.getArgAttrDict(argument),
      cast<ShapedType>(step.getArgumentTypes()[argument]));
}

std::vector<unsigned> StepValues::ofModel() const {
  std::vector<unsigned> values;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    auto role = train::roleOf(step, i);
    if ((role == train::Role::Param || role == train::Role::State) &&
        !step.getArgAttr(i, train::TrainDialect::kSlot) &&
        !train::copiedArg(step, i))
      values.push_back(i);
  }
  return values;
}

Expected<TensorBytes> StepValues::readArgument(unsigned argument) const {
  return read(tensorsOf(argument));
}

Expected<TensorBytes> StepValues::readResult(unsigned result) const {
  if (std::optional<unsigned> argument = train::updatedArg(step, result))
    return readArgument(*argument);
  return read(
      train::namedTensors(step.getResultAttrDict(result),
                          cast<ShapedType>(step.getResultTypes()[result])));
}

Expected<TensorBytes>
StepValues::read(ArrayRef<train::NamedTensor> tensors) const {
  TensorBytes bytes;
  for (const train::NamedTensor &tensor : tensors) {
    const tmc_tensor *its = library->find(tensor.name);
    if (!its)
      return Failure::input("'" + directory +
                            "/libstep.so' isn't of step.mlir: the result '" +
                            tensor.name + "' is missing");
    const size_t before = bytes.size();
    bytes.resize(before + its->bytes);
    TMC_TRY(library->read(tensor.name, bytes.data() + before, its->bytes));
  }
  return bytes;
}

Expected<void> StepValues::write(unsigned argument, const char *bytes) const {
  for (const train::NamedTensor &tensor : tensorsOf(argument)) {
    TMC_TRY(library->write(tensor.name, bytes, bytesOf(tensor.type)));
    bytes += bytesOf(tensor.type);
  }
  return {};
}

std::optional<TensorBytes> StepValues::from(const SafetensorsSet &file,
                                            unsigned argument) const {
  TensorBytes bytes;
  for (const train::NamedTensor &wanted : tensorsOf(argument)) {
    const SetTensor *tensor = file.find(wanted.name);
    if (!tensor || !append(wanted.type, *tensor, file.data(*tensor), bytes))
      return std::nullopt;
  }
  return bytes;
}
