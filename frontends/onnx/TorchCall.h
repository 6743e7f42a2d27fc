// TorchCall.h - which call of PyTorch a node came from.
//
// torch.onnx.export (dynamo) notes with each node the line of the exported
// program that it is part of:
//
//     %embedding : [num_users=1] = call_function[
//         target=torch.ops.aten.embedding.default](
//         args = (%p_e_weight, %ids, 2), kwargs = {})
//
// Some arguments change how the model trains and have no counterpart in ONNX:
// they are read here. A file without notes says nothing about them.

#ifndef TMC_FRONTENDS_ONNX_TORCHCALL_H
#define TMC_FRONTENDS_ONNX_TORCHCALL_H

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace onnx {
class NodeProto;
} // namespace onnx

namespace tmc::onnx_import {

struct TorchCall {
  std::string target; ///< "aten.embedding.default"
  std::vector<std::string> arguments;
  std::map<std::string, std::string> keywords;

  /// True for any overload of "aten.embedding".
  bool calls(const std::string &op) const;
  /// Argument `index`, which may be given by `keyword`; "" where it has its
  /// default.
  std::string argument(size_t index, const std::string &keyword) const;
  /// The same as a number.
  std::optional<double> number(size_t index, const std::string &keyword) const;
  /// The names of the values that it reads, without "%".
  std::vector<std::string> operands() const;
};

/// An argument of the call that the exporter leaves out of the file, though it
/// changes what is computed: "divisor_override=3". Nothing if there is none.
std::optional<std::string> lostArgument(const TorchCall &call);

/// The call that `node` is noted with; nothing where there is none.
std::optional<TorchCall> torchCallOf(const onnx::NodeProto &node);

} // namespace tmc::onnx_import

#endif // TMC_FRONTENDS_ONNX_TORCHCALL_H
