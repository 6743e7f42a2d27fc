//===- Values.cpp - where a step's parameters come from and go to ---------===//
//
// Weights, random initialization, and checkpoints: the parts of Step that move
// parameters and states.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Storage.h"
#include "runtime/step/Normal.h"
#include "runtime/step/Safetensors.h"
#include "runtime/step/Step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace tmc {

namespace {

/// Bytes moved at a time, so that no copy of a large tensor is made.
constexpr int64_t kPieceBytes = 1 << 20;

/// FNV-1a: a tensor's own random stream, from its name alone.
uint32_t streamOf(const char *name) {
  uint32_t hash = 2166136261u;
  for (; *name; ++name)
    hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
  return hash;
}

/// The floats that are converted on their way between files and steps.
bool isPlainFloat(DType type) {
  return type == DType::F64 || type == DType::F32 || type == DType::F16 ||
         type == DType::BF16;
}

/// Element i of floats in a file.
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

/// Sends `count` floats to elements [first, first + count) of a tensor, rounded
/// to nearest where it holds narrower ones.
Status send(const Homes &homes, const TensorInfo &info, int64_t first,
            const float *from, int64_t count) {
  const int64_t at = first * sizeOf(info.type);
  auto sendAs = [&](auto type) {
    std::vector<decltype(type)> some(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      some[size_t(i)] = narrow<decltype(type)>(from[i]);
    return homes.write(info, at, some.data(), count * int64_t(sizeof type));
  };
  if (info.type == DType::BF16)
    return sendAs(bf16());
  if (info.type == DType::F16)
    return sendAs(f16());
  return homes.write(info, at, from, count * 4);
}

/// `count` plain floats in another type, rounded to nearest. False where a
/// finite one becomes infinite.
bool convert(DType from, const char *data, int64_t count, DType to,
             std::vector<char> &converted) {
  converted.resize(size_t(count * sizeOf(to)));
  bool holdsAll = true;
  auto convertTo = [&](auto like) {
    for (int64_t i = 0; i < count; ++i) {
      const float value = floatAt(from, data, i);
      decltype(like) stored;
      if constexpr (std::is_same_v<decltype(like), float>)
        stored = value;
      else
        stored = narrow<decltype(like)>(value);
      std::memcpy(converted.data() + i * int64_t(sizeof stored), &stored,
                  sizeof stored);
      holdsAll &= !std::isfinite(value) ||
                  std::isfinite(floatAt(to, converted.data(), i));
    }
  };
  if (to == DType::BF16)
    convertTo(bf16());
  else if (to == DType::F16)
    convertTo(f16());
  else
    convertTo(float());
  return holdsAll;
}

bool sameShape(const TensorInfo &info, const SafeTensor &tensor) {
  return size_t(info.rank) == tensor.shape.size() &&
         std::equal(tensor.shape.begin(), tensor.shape.end(), info.dims);
}

std::string shapeText(const int64_t *dims, size_t rank) {
  std::string text = "[";
  for (size_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

bool isValue(const TensorInfo &info) {
  return info.role == Role::Param || info.role == Role::State ||
         info.role == Role::Moment;
}

/// What all elements start as, where they start alike.
float startOf(const TensorInfo &info) {
  if (info.init == Init::Constant)
    return float(info.initValue);
  return info.init == Init::Ones ? 1.0f : 0.0f;
}

/// Calls f(first, count) for the pieces of `count` floats, on all of the
/// device's threads: what becomes of an element depends on its place alone. A
/// thread ends at its first error; one of them is returned.
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

/// Fills by the tensor's rule; Init::None fills with zeros.
Status fill(const Homes &homes, const TensorInfo &info, uint64_t seed) {
  const int64_t count = info.elements();
  if (!isPlainFloat(info.type) || info.type == DType::F64) { // Starts at zero.
    std::vector<char> zeros(size_t(std::min(kPieceBytes, info.bytes())));
    for (int64_t at = 0; at < info.bytes(); at += kPieceBytes)
      if (Status s = homes.write(info, at, zeros.data(),
                                 std::min(kPieceBytes, info.bytes() - at));
          !s)
        return s;
    return Status::ok();
  }
  const int64_t words[2] = {int64_t(seed), 0};
  const Philox philox(words, streamOf(info.name));
  return eachPiece(homes.device(), count, [&](int64_t at, int64_t some) {
    std::vector<float> piece(size_t(some), startOf(info));
    if (info.init == Init::Normal)
      normalNumbers(philox, uint64_t(at), some, float(info.initValue),
                    piece.data());
    return send(homes, info, at, piece.data(), some);
  });
}

bool holdsNan(const SafetensorsFile &file, const SafeTensor &tensor,
              int64_t count) {
  if (!isPlainFloat(tensor.type))
    return false;
  bool found = false;
  const int64_t size = sizeOf(tensor.type);
  for (int64_t at = 0; at < count && !found; at += kPieceBytes / size) {
    const int64_t end = std::min(count, at + kPieceBytes / size);
    for (int64_t i = at; i < end && !found; ++i)
      found = std::isnan(floatAt(tensor.type, file.data(tensor), i));
    file.release(tensor, at * size, (end - at) * size);
  }
  return found;
}

/// Copies one tensor of a file to its place, floats as the step has them. Of
/// the file a piece at a time is in memory.
Status place(const Homes &homes, const SafetensorsFile &file,
             const SafeTensor &tensor, const TensorInfo &info) {
  if (!sameShape(info, tensor))
    return {Code::BadInput,
            std::string("'") + info.name + "' is " +
                shapeText(tensor.shape.data(), tensor.shape.size()) + " in '" +
                file.path() + "' and " +
                shapeText(info.dims, size_t(info.rank)) + " in the step"};
  const char *from = file.data(tensor);
  if (tensor.type == info.type) {
    for (int64_t at = 0; at < info.bytes(); at += kPieceBytes) {
      const int64_t some = std::min(kPieceBytes, info.bytes() - at);
      if (Status s = homes.write(info, at, from + at, some); !s)
        return s;
      file.release(tensor, at, some);
    }
    return Status::ok();
  }
  if (!isPlainFloat(tensor.type) || !isPlainFloat(info.type) ||
      info.type == DType::F64)
    return {Code::BadInput, std::string("'") + info.name + "' is " +
                                nameOf(tensor.type) + " in '" + file.path() +
                                "' and " + nameOf(info.type) + " in the step"};
  const int64_t count = info.elements();
  std::vector<float> piece(size_t(std::min(kPieceBytes / 4, count)));
  for (int64_t at = 0; at < count; at += kPieceBytes / 4) {
    const int64_t some = std::min(kPieceBytes / 4, count - at);
    for (int64_t i = 0; i < some; ++i)
      piece[size_t(i)] = floatAt(tensor.type, from, at + i);
    if (Status s = send(homes, info, at, piece.data(), some); !s)
      return s;
    file.release(tensor, at * sizeOf(tensor.type), some * sizeOf(tensor.type));
  }
  return Status::ok();
}

std::string listNames(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 3; ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  if (names.size() > 3)
    text += " and " + std::to_string(names.size() - 3) + " more";
  return text;
}

} // namespace

/// The tensor of `file` that has one of the names of `info`, or null.
static const SafeTensor *tensorFor(const SafetensorsFile &file,
                                   const TensorInfo &info) {
  const SafeTensor *found = file.find(info.name);
  for (int32_t i = 0; i < info.aliasCount && !found; ++i)
    found = file.find(info.aliases[i]);
  return found;
}

/// The tensor of `file` that holds what isn't trained, or null.
static const SafeTensor *shipped(const SafetensorsFile &file,
                                 const TensorInfo &info) {
  return info.role == Role::Param && !info.trainable ? tensorFor(file, info)
                                                     : nullptr;
}

Status Step::startStates() {
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (isValue(info) && info.role != Role::Param && startOf(info) != 0)
      if (Status s = fill(homes(), info, 0); !s)
        return s;
  }
  return Status::ok();
}

Status Step::startMoments() {
  if (std::exchange(started_, true) || filled_)
    return Status::ok();
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (isValue(info) && info.role != Role::Param)
      if (Status s = fill(homes(), info, 0); !s)
        return s;
  }
  return Status::ok();
}

Status Step::roundCopies(const TensorInfo *weight) {
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &copy = program_.tensors[i];
    if (copy.role != Role::Copy)
      continue;
    const TensorInfo &from = program_.tensors[copy.copyOf];
    if (weight && weight != &from)
      continue;
    auto round = [&](int64_t first, int64_t count) {
      std::vector<float> piece(static_cast<size_t>(count));
      const Status read =
          homes().read(from, first * 4, piece.data(), count * 4);
      return read ? send(homes(), copy, first, piece.data(), count) : read;
    };
    if (Status s = eachPiece(*device_, copy.elements(), round); !s)
      return s;
  }
  return Status::ok();
}

