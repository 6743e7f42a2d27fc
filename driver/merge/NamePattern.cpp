#include "driver/merge/NamePattern.h"

#include "llvm/ADT/StringExtras.h"

#include <optional>

using namespace tmc;

/// Names of modules take some 100 characters.
static constexpr size_t kMostCharacters = 1000;

/// An escape of Python in POSIX's words, or nothing. `inSet`: in brackets.
static std::optional<std::string> escapeOf(char c, bool inSet) {
  const std::string digits = "0-9", word = "A-Za-z0-9_";
  if (c == 'd' || c == 'w') {
    const std::string &set = c == 'd' ? digits : word;
    return inSet ? set : "[" + set + "]";
  }
  // In brackets, POSIX takes a backslash as it is.
  if (llvm::isAlnum(c) || (inSet && (c == ']' || c == '^' || c == '-')))
    return std::nullopt;
  return inSet ? std::string(1, c) : std::string("\\") + c;
}

namespace {

/// Translates one pattern.
class Translation {
public:
  explicit Translation(const std::string &text) : text(text) {}

  /// The pattern for POSIX, or nothing: then `why` says what isn't read.
  std::optional<std::string> run() {
    while (at < text.size())
      if (!step())
        return std::nullopt;
    if (inSet)
      return refuse("a bracket without its end");
    return result;
  }
  std::string why;

private:
  std::nullopt_t refuse(const std::string &reason) {
    why = reason;
    return std::nullopt;
  }
  bool step() {
    const char c = text[at++];
    const char next = at < text.size() ? text[at] : '\0';
    if (c == '\\') {
      std::optional<std::string> escape = escapeOf(next, inSet);
      if (!next || !escape) {
        why = std::string("the escape '\\") + next + "'";
        return false;
      }
      ++at;
      result += *escape;
      return true;
    }
    if (inSet) {
      if (c == '[') {
        why = "a bracket in brackets";
        return false;
      }
      inSet = c != ']' || at - 1 == setBegin;
      result += c;
      return true;
    }
    if (c == '[') {
      inSet = true;
      setBegin = at + (next == '^');
    }
    const bool repeats = c == '*' || c == '+' || c == '?';
    if ((repeats && (next == '?' || next == '+' || next == '*')) ||
        (c == '(' && next == '?') || c == '{' || c == '}') {
      why = std::string("'") + c +
            (repeats || c == '(' ? std::string(1, next) : std::string()) + "'";
      return false;
    }
    result += c;
    return true;
  }

  const std::string &text;
  size_t at = 0, setBegin = 0;
  bool inSet = false;
  std::string result;
};

} // namespace

Expected<NamePattern> NamePattern::parse(const std::string &text) {
  if (text.size() > kMostCharacters)
    return Failure::unsupported("a pattern of " + std::to_string(text.size()) +
                                " characters, of at most 1000");
  Translation translation(text);
  std::optional<std::string> posix = translation.run();
  if (!posix)
    return Failure::unsupported("the pattern '" + text +
                                "': " + translation.why + " isn't read");
  NamePattern pattern;
  pattern.written = text;
  pattern.regex = llvm::Regex("^(.*\\.)?(" + *posix + ")$");
  std::string error;
  if (!pattern.regex.isValid(error))
    return Failure::input("the pattern '" + text +
                          "' is no regular expression: " + error);
  return pattern;
}
