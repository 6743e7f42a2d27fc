// Spec.h - `name(key=value,...)`, the text format of options of passes.
//
//     adamw(beta1=0.9,moments=bf16)
//     dynamic(interval=100)

#ifndef TMC_PASSES_SPEC_H
#define TMC_PASSES_SPEC_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace tmc {

/// A parsed spec. A read removes its option, so the options left at the end are
/// unknown ones, and those that were read are all that there are.
struct Spec {
  std::string of; // "optimizer": the start of messages.
  std::string name;
  std::map<std::string, std::string> options;
  std::string problem;            // The first one, or "".
  std::vector<std::string> known; // The keys that were read.

  /// The spec of `text`, or a message.
  static llvm::Expected<Spec> parse(llvm::StringRef of, llvm::StringRef text);

  double number(const std::string &key, double standard);
  std::string word(const std::string &key, const std::string &standard);
  /// Whether `key` is `second`, of two words; the first is the default.
  bool isSecond(const std::string &key, llvm::StringRef first,
                llvm::StringRef second);

  /// The error: a problem, or an option that was never read.
  llvm::Error finish() const;
  /// "optimizer: message".
  llvm::Error error(const llvm::Twine &message) const;
};

} // namespace tmc

#endif // TMC_PASSES_SPEC_H
