//===- DataSource.cpp - the files that feed one input ---------------------===//

#include "runtime/step/DataSource.h"

#include "runtime/step/Labels.h"
#include "runtime/step/Safetensors.h"

#include <algorithm>
#include <cstring>

namespace tmc {

bool takesTokens(const TensorInfo &input) {
  return (input.type == DType::I32 || input.type == DType::I64) &&
         input.rank >= 2;
}

std::string shapeOf(const TensorInfo &input) {
  return shapeText(input.dims, size_t(input.rank));
}
static std::string shapeOf(const ArrayView &array) {
  return shapeText(array.shape);
}

int64_t DataSource::elements() const {
  int64_t count = 0; // Files hold them, so it doesn't overflow.
  for (const DataFile &file : files)
    count += file.array().elements();
  return count;
}

Status DataSource::fit(int64_t samplesPerStep, int64_t ranks) {
  this->ranks = ranks;
  const TensorInfo &input = *this->input;
  const ArrayView &array = files.front().array();
  const std::string &path = spec.path;
  if (spec.isScaled && !isFloat(input.type))
    return {Code::Usage, "'*' only means something for floats; '" +
                             std::string(input.name) + "' takes " +
                             nameOf(input.type)};
  for (const DataFile &file : files) {
    if (!convertsTo(file.array(), input.type))
      return {Code::BadInput, "'" + file.path() + "' holds " +
                                  file.array().typeName() + ", and '" +
                                  input.name + "' takes " + nameOf(input.type)};
    // The files' first dimensions add up.
    const std::vector<int64_t> &shape = file.array().shape;
    const bool isAlike =
        shape.size() == array.shape.size() && !shape.empty() &&
        std::equal(shape.begin() + 1, shape.end(), array.shape.begin() + 1);
    if (files.size() > 1 && !isAlike)
      return {Code::BadInput, "'" + file.path() + "' is " +
                                  shapeOf(file.array()) + ", and '" +
                                  files.front().path() + "' before it is " +
                                  shapeOf(array) + ": they are no one stream"};
  }
  perBatch = input.elements();
  const int64_t *shape = array.shape.data();
  const size_t rank = array.shape.size();
  isStream = rank == 1 && takesTokens(input);
  const bool isSame = files.size() == 1 && rank == size_t(input.rank) &&
                      std::equal(shape, shape + rank, input.dims);
  // Weights of a loss, temperatures, a table: the same for every sample.
  isFixed = isSame && (rank == 0 || input.dims[0] != samplesPerStep);
  const bool isNumbers = input.rank == 0 && rank == 1; // One in each step.
  const bool isSamples = rank == size_t(input.rank) && rank > 0 &&
                         std::equal(shape + 1, shape + rank, input.dims + 1);
  if (!isStream && !isFixed && !isNumbers && !isSamples)
    return {Code::BadInput, "'" + path + "' is " + shapeOf(array) + ", and '" +
                                input.name + "' takes " + shapeOf(input)};
  if (spec.skipped && !isStream)
    return {Code::Usage, "'+" + std::to_string(spec.skipped) +
                             "' only means something for a stream of "
                             "tokens; '" +
                             path + "' is " + shapeOf(array)};
  isWhole = input.rank == 0 || input.dims[0] % samplesPerStep != 0;
  perSample = isWhole ? perBatch : perBatch / samplesPerStep;
  samples = kUnbounded;
  if (!isFixed)
    samples = std::max<int64_t>(elements() - spec.skipped, 0) /
              std::max<int64_t>(1, perSample) *
              (isWhole ? samplesPerStep * ranks : 1);
  int64_t largest = 1;
  for (const DataFile &file : files)
    largest = std::max(largest, sizeOf(file.array().type));
  raw.resize(size_t(perBatch * largest));
  buffer.resize(size_t(input.bytes()));
  return Status::ok();
}

Status DataSource::tooShort(bool needsStep) const {
  const int64_t unit = isStream ? 1 : std::max<int64_t>(1, perSample);
  const bool isStep = needsStep || isWhole;
  const int64_t needed = isWhole  ? perBatch
                         : isStep ? perBatch * ranks
                                  : std::max<int64_t>(1, perSample);
  return {Code::BadInput, "'" + spec.path + "' has " +
                              std::to_string(elements() / unit) +
                              (isStream ? " tokens" : " samples") + "; one " +
                              (isStep ? "step" : "sample") + " takes " +
                              std::to_string((needed + spec.skipped) / unit)};
}

Status DataSource::read(int64_t first, int64_t count, char *to) {
  int64_t begin = 0; // of a file in the stream
  for (const DataFile &file : files) {
    const int64_t end = begin + file.array().elements();
    const int64_t some = std::min(first + count, end) - first;
    if (some > 0 && first >= begin) {
      Status s = file.read(first - begin, some, raw.data());
      if (s)
        s = convertElements(file.array(), raw.data(), first - begin, some, spec,
                            input->type, to);
      if (!s)
        return s.code() == Code::World
                   ? s
                   : Status(s.code(), "'" + file.path() + "', for '" +
                                          input->name + "': " + s.message());
      first += some;
      count -= some;
      to += some * sizeOf(input->type);
    }
    begin = end;
  }
  return Status::ok();
}

void DataSource::ignoreFrom(int64_t sample) {
  const std::optional<int64_t> value = ignoredValue(*input);
  if (!hasLabels(*input) || !value)
    return;
  const int64_t size = sizeOf(input->type);
  for (int64_t i = sample * perSample; i < perBatch; ++i)
    std::memcpy(buffer.data() + i * size, &*value, size_t(size));
}

} // namespace tmc
