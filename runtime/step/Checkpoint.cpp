//===- Checkpoint.cpp - files that a step writes --------------------------===//
//
// Checkpoints, and files of the model's values alone. Both are safetensors
// files. A new file replaces an older one completely or not at all.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Names.h"
#include "runtime/kernels/Storage.h"
#include "runtime/step/AdapterFile.h"
#include "runtime/step/Safetensors.h"
#include "runtime/step/Step.h"
#include "runtime/step/Values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>

namespace tmc {

using namespace values;

namespace {

/// The second format has a checksum.
constexpr const char *kFormat = "tmc-checkpoint-2";
constexpr const char *kFormatWithoutSum = "tmc-checkpoint-1";
constexpr const char *kSumKey = "checksum";
/// The text in a header before the digits of the checksum.
constexpr const char *kSumText = "\"checksum\":\"";
constexpr size_t kSumDigits = 16;
/// For each parameter that isn't trained, a line with the sum of samples of its
/// bytes, a blank and its name.
constexpr const char *kBaseKey = "base";
/// The samples of an epoch, and the seed of a random order.
constexpr const char *kSamplesKey = "data_samples";
constexpr const char *kShuffleKey = "data_shuffle";
/// The loss of the evaluation that a checkpoint was saved for.
constexpr const char *kLossKey = "eval_loss";

/// The largest count of steps or batches in a checkpoint: no run takes as many,
/// and a double is exact up to here.
constexpr uint64_t kMostSteps = uint64_t(1) << 53;

/// The checksum of a file covers its header (with zeros for the checksum's own
/// digits) and the pieces of its tensors, in order.
class FileSum {
public:
  void add(const void *data, int64_t bytes) {
    sum_ = std::rotl(sum_, 7) * 0x9e3779b97f4a7c15u ^ checksumOf(data, bytes);
  }
  uint64_t get() const { return sum_; }
  std::string digits() const {
    char text[kSumDigits + 1];
    std::snprintf(text, sizeof text, "%016llx",
                  static_cast<unsigned long long>(sum_));
    return text;
  }

private:
  uint64_t sum_ = 0;
};

/// A sum of the type, the shape and samples of a tensor, as digits: four pieces
/// of at most 1 KiB, from the first bytes to the last.
Status sampleSum(const Homes &homes, const TensorInfo &info,
                 std::string &digits) {
  constexpr int64_t kPieces = 4, kSampleBytes = 1024;
  FileSum sum;
  const int64_t type = int64_t(info.type);
  sum.add(&type, sizeof type);
  sum.add(info.dims, info.rank * int64_t(sizeof info.dims[0]));
  const int64_t bytes = std::min(kSampleBytes, info.bytes());
  const int64_t elements = (info.bytes() - bytes) / sizeOf(info.type);
  std::vector<char> piece(static_cast<size_t>(bytes));
  for (int64_t i = 0; i < kPieces; ++i) {
    const int64_t at = elements / (kPieces - 1) * i * sizeOf(info.type);
    const int64_t first = i + 1 == kPieces ? info.bytes() - bytes : at;
    if (Status s = homes.read(info, first, piece.data(), bytes); !s)
      return s;
    sum.add(piece.data(), bytes);
  }
  digits = sum.digits();
  return Status::ok();
}

/// Lines for the base's parameters.
Status describeBase(const StepProgram &program, const Homes &homes,
                    std::string &lines) {
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    if (!isBase(info))
      continue;
    std::string digits;
    if (Status s = sampleSum(homes, info, digits); !s)
      return s;
    lines += digits + " " + info.name + "\n";
  }
  return Status::ok();
}

/// Converts `count` plain floats to another type, rounded to nearest. False if
/// a finite value becomes infinite.
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

/// A tensor under one of its names.
struct Named {
  std::string name;
  const TensorInfo *info;
};

/// A tensor that is copied from another file.
struct Passed {
  std::string name;
  SafeTensor tensor;
  int64_t added = 0; // added to a count
};

struct Contents {
  std::vector<Named> tensors;
  SafetensorsFile beside;
  std::vector<Passed> passed; // of `beside`
  std::optional<DType> type;  // of plain floats; none: the step's type
  std::map<std::string, std::string> metadata;
  bool hasSum = false;
  int64_t step = 0; // for messages
};

/// Collects the `names` whose tensors are finite in the existing file.
Status finiteIn(const std::string &path, const std::vector<std::string> &names,
                std::vector<std::string> &finite) {
  SafetensorsFile old;
  if (!SafetensorsFile::open(path, old))
    return Status::ok(); // Nothing of value is replaced.
  for (const std::string &name : names) {
    const SafeTensor *tensor = old.find(name);
    if (!tensor || !isPlainFloat(tensor->type))
      continue;
    bool isGood = true;
    if (Status s = eachFilePiece(old, *tensor,
                                 [&](const char *data, int64_t bytes) {
                                   isGood &=
                                       isFinite(tensor->type, data,
                                                bytes / sizeOf(tensor->type));
                                   return Status::ok();
                                 });
        !s)
      return s;
    if (isGood)
      finite.push_back(name);
  }
  return Status::ok();
}

/// Whether a step may have produced a non-finite value here.
bool isMade(const TensorInfo &info) {
  return info.role != Role::Param || info.trainable;
}

/// Writes the tensors in order. A non-finite value never replaces a finite one
/// of the existing file. All ranks read, and one of them writes.
Status writeFile(const Homes &homes, const std::string &directory,
                 const char *name, const Contents &contents) {
  std::vector<std::pair<std::string, SafeTensor>> tensors;
  for (const Named &named : contents.tensors) {
    SafeTensor tensor;
    tensor.type = contents.type && isPlainFloat(named.info->type)
                      ? *contents.type
                      : named.info->type;
    tensor.shape.assign(named.info->dims, named.info->dims + named.info->rank);
    tensors.emplace_back(named.name, tensor);
  }
  for (const Passed &passed : contents.passed) {
    tensors.emplace_back(passed.name, passed.tensor);
    if (contents.type && isPlainFloat(passed.tensor.type))
      tensors.back().second.type = *contents.type;
  }
  std::map<std::string, std::string> metadata = contents.metadata;
  if (contents.hasSum)
    metadata[kSumKey] = std::string(kSumDigits, '0');
  AtomicFile out(homes.writesFiles());
  if (Status s = out.create(directory, name); !s)
    return s;
  FileSum sum;
  auto write = [&](const char *data, int64_t bytes) {
    if (contents.hasSum)
      sum.add(data, bytes);
    return out.write(data, bytes);
  };
  const std::string header = safetensorsHeader(tensors, metadata);
  if (Status s = write(header.data(), int64_t(header.size())); !s)
    return s;
  std::vector<char> piece(static_cast<size_t>(kPieceBytes)), converted;
  auto writeAs = [&](DType to, DType from, const char *data, int64_t bytes,
                     const std::string &tensor) -> Status {
    if (to == from)
      return write(data, bytes);
    if (!convert(from, data, bytes / sizeOf(from), to, converted))
      return {Code::BadInput, "'" + tensor + "' has numbers that " +
                                  nameOf(to) + " can't hold; '" + name +
                                  "' isn't written"};
    return write(converted.data(), int64_t(converted.size()));
  };
  std::vector<std::string> broken;
  for (size_t i = 0; i < contents.tensors.size(); ++i) {
    const TensorInfo &info = *contents.tensors[i].info;
    const DType type = tensors[i].second.type;
    bool isGood = true;
    for (int64_t at = 0; at < info.bytes(); at += kPieceBytes) {
      const int64_t some = std::min(kPieceBytes, info.bytes() - at);
      const int64_t count = some / sizeOf(info.type);
      if (Status s = homes.read(info, at, piece.data(), some); !s)
        return s;
      if (isPlainFloat(info.type) && isMade(info))
        isGood &= isFinite(info.type, piece.data(), count);
      if (Status s = writeAs(type, info.type, piece.data(), some,
                             contents.tensors[i].name);
          !s)
        return s;
    }
    if (!isGood)
      broken.push_back(contents.tensors[i].name);
  }
  for (size_t i = 0; i < contents.passed.size(); ++i) {
    const Passed &passed = contents.passed[i];
    const DType type = tensors[contents.tensors.size() + i].second.type;
    auto pass = [&](char *data, int64_t bytes) {
      int64_t count;
      if (passed.added && bytes == sizeof count) {
        std::memcpy(&count, data, sizeof count);
        count += passed.added;
        std::memcpy(data, &count, sizeof count);
      }
      return writeAs(type, passed.tensor.type, data, bytes, passed.name);
    };
    if (Status s = eachFilePiece(contents.beside, passed.tensor, pass); !s)
      return s;
  }
  const std::string path = directory + "/" + name;
  std::vector<std::string> lost;
  if (!broken.empty())
    if (Status s = finiteIn(path, broken, lost); !s)
      return s;
  if (!lost.empty())
    return {Code::BadInput,
            listNames(lost) + (lost.size() == 1 ? " isn't" : " aren't") +
                " finite after step " + std::to_string(contents.step) + "; '" +
                path + "' is, and stays as it was"};
  if (contents.hasSum) {
    const size_t at = header.find(kSumText) + std::strlen(kSumText);
    const std::string digits = sum.digits();
    if (Status s = out.rewrite(int64_t(at), digits.data(), kSumDigits); !s)
      return s;
  }
  return out.commit();
}

} // namespace

