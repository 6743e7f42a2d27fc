// Inputs.cpp - inputs and outputs as the graph declares them.

#include "frontends/onnx/Importer.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The name by which the user binds dimension `index` of an input: its symbol,
/// or "input.index" if the file gives none.
static std::string symbolOf(const onnx::ValueInfoProto &input, int index) {
  const auto &dim = input.type().tensor_type().shape().dim(index);
  if (dim.has_dim_value() && dim.dim_value() > 0)
    return {};
  if (dim.has_dim_param() && !dim.dim_param().empty())
    return dim.dim_param();
  return input.name() + "." + std::to_string(index);
}

/// The model's own sizes, for dimensions that the user leaves open: the
/// metadata entry `default_dims`, "batch=4 sequence=64".
std::map<std::string, int64_t>
tmc::onnx_import::proposedDims(const onnx::ModelProto &model) {
  std::map<std::string, int64_t> dims;
  for (const auto &entry : model.metadata_props()) {
    if (entry.key() != "default_dims")
      continue;
    SmallVector<StringRef> parts;
    StringRef(entry.value()).split(parts, ' ', -1, /*KeepEmpty=*/false);
    for (StringRef part : parts) {
      auto [name, size] = part.rsplit('=');
      int64_t number;
      if (!size.getAsInteger(10, number) && number > 0)
        dims[name.str()] = number;
    }
  }
  return dims;
}

FailureOr<std::vector<Declared>> OnnxImporter::inputs() {
  auto stop = [&](Failure f) { return fail(std::move(f)), mlir::failure(); };
  std::vector<Declared> declared;
  for (const auto &input : proto.graph().input()) {
    if (forward.tensorOf.contains(input.name()))
      continue;
    if (!input.type().has_tensor_type())
      return stop(
          Failure::unsupported("input '" + input.name() + "' is not a tensor"));
    const auto &tensor = input.type().tensor_type();
    if (!tensor.has_shape())
      return stop(Failure::input("input '" + input.name() + "' has no shape"));
    Declared entry;
    entry.name = input.name();
    entry.type = typeOfNumber(tensor.elem_type());
    entry.typeName = "number " + std::to_string(tensor.elem_type());
    for (int i = 0; i < tensor.shape().dim_size(); ++i)
      entry.dims.push_back(
          {tensor.shape().dim(i).dim_value(), symbolOf(input, i)});
    declared.push_back(std::move(entry));
  }
  return declared;
}

std::vector<Importer::Output> OnnxImporter::outputs() const {
  std::vector<Output> list;
  for (const auto &output : proto.graph().output()) {
    Output entry;
    entry.value = entry.declared.name = output.name();
    const auto &tensor = output.type().tensor_type();
    entry.declared.hasShape = tensor.has_shape();
    for (const auto &dim : tensor.shape().dim()) {
      bool isFixed = dim.has_dim_value() && dim.dim_value() > 0;
      entry.declared.dims.push_back({dim.dim_value(),
                                     isFixed ? "" : dim.dim_param(),
                                     isFixed || dim.has_dim_param()});
    }
    list.push_back(std::move(entry));
  }
  return list;
}
