// Json.h - JSON that a file holds, bounded; and JSON that others read.
//
// LLVM's parser calls itself for each level and keeps some hundred bytes for
// each value: a file of 40 KB of brackets would overflow the stack, a small
// archive could inflate to more values than there is memory. Every reader of
// JSON parses here.

#ifndef TMC_COMPILER_SUPPORT_JSON_H
#define TMC_COMPILER_SUPPORT_JSON_H

#include "compiler/support/Failure.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <string>

namespace tmc {

struct JsonLimits {
  /// Brackets in brackets. What tmc reads has a dozen; graphs of graphs more.
  int64_t maxDepth = 200;
  /// Numbers, texts, lists and so on. The graph of a model of ten billion
  /// parameters has half a million.
  int64_t maxValues = 16 << 20;
};

/// The value that `text` is. Fails with `Input` where it is none or exceeds
/// `limits`; the message goes on behind what names the text: "is no JSON: ...".
Expected<llvm::json::Value> parseJson(llvm::StringRef text,
                                      const JsonLimits &limits = {});

/// `value` as text, whose characters are all visible; `indent` is
/// the number of blanks for each level, or 0 for one line.
std::string jsonText(const llvm::json::Value &value, unsigned indent = 0);

} // namespace tmc

#endif // TMC_COMPILER_SUPPORT_JSON_H
