// Explain.h - for `tmc explain`: why a plan keeps one tensor and recomputes
// another, in words and numbers.

#ifndef TMC_COMPILER_REPORT_EXPLAIN_H
#define TMC_COMPILER_REPORT_EXPLAIN_H

#include "compiler/report/PlanTrace.h"

#include <string>
#include <vector>

namespace tmc {

/// The plan's decision about a value, in one or two words: "kept",
/// "recomputed", "in place", "persistent", "short-lived".
std::string decisionOf(const PlanTrace &trace, int32_t value,
                       const std::vector<int32_t> &tensors);

/// "bf16: factor of lm_head's product": a value's type and the reason for it.
std::string typeText(const PlanTrace::Value &value);

/// The tensors with decisions, the largest first: one line each.
std::string explainAll(const PlanTrace &trace, int count = 24);

/// All facts about the tensors whose names match `glob` (`*`, `?`, `[..]`). A
/// name without wildcards also matches the same name with a tag, "NAME
/// (backward)". Error: no name matches; the notes list similar names.
Expected<std::string> explainTensors(const PlanTrace &trace,
                                     const std::string &glob);

/// The text of `explainTensors` about each content, by the index of its value;
/// empty for other forms of a content and for what no plan has.
std::vector<std::string> explainContents(const PlanTrace &trace);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_EXPLAIN_H
