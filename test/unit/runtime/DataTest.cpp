//===- DataTest.cpp - batches from files ----------------------------------===//

#include "DataTesting.h"

#include <cstring>
#include <filesystem>

using namespace tmc;
using namespace tmc::test;
namespace fs = std::filesystem;

TEST_F(Data, StreamsTokensAndWraps) {
  // 100 tokens: three batches of 32 fit, and then it starts again.
  const std::string f = tokens("t.bin", 100);
  ASSERT_TRUE(open({f}));
  EXPECT_EQ(reader_.stepsPerEpoch(), 3);
  for (int64_t batch = 0; batch < 4; ++batch) {
    ASSERT_TRUE(next());
    EXPECT_EQ(read("tokens")[0], batch % 3 * 32);
    EXPECT_EQ(read("tokens")[31], batch % 3 * 32 + 31);
    EXPECT_EQ(read("labels"), read("tokens"));
  }
  reader_.setPosition(1);
  ASSERT_TRUE(next());
  EXPECT_EQ(read("tokens")[0], 32);
}

TEST_F(Data, ShiftsTargets) {
  const std::string f = tokens("t.bin", 96);
  ASSERT_TRUE(open({"tokens=" + f, "labels=" + f + "+1"}));
  // 95 tokens of labels are 11 samples of 8.
  EXPECT_EQ(reader_.samples(), 11);
  EXPECT_EQ(reader_.stepsPerEpoch(), 3);
  ASSERT_TRUE(next());
  EXPECT_EQ(read("tokens")[5], 5);
  EXPECT_EQ(read("labels")[5], 6);
}

TEST_F(Data, WarnsOfLabelsThatAreTheTokens) {
  const std::string f = tokens("t.bin", 96), other = tokens("u.bin", 96);
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
  ASSERT_TRUE(open({tokens("t.bin", 96)}));
  EXPECT_EQ(reader_.warning(), "");
}

TEST_F(Data, TakesAFileWhoseNameHasAnEqualsSign) {
  const std::string f = tokens("a=1.bin", 96);
  ASSERT_TRUE(open({f}));
  EXPECT_EQ(reader_.stepsPerEpoch(), 3);
  ASSERT_TRUE(open({f + "," + f}));
  EXPECT_EQ(reader_.stepsPerEpoch(), 6);
  ASSERT_TRUE(open({"tokens=" + f, "labels=" + f + "+1"}));
  ASSERT_TRUE(next());
  EXPECT_EQ(read("labels")[5], 6);
  // Without such a file the name before the sign is an input's.
  const std::string there = "no input has the name '" + std::string(dir_ / "b");
  fails({std::string(dir_ / "b=1.bin")}, Code::Usage, there.c_str());
  fails({f + "," + std::string(dir_ / "b=1.bin")}, Code::Usage,
        "no input has the name");
  // A file with an input's name before the sign is that file.
  file("tokens=odd.bin", std::string(7, 'x'));
  const fs::path before = fs::current_path();
  fs::current_path(dir_.path);
  fails({"tokens=odd.bin"}, Code::BadInput, "'tokens=odd.bin'");
  fs::current_path(before);
}

TEST_F(Data, ReadsArrays) {
  const std::string i32 = file("a.npy", npy("<i4", "(8, 8)", 8 * 8 * 4));
  ASSERT_TRUE(open({"tokens=" + file("t.npy", npy("|u1", "(9, 8)", 72)),
                    "labels=" + file("l.npy", npy("|u1", "(64,)", 64))}));
  EXPECT_EQ(reader_.stepsPerEpoch(), 2);
  ASSERT_TRUE(next());
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
  const std::string f = tokens("t.bin", 100);
  fails({tokens("short.bin", 7)}, Code::BadInput,
        "has 7 tokens; one sample takes 8");
  fails({tokens("empty.bin", 0)}, Code::BadInput, "is empty");
  fails({"tokens=" + f, "labels=" + tokens("s.bin", 8) + "+1"}, Code::BadInput,
        "has 8 tokens; one sample takes 9");
  fails({file("odd.bin", std::string("\0\1\2", 3))}, Code::BadInput,
        "has 3 bytes, which isn't a whole number of u16 tokens");
  fails({"tokens=" + f}, Code::Usage, "no --data for 'labels' i64[4, 8]");
  fails({"tokens=" + f, "tokens=" + f, "labels=" + f}, Code::Usage, "twice");
  fails({"token=" + f}, Code::Usage, "the inputs are 'tokens', 'labels'");
  fails({f, f}, Code::Usage, "feeds no input");
  fails({dir_ / "missing"}, Code::BadInput, "can't open");
  fails({dir_.path.string()}, Code::BadInput, "regular file");
}

TEST_F(Data, NamesATokenOutOfRange) {
  const std::string f = tokens("t.bin", 200, 150);
  ASSERT_TRUE(open({f}));
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(next());
  const Status s = next(); // tokens 96 .. 127
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_NE(s.message().find("elements 96 to 127 of '" + f +
                             "': element 4 of 'tokens' is 100, outside "
                             "[0, 100)"),
            std::string::npos)
      << s.message();
}

