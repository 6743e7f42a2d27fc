#include "frontends/onnx/Model.h"
#include "frontends/Checked.h"
#include "frontends/onnx/Wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/unknown_field_set.h>

#include <charconv>
#include <cstring>

using namespace tmc;
using namespace tmc::onnx_import;

/// The supported range of operator sets.
constexpr int64_t kFirstOpset = 13, kLastOpset = 28;

static Expected<Model> parse(SafeFile file, std::string owned,
                             std::string directory) {
  Model model;
  model.files = std::make_unique<ModelFiles>(std::move(file), std::move(owned),
                                             std::move(directory));
  std::string_view bytes = model.files->modelBytes();
  if (bytes.empty())
    return Failure::input("the file is empty");
  if (bytes.substr(0, 4) == "PK\3\4")
    return Failure::input("not an ONNX model: the file is a zip archive");
  auto stripped = stripTensorData(bytes);
  if (!stripped)
    return stripped.failure();
  google::protobuf::io::ArrayInputStream stream(stripped->data(),
                                                stripped->size());
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(INT32_MAX);
  if (!model.proto.ParseFromCodedStream(&coded) ||
      !coded.ConsumedEntireMessage())
    return Failure::input("not an ONNX model: the file doesn't parse");
  if (!model.proto.has_graph())
    return Failure::input("not a whole ONNX model: the file has no graph");
  for (const auto &entry : model.proto.opset_import()) {
    std::string domain = entry.domain() == "ai.onnx" ? "" : entry.domain();
    model.opsets[domain] = entry.version();
  }
  // A model that has only operators of other domains names no version of ONNX's
  // own.
  if (!model.opsets.empty() &&
      llvm::none_of(model.proto.graph().node(), [](const auto &node) {
        return node.domain().empty() || node.domain() == "ai.onnx";
      }))
    model.opsets.try_emplace("", kLastOpset);
  auto opset = model.opsets.find("");
  if (opset == model.opsets.end())
    return Failure::input(
        "not a whole ONNX model: the file names no version of the operators");
  if (opset->second < kFirstOpset || opset->second > kLastOpset)
    return Failure::unsupported("the model uses operator set " +
                                std::to_string(opset->second) + "; sets " +
                                std::to_string(kFirstOpset) + " to " +
                                std::to_string(kLastOpset) + " are known")
        .note("export it again with opset_version=18");
  return model;
}

Expected<Model> tmc::onnx_import::openModel(const std::string &path) {
  auto file = openByUser(path);
  if (!file)
    return file.failure();
  size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? std::string(".")
                          : slash == 0               ? std::string("/")
                                                     : path.substr(0, slash);
  return parse(std::move(*file), {}, std::move(directory));
}

Expected<Model> tmc::onnx_import::parseModel(std::string bytes,
                                             const std::string &directory) {
  return parse({}, std::move(bytes), directory);
}

Expected<std::string_view> ModelFiles::read(const TensorData &data) {
  if (data.place == TensorData::Inline)
    return std::string_view(data.bytes);
  std::string_view bytes = modelBytes();
  if (data.place == TensorData::External) {
    auto found = external.find(data.location);
    if (found == external.end()) {
      auto file = openBeneath(directory, data.location);
      if (!file)
        return std::move(file.failure())
            .note("it holds the values of '" + data.name + "'");
      found = external.emplace(data.location, std::move(*file)).first;
    }
    bytes = found->second.bytes();
    if (!fitsWithin(data.offset, data.length,
                    static_cast<int64_t>(bytes.size())))
      return Failure::input("external file '" + data.location + "' has " +
                            std::to_string(bytes.size()) + " bytes, but '" +
                            data.name + "' wants " +
                            std::to_string(data.length) + " at " +
                            std::to_string(data.offset));
  }
  return bytes.substr(data.offset, data.length);
}

/// A decimal number without sign or blanks.
static std::optional<int64_t> parseNumber(const std::string &text) {
  int64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

static Expected<TensorData> locateExternal(const onnx::TensorProto &tensor,
                                           TensorData data, int64_t bytes) {
  data.place = TensorData::External;
  data.length = bytes;
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      data.location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length")
      continue;
    auto number = parseNumber(entry.value());
    if (!number)
      return Failure::input("'" + data.name + "' has the " + entry.key() +
                            " '" + entry.value() + "', which is no size");
    if (entry.key() == "offset")
      data.offset = *number;
    else if (*number != bytes)
      return Failure::input(
          "'" + data.name + "' has " + std::to_string(*number) +
          " bytes of data, but its shape needs " + std::to_string(bytes));
  }
  if (data.location.empty())
    return Failure::input("'" + data.name + "' is external but names no file");
  return data;
}

