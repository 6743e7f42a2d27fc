//===- AdapterSettings.h - what adapter_config.json says --------*- C++ -*-===//
//
// The keys of a configuration of PEFT that change what an adapter adds. Other
// keys are skipped. The file may be a stranger's.
//
//     {"peft_type": "LORA", "r": 16, "lora_alpha": 32, "use_rslora": false,
//      "rank_pattern": {"down_proj": 8}, ...}
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_ADAPTERSETTINGS_H
#define TMC_RUNTIME_STEP_ADAPTERSETTINGS_H

#include "runtime/kernels/Status.h"

#include <map>
#include <string>
#include <string_view>

namespace tmc {

/// A key that a file doesn't have has PEFT's default. All numbers are finite.
struct AdapterSettings {
  std::string kind;
  double rank = 8, alpha = 8;
  bool rankStabilized = false, dora = false;
  std::map<std::string, double> ranks, alphas;
};

/// Reads a configuration; `shown` names its file in messages. Code::BadInput if
/// it is no JSON, or a key has another kind of value.
Status readAdapterSettings(const std::string &shown, std::string_view text,
                           AdapterSettings &to);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_ADAPTERSETTINGS_H