Status Step::initRandom(uint64_t seed, const std::string &beside) {
  SafetensorsFile file;
  if (!beside.empty())
    if (Status s = SafetensorsFile::open(beside, file); !s)
      return s;
  std::vector<std::string> without;
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (info.role == Role::Param && info.init == Init::None &&
        !shipped(file, info))
      without.push_back(info.name);
  }
  if (!without.empty())
    return {Code::BadInput, "no rule says how " + listNames(without) +
                                " start; their values must come from a "
                                "weights file"};
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (const SafeTensor *tensor = shipped(file, info)) {
      if (Status s = place(homes(), file, *tensor, info); !s)
        return s;
    } else if (isValue(info)) {
      if (Status s = fill(homes(), info, seed); !s)
        return s;
    }
  }
  return finishValues();
}

Status Step::load(const std::string &path, const std::string &beside) {
  SafetensorsFile file, other;
  if (Status s = SafetensorsFile::open(path, file); !s)
    return s;
  if (!beside.empty())
    if (Status s = SafetensorsFile::open(beside, other); !s)
      return s;
  std::vector<std::string> missing;
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (info.role == Role::Param && !tensorFor(file, info) &&
        !shipped(other, info))
      missing.push_back(info.name);
  }
  if (!missing.empty())
    return {Code::BadInput, "'" + path + "' has no " + listNames(missing) +
                                "; it isn't of this model"};
  std::vector<std::string> broken;
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    const SafeTensor *tensor = tensorFor(file, info);
    if (info.role == Role::Param && tensor && sameShape(info, *tensor) &&
        holdsNan(file, *tensor, info.elements()))
      broken.push_back(info.name);
  }
  if (!broken.empty())
    return {Code::BadInput, "'" + path + "' holds NaN in " + listNames(broken)};
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (!isValue(info))
      continue;
    const SafeTensor *tensor =
        info.role == Role::Moment ? nullptr : tensorFor(file, info);
    const SafeTensor *second = tensor ? nullptr : shipped(other, info);
    if (!tensor && !second) {
      if (Status s = fill(homes(), info, 0); !s)
        return s;
      continue;
    }
    if (Status s = tensor ? place(homes(), file, *tensor, info)
                          : place(homes(), other, *second, info);
        !s)
      return s;
  }
  steps_ = 0;
  return finishValues();
}

