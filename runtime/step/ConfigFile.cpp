//===- ConfigFile.cpp - flags from a file ---------------------------------===//

#include "runtime/step/ConfigFile.h"

#include "runtime/kernels/Names.h"
#include "runtime/step/File.h"

#include <algorithm>

namespace tmc {

namespace {

bool isBare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Reads TOML from the first byte to the last. The first failure ends it.
class TomlReader {
public:
  explicit TomlReader(std::string_view text) : rest_(text) {}

  bool read(std::vector<ConfigTable> &tables);
  std::string error() const {
    return "line " + std::to_string(line_) + ": " + error_;
  }

private:
  bool fail(const std::string &why) {
    if (error_.empty())
      error_ = why;
    return false;
  }
  char next() const { return rest_.empty() ? '\n' : rest_[0]; }
  bool accept(char c) {
    if (rest_.empty() || rest_[0] != c)
      return false;
    rest_.remove_prefix(1);
    return true;
  }
  void blanks() {
    while (accept(' ') || accept('\t'))
      continue;
  }
  void comment() {
    if (next() == '#')
      while (!rest_.empty() && rest_[0] != '\n')
        rest_.remove_prefix(1);
  }
  /// Reads the end of a line; false if something else stands there.
  bool lineEnd() {
    blanks();
    comment();
    if (rest_.size() > 1 && rest_[0] == '\r' && rest_[1] == '\n')
      rest_.remove_prefix(1);
    if (!rest_.empty() && rest_[0] != '\n')
      return false;
    line_ += accept('\n');
    return true;
  }
  /// Passes over blanks, comments and the ends of lines.
  void gap() {
    for (size_t before = 0; before != rest_.size() && !rest_.empty();) {
      before = rest_.size();
      (void)lineEnd();
    }
  }
  bool key(std::string &name);
  bool string(std::string &text);
  bool escape(std::string &text);
  bool number(std::string &text);
  bool scalar(std::string &text);
  bool value(ConfigFlag &flag);

