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

/// The deepest nesting of `text`, and an upper bound of its number of values.
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
      ++extent.values; // Its first value; the others follow commas.
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',') {
      ++extent.values;
    }
  }
  return extent;
}

/// The code unit of an escape at `at`, `\ud83d`; -1 if there is none.
static int64_t codeUnitAt(llvm::StringRef text, size_t at) {
  uint64_t unit;
  llvm::StringRef digits = text.substr(at, 6);
  if (digits.size() != 6 || !digits.consume_front("\\u") ||
      digits.getAsInteger(16, unit))
    return -1;
  return int64_t(unit);
}

/// Replaces escapes of surrogate pairs in `text` by their characters, because
/// LLVM's parser decodes those above U+1FFFF wrongly.
static std::string withoutPairs(llvm::StringRef text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const int64_t high = codeUnitAt(text, at), low = codeUnitAt(text, at + 6);
    if ((high & ~0x3ff) == 0xd800 && (low & ~0x3ff) == 0xdc00) {
      appendUtf8(result,
                 0x10000 + uint32_t((high & 0x3ff) << 10 | (low & 0x3ff)));
      at += 12;
      continue;
    }
    // An escaped character doesn't begin another escape.
    const size_t length = text[at] == '\\' ? 2 : 1;
    result += text.substr(at, length);
    at += length;
  }
  return result;
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
  const bool hasPairs =
      text.contains("\\ud") || text.contains("\\uD"); // Few texts have any.
  llvm::Expected<json::Value> value =
      hasPairs ? json::parse(withoutPairs(text)) : json::parse(text);
  if (!value)
    return Failure::input("is no JSON: " + llvm::toString(value.takeError()));
  return std::move(*value);
}

tmc::Expected<json::Object> tmc::parseJsonObject(llvm::StringRef text,
                                                 const JsonLimits &limits) {
  tmc::Expected<json::Value> value = parseJson(text, limits);
  if (!value)
    return std::move(value.failure());
  if (json::Object *object = value->getAsObject())
    return std::move(*object);
  return Failure::input("isn't an object");
}

std::string tmc::jsonText(const json::Value &value, unsigned indent) {
  std::string text, shown;
  llvm::raw_string_ostream os(text);
  json::OStream(os, indent).value(value);
  // Outside of strings there are only ASCII characters and indentation.
  for (size_t at = 0; at < text.size();) {
    const Character character = characterAt(text, at);
    if (isHidden(character.code) && text[at] != '\n')
      shown += escapeOf(character.code);
    else
      shown.append(text, at, size_t(character.bytes));
    at += size_t(character.bytes);
  }
  return shown + "\n";
}
