// NamePattern.h - the regular expressions of an adapter's configuration.
//
// PEFT chooses ranks and alphas of modules by patterns of Python's `re`,
// matched against a module's name or its end after a dot:
//
//     "layers.0.mlp.down_proj"    model.layers.0.mlp.down_proj
//     "(q|k)_proj"                model.layers.7.self_attn.k_proj
//     "^model\.layers\.\d\."      nothing: the end of the name doesn't match
//
// A stranger writes the pattern, so that it is matched by an automaton
// (LLVM's), in time that no pattern makes exponential. Words that Python
// reads in another way than POSIX are translated (`\d`, `\w`, `\.`) or refused:
// groups with `(?`, counts in braces, lazy repeats, other escapes.

#ifndef TMC_DRIVER_MERGE_NAMEPATTERN_H
#define TMC_DRIVER_MERGE_NAMEPATTERN_H

#include "compiler/support/Failure.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Regex.h"

#include <string>

namespace tmc {

class NamePattern {
public:
  /// Fails with `Unsupported` if the pattern uses what isn't translated, with
  /// `Input` if it is no regular expression.
  static Expected<NamePattern> parse(const std::string &text);

  /// True if the name of a module, or its end after a dot, matches.
  bool matches(const std::string &name) const { return regex.match(name); }
  /// As it was written.
  const std::string &text() const { return written; }

private:
  std::string written;
  llvm::Regex regex;
};

} // namespace tmc

#endif // TMC_DRIVER_MERGE_NAMEPATTERN_H