  std::string_view rest_;
  int line_ = 1;
  std::string error_;
};

bool TomlReader::escape(std::string &text) {
  constexpr std::string_view kLetters = "btnfr\"\\", kMeant = "\b\t\n\f\r\"\\";
  const char c = next();
  if (const size_t at = kLetters.find(c); at != std::string_view::npos) {
    rest_.remove_prefix(1);
    text += kMeant[at];
    return true;
  }
  const size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (!digits)
    return fail("a string has an escape that TOML doesn't know");
  uint32_t code = 0;
  for (size_t i = 1; i <= digits; ++i) {
    const char digit = i < rest_.size() ? rest_[i] : '\n';
    const int value = isDigit(digit)                 ? digit - '0'
                      : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                      : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                                     : -1;
    if (value < 0 || code >> 28)
      return fail("a string has an escape without its digits");
    code = code * 16 + uint32_t(value);
  }
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
    return fail("a string has an escape of no character");
  rest_.remove_prefix(digits + 1);
  appendUtf8(text, code);
  return true;
}

bool TomlReader::string(std::string &text) {
  const char quote = next();
  const std::string three(3, quote);
  if (rest_.substr(0, 3) == three)
    return fail("a string of several lines can't be a flag's value");
  rest_.remove_prefix(1);
  while (!accept(quote)) {
    if (next() == '\n' || next() == '\r')
      return fail("a string has no end on its line");
    if (quote == '"' && accept('\\')) {
      if (!escape(text))
        return false;
      continue;
    }
    text += next();
    rest_.remove_prefix(1);
  }
  return true;
}

/// Reads digits, with single `_` between them, which are left out.
static bool digitsOf(std::string_view &rest, std::string &text) {
  const size_t before = text.size();
  while (!rest.empty() && isDigit(rest[0])) {
    text += rest[0];
    rest.remove_prefix(1);
    if (rest.size() > 1 && rest[0] == '_' && isDigit(rest[1]))
      rest.remove_prefix(1);
  }
  return text.size() > before;
}

bool TomlReader::number(std::string &text) {
  const auto wrong = [this] {
    return fail("a value is a string in quotes, a decimal number, true, false "
                "or an array of these");
  };
  if (accept('-'))
    text += '-';
  else
    (void)accept('+');
  const size_t first = text.size();
  if (!digitsOf(rest_, text) || (text[first] == '0' && text.size() > first + 1))
    return wrong();
  if (accept('.')) {
    text += '.';
    if (!digitsOf(rest_, text))
      return wrong();
  }
  if (accept('e') || accept('E')) {
    text += 'e';
    if (next() == '-' || next() == '+') {
      text += next();
      rest_.remove_prefix(1);
    }
    if (!digitsOf(rest_, text))
      return wrong();
  }
  return !isBare(next()) && next() != '.' && next() != ':' ? true : wrong();
}

bool TomlReader::scalar(std::string &text) {
  return next() == '"' || next() == '\'' ? string(text) : number(text);
}

bool TomlReader::key(std::string &name) {
  blanks();
  if (next() == '"' || next() == '\'')
    return string(name);
  while (isBare(next())) {
    name += next();
    rest_.remove_prefix(1);
  }
  return !name.empty() || fail("a key or a [table] is expected");
}

bool TomlReader::value(ConfigFlag &flag) {
  for (const char *word : {"true", "false"}) {
    const std::string_view text = word;
    const size_t end = text.size();
    if (rest_.substr(0, end) == text &&
        (rest_.size() == end || !isBare(rest_[end]))) {
      rest_.remove_prefix(end);
      flag.kind = ConfigFlag::Switch;
      flag.isOn = text == "true";
      return true;
    }
  }
  if (!accept('[')) {
    flag.values.emplace_back();
    return scalar(flag.values.back());
  }
  flag.kind = ConfigFlag::List;
  for (gap(); !accept(']'); gap()) {
    flag.values.emplace_back();
    if (!scalar(flag.values.back()))
      return false;
    gap();
    if (!accept(',') && next() != ']')
      return fail("an array has no ',' or ']' behind a value");
  }
  return true;
}

bool TomlReader::read(std::vector<ConfigTable> &tables) {
  if (const std::string fault = textFault(rest_); !fault.empty())
    return fail("the text " + fault);
  for (gap(); !rest_.empty(); gap()) {
    std::string name;
    blanks();
    const bool isTable = accept('[');
    if (!key(name))
      return false;
    blanks();
    if (next() == '.' || (isTable && name.empty()))
      return fail("a table or key has one name, without a dot");
    auto sameName = [&](const auto &other) { return other.name == name; };
    if (isTable) {
      if (!accept(']') || !lineEnd())
        return fail("a table is [NAME], alone on its line");
      if (std::any_of(tables.begin(), tables.end(), sameName))
        return fail("the table [" + name + "] is there twice");
      tables.push_back({name, {}});
      continue;
    }
    if (tables.empty())
      return fail("the key '" + name + "' stands before a [table]");
    std::vector<ConfigFlag> &flags = tables.back().flags;
    if (std::any_of(flags.begin(), flags.end(), sameName))
      return fail("the key '" + name + "' is there twice");
    if (!accept('='))
      return fail("'=' is expected behind the key '" + name + "'");
    blanks();
    ConfigFlag flag;
    flag.name = name;
    if (!value(flag))
      return false;
    flags.push_back(std::move(flag));
    const int line = line_;
    if (!lineEnd()) {
      line_ = line;
      return fail("something follows the value of '" + name + "'");
    }
  }
  return true;
}

} // namespace

std::vector<std::string> ConfigFlag::words() const {
  const std::string flag = "--" + name;
  std::vector<std::string> words;
  if (kind == Switch && isOn)
    words.push_back(flag);
  for (const std::string &value : values)
    words.push_back(flag + "=" + value);
  return words;
}

Status parseConfig(std::string_view text, std::vector<ConfigTable> &tables) {
  TomlReader reader(text);
  return reader.read(tables) ? Status::ok()
                             : Status(Code::BadInput, reader.error());
}

Status readConfig(const std::string &path, const std::string &name,
                  ConfigTable &table) {
  constexpr int64_t kMostBytes = 1 << 20;
  MappedFile file;
  if (Status s = MappedFile::open(path, file); !s)
    return s;
  if (file.bytes() > kMostBytes)
    return {Code::BadInput,
            "'" + path + "' is no file of flags: it has over a MiB"};
  std::string text(size_t(file.bytes()), '\0');
  if (Status s = file.read(0, text.data(), file.bytes()); !s)
    return s;
  std::vector<ConfigTable> tables;
  if (Status s = parseConfig(text, tables); !s)
    return {s.code(), "'" + path + "', " + s.message()};
  for (ConfigTable &each : tables) {
    if (each.name == name)
      table = std::move(each);
    else if (each.name != "compile" && each.name != "train")
      return {Code::BadInput, "'" + path + "' has a table [" + each.name +
                                  "]; there are [compile] and [train]"};
  }
  return Status::ok();
}

std::string tomlQuoted(std::string_view text) {
  std::string result = "\"";
  for (size_t at = 0; at < text.size();) {
    const Character character = characterAt(text, at);
    const uint32_t code = character.isSound ? character.code : 0xfffd;
    if (!character.isSound || isHidden(code)) {
      char escape[16];
      std::snprintf(escape, sizeof escape,
                    code < 0x10000 ? "\\u%04x" : "\\U%08x", unsigned(code));
      result += escape;
    } else {
      if (code == '"' || code == '\\')
        result += '\\';
      result += text.substr(at, size_t(character.bytes));
    }
    at += size_t(character.bytes);
  }
  return result + "\"";
}

} // namespace tmc
