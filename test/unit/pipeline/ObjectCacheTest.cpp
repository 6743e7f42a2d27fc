// ObjectCacheTest.cpp - what is kept is found again whole or not at all, and
// never more than the limit is kept.

#include "driver/pipeline/ObjectCache.h"
#include "driver/pipeline/HostCompiler.h"
#include "test/unit/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>

using namespace tmc;
using tmc::test::TemporaryDirectory;
namespace fs = std::filesystem;

static void write(const std::string &path, const std::string &content) {
  std::ofstream(path, std::ios::binary) << content;
}

static std::string read(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

static int64_t bytesIn(const std::string &directory) {
  int64_t bytes = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory))
    bytes += int64_t(entry.file_size());
  return bytes;
}

/// Makes an entry as old as `seconds`.
static void age(const std::string &path, int64_t seconds) {
  timespec then = {time(nullptr) - seconds, 0}, times[2] = {then, then};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(ObjectCache, FindsWhatItKept) {
  TemporaryDirectory directory;
  ObjectCache cache = ObjectCache::open(directory / "of/a/user");
  std::string content = std::string("bytes\0and\nlines", 15);
  write(directory / "a.o", content);
  EXPECT_FALSE(cache.fetch("key", directory / "b.o"));
  cache.keep("key", directory / "a.o");
  ASSERT_TRUE(cache.fetch("key", directory / "b.o"));
  EXPECT_EQ(read(directory / "b.o"), content);
  EXPECT_FALSE(cache.fetch("other", directory / "b.o"));
}

TEST(ObjectCache, DropsWhatIsDamaged) {
  TemporaryDirectory directory;
  ObjectCache cache = ObjectCache::open(directory / "cache");
  std::string content(1000, 'x'), entry = directory / "cache/key";
  write(directory / "a.o", content);
  cache.keep("key", directory / "a.o");
  std::string whole = read(entry);
  std::string flipped = whole;
  flipped.back() ^= 1;
  for (const std::string &damaged :
       {std::string(), whole.substr(0, 8), whole.substr(0, whole.size() - 1),
        whole + "x", flipped, content}) {
    write(entry, damaged);
    EXPECT_FALSE(cache.fetch("key", directory / "b.o"));
    EXPECT_FALSE(fs::exists(entry));
    cache.keep("key", directory / "a.o");
    ASSERT_TRUE(cache.fetch("key", directory / "b.o"));
    EXPECT_EQ(read(directory / "b.o"), content);
  }
}

TEST(ObjectCache, IsNoErrorWhereItCantBe) {
  TemporaryDirectory directory;
  write(directory / "file", "");
  write(directory / "a.o", "object");
  for (const std::string &path :
       {std::string(), directory / "file", directory / "file/below"}) {
    ObjectCache cache = ObjectCache::open(path);
    cache.keep("key", directory / "a.o");
    EXPECT_FALSE(cache.fetch("key", directory / "b.o"));
  }
  // And what is kept may have nowhere to go.
  ObjectCache cache = ObjectCache::open(directory / "cache");
  cache.keep("key", directory / "a.o");
  EXPECT_FALSE(cache.fetch("key", directory / "nowhere/b.o"));
}

static mode_t modeOf(const std::string &path) {
  struct stat status = {};
  EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(ObjectCache, IsOfTheUserAlone) {
  TemporaryDirectory directory;
  const std::string place = directory / "above/cache";
  write(directory / "a.o", "object");
  const mode_t old = umask(0);
  ObjectCache made = ObjectCache::open(place);
  made.keep("key", directory / "a.o");
  umask(old);
  EXPECT_EQ(modeOf(directory / "above"), 0700u);
  EXPECT_EQ(modeOf(place), 0700u);
  EXPECT_EQ(modeOf(place + "/key"), 0600u);
  // Others could look into it: they no longer can.
  ASSERT_EQ(chmod(place.c_str(), 0755), 0);
  ObjectCache again = ObjectCache::open(place);
  EXPECT_EQ(modeOf(place), 0700u);
  EXPECT_TRUE(again.fetch("key", directory / "b.o"));
  EXPECT_EQ(again.warning(), "");
  // Others could write in it: what is there may be theirs.
  for (mode_t mode : {0777, 0720, 01777, 0702}) {
    ASSERT_EQ(chmod(place.c_str(), mode), 0);
    ObjectCache open = ObjectCache::open(place);
    EXPECT_TRUE(open.isOff());
    EXPECT_NE(open.warning().find("other users can write in it"),
              std::string::npos);
    open.keep("other", directory / "a.o");
    EXPECT_FALSE(open.fetch("key", directory / "b.o"));
    EXPECT_FALSE(fs::exists(place + "/other"));
  }
  ASSERT_EQ(chmod(place.c_str(), 0700), 0);
  // A link to a directory, though it is ours.
  fs::create_directory_symlink(place, directory / "link");
  ObjectCache linked = ObjectCache::open(directory / "link");
  EXPECT_TRUE(linked.isOff());
  EXPECT_NE(linked.warning().find("no directory of its own"),
            std::string::npos);
}

TEST(ObjectCache, IsNotOfAnotherUser) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  TemporaryDirectory directory;
  ObjectCache::open(directory / "cache");
  ASSERT_EQ(chown((directory / "cache").c_str(), 1, 1), 0);
  ObjectCache cache = ObjectCache::open(directory / "cache");
  EXPECT_TRUE(cache.isOff());
  EXPECT_NE(cache.warning().find("another user"), std::string::npos);
}

/// Sound by its own hash, but an entry that somebody else may have put there.
TEST(ObjectCache, TakesNoEntryOfOthers) {
  TemporaryDirectory directory;
  ObjectCache cache = ObjectCache::open(directory / "cache");
  const std::string entry = directory / "cache/key";
  write(directory / "a.o", "object");
  auto keep = [&] {
    cache.keep("key", directory / "a.o");
    ASSERT_TRUE(cache.fetch("key", directory / "b.o"));
  };
  keep();
  fs::rename(entry, directory / "elsewhere"); // A link to a sound one.
  fs::create_symlink(directory / "elsewhere", entry);
  EXPECT_FALSE(cache.fetch("key", directory / "b.o"));
  // Keeping replaces the link, and leaves what it leads to.
  const std::string before = read(directory / "elsewhere");
  write(directory / "a.o", "another object");
  keep();
  EXPECT_FALSE(fs::is_symlink(entry));
  EXPECT_EQ(read(directory / "elsewhere"), before);
  ASSERT_EQ(chmod(entry.c_str(), 0666), 0);
  EXPECT_FALSE(cache.fetch("key", directory / "b.o"));
  EXPECT_FALSE(fs::exists(entry));
  keep();
  fs::create_hard_link(entry, directory / "second");
  EXPECT_FALSE(cache.fetch("key", directory / "b.o"));
  keep();
  fs::remove(entry);
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0); // Must not wait for a writer.
  EXPECT_FALSE(cache.fetch("key", directory / "b.o"));
}

