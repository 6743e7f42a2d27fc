//===- Labels.h - the labels among a step's inputs --------------*- C++ -*-===//
//
// A loss over class indices leaves out labels of one value, often -100. The
// emitted step says which elements of an input may have it (Program.h).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_LABELS_H
#define TMC_RUNTIME_STEP_LABELS_H

#include "runtime/step/Program.h"

#include <optional>

namespace tmc {

/// True if some elements of an input are labels that may be left out.
bool hasLabels(const TensorInfo &input);

/// The value by which every element of an input may be left out; none: some
/// elements can't be.
std::optional<int64_t> ignoredValue(const TensorInfo &input);

/// The labels in an input's data that count. Elements that aren't labels don't.
int64_t countLabels(const TensorInfo &input, const char *data);

/// True if the label of a row's first token counts. A model that shifts its
/// labels itself leaves that label out.
bool countsFirst(const TensorInfo &input);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_LABELS_H
