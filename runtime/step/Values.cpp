//===- Values.cpp - loads and initializes a step's values -----------------===//
//
// Weights and random initialization; checkpoints are in Checkpoint.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/step/Values.h"
#include "runtime/kernels/Storage.h"
#include "runtime/step/FrozenValues.h"
#include "runtime/step/Normal.h"
#include "runtime/step/Safetensors.h"
#include "runtime/step/Step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

namespace tmc {

using namespace values;

namespace {

/// FNV-1a of a tensor's name: the number of its random stream.
uint32_t streamOf(const char *name) {
  uint32_t hash = 2166136261u;
  for (; *name; ++name)
    hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
  return hash;
}

/// Writes `count` floats to elements [first, first + count) of a tensor,
/// rounded to nearest if its type is narrower; `isHeld`: of its piece.
Status send(const Homes &homes, const TensorInfo &info, int64_t first,
            const float *from, int64_t count, bool isHeld = false) {
  const int64_t at = first * sizeOf(info.type);
  auto write = [&](const void *data, int64_t bytes) {
    return isHeld ? homes.writeHeld(info, at, data, bytes)
                  : homes.write(info, at, data, bytes);
  };
  auto sendAs = [&](auto type) {
    std::vector<decltype(type)> some(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      some[size_t(i)] = narrow<decltype(type)>(from[i]);
    return write(some.data(), count * int64_t(sizeof type));
  };
  if (info.type == DType::BF16)
    return sendAs(bf16());
  if (info.type == DType::F16)
    return sendAs(f16());
  return write(from, count * 4);
}

/// The initial value of all elements, for rules with one constant value.
float startOf(const TensorInfo &info) {
  if (info.init == Init::Constant)
    return float(info.initValue);
  return info.init == Init::Ones ? 1.0f : 0.0f;
}

/// Calls f(first, count) for pieces of the `count` floats, on all threads of
/// the device. The result for an element must depend on its index alone. A
/// thread stops at its first error; one of the errors is returned.
template <typename F> Status eachPiece(Device &device, int64_t count, F &&f) {
  constexpr int64_t pieceCount = kPieceBytes / 4;
  std::mutex mutex;
  Status status;
  auto every = [&](int64_t first, int64_t step) {
    for (int64_t at = first * pieceCount; at < count; at += step * pieceCount)
      if (Status s = f(at, std::min(pieceCount, count - at)); !s) {
        std::lock_guard lock(mutex);
        status = s;
        return;
      }
  };
  const int64_t pieces = (count + pieceCount - 1) / pieceCount;
  const int64_t threads = std::min<int64_t>(device.threads(), pieces);
  std::vector<std::thread> others;
  for (int64_t i = 1; i < threads; ++i)
    others.emplace_back(every, i, threads);
  every(0, std::max<int64_t>(threads, 1));
  for (std::thread &other : others)
    other.join();
  return status;
}

/// Writes numbers [at, at + some) of a parameter by its rule.
void draw(const TensorInfo &info, const Philox &philox, int64_t at,
          int64_t some, float *to) {
  std::fill_n(to, some, startOf(info));
  if (info.init == Init::Normal)
    normalNumbers(philox, uint64_t(at), some, float(info.initValue), to);
  if (info.init == Init::Uniform)
    uniformNumbers(philox, uint64_t(at), some, float(info.initValue), to);
}

/// Fills a tensor by its own rule; Init::None gives zeros. Maxima come with
/// their codes.
Status fill(const StepProgram &program, const Homes &homes,
            const TensorInfo &info, uint64_t seed) {
  const int64_t count = info.elements();
  if (info.maximaOf >= 0)
    return Status::ok();
  const int64_t drawn[2] = {int64_t(seed), 0};
  const Philox numbers(drawn, streamOf(info.name));
  if (info.stored)
    return encodeFrozen(
        program, homes, info, [&](int64_t at, int64_t some, float *to) {
          // A draw begins at a multiple of four.
          const int64_t before = at % 4;
          std::vector<float> piece(size_t(some + before));
          draw(info, numbers, at - before, some + before, piece.data());
          std::copy(piece.begin() + before, piece.end(), to);
          return Status::ok();
        });
  if (!isPlainFloat(info.type) || info.type == DType::F64) { // Starts at zero.
    std::vector<char> zeros(size_t(std::min(kPieceBytes, info.bytes())));
    for (int64_t at = 0; at < info.bytes(); at += kPieceBytes)
      if (Status s = homes.write(info, at, zeros.data(),
                                 std::min(kPieceBytes, info.bytes() - at));
          !s)
        return s;
    return Status::ok();
  }
  return eachPiece(homes.device(), count, [&](int64_t at, int64_t some) {
    std::vector<float> piece(static_cast<size_t>(some));
    draw(info, numbers, at, some, piece.data());
    return send(homes, info, at, piece.data(), some);
  });
}

Status findNan(const SafetensorsFile &file, const SafeTensor &tensor,
               bool &found) {
  found = false;
  if (!isPlainFloat(tensor.type))
    return Status::ok();
  return eachFilePiece(file, tensor, [&](const char *data, int64_t bytes) {
    const int64_t count = bytes / sizeOf(tensor.type);
    for (int64_t i = 0; i < count && !found; ++i)
      found = std::isnan(floatAt(tensor.type, data, i));
    return Status::ok();
  });
}

} // namespace

namespace values {

float floatAt(DType type, const char *data, int64_t i) {
  auto read = [&](auto value) {
    std::memcpy(&value, data + i * int64_t(sizeof value), sizeof value);
    return value;
  };
  switch (type) {
  case DType::F64:
    return float(read(double()));
  case DType::F16:
    return widen(read(f16()));
  case DType::BF16:
    return widen(read(bf16()));
  default:
    return read(float());
  }
}

/// Whether no element has an exponent of all ones.
template <typename Bits>
static bool isFiniteBits(const char *data, int64_t count, Bits exponent) {
  bool isGood = true;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * int64_t(sizeof bits), sizeof bits);
    isGood &= (bits & exponent) != exponent;
  }
  return isGood;
}

bool isFinite(DType type, const char *data, int64_t count) {
  switch (type) {
  case DType::F64:
    return isFiniteBits<uint64_t>(data, count, uint64_t(0x7ff) << 52);
  case DType::F16:
    return isFiniteBits<uint16_t>(data, count, 0x7c00);
  case DType::BF16:
    return isFiniteBits<uint16_t>(data, count, 0x7f80);
  default:
    return isFiniteBits<uint32_t>(data, count, 0x7f800000);
  }
}

bool sameShape(const TensorInfo &info, const SafeTensor &tensor) {
  return size_t(info.rank) == tensor.shape.size() &&
         std::equal(tensor.shape.begin(), tensor.shape.end(), info.dims);
}

Status place(const Homes &homes, const SafetensorsFile &file,
             const SafeTensor &tensor, const TensorInfo &info) {
  if (!sameShape(info, tensor))
    return {Code::BadInput,
            std::string("'") + info.name + "' is " + shapeText(tensor.shape) +
                " in '" + file.path() + "' and " +
                shapeText(info.dims, size_t(info.rank)) + " in the step"};
  const bool isSame = tensor.type == info.type && !tensor.isUnsigned;
  if (!isSame && (!isPlainFloat(tensor.type) || !isPlainFloat(info.type) ||
                  info.type == DType::F64))
    return {Code::BadInput, std::string("'") + info.name + "' is " +
                                nameOf(tensor.type) + " in '" + file.path() +
                                "' and " + nameOf(info.type) + " in the step"};
  int64_t at = 0; // bytes of elements in the step's type
  std::vector<float> floats;
  return eachFilePiece(file, tensor, [&](const char *data, int64_t bytes) {
    const int64_t count = bytes / sizeOf(tensor.type);
    const int64_t first = at / sizeOf(info.type);
    at += count * sizeOf(info.type);
    if (isSame)
      return homes.write(info, first * sizeOf(info.type), data, bytes);
    floats.resize(size_t(count));
    for (int64_t i = 0; i < count; ++i)
      floats[size_t(i)] = floatAt(tensor.type, data, i);
    return send(homes, info, first, floats.data(), count);
  });
}

std::string listNames(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 3; ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  if (names.size() > 3)
    text += " and " + std::to_string(names.size() - 3) + " more";
  return text;
}

Status startStates(const StepProgram &program, const Homes &homes) {
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    if (info.shard && info.shardFrom == 0)
      if (Status s = homes.clearShard(info); !s)
        return s;
    if (isValue(info) && info.role != Role::Param && startOf(info) != 0)
      if (Status s = fill(program, homes, info, 0); !s)
        return s;
  }
  return Status::ok();
}

