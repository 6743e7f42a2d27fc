//===- Data.cpp - the data of a trainer's steps ---------------------------===//

#include "runtime/step/Data.h"

#include "runtime/step/Ranges.h"
#include "runtime/step/Safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tmc {

namespace {

bool isInteger(DType type) { return type == DType::I32 || type == DType::I64; }

std::string shapeOf(const TensorInfo &input) {
  return shapeText(input.dims, size_t(input.rank));
}
std::string shapeOf(const ArrayView &array) { return shapeText(array.shape); }

/// True for an input that `--data FILE` feeds without naming it.
bool takesTokens(const TensorInfo &input) {
  return isInteger(input.type) && input.rank >= 2;
}

} // namespace

DataInputs DataInputs::of(const StepProgram &program) {
  DataInputs found;
  for (int64_t i = 0; i < program.tensorCount; ++i)
    if (program.tensors[i].feed == Feed::Data)
      found.inputs.push_back(&program.tensors[i]);
  found.samplesPerStep = program.samplesPerStep;
  return found;
}

Status DataReader::fit(Source &source, int64_t samplesPerStep,
                       int64_t &batches) {
  const TensorInfo &input = *source.input;
  const ArrayView &array = source.file.array();
  const DataSpec &spec = source.spec;
  const std::string &path = spec.path;
  if (!convertsTo(array, input.type))
    return {Code::BadInput, "'" + path + "' holds " + array.typeName() +
                                ", and '" + input.name + "' takes " +
                                nameOf(input.type)};
  if (spec.isScaled && !isFloat(input.type))
    return {Code::Usage, "'*' only means something for floats; '" +
                             std::string(input.name) + "' takes " +
                             nameOf(input.type)};
  source.perBatch = input.elements();
  const int64_t *shape = array.shape.data();
  const size_t rank = array.shape.size();
  source.isStream = rank == 1 && takesTokens(input);
  const bool isSame =
      rank == size_t(input.rank) && std::equal(shape, shape + rank, input.dims);
  // Weights of a loss, temperatures, a table: the same for every sample.
  source.isFixed = isSame && (rank == 0 || input.dims[0] != samplesPerStep);
  const bool isNumbers = input.rank == 0 && rank == 1; // One in each step.
  const bool isSamples = rank == size_t(input.rank) && rank > 0 &&
                         std::equal(shape + 1, shape + rank, input.dims + 1);
  if (!source.isStream && !source.isFixed && !isNumbers && !isSamples)
    return {Code::BadInput, "'" + path + "' is " + shapeOf(array) + ", and '" +
                                input.name + "' takes " + shapeOf(input)};
  if (spec.skipped && !source.isStream)
    return {Code::Usage, "'+" + std::to_string(spec.skipped) +
                             "' only means something for a stream of "
                             "tokens; '" +
                             path + "' is " + shapeOf(array)};
  const int64_t usable = array.elements() - spec.skipped;
  if (source.isFixed)
    batches = std::numeric_limits<int64_t>::max();
  else
    batches =
        source.perBatch ? std::max<int64_t>(usable, 0) / source.perBatch : 0;
  if (batches == 0) {
    const bool samples = !source.isStream;
    const int64_t unit =
        samples && input.rank > 0
            ? std::max<int64_t>(1, source.perBatch /
                                       std::max<int64_t>(1, input.dims[0]))
            : 1;
    return {Code::BadInput,
            "'" + path + "' has " + std::to_string(array.elements() / unit) +
                (samples ? " samples" : " tokens") + "; one step takes " +
                std::to_string((source.perBatch + spec.skipped) / unit)};
  }
  source.raw.resize(size_t(source.perBatch * sizeOf(array.type)));
  source.buffer.resize(size_t(input.bytes()));
  return Status::ok();
}

/// True if the label of a row's first token counts. A model that shifts its
/// labels itself leaves that label out.
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
  for (const auto &labels : sources_)
    for (const auto &tokens : sources_)
      if (labels->isStream && tokens->isStream &&
          labels->spec.path == tokens->spec.path &&
          labels->spec.skipped == tokens->spec.skipped &&
          countsFirst(*labels->input) && !countsFirst(*tokens->input)) {
        const DataSpec &spec = labels->spec;
        const std::string raw = !spec.raw                 ? ""
                                : *spec.raw == DType::U16 ? ":u16"
                                                          : ":u32";
        return "'" + std::string(labels->input->name) + "' and '" +
               tokens->input->name + "' are the same tokens of '" + spec.path +
               "', so that each is its own label; --data " +
               labels->input->name + "=" + spec.path + raw + "+" +
               std::to_string(spec.skipped + 1) + " gives the next ones";
      }
  return "";
}

