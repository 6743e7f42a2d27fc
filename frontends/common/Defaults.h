// Defaults.h - the defaults of operators' arguments, by the operators' schemas.
//
// A file may give an argument its default value. An importer may ignore such an
// argument. bench/operators/defaults.py writes the tables:
//
//   TMC_DEFAULTS("embedding", "padding_idx=-1 scale_grad_by_freq=False")

#ifndef TMC_FRONTENDS_COMMON_DEFAULTS_H
#define TMC_FRONTENDS_COMMON_DEFAULTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace tmc::frontend {

class Defaults {
public:
  struct Line {
    const char *op, *arguments;
  };
  Defaults(llvm::ArrayRef<Line> lines);

  /// The default as the schema writes it: "-1", "False", "mean", "[1,1]".
  /// Nothing if there is none, or if it is None.
  std::optional<llvm::StringRef> find(llvm::StringRef op,
                                      llvm::StringRef argument) const;

private:
  llvm::StringMap<llvm::StringRef> byOp;
};

/// True if a schema's `text` is this number; True counts as 1.
bool isNumber(llvm::StringRef text, double value);

/// True if `text` is this list, or one number that equals all of `values`.
bool isList(llvm::StringRef text, llvm::ArrayRef<double> values);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_DEFAULTS_H
