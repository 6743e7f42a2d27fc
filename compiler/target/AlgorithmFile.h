// AlgorithmFile.h - a table of products' algorithms, as a file.
//
// A step's trainer writes it on a card (`--tune-algorithms`), and `tmc compile
// --algorithms` puts it into a step (runtime/kernels/Algorithms.h). The plan
// doesn't depend on it, but the bits of the step do: plan.json has its hash.

#ifndef TMC_COMPILER_TARGET_ALGORITHMFILE_H
#define TMC_COMPILER_TARGET_ALGORITHMFILE_H

#include "runtime/kernels/Algorithms.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <string>

namespace tmc {

struct AlgorithmFile {
  std::string device; // The card's name.
  int64_t library = 0;
  std::map<std::string, ProductAlgorithm> products; // By their texts.
  std::string sha256;                               // The file's bytes hashed.
};

/// Reads a file's text. `name` is used in errors. Refuses algorithms whose sums
/// have no fixed order.
absl::StatusOr<AlgorithmFile> algorithmsFromJson(const std::string &json,
                                                 const std::string &name);

} // namespace tmc

#endif // TMC_COMPILER_TARGET_ALGORITHMFILE_H