Status startOptimizer(const StepProgram &program, const Homes &homes) {
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    if (isValue(info) && info.role != Role::Param)
      if (Status s = fill(program, homes, info, 0); !s)
        return s;
  }
  return Status::ok();
}

Status roundCopies(const StepProgram &program, const Homes &homes,
                   const TensorInfo *weight) {
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &copy = program.tensors[i];
    if (copy.role != Role::Copy)
      continue;
    const TensorInfo &from = program.tensors[copy.copyOf];
    if (weight && weight != &from)
      continue;
    auto round = [&](int64_t first, int64_t count) {
      std::vector<float> piece(static_cast<size_t>(count));
      const Status read =
          homes.readHeld(from, first * 4, piece.data(), count * 4);
      return read ? send(homes, copy, first, piece.data(), count,
                         /*isHeld=*/true)
                  : read;
    };
    // A copy is in the same shards as its weight, or it is whole, and then all
    // ranks read the weight together.
    if (from.shard && !copy.shard) {
      std::vector<float> piece(
          size_t(std::min(kPieceBytes / 4, from.elements())));
      for (int64_t at = 0; at < from.elements(); at += kPieceBytes / 4) {
        const int64_t some = std::min(kPieceBytes / 4, from.elements() - at);
        if (Status s = homes.read(from, at * 4, piece.data(), some * 4); !s)
          return s;
        if (Status s = send(homes, copy, at, piece.data(), some); !s)
          return s;
      }
      continue;
    }
    const int64_t first = homes.heldBytes(from).first / 4;
    const int64_t held = homes.heldBytes(from).second / 4 - first;
    auto roundHeld = [&](int64_t at, int64_t count) {
      return round(first + at, count);
    };
    if (Status s = eachPiece(homes.device(), held, roundHeld); !s)
      return s;
  }
  return Status::ok();
}

