#include "compiler/support/Json.h"

#include "runtime/kernels/Names.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace tmc;
namespace json = llvm::json;

namespace {
struct Extent {
  int64_t depth = 0, values = 1;
};
} // namespace

/// The deepest nesting of `text`, and at least as many values as it has.
static Extent extentOf(llvm::StringRef text) {
  Extent extent;
  int64_t depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      extent.depth = std::max(extent.depth, ++depth);
      ++extent.values; // Its first one; the others follow commas.
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',') {
      ++extent.values;
    }
  }
  return extent;
}

tmc::Expected<json::Value> tmc::parseJson(llvm::StringRef text,
                                          const JsonLimits &limits) {
  const Extent extent = extentOf(text);
  if (extent.depth > limits.maxDepth)
    return Failure::input("is nested more than " +
                          std::to_string(limits.maxDepth) + " deep");
  if (extent.values > limits.maxValues)
    return Failure::input("has more than " + std::to_string(limits.maxValues) +
                          " values");
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value)
    return Failure::input("is no JSON: " + llvm::toString(value.takeError()));
  return std::move(*value);
}

std::string tmc::jsonText(const json::Value &value, unsigned indent) {
  std::string text, shown;
  llvm::raw_string_ostream os(text);
  json::OStream(os, indent).value(value);
  // Outside of strings there is nothing but ASCII and what indents.
  for (size_t at = 0; at < text.size();) {
    const Character character = characterAt(text, at);
    // LLVM reads two surrogates as another character than they are.
    const bool isPair = character.code > 0xffff;
    if (isHidden(character.code) && !isPair && text[at] != '\n')
      shown += escapeOf(character.code);
    else
      shown.append(text, at, size_t(character.bytes));
    at += size_t(character.bytes);
  }
  return shown + "\n";
}
