//===- DataTest.cpp - batches from files ----------------------------------===//

#include "Testing.h"
#include "TinyProgram.h"

#include "runtime/step/Data.h"
#include "test/unit/TemporaryDirectory.h"

#include <filesystem>
#include <fstream>

using namespace tmc;
using namespace tmc::test;
namespace fs = std::filesystem;

namespace {

class Data : public ::testing::Test {
protected:
  Data() {
    program_ = tiny::program();
    StepOptions options;
    options.device.threads = 1;
    EXPECT_TRUE(Step::create(program_, options, step_));
  }

  std::string file(const char *name, const std::string &bytes) {
    const std::string path = dir_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string tokens(const char *name, int64_t count, int64_t limit = 100) {
    std::string bytes;
    for (int64_t i = 0; i < count; ++i) {
      bytes += char(i % limit & 255);
      bytes += char(i % limit >> 8);
    }
    return file(name, bytes);
  }
  Status open(std::vector<std::string> specs) {
    return DataReader::create(program_, specs, reader_);
  }
  std::vector<int64_t> read(const char *name) {
    std::vector<int64_t> v(tiny::kRows);
    EXPECT_TRUE(step_->read(*step_->find(name), v.data(), 8 * tiny::kRows));
    return v;
  }
  void fails(std::vector<std::string> specs, Code code, const char *why) {
    const Status s = open(specs);
    EXPECT_EQ(s.code(), code);
    EXPECT_NE(s.message().find(why), std::string::npos) << s.message();
  }

  TemporaryDirectory dir_;
  StepProgram program_;
  std::unique_ptr<Step> step_;
  DataReader reader_;
};

std::string npy(const char *descr, const char *shape, size_t bytes) {
  std::string header = std::string("{'descr': '") + descr +
                       "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize((header.size() + 10 + 63) / 64 * 64 - 10, ' ');
  return std::string("\x93NUMPY\x01\x00", 8) + char(header.size() & 255) +
         char(header.size() >> 8) + header + std::string(bytes, '\1');
}

} // namespace

TEST_F(Data, StreamsTokensAndWraps) {
  // 100 tokens: three batches of 32 fit, and then it starts again.
  const std::string f = tokens("t", 100);
  ASSERT_TRUE(open({f}));
  EXPECT_EQ(reader_.batchesPerEpoch(), 3);
  for (int64_t batch = 0; batch < 4; ++batch) {
    ASSERT_TRUE(reader_.next(*step_));
    EXPECT_EQ(read("tokens")[0], batch % 3 * 32);
    EXPECT_EQ(read("tokens")[31], batch % 3 * 32 + 31);
    EXPECT_EQ(read("labels"), read("tokens"));
  }
  reader_.setPosition(1);
  ASSERT_TRUE(reader_.next(*step_));
  EXPECT_EQ(read("tokens")[0], 32);
}

TEST_F(Data, ShiftsTargets) {
  const std::string f = tokens("t", 96);
  ASSERT_TRUE(open({"tokens=" + f, "labels=" + f + "+1"}));
  EXPECT_EQ(reader_.batchesPerEpoch(), 2); // 97 tokens would make three
  ASSERT_TRUE(reader_.next(*step_));
  EXPECT_EQ(read("tokens")[5], 5);
  EXPECT_EQ(read("labels")[5], 6);
}

TEST_F(Data, WarnsOfLabelsThatAreTheTokens) {
  const std::string f = tokens("t", 96), other = tokens("u", 96);
  ASSERT_TRUE(open({f}));
  EXPECT_NE(reader_.warning().find("--data labels=" + f + "+1 gives"),
            std::string::npos)
      << reader_.warning();
  ASSERT_TRUE(open({"tokens=" + f + "+2", "labels=" + f + "+2"}));
  EXPECT_NE(reader_.warning().find(f + "+3 gives"), std::string::npos);
  ASSERT_TRUE(open({"tokens=" + f, "labels=" + f + "+1"}));
  EXPECT_EQ(reader_.warning(), "");
  ASSERT_TRUE(open({"tokens=" + f, "labels=" + other}));
  EXPECT_EQ(reader_.warning(), "");
}

TEST_F(Data, DoesNotWarnWhereTheModelMovesLabels) {
  // The first label of each row isn't looked at.
  static const IndexRange later[] = {
      {{0, 1}, {4, 7}, {1, 1}, tiny::kVocabulary, true, -100}};
  std::vector<TensorInfo> tensors(program_.tensors,
                                  program_.tensors + program_.tensorCount);
  for (TensorInfo &info : tensors)
    if (info.allowIgnore) {
      info.allowIgnore = false;
      info.limit = 0;
      info.ranges = later;
      info.rangeCount = 1;
    }
  program_.tensors = tensors.data();
  ASSERT_TRUE(open({tokens("t", 96)}));
  EXPECT_EQ(reader_.warning(), "");
}

TEST_F(Data, ReadsArrays) {
  const std::string i32 = file("a.npy", npy("<i4", "(8, 8)", 8 * 8 * 4));
  ASSERT_TRUE(open({"tokens=" + file("t.npy", npy("|u1", "(9, 8)", 72)),
                    "labels=" + file("l.npy", npy("|u1", "(64,)", 64))}));
  EXPECT_EQ(reader_.batchesPerEpoch(), 2);
  ASSERT_TRUE(reader_.next(*step_));
  EXPECT_EQ(read("tokens")[31], 1);
  fails({"tokens=" + i32, "labels=" + file("b.npy", npy("<f4", "(64,)", 256))},
        Code::BadInput, "holds f32, and 'labels' takes i64");
  fails({file("c.npy", npy("<i4", "(8, 7)", 224))}, Code::BadInput,
        "is [8, 7], and 'tokens' takes [4, 8]");
  fails({file("d.npy", npy("<i4", "(8, 8)", 255))}, Code::BadInput,
        "its shape needs 256");
  fails({file("e.npy", npy(">i4", "(8, 8)", 256))}, Code::BadInput,
        "isn't supported");
  fails({file("f.npy", "\x93NUM")}, Code::BadInput, "doesn't begin");
  fails({file("g.npy", npy("<i4", "(99999999999999999999,)", 8))},
        Code::BadInput, "overflows");
}

TEST_F(Data, RefusesWhatDoesNotFit) {
  const std::string f = tokens("t", 100);
  fails({tokens("short", 31)}, Code::BadInput,
        "has 31 tokens; one step takes 32");
  fails({tokens("empty", 0)}, Code::BadInput, "has 0 tokens");
  fails({"tokens=" + f, "labels=" + tokens("s", 32) + "+1"}, Code::BadInput,
        "has 32 tokens; one step takes 33");
  fails({file("odd", "abc")}, Code::BadInput, "odd number of bytes");
  fails({"tokens=" + f}, Code::Usage, "no --data for 'labels' i64[4, 8]");
  fails({"tokens=" + f, "tokens=" + f, "labels=" + f}, Code::Usage, "twice");
  fails({"token=" + f}, Code::Usage, "the inputs are 'tokens', 'labels'");
  fails({f, f}, Code::Usage, "feeds no input");
  fails({dir_ / "missing"}, Code::BadInput, "can't open");
  fails({dir_.path.string()}, Code::BadInput, "regular file");
}

TEST_F(Data, NamesATokenOutOfRange) {
  const std::string f = tokens("t", 200, 150);
  ASSERT_TRUE(open({f}));
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(reader_.next(*step_));
  const Status s = reader_.next(*step_); // tokens 96 .. 127
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_NE(s.message().find("from element 96 on: element 4 of 'tokens' is "
                             "100, outside [0, 100)"),
            std::string::npos)
      << s.message();
}