/// A file without a checksum has another origin or an older format.
Status values::checkSum(const SafetensorsFile &file) {
  auto of = [&](const char *key) -> std::string {
    auto found = file.metadata().find(key);
    return found == file.metadata().end() ? "" : found->second;
  };
  if (of("format") != kFormat)
    return Status::ok();
  auto damaged = [&] {
    return Status(Code::BadInput,
                  "'" + file.path() +
                      "' is damaged: its bytes don't have its checksum");
  };
  std::vector<std::pair<int64_t, const SafeTensor *>> tensors;
  int64_t headerBytes = file.file().bytes();
  for (const auto &[name, tensor] : file.tensors()) {
    headerBytes = std::min(headerBytes, file.offset(tensor));
    tensors.emplace_back(tensor.begin, &tensor);
  }
  // Empty tensors have no pieces, so their order is free.
  std::sort(tensors.begin(), tensors.end());
  std::string header(size_t(headerBytes), '\0');
  if (Status s = file.file().read(0, header.data(), headerBytes); !s)
    return s;
  const size_t found = header.find(kSumText);
  const size_t at = found + std::strlen(kSumText);
  if (found == std::string::npos || of(kSumKey).size() != kSumDigits ||
      header.compare(at, kSumDigits, of(kSumKey)) != 0)
    return damaged();
  header.replace(at, kSumDigits, kSumDigits, '0');
  FileSum sum;
  sum.add(header.data(), headerBytes);
  for (const auto &[begin, tensor] : tensors)
    if (Status s = eachFilePiece(file, *tensor,
                                 [&](const char *data, int64_t bytes) {
                                   sum.add(data, bytes);
                                   return Status::ok();
                                 });
        !s)
      return s;
  return sum.digits() == of(kSumKey) ? Status::ok() : damaged();
}

