//===- Data.cpp - the data of a trainer's steps ---------------------------===//

#include "runtime/step/Data.h"

#include "runtime/step/DataPaths.h"
#include "runtime/step/Labels.h"

#include <algorithm>
#include <cstring>

namespace tmc {

namespace {

bool isInteger(DType type) { return type == DType::I32 || type == DType::I64; }

/// True for an integer input [B, T] whose numbers index nothing.
bool isMask(const TensorInfo &input) {
  return (isInteger(input.type) || input.type == DType::I1) &&
         input.rank == 2 && input.limit <= 0 && input.rangeCount == 0;
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// The number that fills up rows of an input of JSON lines; none: they must be
/// full.
std::optional<int64_t> paddingOf(const TensorInfo &input, bool padsRows,
                                 int64_t token) {
  if (hasLabels(input))
    return ignoredValue(input);
  if (!padsRows)
    return std::nullopt;
  return input.limit > 0 || input.rangeCount > 0 ? token : 0;
}

} // namespace

DataInputs DataInputs::of(const StepProgram &program, int64_t rank) {
  DataInputs found;
  found.ranks = program.mesh.data;
  found.rank = rank;
  for (int64_t i = 0; i < program.tensorCount; ++i)
    if (program.tensors[i].feed == Feed::Data)
      found.inputs.push_back(&program.tensors[i]);
  found.samplesPerStep = program.samplesPerStep;
  return found;
}

//===----------------------------------------------------------------------===//
// Files and inputs
//===----------------------------------------------------------------------===//

bool DataReader::isTaken(const TensorInfo *input) const {
  for (const auto &source : sources_)
    if (source->input == input)
      return true;
  return false;
}

/// Opens the files of `spec` for each of the inputs.
Status DataReader::feed(const std::vector<const TensorInfo *> &inputs,
                        const DataSpec &spec) {
  std::vector<std::string> paths;
  if (Status s = listPaths(spec.path, paths); !s)
    return s;
  bool isLines = false;
  for (size_t i = 0; i < paths.size(); ++i) {
    bool isOne = false;
    if (Status s = isJsonLines(paths[i], spec, isOne); !s)
      return s;
    if (i > 0 && isOne != isLines)
      return {Code::BadInput, "of '" + paths[0] + "' and '" + paths[i] +
                                  "' only one has JSON lines: give their "
                                  "inputs by one kind of file"};
    isLines = isOne;
  }
  if (isLines && spec.skipped)
    return {Code::Usage, "'+" + std::to_string(spec.skipped) +
                             "' only means something for a stream of tokens; "
                             "'" +
                             spec.path + "' has JSON lines"};
  Lines *lines = nullptr;
  if (isLines) {
    lines = lines_.emplace_back(std::make_unique<Lines>()).get();
    if (Status s = JsonLines::open(paths, lines->lines); !s)
      return s;
  }
  for (const TensorInfo *input : inputs) {
    DataSource &source = *sources_.emplace_back(std::make_unique<DataSource>());
    source.input = input;
    source.spec = spec;
    if (lines) {
      lines->sources.push_back(&source);
      continue;
    }
    for (const std::string &path : paths) {
      DataSpec one = spec;
      one.path = path;
      if (Status s =
              DataFile::open(one, input->name, source.files.emplace_back());
          !s)
        return s;
    }
  }
  return Status::ok();
}

Status DataReader::open(const DataInputs &wanted,
                        const std::vector<std::string> &specs) {
  const std::vector<const TensorInfo *> &inputs = wanted.inputs;
  std::vector<DataSpec> rest;
  for (const std::string &text : specs) {
    // A file name may contain '=': a file that is there is that file, and else
    // NAME is an input's.
    const size_t equals = pathsExist(DataSpec::parse(text).path)
                              ? std::string::npos
                              : text.find('=');
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
    if (isTaken(named))
      return {Code::Usage,
              std::string("--data names '") + named->name + "' twice"};
    if (Status s = feed({named}, spec); !s)
      return s;
  }
  for (const DataSpec &spec : rest) {
    // A file of named values may feed any input.
    const bool isNamed =
        endsWith(spec.path, ".safetensors") || endsWith(spec.path, ".jsonl");
    std::vector<const TensorInfo *> fed;
    for (const TensorInfo *input : inputs)
      if (!isTaken(input) && (isNamed || takesTokens(*input)))
        fed.push_back(input);
    if (fed.empty())
      return {Code::Usage, "--data " + spec.path +
                               " feeds no input: none that is left takes "
                               "tokens; use --data NAME=FILE"};
    if (Status s = feed(fed, spec); !s)
      return s;
  }
  return Status::ok();
}

Status DataReader::create(const DataInputs &wanted,
                          const std::vector<std::string> &specs,
                          DataReader &reader, const DataOptions &options) {
  reader = DataReader();
  if (Status s = reader.open(wanted, specs); !s)
    return s;
  std::string missing;
  for (const TensorInfo *input : wanted.inputs)
    if (options.needsAll && !reader.isTaken(input))
      missing += (missing.empty() ? "'" : ", '") + std::string(input->name) +
                 "' " + nameOf(input->type) + shapeOf(*input);
  if (!missing.empty())
    return {Code::Usage, "no --data for " + missing + "; use --data NAME=FILE"};
  return reader.startEpochs(wanted, options);
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

/// Checks the inputs of JSON lines, and all lines: an error should come before
/// the first step.
Status DataReader::fitLines(Lines &lines, const DataInputs &inputs,
                            const DataOptions &options) const {
  const bool padsRows = std::any_of(
      inputs.inputs.begin(), inputs.inputs.end(), [](const TensorInfo *input) {
        return hasLabels(*input) || isMask(*input);
      });
  for (DataSource *source : lines.sources) {
    const TensorInfo &input = *source->input;
    const std::string name = std::string("'") + input.name + "'";
    if (input.rank == 0 || input.dims[0] != samplesPerStep_)
      return {Code::BadInput,
              "'" + source->spec.path + "' has JSON lines, and " + name + " " +
                  shapeOf(input) + " isn't a value for each of " +
                  std::to_string(samplesPerStep_) +
                  " samples: give it by "
                  "--data NAME=FILE"};
    if (!isInteger(input.type) && input.type != DType::I1 &&
        !isFloat(input.type))
      return {Code::BadInput, "'" + source->spec.path +
                                  "' has JSON lines, and " + name + " takes " +
                                  nameOf(input.type)};
    if (source->spec.isScaled && !isFloat(input.type))
      return {Code::Usage, "'*' only means something for floats; " + name +
                               " takes " + nameOf(input.type)};
    JsonColumn column{&input, source->spec,
                      paddingOf(input, padsRows, options.padding), nullptr};
    if (!hasLabels(input) && column.padding && input.limit > 0 &&
        options.padding >= input.limit)
      return {Code::Usage, "--pad-id " + std::to_string(options.padding) +
                               " is outside [0, " +
                               std::to_string(input.limit) + ") of " + name};
    source->perBatch = input.elements();
    source->perSample = column.perSample();
    source->samples = lines.lines.samples();
    source->buffer.resize(size_t(input.bytes()));
    column.to = source->buffer.data();
    lines.columns.push_back(column);
  }
  for (int64_t i = 0; i < lines.lines.samples(); ++i)
    if (Status s = lines.lines.read(i, lines.columns); !s)
      return s;
  return Status::ok();
}

Status DataReader::startEpochs(const DataInputs &inputs,
                               const DataOptions &options) {
  samplesPerStep_ = std::max<int64_t>(1, inputs.samplesPerStep);
  batch_ = samplesPerStep_ * inputs.ranks;
  before_ = samplesPerStep_ * inputs.rank;
  for (const auto &lines : lines_)
    if (Status s = fitLines(*lines, inputs, options); !s)
      return s;
  bool isWhole = false, hasAny = false, canIgnore = true;
  samples_ = DataSource::kUnbounded;
  for (const auto &source : sources_) {
    if (!source->files.empty())
      if (Status s = source->fit(samplesPerStep_, inputs.ranks); !s)
        return s;
    hasAny |= hasLabels(*source->input);
    canIgnore &= !hasLabels(*source->input) || ignoredValue(*source->input);
    isWhole |= source->isWhole && !source->isFixed;
    samples_ = std::min(samples_, source->samples);
  }
  fillsBatches_ = hasAny && canIgnore && !isWhole;
  for (const auto &source : sources_)
    if (source->samples < (fillsBatches_ ? 1 : batch_))
      return source->tooShort(!fillsBatches_);
  bySamples_ = !isWhole;
  if (samples_ ==
      DataSource::kUnbounded) // Every input is the same in each step.
    samples_ = batch_;
  const int64_t rest = samples_ % batch_;
  leftOut_ = fillsBatches_ ? 0 : rest;
  stepsPerEpoch_ = samples_ / batch_ + (fillsBatches_ && rest != 0 ? 1 : 0);
  return Status::ok();
}

Status DataReader::setShuffle(std::optional<uint64_t> seed) {
  if (seed && !bySamples_)
    for (const auto &source : sources_)
      if (source->isWhole && !source->isFixed)
        return {Code::Usage, std::string("'") + source->input->name +
                                 "' takes its numbers by steps, not by "
                                 "samples, so samples can't be shuffled"};
  shuffle_ = seed;
  orderEpoch_ = -1;
  return Status::ok();
}

std::string DataReader::summary() const {
  const int64_t rest = samples_ % batch_;
  std::string text = std::to_string(samples_) +
                     (samples_ == 1 ? " sample" : " samples") +
                     " in steps of " + std::to_string(batch_) + ": " +
                     std::to_string(stepsPerEpoch_) +
                     (stepsPerEpoch_ == 1 ? " step" : " steps") + " an epoch";
  if (rest && fillsBatches_)
    text += ", the last with " + std::to_string(rest) + " of " +
            std::to_string(batch_) + " samples";
  if (leftOut_)
    text += ", and " + std::to_string(leftOut_) +
            (leftOut_ == 1 ? " sample is" : " samples are") + " left out";
  return text + (shuffle_ ? ", shuffled by seed " + std::to_string(*shuffle_)
                          : ", in order");
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

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

/// Chooses this rank's samples of the batch at the position.
void DataReader::choose() {
  const int64_t epoch = position_ / stepsPerEpoch_;
  const int64_t first = position_ % stepsPerEpoch_ * batch_ + before_;
  if (shuffle_ && orderEpoch_ != epoch) {
    order_.emplace(*shuffle_, epoch, samples_);
    orderEpoch_ = epoch;
  }
  chosen_.resize(size_t(samplesPerStep_));
  for (int64_t i = 0; i < samplesPerStep_; ++i) {
    const int64_t place = (first + i) % samples_;
    chosen_[size_t(i)] = shuffle_ ? order_->at(place) : place;
  }
  realSamples_ = std::clamp<int64_t>(samples_ - first, 0, samplesPerStep_);
}

Status DataReader::readSource(DataSource &source) const {
  char *to = source.buffer.data();
  const int64_t step = position_ % stepsPerEpoch_;
  if (source.isFixed)
    return source.read(0, source.perBatch, to);
  if (source.isWhole)
    return source.read(step * source.perBatch, source.perBatch, to);
  const int64_t bytes = source.perSample * sizeOf(source.input->type);
  // Neighbours in the file are read together.
  for (size_t i = 0; i < chosen_.size();) {
    size_t end = i + 1;
    while (end < chosen_.size() && chosen_[end] == chosen_[end - 1] + 1)
      ++end;
    if (Status s = source.read(
            source.spec.skipped + chosen_[i] * source.perSample,
            int64_t(end - i) * source.perSample, to + int64_t(i) * bytes);
        !s)
      return s;
    i = end;
  }
  return Status::ok();
}

Status DataReader::readLines(Lines &lines) const {
  for (size_t i = 0; i < chosen_.size(); ++i) {
    for (size_t k = 0; k < lines.columns.size(); ++k) {
      DataSource &source = *lines.sources[k];
      lines.columns[k].to =
          source.buffer.data() +
          int64_t(i) * source.perSample * sizeOf(source.input->type);
    }
    if (Status s = lines.lines.read(chosen_[i], lines.columns); !s)
      return s;
  }
  return Status::ok();
}

Status DataReader::next(const Writer &write) {
  choose();
  for (const auto &lines : lines_)
    if (Status s = readLines(*lines); !s)
      return s;
  for (const auto &source : sources_) {
    if (!source->files.empty())
      if (Status s = readSource(*source); !s)
        return s;
    if (realSamples_ < samplesPerStep_)
      source->ignoreFrom(realSamples_);
    if (Status s = write(*source->input, source->buffer.data(),
                         int64_t(source->buffer.size()));
        !s)
      return {s.code(), place(*source) + ": " + s.message()};
  }
  ++position_;
  return Status::ok();
}

/// "3, 9, 4 and 12 more", of the real samples of the last batch.
std::string
DataReader::listed(const std::function<std::string(int64_t)> &name) const {
  constexpr int64_t kMostListed = 4;
  std::string text;
  for (int64_t i = 0; i < std::min(realSamples_, kMostListed); ++i)
    text += (i ? ", " : "") + name(chosen_[size_t(i)]);
  return realSamples_ <= kMostListed
             ? text
             : text + " and " + std::to_string(realSamples_ - kMostListed) +
                   " more";
}

/// "elements 4 to 7 of 'labels.npy'", of the batch that was read last.
std::string DataReader::place(const DataSource &source) const {
  const std::string of = " of '" + source.spec.path + "'";
  for (const auto &lines : lines_)
    if (std::count(lines->sources.begin(), lines->sources.end(), &source))
      return listed([&](int64_t sample) { return lines->lines.place(sample); });
  if (source.isFixed)
    return "'" + source.spec.path + "'";
  const bool isRun = std::adjacent_find(chosen_.begin(), chosen_.end(),
                                        [](int64_t a, int64_t b) {
                                          return b != a + 1;
                                        }) == chosen_.end();
  if (source.isWhole || (isRun && source.isStream)) {
    const int64_t first =
        source.isWhole ? chosen_[0] / batch_ * source.perBatch
                       : source.spec.skipped + chosen_[0] * source.perSample;
    return "elements " + std::to_string(first) + " to " +
           std::to_string(first + source.perBatch - 1) + of;
  }
  if (isRun && chosen_.size() > 1)
    return "samples " + std::to_string(chosen_.front()) + " to " +
           std::to_string(chosen_.back()) + of;
  return (chosen_.size() > 1 ? "samples " : "sample ") +
         listed([](int64_t sample) { return std::to_string(sample); }) + of;
}

int64_t DataReader::weight() const {
  int64_t labels = 0;
  bool hasAny = false;
  for (const auto &source : sources_)
    if (hasLabels(*source->input)) {
      hasAny = true;
      labels += countLabels(*source->input, source->buffer.data());
    }
  return hasAny ? labels : realSamples_;
}

std::string DataReader::withoutLabels() const {
  for (const auto &source : sources_)
    if (hasLabels(*source->input) &&
        countLabels(*source->input, source->buffer.data()) == 0)
      return "no label of '" + std::string(source->input->name) +
             "' counts in " + place(*source);
  return "";
}

} // namespace tmc
