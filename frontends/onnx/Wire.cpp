#include "frontends/onnx/Wire.h"
#include "frontends/Checked.h"

#include <optional>

using namespace tmc;
using namespace tmc::onnx_import;

namespace {

/// The message types that are walked. Fields that hold anything else are
/// copied.
enum class Kind {
  Leaf,
  Model,
  Graph,
  Node,
  Attribute,
  Tensor,
  SparseTensor,
  ValueInfo,
  Type,
  TensorType,
  Shape,
  Dim,
  ElementType, // sequence_type and optional_type: field 1 is a Type
  MapType,     // field 2 is a Type
  Function,
  Training,
  Annotation,
  Entry, // key and value
};

struct Child {
  Kind parent;
  uint32_t field;
  Kind kind;
};

// From onnx.proto; functions and training info included.
constexpr Child kChildren[] = {
    {Kind::Model, 7, Kind::Graph},
    {Kind::Model, 8, Kind::Entry},
    {Kind::Model, 14, Kind::Entry},
    {Kind::Model, 20, Kind::Training},
    {Kind::Model, 25, Kind::Function},
    {Kind::Training, 1, Kind::Graph},
    {Kind::Training, 2, Kind::Graph},
    {Kind::Training, 3, Kind::Entry},
    {Kind::Training, 4, Kind::Entry},
    {Kind::Function, 7, Kind::Node},
    {Kind::Function, 9, Kind::Entry},
    {Kind::Function, 11, Kind::Attribute},
    {Kind::Function, 12, Kind::ValueInfo},
    {Kind::Function, 14, Kind::Entry},
    {Kind::Graph, 1, Kind::Node},
    {Kind::Graph, 5, Kind::Tensor},
    {Kind::Graph, 11, Kind::ValueInfo},
    {Kind::Graph, 12, Kind::ValueInfo},
    {Kind::Graph, 13, Kind::ValueInfo},
    {Kind::Graph, 14, Kind::Annotation},
    {Kind::Graph, 15, Kind::SparseTensor},
    {Kind::Graph, 16, Kind::Entry},
    {Kind::Annotation, 2, Kind::Entry},
    {Kind::SparseTensor, 1, Kind::Tensor},
    {Kind::SparseTensor, 2, Kind::Tensor},
    {Kind::Node, 5, Kind::Attribute},
    {Kind::Node, 9, Kind::Entry},
    {Kind::Attribute, 5, Kind::Tensor},
    {Kind::Attribute, 6, Kind::Graph},
    {Kind::Attribute, 10, Kind::Tensor},
    {Kind::Attribute, 11, Kind::Graph},
    {Kind::Attribute, 14, Kind::Type},
    {Kind::Attribute, 15, Kind::Type},
    {Kind::Attribute, 22, Kind::SparseTensor},
    {Kind::Attribute, 23, Kind::SparseTensor},
    {Kind::Tensor, 13, Kind::Entry},
    {Kind::Tensor, 16, Kind::Entry},
    {Kind::ValueInfo, 2, Kind::Type},
    {Kind::ValueInfo, 4, Kind::Entry},
    {Kind::Type, 1, Kind::TensorType},
    {Kind::Type, 4, Kind::ElementType},
    {Kind::Type, 5, Kind::MapType},
    {Kind::Type, 8, Kind::TensorType},
    {Kind::Type, 9, Kind::ElementType},
    {Kind::ElementType, 1, Kind::Type},
    {Kind::MapType, 2, Kind::Type},
    {Kind::TensorType, 2, Kind::Shape},
    {Kind::Shape, 1, Kind::Dim},
};

Kind childKind(Kind parent, uint32_t field) {
  for (const Child &child : kChildren)
    if (child.parent == parent && child.field == field)
      return child.kind;
  return Kind::Leaf;
}

/// Fields of a TensorProto whose bytes are the tensor's, little endian.
bool holdsData(Kind parent, uint32_t field) {
  return parent == Kind::Tensor && (field == 4 || field == 9 || field == 10);
}

enum WireType { Varint = 0, Fixed64 = 1, Delimited = 2, Fixed32 = 5 };

void appendVarint(std::string &out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

class Walker {
public:
  Walker(std::string_view file, const WireLimits &limits)
      : file(file), limits(limits) {}

  /// Appends the message in [pos, end) to `out`, stripped. False if `failure`.
  bool message(Kind kind, int64_t pos, int64_t end, int64_t depth,
               std::string &out) {
    if (++messages > limits.maxMessages)
      return fail("the model has more than " +
                  std::to_string(limits.maxMessages) + " messages");
    if (depth > limits.maxDepth)
      return fail("the model is nested more than " +
                  std::to_string(limits.maxDepth) + " messages deep");
    while (pos < end) {
      if (++fields > limits.maxFields)
        return fail("the model has more than " +
                    std::to_string(limits.maxFields) + " fields");
      int64_t start = pos;
      auto tag = varint(pos, end);
      if (!tag || (*tag >> 3) == 0 || (*tag >> 3) > 0x1fffffff)
        return malformed(start);
      uint32_t field = static_cast<uint32_t>(*tag >> 3);
      switch (*tag & 7) {
      case Varint:
        if (!varint(pos, end))
          return malformed(start);
        break;
      case Fixed64:
      case Fixed32:
        pos += (*tag & 7) == Fixed64 ? 8 : 4;
        if (pos > end)
          return malformed(start);
        break;
      case Delimited: {
        auto length = varint(pos, end);
        if (!length || *length > static_cast<uint64_t>(end - pos))
          return malformed(start);
        int64_t size = static_cast<int64_t>(*length);
        if (!delimited(kind, field, start, pos, size, depth, out))
          return false;
        pos += size;
        continue;
      }
      default: // Groups, which ONNX never had, and what isn't protobuf.
        return malformed(start);
      }
      if (field == kBlobOffsetField || field == kBlobLengthField)
        continue;
      if (!keep(start, pos, out))
        return false;
    }
    return true;
  }

  Failure failure;

private:
  bool delimited(Kind parent, uint32_t field, int64_t start, int64_t pos,
                 int64_t size, int64_t depth, std::string &out) {
    if (holdsData(parent, field) && size >= limits.minBlobBytes) {
      appendVarint(out, kBlobOffsetField << 3);
      appendVarint(out, pos);
      appendVarint(out, kBlobLengthField << 3);
      appendVarint(out, size);
      return true;
    }
    Kind kind = childKind(parent, field);
    if (kind == Kind::Leaf)
      return keep(start, pos + size, out);
    std::string inner;
    if (!message(kind, pos, pos + size, depth + 1, inner))
      return false;
    appendVarint(out, static_cast<uint64_t>(field) << 3 | Delimited);
    appendVarint(out, inner.size());
    out += inner;
    return true;
  }

  bool keep(int64_t begin, int64_t end, std::string &out) {
    kept += end - begin;
    if (kept > limits.maxKeptBytes)
      return fail("the model has more than " +
                  std::to_string(limits.maxKeptBytes >> 20) +
                  " MiB beside its tensors' data");
    out.append(file.substr(begin, end - begin));
    return true;
  }

  std::optional<uint64_t> varint(int64_t &pos, int64_t end) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (pos >= end)
        return std::nullopt;
      uint8_t byte = static_cast<uint8_t>(file[pos++]);
      if (shift == 63 && byte > 1)
        return std::nullopt;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    return std::nullopt;
  }

  bool malformed(int64_t at) {
    return fail("not an ONNX model, or not all of one: the file makes no sense "
                "at byte " +
                std::to_string(at) + " of " + std::to_string(file.size()));
  }

  bool fail(std::string message) {
    failure = Failure::input(std::move(message));
    return false;
  }

  std::string_view file;
  WireLimits limits;
  int64_t messages = 0, fields = 0, kept = 0;
};

} // namespace

Expected<std::string>
tmc::onnx_import::stripTensorData(std::string_view file,
                                  const WireLimits &limits) {
  Walker walker(file, limits);
  std::string out;
  if (!walker.message(Kind::Model, 0, static_cast<int64_t>(file.size()), 0,
                      out))
    return walker.failure;
  return out;
}