Status Step::save(const std::string &directory, const RunNotes &notes) {
  if (!lost_)
    return lost_;
  if (!checkParams(program_, given_))
    return {Code::Usage, "there is nothing to save yet"};
  Contents contents;
  for (int64_t i = 0; i < program_.tensorCount; ++i)
    if (const TensorInfo &info = program_.tensors[i];
        isValue(info) && !isBase(info))
      contents.tensors.push_back({info.name, &info});
  std::string base;
  if (Status s = describeBase(program_, homes(), base); !s)
    return s;
  contents.metadata = {{"format", kFormat},
                       {"model", program_.model},
                       {"fingerprint", program_.fingerprint},
                       {"step", std::to_string(steps_)},
                       {"seed", std::to_string(options_.seed)},
                       {"data_position", std::to_string(batches_)}};
  if (notes.samples)
    contents.metadata[kSamplesKey] = std::to_string(notes.samples);
  if (notes.shuffle)
    contents.metadata[kShuffleKey] = std::to_string(*notes.shuffle);
  if (notes.evaluationLoss) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", *notes.evaluationLoss);
    contents.metadata[kLossKey] = text;
  }
  if (program_.skipsNonFinite)
    contents.metadata["skipped_steps"] = std::to_string(skipped_);
  if (!base.empty())
    contents.metadata[kBaseKey] = base;
  contents.hasSum = true;
  contents.step = steps_;
  return writeFile(homes(), directory, kCheckpointFile, contents);
}

