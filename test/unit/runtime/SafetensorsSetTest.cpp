//===- SafetensorsSetTest.cpp - shards, their index, and hostile ones -----===//

#include "runtime/step/SafetensorsSet.h"
#include "runtime/step/JsonReader.h"
#include "test/unit/Rounds.h"
#include "test/unit/TemporaryDirectory.h"

#include "gtest/gtest.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

using namespace tmc;
using namespace tmc::test;
namespace fs = std::filesystem;

namespace {

void put(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A file with these tensors, one float each: the position of the name.
std::string fileOf(const std::vector<std::string> &names) {
  std::vector<std::pair<std::string, SafeTensor>> tensors;
  std::string body;
  for (const std::string &name : names) {
    const float value = float(tensors.size());
    SafeTensor tensor;
    tensor.shape = {1};
    tensors.emplace_back(name, tensor);
    body.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  return safetensorsHeader(tensors, {{"format", "pt"}}) + body;
}

constexpr char kIndex[] = "model.safetensors.index.json";

/// A folder with two shards: a and b in the first, c in the second.
struct Sharded : TemporaryDirectory {
  std::string index =
      R"({"metadata": {"total_size": 12, "x": [1.5e-3, null, {"y": true}]},)"
      R"( "weight_map": {"a": "one", "b": "one", "c": "two"}})";

  Sharded() {
    put(*this / "one", fileOf({"a", "b"}));
    put(*this / "two", fileOf({"c"}));
    put(*this / kIndex, index);
  }
  Status open(const std::string &path) const {
    SafetensorsSet set;
    return SafetensorsSet::open(path, set);
  }
  /// With another index.
  Status with(const std::string &text) const {
    put(*this / kIndex, text);
    return open(path);
  }
  /// With another map in the index.
  Status mapped(const std::string &map) const {
    return with("{\"weight_map\": {" + map + "}}");
  }
};

void expectRefused(const Status &s, const char *why) {
  EXPECT_EQ(s.code(), Code::BadInput) << why;
  EXPECT_NE(s.message().find(why), std::string::npos)
      << why << ": " << s.message();
}

} // namespace

/// The bytes behind the end are those that the text would go on with.
TEST(JsonReader, NothingIsReadBehindTheEnd) {
  const std::string whole =
      R"({"a\u00e9\ud83d\ude00\n": [1, -2.5e3, true, null, {}, []], "b": "c\""})";
  for (size_t length = 0; length <= whole.size(); ++length) {
    JsonReader reader(std::string_view(whole.data(), length), "text");
    EXPECT_EQ(reader.skip() && reader.finish(), length == whole.size())
        << length;
  }
  const std::string text = "\"abc\"12", escape = "\"a\\n\"", number = "12";
  std::string out;
  int64_t value = 0;
  EXPECT_FALSE(JsonReader(std::string_view(text.data(), 3), "").string(out));
  EXPECT_FALSE(JsonReader(std::string_view(escape.data(), 3), "").string(out));
  EXPECT_TRUE(
      JsonReader(std::string_view(number.data(), 1), "").integer(value));
  EXPECT_EQ(value, 1);
}

TEST(SafetensorsSet, AFolderAndItsIndexAreTheSame) {
  Sharded folder;
  for (const std::string &path :
       {folder.path.string(), folder / "", folder / kIndex}) {
    SafetensorsSet set;
    const Status s = SafetensorsSet::open(path, set);
    ASSERT_TRUE(s) << s.message();
    EXPECT_EQ(set.path(), path);
    EXPECT_EQ(set.files().size(), 2u);
    ASSERT_EQ(set.tensors().size(), 3u);
    const SetTensor &b = *set.find("b");
    EXPECT_EQ(set.files()[b.file].path(), folder.path.string() + "/one");
    float value = -1;
    std::memcpy(&value, set.data(b), sizeof value);
    EXPECT_EQ(value, 1);
    EXPECT_TRUE(set.read(*set.find("c"), 0, &value, sizeof value));
    EXPECT_EQ(value, 0);
    EXPECT_EQ(set.find("d"), nullptr);
  }
}

