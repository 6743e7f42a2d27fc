// Refusals.h - all features that a model needs and tmc lacks, in one message.
//
//   error: the model asks for 3 things that aren't supported
//   note: Bernoulli, 2 times: drop, drop_1
//   note: instead: draw the numbers with the data, and give them as an input
//   note: Resize 'up' (model.py:12): resizing by mode 'lanczos'
//   note: instead: resize by nearest, linear or cubic, without antialiasing
//
// Nodes of one operator with one fault are one entry; entries with the same way
// around are listed together.

#ifndef TMC_FRONTENDS_COMMON_REFUSALS_H
#define TMC_FRONTENDS_COMMON_REFUSALS_H

#include "compiler/support/Failure.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace tmc::frontend {

struct Refusal {
  std::string op;   ///< The operator, or another kind, "input".
  std::string node; ///< Its name in the file.
  std::string line; ///< " (model.py:12)", or nothing.
  std::string what; ///< The unsupported part; empty: all.
};

/// The messages of one import.
struct Diagnostics {
  /// Records an error, unless there is one.
  void fail(Failure f) {
    if (!failure)
      failure = std::move(f);
  }

  std::optional<Failure> failure;
  std::vector<Refusal> refusals;     ///< Unsupported features.
  std::vector<std::string> warnings; ///< For the user.
};

/// `otherwise` is the way around operators that aren't in the table of ways.
Failure allOf(llvm::ArrayRef<Refusal> refusals, const std::string &otherwise);

/// The first of `names`, and the number of the others.
std::string listed(llvm::ArrayRef<std::string> names);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_REFUSALS_H
