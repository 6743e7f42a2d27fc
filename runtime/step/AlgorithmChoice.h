//===- AlgorithmChoice.h - a table of algorithms at run time ----*- C++ -*-===//
//
// The two uses of measured algorithms (runtime/kernels/Algorithms.h) beside the
// library's calls: the choice from a step's table, and the record of a
// measurement, which becomes a table's file.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_ALGORITHMCHOICE_H
#define TMC_RUNTIME_STEP_ALGORITHMCHOICE_H

#include "runtime/kernels/Algorithms.h"

#include <string>
#include <vector>

namespace tmc {

/// Chooses from a step's table, and counts the choices.
class AlgorithmChoice {
public:
  AlgorithmChoice() = default;
  /// `table` may be null.
  AlgorithmChoice(const AlgorithmTable *table, std::string device);

  /// The algorithm of a product for this version of the library, or null. The
  /// caller says by use() that the library takes it.
  const ProductAlgorithm *find(const std::string &product, int64_t library);
  void use(const ProductAlgorithm &algorithm);

  /// One sentence about the algorithms that aren't used, or "".
  std::string warning() const;

private:
  enum class State : uint8_t { NoProduct, Refused, Used };
  bool fits(int64_t library) const;

  const AlgorithmTable *table_ = nullptr;
  std::string device_;
  int64_t library_ = 0;       // 0: no product was looked up
  std::vector<State> states_; // by row
};

/// The fastest algorithm of a product, and its time beside that of the
/// heuristic's first one.
struct TunedProduct {
  std::string product;
  ProductAlgorithm algorithm;
  double seconds = 0, firstSeconds = 0;
  int candidates = 0;
};

/// A measurement on one card.
struct AlgorithmTuning {
  std::string device;
  int64_t library = 0;
  std::vector<TunedProduct> products;
  /// Products that no candidate could be measured for.
  std::vector<std::string> skipped;

  bool knows(const std::string &product) const;
  /// The file for `tmc compile --algorithms`.
  std::string json() const;
  /// "18 products: 1.23 ms by the heuristic, 1.12 ms by the fastest"
  std::string summary() const;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_ALGORITHMCHOICE_H
