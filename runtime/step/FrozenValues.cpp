//===- FrozenValues.cpp - fills frozen parameters in codes ----------------===//

#include "runtime/step/FrozenValues.h"

#include "runtime/kernels/FrozenCodes.h"
#include "runtime/kernels/Names.h"
#include "runtime/step/QuantState.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tmc::values {

using namespace frozen;

namespace {

/// Numbers that are encoded at a time: 1 MiB of floats.
constexpr int64_t kNumbers = kPieceBytes / 4;
static_assert(kNumbers % kBlock == 0);

constexpr Table<kLevels - 1> kLevelBounds = midpoints(levels());
constexpr Table<kMapped - 1> kMapBounds = midpoints(dynamicMap());

int64_t elementsOf(const StoredInfo &stored) {
  int64_t count = 1;
  for (int32_t i = 0; i < stored.rank; ++i)
    count *= stored.dims[i];
  return count;
}

Status notFinite(const TensorInfo &codes) {
  return {Code::BadInput, "'" + std::string(codes.name) +
                              "' has numbers that aren't finite, which have no "
                              "codes"};
}

bool areFinite(const std::vector<float> &numbers, int64_t count) {
  return isFinite(DType::F32, reinterpret_cast<const char *>(numbers.data()),
                  count);
}

/// The codes of one block; returns its maximum.
float encodeBlock(const float *numbers, uint8_t *codes) {
  float most = 0;
  for (int i = 0; i < kBlock; ++i)
    most = std::max(most, std::fabs(numbers[i]));
  const float inverse = inverseOf(most);
  int32_t found[kBlock] = {};
  for (const float bound : kLevelBounds.value)
    for (int i = 0; i < kBlock; ++i)
      found[i] += numbers[i] * inverse > bound;
  for (int i = 0; i < kBlock; i += 2)
    codes[i / 2] = uint8_t(found[i] << 4 | found[i + 1]);
  return most;
}

/// Writes maxima as codes of their own, a nested block at a time.
Status nest(const StepProgram &program, const Homes &homes,
            const StoredInfo &stored, const std::vector<float> &absmax) {
  const auto blocks = int64_t(absmax.size());
  double sum = 0;
  for (const float each : absmax)
    sum += double(each);
  const float offset = float(sum / double(blocks));
  std::vector<float> nested(size_t(nestedFloats(blocks)));
  nested.back() = offset;
  for (int64_t at = 0; at < blocks; at += kNestedBlock) {
    const int64_t some = std::min<int64_t>(kNestedBlock, blocks - at);
    float most = 0;
    for (int64_t i = at; i < at + some; ++i)
      most = std::max(most, std::fabs(absmax[size_t(i)] - offset));
    nested[size_t(at / kNestedBlock)] = most;
    const float inverse = inverseOf(most);
    uint8_t codes[kNestedBlock];
    for (int64_t i = 0; i < some; ++i)
      codes[i] = uint8_t(mappedCodeOf(
          (absmax[size_t(at + i)] - offset) * inverse, kMapBounds));
    if (Status s = homes.write(program.tensors[stored.absmax], at, codes, some);
        !s)
      return s;
  }
  return homes.write(program.tensors[stored.nested], 0, nested.data(),
                     int64_t(nested.size()) * 4);
}

Status encodeBlocks(const StepProgram &program, const Homes &homes,
                    const TensorInfo &codes, const NumberSource &source) {
  const StoredInfo &stored = *codes.stored;
  const int64_t count = elementsOf(stored);
  std::vector<float> absmax(size_t(count / kBlock));
  std::vector<float> numbers(size_t(std::min(kNumbers, count)));
  std::vector<uint8_t> packed(numbers.size() / 2);
  for (int64_t first = 0; first < count; first += kNumbers) {
    const int64_t some = std::min(kNumbers, count - first);
    if (Status s = source(first, some, numbers.data()); !s)
      return s;
    if (!areFinite(numbers, some))
      return notFinite(codes);
    for (int64_t i = 0; i < some; i += kBlock)
      absmax[size_t((first + i) / kBlock)] =
          encodeBlock(numbers.data() + i, packed.data() + i / 2);
    if (Status s = homes.write(codes, first / 2, packed.data(), some / 2); !s)
      return s;
  }
  if (stored.nested >= 0)
    return nest(program, homes, stored, absmax);
  return homes.write(program.tensors[stored.absmax], 0, absmax.data(),
                     int64_t(absmax.size()) * 4);
}

/// A row's maximum comes before its codes: a row longer than a piece is read
/// twice.
Status encodeRows(const StepProgram &program, const Homes &homes,
                  const TensorInfo &codes, const NumberSource &source) {
  const StoredInfo &stored = *codes.stored;
  const int64_t rows = stored.dims[0];
  const int64_t columns = elementsOf(stored) / std::max<int64_t>(rows, 1);
  std::vector<float> numbers(size_t(std::min(kNumbers, columns)));
  std::vector<int8_t> found(numbers.size());
  std::vector<float> absmax(size_t(rows), 0.0f);
  auto read = [&](int64_t row, int64_t at, int64_t &some) {
    some = std::min(kNumbers, columns - at);
    return source(row * columns + at, some, numbers.data());
  };
  for (int64_t row = 0; row < rows; ++row) {
    float &most = absmax[size_t(row)];
    int64_t some = 0;
    for (int64_t at = 0; at < columns; at += kNumbers) {
      if (Status s = read(row, at, some); !s)
        return s;
      if (!areFinite(numbers, some))
        return notFinite(codes);
      for (int64_t i = 0; i < some; ++i)
        most = std::max(most, std::fabs(numbers[size_t(i)]));
    }
    const float factor = rowFactor(most);
    for (int64_t at = 0; at < columns; at += kNumbers) {
      if (columns > kNumbers)
        if (Status s = read(row, at, some); !s)
          return s;
      for (int64_t i = 0; i < some; ++i)
        found[size_t(i)] = rowCode(numbers[size_t(i)], factor);
      if (Status s = homes.write(codes, row * columns + at, found.data(), some);
          !s)
        return s;
    }
  }
  return homes.write(program.tensors[stored.absmax], 0, absmax.data(),
                     rows * 4);
}

//===----------------------------------------------------------------------===//
// Checkpoints of bitsandbytes
//===----------------------------------------------------------------------===//

/// A parameter of a file in codes, on its way to its home.
class Checkpoint {
public:
  Checkpoint(const StepProgram &program, const Homes &homes,
             const SafetensorsSet &file, const std::string &name,
             const TensorInfo &codes)
      : program(program), homes(homes), file(file), name(name), codes(codes),
        stored(*codes.stored) {}