Status Step::finishValues() {
  if (Status s = roundCopies(); !s)
    return s;
  filled_ = true;
  lost_ = Status::ok();
  return Status::ok();
}

/// A tensor and a name of it.
using Named = std::pair<const char *, const TensorInfo *>;

/// Writes tensors one after the other, plain floats in `type` where one is
/// given, rounded to nearest.
static Status writeFile(const Homes &homes, const std::string &directory,
                        const char *name, const std::vector<Named> &infos,
                        std::optional<DType> type,
                        const std::map<std::string, std::string> &metadata) {
  std::vector<std::pair<std::string, SafeTensor>> tensors;
  for (const auto &[called, info] : infos) {
    SafeTensor tensor;
    tensor.type = type && isPlainFloat(info->type) ? *type : info->type;
    tensor.shape.assign(info->dims, info->dims + info->rank);
    tensors.emplace_back(called, tensor);
  }
  AtomicFile out;
  if (Status s = out.create(directory, name); !s)
    return s;
  const std::string header = safetensorsHeader(tensors, metadata);
  if (Status s = out.write(header.data(), int64_t(header.size())); !s)
    return s;
  std::vector<char> piece(static_cast<size_t>(kPieceBytes)), converted;
  for (size_t i = 0; i < infos.size(); ++i) {
    const TensorInfo &info = *infos[i].second;
    for (int64_t at = 0; at < info.bytes(); at += kPieceBytes) {
      const int64_t some = std::min(kPieceBytes, info.bytes() - at);
      if (Status s = homes.read(info, at, piece.data(), some); !s)
        return s;
      const std::vector<char> *bytes = &piece;
      int64_t count = some;
      if (tensors[i].second.type != info.type) {
        if (!convert(info.type, piece.data(), some / sizeOf(info.type),
                     tensors[i].second.type, converted))
          return {Code::BadInput,
                  std::string("'") + info.name + "' has numbers that " +
                      nameOf(tensors[i].second.type) + " can't hold; '" + name +
                      "' isn't written"};
        bytes = &converted;
        count = int64_t(converted.size());
      }
      if (Status s = out.write(bytes->data(), count); !s)
        return s;
    }
  }
  return out.commit();
}

