// TorchCall.h - the PyTorch call that a node came from.
//
// With each node, torch.onnx.export (dynamo) notes the line of the exported
// program that the node belongs to:
//
//     %embedding : [num_users=1] = call_function[
//         target=torch.ops.aten.embedding.default](
//         args = (%p_e_weight, %ids, 2), kwargs = {})
//
// Some arguments change how the model trains and have no counterpart in ONNX:
// they are read here. A file without notes doesn't contain them.

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
  /// Argument `index`, which may be given by `keyword`; "" if it has its
  /// default.
  std::string argument(size_t index, const std::string &keyword) const;
  /// The same as a number.
  std::optional<double> number(size_t index, const std::string &keyword) const;
  /// The names of the values that the call reads, without "%".
  std::vector<std::string> operands() const;
};

/// An argument of the call that the exporter leaves out of the file, although
/// it changes the result: "divisor_override=3". Nothing if there is none.
std::optional<std::string> lostArgument(const TorchCall &call);

/// The call in the note of `node`; nothing if there is none.
std::optional<TorchCall> torchCallOf(const onnx::NodeProto &node);

} // namespace tmc::onnx_import

#endif // TMC_FRONTENDS_ONNX_TORCHCALL_H
