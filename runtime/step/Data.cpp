//===- Data.cpp - what a trainer feeds its step ---------------------------===//

#include "runtime/step/Data.h"

#include <algorithm>
#include <cstring>

namespace tmc {

namespace {

bool isInteger(DType type) { return type == DType::I32 || type == DType::I64; }

bool endsWith(const std::string &text, const char *end) {
  const size_t n = std::strlen(end);
  return text.size() >= n && text.compare(text.size() - n, n, end) == 0;
}

std::string shapeOf(const TensorInfo &input) {
  std::string text = "[";
  for (int i = 0; i < input.rank; ++i)
    text += (i ? ", " : "") + std::to_string(input.dims[i]);
  return text + "]";
}
std::string shapeOf(const ArrayView &array) {
  std::string text = "[";
  for (size_t i = 0; i < array.shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(array.shape[i]);
  return text + "]";
}

int64_t integerAt(const char *data, DType type, int64_t i) {
  switch (type) {
  case DType::I1:
  case DType::U8:
    return static_cast<unsigned char>(data[i]);
  case DType::I8:
    return static_cast<signed char>(data[i]);
  case DType::U16: {
    uint16_t v;
    std::memcpy(&v, data + i * 2, 2);
    return v;
  }
  case DType::I16: {
    int16_t v;
    std::memcpy(&v, data + i * 2, 2);
    return v;
  }
  case DType::I32: {
    int32_t v;
    std::memcpy(&v, data + i * 4, 4);
    return v;
  }
  default: {
    int64_t v;
    std::memcpy(&v, data + i * 8, 8);
    return v;
  }
  }
}

/// True if elements of `from` can become elements of `to` without loss of
/// meaning.
bool converts(DType from, DType to) {
  if (from == to)
    return true;
  if (isInteger(to))
    return !isFloat(from);
  if (to == DType::F32)
    return from == DType::F64;
  return to == DType::I1 && (from == DType::U8 || from == DType::I8);
}

/// Converts `count` elements from number `first` on.
void convert(const ArrayView &array, int64_t first, int64_t count, DType to,
             char *out) {
  if (array.type == to || to == DType::I1) {
    const int64_t size = sizeOf(to);
    std::memcpy(out, array.data + first * size, size_t(count * size));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (to == DType::F32) {
      double v;
      std::memcpy(&v, array.data + (first + i) * 8, 8);
      const float f = float(v);
      std::memcpy(out + i * 4, &f, 4);
      continue;
    }
    const int64_t v = integerAt(array.data, array.type, first + i);
    if (to == DType::I64) {
      std::memcpy(out + i * 8, &v, 8);
    } else {
      const int32_t narrow = int32_t(v);
      std::memcpy(out + i * 4, &narrow, 4);
    }
  }
}

} // namespace

int64_t ArrayView::elements() const {
  int64_t n = 1;
  for (int64_t dim : shape)
    n *= dim;
  return n;
}

Status parseNpy(const std::string &shown, const char *data, int64_t bytes,
                ArrayView &array) {
  auto bad = [&](const std::string &why) {
    return Status(Code::BadInput,
                  "'" + shown + "' isn't a usable .npy file: " + why);
  };
  if (bytes < 12 || std::memcmp(data, "\x93NUMPY", 6))
    return bad("it doesn't begin like one");
  const int version = data[6];
  if (version < 1 || version > 3)
    return bad("its format version is " + std::to_string(version));
  int64_t length = static_cast<unsigned char>(data[8]) |
                   static_cast<unsigned char>(data[9]) << 8;
  int64_t start = 10;
  if (version > 1) {
    length |= int64_t(static_cast<unsigned char>(data[10])) << 16 |
              int64_t(static_cast<unsigned char>(data[11])) << 24;
    start = 12;
  }
  if (length > bytes - start)
    return bad("its header is cut off");
  const std::string header(data + start, size_t(length));

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
  };
  constexpr Known known[] = {{"'<f4'", DType::F32}, {"'<f8'", DType::F64},
                             {"'<f2'", DType::F16}, {"'<i8'", DType::I64},
                             {"'<i4'", DType::I32}, {"'<i2'", DType::I16},
                             {"'<u2'", DType::U16}, {"'|u1'", DType::U8},
                             {"'|i1'", DType::I8},  {"'|b1'", DType::I1}};
  bool found = false;
  for (const Known &k : known)
    if (descr.compare(0, std::strlen(k.text), k.text) == 0) {
      array.type = k.type;
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
    if (i == first || array.shape.size() == kMaxRank ||
        __builtin_mul_overflow(size, dim, &size))
      return bad("its shape can't be read");
    array.shape.push_back(dim);
  }
  array.data = data + start + length;
  if (size > bytes - start - length)
    return bad("it has " + std::to_string(bytes - start - length) +
               " bytes of data where its shape needs " + std::to_string(size));
  return Status::ok();
}

Status DataReader::open(const TensorInfo &input, const std::string &path,
                        int64_t shift, Source &source) {
  source.input = &input;
  source.path = path;
  source.shift = shift;
  if (endsWith(path, ".safetensors")) {
    source.tensors = std::make_shared<SafetensorsFile>();
    if (Status s = SafetensorsFile::open(path, *source.tensors); !s)
      return s;
    const auto &all = source.tensors->tensors();
    const SafeTensor *tensor = source.tensors->find(input.name);
    if (!tensor && all.size() == 1)
      tensor = &all.begin()->second;
    if (!tensor)
      return {Code::BadInput,
              "'" + path + "' has no tensor '" + input.name + "'"};
    source.array.type = tensor->type;
    source.array.shape = tensor->shape;
    source.array.data = source.tensors->data(*tensor);
    return Status::ok();
  }
  source.file = std::make_shared<MappedFile>();
  if (Status s = MappedFile::open(path, *source.file); !s)
    return s;
  const char *data = source.file->data();
  const int64_t bytes = source.file->bytes();
  if (endsWith(path, ".npy"))
    return parseNpy(path, data, bytes, source.array);
  if (bytes % 2)
    return {Code::BadInput, "'" + path + "' has an odd number of bytes (" +
                                std::to_string(bytes) +
                                "); a token file holds uint16"};
  source.array.type = DType::U16;
  source.array.shape = {bytes / 2};
  source.array.data = data;
  return Status::ok();
}

Status DataReader::fit(Source &source, int64_t &batches) {
  const TensorInfo &input = *source.input;
  const ArrayView &array = source.array;
  if (!converts(array.type, input.type))
    return {Code::BadInput, "'" + source.path + "' holds " +
                                nameOf(array.type) + ", and '" + input.name +
                                "' takes " + nameOf(input.type)};
  source.perBatch = input.elements();
  const bool stream =
      array.shape.size() == 1 && isInteger(input.type) && input.rank >= 2;
  const bool isNumbers =
      input.rank == 0 && array.shape.size() == 1; // One in each step.
  if (!stream && !isNumbers) {
    const bool fits =
        array.shape.size() == size_t(input.rank) && input.rank > 0 &&
        std::equal(array.shape.begin() + 1, array.shape.end(), input.dims + 1);
    if (!fits)
      return {Code::BadInput, "'" + source.path + "' is " + shapeOf(array) +
                                  ", and '" + input.name + "' takes " +
                                  shapeOf(input)};
    if (source.shift)
      return {Code::Usage, "'+" + std::to_string(source.shift) +
                               "' only means something for a stream of "
                               "tokens; '" +
                               source.path + "' is " + shapeOf(array)};
  }
  const int64_t usable = array.elements() - source.shift;
  batches =
      source.perBatch ? std::max<int64_t>(usable, 0) / source.perBatch : 0;
  if (batches == 0) {
    const bool samples = !stream;
    const int64_t unit =
        samples && !isNumbers
            ? std::max<int64_t>(1, source.perBatch / input.dims[0])
            : 1;
    return {Code::BadInput,
            "'" + source.path + "' has " +
                std::to_string(array.elements() / unit) +
                (samples ? " samples" : " tokens") + "; one step takes " +
                std::to_string((source.perBatch + source.shift) / unit)};
  }
  source.buffer.resize(size_t(input.bytes()));
  return Status::ok();
}

/// True if the label of the first token of a row counts: a model that moves
/// labels by itself leaves it out.
static bool countsFirst(const TensorInfo &input) {
  if (input.rank < 2)
    return false;
  for (int32_t i = 0; i < input.rangeCount; ++i)
    if (input.ranges[i].allowIgnore &&
        input.ranges[i].offsets[input.rank - 1] == 0)
      return true;
  return input.allowIgnore;
}

std::string DataReader::warning() const {
  for (const Source &labels : sources_)
    for (const Source &tokens : sources_)
      if (labels.file && tokens.file && labels.array.shape.size() == 1 &&
          labels.path == tokens.path && labels.shift == tokens.shift &&
          countsFirst(*labels.input) && !countsFirst(*tokens.input))
        return "'" + std::string(labels.input->name) + "' and '" +
               tokens.input->name + "' are the same tokens of '" + labels.path +
               "', so that each is its own label; --data " +
               labels.input->name + "=" + labels.path + "+" +
               std::to_string(tokens.shift + 1) + " gives the next ones";
  return "";
}

Status DataReader::create(const StepProgram &program,
                          const std::vector<std::string> &specs,
                          DataReader &reader) {
  reader.sources_.clear();
  std::vector<const TensorInfo *> inputs;
  for (int64_t i = 0; i < program.tensorCount; ++i)
    if (program.tensors[i].feed == Feed::Data)
      inputs.push_back(&program.tensors[i]);
  auto taken = [&](const TensorInfo *input) {
    for (const Source &source : reader.sources_)
      if (source.input == input)
        return true;
    return false;
  };
  auto add = [&](const TensorInfo &input, const std::string &path,
                 int64_t shift) {
    Source source;
    if (Status s = open(input, path, shift, source); !s)
      return s;
    reader.sources_.push_back(std::move(source));
    return Status::ok();
  };

  std::vector<std::pair<std::string, int64_t>> rest;
  for (const std::string &spec : specs) {
    // NAME=FILE only if NAME is an input: a file's name may hold '=' too.
    const size_t equals = spec.find('=');
    const TensorInfo *named = nullptr;
    if (equals != std::string::npos)
      for (const TensorInfo *input : inputs)
        if (spec.compare(0, equals, input->name) == 0 &&
            std::strlen(input->name) == equals)
          named = input;
    std::string path = named ? spec.substr(equals + 1) : spec;
    if (equals != std::string::npos && !named) {
      std::string names;
      for (const TensorInfo *input : inputs)
        names += (names.empty() ? "'" : ", '") + std::string(input->name) + "'";
      return {Code::Usage, "--data " + spec + ": no input has the name '" +
                               spec.substr(0, equals) + "'; the inputs are " +
                               names};
    }
    int64_t shift = 0;
    const size_t plus = path.rfind('+');
    if (plus != std::string::npos && plus + 1 < path.size() &&
        path.size() - plus <= 10 &&
        path.find_first_not_of("0123456789", plus + 1) == std::string::npos) {
      shift = std::stoll(path.substr(plus + 1));
      path.resize(plus);
    }
    if (!named) {
      rest.emplace_back(path, shift);
      continue;
    }
    if (taken(named))
      return {Code::Usage,
              std::string("--data names '") + named->name + "' twice"};
    if (Status s = add(*named, path, shift); !s)
      return s;
  }
  for (const auto &[path, shift] : rest) {
    const bool any = endsWith(path, ".safetensors");
    int64_t fed = 0;
    for (const TensorInfo *input : inputs)
      if (!taken(input) &&
          (any || (isInteger(input->type) && input->rank >= 2))) {
        if (Status s = add(*input, path, shift); !s)
          return s;
        ++fed;
      }
    if (!fed)
      return {Code::Usage, "--data " + path +
                               " feeds no input: none that is left takes "
                               "tokens; use --data NAME=FILE"};
  }
  std::string missing;
  for (const TensorInfo *input : inputs)
    if (!taken(input))
      missing += (missing.empty() ? "'" : ", '") + std::string(input->name) +
                 "' " + nameOf(input->type) + shapeOf(*input);
  if (!missing.empty())
    return {Code::Usage, "no --data for " + missing + "; use --data NAME=FILE"};
  reader.batchesPerEpoch_ = INT64_MAX;
  for (Source &source : reader.sources_) {
    int64_t batches;
    if (Status s = fit(source, batches); !s)
      return s;
    reader.batchesPerEpoch_ = std::min(reader.batchesPerEpoch_, batches);
  }
  return Status::ok();
}

Status DataReader::next(Step &step) {
  for (Source &source : sources_) {
    const int64_t first =
        position_ % batchesPerEpoch_ * source.perBatch + source.shift;
    convert(source.array, first, source.perBatch, source.input->type,
            source.buffer.data());
    if (Status s = step.write(*source.input, source.buffer.data(),
                              int64_t(source.buffer.size()));
        !s)
      return {s.code(), "'" + source.path + "', from element " +
                            std::to_string(first) + " on: " + s.message()};
  }
  ++position_;
  return Status::ok();
}

} // namespace tmc
