// Explain.h - why a plan keeps this tensor and makes that one again, in words
// and numbers, for `tmc explain`.

#ifndef TMC_COMPILER_REPORT_EXPLAIN_H
#define TMC_COMPILER_REPORT_EXPLAIN_H

#include "compiler/report/PlanTrace.h"

#include <string>

namespace tmc {

/// What became of a value, in one word or two: "kept", "recomputed", "in
/// place", "persistent", "short-lived".
std::string decisionOf(const PlanTrace &trace, int32_t value,
                       const std::vector<int32_t> &tensors);

/// "bf16: factor of lm_head's product": a value's type, and why it has it.
std::string typeText(const PlanTrace::Value &value);

/// The tensors that the decisions are about, the largest first: one line each.
std::string explainAll(const PlanTrace &trace, int count = 24);

/// Everything about the tensors whose names match `glob` (`*`, `?`, `[..]`); a
/// name without wildcards also matches what goes by it with a tag, "NAME
/// (backward)". An error: none does; the notes have names alike.
Expected<std::string> explainTensors(const PlanTrace &trace,
                                     const std::string &glob);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_EXPLAIN_H