Status DataReader::create(const DataInputs &wanted,
                          const std::vector<std::string> &specs,
                          DataReader &reader, bool needsAll) {
  reader = DataReader();
  const std::vector<const TensorInfo *> &inputs = wanted.inputs;
  auto taken = [&](const TensorInfo *input) {
    for (const auto &source : reader.sources_)
      if (source->input == input)
        return true;
    return false;
  };
  auto add = [&](const TensorInfo &input, const DataSpec &spec) {
    auto source = std::make_unique<Source>();
    source->input = &input;
    source->spec = spec;
    if (Status s = DataFile::open(spec, input.name, source->file); !s)
      return s;
    reader.sources_.push_back(std::move(source));
    return Status::ok();
  };

  std::vector<DataSpec> rest;
  for (const std::string &text : specs) {
    // NAME=FILE only if NAME is an input: a file name may contain '='.
    const size_t equals = text.find('=');
    const TensorInfo *named = nullptr;
    if (equals != std::string::npos)
      for (const TensorInfo *input : inputs)
        if (text.compare(0, equals, input->name) == 0 &&
            std::strlen(input->name) == equals)
          named = input;
    if (equals != std::string::npos && !named) {
      std::string names;
      for (const TensorInfo *input : inputs)
        names += (names.empty() ? "'" : ", '") + std::string(input->name) + "'";
      return {Code::Usage, "--data " + text + ": no input has the name '" +
                               text.substr(0, equals) + "'; the inputs are " +
                               names};
    }
    const DataSpec spec =
        DataSpec::parse(named ? text.substr(equals + 1) : text);
    if (!named) {
      rest.push_back(spec);
      continue;
    }
    if (taken(named))
      return {Code::Usage,
              std::string("--data names '") + named->name + "' twice"};
    if (Status s = add(*named, spec); !s)
      return s;
  }
  for (const DataSpec &spec : rest) {
    // A file of named tensors may feed any input.
    const std::string end = ".safetensors";
    const bool isNamed =
        spec.path.size() >= end.size() &&
        spec.path.compare(spec.path.size() - end.size(), end.size(), end) == 0;
    int64_t fed = 0;
    for (const TensorInfo *input : inputs)
      if (!taken(input) && (isNamed || takesTokens(*input))) {
        if (Status s = add(*input, spec); !s)
          return s;
        ++fed;
      }
    if (!fed)
      return {Code::Usage, "--data " + spec.path +
                               " feeds no input: none that is left takes "
                               "tokens; use --data NAME=FILE"};
  }
  std::string missing;
  for (const TensorInfo *input : inputs)
    if (needsAll && !taken(input))
      missing += (missing.empty() ? "'" : ", '") + std::string(input->name) +
                 "' " + nameOf(input->type) + shapeOf(*input);
  if (!missing.empty())
    return {Code::Usage, "no --data for " + missing + "; use --data NAME=FILE"};
  reader.batchesPerEpoch_ = std::numeric_limits<int64_t>::max();
  for (const auto &source : reader.sources_) {
    int64_t batches;
    if (Status s = fit(*source, wanted.samplesPerStep, batches); !s)
      return s;
    reader.batchesPerEpoch_ = std::min(reader.batchesPerEpoch_, batches);
  }
  return Status::ok();
}

Status DataReader::readBatch(Source &source) {
  const DataFile &file = source.file;
  if (Status s = file.read(source.first, source.perBatch, source.raw.data());
      !s)
    return s;
  return convertElements(file.array(), source.raw.data(), source.first,
                         source.perBatch, source.spec, source.input->type,
                         source.buffer.data());
}

Status DataReader::next(const Writer &write) {
  for (const auto &source : sources_) {
    source->first = source->isFixed
                        ? 0
                        : position_ % batchesPerEpoch_ * source->perBatch +
                              source->spec.skipped;
    if (Status s = readBatch(*source); !s)
      return s.code() == Code::World
                 ? s
                 : Status(s.code(), "'" + source->spec.path + "', for '" +
                                        source->input->name +
                                        "': " + s.message());
    if (Status s = write(*source->input, source->buffer.data(),
                         int64_t(source->buffer.size()));
        !s)
      return {s.code(), "'" + source->spec.path + "', from element " +
                            std::to_string(source->first) +
                            " on: " + s.message()};
  }
  ++position_;
  return Status::ok();
}

/// "samples 4 to 7 of 'labels.npy'", for the batch that was read last.
std::string DataReader::place(const Source &source) {
  const TensorInfo &input = *source.input;
  if (source.isStream || input.rank == 0)
    return "elements " + std::to_string(source.first) + " to " +
           std::to_string(source.first + source.perBatch - 1) + " of '" +
           source.spec.path + "'";
  const int64_t row = std::max<int64_t>(
      1, source.perBatch / std::max<int64_t>(1, input.dims[0]));
  const int64_t first = source.first / row, count = source.perBatch / row;
  return (count == 1 ? "sample " + std::to_string(first)
                     : "samples " + std::to_string(first) + " to " +
                           std::to_string(first + count - 1)) +
         " of '" + source.spec.path + "'";
}

/// True if the input has labels and all of them are ignored. Elements whose
/// range has no ignored value aren't labels.
static bool ignoresAll(const TensorInfo &input, const char *data) {
  auto at = [&](int64_t i) -> int64_t {
    if (input.type == DType::I32) {
      int32_t value;
      std::memcpy(&value, data + i * 4, 4);
      return value;
    }
    int64_t value;
    std::memcpy(&value, data + i * 8, 8);
    return value;
  };
  if (!isInteger(input.type))
    return false;
  bool hasLabels = input.allowIgnore;
  if (input.allowIgnore)
    for (int64_t i = 0; i < input.elements(); ++i)
      if (at(i) != input.ignore)
        return false;
  for (int32_t k = 0; k < input.rangeCount; ++k) {
    const IndexRange &range = input.ranges[k];
    if (!range.allowIgnore)
      continue;
    hasLabels = true;
    if (!allOfRange(range, input,
                    [&](int64_t i) { return at(i) == range.ignore; }))
      return false;
  }
  return hasLabels;
}

std::string DataReader::withoutLabels() const {
  for (const auto &source : sources_)
    if (ignoresAll(*source->input, source->buffer.data()))
      return "no label of '" + std::string(source->input->name) +
             "' counts in " + place(*source);
  return "";
}

} // namespace tmc