  /// Codes and maxima by rows, as LLM.int8() has them.
  Status placeRows() const {
    if (!stored.byRows)
      return refused("is in 8 bits by rows, and the step was compiled for nf4");
    if (Status s =
            copy(name, codes, DType::I8, stored.dims, size_t(stored.rank));
        !s)
      return s;
    std::string maxima = name;
    const std::string end = "weight";
    if (maxima.size() >= end.size() &&
        maxima.compare(maxima.size() - end.size(), end.size(), end) == 0)
      maxima.resize(maxima.size() - end.size());
    return copy(maxima + "SCB", program.tensors[stored.absmax], DType::F32,
                stored.dims, 1);
  }

  Status placeBlocks() const {
    if (stored.byRows)
      return refused("is in 4 bits, and the step was compiled for int8");
    QuantState state;
    if (Status s = check(state); !s)
      return s;
    const bool isNested = file.find(name + ".nested_absmax") != nullptr;
    if (isNested != (stored.nested >= 0))
      return refused(isNested ? "has nested maxima: compile with --base nf4"
                              : "has maxima in f32: compile with --base "
                                "nf4:plain");
    const int64_t count = elementsOf(stored), blocks = count / kBlock;
    const int64_t packed[2] = {count / 2, 1};
    if (Status s = copy(name, codes, DType::U8, packed, 2); !s)
      return s;
    const TensorInfo &absmax = program.tensors[stored.absmax];
    if (Status s = copy(name + ".absmax", absmax,
                        isNested ? DType::U8 : DType::F32, &blocks, 1);
        !s || !isNested)
      return s;
    const TensorInfo &nested = program.tensors[stored.nested];
    const int64_t floats = nested.elements() - 1;
    if (Status s =
            copy(name + ".nested_absmax", nested, DType::F32, &floats, 1);
        !s)
      return s;
    const auto offset = float(state.offset);
    return homes.write(nested, floats * 4, &offset, 4);
  }

private:
  const StepProgram &program;
  const Homes &homes;
  const SafetensorsSet &file;
  const std::string &name;
  const TensorInfo &codes;
  const StoredInfo &stored;

  Status refused(const std::string &why) const {
    return {Code::BadInput, "'" + name + "' in '" + file.path() + "' " + why};
  }

