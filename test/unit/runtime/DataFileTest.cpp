//===- DataFileTest.cpp - which files are data, and as what ---------------===//

#include "runtime/step/DataFile.h"
#include "test/unit/TemporaryDirectory.h"

#include "gtest/gtest.h"

#include <cstring>
#include <fstream>

using namespace tmc;
using namespace tmc::test;

namespace {

std::string word(int64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text += char(value >> (8 * i));
  return text;
}

/// Tokens 300, 301, ..., `count` of them, of `bytes` each.
std::string tokens(int count, int bytes) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += word(300 + i, bytes);
  return text;
}

std::string npy(const std::string &descr, const std::string &shape,
                const std::string &body) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize((header.size() + 10 + 63) / 64 * 64 - 10, ' ');
  return std::string("\x93NUMPY\x01\x00", 8) + word(int64_t(header.size()), 2) +
         header + body;
}

std::string safetensors(const std::string &type, int64_t count,
                        const std::string &body) {
  const std::string header = "{\"x\":{\"dtype\":\"" + type + "\",\"shape\":[" +
                             std::to_string(count) + "],\"data_offsets\":[0," +
                             std::to_string(body.size()) + "]}}";
  return word(int64_t(header.size()), 8) + header + body;
}

/// The header of llm.c: 256 words, of which three say something.
std::string llmC(int64_t magic, int64_t version, int64_t count) {
  std::string head = word(magic, 4) + word(version, 4) + word(count, 4);
  head.resize(1024, '\0');
  return head;
}

/// That of LLM.Q.
std::string llmQ(int64_t version, int64_t count, bool hasMasks = false) {
  std::string head = "BIN.TOK\n" + word(version, 4) + word(4, 4) +
                     word(count, 4) + word(50257, 4) + word(hasMasks, 4);
  head.resize(1024, '*');
  return head;
}

std::string padded(const std::string &start, size_t bytes = 64) {
  std::string text = start;
  text.resize(bytes, '\x01');
  return text;
}

struct Case {
  std::string name, bytes, spec; // after the file's name, in --data
  std::string type;              // of the elements; "": refused
  std::string why;               // a part of the refusal
};

std::vector<Case> cases() {
  const std::string u16 = tokens(4, 2), u32 = tokens(4, 4);
  std::string tar = padded("dir/a.txt", 512);
  tar.replace(257, 5, "ustar");
  return {
      // Known by what they begin with, whatever they are called.
      {"fineweb.bin", llmC(20240520, 1, 4) + u16, "", "u16", ""},
      {"llama3.bin", llmC(20240801, 7, 4) + u32, "", "u32", ""},
      {"train-000.bin", llmQ(2, 4) + u32, "", "u32", ""},
      {"ids", npy("<u4", "(4,)", u32), "", "u32", ""},
      {"a.npy", npy("<u8", "(4,)", tokens(4, 8)), "", "u64", ""},
      {"b.npy", npy("<f2", "(4,)", u16), "", "f16", ""},
      {"c.npy", npy("<V2", "(4,)", u16), "", "bf16", ""},
      {"d.npy", npy("|u1", "(4,)", "abcd"), "", "u8", ""},
      {"e.safetensors", safetensors("BF16", 4, u16), "", "bf16", ""},
      {"shard", safetensors("U32", 4, u32), "", "u32", ""},
      // Known by the user's word or the name.
      {"plain", u16, ":u16", "u16", ""},
      {"wide", u32, ":u32", "u32", ""},
      {"ascii", "a text, read as tokens", ":u16", "u16", ""},
      {"t.u16.bin", u16, "", "u16", ""},
      {"t.u32.bin", u32, "", "u32", ""},
      {"t.bin", u16, "", "u16", ""},
      // Raw, and nothing says of which type.
      {"v.bin", u32, "", "", "every second 16-bit word of 'v.bin' is 0"},
      {"tokens.dat", u16, "", "", "'tokens.dat:u16' or 'tokens.dat:u32' says"},
      {"odd.u32.bin", u16 + u16 + u16.substr(0, 2), "", "",
       "isn't a whole number of u32 tokens"},
      {"none.bin", "", "", "", "is empty"},
      // Headers that contradict the file, or the user.
      {"short.bin", llmC(20240520, 1, 5) + u16, "", "", "counts 5 tokens"},
      {"new.bin", llmC(20240520, 2, 4) + u16, "", "", "version is 2, not 1"},
      {"old.bin", llmQ(1, 4) + u32, "", "", "version is 1, not 2"},
      {"masks.bin", llmQ(2, 4, true) + u32 + "\x0f", "", "", "it has masks"},
      {"other.bin", llmC(20240801, 7, 4) + u32, ":u16", "",
       "its header says u32, and --data says u16"},
      {"model.bin", llmC(20240326, 3, 1024), "", "", "a model of llm.c"},
      {"f.npy", npy(">i4", "(4,)", u32), "", "", "'>i4' isn't supported"},
      // What isn't data.
      {"part.bin", padded("PAR1"), "", "", "a Parquet file"},
      {"d.arrow", padded("ARROW1"), "", "", "an Arrow file"},
      {"cache.bin", padded(word(-1, 4) + word(512, 4) + word(16, 4), 1024), "",
       "", "an Arrow stream"},
      {"a.npz", padded("PK\x03\x04"), "", "", "a zip archive"},
      {"t.bin.gz", padded("\x1f\x8b\x08"), "", "", "a gzip file"},
      {"t.zst", padded("\x28\xb5\x2f\xfd"), "", "", "a Zstandard file"},
      {"d.tar", tar, "", "", "a tar archive"},
      {"d.h5", padded("\x89HDF\r\n\x1a\n"), "", "", "an HDF5 file"},
      {"d.pkl", padded("\x80\x04\x95") + ".", "", "", "a pickle"},
      {"d.json", "[{\"text\": \"one\"},\n{\"text\": \"two\"}]\n", "", "",
       "JSON"},
      {"text.bin",
       "Zwei Stra\xc3\x9f"
       "en,\nim Wald.\n",
       "", "", "text"},
      {"d.csv", "1,2,3\n4,5,6\n", "", "", "text"},
      {"d.png", padded("\x89PNG\r\n\x1a\n"), "", "", "a PNG image"},
  };
}

} // namespace