Status checkParams(const StepProgram &program, const std::vector<bool> &given) {
  std::vector<std::string> missing;
  int64_t count = 0;
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    if (info.role != Role::Param)
      continue;
    ++count;
    if (!given[size_t(i)])
      missing.push_back(info.name);
  }
  if (missing.empty())
    return Status::ok();
  const bool hasAny = int64_t(missing.size()) < count;
  return {Code::Usage,
          (hasAny ? listNames(missing) : std::string("the parameters")) +
              (hasAny && missing.size() == 1
                   ? " has no value yet: load or initialize it first"
                   : " have no values yet: load or initialize them first")};
}

Status checkInputs(const StepProgram &program, const std::vector<bool> &given) {
  std::vector<std::string> missing;
  for (int64_t i = 0; i < program.tensorCount; ++i)
    if (program.tensors[i].feed == Feed::Data && !given[size_t(i)])
      missing.push_back(program.tensors[i].name);
  if (missing.empty())
    return Status::ok();
  return {Code::Usage, listNames(missing) +
                           (missing.size() == 1 ? " was" : " were") +
                           " never written: a step takes its inputs before it "
                           "runs"};
}

Status placeOrEncode(const StepProgram &program, const Homes &homes,
                     const SafetensorsSet &file, const SetTensor &tensor,
                     const TensorInfo &info) {
  return info.stored
             ? placeFrozen(program, homes, file, frozenNameIn(file, info), info)
             : place(homes, file.files()[tensor.file], tensor, info);
}

} // namespace values

/// The tensor of `file` for a parameter that isn't trained, or null.
static const SetTensor *shipped(const SafetensorsSet &file,
                                const TensorInfo &info) {
  return info.role == Role::Param && !info.trainable ? tensorFor(file, info)
                                                     : nullptr;
}