template <typename T, typename Field>
static std::string packed(const Field &values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  char *out = bytes.data();
  for (auto value : values) {
    T element = static_cast<T>(value);
    std::memcpy(out, &element, sizeof(T));
    out += sizeof(T);
  }
  return bytes;
}

/// The typed fields (float_data and so on) in the format of raw_data.
static std::string inlineBytes(const onnx::TensorProto &tensor,
                               ElementType type) {
  if (tensor.has_raw_data())
    return tensor.raw_data();
  switch (type) {
  case ElementType::F32:
    return packed<float>(tensor.float_data());
  case ElementType::F64:
    return packed<double>(tensor.double_data());
  case ElementType::I64:
    return packed<int64_t>(tensor.int64_data());
  case ElementType::U32:
    return packed<uint32_t>(tensor.uint64_data());
  case ElementType::U64:
    return packed<uint64_t>(tensor.uint64_data());
  default:
    break;
  }
  switch (sizeInFile(type)) {
  case 1:
    return packed<int8_t>(tensor.int32_data());
  case 2:
    return packed<int16_t>(tensor.int32_data());
  default:
    return packed<int32_t>(tensor.int32_data());
  }
}

std::optional<ElementType> tmc::onnx_import::typeOfNumber(int64_t number) {
  switch (number) {
  case onnx::TensorProto::FLOAT:
    return ElementType::F32;
  case onnx::TensorProto::UINT8:
    return ElementType::U8;
  case onnx::TensorProto::INT8:
    return ElementType::I8;
  case onnx::TensorProto::UINT16:
    return ElementType::U16;
  case onnx::TensorProto::INT16:
    return ElementType::I16;
  case onnx::TensorProto::INT32:
    return ElementType::I32;
  case onnx::TensorProto::INT64:
    return ElementType::I64;
  case onnx::TensorProto::BOOL:
    return ElementType::Bool;
  case onnx::TensorProto::FLOAT16:
    return ElementType::F16;
  case onnx::TensorProto::DOUBLE:
    return ElementType::F64;
  case onnx::TensorProto::UINT32:
    return ElementType::U32;
  case onnx::TensorProto::UINT64:
    return ElementType::U64;
  case onnx::TensorProto::BFLOAT16:
    return ElementType::BF16;
  default:
    return std::nullopt;
  }
}

Expected<TensorData> tmc::onnx_import::locate(const onnx::TensorProto &tensor) {
  TensorData data;
  data.name = tensor.name();
  auto type = typeOfNumber(tensor.data_type());
  if (!type)
    return Failure::unsupported(
        "tensor '" + data.name + "' has element type number " +
        std::to_string(tensor.data_type()) + ", which isn't known");
  data.type = *type;
  data.dims.assign(tensor.dims().begin(), tensor.dims().end());
  auto count = checkedNumElements(data.dims);
  auto bytes = count ? checkedMul(*count, sizeInFile(*type)) : std::nullopt;
  if (!bytes)
    return Failure::input("tensor '" + data.name +
                          "' has a shape whose size isn't a number");
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return locateExternal(tensor, std::move(data), *bytes);

  data.length = *bytes;
  int64_t found = -1;
  int blobs = 0;
  const auto &unknown = tensor.unknown_fields();
  for (int i = 0; i < unknown.field_count(); ++i) {
    if (unknown.field(i).number() == kBlobOffsetField) {
      data.offset = unknown.field(i).varint();
      ++blobs;
    }
    if (unknown.field(i).number() == kBlobLengthField)
      found = unknown.field(i).varint();
  }
  if (blobs) {
    data.place = TensorData::InFile;
  } else {
    data.place = TensorData::Inline;
    data.bytes = inlineBytes(tensor, *type);
    found = data.bytes.size();
  }
  if (blobs > 1 || found != *bytes)
    return Failure::input(
        "tensor '" + data.name + "' has " + std::to_string(found) +
        " bytes of data, but its shape needs " + std::to_string(*bytes));
  return data;
}

Expected<Array> tmc::onnx_import::readArray(ModelFiles &files,
                                            const TensorData &data) {
  auto bytes = files.read(data);
  if (!bytes)
    return bytes.failure();
  return Array::ofBytes(data.type, data.dims, *bytes);
}

std::string tmc::onnx_import::metadata(const google::protobuf::Message &message,
                                       int field, const std::string &key) {
  const auto &unknown = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto &entry = unknown.field(i);
    if (entry.number() != field ||
        entry.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      continue;
    onnx::StringStringEntryProto pair;
    if (pair.ParseFromString(entry.length_delimited()) && pair.key() == key)
      return pair.value();
  }
  return {};
}
