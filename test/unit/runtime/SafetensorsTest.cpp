//===- SafetensorsTest.cpp - hostile files and atomic replacement ---------===//

#include "runtime/step/Safetensors.h"
#include "test/unit/TemporaryDirectory.h"

#include "gtest/gtest.h"

#include <csignal>
#include <cstring>
#include <dirent.h>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

using namespace tmc;
using namespace tmc::test;
namespace fs = std::filesystem;

namespace {

std::string fileOf(const std::string &header, const std::string &body) {
  std::string out(8, '\0');
  for (int i = 0; i < 8; ++i)
    out[size_t(i)] = char(header.size() >> (8 * i));
  return out + header + body;
}

Status parse(const std::string &bytes) {
  SafetensorsFile file;
  return SafetensorsFile::parse("x", bytes.data(), int64_t(bytes.size()), file);
}

void put(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
std::string get(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Bytes of mapped files that this process has in memory.
int64_t residentOfFiles() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("RssFile:", 0) == 0)
      return std::stoll(line.substr(8)) * 1024;
  return -1;
}

} // namespace

TEST(Safetensors, WhatHasBeenReadTakesNoMemory) {
  const int64_t bytes = 32 << 20;
  std::vector<std::pair<std::string, SafeTensor>> tensors(1);
  tensors[0].first = "large";
  tensors[0].second.shape = {bytes / 4};
  TemporaryDirectory directory;
  const std::string path = directory / "large.safetensors";
  put(path, safetensorsHeader(tensors, {}) + std::string(size_t(bytes), 'z'));
  SafetensorsFile file;
  ASSERT_TRUE(SafetensorsFile::open(path, file));
  const SafeTensor &tensor = *file.find("large");
  const int64_t before = residentOfFiles(), piece = 1 << 20;
  auto sum = [&](bool releases) {
    int64_t sum = 0;
    for (int64_t at = 0; at < bytes; at += piece) {
      for (int64_t i = at; i < at + piece; ++i)
        sum += file.data(tensor)[i];
      if (releases)
        file.release(tensor, at, piece);
    }
    return sum;
  };
  EXPECT_EQ(sum(true), 'z' * bytes);
  EXPECT_LT(residentOfFiles() - before, 4 * piece);
  EXPECT_EQ(sum(false), 'z' * bytes);               // It can be read again,
  EXPECT_GT(residentOfFiles() - before, bytes / 2); // and this measures it.
}

TEST(Safetensors, ReadsWhatItWrites) {
  std::vector<std::pair<std::string, SafeTensor>> tensors(2);
  tensors[0].first = "a \"quoted\"\\name";
  tensors[0].second.shape = {2, 3};
  tensors[1].first = "scalar";
  tensors[1].second.type = DType::I64;
  const std::string header =
      safetensorsHeader(tensors, {{"step", "12"}, {"note", "x\ny"}});
  const std::string bytes = header + std::string(24 + 8, 'z');
  SafetensorsFile file;
  const Status s =
      SafetensorsFile::parse("x", bytes.data(), int64_t(bytes.size()), file);
  ASSERT_TRUE(s) << s.message();
  EXPECT_EQ(header.size() % 8, 0u);
  EXPECT_EQ(file.metadata().at("step"), "12");
  EXPECT_EQ(file.metadata().at("note"), "x\ny");
  ASSERT_TRUE(file.find("a \"quoted\"\\name"));
  EXPECT_EQ(file.find("a \"quoted\"\\name")->shape,
            (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.find("scalar")->begin, 24);
  EXPECT_EQ(file.find("scalar")->shape.size(), 0u);
}

TEST(Safetensors, RefusesHostileFiles) {
  const std::string good =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_TRUE(parse(fileOf(good, std::string(8, 0))));
  auto refused = [](const std::string &header, size_t body, const char *why) {
    const Status s = parse(fileOf(header, std::string(body, 0)));
    EXPECT_EQ(s.code(), Code::BadInput) << header;
    EXPECT_NE(s.message().find(why), std::string::npos)
        << header << ": " << s.message();
  };
  auto tensor = [](const char *shape, const char *offsets) {
    return std::string(R"({"a":{"dtype":"F32","shape":)") + shape +
           R"(,"data_offsets":)" + offsets + "}}";
  };
  EXPECT_FALSE(parse(""));
  EXPECT_FALSE(parse("1234567"));
  EXPECT_FALSE(parse(std::string(8, '\xff')));
  EXPECT_FALSE(
      parse(std::string("\x00\xe1\xf5\x05\0\0\0\0", 8))); // 100,000,000
  EXPECT_FALSE(parse(std::string("\x10\0\0\0\0\0\0\0{}", 10)));
  refused("", 0, "expected");
  refused("[]", 0, "expected");
  refused("{} x", 0, "follows");
  refused(good.substr(0, good.size() - 1), 8, "expected");
  refused(tensor("[2]", "[0,8]"), 7, "ends at byte");
  refused(tensor("[2]", "[0,8]"), 9, "belong to no tensor");
  refused(tensor("[2]", "[1,9]"), 9, "a hole");
  refused(tensor("[3]", "[0,8]"), 8, "shape needs 12");
  refused(tensor("[2]", "[8,0]"), 8, "ends at byte");
  refused(tensor("[2]", "[0]"), 8, "two entries");
  refused(tensor("[-2]", "[0,8]"), 8, "whole number");
  refused(tensor("[2.0]", "[0,8]"), 8, "expected");
  refused(tensor("[4611686018427387904,4]", "[0,8]"), 8, "overflows");
  refused(tensor("[99999999999999999999]", "[0,8]"), 8, "too large");
  refused(tensor("[2]", "[0,99999999999999999999]"), 8, "too large");
  refused(R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8,
          "unknown type");
  refused(R"({"a":{"dtype":"F32","shape":[2]}})", 8, "without");
  refused(R"({"a":{"dtype":"F32","x":[[[[[[]]]]]]}})", 8, "unexpected key");
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
          R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
          16, "occurs twice");
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
          R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
          12, "overlap");
  refused("{\"a\\u12\":1}", 0, "escape");
  refused("{\"a\n\":1}", 0, "control");
  std::string dims = "[1";
  for (int i = 0; i < 70; ++i)
    dims += ",1";
  refused(tensor((dims + "]").c_str(), "[0,4]"), 4, "64 dimensions");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string whole = fileOf(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(parse(whole.substr(0, n))) << n;
}