Status saveAdapter(const Step &step, const std::string &directory) {
  if (Status s = checkValues(step); !s)
    return s;
  const StepProgram &program = step.program();
  const std::string config = program.adapterConfig;
  AtomicFile out(step.homes().writesFiles());
  if (Status s = out.create(directory, "adapter_config.json"); !s)
    return s;
  if (Status s = out.write(config.data(), int64_t(config.size())); !s)
    return s;
  Contents contents;
  for (int64_t i = 0; i < program.tensorCount; ++i)
    if (const TensorInfo &info = program.tensors[i]; isInAdapter(info))
      contents.tensors.push_back({nameInAdapter(program, info), &info});
  contents.metadata = {{"format", "pt"}};
  contents.type = DType::F32;
  contents.step = step.steps();
  if (Status s = writeFile(step.homes(), directory, "adapter_model.safetensors",
                           contents);
      !s)
    return s;
  return out.commit();
}

/// Brings the base's values that the step lacks from the file `beside`, and
/// compares all of them with the lines of a checkpoint.
static Status checkBase(const StepProgram &program, const Homes &homes,
                        std::vector<bool> &given, const std::string &path,
                        const SafetensorsFile &checkpoint,
                        const std::string &beside) {
  SafetensorsSet other;
  if (!beside.empty())
    if (Status s = SafetensorsSet::open(beside, other); !s)
      return s;
  std::map<std::string, std::string> sums;
  const auto found = checkpoint.metadata().find(kBaseKey);
  std::istringstream lines(
      found == checkpoint.metadata().end() ? "" : found->second);
  for (std::string line; std::getline(lines, line);)
    if (line.size() > kSumDigits)
      sums[line.substr(kSumDigits + 1)] = line.substr(0, kSumDigits);
  // An older checkpoint has the base.
  auto isAsked = [&](const TensorInfo &info) {
    return isBase(info) && !checkpoint.find(info.name);
  };
  std::vector<std::string> missing, others;
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    if (!isAsked(info) || given[size_t(i)] || info.maximaOf >= 0)
      continue; // Maxima come with their codes.
    const SetTensor *tensor = tensorFor(other, info);
    if (!tensor) {
      missing.push_back(info.name);
      continue;
    }
    if (Status s = placeOrEncode(program, homes, other, *tensor, info); !s)
      return s;
    given[size_t(i)] = true;
  }
  for (int64_t i = 0; missing.empty() && i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    if (!isAsked(info))
      continue;
    std::string digits;
    if (Status s = sampleSum(homes, info, digits); !s)
      return s;
    if (sums[info.name] != digits)
      others.push_back(info.name);
  }
  if (!missing.empty())
    return {Code::BadInput, "'" + path + "' has what was trained, and " +
                                listNames(missing) +
                                " must come from the base: give it, too, by "
                                "--weights FILE or --init random:SEED"};
  if (!others.empty())
    return {Code::BadInput,
            "'" + path + "' was trained on another base: " + listNames(others) +
                (others.size() == 1 ? " differs" : " differ")};
  return Status::ok();
}

