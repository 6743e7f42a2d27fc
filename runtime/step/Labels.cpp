//===- Labels.cpp - the labels among a step's inputs ----------------------===//

#include "runtime/step/Labels.h"

#include "runtime/step/Ranges.h"

#include <cstring>

namespace tmc {

bool hasLabels(const TensorInfo &input) {
  bool has = input.allowIgnore;
  for (int32_t i = 0; i < input.rangeCount; ++i)
    has |= input.ranges[i].allowIgnore;
  return has;
}

std::optional<int64_t> ignoredValue(const TensorInfo &input) {
  std::optional<int64_t> value;
  if (input.allowIgnore)
    value = input.ignore;
  else if (input.limit > 0)
    return std::nullopt;
  for (int32_t i = 0; i < input.rangeCount; ++i) {
    const IndexRange &range = input.ranges[i];
    if (!range.allowIgnore || (value && *value != range.ignore))
      return std::nullopt;
    value = range.ignore;
  }
  return value;
}

bool countsFirst(const TensorInfo &input) {
  if (input.rank < 2)
    return false;
  for (int32_t i = 0; i < input.rangeCount; ++i)
    if (input.ranges[i].allowIgnore &&
        input.ranges[i].offsets[input.rank - 1] == 0)
      return true;
  return input.allowIgnore;
}

int64_t countLabels(const TensorInfo &input, const char *data) {
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
  if (input.type != DType::I32 && input.type != DType::I64)
    return 0;
  int64_t count = 0;
  if (input.allowIgnore) {
    for (int64_t i = 0; i < input.elements(); ++i)
      count += at(i) != input.ignore;
    return count;
  }
  for (int32_t k = 0; k < input.rangeCount; ++k) {
    const IndexRange &range = input.ranges[k];
    if (range.allowIgnore)
      (void)allOfRange(range, input, [&](int64_t i) {
        count += at(i) != range.ignore;
        return true;
      });
  }
  return count;
}

} // namespace tmc
