// Depfile.h - a rule for make and ninja: outputs and the files they depend on.
//
//     step/plan.json step/train: /usr/bin/tmc a\ model.onnx
//
// (each name on a line of its own)
//
// Make gives some characters of a name a meaning: `$(shell ...)` runs a
// command, `;` begins one. Spaces, `#`, `:` and `$` have an escape that make
// and ninja both know; a name with any other such character is refused.

#ifndef TMC_DRIVER_PIPELINE_DEPFILE_H
#define TMC_DRIVER_PIPELINE_DEPFILE_H

#include "compiler/support/Failure.h"

#include <optional>
#include <string>
#include <vector>

namespace tmc {

/// The part of a rule that a name is in.
enum class RulePart { Target, Prerequisite };

/// `name` as make and ninja both read it, or nothing.
std::optional<std::string> makeName(const std::string &name, RulePart part);

/// Fails where a depfile can't name one of `names`.
Expected<void> checkMakeNames(const std::vector<std::string> &names,
                              RulePart part);

struct DependRule {
  std::vector<std::string> targets, prerequisites;
};

/// Fails where the rule can't be written.
Expected<void> checkRule(const DependRule &rule);

Expected<void> writeDepfile(const std::string &path, const DependRule &rule);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_DEPFILE_H