TEST_F(Data, ReadsFloatsOfAnyKind) {
  // An input [4, 8] of floats in the place of the tokens.
  std::vector<TensorInfo> tensors(program_.tensors,
                                  program_.tensors + program_.tensorCount);
  TensorInfo *image = nullptr;
  for (TensorInfo &info : tensors)
    if (info.name == std::string("tokens")) {
      image = &info;
      info.type = DType::F32;
      info.limit = 0;
    }
  program_.tensors = tensors.data();
  program_.samplesPerStep = tiny::kBatch;
  const std::string labels = "labels=" + tokens("l.bin", 96);
  std::vector<float> got(tiny::kRows);
  auto take = [&](const std::string &spec) {
    Status s = open({"tokens=" + spec, labels});
    if (s)
      s = reader_.next(
          [&](const TensorInfo &input, const char *bytes, int64_t count) {
            if (&input == image)
              std::memcpy(got.data(), bytes, size_t(count));
            return Status::ok();
          });
    return s;
  };
  // Bytes of 1, in each of the types.
  struct Case {
    const char *descr;
    int64_t bytes;
    double value;
  };
  const Case cases[] = {{"|u1", 1, 1},
                        {"|i1", 1, 1},
                        {"<u2", 2, 257},
                        {"<f2", 2, 257 * 0x1p-24},
                        {"<V2", 2, 0x1.02p-125},
                        {"<f8", 8, 0x1.01010101p-1007},
                        {"|b1", 1, 1}};
  for (const Case &c : cases) {
    const std::string f =
        file("x.npy", npy(c.descr, "(4, 8)", size_t(tiny::kRows * c.bytes)));
    const Status s = take(f);
    ASSERT_TRUE(s) << c.descr << ": " << s.message();
    EXPECT_EQ(got[31], float(c.value)) << c.descr;
  }
  const std::string picture = file("p.npy", npy("|u1", "(4, 8)", 32));
  ASSERT_TRUE(take(picture + "*0.5"));
  EXPECT_EQ(got[0], 0.5f);
  ASSERT_TRUE(take(picture + "*0.5-2"));
  EXPECT_EQ(got[0], -1.5f);
  ASSERT_TRUE(take(picture + "*2e-1+0.25"));
  EXPECT_EQ(got[0], 0.45f);
  EXPECT_EQ(take(file("w.npy", npy("<i4", "(4, 8)", 128))).message(),
            "'" + (dir_ / "w.npy") +
                "', for 'tokens': element 0 is 16843009, which f32 can't hold");
  EXPECT_NE(take(picture + "+1").message().find("stream of tokens"),
            std::string::npos);
  fails({"tokens=" + picture, labels + "*2"}, Code::Usage,
        "'*' only means something for floats");
}

TEST_F(Data, WhatBelongsToNoSampleIsTheSameInEachStep) {
  static const TensorInfo inputs[] = {{.name = "weights",
                                       .type = DType::F32,
                                       .rank = 1,
                                       .dims = {3},
                                       .offset = 0,
                                       .role = Role::Batch,
                                       .feed = Feed::Data},
                                      {.name = "temperature",
                                       .type = DType::F32,
                                       .rank = 0,
                                       .dims = {},
                                       .offset = 0,
                                       .role = Role::Batch,
                                       .feed = Feed::Data},
                                      {.name = "rate",
                                       .type = DType::F32,
                                       .rank = 0,
                                       .dims = {},
                                       .offset = 0,
                                       .role = Role::Batch,
                                       .feed = Feed::Data}};
  const Status s =
      DataReader::create({{&inputs[0], &inputs[1], &inputs[2]}, 4},
                         {"weights=" + file("w.npy", npy("|u1", "(3,)", 3)),
                          "temperature=" + file("t.npy", npy("|u1", "()", 1)),
                          "rate=" + file("r.npy", npy("|u1", "(5,)", 5))},
                         reader_);
  ASSERT_TRUE(s) << s.message();
  EXPECT_EQ(reader_.stepsPerEpoch(), 5); // Of the rates, one in each step.
  int seen = 0;
  for (int step = 0; step < 7; ++step)
    ASSERT_TRUE(
        reader_.next([&](const TensorInfo &input, const char *data, int64_t) {
          for (int64_t i = 0; i < input.elements(); ++i, ++seen)
            EXPECT_EQ(reinterpret_cast<const float *>(data)[i], 1);
          return Status::ok();
        }));
  EXPECT_EQ(seen, 35);
}

TEST_F(Data, NumbersThatATypeCantHoldAreNamed) {
  const std::string labels = "labels=" + tokens("l.bin", 96);
  std::string wide = npy("<u8", "(4, 8)", 256);
  wide[wide.size() - 1] = '\xff';
  ASSERT_TRUE(open({"tokens=" + file("u.npy", wide), labels}));
  Status s = next();
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_EQ(s.message(), "'" + (dir_ / "u.npy") +
                             "', for 'tokens': element 31 is "
                             "18374969058471772417, which i64 can't hold");
}

TEST_F(Data, ACutFileIsAnErrorOfTheNextBatch) {
  const std::string f = tokens("t.bin", 96);
  ASSERT_TRUE(open({f}));
  ASSERT_TRUE(next());
  fs::resize_file(f, 100);
  const Status s = next();
  EXPECT_EQ(s.code(), Code::World);
  EXPECT_EQ(s.message(), "'" + f +
                             "' was cut while it was read: it had 192 bytes, "
                             "and has 100");
}

TEST_F(Data, ABatchWithoutLabelsNamesItsSamples) {
  std::string bytes = npy("<i8", "(8, 8)", 512);
  for (size_t i = 0; i < 64; ++i) {
    const int64_t label = i < 32 ? -100 : 1;
    std::memcpy(bytes.data() + bytes.size() - 512 + i * 8, &label, 8);
  }
  ASSERT_TRUE(open(
      {"tokens=" + tokens("t.bin", 96), "labels=" + file("l.npy", bytes)}));
  ASSERT_TRUE(next());
  EXPECT_EQ(reader_.withoutLabels(), "no label of 'labels' counts in samples 0 "
                                     "to 3 of '" +
                                         (dir_ / "l.npy") + "'");
  ASSERT_TRUE(next());
  EXPECT_EQ(reader_.withoutLabels(), "");
}
