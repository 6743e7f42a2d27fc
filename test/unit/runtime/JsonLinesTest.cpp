//===- JsonLinesTest.cpp - samples in JSON, one a line --------------------===//

#include "DataTesting.h"

#include "runtime/step/JsonReader.h"

#include <cstring>
#include <filesystem>

using namespace tmc;
using namespace tmc::test;
namespace fs = std::filesystem;

namespace {

class JsonLinesData : public Data {
protected:
  /// The message of an error, without the folder.
  std::string errorOf(const std::string &text, Code code = Code::BadInput) {
    const Status s = open({file("a.jsonl", text)});
    EXPECT_EQ(s.code(), code) << text;
    std::string message = s.message();
    for (size_t at; (at = message.find(dir_ / "")) != std::string::npos;)
      message.erase(at, (dir_ / "").size());
    return message;
  }
};

std::string row(const std::string &tokens, const std::string &labels) {
  return "{\"tokens\": [" + tokens + "], \"labels\": [" + labels + "]}\n";
}

} // namespace

TEST_F(JsonLinesData, FeedsAllInputsAndPadsRows) {
  ASSERT_TRUE(open(
      {file("a.jsonl", row("1, 2, 3", "-100,2,3") + "\n  \n" +
                           "{\"id\": {\"x\": [1, \"\\u00e9\"]}, \"labels\":"
                           "[4,5,6,7,8,9,10,11],\"tokens\":[4,5,6,7,8,9,10,"
                           "11]}\r\n" +
                           row("", "") + row("12", "13"))}));
  EXPECT_EQ(reader_.samples(), 4);
  EXPECT_EQ(reader_.stepsPerEpoch(), 1);
  ASSERT_TRUE(next());
  const std::vector<int64_t> tokens = {1, 2, 3,  0,  0,  0, 0, 0, 4, 5, 6,
                                       7, 8, 9,  10, 11, 0, 0, 0, 0, 0, 0,
                                       0, 0, 12, 0,  0,  0, 0, 0, 0, 0};
  std::vector<int64_t> labels = {-100, 2, 3, -100, -100, -100, -100, -100,
                                 4,    5, 6, 7,    8,    9,    10,   11};
  labels.resize(32, -100);
  labels[24] = 13;
  EXPECT_EQ(read("tokens"), tokens);
  EXPECT_EQ(read("labels"), labels);
}

TEST_F(JsonLinesData, TheTokenOfPaddingIsGiven) {
  const std::string f = file("a.jsonl", row("1", "1"));
  ASSERT_TRUE(open({f}, {.padding = 99}));
  ASSERT_TRUE(next());
  EXPECT_EQ(read("tokens")[1], 99);
  EXPECT_EQ(read("labels")[1], -100);
  const Status s = open({f}, {.padding = 100});
  EXPECT_EQ(s.code(), Code::Usage);
  EXPECT_EQ(s.message(), "--pad-id 100 is outside [0, 100) of 'tokens'");
}

TEST_F(JsonLinesData, AnErrorNamesFileLineAndColumn) {
  EXPECT_EQ(errorOf(row("1", "1") + "\n" + row("1,2,3,4,5,6,7,8,9", "1")),
            "'a.jsonl', line 3, column 12: 'tokens' has 9 entries, and a "
            "sample takes 8: cut or split the row, or compile the model for "
            "longer ones");
  EXPECT_EQ(errorOf(row("1, 100", "1")),
            "'a.jsonl', line 1, column 16: 'tokens' has 100, outside [0, 100)");
  EXPECT_EQ(errorOf(row("1", "-1")),
            "'a.jsonl', line 1, column 28: 'labels' has -1, outside [0, 100)");
  EXPECT_EQ(errorOf(row("1.0", "1")),
            "'a.jsonl', line 1, column 13: a whole number expected");
  for (const char *number : {"01", "1e0", "+1", "true", "\"1\"", "null", "--1"})
    EXPECT_EQ(errorOf(row(number, "1")),
              "'a.jsonl', line 1, column 13: a whole number expected")
        << number;
  EXPECT_EQ(errorOf(row("99999999999999999999", "1")),
            "'a.jsonl', line 1, column 13: a number that is too large");
  EXPECT_EQ(errorOf("{\"tokens\": 1, \"labels\": [1]}"),
            "'a.jsonl', line 1, column 12: '[' expected");
  EXPECT_EQ(errorOf("{\"tokens\": [[1]], \"labels\": [1]}"),
            "'a.jsonl', line 1, column 13: a whole number expected");
  EXPECT_EQ(errorOf("{\"tokens\": [1], \"text\": 5}"),
            "'a.jsonl', line 1, column 1: the line has no 'labels'; its keys "
            "are 'tokens', 'text'");
  EXPECT_EQ(errorOf("{\"tokens\": [1], \"tokens\": [1]}"),
            "'a.jsonl', line 1, column 27: 'tokens' stands twice in the line");
  EXPECT_EQ(errorOf("{\"tokens\": [1,]}"),
            "'a.jsonl', line 1, column 15: a whole number expected");
  EXPECT_EQ(errorOf("{\"tokens\":\n [1]}"),
            "'a.jsonl', line 1, column 11: '[' expected");
  EXPECT_EQ(errorOf("[1]"), "'a.jsonl', line 1, column 1: '{' expected");
  EXPECT_EQ(
      errorOf("{\"tokens\": [1], \"labels\": [1]} 7"),
      "'a.jsonl', line 1, column 32: something follows the line's object");
  EXPECT_EQ(errorOf(std::string("{\"tokens\": [1\0], \"labels\": [1]}", 32)),
            "'a.jsonl', line 1, column 14: ']' expected");
  EXPECT_EQ(errorOf("\n \n"), "'a.jsonl' has no line");
}