  /// Checks that the codes have the meaning of the step's.
  Status check(QuantState &state) const {
    const SetTensor *text = file.find(name + kQuantState);
    constexpr int64_t kMostText = 4096;
    const int64_t bytes = text->end - text->begin;
    if (text->type != DType::U8 || bytes > kMostText)
      return refused("has no quant_state that can be read");
    std::string json(size_t(bytes), '\0');
    if (Status s = file.read(*text, 0, json.data(), bytes); !s)
      return s;
    if (const std::string fault = readQuantState(json, state); !fault.empty())
      return refused("has a bad quant_state: " + fault);
    if (state.type != "nf4" || state.block != kBlock ||
        (state.nestedBlock && state.nestedBlock != kNestedBlock))
      return refused(
          "is in '" + visible(state.type) + "' with blocks of " +
          std::to_string(state.block) + " and " +
          std::to_string(state.nestedBlock) +
          "; the step reads nf4 with blocks of 64, and of 256 maxima");
    if (state.shape.size() != size_t(stored.rank) ||
        !std::equal(state.shape.begin(), state.shape.end(), stored.dims))
      return refused("is " + shapeText(state.shape) + "; the step's is " +
                     shapeText(stored.dims, size_t(stored.rank)));
    const auto ours = levels();
    if (Status s = checkMap(".quant_map", ours.value, kLevels); !s)
      return s;
    if (!file.find(name + ".nested_absmax"))
      return Status::ok();
    if (!std::isfinite(float(state.offset)))
      return refused("has no nested_offset that is finite");
    const auto map = dynamicMap();
    return checkMap(".nested_quant_map", map.value, kMapped);
  }

  Status checkMap(const char *suffix, const float *wanted,
                  int64_t count) const {
    const SetTensor *tensor = file.find(name + suffix);
    std::vector<float> map(static_cast<size_t>(count));
    if (!tensor || tensor->type != DType::F32 ||
        tensor->end - tensor->begin != count * 4)
      return refused("has no " + std::string(suffix + 1) + " of " +
                     std::to_string(count) + " floats");
    if (Status s = file.read(*tensor, 0, map.data(), count * 4); !s)
      return s;
    if (!std::equal(map.begin(), map.end(), wanted))
      return refused("has another " + std::string(suffix + 1) + " than nf4");
    return Status::ok();
  }

  /// Copies a tensor of this type and shape to the beginning of `to`.
  Status copy(const std::string &from, const TensorInfo &to, DType type,
              const int64_t *dims, size_t rank) const {
    const SetTensor *tensor = file.find(from);
    if (!tensor)
      return {Code::BadInput, "'" + file.path() + "' has no '" + from + "'"};
    if (tensor->type != type ||
        !std::equal(tensor->shape.begin(), tensor->shape.end(), dims,
                    dims + rank))
      return {Code::BadInput,
              "'" + from + "' in '" + file.path() + "' is " +
                  nameOf(tensor->type) + shapeText(tensor->shape) +
                  "; the step reads " + nameOf(type) + shapeText(dims, rank)};
    int64_t at = 0;
    return eachFilePiece(file.files()[tensor->file], *tensor,
                         [&](const char *data, int64_t bytes) -> Status {
                           if (type == DType::F32 &&
                               !isFinite(type, data, bytes / 4))
                             return refused("has maxima that aren't finite");
                           const int64_t first = at;
                           at += bytes;
                           return homes.write(to, first, data, bytes);
                         });
  }
};

} // namespace

Status encodeFrozen(const StepProgram &program, const Homes &homes,
                    const TensorInfo &codes, const NumberSource &source) {
  return codes.stored->byRows ? encodeRows(program, homes, codes, source)
                              : encodeBlocks(program, homes, codes, source);
}

std::string frozenNameIn(const SafetensorsSet &file, const TensorInfo &codes) {
  if (file.find(codes.name))
    return codes.name;
  for (int32_t i = 0; i < codes.aliasCount; ++i)
    if (file.find(codes.aliases[i]))
      return codes.aliases[i];
  return "";
}

Status placeFrozen(const StepProgram &program, const Homes &homes,
                   const SafetensorsSet &file, const std::string &name,
                   const TensorInfo &codes) {
  const SetTensor &tensor = *file.find(name);
  const StoredInfo &stored = *codes.stored;
  const Checkpoint checkpoint(program, homes, file, name, codes);
  if (file.find(name + kQuantState))
    return checkpoint.placeBlocks();
  if (tensor.type == DType::I8)
    return checkpoint.placeRows();
  auto mismatch = [&](const std::string &its, const std::string &wanted) {
    return Status(Code::BadInput, "'" + name + "' is " + its + " in '" +
                                      file.path() + "' and " + wanted +
                                      " in the step");
  };
  if (tensor.shape.size() != size_t(stored.rank) ||
      !std::equal(tensor.shape.begin(), tensor.shape.end(), stored.dims))
    return mismatch(shapeText(tensor.shape),
                    shapeText(stored.dims, size_t(stored.rank)));
  if (!isPlainFloat(tensor.type))
    return mismatch(nameOf(tensor.type), stored.byRows ? "int8" : "nf4");
  const int64_t width = sizeOf(tensor.type);
  std::vector<char> piece;
  return encodeFrozen(
      program, homes, codes, [&](int64_t first, int64_t count, float *to) {
        piece.resize(size_t(count * width));
        if (Status s =
                file.read(tensor, first * width, piece.data(), count * width);
            !s)
          return s;
        for (int64_t i = 0; i < count; ++i)
          to[i] = floatAt(tensor.type, piece.data(), i);
        return Status::ok();
      });
}

} // namespace tmc::values
