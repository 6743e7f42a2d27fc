#include "frontends/onnx/Wire.h"
#include "compiler/support/Escape.h"
#include "frontends/Checked.h"

#include <array>
#include <optional>

using namespace tmc;
using namespace tmc::onnx_import;

namespace {

/// The message types that the walk enters.
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
  OperatorSet,
  Entry,        // key and value
  ExternalData, // The same; it names a file.
};

/// A field that the walk enters, or that holds a name; in onnx.proto's
/// spelling, with brackets if it may be repeated.
struct Field {
  Kind parent;
  uint32_t number;
  const char *name;
  Kind kind = Kind::Leaf;
};

// From onnx.proto; functions and training info included. Other fields are
// copied: documentation, which is never printed, and values of attributes.
constexpr Field kFields[] = {
    {Kind::Model, 2, "producer_name"},
    {Kind::Model, 3, "producer_version"},
    {Kind::Model, 4, "domain"},
    {Kind::Model, 7, "graph", Kind::Graph},
    {Kind::Model, 8, "opset_import[]", Kind::OperatorSet},
    {Kind::Model, 14, "metadata_props[]", Kind::Entry},
    {Kind::Model, 20, "training_info[]", Kind::Training},
    {Kind::Model, 25, "functions[]", Kind::Function},
    {Kind::Training, 1, "initialization", Kind::Graph},
    {Kind::Training, 2, "algorithm", Kind::Graph},
    {Kind::Training, 3, "initialization_binding[]", Kind::Entry},
    {Kind::Training, 4, "update_binding[]", Kind::Entry},
    {Kind::Function, 1, "name"},
    {Kind::Function, 4, "input[]"},
    {Kind::Function, 5, "output[]"},
    {Kind::Function, 6, "attribute[]"},
    {Kind::Function, 7, "node[]", Kind::Node},
    {Kind::Function, 9, "opset_import[]", Kind::OperatorSet},
    {Kind::Function, 10, "domain"},
    {Kind::Function, 11, "attribute_proto[]", Kind::Attribute},
    {Kind::Function, 12, "value_info[]", Kind::ValueInfo},
    {Kind::Function, 13, "overload"},
    {Kind::Function, 14, "metadata_props[]", Kind::Entry},
    {Kind::Graph, 1, "node[]", Kind::Node},
    {Kind::Graph, 2, "name"},
    {Kind::Graph, 5, "initializer[]", Kind::Tensor},
    {Kind::Graph, 11, "input[]", Kind::ValueInfo},
    {Kind::Graph, 12, "output[]", Kind::ValueInfo},
    {Kind::Graph, 13, "value_info[]", Kind::ValueInfo},
    {Kind::Graph, 14, "quantization_annotation[]", Kind::Annotation},
    {Kind::Graph, 15, "sparse_initializer[]", Kind::SparseTensor},
    {Kind::Graph, 16, "metadata_props[]", Kind::Entry},
    {Kind::Annotation, 1, "tensor_name"},
    {Kind::Annotation, 2, "quant_parameter_tensor_names[]", Kind::Entry},
    {Kind::SparseTensor, 1, "values", Kind::Tensor},
    {Kind::SparseTensor, 2, "indices", Kind::Tensor},
    {Kind::Node, 1, "input[]"},
    {Kind::Node, 2, "output[]"},
    {Kind::Node, 3, "name"},
    {Kind::Node, 4, "op_type"},
    {Kind::Node, 5, "attribute[]", Kind::Attribute},
    {Kind::Node, 7, "domain"},
    {Kind::Node, 8, "overload"},
    {Kind::Node, 9, "metadata_props[]", Kind::Entry},
    {Kind::Attribute, 1, "name"},
    {Kind::Attribute, 5, "t", Kind::Tensor},
    {Kind::Attribute, 6, "g", Kind::Graph},
    {Kind::Attribute, 10, "tensors[]", Kind::Tensor},
    {Kind::Attribute, 11, "graphs[]", Kind::Graph},
    {Kind::Attribute, 14, "tp", Kind::Type},
    {Kind::Attribute, 15, "type_protos[]", Kind::Type},
    {Kind::Attribute, 21, "ref_attr_name"},
    {Kind::Attribute, 22, "sparse_tensor", Kind::SparseTensor},
    {Kind::Attribute, 23, "sparse_tensors[]", Kind::SparseTensor},
    {Kind::Tensor, 8, "name"},
    {Kind::Tensor, 13, "external_data[]", Kind::ExternalData},
    {Kind::Tensor, 16, "metadata_props[]", Kind::Entry},
    {Kind::ValueInfo, 1, "name"},
    {Kind::ValueInfo, 2, "type", Kind::Type},
    {Kind::ValueInfo, 4, "metadata_props[]", Kind::Entry},
    {Kind::Type, 1, "tensor_type", Kind::TensorType},
    {Kind::Type, 4, "sequence_type", Kind::ElementType},
    {Kind::Type, 5, "map_type", Kind::MapType},
    {Kind::Type, 6, "denotation"},
    {Kind::Type, 8, "sparse_tensor_type", Kind::TensorType},
    {Kind::Type, 9, "optional_type", Kind::ElementType},
    {Kind::ElementType, 1, "elem_type", Kind::Type},
    {Kind::MapType, 2, "value_type", Kind::Type},
    {Kind::TensorType, 2, "shape", Kind::Shape},
    {Kind::Shape, 1, "dim[]", Kind::Dim},
    {Kind::Dim, 2, "dim_param"},
    {Kind::Dim, 3, "denotation"},
    {Kind::OperatorSet, 1, "domain"},
    {Kind::Entry, 1, "key"}, // Values may be texts of several lines.
    {Kind::ExternalData, 1, "key"},
    {Kind::ExternalData, 2, "value"},
};

