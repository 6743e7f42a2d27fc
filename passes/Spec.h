// Spec.h - `name(key=value,...)`, as options of passes are written.
//
//     adamw(beta1=0.9,moments=bf16)
//     dynamic(interval=100)

#ifndef TMC_PASSES_SPEC_H
#define TMC_PASSES_SPEC_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>

namespace tmc {

/// A spec, taken apart. What is read of it is taken out, so that what is left
/// at the end is unknown.
struct Spec {
  std::string of; // "optimizer": messages begin with it.
  std::string name;
  std::map<std::string, std::string> options;
  std::string problem; // The first one, or "".

  /// The spec of `text`, or a message.
  static llvm::Expected<Spec> parse(llvm::StringRef of, llvm::StringRef text);

  double number(const std::string &key, double standard);
  std::string word(const std::string &key, const std::string &standard);
  /// Whether `key` is `second` of two words, the first being standard.
  bool isSecond(const std::string &key, llvm::StringRef first,
                llvm::StringRef second);

  /// What is wrong: a problem, or an option that nothing has read.
  llvm::Error finish() const;
  /// "optimizer: message".
  llvm::Error error(const llvm::Twine &message) const;
};

} // namespace tmc

#endif // TMC_PASSES_SPEC_H