Status Step::initRandom(uint64_t seed, const std::string &beside) {
  SafetensorsSet file;
  if (!beside.empty())
    if (Status s = SafetensorsSet::open(beside, file); !s)
      return s;
  // A parameter that isn't trained keeps its value if it has one.
  auto stays = [&](int64_t i) {
    const TensorInfo &info = program_.tensors[i];
    return info.role == Role::Param && !info.trainable && given_[size_t(i)];
  };
  std::vector<std::string> without;
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (info.role == Role::Param && info.init == Init::None &&
        info.maximaOf < 0 && !stays(i) && !shipped(file, info))
      without.push_back(info.name);
  }
  if (!without.empty())
    return {Code::BadInput, "no rule says how " + listNames(without) +
                                " start; their values must come from a "
                                "weights file"};
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (stays(i) || info.maximaOf >= 0)
      continue;
    if (const SetTensor *tensor = shipped(file, info)) {
      if (Status s = placeOrEncode(program_, homes(), file, *tensor, info); !s)
        return s;
    } else if (isValue(info)) {
      if (Status s = fill(program_, homes(), info, seed); !s)
        return s;
    }
  }
  return finishValues();
}

/// The parameters that are in neither file and that no rule starts.
static std::vector<std::string> lackingIn(const StepProgram &program,
                                          const SafetensorsSet &file,
                                          const SafetensorsSet &other) {
  std::vector<std::string> missing;
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    if (info.role == Role::Param && info.maximaOf < 0 && !info.isAdapter &&
        !tensorFor(file, info) && !shipped(other, info))
      missing.push_back(info.name);
  }
  return missing;
}

Status values::findLacking(const StepProgram &program, const std::string &path,
                           std::vector<std::string> &names) {
  SafetensorsSet file;
  if (Status s = SafetensorsSet::open(path, file); !s)
    return s;
  names = lackingIn(program, file, {});
  return Status::ok();
}

Status checkValues(const Step &step) {
  return step.lost_ ? checkParams(step.program_, step.given_) : step.lost_;
}

Status Step::load(const std::string &path, const std::string &beside,
                  uint64_t seed) {
  SafetensorsSet file, other;
  if (Status s = SafetensorsSet::open(path, file); !s)
    return s;
  for (const SafetensorsFile &each : file.files())
    if (Status s = checkSum(each); !s)
      return s;
  if (!beside.empty())
    if (Status s = SafetensorsSet::open(beside, other); !s)
      return s;
  const std::vector<std::string> missing = lackingIn(program_, file, other);
  if (!missing.empty())
    return {Code::BadInput, "'" + path + "' has no " + listNames(missing) +
                                "; it isn't of this model"};
  std::vector<std::string> broken;
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    const SetTensor *tensor = tensorFor(file, info);
    bool hasNan = false;
    if (info.role == Role::Param && tensor && sameShape(info, *tensor))
      if (Status s = findNan(file.files()[tensor->file], *tensor, hasNan); !s)
        return s;
    if (hasNan)
      broken.push_back(info.name);
  }
  if (!broken.empty())
    return {Code::BadInput, "'" + path + "' holds NaN in " + listNames(broken)};
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (!isValue(info) || info.maximaOf >= 0)
      continue;
    const SetTensor *tensor =
        info.role == Role::Moment ? nullptr : tensorFor(file, info);
    const SetTensor *second = tensor ? nullptr : shipped(other, info);
    if (!tensor && !second) {
      if (Status s = fill(program_, homes(), info, info.isAdapter ? seed : 0);
          !s)
        return s;
      continue;
    }
    const SafetensorsSet &from = tensor ? file : other;
    if (Status s = placeOrEncode(program_, homes(), from,
                                 tensor ? *tensor : *second, info);
        !s)
      return s;
  }
  steps_ = 0;
  batches_ = 0;
  skipped_ = 0;
  return finishValues();
}

Status Step::finishValues() {
  if (Status s = roundCopies(program_, homes()); !s)
    return s;
  for (int64_t i = 0; i < program_.tensorCount; ++i)
    if (isValue(program_.tensors[i]))
      given_[size_t(i)] = true;
  started_ = true;
  figures_.forget();
  lost_ = Status::ok();
  return Status::ok();
}

} // namespace tmc
