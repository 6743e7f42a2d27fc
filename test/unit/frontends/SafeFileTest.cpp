// Files named by a model: only those beneath its directory, reached honestly.

#include "frontends/SafeFile.h"
#include "test/unit/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace tmc;

namespace {
class SafeFileTest : public ::testing::Test {
protected:
  void SetUp() override {
    root = outer + "/model";
    ASSERT_EQ(mkdir(root.c_str(), 0755), 0);
    ASSERT_EQ(mkdir((root + "/sub").c_str(), 0755), 0);
    write(outer + "/secret", "private");
    write(root + "/weights.data", "12345678");
    write(root + "/sub/more.data", "abc");
    write(root + "/empty.data", "");
  }
  static void write(const std::string &path, const std::string &text) {
    std::ofstream(path) << text;
  }
  /// The exit code and message that opening `name` ends with.
  std::pair<int, std::string> refusal(const std::string &name) {
    auto file = openBeneath(root, name);
    if (file)
      return {0, std::string(file->bytes())};
    return {file.failure().exitCode(), file.failure().message};
  }

  test::TemporaryDirectory directory;
  std::string outer = directory.path, root;
};

TEST_F(SafeFileTest, OpensWhatLiesBeneath) {
  EXPECT_EQ(refusal("weights.data").second, "12345678");
  EXPECT_EQ(refusal("sub/more.data").second, "abc");
  EXPECT_EQ(refusal("./sub/../weights.data").second.empty(), false);
  EXPECT_EQ(refusal("empty.data"), std::make_pair(0, std::string()));
}

TEST_F(SafeFileTest, RefusesWhatClimbsOut) {
  EXPECT_EQ(refusal("../secret").first, 1);
  EXPECT_EQ(refusal("sub/../../secret").first, 1);
  EXPECT_EQ(refusal("..").first, 1);
  EXPECT_EQ(refusal(outer + "/secret").first, 1);
  EXPECT_EQ(refusal("/etc/passwd").first, 1);
  EXPECT_EQ(refusal("").first, 1);
  EXPECT_EQ(refusal(std::string("weights.data\0x", 14)).first, 1);
}

TEST_F(SafeFileTest, RefusesLinks) {
  ASSERT_EQ(symlink("../secret", (root + "/link").c_str()), 0);
  EXPECT_EQ(refusal("link").first, 1);
  ASSERT_EQ(symlink("sub", (root + "/linked-dir").c_str()), 0);
  EXPECT_EQ(refusal("linked-dir/more.data").first, 1);
  ASSERT_EQ(link((outer + "/secret").c_str(), (root + "/hard").c_str()), 0);
  auto [code, message] = refusal("hard");
  EXPECT_EQ(code, 1);
  EXPECT_NE(message.find("2 hard links"), std::string::npos) << message;
}

TEST_F(SafeFileTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(refusal("sub").first, 1);
  ASSERT_EQ(mkfifo((root + "/pipe").c_str(), 0644), 0);
  EXPECT_EQ(refusal("pipe").first, 1);
}

TEST_F(SafeFileTest, Missing) {
  EXPECT_EQ(refusal("absent.data").first, 74); // It may come later.
  EXPECT_EQ(openByUser(root + "/absent.onnx").failure().exitCode(), 1);
  EXPECT_EQ(openByUser(root).failure().exitCode(), 1);
}

TEST_F(SafeFileTest, UserMayNameALink) {
  ASSERT_EQ(symlink("../secret", (root + "/link").c_str()), 0);
  auto file = openByUser(root + "/link");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bytes(), "private");
}
} // namespace
