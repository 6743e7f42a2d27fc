// Names as hostile files have them, in each language that they are written in.

#include "compiler/support/Escape.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

using namespace tmc;

namespace {

/// Every byte alone and in pairs with what changes its meaning, and longer
/// texts.
std::vector<std::string> hostileTexts() {
  std::vector<std::string> texts = {"",
                                    "\\",
                                    "\\ ",
                                    "a\\\n",
                                    "*/",
                                    "/*",
                                    "//",
                                    "/*/",
                                    "*//",
                                    "?\?/",
                                    "?\?/\n",
                                    "\"",
                                    "'",
                                    "%s%n",
                                    "<!--",
                                    "]]>",
                                    "</script>",
                                    "\xe2\x80\xae",
                                    "\u2028",
                                    "\u200f",
                                    "\ufeff",
                                    "\U000e0041",
                                    "\U0001f600",
                                    "int",
                                    "..",
                                    "/",
                                    "\xed\xa0\x80",
                                    "\xc0\xaf",
                                    "\xf5",
                                    "\xe2\x80",
                                    "\033[2J",
                                    "\033]0;x\007",
                                    "a\rb",
                                    "\x9b"
                                    "2J",
                                    "\u009b2J",
                                    std::string(65536, 'a'),
                                    std::string(65536, '\\'),
                                    std::string("a\0b", 3)};
  const std::string parts[] = {"", "/", "*", "\\", "?", "?\?", "\n", "0", "\""};
  for (int byte = 0; byte < 256; ++byte)
    for (const std::string &before : parts)
      for (const std::string &after : parts)
        texts.push_back(before + char(byte) + after);
  return texts;
}

} // namespace

TEST(Escape, CommentsEndWhereTheyShould) {
  for (const std::string &text : hostileTexts()) {
    const std::string comment = inComment(text);
    EXPECT_LE(comment.size(), 100u);
    for (char c : comment)
      EXPECT_TRUE(c >= 0x20 && c < 0x7f && c != '\\') << comment;
    for (const char *mark : {"//", "/*", "*/", "?\?/"})
      EXPECT_EQ(comment.find(mark), std::string::npos) << comment;
  }
  EXPECT_EQ(inComment("h.3.mlp"), "h.3.mlp");
  EXPECT_EQ(inComment("a*/b//c\\"), "a*?b/?c?");
  EXPECT_EQ(inComment("b\n__builtin_trap();//"), "b?__builtin_trap();/?");
  EXPECT_EQ(inComment("\u00e9t\u00e9"), "?t?");
  EXPECT_EQ(inComment(std::string(101, 'x')), std::string(97, 'x') + "...");
  EXPECT_EQ(inComment(std::string(100, 'x')), std::string(100, 'x'));
}

/// What a compiler makes of a string that `cppString` writes.
static std::string readBack(const std::string &quoted) {
  std::string text;
  for (size_t i = 1; i + 1 < quoted.size(); ++i) {
    if (quoted[i] != '\\') {
      text += quoted[i];
      continue;
    }
    ++i;
    if (quoted[i] < '0' || quoted[i] > '7') {
      text += quoted[i];
      continue;
    }
    int code = 0;
    for (int digits = 0; digits < 3 && quoted[i] >= '0' && quoted[i] <= '7';
         ++digits)
      code = code * 8 + (quoted[i++] - '0');
    --i;
    text += char(code);
  }
  return text;
}

TEST(Escape, CppStringsHoldTheSameBytes) {
  for (const std::string &text : hostileTexts()) {
    const std::string quoted = cppString(text);
    EXPECT_EQ(readBack(quoted), text);
    for (size_t i = 1; i + 1 < quoted.size(); ++i) {
      EXPECT_TRUE(quoted[i] >= 0x20 && quoted[i] < 0x7f);
      if (quoted[i] == '\\')
        ++i;
      else
        EXPECT_NE(quoted[i], '"');
    }
    EXPECT_EQ(quoted.find("?\?"), std::string::npos);
  }
  EXPECT_EQ(cppString("a\n0\"\\"), "\"a\\0120\\\"\\\\\"");
  EXPECT_EQ(cppString("\u202e"), "\"\\342\\200\\256\"");
}

TEST(Escape, NothingIsHiddenFromAReader) {
  for (const std::string &text : hostileTexts())
    for (const std::string &shown :
         {visible(text), inHtml(text), jsonQuoted(text)})
      for (size_t at = 0; at < shown.size();) {
        const Character character = characterAt(shown, at);
        EXPECT_TRUE(character.isSound);
        EXPECT_TRUE(shown[at] == '\n' || shown[at] == '\t' ||
                    !isHidden(character.code));
        at += size_t(character.bytes);
      }
  EXPECT_EQ(visible("a\033[2Jb\u202e\xff\u00e9"),
            "a\\u001b[2Jb\\u202e\\xff\u00e9");
  EXPECT_EQ(visible("\U000e0041"), "\\udb40\\udc41");
  EXPECT_EQ(jsonQuoted("a\"\\\n\u202e\xff\u00e9"),
            "\"a\\\"\\\\\\u000a\\u202e\\ufffd\u00e9\"");
  EXPECT_EQ(inHtml("<b title='x' id=\"y\">&"),
            "&lt;b title=&#39;x&#39; id=&quot;y&quot;&gt;&amp;");
}

TEST(Escape, NamesAreCheckedByPlaceAndByte) {
  for (const char *name :
       {"", "a", "\\", "*/", "\u202e", "\u2028", "\U0001f600", "..", "/"})
    EXPECT_EQ(nameFault(name), "") << name;
  EXPECT_EQ(nameFault("ab\n"), "holds the control character 0x0a at byte 2");
  EXPECT_EQ(nameFault(std::string_view("\0", 1)),
            "holds the control character 0x00 at byte 0");
  EXPECT_EQ(nameFault("\u00e9\x7f"),
            "holds the control character 0x7f at byte 2");
  EXPECT_EQ(nameFault("\u009b"), "holds the control character 0x9b at byte 0");
  EXPECT_EQ(nameFault("a\xff"), "isn't UTF-8: it holds 0xff at byte 1");
  for (const char *name : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                           "\xe2\x80", "\x80", "\xe0\x80\x80"})
    EXPECT_NE(nameFault(name).find("isn't UTF-8"), std::string::npos);
  EXPECT_EQ(textFault("File \"m.py\", line 3\n\tx\r\n"), "");
  EXPECT_NE(textFault("\033"), "");
}

TEST(Escape, NamesOfCppAreOurOwn) {
  for (const char *name : {"a", "_a1", "ReduceKind::Sum", "a::b::c9"})
    EXPECT_TRUE(isCppName(name)) << name;
  for (const char *name : {"", "1", "a:", "a::", "::a", "a:::b", "a b", "a;",
                           "a::1", "\u00e9", "a-b", "a{}"})
    EXPECT_FALSE(isCppName(name)) << name;
}
