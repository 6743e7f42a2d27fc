// KernelPiecesTest.cpp - kernels that two steps share are the same text in
// both, in the same files.

#include "compiler/emit/KernelPieces.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace tmc;

namespace {

std::string bodyText(const std::string &name, const std::string &comment,
                     const std::string &work) {
  return "/// " + comment + ": 4 rows of 8.\nstruct " + name +
         " {\n  static constexpr const char *name = \"" + name +
         "\";\n  float *out0; // 4x8 " + comment + "\n\n  " + name +
         "(tmc::Out out) {}\n  " + work + "\n};\n\n";
}

/// Bodies of about a kilobyte, each another.
std::vector<KernelBody> manyBodies(int count) {
  std::vector<KernelBody> bodies;
  for (int i = 0; i < count; ++i) {
    std::string name = "fused_" + std::to_string(i);
    std::string work;
    for (int line = 0; line < 40; ++line)
      work += "  const auto x = " + std::to_string(i) + " * 1.5f;\n";
    bodies.push_back(canonicalBody(name, bodyText(name, "h", work)));
  }
  return bodies;
}

std::set<std::string> textsOf(const std::vector<KernelBody> &bodies) {
  std::set<std::string> texts;
  for (const std::vector<KernelBody> &file : groupBodies(bodies)) {
    std::string text;
    for (const KernelBody &body : file)
      text += body.text;
    texts.insert(text);
  }
  return texts;
}

} // namespace

TEST(KernelPieces, NumbersAndNamesDontCount) {
  KernelBody one =
      canonicalBody("fused_1", bodyText("fused_1", "h.0.act", "a / b;"));
  KernelBody other =
      canonicalBody("fused_17", bodyText("fused_17", "act_2", "a / b;"));
  EXPECT_EQ(one.name, other.name);
  EXPECT_EQ(one.text, other.text);
  EXPECT_EQ(one.text, "struct " + one.name +
                          " {\n  static constexpr const char *name = \"" +
                          one.name + "\";\n  float *out0;\n  " + one.name +
                          "(tmc::Out out) {}\n  a / b;\n};\n\n");
  KernelBody third =
      canonicalBody("fused_1", bodyText("fused_1", "h.0.act", "a * b;"));
  EXPECT_NE(one.name, third.name);
}

TEST(KernelPieces, OnlyWholeWordsAreRenamed) {
  KernelBody body = canonicalBody("fused_1", "fused_1 fused_12 xfused_1;\n");
  EXPECT_EQ(body.text, body.name + " fused_12 xfused_1;\n\n");
}

TEST(KernelPieces, EachBodyIsInOneFile) {
  std::vector<KernelBody> bodies = manyBodies(90);
  bodies.push_back(bodies[7]);
  std::map<std::string, int> found;
  size_t files = 0;
  for (const std::vector<KernelBody> &file : groupBodies(bodies)) {
    size_t bytes = 0;
    for (const KernelBody &body : file) {
      ++found[body.name];
      bytes += body.text.size();
    }
    EXPECT_LE(bytes, 16u << 10);
    ++files;
  }
  EXPECT_EQ(found.size(), 90u);
  for (const auto &[name, times] : found)
    EXPECT_EQ(times, 1) << name;
  EXPECT_LT(files, 20u);
}

/// In any order, and with another body, nearly all files stay.
TEST(KernelPieces, FilesStay) {
  std::vector<KernelBody> bodies = manyBodies(90), more = manyBodies(91);
  std::vector<KernelBody> reversed(bodies.rbegin(), bodies.rend());
  std::set<std::string> texts = textsOf(bodies);
  EXPECT_EQ(textsOf(reversed), texts);
  size_t same = 0;
  for (const std::string &text : textsOf(more))
    same += texts.count(text);
  EXPECT_GE(same, texts.size() - 1);
}

TEST(KernelPieces, ALongBodyHasAFile) {
  std::string text(100'000, 'x');
  EXPECT_EQ(groupBodies({{"a", text}, {"b", text + "y"}}).size(), 2u);
  EXPECT_EQ(groupBodies({{"a", text}}).size(), 1u);
  EXPECT_TRUE(groupBodies({}).empty());
}
