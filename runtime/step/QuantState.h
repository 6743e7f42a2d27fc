//===- QuantState.h - the meaning of codes in 4 bits ------------*- C++ -*-===//
//
// The text beside codes in a checkpoint of bitsandbytes:
//
//     {"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16",
//      "shape": [128, 64], "nested_blocksize": 256,
//      "nested_dtype": "float32", "nested_offset": 0.0519}
//
// The type of numbers is the step's own, so that those keys are skipped.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_QUANTSTATE_H
#define TMC_RUNTIME_STEP_QUANTSTATE_H

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tmc::values {

struct QuantState {
  std::string type;
  int64_t block = 0, nestedBlock = 0;
  std::vector<int64_t> shape; // At most kMaxRank sizes, of any sign.
  double offset = NAN;        // Added to nested maxima.
};

/// Reads the text; returns what is wrong with it, or "".
std::string readQuantState(std::string_view text, QuantState &state);

} // namespace tmc::values

#endif // TMC_RUNTIME_STEP_QUANTSTATE_H