TEST(MappedFile, StaysBeneathItsDirectory) {
  TemporaryDirectory dir;
  fs::create_directory(dir / "in");
  put(dir / "secret", "secret");
  put(dir / "in/plain", "plain");
  fs::create_symlink("../secret", dir / "in/link");
  fs::create_hard_link(dir / "secret", dir / "in/hard");
  fs::create_directory_symlink("..", dir / "in/up");
  fs::create_symlink("plain", dir / "in/near");
  MappedFile file;
  const std::string base = dir / "in";
  ASSERT_TRUE(MappedFile::openBeneath(base, "plain", file));
  EXPECT_EQ(std::string(file.data(), size_t(file.bytes())), "plain");
  for (const char *name : {"../secret", "link", "near", "hard", "up/secret", "",
                           ".", "missing", "/etc/passwd", "in/../../secret"}) {
    const Status s = MappedFile::openBeneath(base, name, file);
    EXPECT_EQ(s.code(), Code::BadInput) << name << ": " << s.message();
  }
}

TEST(AtomicFile, ReplacesAtOnceOrNotAtAll) {
  TemporaryDirectory dir;
  const std::string at = dir / "out";
  {
    AtomicFile file;
    ASSERT_TRUE(file.create(at, "f"));
    ASSERT_TRUE(file.write("one", 3));
    EXPECT_FALSE(fs::exists(at + "/f"));
    ASSERT_TRUE(file.commit());
  }
  EXPECT_EQ(get(at + "/f"), "one");
  {
    AtomicFile dropped;
    ASSERT_TRUE(dropped.create(at, "f"));
    ASSERT_TRUE(dropped.write("two", 3));
  }
  EXPECT_EQ(get(at + "/f"), "one");
  EXPECT_EQ(std::distance(fs::directory_iterator(at), {}), 1);
}

TEST(AtomicFile, AFullDiskLosesNothing) {
  TemporaryDirectory dir;
  put(dir / "f", "old");
  // A limit on the size of files is the full disk that any user can make.
  struct rlimit before, limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = before;
  limit.rlim_cur = 100000;
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string big(300000, 'x');
  AtomicFile file;
  Status s = file.create(dir.path, "f");
  if (s)
    s = file.write(big.data(), int64_t(big.size()));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(s.code(), Code::World);
  EXPECT_NE(s.message().find("untouched"), std::string::npos) << s.message();
  EXPECT_EQ(get(dir / "f"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path), {}), 1)
      << "a temporary file was left";
}

TEST(Safetensors, NamesHoldNoControlCharacters) {
  auto named = [](const std::string &name) {
    return parse(fileOf("{\"" + name +
                            "\": {\"dtype\": \"U8\", \"shape\": [1], "
                            "\"data_offsets\": [0, 1]}}",
                        "x"));
  };
  for (int byte = 1; byte < 256; ++byte) {
    const std::string name = std::string("a") + char(byte);
    const bool isSound =
        byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
    EXPECT_EQ(named(name).isOk(), isSound) << byte;
  }
  for (const char *name : {"\\\\", "\\\"", "*/", "\u202e", "\u2028", "..", "/",
                           "", "\\u202e", "\\ud83d\\ude00", "\U0001f600"})
    EXPECT_TRUE(named(name)) << name;
  const Status control = named("b\\u000a");
  EXPECT_EQ(control.code(), Code::BadInput);
  EXPECT_NE(
      control.message().find(
          "the name 'b\\u000a' holds the control character 0x0a at byte 1"),
      std::string::npos)
      << control.message();
  for (const char *name : {"\\ud83d", "\\ude00", "\\ud83dx", "\\ud83d\\u0041",
                           "\\u0000", "\\u009b", "\\u12"})
    EXPECT_FALSE(named(name)) << name;
}

TEST(Safetensors, WhatIsWrittenIsReadAlike) {
  for (const std::string name :
       {"a\"\\*/", "\u202e\u2028\u00e9", "\U0001f600\U000e0041", "%s{0}"}) {
    std::vector<std::pair<std::string, SafeTensor>> tensors(1);
    tensors[0].first = name;
    tensors[0].second.shape = {1};
    const std::string bytes =
        safetensorsHeader(tensors, {{name, name}}) + "1234";
    EXPECT_EQ(bytes.find("\u202e"), std::string::npos);
    SafetensorsFile file;
    ASSERT_TRUE(
        SafetensorsFile::parse("x", bytes.data(), int64_t(bytes.size()), file));
    EXPECT_NE(file.find(name), nullptr);
    EXPECT_EQ(file.metadata().at(name), name);
  }
}

TEST(Safetensors, NestedHeadersAreRefused) {
  for (const char *open : {"[", "{\"a\":"}) {
    std::string header;
    for (int i = 0; i < 40000; ++i)
      header += open;
    EXPECT_EQ(parse(fileOf(header, "")).code(), Code::BadInput);
    EXPECT_EQ(parse(fileOf("{\"a\": {\"shape\": " + header, "")).code(),
              Code::BadInput);
  }
}