TEST(SafetensorsSet, OneFileIsASetToo) {
  TemporaryDirectory folder;
  put(folder / "any.safetensors", fileOf({"a"}));
  put(folder / "model.safetensors", fileOf({"m", "n"}));
  put(folder / "adapter_model.safetensors", fileOf({"l"}));
  put(folder / kIndex, "not read");
  SafetensorsSet set;
  ASSERT_TRUE(SafetensorsSet::open(folder / "any.safetensors", set));
  EXPECT_TRUE(set.find("a"));
  ASSERT_TRUE(SafetensorsSet::open(folder.path, set));
  EXPECT_EQ(set.tensors().size(), 2u);
  EXPECT_EQ(set.index(), "");
  ASSERT_TRUE(SafetensorsSet::open(folder.path, set, "adapter_model"));
  EXPECT_TRUE(set.find("l"));
  expectRefused(SafetensorsSet::open(folder.path, set, "other"),
                "has no other.safetensors and no "
                "other.safetensors.index.json");
  put(folder / "other.bin", "");
  expectRefused(SafetensorsSet::open(folder.path, set, "other"),
                "; 'other.bin' is a pickle, which isn't read");
  expectRefused(SafetensorsSet::open(folder / "none", set), "can't open");
}

TEST(SafetensorsSet, ShardsAgreeWithTheIndex) {
  Sharded folder;
  expectRefused(folder.mapped(R"("a": "one", "c": "three")"), "can't open");
  expectRefused(folder.mapped(R"("a": "one", "c": "three")"),
                "model.safetensors.index.json' names it");
  expectRefused(folder.mapped(R"("a": "one", "x": "two")"),
                "'x' isn't in 'two'");
  expectRefused(folder.mapped(R"("a": "two", "b": "one")"),
                "'a' isn't in 'two', but in '");
  put(folder / "two", fileOf({"b", "c"}));
  expectRefused(folder.with(folder.index), "'b' is in two shards, '");
  put(folder / "two", "short");
  expectRefused(folder.with(folder.index),
                "two' isn't a sound safetensors file");
}

TEST(SafetensorsSet, TheIndexNamesFilesBesideIt) {
  Sharded folder;
  fs::create_directory(folder / "in");
  fs::copy_file(folder / "two", folder / "in/two");
  fs::copy_file(folder / "two", folder / "hard");
  fs::create_hard_link(folder / "hard", folder / "second");
  fs::create_symlink("two", folder / "link");
  fs::create_symlink(folder / "two", folder / "far");
  const auto named = [&](const std::string &file) {
    return folder.mapped("\"a\": \"one\", \"c\": \"" + file + "\"");
  };
  ASSERT_TRUE(named("two"));
  for (const char *file : {"in/two", "../two", "./two", "/etc/passwd", "two/"})
    expectRefused(named(file), "isn't beside the index");
  for (const char *file : {"", ".", ".."})
    expectRefused(named(file), "names no file");
  expectRefused(named("in"), "isn't a regular file");
  expectRefused(named("hard"), "has 2 names");
  expectRefused(named("link"), "symbolic link");
  expectRefused(named("far"), "symbolic link");
  expectRefused(named("two\\u0000"), "control character");
  expectRefused(named("two\\u000a"), "control character");
}

/// As huggingface_hub lays its cache out.
TEST(SafetensorsSet, LinksOfTheCacheAreFollowed) {
  Sharded folder;
  fs::create_directories(folder / "snapshots/1");
  fs::create_directory(folder / "blobs");
  const std::string snapshot = folder / "snapshots/1/";
  const auto link = [&](const std::string &name, const std::string &target) {
    fs::remove(snapshot + name);
    fs::create_symlink(target, snapshot + name);
  };
  fs::copy_file(folder / "one", folder / "blobs/0a1b");
  fs::copy_file(folder / "two", folder / "blobs/0a1c");
  fs::copy_file(folder / kIndex, folder / "blobs/0a1d");
  fs::copy_file(folder / "two", folder / "blobs/two"); // No hash names it.
  link("one", "../../blobs/0a1b");
  link("two", "../../blobs/0a1c");
  link(kIndex, "../../blobs/0a1d");
  EXPECT_TRUE(folder.open(snapshot));
  EXPECT_TRUE(folder.open(snapshot + kIndex));
  for (const char *target :
       {"../../blobs/../two", "../../two", "../../blobs/0a1c/", "../../blobs/",
        "../../../two", "../../blobs/two"}) {
    link("two", target);
    expectRefused(folder.open(snapshot), "can't open");
  }
  fs::create_symlink("../two", folder / "blobs/0a1e"); // A link behind one.
  link("two", "../../blobs/0a1e");
  expectRefused(folder.open(snapshot), "symbolic link");
}