/// The largest of these numbers.
constexpr uint32_t kMostFieldNumber = 25;

const Field *fieldOf(Kind parent, uint32_t number) {
  for (const Field &field : kFields)
    if (field.parent == parent && field.number == number)
      return &field;
  return nullptr;
}

/// The place of a field in the model; `outer` is null for the model itself.
struct Place {
  const Place *outer = nullptr;
  const Field *field = nullptr;
  int64_t index = 0;

  /// "graph.node[12].input[1]".
  std::string text() const {
    std::string_view name = field->name;
    std::string own(name.substr(0, name.find('[')));
    if (own.size() < name.size())
      own += "[" + std::to_string(index) + "]";
    return outer && outer->field ? outer->text() + "." + own : own;
  }
};

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

  /// Appends the message in [pos, end) to `out`, stripped. False: see
  /// `failure`.
  bool message(Kind kind, const Place &place, int64_t pos, int64_t end,
               int64_t depth, std::string &out) {
    if (++messages > limits.maxMessages)
      return fail("the model has more than " +
                  std::to_string(limits.maxMessages) + " messages");
    if (depth > limits.maxDepth)
      return fail("the model is nested more than " +
                  std::to_string(limits.maxDepth) + " messages deep");
    std::array<int64_t, kMostFieldNumber + 1> counts = {}; // By number.
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
        const Field *known = fieldOf(kind, field);
        if (!delimited(kind, field,
                       {&place, known, known ? counts[known->number]++ : 0},
                       start, pos, size, depth, out))
          return false;
        pos += size;
        continue;
      }
      default: // Groups, which ONNX never had, or no protobuf.
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
  bool delimited(Kind parent, uint32_t field, const Place &place, int64_t start,
                 int64_t pos, int64_t size, int64_t depth, std::string &out) {
    if (holdsData(parent, field) && size >= limits.minBlobBytes) {
      appendVarint(out, kBlobOffsetField << 3);
      appendVarint(out, pos);
      appendVarint(out, kBlobLengthField << 3);
      appendVarint(out, size);
      return true;
    }
    Kind kind = place.field ? place.field->kind : Kind::Leaf;
    if (kind == Kind::Leaf)
      return (!place.field || isName(place, pos, size)) &&
             keep(start, pos + size, out);
    std::string inner;
    if (!message(kind, place, pos, pos + size, depth + 1, inner))
      return false;
    appendVarint(out, static_cast<uint64_t>(field) << 3 | Delimited);
    appendVarint(out, inner.size());
    out += inner;
    return true;
  }

  /// True if the text in [pos, pos + size) is a valid name.
  bool isName(const Place &place, int64_t pos, int64_t size) {
    std::string fault = nameFault(file.substr(pos, size));
    return fault.empty() ||
           fail("the name " + place.text() + ", at byte " +
                std::to_string(pos) + " of the file, " + fault);
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
  if (!walker.message(Kind::Model, {}, 0, static_cast<int64_t>(file.size()), 0,
                      out))
    return walker.failure;
  return out;
}
