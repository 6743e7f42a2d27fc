// AdapterConfig.h - adapter_config.json of PEFT, as far as merging reads it.
//
//     {"peft_type": "LORA", "r": 16, "lora_alpha": 32, "use_rslora": false,
//      "fan_in_fan_out": false, "rank_pattern": {"down_proj": 8},
//      "alpha_pattern": {}, "use_dora": false, ...}
//
// An adapter of W is two matrices, A [r, in] and B [out, r], and a scale:
//
//     W' = W + s B A        s = alpha / r, or alpha / sqrt(r) (use_rslora)
//
// Keys that change this sum (DoRA, biases of B, ...) are refused by name, all
// of them in one message. So are the initializations that change W as well:
// their adapter belongs to a base that isn't the one on disk.
//
// Source: PEFT 0.21.2, LoraConfig and LoraLayer.update_layer.

#ifndef TMC_DRIVER_MERGE_ADAPTERCONFIG_H
#define TMC_DRIVER_MERGE_ADAPTERCONFIG_H

#include "driver/merge/NamePattern.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <utility>
#include <vector>

namespace tmc {

struct AdapterConfig {
  int64_t rank = 8; // PEFT's defaults.
  double alpha = 8;
  bool rankStabilized = false; // use_rslora
  bool fanInFanOut = false;    // W is stored as [in, out].
  std::vector<std::pair<NamePattern, double>> ranks, alphas;
  /// Keys that no version known here has, and that aren't empty.
  std::vector<std::string> unknown;

  /// `shown` names the file in messages.
  static Expected<AdapterConfig> parse(const std::string &shown,
                                       llvm::StringRef text);

  /// The rank and the scale of a module. Fails where two patterns say different
  /// values: PEFT takes the first one, and an order isn't part of JSON.
  Expected<int64_t> rankOf(const std::string &module) const;
  Expected<double> scaleOf(const std::string &module) const;
};

} // namespace tmc

#endif // TMC_DRIVER_MERGE_ADAPTERCONFIG_H
