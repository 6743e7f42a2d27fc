//===- Names.h - checks and displays names from files -----------*- C++ -*-===//
//
// Models, checkpoints and data files may be hostile, and so may be the names in
// them. `nameFault` checks names once, when a file is read. A valid name may
// still hold invisible characters, or characters that change the visible order
// (U+202E reverses text). So each output language has its own function:
//
//   terminal, HTML text     visible      a<U+202E>b  ->  a\u202eb
//   JSON                    jsonQuoted   a<U+202E>b  ->  "a\u202eb"
//   C++, HTML, make, ...    compiler/support/Escape.h, which includes this
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_NAMES_H
#define TMC_RUNTIME_KERNELS_NAMES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

namespace tmc {

/// One character of UTF-8 text; an invalid byte is a character by itself.
struct Character {
  uint32_t code = 0;
  int bytes = 1;
  bool isSound = false;
};

/// The character at `at`, by the well-formed sequences of the standard: no
/// surrogates, nothing above U+10FFFF, and only the shortest encoding.
/// Source: The Unicode Standard, table 3-7.
inline Character characterAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const uint32_t first = byte(0);
  if (first < 0x80)
    return {first, 1, true};
  const int bytes = first >= 0xc2 && first <= 0xdf   ? 2
                    : first >= 0xe0 && first <= 0xef ? 3
                    : first >= 0xf0 && first <= 0xf4 ? 4
                                                     : 1;
  if (bytes == 1)
    return {first, 1, false};
  uint32_t code = first & (0x7fu >> bytes);
  for (int i = 1; i < bytes; ++i) {
    const uint32_t next = byte(size_t(i));
    if ((next & 0xc0) != 0x80)
      return {first, 1, false};
    code = code << 6 | (next & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0x80, 0x800, 0x10000}; // By length.
  if (code < kLeast[bytes - 2] || (code >= 0xd800 && code <= 0xdfff) ||
      code > 0x10ffff)
    return {first, 1, false};
  return {code, bytes, true};
}

/// Adds the character `code` to `out`.
inline void appendUtf8(std::string &out, uint32_t code) {
  if (code < 0x80) {
    out += char(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  out += char(kLead[more] | code >> (6 * more));
  for (int i = more; i-- > 0;)
    out += char(0x80 | (code >> (6 * i) & 0x3f));
}

/// The characters of category Cc: line feeds, escapes, and the like.
inline bool isControl(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f);
}

/// Characters that are invisible, or that change the order or the lines of the
/// text around them: categories Cc, Cf, Zl and Zp.
/// Source: The Unicode Standard 15, UnicodeData.txt.
inline bool isHidden(uint32_t code) {
  struct Range {
    uint32_t first, last;
  };
  constexpr Range kFormats[] = {
      {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
      {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
      {0x8e2, 0x8e2},     {0x180e, 0x180e},   {0x200b, 0x200f},
      {0x2028, 0x202e},   {0x2060, 0x206f},   {0xfeff, 0xfeff},
      {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
      {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
      {0xe0001, 0xe007f}};
  return isControl(code) ||
         std::any_of(std::begin(kFormats), std::end(kFormats),
                     [code](const Range &range) {
                       return range.first <= code && code <= range.last;
                     });
}

/// The reason why `name` is invalid, e.g. "holds the control character 0x0a at
/// byte 3". Empty if the name is UTF-8 without control characters.
inline std::string nameFault(std::string_view name) {
  for (size_t at = 0; at < name.size();) {
    const Character character = characterAt(name, at);
    if (!character.isSound || isControl(character.code)) {
      char text[80];
      std::snprintf(text, sizeof text,
                    character.isSound
                        ? "holds the control character 0x%02x at byte %zu"
                        : "isn't UTF-8: it holds 0x%02x at byte %zu",
                    unsigned(character.code), at);
      return text;
    }
    at += size_t(character.bytes);
  }
  return "";
}

/// As `nameFault`, for texts of several lines.
inline std::string textFault(std::string_view text) {
  std::string plain(text);
  for (char &c : plain)
    if (c == '\n' || c == '\r' || c == '\t')
      c = ' ';
  return nameFault(plain);
}

/// `code` as JSON and C++ write it; above U+FFFF as two surrogates.
inline std::string escapeOf(uint32_t code) {
  char text[16];
  if (code < 0x10000)
    std::snprintf(text, sizeof text, "\\u%04x", unsigned(code));
  else
    std::snprintf(text, sizeof text, "\\u%04x\\u%04x",
                  unsigned(0xd7c0 + (code >> 10)),
                  unsigned(0xdc00 + (code & 0x3ff)));
  return text;
}

/// `text` for display, e.g. on a terminal: hidden characters and bytes that
/// aren't UTF-8 are written as escapes. Line feeds and tabs stay in a text of
/// several lines; in a name they are escaped too.
inline std::string visible(std::string_view text, bool isName = false) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const Character character = characterAt(text, at);
    const bool isPlain = character.isSound &&
                         ((!isName && (text[at] == '\n' || text[at] == '\t')) ||
                          !isHidden(character.code));
    if (isPlain) {
      result += text.substr(at, size_t(character.bytes));
    } else if (character.isSound) {
      result += escapeOf(character.code);
    } else {
      char code[16];
      std::snprintf(code, sizeof code, "\\x%02x", unsigned(character.code));
      result += code;
    }
    at += size_t(character.bytes);
  }
  return result;
}

/// `text` as a string of JSON. Bytes that aren't UTF-8 become U+FFFD.
inline std::string jsonQuoted(std::string_view text) {
  std::string result = "\"";
  for (size_t at = 0; at < text.size();) {
    const Character character = characterAt(text, at);
    if (!character.isSound)
      result += escapeOf(0xfffd);
    else if (isHidden(character.code))
      result += escapeOf(character.code);
    else if (text[at] == '"' || text[at] == '\\')
      (result += '\\') += text[at];
    else
      result += text.substr(at, size_t(character.bytes));
    at += size_t(character.bytes);
  }
  return result + "\"";
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_NAMES_H
