#include "frontends/onnx/TorchCall.h"

#include "frontends/onnx/Model.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace tmc::onnx_import;
using llvm::StringRef;

/// The text before the bracket that closes its first level, split at commas.
static std::vector<std::string> partsOf(StringRef text) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t begin = 0;
  auto take = [&](size_t end) {
    StringRef part = text.slice(begin, end).trim();
    if (!part.empty())
      parts.push_back(part.str());
    begin = end + 1;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth-- == 0) {
        take(i);
        break;
      }
    } else if (c == ',' && depth == 0) {
      take(i);
    }
  }
  return parts;
}

std::optional<TorchCall>
tmc::onnx_import::torchCallOf(const onnx::NodeProto &node) {
  std::string note = metadata(node, kNodeMetadata, "pkg.torch.onnx.fx_node");
  StringRef rest = StringRef(note).split("call_function[target=").second;
  if (rest.empty())
    return std::nullopt;
  TorchCall call;
  auto [target, after] = rest.split(']');
  target.consume_front("torch.ops.");
  call.target = target.str();
  call.arguments = partsOf(after.split("args = (").second);
  for (StringRef each : partsOf(after.split("kwargs = {").second)) {
    auto [key, value] = each.split(':');
    call.keywords[key.trim().str()] = value.trim().str();
  }
  return call;
}

namespace {
struct Argument {
  const char *op;
  size_t index;
  const char *keyword, *usual;
};
/// Arguments that torch.onnx's translations accept and ignore. The operators'
/// importers read some others: padding_idx, label_smoothing.
constexpr Argument kLost[] = {
    {"aten.avg_pool2d", 6, "divisor_override", "None"},
    {"aten.avg_pool3d", 6, "divisor_override", "None"},
    {"aten.embedding", 3, "scale_grad_by_freq", "False"},
    {"aten.embedding_bag", 3, "scale_grad_by_freq", "False"},
    {"aten._embedding_bag", 3, "scale_grad_by_freq", "False"},
};
} // namespace

std::optional<std::string>
tmc::onnx_import::lostArgument(const TorchCall &call) {
  for (const Argument &lost : kLost) {
    std::string given = call.argument(lost.index, lost.keyword);
    if (call.calls(lost.op) && !given.empty() && given != lost.usual)
      return lost.keyword + ("=" + given);
  }
  return std::nullopt;
}

bool TorchCall::calls(const std::string &op) const {
  StringRef rest = target;
  return rest.consume_front(op) && (rest.empty() || rest.starts_with("."));
}

std::string TorchCall::argument(size_t index,
                                const std::string &keyword) const {
  if (index < arguments.size())
    return arguments[index];
  auto found = keywords.find(keyword);
  return found == keywords.end() ? "" : found->second;
}

std::optional<double> TorchCall::number(size_t index,
                                        const std::string &keyword) const {
  double value;
  if (StringRef(argument(index, keyword)).getAsDouble(value))
    return std::nullopt;
  return value;
}

std::vector<std::string> TorchCall::operands() const {
  std::vector<std::string> names;
  auto collect = [&](StringRef text) {
    while (true) {
      text = text.drop_until([](char c) { return c == '%'; })
                 .drop_front(text.contains('%') ? 1 : 0);
      StringRef name =
          text.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
      if (name.empty())
        return;
      names.push_back(name.str());
      text = text.drop_front(name.size());
    }
  };
  for (const std::string &argument : arguments)
    collect(argument);
  for (const auto &[key, value] : keywords)
    collect(value);
  return names;
}
