//===- DataFile.cpp - a file of a trainer's data --------------------------===//

#include "runtime/step/DataFile.h"

#include "runtime/kernels/Storage.h"
#include "runtime/step/Safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace tmc {

namespace {

/// The first bytes of a file, which identify its kind. tar's signature is the
/// farthest from the front; a text file is identified by all of them.
constexpr int64_t kHeadBytes = 4096;
/// The words in this many bytes of a *.bin are checked.
constexpr int64_t kWordBytes = 1 << 20;

bool endsWith(const std::string &text, const char *end) {
  const size_t n = std::strlen(end);
  return text.size() >= n && text.compare(text.size() - n, n, end) == 0;
}

int32_t intAt(const std::string &head, size_t at) {
  int32_t value = 0;
  if (at + 4 <= head.size())
    std::memcpy(&value, head.data() + at, 4);
  return value;
}

//===----------------------------------------------------------------------===//
// Refused kinds of files
//===----------------------------------------------------------------------===//

constexpr const char *kArrays = "write its numbers as .npy or .safetensors";
constexpr const char *kTokens =
    "write its tokens, by the model's tokenizer, as .npy or u16";
constexpr const char *kUnpack = "unpack it first";

struct Signature {
  size_t at, length;
  const char *bytes, *what, *advice;
};
/// Source: the formats' own specifications, and file(1)'s magic.
constexpr Signature kSignatures[] = {
    {0, 4, "PAR1", "a Parquet file", kArrays},
    {0, 6, "ARROW1", "an Arrow file", kArrays},
    {0, 4, "FEA1", "a Feather file", kArrays},
    {0, 3, "ORC", "an ORC file", kArrays},
    {0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file", kArrays},
    {0, 15, "SQLite format 3", "an SQLite database", kArrays},
    {0, 4, "PK\x03\x04", "a zip archive (.npz, .pt)", kArrays},
    {0, 4, "PK\x05\x06", "an empty zip archive", kArrays},
    {0, 3, "\x1f\x8b\x08", "a gzip file", kUnpack},
    {0, 4, "\x28\xb5\x2f\xfd", "a Zstandard file", kUnpack},
    {0, 6,
     "\xfd"
     "7zXZ\0",
     "an xz file", kUnpack},
    {0, 4, "BZh9", "a bzip2 file", kUnpack},
    {0, 4, "\x04\x22\x4d\x18", "an LZ4 file", kUnpack},
    {0, 6, "7z\xbc\xaf\x27\x1c", "a 7z archive", kUnpack},
    {257, 5, "ustar", "a tar archive", kUnpack},
    {0, 7, "MMIDIDX", "an index of Megatron's tokens",
     "give the .bin beside it, as FILE:u16 or FILE:u32"},
    {0, 4, "GGUF", "a GGUF model", kTokens},
    {0, 8, "\x89PNG\r\n\x1a\n", "a PNG image", kArrays},
    {0, 3, "\xff\xd8\xff", "a JPEG image", kArrays},
    {0, 4, "%PDF", "a PDF document", kTokens},
    {0, 4,
     "\x7f"
     "ELF",
     "a program", kArrays},
};

/// Other files of llm.c, whose magic number is also the date of their format.
struct OtherOfLlmC {
  int32_t magic;
  const char *what;
};
constexpr OtherOfLlmC kOthersOfLlmC[] = {
    {20240326, "a model of llm.c"},
    {20240327, "a state of llm.c's tests"},
    {20240328, "a tokenizer of llm.c"},
    {20240522, "questions of llm.c's evaluation"},
};

/// The stream form of Arrow, used to cache data sets: a mark, the length of the
/// schema, and a flatbuffer whose first table is near.
bool isArrowStream(const std::string &head) {
  const int32_t length = intAt(head, 4), table = intAt(head, 8);
  return intAt(head, 0) == -1 && length > 0 && length % 8 == 0 &&
         length < (16 << 20) && table > 0 && table < length;
}

/// A pickle of protocol 2 to 5; its last byte is the stop opcode.
bool isPickle(const std::string &head, char last) {
  return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5 &&
         last == '.';
}

/// UTF-8 with no control characters except those of plain text. The last
/// character may be incomplete.
bool isText(const std::string &head) {
  for (size_t i = 0; i < head.size();) {
    const auto c = static_cast<unsigned char>(head[i]);
    if (c < 0x20 ? !(c >= '\t' && c <= '\r') : c == 0x7f)
      return false;
    const size_t more = c < 0x80                ? 0
                        : c >= 0xc2 && c < 0xe0 ? 1
                        : c >= 0xe0 && c < 0xf0 ? 2
                        : c >= 0xf0 && c < 0xf5 ? 3
                                                : 4;
    if (more == 4)
      return false;
    for (size_t k = 1; k <= more && i + k < head.size(); ++k)
      if ((head[i + k] & 0xc0) != 0x80)
        return false;
    i += more + 1;
  }
  return !head.empty();
}

/// The first character that isn't blank, or 0.
char firstOf(const std::string &head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first == std::string::npos ? '\0' : head[first];
}

/// The kind of a file that isn't data, and advice for the user; "": unknown.
struct Refusal {
  std::string what, advice;
};
Refusal refusalOf(const std::string &head, char last) {
  for (const Signature &s : kSignatures)
    if (head.size() >= s.at + s.length &&
        std::memcmp(head.data() + s.at, s.bytes, s.length) == 0)
      return {s.what, s.advice};
  for (const OtherOfLlmC &other : kOthersOfLlmC)
    if (intAt(head, 0) == other.magic)
      return {other.what, "a model is trained from tokens: 20240520 or "
                          "20240801 begins those of llm.c"};
  if (isArrowStream(head))
    return {"an Arrow stream", kArrays};
  if (isPickle(head, last))
    return {"a pickle", kArrays};
  if (!isText(head))
    return {};
  if (firstOf(head) == '[')
    return {"JSON", "a .jsonl with a sample's object in each line is"};
  return {"text", kTokens};
}

/// Whether a safetensors header begins a file of `bytes`.
bool isSafetensors(const std::string &head, int64_t bytes) {
  if (head.size() < 10 || head[8] != '{')
    return false;
  int64_t length;
  std::memcpy(&length, head.data(), 8);
  return length > 0 && length <= bytes - 8;
}

/// Parses the number at the front of `text`, and advances `text` past it.
bool takeNumber(const char *&text, double &value) {
  // Refuses other forms that strtod accepts: blanks, hexadecimals, names.
  const char *at = text + (*text == '-' || *text == '+');
  if (!((*at >= '0' && *at <= '9') || *at == '.') ||
      (*at == '0' && (at[1] | 0x20) == 'x'))
    return false;
  char *end;
  value = std::strtod(text, &end);
  if (end == text || !std::isfinite(value))
    return false;
  text = end;
  return true;
}

} // namespace

DataSpec DataSpec::parse(const std::string &text) {
  DataSpec spec;
  spec.path = text;
  if (const size_t star = text.rfind('*'); star != std::string::npos) {
    const char *at = text.c_str() + star + 1;
    double scale = 1, shift = 0;
    if (takeNumber(at, scale) && (!*at || ((*at == '+' || *at == '-') &&
                                           takeNumber(at, shift) && !*at))) {
      spec.isScaled = true;
      spec.scale = scale;
      spec.shift = shift;
      spec.path.resize(star);
    }
  }
  std::string &path = spec.path;
  constexpr size_t kMostDigits = 9; // Of +N, so that it fits an int.
  if (const size_t plus = path.rfind('+');
      !spec.isScaled && plus != std::string::npos && plus + 1 < path.size() &&
      path.size() - plus <= kMostDigits + 1 &&
      path.find_first_not_of("0123456789", plus + 1) == std::string::npos) {
    spec.skipped = std::stoll(path.substr(plus + 1));
    path.resize(plus);
  }
  for (auto [end, type] : {std::pair{":u16", DType::U16}, {":u32", DType::I32}})
    if (path.size() > 4 && endsWith(path, end)) {
      spec.raw = type;
      path.resize(path.size() - 4);
      break;
    }
  return spec;
}

int64_t ArrayView::elements() const {
  int64_t n = 1;
  for (int64_t dim : shape)
    n *= dim;
  return n;
}

const char *ArrayView::typeName() const {
  if (!isUnsigned)
    return nameOf(type);
  return type == DType::I32 ? "u32" : "u64";
}

//===----------------------------------------------------------------------===//
// Headers
//===----------------------------------------------------------------------===//

Status parseNpy(const std::string &shown, const std::string &head,
                int64_t fileBytes, ArrayView &array) {
  auto bad = [&](const std::string &why) {
    return Status(Code::BadInput,
                  "'" + shown + "' isn't a usable .npy file: " + why);
  };
  if (head.size() < 12 || std::memcmp(head.data(), "\x93NUMPY", 6) != 0)
    return bad("it doesn't begin like one");
  const int version = head[6];
  if (version < 1 || version > 3)
    return bad("its format version is " + std::to_string(version));
  int64_t length = static_cast<unsigned char>(head[8]) |
                   static_cast<unsigned char>(head[9]) << 8;
  int64_t start = 10;
  if (version > 1) {
    length |= int64_t(static_cast<unsigned char>(head[10])) << 16 |
              int64_t(static_cast<unsigned char>(head[11])) << 24;
    start = 12;
  }
  if (length > fileBytes - start)
    return bad("its header is cut off");
  if (length > int64_t(head.size()) - start)
    return bad("its header takes " + std::to_string(length) + " bytes");
  const std::string header = head.substr(size_t(start), size_t(length));

  auto value = [&](const char *key) -> std::string {
    const size_t at = header.find(std::string("'") + key + "'");
    const size_t colon = at == std::string::npos ? at : header.find(':', at);
    if (colon == std::string::npos)
      return "";
    const size_t begin = header.find_first_not_of(' ', colon + 1);
    return begin == std::string::npos ? "" : header.substr(begin);
  };
  const std::string descr = value("descr");
  struct Known {
    const char *text;
    DType type;
    bool isUnsigned = false;
  };
  // numpy writes the bfloat16 of ml_dtypes as '<V2'.
  constexpr Known known[] = {
      {"'<f4'", DType::F32},       {"'<f8'", DType::F64},
      {"'<f2'", DType::F16},       {"'<V2'", DType::BF16},
      {"'<i8'", DType::I64},       {"'<i4'", DType::I32},
      {"'<i2'", DType::I16},       {"'<u8'", DType::I64, true},
      {"'<u4'", DType::I32, true}, {"'<u2'", DType::U16},
      {"'|u1'", DType::U8},        {"'|i1'", DType::I8},
      {"'|b1'", DType::I1}};
  bool found = false;
  for (const Known &k : known)
    if (descr.compare(0, std::strlen(k.text), k.text) == 0) {
      array.type = k.type;
      array.isUnsigned = k.isUnsigned;
      found = true;
    }
  if (!found)
    return bad("its element type " + descr.substr(0, descr.find(',')) +
               " isn't supported");
  if (value("fortran_order").compare(0, 5, "False") != 0)
    return bad("it is in Fortran order");
  const std::string shape = value("shape");
  if (shape.empty() || shape[0] != '(')
    return bad("it has no shape");
  constexpr size_t kMostDims = 8; // An input's largest rank.
  array.shape.clear();
  int64_t size = sizeOf(array.type);
  for (size_t i = 1; i < shape.size() && shape[i] != ')';) {
    if (shape[i] == ' ' || shape[i] == ',') {
      ++i;
      continue;
    }
    int64_t dim = 0;
    const size_t first = i;
    for (; i < shape.size() && shape[i] >= '0' && shape[i] <= '9'; ++i)
      if (__builtin_mul_overflow(dim, int64_t(10), &dim) ||
          __builtin_add_overflow(dim, int64_t(shape[i] - '0'), &dim))
        return bad("its shape overflows");
    if (i == first || array.shape.size() == kMostDims ||
        __builtin_mul_overflow(size, dim, &size))
      return bad("its shape can't be read");
    array.shape.push_back(dim);
  }
  array.begin = start + length;
  if (size > fileBytes - array.begin)
    return bad("it has " + std::to_string(fileBytes - array.begin) +
               " bytes of data where its shape needs " + std::to_string(size));
  return Status::ok();
}

/// The headers of llm.c and LLM.Q: 256 words, then tokens. Source:
/// dev/data/data_common.py of llm.c, scripts/tokenize_data.py of LLM.Q.
Status DataFile::parseTokens(const std::string &head, const DataSpec &spec,
                             bool &isTokens) {
  constexpr int64_t kHeaderBytes = 256 * 4;
  auto bad = [&](const std::string &why) {
    return Status(Code::BadInput,
                  "'" + path_ + "' isn't a usable token file: " + why);
  };
  const bool isLlmQ = head.compare(0, 8, "BIN.TOK\n") == 0;
  const int32_t magic = intAt(head, 0);
  isTokens = isLlmQ || magic == 20240520 || magic == 20240801;
  if (!isTokens)
    return Status::ok();
  const int64_t bytes = file_.bytes();
  if (bytes < kHeaderBytes)
    return bad("its header of 1024 bytes is cut off");
  const int32_t version = intAt(head, isLlmQ ? 8 : 4);
  const int32_t expected = isLlmQ ? 2 : magic == 20240520 ? 1 : 7;
  if (version != expected)
    return bad("its format version is " + std::to_string(version) + ", not " +
               std::to_string(expected));
  int64_t size = magic == 20240520 ? 2 : 4, count = intAt(head, 8);
  if (isLlmQ) {
    size = intAt(head, 12);
    count = intAt(head, 16);
    if (size != 2 && size != 4)
      return bad("a token takes " + std::to_string(size) + " bytes");
    if (intAt(head, 24) != 0)
      return bad("it has masks, which would be passed over; write labels that "
                 "are -100 where a mask is 0 as .npy");
  }
  if (count < 0 || bytes != kHeaderBytes + count * size)
    return bad("its header counts " + std::to_string(count) + " tokens of " +
               std::to_string(size) + " bytes, and " +
               std::to_string(bytes - kHeaderBytes) + " bytes follow");
  if (spec.raw && sizeOf(*spec.raw) != size)
    return bad(std::string("its header says u") + (size == 2 ? "16" : "32") +
               ", and --data says u" + (size == 2 ? "32" : "16"));
  array_.type = size == 2 ? DType::U16 : DType::I32;
  array_.isUnsigned = size == 4;
  array_.shape = {count};
  array_.begin = kHeaderBytes;
  return Status::ok();
}

/// Tokens without a header; the user's suffix or the file name gives the type.
Status DataFile::openRaw(const DataSpec &spec) {
  std::optional<DType> type = spec.raw;
  if (!type && endsWith(path_, ".u32.bin"))
    type = DType::I32;
  if (!type && endsWith(path_, ".u16.bin"))
    type = DType::U16;
  const int64_t bytes = file_.bytes();
  if (!type) {
    const std::string ways =
        "'" + path_ + ":u16' or '" + path_ + ":u32' says what its tokens are";
    if (!endsWith(path_, ".bin"))
      return {Code::BadInput, "'" + path_ +
                                  "' is no data file that is known (.npy, "
                                  ".safetensors, llm.c's, LLM.Q's, *.bin); " +
                                  ways};
    std::string some(size_t(std::min(bytes, kWordBytes)), '\0');
    if (Status s = file_.read(0, some.data(), int64_t(some.size())); !s)
      return s;
    bool isZero = some.size() >= 4;
    for (size_t at = 2; at + 2 <= some.size() && isZero; at += 4)
      isZero = !some[at] && !some[at + 1];
    if (isZero)
      return {Code::BadInput, "every second 16-bit word of '" + path_ +
                                  "' is 0, as u32 tokens have it; " + ways};
    type = DType::U16;
  }
  const int64_t size = sizeOf(*type);
  const std::string name = size == 2 ? "u16" : "u32";
  if (bytes % size)
    return {Code::BadInput, "'" + path_ + "' has " + std::to_string(bytes) +
                                " bytes, which isn't a whole number of " +
                                name + " tokens"};
  array_.type = *type;
  array_.isUnsigned = size == 4;
  array_.shape = {bytes / size};
  array_.begin = 0;
  return Status::ok();
}

Status isJsonLines(const std::string &path, const DataSpec &spec, bool &isOne) {
  isOne = endsWith(path, ".jsonl");
  if (isOne || spec.raw)
    return Status::ok();
  MappedFile file;
  if (Status s = MappedFile::open(path, file); !s)
    return s;
  std::string head(size_t(std::min(file.bytes(), kHeadBytes)), '\0');
  if (Status s = file.read(0, head.data(), int64_t(head.size())); !s)
    return s;
  isOne = firstOf(head) == '{' && isText(head);
  return Status::ok();
}

Status DataFile::open(const DataSpec &spec, const std::string &name,
                      DataFile &file) {
  file.path_ = spec.path;
  const std::string &path = file.path_;
  if (Status s = MappedFile::open(path, file.file_); !s)
    return s;
  const int64_t bytes = file.file_.bytes();
  if (!bytes)
    return {Code::BadInput, "'" + path + "' is empty"};
  // A .npy header may be longer if its type has many fields.
  constexpr int64_t kNpyHeadBytes = 1 << 17;
  const bool isNpy = endsWith(path, ".npy");
  std::string head(size_t(std::min(bytes, isNpy ? kNpyHeadBytes : kHeadBytes)),
                   '\0');
  char last = 0;
  if (Status s = file.file_.read(0, head.data(), int64_t(head.size())); !s)
    return s;
  if (Status s = file.file_.read(bytes - 1, &last, 1); !s)
    return s;

  if (isNpy || head.compare(0, 6, "\x93NUMPY") == 0)
    return parseNpy(path, head, bytes, file.array_);
  if (endsWith(path, ".safetensors") || isSafetensors(head, bytes)) {
    SafetensorsFile tensors;
    if (Status s = SafetensorsFile::open(path, tensors); !s)
      return s;
    const auto &all = tensors.tensors();
    const SafeTensor *tensor = tensors.find(name);
    if (!tensor && all.size() == 1)
      tensor = &all.begin()->second;
    if (!tensor)
      return {Code::BadInput, "'" + path + "' has no tensor '" + name + "'"};
    file.array_.type = tensor->type;
    file.array_.isUnsigned = tensor->isUnsigned;
    file.array_.shape = tensor->shape;
    file.array_.begin = tensors.offset(*tensor);
    return Status::ok();
  }
  bool isTokens = false;
  if (Status s = file.parseTokens(head, spec, isTokens); !s || isTokens)
    return s;
  if (!spec.raw)
    if (const Refusal known = refusalOf(head.substr(0, kHeadBytes), last);
        !known.what.empty())
      return {Code::BadInput, "'" + path + "' is " + known.what +
                                  ", which isn't read: " + known.advice};
  return file.openRaw(spec);
}

Status DataFile::read(int64_t first, int64_t count, char *to) const {
  const int64_t size = sizeOf(array_.type);
  return file_.read(array_.begin + first * size, to, count * size);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

namespace {

bool isPlainFloat(DType type) {
  return type == DType::F64 || type == DType::F32 || type == DType::F16 ||
         type == DType::BF16;
}
bool isInteger(DType type) { return type == DType::I32 || type == DType::I64; }

template <typename T> T loaded(const char *from, int64_t i) {
  T value;
  std::memcpy(&value, from + i * int64_t(sizeof value), sizeof value);
  return value;
}
template <typename T> void put(char *to, int64_t i, T value) {
  std::memcpy(to + i * int64_t(sizeof value), &value, sizeof value);
}

/// A number of a file: an exact integer, or a float.
struct Number {
  bool isFloat = false;
  double real = 0;
  int64_t whole = 0;
  bool isBeyond = false; // A u64 that doesn't fit an i64.

  double asReal() const {
    return isFloat ? real : isBeyond ? double(uint64_t(whole)) : double(whole);
  }
  std::string text() const {
    if (isBeyond)
      return std::to_string(uint64_t(whole));
    return isFloat ? std::to_string(real) : std::to_string(whole);
  }
};

Number numberAt(const ArrayView &array, const char *from, int64_t i) {
  auto whole = [](int64_t value) { return Number{false, 0, value}; };
  auto real = [](double value) { return Number{true, value}; };
  switch (array.type) {
  case DType::I1:
  case DType::U8:
    return whole(loaded<uint8_t>(from, i));
  case DType::I8:
    return whole(loaded<int8_t>(from, i));
  case DType::U16:
    return whole(loaded<uint16_t>(from, i));
  case DType::I16:
    return whole(loaded<int16_t>(from, i));
  case DType::I32:
    return array.isUnsigned ? whole(loaded<uint32_t>(from, i))
                            : whole(loaded<int32_t>(from, i));
  case DType::I64: {
    Number number = whole(loaded<int64_t>(from, i));
    number.isBeyond = array.isUnsigned && number.whole < 0;
    return number;
  }
  case DType::F64:
    return real(loaded<double>(from, i));
  case DType::F16:
    return real(widen(loaded<f16>(from, i)));
  case DType::BF16:
    return real(widen(loaded<bf16>(from, i)));
  default:
    return real(loaded<float>(from, i));
  }
}

/// Writes a number as a float of type `to`, rounded to nearest. False if a
/// finite number becomes infinite.
bool putFloat(DType to, char *out, int64_t i, double value) {
  if (to == DType::F64) {
    put(out, i, value);
    return true;
  }
  const auto narrowed = float(value);
  float stored = narrowed;
  if (to == DType::BF16) {
    const auto half = narrow<bf16>(narrowed);
    put(out, i, half);
    stored = widen(half);
  } else if (to == DType::F16) {
    const auto half = narrow<f16>(narrowed);
    put(out, i, half);
    stored = widen(half);
  } else {
    put(out, i, narrowed);
  }
  return std::isfinite(stored) || !std::isfinite(value);
}

/// Writes a number as an integer of type `to`. False if the number isn't an
/// integer in the range of `to`.
bool putWhole(DType to, char *out, int64_t i, const Number &number) {
  const int64_t value = number.whole;
  if (number.isBeyond)
    return false;
  if (to == DType::I1) {
    put(out, i, char(value));
    return value == 0 || value == 1;
  }
  if (to == DType::I32) {
    put(out, i, int32_t(value));
    return value == int32_t(value);
  }
  put(out, i, value);
  return true;
}

} // namespace

bool convertsTo(const ArrayView &array, DType to) {
  if (array.type == to)
    return true;
  if (isInteger(to) || to == DType::I1)
    return !isFloat(array.type);
  return isPlainFloat(to) && (isPlainFloat(array.type) || !isFloat(array.type));
}

Status convertElements(const ArrayView &array, const char *from, int64_t first,
                       int64_t count, const DataSpec &spec, DType to,
                       char *out) {
  if (array.type == to && !array.isUnsigned && !spec.isScaled &&
      to != DType::I1) {
    std::memcpy(out, from, size_t(count * sizeOf(to)));
    return Status::ok();
  }
  // f32 represents every integer up to here, but not the next one.
  constexpr double kMostExact = 1 << 24;
  const bool isExact = !spec.isScaled && to != DType::F64;
  for (int64_t i = 0; i < count; ++i) {
    const Number number = numberAt(array, from, i);
    bool holds;
    if (isPlainFloat(to)) {
      const double value = number.asReal() * spec.scale + spec.shift;
      holds = putFloat(to, out, i, value) &&
              (number.isFloat || !isExact || std::abs(value) <= kMostExact);
    } else {
      holds = putWhole(to, out, i, number);
    }
    if (!holds)
      return {Code::BadInput, "element " + std::to_string(first + i) + " is " +
                                  number.text() + ", which " + nameOf(to) +
                                  " can't hold"};
  }
  return Status::ok();
}

} // namespace tmc