/// Takes the values from `beside` that belong to the model but that no step
/// needs. PyTorch's batch norm counts its batches beside its statistics. The
/// new count is the file's count plus the `moved` steps that updated the
/// statistics.
static Status passOn(const StepProgram &program, int64_t moved,
                     const std::string &beside, Contents &contents) {
  if (Status s = SafetensorsFile::open(beside, contents.beside); !s)
    return s;
  auto meta = [&](const char *key) -> std::string {
    auto found = contents.beside.metadata().find(key);
    return found == contents.beside.metadata().end() ? "" : found->second;
  };
  if (meta(kMakerKey) != kMaker)
    return Status::ok(); // A file of the user: its content is unknown.
  std::set<std::string> known;
  for (const Named &named : contents.tensors)
    known.insert(named.name);
  std::istringstream transient(meta(kTransientKey));
  for (std::string name; std::getline(transient, name);) {
    known.insert(name);
    std::erase_if(contents.tensors,
                  [&](const Named &named) { return named.name == name; });
  }
  const std::string end = "num_batches_tracked";
  for (const auto &[name, tensor] : contents.beside.tensors()) {
    if (known.count(name))
      continue;
    Passed passed{name, tensor};
    if (name.size() >= end.size() && tensor.type == DType::I64 &&
        name.compare(name.size() - end.size(), end.size(), end) == 0) {
      const std::string statistic =
          name.substr(0, name.size() - end.size()) + "running_mean";
      for (int64_t i = 0; i < program.tensorCount; ++i)
        if (program.tensors[i].role == Role::State &&
            statistic == program.tensors[i].name)
          passed.added = moved;
    }
    contents.passed.push_back(std::move(passed));
  }
  return Status::ok();
}

static Status checkStored(const StepProgram &program, bool trainedAlone) {
  for (int64_t i = 0; i < program.tensorCount; ++i)
    if (program.tensors[i].stored && !trainedAlone)
      return {Code::Unsupported,
              std::string("'") + program.tensors[i].name +
                  "' is stored as codes: the model's weights are what the step "
                  "was loaded from, and a checkpoint has what it trains"};
  return Status::ok();
}

/// Gives all tensors the names that they have in the file.
static Status rename(const SavedWeights &how, Contents &contents) {
  std::set<std::string> names;
  auto give = [&](std::string &name) {
    const std::string old = name;
    if (!name.compare(0, how.oldPrefix.size(), how.oldPrefix))
      name = how.newPrefix + name.substr(how.oldPrefix.size());
    if (const std::string fault = name.empty() ? "is empty" : nameFault(name);
        !fault.empty())
      return Status(Code::BadInput,
                    "'" + old + "': its name in the file " + fault);
    if (!names.insert(name).second)
      return Status(Code::BadInput,
                    "two tensors would be '" + name + "' in the file");
    return Status::ok();
  };
  for (Named &named : contents.tensors)
    if (Status s = give(named.name); !s)
      return s;
  for (Passed &passed : contents.passed)
    if (Status s = give(passed.name); !s)
      return s;
  return Status::ok();
}

/// Lists the tensors of a file of weights. `moved`: as of passOn.
static Status listWeights(const StepProgram &program, const SavedWeights &how,
                          int64_t moved, Contents &contents) {
  if (Status s = checkStored(program, how.trainedAlone); !s)
    return s;
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    const bool isSaved = info.role == Role::Param
                             ? info.trainable || !how.trainedAlone
                             : info.role == Role::State && !how.trainedAlone;
    if (!isSaved)
      continue;
    contents.tensors.push_back({info.name, &info});
    // PyTorch's state_dict lists a tied weight under each of its names.
    for (int32_t k = 0; k < info.aliasCount; ++k)
      contents.tensors.push_back({info.aliases[k], &info});
  }
  if (!how.beside.empty() && !how.trainedAlone)
    if (Status s = passOn(program, moved, how.beside, contents); !s)
      return s;
  return rename(how, contents);
}

Status values::checkSaved(const StepProgram &program, const SavedWeights &how) {
  Contents contents;
  return listWeights(program, how, 0, contents);
}

Status Step::saveWeights(const std::string &directory,
                         const SavedWeights &how) {
  if (!lost_)
    return lost_;
  if (!checkParams(program_, given_))
    return {Code::Usage, "there is nothing to save yet"};
  Contents contents;
  if (Status s = listWeights(program_, how, steps_ - skipped_, contents); !s)
    return s;
  // transformers opens only files with this entry.
  contents.metadata = {{"format", "pt"}};
  contents.type = how.type;
  contents.step = steps_;
  return writeFile(homes(), directory, kModelFile, contents);
}

