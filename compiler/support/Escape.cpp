#include "compiler/support/Escape.h"

using namespace tmc;

/// Longer text is cut, so that a comment's line stays readable.
static constexpr size_t kMostInComment = 100;

std::string tmc::inComment(std::string_view text) {
  constexpr std::string_view kMore = "...";
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (result.size() + kMore.size() == kMostInComment &&
        text.size() - at > kMore.size())
      return (result += kMore);
    const Character character = characterAt(text, at);
    const char c = text[at];
    bool isPlain = character.isSound && c >= 0x20 && c < 0x7f && c != '\\';
    // The marks `//`, `/*`, `*/`; and `??/`, which some compilers read as a
    // backslash.
    if (isPlain && !result.empty()) {
      const char before = result.back();
      isPlain = !(c == '/' && (before == '/' || before == '*')) &&
                !(c == '*' && before == '/') && !(c == '/' && before == '?');
    }
    result += isPlain ? c : '?';
    at += size_t(character.bytes);
  }
  return result;
}

std::string tmc::cppString(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    // Some compilers read `??/` and other trigraphs as other characters.
    if (c == '"' || c == '\\' || c == '?') {
      (result += '\\') += c;
    } else if (c >= 0x20 && c < 0x7f) {
      result += c;
    } else {
      // Always three digits: after fewer, a digit that follows would belong to
      // the code.
      char code[8];
      std::snprintf(code, sizeof code, "\\%03o",
                    unsigned(static_cast<unsigned char>(c)));
      result += code;
    }
  }
  return result + "\"";
}

std::string tmc::inHtml(std::string_view text) {
  std::string result;
  for (char c : visible(text))
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    case '\'':
      result += "&#39;";
      break;
    default:
      result += c;
    }
  return result;
}

bool tmc::isCppName(std::string_view text) {
  const auto isLetter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  bool begins = true; // A word begins here.
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (!begins && text.substr(at, 2) == "::") {
      begins = true;
      ++at;
    } else if (isLetter(c) || (!begins && c >= '0' && c <= '9')) {
      begins = false;
    } else {
      return false;
    }
  }
  return !begins;
}
