// Json.h - reads JSON from files, with limits, and writes visible JSON.
//
// LLVM's parser recurses for each level and keeps some hundred bytes for each
// value: a file of 40 KB of brackets would overflow the stack, and a small
// archive could inflate to more values than memory holds. Every reader of JSON
// in tmc parses here.

#ifndef TMC_COMPILER_SUPPORT_JSON_H
#define TMC_COMPILER_SUPPORT_JSON_H

#include "compiler/support/Failure.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <string>

namespace tmc {

struct JsonLimits {
  /// The nesting of brackets. Files for tmc have a dozen levels; graphs of
  /// graphs have more.
  int64_t maxDepth = 200;
  /// Numbers, strings, lists and so on. The graph of a model of ten billion
  /// parameters has half a million.
  int64_t maxValues = 16 << 20;
};

/// The value of `text`. Fails with `Input` if `text` is no JSON or exceeds
/// `limits`; the message continues after a name of the text: "is no JSON: ...".
Expected<llvm::json::Value> parseJson(llvm::StringRef text,
                                      const JsonLimits &limits = {});

/// The same for a text whose value is an object: else it "isn't an object".
Expected<llvm::json::Object> parseJsonObject(llvm::StringRef text,
                                             const JsonLimits &limits = {});

/// `value` as text with visible characters only; `indent` is the number of
/// blanks for each level, or 0 for one line.
std::string jsonText(const llvm::json::Value &value, unsigned indent = 0);

} // namespace tmc

#endif // TMC_COMPILER_SUPPORT_JSON_H
