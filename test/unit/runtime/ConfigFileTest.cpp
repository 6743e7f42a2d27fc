//===- ConfigFileTest.cpp - flags from a file -----------------------------===//

#include "runtime/step/ConfigFile.h"

#include "runtime/kernels/Names.h"

#include "gtest/gtest.h"

using namespace tmc;

namespace {

/// The words of the tables, "[name]" before each; or the error.
std::string wordsOf(std::string_view text) {
  std::vector<ConfigTable> tables;
  if (Status s = parseConfig(text, tables); !s) {
    EXPECT_EQ(s.code(), Code::BadInput);
    return s.message();
  }
  std::string words;
  for (const ConfigTable &table : tables) {
    words += "[" + table.name + "]";
    for (const ConfigFlag &flag : table.flags)
      for (const std::string &word : flag.words())
        words += " " + word;
  }
  return words;
}

TEST(ConfigFile, ValuesBecomeWords) {
  EXPECT_EQ(
      wordsOf("# an experiment\n\n[compile]\nmodel = \"a b.onnx\" # it\r\n"
              "batch=8\n'target'\t= 'cuda:h100'\n[train]\n"
              "lr = 3e-4\nsteps = 1_000\nquiet = true\npoison = false"),
      "[compile] --model=a b.onnx --batch=8 --target=cuda:h100"
      "[train] --lr=3e-4 --steps=1000 --quiet");
  EXPECT_EQ(wordsOf(""), "");
  EXPECT_EQ(wordsOf("[train]"), "[train]");
}

TEST(ConfigFile, ArraysReachOverLines) {
  EXPECT_EQ(wordsOf("[compile]\ndim = [ 'a=1', # one\n  \"b=2\" ,\n]\n"
                    "freeze = []\nprices=['x',]"),
            "[compile] --dim=a=1 --dim=b=2 --prices=x");
}

TEST(ConfigFile, Escapes) {
  EXPECT_EQ(wordsOf(R"([t]
a = "\"\\\t\u00e9\U0001F600"
b = 'C:\no\escapes')"),
            "[t] --a=\"\\\t\xc3\xa9\xf0\x9f\x98\x80 --b=C:\\no\\escapes");
}

TEST(ConfigFile, Numbers) {
  EXPECT_EQ(wordsOf("[t]\na=0\nb=-1.5\nc=+7\nd=1e6\ne=6.02E+2_3\nf=0.0"),
            "[t] --a=0 --b=-1.5 --c=7 --d=1e6 --e=6.02e+23 --f=0.0");
  for (const char *text :
       {"01", "1.", ".5", "1__0", "_1", "1_", "0x10", "0b1", "inf", "nan", "1e",
        "--1", "1979-05-27", "07:32:00", "1.5.2", "True", "yes", ""})
    EXPECT_EQ(wordsOf("[t]\na=" + std::string(text)).find("line 2: a value is"),
              0u)
        << text;
}

TEST(ConfigFile, FaultsHaveTheirLine) {
  struct {
    const char *text, *fault;
  } const kCases[] = {
      {"a = 1", "line 1: the key 'a' stands before a [table]"},
      {"[t]\na = 1\n\na = 2", "line 4: the key 'a' is there twice"},
      {"[t]\n[u]\n[t]", "line 3: the table [t] is there twice"},
      {"[t.u]", "line 1: a table or key has one name, without a dot"},
      {"[t]\na.b = 1", "line 2: a table or key has one name, without a dot"},
      {"[[t]]", "line 1: a key or a [table] is expected"},
      {"[t] a = 1", "line 1: a table is [NAME], alone on its line"},
      {"[t", "line 1: a table is [NAME], alone on its line"},
      {"[t]\na 1", "line 2: '=' is expected behind the key 'a'"},
      {"[t]\n= 1", "line 2: a key or a [table] is expected"},
      {"[t]\na = 1 2", "line 2: something follows the value of 'a'"},
      {"[t]\na = \"b", "line 2: a string has no end on its line"},
      {"[t]\na = 'b\nc'", "line 2: a string has no end on its line"},
      {"[t]\na = \"\"\"b\"\"\"",
       "line 2: a string of several lines can't be a flag's value"},
      {"[t]\na = \"\\x\"", "line 2: a string has an escape that TOML doesn't "
                           "know"},
      {"[t]\na = \"\\u12\"", "line 2: a string has an escape without its "
                             "digits"},
      {"[t]\na = \"\\ud800\"", "line 2: a string has an escape of no "
                               "character"},
      {"[t]\na = \"\\UFFFFFFFF\"", "line 2: a string has an escape of no "
                                   "character"},
      {"[t]\na = \"\\u", "line 2: a string has an escape without its digits"},
      {"[t]\na = [1 2]", "line 2: an array has no ',' or ']' behind a value"},
      {"[t]\na = [\n1,\n2", "line 4: an array has no ',' or ']' behind a "
                            "value"},
  };
  for (const auto &[text, fault] : kCases)
    EXPECT_EQ(wordsOf(text), fault) << text;
  EXPECT_EQ(wordsOf("[t]\na = [[1]]").find("line 2: a value is"), 0u);
  EXPECT_EQ(wordsOf("[t]\na = {b = 1}").find("line 2: a value is"), 0u);
  EXPECT_EQ(wordsOf("[t]\na = \"\x01\"").find("line 1: the text holds"), 0u);
  EXPECT_EQ(wordsOf("[t]\na = \"\xff\"").find("line 1: the text isn't UTF-8"),
            0u);
}

/// Each cut of a text, and each text with one byte changed, ends without a
/// crash; a text that is taken says no more flags than the whole.
TEST(ConfigFile, CutsAndChanges) {
  const std::string text =
      "[compile]\na = \"\\u00e9\\n\" # c\nb = ['x', 2,\n]\n"
      "[train]\nlr = -1.5e-3\nquiet = true\n";
  for (size_t end = 0; end <= text.size(); ++end) {
    (void)wordsOf(text.substr(0, end));
    for (const char c : {'"', '\\', '[', ']', '=', '\n', '\0', '\x80'}) {
      std::string changed = text;
      if (end < text.size())
        changed[end] = c;
      (void)wordsOf(changed);
    }
  }
}

TEST(ConfigFile, QuotedTextIsReadAgain) {
  std::string all;
  for (uint32_t code = 1; code < 0x2100; ++code)
    appendUtf8(all, code);
  appendUtf8(all, 0xe0001); // Hidden, and above U+FFFF.
  appendUtf8(all, 0x1f600);
  std::vector<ConfigTable> tables;
  ASSERT_TRUE(parseConfig("[t]\na = " + tomlQuoted(all), tables));
  EXPECT_EQ(tables[0].flags[0].values[0], all);
  EXPECT_EQ(tomlQuoted("\xff"), "\"\\ufffd\"");
  EXPECT_EQ(tomlQuoted("\xe2\x80\xae"), "\"\\u202e\""); // Reverses text.
}

} // namespace