/// The loss of an evaluation in the notes of a checkpoint.
static std::optional<double> lossIn(const SafetensorsFile &file) {
  const auto found = file.metadata().find(kLossKey);
  if (found == file.metadata().end() || found->second.empty())
    return std::nullopt;
  char *end;
  const double loss = std::strtod(found->second.c_str(), &end);
  return *end || !std::isfinite(loss) ? std::nullopt : std::optional(loss);
}

std::optional<double> evaluationLossIn(const std::string &directory) {
  SafetensorsFile file;
  return SafetensorsFile::open(directory + "/" + kCheckpointFile, file)
             ? lossIn(file)
             : std::nullopt;
}

Status Step::resume(const std::string &directory, const std::string &beside,
                    RunNotes *notes) {
  SafetensorsFile file;
  const std::string path = directory + "/" + kCheckpointFile;
  if (Status s = SafetensorsFile::open(path, file); !s)
    return s;
  auto meta = [&](const char *key) -> std::string {
    auto found = file.metadata().find(key);
    return found == file.metadata().end() ? "" : found->second;
  };
  if (meta("format") != kFormat && meta("format") != kFormatWithoutSum)
    return {Code::BadInput, "'" + path + "' isn't a checkpoint"};
  if (Status s = checkSum(file); !s)
    return s;
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
  uint64_t step, seed, batches, skipped = 0;
  if (!number("step", step) || step > kMostSteps || !number("seed", seed))
    return {Code::BadInput, "'" + path + "' has no sound step and seed"};
  if (!number("data_position", batches) || batches > kMostSteps)
    return {Code::BadInput, "'" + path + "' has no sound position of the data"};
  uint64_t samples = 0, shuffle = 0;
  const bool isShuffled = !meta(kShuffleKey).empty();
  if ((!meta(kSamplesKey).empty() &&
       (!number(kSamplesKey, samples) || samples > kMostSteps)) ||
      (isShuffled && !number(kShuffleKey, shuffle)))
    return {Code::BadInput, "'" + path + "' has no sound order of the data"};
  if (program_.skipsNonFinite && !meta("skipped_steps").empty() &&
      (!number("skipped_steps", skipped) || skipped > step))
    return {Code::BadInput,
            "'" + path + "' has no sound count of skipped steps"};
  // Everything is checked before anything is changed.
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    const SafeTensor *tensor = file.find(info.name);
    if (!isValue(info) || (isBase(info) && !tensor))
      continue;
    if (!tensor || tensor->type != info.type || tensor->isUnsigned ||
        !sameShape(info, *tensor))
      return {Code::BadInput, "'" + path + "' is a checkpoint of another " +
                                  "model: '" + info.name + "' is " +
                                  (tensor ? "of another shape" : "missing")};
  }
  if (Status s = checkBase(program_, homes(), given_, path, file, beside); !s)
    return s;
  for (int64_t i = 0; i < program_.tensorCount; ++i) {
    const TensorInfo &info = program_.tensors[i];
    if (const SafeTensor *tensor = file.find(info.name);
        tensor && isValue(info))
      if (Status s = place(homes(), file, *tensor, info); !s)
        return s;
  }
  steps_ = int64_t(step);
  batches_ = int64_t(batches);
  skipped_ = int64_t(skipped);
  if (notes) {
    notes->samples = int64_t(samples);
    notes->shuffle = std::nullopt;
    if (isShuffled)
      notes->shuffle = shuffle;
    notes->evaluationLoss = lossIn(file);
  }
  options_.seed = seed;
  return finishValues();
}

Status sampleValues(const Step &step, uint64_t &sum) {
  const StepProgram &program = step.program();
  FileSum all;
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    if (!isValue(info) || info.shard)
      continue;
    std::string digits;
    if (Status s = sampleSum(step.homes(), info, digits); !s)
      return s;
    all.add(digits.data(), int64_t(digits.size()));
  }
  const uint64_t shards = step.homes().samples();
  all.add(&shards, sizeof shards);
  sum = all.get();
  return Status::ok();
}

} // namespace tmc