TEST(SafetensorsSet, RefusesUnsoundIndices) {
  Sharded folder;
  const auto refused = [&](const std::string &text, const char *why) {
    expectRefused(folder.with(text), why);
  };
  refused("", "'{' expected");
  refused("[]", "'{' expected");
  refused("{}", "no weight_map");
  refused(R"({"weight_map": {}})", "no weight_map with a name in it");
  refused(R"({"weight_map": ["a"]})", "'{' expected");
  refused(R"({"weight_map": {"a": 1}})", "'\"' expected");
  refused(R"({"weight_map": {"a": "one"}} x)", "something follows");
  refused(R"({"weight_map": {"a": "one"}, "weight_map": {"a": "one"}})",
          "a second weight_map");
  refused(R"({"weight_map": {"a": "one", "a": "one"}})", "occurs twice");
  refused(R"({"weight_map": {"a\u001b": "one"}})", "control character");
  refused(R"({"weight_map": {"a": "one"})", "'}' expected");
  for (const char *open : {"[", "{\"a\":"}) {
    std::string deep = "{\"metadata\": ";
    for (int i = 0; i < 40000; ++i)
      deep += open;
    refused(deep, "more than 64 brackets");
  }
  std::string many = "{\"weight_map\": {\"a\": \"one\"";
  for (int i = 0; i < 1000; ++i)
    many += ", \"n" + std::to_string(i) + "\": \"f" + std::to_string(i) + "\"";
  refused(many + "}}", "names 1001 files; at most 1000");
  put(folder / kIndex, "");
  fs::resize_file(folder / kIndex, 100'000'001); // A hole.
  expectRefused(folder.open(folder.path), "at most 100000000 are allowed");
}

/// Whatever is changed, the result is a set of the shards or one message.
TEST(SafetensorsSet, AChangedIndexDoesNoHarm) {
  Sharded folder;
  int64_t opened = 0, refused = 0;
  const auto tried = [&](const std::string &text) {
    put(folder / kIndex, text);
    SafetensorsSet set;
    const Status s = SafetensorsSet::open(folder.path, set);
    ++(s ? opened : refused);
    ASSERT_TRUE(s || s.code() == Code::BadInput) << s.message() << "\n" << text;
    if (!s) {
      ASSERT_EQ(s.message().find('\n'), std::string::npos) << text;
    } else {
      ASSERT_LE(set.tensors().size(), 3u);
      ASSERT_GE(set.tensors().size(), 1u);
    }
  };
  const std::string &whole = folder.index;
  for (size_t at = 0; at < whole.size(); ++at) {
    tried(whole.substr(0, at));
    tried(whole.substr(0, at) + whole.substr(at + 1));
    for (const char c : std::string("{]\",\\/\n"))
      tried(whole.substr(0, at) + c + whole.substr(at + 1));
  }
  std::mt19937 draw(11);
  for (int64_t round = rounds(200, 50000); round; --round) {
    std::string text = whole;
    for (uint32_t changes = 1 + draw() % 4; changes; --changes) {
      const size_t from = draw() % text.size(), to = draw() % whole.size();
      text.replace(from, draw() % 12, whole.substr(to, draw() % 12));
      text += text.empty() ? " " : "";
    }
    tried(text);
  }
  EXPECT_GT(opened, 100);
  EXPECT_GT(refused, 1000);
}
