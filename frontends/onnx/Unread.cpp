// Unread.cpp - refuses inputs and attributes that a file gives and an importer
// doesn't read.

#include "frontends/common/Defaults.h"
#include "frontends/onnx/Node.h"

#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The standard's defaults.
static const Defaults &defaults() {
  static constexpr Defaults::Line lines[] = {
#define TMC_DEFAULTS(OP, ATTRIBUTES) {OP, ATTRIBUTES},
#include "frontends/onnx/Defaults.inc"
#undef TMC_DEFAULTS
  };
  static const Defaults table{lines};
  return table;
}

/// The attribute's number or numbers; nothing if it is of another kind.
static std::optional<SmallVector<double>>
numbersOf(const onnx::AttributeProto &attribute) {
  SmallVector<double> values;
  switch (attribute.type()) {
  case onnx::AttributeProto::INT:
    return SmallVector<double>{static_cast<double>(attribute.i())};
  case onnx::AttributeProto::FLOAT:
    return SmallVector<double>{shortest(attribute.f())};
  case onnx::AttributeProto::INTS:
    for (int64_t value : attribute.ints())
      values.push_back(static_cast<double>(value));
    return values;
  case onnx::AttributeProto::FLOATS:
    for (float value : attribute.floats())
      values.push_back(shortest(value));
    return values;
  default:
    return std::nullopt;
  }
}

static bool isDefault(StringRef text, const onnx::AttributeProto &attribute) {
  if (attribute.type() == onnx::AttributeProto::STRING)
    return text == StringRef(attribute.s());
  std::optional<SmallVector<double>> values = numbersOf(attribute);
  double number; // The tables hold doubles, files f32.
  if (values && values->size() == 1 && !text.getAsDouble(number))
    return shortest(number) == (*values)[0];
  return values && isList(text, *values);
}

/// "=0.3", or "" if the text would be long.
static std::string written(const onnx::AttributeProto &attribute) {
  if (attribute.type() == onnx::AttributeProto::STRING)
    return "='" + attribute.s() + "'";
  std::optional<SmallVector<double>> values = numbersOf(attribute);
  constexpr size_t kWritten = 8;
  if (!values || values->size() > kWritten)
    return {};
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::interleaveComma(*values, out,
                        [&](double v) { out << llvm::format("%g", v); });
  return values->size() == 1 ? "=" + text : "=[" + text + "]";
}

LogicalResult Node::checkAllRead() {
  for (int i = 0; i < proto.input_size(); ++i)
    if (!proto.input(i).empty() && !readInputs.count(i))
      return unsupported("input " + Twine(i) + ", '" + proto.input(i) + "'");
  for (const auto &attribute : proto.attribute()) {
    if (readAttributes.count(attribute.name()))
      continue;
    std::optional<StringRef> usual =
        defaults().find(opName(), attribute.name());
    if (!usual || !isDefault(*usual, attribute))
      return unsupported("attribute " + attribute.name() + written(attribute));
  }
  return success();
}
