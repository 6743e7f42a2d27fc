//===- Checkpoint.cpp - saves a run and goes on from it -------------------===//
//
// A checkpoint has all that a step changes, and facts of its run. Files of the
// model's values alone are in ModelFile.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Names.h"
#include "runtime/step/Safetensors.h"
#include "runtime/step/Step.h"
#include "runtime/step/Values.h"
#include "runtime/step/ValuesFile.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

namespace tmc {

using namespace values;

namespace {

/// The second format has a checksum.
constexpr const char *kFormat = "tmc-checkpoint-2";
constexpr const char *kFormatWithoutSum = "tmc-checkpoint-1";
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
  FileContents contents;
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
    if (!isValue(info) || info.shard || info.chunk)
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
