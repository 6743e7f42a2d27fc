//===- AlgorithmChoice.cpp - a table of algorithms at run time ------------===//

#include "runtime/step/AlgorithmChoice.h"

#include "runtime/kernels/AlgorithmFields.h"
#include "runtime/kernels/Names.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tmc {

AlgorithmChoice::AlgorithmChoice(const AlgorithmTable *table,
                                 std::string device)
    : table_(table), device_(std::move(device)),
      states_(size_t(table ? table->count : 0)) {}

bool AlgorithmChoice::fits(int64_t library) const {
  return device_ == table_->device && library == table_->library;
}

const ProductAlgorithm *AlgorithmChoice::find(const std::string &product,
                                              int64_t library) {
  library_ = library;
  if (states_.empty() || !fits(library))
    return nullptr;
  for (size_t i = 0; i < states_.size(); ++i) {
    const AlgorithmRow &row = table_->rows[i];
    if (product != row.product)
      continue;
    if (states_[i] == State::NoProduct)
      states_[i] = State::Refused;
    return isReproducible(row.algorithm) ? &row.algorithm : nullptr;
  }
  return nullptr;
}

void AlgorithmChoice::use(const ProductAlgorithm &algorithm) {
  for (size_t i = 0; i < states_.size(); ++i)
    if (&table_->rows[i].algorithm == &algorithm)
      states_[i] = State::Used;
}

std::string AlgorithmChoice::warning() const {
  auto count = [&](State state) {
    return std::count(states_.begin(), states_.end(), state);
  };
  const auto used = count(State::Used), refused = count(State::Refused);
  const auto all = std::ptrdiff_t(states_.size());
  if (used == all)
    return "";
  const std::string of =
      " of the " + std::to_string(all) + " algorithms of --algorithms ";
  if (library_ && !fits(library_))
    return "none" + of + "is used: they were measured on " + table_->device +
           " with cuBLASLt " + std::to_string(table_->library) +
           ", and this is " + device_ + " with cuBLASLt " +
           std::to_string(library_);
  std::string text = std::to_string(all - used) + of + "aren't used: ";
  if (all - used > refused)
    text += std::to_string(all - used - refused) +
            " of products that the step doesn't have";
  if (refused)
    text += (all - used > refused ? ", " : "") + std::to_string(refused) +
            " that the library refuses within the planned memory";
  return text;
}

bool AlgorithmTuning::knows(const std::string &product) const {
  return std::any_of(
             products.begin(), products.end(),
             [&](const TunedProduct &its) { return its.product == product; }) ||
         std::find(skipped.begin(), skipped.end(), product) != skipped.end();
}

std::string AlgorithmTuning::json() const {
  std::string text = "{\"schema\": 1, \"device\": " + jsonQuoted(device) +
                     ", \"library\": " + std::to_string(library) +
                     ",\n \"products\": [";
  const char *separator = "\n  ";
  for (const TunedProduct &its : products) {
    text += separator + ("{\"product\": " + jsonQuoted(its.product));
    for (const AlgorithmField &field : kAlgorithmFields)
      text += std::string(", \"") + field.name +
              "\": " + std::to_string(its.algorithm.*field.number);
    char times[120];
    std::snprintf(times, sizeof times,
                  ", \"seconds\": %.6g, \"first_seconds\": %.6g, "
                  "\"candidates\": %d}",
                  its.seconds, its.firstSeconds, its.candidates);
    text += times;
    separator = ",\n  ";
  }
  return text + "\n]}\n";
}

std::string AlgorithmTuning::summary() const {
  double first = 0, fastest = 0;
  for (const TunedProduct &its : products) {
    first += its.firstSeconds;
    fastest += its.seconds;
  }
  char text[160];
  std::snprintf(text, sizeof text,
                "%zu products, once each: %.3f ms by the heuristic, %.3f ms by "
                "the fastest",
                products.size(), first * 1e3, fastest * 1e3);
  return text + (skipped.empty() ? ""
                                 : "; " + std::to_string(skipped.size()) +
                                       " couldn't be measured");
}

} // namespace tmc
