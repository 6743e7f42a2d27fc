//===- JsonReader.h - JSON of other programs' files -------------*- C++ -*-===//
//
// The words of JSON, for readers of one kind of file each: the headers of
// safetensors files, the indices of shards, and lines of samples. Such a reader
// says which values it expects; a value of no interest is skipped. Nothing is
// kept in memory but what the reader takes.
//
//     JsonReader at(text, "index");
//     if (!at.expect('{') || !at.string(key) || ...)
//       return at.error();     // "':' expected (at byte 7 of the index)"
//
// The first failure stays; later ones don't replace it. The compiler has
// LLVM's parser instead (compiler/support/Json.h).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_JSONREADER_H
#define TMC_RUNTIME_STEP_JSONREADER_H

#include "runtime/kernels/Names.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tmc {

class JsonReader {
public:
  /// `whole` names the text in errors.
  JsonReader(std::string_view text, const char *whole)
      : at_(text.data()), begin_(at_), end_(at_ + text.size()), whole_(whole) {}

  /// Always false.
  bool fail(const std::string &why) { return failAt(at_ - begin_, why); }
  /// The same for a failure at another byte of the text.
  bool failAt(int64_t at, const std::string &why) {
    if (error_.empty()) {
      reason_ = why;
      failedAt_ = at;
      error_ =
          why + " (at byte " + std::to_string(at) + " of the " + whole_ + ")";
    }
    return false;
  }
  const std::string &error() const { return error_; }
  /// The error without its place, and its place in bytes.
  const std::string &reason() const { return reason_; }
  int64_t failedAt() const { return failedAt_; }
  /// The byte at which the next word begins.
  int64_t position() {
    blanks();
    return at_ - begin_;
  }

  /// True if `c` comes next; then it is read.
  bool accept(char c) {
    blanks();
    if (at_ == end_ || *at_ != c)
      return false;
    ++at_;
    return true;
  }
  /// True if `c` comes next.
  bool isNext(char c) {
    blanks();
    return at_ < end_ && *at_ == c;
  }
  bool expect(char c) {
    return accept(c) || fail(std::string("'") + c + "' expected");
  }
  /// Expects the end of the text.
  bool finish() {
    blanks();
    return at_ == end_ ||
           fail(std::string("something follows the ") + whole_ + "'s object");
  }

  /// Reads an object: `each` is called with each key, before its value.
  template <typename F> bool object(F &&each) {
    if (!expect('{'))
      return false;
    if (accept('}'))
      return true;
    do {
      std::string key;
      if (!string(key) || !expect(':') || !each(key))
        return false;
    } while (accept(','));
    return expect('}');
  }

