//===- Safetensors.cpp - reading and writing named tensors ----------------===//

#include "runtime/step/Safetensors.h"

#include "runtime/kernels/Names.h"
#include "runtime/step/JsonReader.h"

#include <algorithm>

namespace tmc {

namespace {

/// The format's own limit on a header's size.
constexpr int64_t kMaxHeaderBytes = 100'000'000;
/// Larger than the rank of any tensor.
constexpr size_t kMaxDims = 64;

struct TypeName {
  const char *name;
  DType type;
  bool isUnsigned = false;
};
constexpr TypeName kTypes[] = {
    {"F32", DType::F32},        {"F16", DType::F16},
    {"BF16", DType::BF16},      {"F64", DType::F64},
    {"BOOL", DType::I1},        {"I8", DType::I8},
    {"U8", DType::U8},          {"I16", DType::I16},
    {"U16", DType::U16},        {"I32", DType::I32},
    {"I64", DType::I64},        {"F8_E4M3", DType::F8E4M3},
    {"F8_E5M2", DType::F8E5M2}, {"U32", DType::I32, true},
    {"U64", DType::I64, true},
};

/// Parses exactly the JSON that a header can hold: one object whose values are
/// objects of strings, strings, or lists of non-negative integers. Other values
/// are refused.
class HeaderParser {
public:
  HeaderParser(const char *begin, const char *end)
      : at_({begin, size_t(end - begin)}, "header") {}

  bool parse(std::map<std::string, SafeTensor> &tensors,
             std::map<std::string, std::string> &metadata) {
    const bool isRead = at_.object([&](const std::string &name) {
      if (!at_.checkName(name))
        return false;
      if (name == "__metadata__")
        return stringMap(metadata);
      SafeTensor tensor;
      if (!entry(tensor))
        return false;
      return tensors.emplace(name, std::move(tensor)).second ||
             at_.fail("the name '" + name + "' occurs twice");
    });
    return isRead && at_.finish();
  }
  const std::string &error() const { return at_.error(); }

private:
  bool list(std::vector<int64_t> &out) {
    if (!at_.expect('['))
      return false;
    if (at_.accept(']'))
      return true;
    do {
      int64_t value;
      if (!at_.integer(value))
        return false;
      if (out.size() == kMaxDims)
        return at_.fail("more than 64 dimensions");
      out.push_back(value);
    } while (at_.accept(','));
    return at_.expect(']');
  }

  bool stringMap(std::map<std::string, std::string> &out) {
    return at_.object([&](const std::string &key) {
      std::string value;
      if (!at_.string(value))
        return false;
      out[key] = value;
      return true;
    });
  }

  bool typeOf(SafeTensor &tensor) {
    std::string name;
    if (!at_.string(name))
      return false;
    for (const TypeName &known : kTypes)
      if (name == known.name) {
        tensor.type = known.type;
        tensor.isUnsigned = known.isUnsigned;
        return true;
      }
    return at_.fail("the unknown type '" + name + "'");
  }

  bool offsetsOf(SafeTensor &tensor) {
    std::vector<int64_t> pair;
    if (!list(pair))
      return false;
    if (pair.size() != 2)
      return at_.fail("data_offsets must have two entries");
    tensor.begin = pair[0];
    tensor.end = pair[1];
    return true;
  }

  bool entry(SafeTensor &tensor) {
    bool type = false, shape = false, offsets = false;
    const bool isRead = at_.object([&](const std::string &key) {
      if (key == "dtype" && !type)
        return type = typeOf(tensor);
      if (key == "shape" && !shape)
        return shape = list(tensor.shape);
      if (key == "data_offsets" && !offsets)
        return offsets = offsetsOf(tensor);
      return at_.fail("the unexpected key '" + key + "'");
    });
    return isRead &&
           ((type && shape && offsets) ||
            at_.fail("a tensor without dtype, shape or data_offsets"));
  }