TEST_F(JsonLinesData, LinesAreBounded) {
  std::string line = row("1", "1");
  line.insert(1, "\"text\": \"" + std::string(16 << 20, 'x') + "\", ");
  EXPECT_EQ(errorOf(row("1", "1") + line),
            "'a.jsonl', line 2 has " + std::to_string(line.size() - 1) +
                " bytes; a line has at most 16777216");
  // A line that crosses the pieces in which files are read.
  line.erase(100, 15 << 20);
  ASSERT_TRUE(open({file("a.jsonl", line + row("2", "2"))}));
  ASSERT_TRUE(next());
  EXPECT_EQ(read("tokens")[8], 2);
}

TEST_F(JsonLinesData, ALabelWithoutAnIgnoredValueIsNotFilledUp) {
  countAllLabels();
  EXPECT_EQ(errorOf(row("1,2,3,4,5,6,7,8", "1,2,3,4,5,6,7")),
            "'a.jsonl', line 1, column 41: 'labels' has 7 entries, and a "
            "sample takes 8: rows are filled up only where the model leaves "
            "labels out or takes a mask");
}

TEST_F(JsonLinesData, AMaskIsFilledUpByZeros) {
  static const TensorInfo inputs[] = {{.name = "ids",
                                       .type = DType::I32,
                                       .rank = 2,
                                       .dims = {2, 3},
                                       .offset = 0,
                                       .role = Role::Batch,
                                       .feed = Feed::Data,
                                       .limit = 10},
                                      {.name = "mask",
                                       .type = DType::I64,
                                       .rank = 2,
                                       .dims = {2, 3},
                                       .offset = 0,
                                       .role = Role::Batch,
                                       .feed = Feed::Data},
                                      {.name = "grade",
                                       .type = DType::F32,
                                       .rank = 1,
                                       .dims = {2},
                                       .offset = 0,
                                       .role = Role::Batch,
                                       .feed = Feed::Data},
                                      {.name = "box",
                                       .type = DType::BF16,
                                       .rank = 3,
                                       .dims = {2, 2, 2},
                                       .offset = 0,
                                       .role = Role::Batch,
                                       .feed = Feed::Data}};
  const std::string f =
      file("a.jsonl", "{\"ids\":[4],\"mask\":[1],\"grade\":-1.5e-1,"
                      "\"box\":[[1,2],[3.25,4]]}\n"
                      "{\"ids\":[5,6],\"mask\":[1,1],\"grade\":2,"
                      "\"box\":[[5,6],[7,8]]}\n");
  const DataInputs wanted{{&inputs[0], &inputs[1], &inputs[2], &inputs[3]}, 2};
  Status s = DataReader::create(wanted, {f}, reader_, {.padding = 9});
  ASSERT_TRUE(s) << s.message();
  std::string fed;
  ASSERT_TRUE(
      reader_.next([&](const TensorInfo &, const char *data, int64_t bytes) {
        fed.append(data, size_t(bytes));
        return Status::ok();
      }));
  const int32_t ids[] = {4, 9, 9, 5, 6, 9};
  const int64_t mask[] = {1, 0, 0, 1, 1, 0};
  const float grade[] = {-0.15f, 2};
  const uint16_t box[] = {0x3f80, 0x4000, 0x4050, 0x4080,
                          0x40a0, 0x40c0, 0x40e0, 0x4100};
  std::string want(reinterpret_cast<const char *>(ids), sizeof ids);
  want.append(reinterpret_cast<const char *>(mask), sizeof mask);
  want.append(reinterpret_cast<const char *>(grade), sizeof grade);
  want.append(reinterpret_cast<const char *>(box), sizeof box);
  EXPECT_EQ(fed, want);

  // Inner dimensions are never filled up.
  const std::string short_ =
      file("b.jsonl", "{\"ids\":[4],\"mask\":[1],\"grade\":1,\"box\":[[1,2]]}");
  s = DataReader::create(wanted, {short_}, reader_);
  EXPECT_EQ(s.message(), "'" + short_ +
                             "', line 1, column 39: 'box' has 1 entries, and a "
                             "sample takes 2");
  s = DataReader::create(
      wanted, {file("c.jsonl", "{\"ids\":[4],\"mask\":[1],\"grade\":1e39}")},
      reader_);
  EXPECT_NE(s.message().find("line 1, column 31: 'grade': element 0 is "),
            std::string::npos)
      << s.message();
}