TEST(ObjectCache, LeavesNothingWhereTheDiskIsFull) {
  TemporaryDirectory directory;
  ObjectCache cache = ObjectCache::open(directory / "cache");
  write(directory / "a.o", std::string(100'000, 'x'));
  auto *before = signal(SIGXFSZ, SIG_IGN);
  rlimit old, small;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  small = old;
  small.rlim_cur = 50'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  cache.keep("key", directory / "a.o");
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, before);
  EXPECT_TRUE(fs::is_empty(directory / "cache"));
  EXPECT_FALSE(cache.fetch("key", directory / "b.o"));
}

TEST(ObjectCache, LosesWhatIsUnusedForLongest) {
  TemporaryDirectory directory;
  std::string content(1000, 'x'), place = directory / "cache";
  constexpr int64_t kRoom = 3500; // For three of a thousand and their heads.
  ObjectCache cache = ObjectCache::open(place, kRoom);
  write(directory / "a.o", content);
  for (int i = 0; i < 3; ++i) {
    cache.keep("key" + std::to_string(i), directory / "a.o");
    age(place + "/key" + std::to_string(i), 1000 - 100 * i);
  }
  EXPECT_TRUE(cache.fetch("key0", directory / "b.o")); // Used, so young again.
  cache.keep("key3", directory / "a.o");
  EXPECT_LE(bytesIn(place), kRoom);
  EXPECT_TRUE(cache.fetch("key0", directory / "b.o"));
  EXPECT_FALSE(cache.fetch("key1", directory / "b.o"));
  EXPECT_TRUE(cache.fetch("key2", directory / "b.o"));
  EXPECT_TRUE(cache.fetch("key3", directory / "b.o"));
  // What a process left that was killed goes like the rest.
  write(place + "/key9.1234", content);
  age(place + "/key9.1234", 100'000);
  cache.keep("key3", directory / "a.o");
  EXPECT_FALSE(fs::exists(place + "/key9.1234"));
  // What is larger than all of the cache leaves nothing behind.
  write(directory / "large.o", std::string(10'000, 'x'));
  cache.keep("large", directory / "large.o");
  EXPECT_LE(bytesIn(place), kRoom);
}

TEST(ObjectCache, TakesTwoAtOnce) {
  TemporaryDirectory directory;
  ObjectCache cache = ObjectCache::open(directory / "cache", 40'000);
  auto use = [&](int self) {
    std::string mine = directory / ("in" + std::to_string(self));
    std::string out = directory / ("out" + std::to_string(self));
    for (int i = 0; i < 300; ++i) {
      int key = (i * 7 + self) % 20;
      std::string content(4000, char('a' + key));
      if (cache.fetch(std::to_string(key), out)) {
        EXPECT_EQ(read(out), content);
        continue;
      }
      write(mine, content);
      cache.keep(std::to_string(key), mine);
    }
  };
  std::thread other(use, 1);
  use(2);
  other.join();
  EXPECT_LE(bytesIn(directory / "cache"), 40'000);
}

TEST(ObjectCache, IsWhereTheUserKeepsCaches) {
  setenv("HOME", "/home/someone", 1);
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(ObjectCache::userDirectory(), "/home/someone/.cache/tmc");
  setenv("XDG_CACHE_HOME", "/var/somewhere", 1);
  EXPECT_EQ(ObjectCache::userDirectory(), "/var/somewhere/tmc");
  setenv("XDG_CACHE_HOME", "relative", 1); // Doesn't count.
  EXPECT_EQ(ObjectCache::userDirectory(), "/home/someone/.cache/tmc");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(ObjectCache::userDirectory(), "");
}

TEST(HostCompiler, RunsToolsSideBySide) {
  TemporaryDirectory directory;
  std::vector<ToolRun> runs;
  for (int i = 0; i < 40; ++i)
    runs.push_back({{"/bin/sh", "-c", "echo " + std::to_string(i)},
                    directory / std::to_string(i)});
  EXPECT_TRUE(bool(runTools(runs)));
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(read(directory / std::to_string(i)), std::to_string(i) + "\n");
  EXPECT_TRUE(bool(runTools({})));
  // The first that fails is told of, and none is left running.
  runs[3].arguments = {"/bin/sh", "-c", "echo third fails; exit 3"};
  runs[4].arguments = {"/bin/sh", "-c", "sleep 600"};
  runs[5].arguments = {"/bin/sh", "-c", "echo so does the fifth; exit 5"};
  auto done = runTools(runs);
  ASSERT_FALSE(bool(done));
  EXPECT_NE(done.failure().message.find("code 3"), std::string::npos);
  ASSERT_EQ(done.failure().notes.size(), 1u);
  EXPECT_EQ(done.failure().notes[0], "third fails");
  runs = {{{directory / "no-such-program"}, directory / "log"}};
  EXPECT_FALSE(bool(runTools(runs)));
}