TEST(DataFile, IsKnownOrRefused) {
  TemporaryDirectory dir;
  EXPECT_GE(cases().size(), 30u);
  for (const Case &c : cases()) {
    const std::string path = dir / c.name;
    std::ofstream(path, std::ios::binary) << c.bytes;
    DataFile file;
    const Status s =
        DataFile::open(DataSpec::parse(path + c.spec), "input", file);
    if (c.type.empty()) {
      std::string message = s.message();
      for (size_t at; (at = message.find(dir / "")) != std::string::npos;)
        message.erase(at, (dir / "").size());
      EXPECT_EQ(s.code(), Code::BadInput) << c.name;
      EXPECT_NE(message.find(c.why), std::string::npos)
          << c.name << ": " << message;
      continue;
    }
    ASSERT_TRUE(s) << c.name << ": " << s.message();
    const ArrayView &array = file.array();
    EXPECT_EQ(array.typeName(), c.type) << c.name;
    if (c.name == "ascii")
      continue;
    ASSERT_EQ(array.shape, std::vector<int64_t>{4}) << c.name;
    char last[8] = {};
    ASSERT_TRUE(file.read(3, 1, last)) << c.name;
    EXPECT_EQ(std::memcmp(last, c.type == "u8" ? "d" : word(303, 8).data(),
                          c.type == "u8" ? 1 : 2),
              0)
        << c.name;
  }
}

TEST(DataFile, SpecsSayTypesScalesAndShifts) {
  auto check = [](const char *text, const char *path, int64_t skipped,
                  std::optional<DType> raw, bool isScaled, double scale,
                  double shift) {
    const DataSpec spec = DataSpec::parse(text);
    EXPECT_EQ(spec.path, path) << text;
    EXPECT_EQ(spec.skipped, skipped) << text;
    EXPECT_EQ(spec.raw, raw) << text;
    EXPECT_EQ(spec.isScaled, isScaled) << text;
    EXPECT_EQ(spec.scale, scale) << text;
    EXPECT_EQ(spec.shift, shift) << text;
  };
  check("a.bin", "a.bin", 0, {}, false, 1, 0);
  check("a.bin+1", "a.bin", 1, {}, false, 1, 0);
  check("a:u16+12", "a", 12, DType::U16, false, 1, 0);
  check("a:u32", "a", 0, DType::I32, false, 1, 0);
  check("a.npy*0.5", "a.npy", 0, {}, true, 0.5, 0);
  check("a.npy*-2e1+3", "a.npy", 0, {}, true, -20, 3);
  check("a.npy*.5-.25", "a.npy", 0, {}, true, 0.5, -0.25);
  // Names that look a little like it.
  check("a*b.npy", "a*b.npy", 0, {}, false, 1, 0);
  check("a*2.npy", "a*2.npy", 0, {}, false, 1, 0);
  check("a*nan", "a*nan", 0, {}, false, 1, 0);
  check("a*0x1p3", "a*0x1p3", 0, {}, false, 1, 0);
  check(":u16", ":u16", 0, {}, false, 1, 0);
  check("a+", "a+", 0, {}, false, 1, 0);
  check("a+1234567890", "a+1234567890", 0, {}, false, 1, 0);
}