  bool string(std::string &out);
  /// Fails if `name`, a string that was read, isn't UTF-8 or holds control
  /// characters.
  bool checkName(const std::string &name) {
    const std::string fault = nameFault(name);
    return fault.empty() ||
           fail("the name '" + visible(name, /*isName=*/true) + "' " + fault);
  }
  /// A non-negative whole number.
  bool integer(int64_t &out);
  /// A whole number of either sign, without a fraction or an exponent.
  bool whole(int64_t &out);
  /// A finite number.
  bool number(double &out);
  /// Reads a value of any kind as its text.
  bool raw(std::string_view &out) {
    blanks();
    const char *start = at_;
    if (!skip())
      return false;
    out = {start, size_t(at_ - start)};
    return true;
  }
  /// Reads a value of any kind and forgets it.
  bool skip(int depth = 0);

private:
  void blanks() {
    while (at_ < end_ &&
           (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r'))
      ++at_;
  }
  bool codeUnit(uint32_t &code);
  bool escaped(std::string &out);
  bool skipPlain();
  const char *numberEnd(bool isWhole) const;

  const char *at_, *begin_, *end_, *whole_;
  std::string error_, reason_;
  int64_t failedAt_ = 0;
};

//===----------------------------------------------------------------------===//

/// The four digits after `\u`.
inline bool JsonReader::codeUnit(uint32_t &code) {
  if (end_ - at_ < 4)
    return fail("an unfinished escape");
  for (int i = 0; i < 4; ++i, ++at_) {
    const char h = *at_;
    const int digit = h >= '0' && h <= '9'   ? h - '0'
                      : h >= 'a' && h <= 'f' ? h - 'a' + 10
                      : h >= 'A' && h <= 'F' ? h - 'A' + 10
                                             : -1;
    if (digit < 0)
      return fail("a bad escape");
    code = code * 16 + uint32_t(digit);
  }
  return true;
}

/// The character after a backslash.
inline bool JsonReader::escaped(std::string &out) {
  const char c = *at_++;
  if (c == 'u') {
    uint32_t code = 0, low = 0;
    if (!codeUnit(code))
      return false;
    // A character above U+FFFF takes two code units.
    if ((code & 0xfc00) == 0xd800) {
      if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u')
        return fail("half of a character");
      at_ += 2;
      if (!codeUnit(low))
        return false;
      if ((low & 0xfc00) != 0xdc00)
        return fail("half of a character");
      code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    } else if ((code & 0xfc00) == 0xdc00) {
      return fail("half of a character");
    }
    appendUtf8(out, code);
    return true;
  }
  const char *from = "\"\\/bfnrt", *to = "\"\\/\b\f\n\r\t";
  const char *found = std::strchr(from, c);
  if (!c || !found)
    return fail("a bad escape");
  out += to[found - from];
  return true;
}

inline bool JsonReader::string(std::string &out) {
  if (!expect('"'))
    return false;
  out.clear();
  while (at_ < end_ && *at_ != '"') {
    if (static_cast<unsigned char>(*at_) < 0x20)
      return fail("a control character in a string");
    if (*at_ != '\\') {
      out += *at_++;
      continue;
    }
    if (++at_ == end_)
      break;
    if (!escaped(out))
      return false;
  }
  return expect('"');
}

inline bool JsonReader::integer(int64_t &out) {
  blanks();
  const char *start = at_;
  out = 0;
  for (; at_ < end_ && *at_ >= '0' && *at_ <= '9'; ++at_)
    if (__builtin_mul_overflow(out, int64_t(10), &out) ||
        __builtin_add_overflow(out, int64_t(*at_ - '0'), &out))
      return fail("a number that is too large");
  return at_ != start || fail("a non-negative whole number expected");
}

/// The end of the number that begins here, by JSON's grammar; null if none
/// does. A whole number ends before a fraction or an exponent.
inline const char *JsonReader::numberEnd(bool isWhole) const {
  const char *at = at_;
  auto digits = [&] {
    const char *start = at;
    while (at < end_ && *at >= '0' && *at <= '9')
      ++at;
    return at != start;
  };
  if (at < end_ && *at == '-')
    ++at;
  const bool isZero = at < end_ && *at == '0';
  if (isZero)
    ++at;
  else if (!digits())
    return nullptr;
  if (isWhole)
    return at;
  if (at < end_ && *at == '.' && (++at, !digits()))
    return nullptr;
  if (at < end_ && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at < end_ && (*at == '+' || *at == '-'))
      ++at;
    if (!digits())
      return nullptr;
  }
  return at;
}

inline bool JsonReader::whole(int64_t &out) {
  blanks();
  const char *last = numberEnd(/*isWhole=*/true);
  if (!last || (last < end_ && (*last == '.' || *last == 'e' || *last == 'E' ||
                                (*last >= '0' && *last <= '9'))))
    return fail("a whole number expected");
  if (std::from_chars(at_, last, out).ec != std::errc())
    return fail("a number that is too large");
  at_ = last;
  return true;
}

inline bool JsonReader::number(double &out) {
  blanks();
  const char *last = numberEnd(/*isWhole=*/false);
  if (!last)
    return fail("a number expected");
  const auto [end, error] = std::from_chars(at_, last, out);
  if (error != std::errc() || end != last)
    return fail("a number that a double can't hold");
  at_ = last;
  return true;
}

/// Skips a number, true, false or null. Which of them, and its form, is of no
/// interest.
inline bool JsonReader::skipPlain() {
  const char *start = at_;
  while (at_ < end_ && (std::strchr("+-.", *at_)
                            ? *at_ != 0
                            : (*at_ >= '0' && *at_ <= '9') ||
                                  (*at_ >= 'a' && *at_ <= 'z') || *at_ == 'E'))
    ++at_;
  return at_ != start || fail("a value expected");
}

inline bool JsonReader::skip(int depth) {
  constexpr int kMostDepth = 64;
  if (depth == kMostDepth)
    return fail("more than 64 brackets in each other");
  blanks();
  std::string text;
  if (at_ < end_ && *at_ == '"')
    return string(text);
  if (at_ < end_ && *at_ == '{')
    return object([&](const std::string &) { return skip(depth + 1); });
  if (!accept('['))
    return skipPlain();
  if (accept(']'))
    return true;
  do {
    if (!skip(depth + 1))
      return false;
  } while (accept(','));
  return expect(']');
}

} // namespace tmc

#endif // TMC_RUNTIME_STEP_JSONREADER_H