Status Step::save(const std::string &directory,
                  const std::map<std::string, std::string> &extra) {
  if (!lost_)
    return lost_;
  if (!filled_)
    return {Code::Usage, "there is nothing to save yet"};
  std::vector<Named> infos;
  for (int64_t i = 0; i < program_.tensorCount; ++i)
    if (const TensorInfo &info = program_.tensors[i]; isValue(info))
      infos.emplace_back(info.name, &info);
  std::map<std::string, std::string> metadata = extra;
  metadata["format"] = "tmc-checkpoint-1";
  metadata["model"] = program_.model;
  metadata["fingerprint"] = program_.fingerprint;
  metadata["step"] = std::to_string(steps_);
  metadata["seed"] = std::to_string(options_.seed);
  return writeFile(homes(), directory, kCheckpointFile, infos, std::nullopt,
                   metadata);
}

Status Step::saveWeights(const std::string &directory,
                         std::optional<DType> type) {
  if (!lost_)
    return lost_;
  if (!filled_)
    return {Code::Usage, "there is nothing to save yet"};
  std::vector<Named> infos;
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (info.role != Role::Param)
      continue;
    infos.emplace_back(info.name, &info);
    // PyTorch's state_dict has a tied weight under each of its names.
    for (int32_t k = 0; k < info.aliasCount; ++k)
      infos.emplace_back(info.aliases[k], &info);
  }
  // transformers opens only files that say so.
  return writeFile(homes(), directory, kModelFile, infos, type,
                   {{"format", "pt"}});
}

Status Step::resume(const std::string &directory,
                    std::map<std::string, std::string> *extra) {
  SafetensorsFile file;
  const std::string path = directory + "/" + kCheckpointFile;
  if (Status s = SafetensorsFile::open(path, file); !s)
    return s;
  auto meta = [&](const char *key) -> std::string {
    auto found = file.metadata().find(key);
    return found == file.metadata().end() ? "" : found->second;
  };
  if (meta("format") != "tmc-checkpoint-1")
    return {Code::BadInput, "'" + path + "' isn't a checkpoint"};
  if (meta("fingerprint") != program_.fingerprint) {
    for (int64_t i = 0; i < program_.tensorCount; ++i) {
      const TensorInfo &info = program_.tensors[i];
      const SafeTensor *tensor = isValue(info) ? file.find(info.name) : nullptr;
      if (tensor && tensor->type != info.type && sameShape(info, *tensor))
        return {Code::BadInput,
                "'" + path + "' is of a step with other types: '" + info.name +
                    "' is " + nameOf(tensor->type) + " there and " +
                    nameOf(info.type) +
                    " in this step; resume it with a step of its precision and "
                    "optimizer, or begin anew from it with --weights"};
    }
    return {Code::BadInput,
            "'" + path + "' is a checkpoint of another model ('" +
                meta("model") + "'); this step is of '" + program_.model + "'"};
  }
  auto number = [&](const char *key, uint64_t &value) {
    const std::string text = meta(key);
    value = 0;
    for (char c : text)
      if (c < '0' || c > '9' ||
          __builtin_mul_overflow(value, uint64_t(10), &value) ||
          __builtin_add_overflow(value, uint64_t(c - '0'), &value))
        return false;
    return !text.empty();
  };
  uint64_t step, seed;
  if (!number("step", step) || step > uint64_t(INT64_MAX) ||
      !number("seed", seed))
    return {Code::BadInput, "'" + path + "' has no sound step and seed"};
  // All is checked before anything is changed.
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (!isValue(info))
      continue;
    const SafeTensor *tensor = file.find(info.name);
    if (!tensor || tensor->type != info.type || !sameShape(info, *tensor))
      return {Code::BadInput, "'" + path + "' is a checkpoint of another " +
                                  "model: '" + info.name + "' is " +
                                  (tensor ? "of another shape" : "missing")};
  }
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (isValue(info))
      if (Status s = place(homes(), file, *file.find(info.name), info); !s)
        return s;
  }
  steps_ = int64_t(step);
  options_.seed = seed;
  if (Status s = finishValues(); !s)
    return s;
  if (extra)
    *extra = file.metadata();
  return Status::ok();
}

} // namespace tmc