TEST_F(JsonLinesData, StandsBesideOtherFiles) {
  const std::string f = file("a.jsonl", row("1", "1") + row("2", "2"));
  ASSERT_TRUE(open({"labels=" + f, "tokens=" + tokens("t.bin", 64)}));
  EXPECT_EQ(reader_.samples(), 2); // the shorter one
  ASSERT_TRUE(next());
  EXPECT_EQ(read("tokens")[8], 8);
  EXPECT_EQ(read("labels")[8], 2);
  fails({"tokens=" + f + "+1", "labels=" + f}, Code::Usage,
        "only means something for a stream of tokens");
  fails({f + "," + tokens("u.bin", 64)}, Code::BadInput,
        "only one has JSON lines");
  // A name says nothing against the first bytes.
  ASSERT_TRUE(open({"tokens=" + file("a.bin", row("1", "1")),
                    "labels=" + file("a.txt", row("1", "1"))}));
}

TEST_F(JsonLinesData, AFileThatChangesIsAnErrorOfItsBatch) {
  const std::string f = file("a.jsonl", row("1", "1") + row("2", "2"));
  ASSERT_TRUE(open({f}));
  fs::resize_file(f, 40);
  EXPECT_EQ(next().code(), Code::World);
  std::string text = row("1", "1") + row("2", "2");
  file("a.jsonl", text);
  ASSERT_TRUE(open({f}));
  text[text.rfind('{')] = '[';
  // The same file, not another one of its name.
  std::fstream(f, std::ios::binary | std::ios::in | std::ios::out) << text;
  const Status s = next();
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_NE(s.message().find("line 2, column 1: '{' expected"),
            std::string::npos)
      << s.message();
}

TEST_F(JsonLinesData, ABatchWithoutLabelsNamesItsLines) {
  const std::string f = file("a.jsonl", row("1", "-100") + "\n" + row("2", ""));
  ASSERT_TRUE(open({f}));
  ASSERT_TRUE(next());
  EXPECT_EQ(reader_.withoutLabels(), "no label of 'labels' counts in line 1 of "
                                     "'" +
                                         f + "', line 3 of '" + f + "'");
}

TEST(JsonReader, NumbersFollowTheGrammar) {
  for (const char *good : {"0", "-0", "10", "-7.25", "1e3", "1E+2", "2.5e-3"}) {
    double value;
    JsonReader at(good, "text");
    EXPECT_TRUE(at.number(value) && at.finish()) << good;
    EXPECT_EQ(value, std::stod(good));
  }
  for (const char *bad : {"", "-", ".5", "1.", "1e", "1e+", "01", "+1", "inf",
                          "nan", "NaN", "Infinity", "0x10", "1e999"}) {
    double value;
    JsonReader at(bad, "text");
    EXPECT_FALSE(at.number(value) && at.finish()) << bad;
  }
  int64_t whole;
  JsonReader least("-9223372036854775808", "text");
  EXPECT_TRUE(least.whole(whole));
  EXPECT_EQ(whole, INT64_MIN);
  JsonReader less("-9223372036854775809", "text");
  EXPECT_FALSE(less.whole(whole));
}