  JsonReader at_;
};

} // namespace

static Status unsound(const std::string &shown, const std::string &why) {
  return {Code::BadInput,
          "'" + shown + "' isn't a sound safetensors file: " + why};
}

/// Reads the length of the header from the first eight of the file's `bytes`
/// bytes.
static Status readLength(const std::string &shown, const char *data,
                         int64_t bytes, int64_t &length) {
  uint64_t read = 0;
  for (int i = 7; i >= 0; --i)
    read = read << 8 | static_cast<unsigned char>(data[i]);
  if (read > uint64_t(kMaxHeaderBytes))
    return unsound(shown, "its header would take " + std::to_string(read) +
                              " bytes; at most 100000000 are allowed");
  if (read > uint64_t(bytes - 8))
    return unsound(shown, "its header would take " + std::to_string(read) +
                              " bytes, and the file has " +
                              std::to_string(bytes));
  length = int64_t(read);
  return Status::ok();
}

static Status tooShort(const std::string &shown, int64_t bytes) {
  return unsound(shown, "it has " + std::to_string(bytes) +
                            " bytes, and the header's length alone takes 8");
}

Status SafetensorsFile::parse(const std::string &shown, const char *data,
                              int64_t bytes, SafetensorsFile &file) {
  if (bytes < 8)
    return tooShort(shown, bytes);
  int64_t length = 0;
  if (Status s = readLength(shown, data, bytes, length); !s)
    return s;
  file.body_ = data + 8 + length;
  return parseHeader(shown, data + 8, length, bytes, file);
}

/// Uses read calls: a file that is truncated meanwhile is an error.
Status SafetensorsFile::openHeader(const std::string &shown) {
  const int64_t bytes = mapped_.bytes();
  if (bytes < 8)
    return tooShort(shown, bytes);
  char start[8];
  if (Status s = mapped_.read(0, start, 8); !s)
    return s;
  int64_t length = 0;
  if (Status s = readLength(shown, start, bytes, length); !s)
    return s;
  std::string header(size_t(length), '\0');
  if (Status s = mapped_.read(8, header.data(), length); !s)
    return s;
  body_ = mapped_.data() + 8 + length;
  return parseHeader(shown, header.data(), length, bytes, *this);
}

Status SafetensorsFile::parseHeader(const std::string &shown, const char *data,
                                    int64_t length, int64_t bytes,
                                    SafetensorsFile &file) {
  auto bad = [&](const std::string &why) { return unsound(shown, why); };
  const int64_t bodyBytes = bytes - 8 - length;
  file.path_ = shown;
  file.tensors_.clear();
  file.metadata_.clear();
  file.bodyAt_ = 8 + length;
  HeaderParser parser(data, data + length);
  if (!parser.parse(file.tensors_, file.metadata_))
    return bad(parser.error());

  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const auto &[name, tensor] : file.tensors_) {
    int64_t size = sizeOf(tensor.type);
    for (int64_t dim : tensor.shape)
      if (__builtin_mul_overflow(size, dim, &size))
        return bad("the shape of '" + name + "' overflows");
    if (tensor.begin > tensor.end || tensor.end > bodyBytes)
      return bad("'" + name + "' ends at byte " + std::to_string(tensor.end) +
                 " of " + std::to_string(bodyBytes));
    if (tensor.end - tensor.begin != size)
      return bad("'" + name + "' has " +
                 std::to_string(tensor.end - tensor.begin) +
                 " bytes where its shape needs " + std::to_string(size));
    spans.emplace_back(tensor.begin, tensor.end);
  }
  std::sort(spans.begin(), spans.end());
  int64_t covered = 0;
  for (const auto &[begin, end] : spans) {
    if (begin != covered)
      return bad(begin < covered
                     ? "tensors overlap at byte " + std::to_string(begin)
                     : "a hole at byte " + std::to_string(covered));
    covered = end;
  }
  if (covered != bodyBytes)
    return bad(std::to_string(bodyBytes - covered) +
               " bytes at the end belong to no tensor");
  return Status::ok();
}

Status SafetensorsFile::open(const std::string &path, SafetensorsFile &file) {
  if (Status s = MappedFile::open(path, file.mapped_); !s)
    return s;
  return file.openHeader(path);
}

Status SafetensorsFile::openBeneath(const std::string &directory,
                                    const std::string &name,
                                    SafetensorsFile &file) {
  if (Status s = MappedFile::openBeneath(directory, name, file.mapped_); !s)
    return s;
  return file.openHeader(directory + "/" + name);
}

const SafeTensor *SafetensorsFile::find(const std::string &name) const {
  auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::string
safetensorsHeader(std::vector<std::pair<std::string, SafeTensor>> &tensors,
                  const std::map<std::string, std::string> &metadata) {
  std::string json = "{\"__metadata__\":{";
  const char *comma = "";
  for (const auto &[key, value] : metadata) {
    json += comma + jsonQuoted(key) + ":" + jsonQuoted(value);
    comma = ",";
  }
  json += "}";
  int64_t at = 0;
  for (auto &[name, tensor] : tensors) {
    int64_t bytes = sizeOf(tensor.type);
    std::string shape;
    for (int64_t dim : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(dim);
      bytes *= dim;
    }
    tensor.begin = at;
    tensor.end = at += bytes;
    const char *type = "F32";
    for (const TypeName &known : kTypes)
      if (known.type == tensor.type && known.isUnsigned == tensor.isUnsigned)
        type = known.name;
    json += "," + jsonQuoted(name) + ":{\"dtype\":\"" + type +
            "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
            std::to_string(tensor.begin) + "," + std::to_string(tensor.end) +
            "]}";
  }
  json += "}";
  json.append((8 - json.size() % 8) % 8, ' ');
  std::string out(8, '\0');
  for (int i = 0; i < 8; ++i)
    out[size_t(i)] = char(json.size() >> (8 * i));
  return out + json;
}

} // namespace tmc
