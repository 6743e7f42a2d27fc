// OutputDirectoryTest.cpp - files of a step appear together, nothing else does,
// and a process that is killed anywhere leaves what the next one replaces.

#include "driver/pipeline/OutputDirectory.h"
#include "test/unit/TemporaryDirectory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tmc;
using tmc::test::TemporaryDirectory;
namespace fs = std::filesystem;

/// How many more renames this process lives for; negative: for all.
static int renamesToLive = -1;

/// In the place of the C library's.
extern "C" int renameat(int from, const char *name, int to,
                        const char *newName) noexcept {
  if (renamesToLive >= 0 && renamesToLive-- == 0)
    kill(getpid(), SIGKILL);
  return int(syscall(SYS_renameat2, from, name, to, newName, 0));
}

namespace {

const std::string kPlan =
    "{\n  \"compiled_for\": \"cpu:v3\",\n"
    "  \"library\": \"libstep.so\",\n  \"schema\": 1\n}\n";

void write(const std::string &path, const std::string &content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string read(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// All files, what they hold, and directories.
std::map<std::string, std::string> contents(const std::string &directory) {
  std::map<std::string, std::string> found;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory))
    found[entry.path().filename().string()] =
        entry.is_directory() ? "a directory" : read(entry.path().string());
  return found;
}

/// A step whose files all hold `content`.
void publish(const std::string &path, const std::string &content,
             const std::vector<std::string> &names, bool force = false) {
  auto output = OutputDirectory::create(path, force);
  ASSERT_TRUE(bool(output)) << output.failure().message;
  ASSERT_TRUE(bool(output->write("plan.json", kPlan)));
  for (const std::string &name : names)
    ASSERT_TRUE(bool(output->write(name, content)));
  write(output->scratch("main.cpp"), "no output");
  ASSERT_TRUE(bool(output->commit()));
}

const std::vector<std::string> kNames = {"step.h", "libstep.so", "train",
                                         "weights.safetensors"};

std::map<std::string, std::string> step(const std::string &content) {
  std::map<std::string, std::string> all = {{"plan.json", kPlan}};
  for (const std::string &name : kNames)
    all[name] = content;
  return all;
}

} // namespace

TEST(OutputDirectory, PublishesWhatWasWrittenAndNothingElse) {
  TemporaryDirectory directory;
  const std::string place = directory / "a/step";
  publish(place, "one", kNames);
  EXPECT_EQ(contents(place), step("one"));
  write(place + "/notes", "mine");
  publish(place, "two", {"step.h"});
  EXPECT_EQ(contents(place),
            (std::map<std::string, std::string>{{"plan.json", kPlan},
                                                {"step.h", "two"},
                                                {"weights.safetensors", "one"},
                                                {"notes", "mine"}}));
  // What isn't committed leaves all as it was.
  auto before = contents(place);
  {
    auto output = OutputDirectory::create(place);
    ASSERT_TRUE(bool(output));
    ASSERT_TRUE(bool(output->write("step.h", "three")));
  }
  EXPECT_EQ(contents(place), before);
  {
    auto output = OutputDirectory::create(directory / "b");
    ASSERT_TRUE(bool(output));
  }
  EXPECT_FALSE(fs::exists(directory / "b"));
}

TEST(OutputDirectory, RefusesADirectoryWithFilesOfOthers) {
  TemporaryDirectory directory;
  const std::string place = directory / "mine";
  fs::create_directory(place);
  EXPECT_TRUE(bool(OutputDirectory::check(place))); // It is empty.
  EXPECT_TRUE(bool(OutputDirectory::check(directory / "nowhere")));
  write(place + "/train", "my own program");
  for (const std::string &plan :
       {std::string(), std::string("{}"), std::string("{\"schema\": 1}")}) {
    if (!plan.empty())
      write(place + "/plan.json", plan); // Somebody else's.
    auto output = OutputDirectory::create(place);
    ASSERT_FALSE(bool(output));
    EXPECT_EQ(output.failure().exitCode(), 2);
    EXPECT_EQ(output.failure().message,
              "'" + place + "' holds files that tmc compile didn't write: '" +
                  (plan.empty() ? "train" : "plan.json") + "'");
    EXPECT_FALSE(bool(OutputDirectory::check(place)));
  }
  EXPECT_EQ(contents(place).size(), 2u);
  write(place + "/step.mlir", "mine");
  publish(place, "one", {"train"}, /*force=*/true);
  // Only what has the same name is replaced.
  EXPECT_EQ(read(place + "/train"), "one");
  EXPECT_EQ(read(place + "/step.mlir"), "mine");
}

TEST(OutputDirectory, ReplacesNoDirectory) {
  TemporaryDirectory directory;
  publish(directory / "step", "one", kNames);
  fs::remove(directory / "step/train");
  fs::create_directory(directory / "step/train");
  auto before = contents(directory / "step");
  auto output = OutputDirectory::create(directory / "step");
  ASSERT_TRUE(bool(output));
  for (const std::string &name : kNames)
    ASSERT_TRUE(bool(output->write(name, "two")));
  auto done = output->commit();
  ASSERT_FALSE(bool(done));
  EXPECT_EQ(done.failure().exitCode(), 74);
  { OutputDirectory gone = std::move(*output); }
  EXPECT_EQ(contents(directory / "step"), before);
}

/// What others left under such a name is theirs, and is never published.
TEST(OutputDirectory, PublishesNothingThatWasAbandoned) {
  TemporaryDirectory directory;
  const std::string place = directory / "step";
  publish(place, "one", kNames);
  for (const char *name : {".tmc-1", ".tmc-abcdef"}) {
    fs::create_directory(place + "/" + name);
    write(place + "/" + name + "/weights.safetensors", "another's");
    write(place + "/" + name + "/extra", "another's");
  }
  fs::create_directory(directory / "elsewhere");
  write(directory / "elsewhere/file", "a user's");
  fs::create_directory_symlink(directory / "elsewhere",
                               place + "/.tmc-" + std::to_string(getpid()));
  publish(place, "two", kNames);
  fs::remove(place + "/.tmc-" + std::to_string(getpid())); // No directory.
  EXPECT_EQ(contents(place), step("two"));
  EXPECT_EQ(read(directory / "elsewhere/file"), "a user's");
  // One that runs is left alone.
  auto running = OutputDirectory::create(place);
  ASSERT_TRUE(bool(running));
  ASSERT_TRUE(bool(running->write("step.h", "three")));
  publish(place, "four", kNames);
  EXPECT_EQ(contents(place).size(), step("four").size() + 1);
  ASSERT_TRUE(bool(running->commit()));
  EXPECT_EQ(read(place + "/step.h"), "three");
  // Nobody else looks into it before.
  auto output = OutputDirectory::create(place);
  ASSERT_TRUE(bool(output));
  EXPECT_EQ(
      fs::status(fs::path(output->scratch("x")).parent_path()).permissions(),
      fs::perms::owner_all);
}

TEST(OutputDirectory, HoldsStepsForSeveralNumbersOfRanks) {
  TemporaryDirectory directory;
  const std::string place = directory / "steps";
  publish(place + "/ranks-2", "two", kNames);
  publish(place + "/ranks-16", "sixteen", kNames);
  write(place + "/train", "starts one of them");
  // Of a compilation that was killed.
  fs::create_directories(place + "/ranks-4/.tmc-abcdef");
  EXPECT_TRUE(bool(OutputDirectory::check(place)));
  std::vector<std::string> folders = OutputDirectory::meshFoldersIn(place);
  llvm::sort(folders);
  EXPECT_EQ(folders,
            (std::vector<std::string>{"ranks-16", "ranks-2", "ranks-4"}));
  // A step of its own beside them: they aren't parts of it.
  write(place + "/plan.json", kPlan);
  EXPECT_TRUE(OutputDirectory::meshFoldersIn(place).empty());
  fs::remove(place + "/plan.json");
  // Others' names and files.
  for (const char *name : {"ranks-02", "ranks-", "ranks-two", "ranks-8"}) {
    fs::create_directory(place + "/" + name);
    write(place + "/" + name + "/notes", "a user's");
    EXPECT_FALSE(bool(OutputDirectory::check(place))) << name;
    EXPECT_EQ(OutputDirectory::meshFoldersIn(place).size(), 3u) << name;
    fs::remove_all(place + "/" + name);
  }
  fs::remove_all(place + "/ranks-2");
  fs::remove_all(place + "/ranks-4");
  fs::remove_all(place + "/ranks-16");
  EXPECT_FALSE(bool(OutputDirectory::check(place)));
}

/// A directory whose steps are in folders has no plan of its own.
TEST(OutputDirectory, APlanGoesWithItsStep) {
  TemporaryDirectory directory;
  const std::string place = directory / "step";
  publish(place, "one", kNames);
  auto output = OutputDirectory::create(place);
  ASSERT_TRUE(bool(output));
  ASSERT_TRUE(bool(output->write("train", "two")));
  ASSERT_TRUE(
      bool(output->commit({"weights.safetensors"}, /*makesNoStep=*/true)));
  EXPECT_EQ(contents(place),
            (std::map<std::string, std::string>{{"train", "two"}}));
}

/// A process of its own that publishes `content` and is killed at its rename of
/// this number.
static bool publishKilled(const std::string &place, const std::string &content,
                          int renames) {
  pid_t child = fork();
  if (child == 0) {
    renamesToLive = renames;
    publish(place, content, kNames);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

TEST(OutputDirectory, TheNextOneReplacesWhatAKilledOneLeft) {
  TemporaryDirectory directory;
  for (const char *first : {"", "one"})
    for (int renames = 0;; ++renames) {
      const std::string place =
          directory / ("step" + std::string(first) + std::to_string(renames));
      if (*first)
        publish(place, first, kNames);
      const bool killed = publishKilled(place, "two", renames);
      if (!killed) {
        EXPECT_EQ(renames, int(kNames.size()) + 1);
        EXPECT_EQ(contents(place), step("two"));
        break;
      }
      // plan.json comes last: make doesn't take the target for made.
      EXPECT_EQ(fs::exists(place + "/plan.json"), *first != 0);
      if (renames % 2) { // One that is killed as early as can be.
        EXPECT_TRUE(publishKilled(place, "three", 0));
      }
      publish(place, "four", kNames); // Without force.
      EXPECT_EQ(contents(place), step("four")) << first << renames;
    }
}

TEST(OutputDirectory, KeepsTwoThatPublishApart) {
  TemporaryDirectory directory;
  const std::string place = directory / "step";
  publish(place, "0", kNames);
  std::vector<pid_t> children;
  for (const char *content : {"a", "b"}) {
    children.push_back(fork());
    if (children.back() == 0) {
      for (int i = 0; i < 30; ++i)
        publish(place, content, kNames);
      _exit(::testing::Test::HasFailure());
    }
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  auto found = contents(place);
  EXPECT_EQ(found, step(found["train"]));
}

TEST(OutputDirectory, NamesNoOptionOfATool) {
  TemporaryDirectory directory;
  fs::path old = fs::current_path();
  fs::current_path(directory.path);
  for (const char *name : {"-m", "@list", "a b"}) {
    auto output = OutputDirectory::create(name);
    ASSERT_TRUE(bool(output));
    EXPECT_TRUE(llvm::StringRef(output->staged("x")).starts_with("./"));
  }
  fs::current_path(old);
}

TEST(OutputDirectory, KnowsTheNamesOfSteps) {
  for (const char *name : {"gan_d", "A9", "_"})
    EXPECT_TRUE(isStepName(name)) << name;
  for (const char *name : {"", "9a", "a-b", "a b", "a/b", "\xc3\xa4", "a."})
    EXPECT_FALSE(isStepName(name)) << name;
  EXPECT_EQ(libraryOf(""), "libstep.so");
  EXPECT_EQ(libraryOf("gan_d"), "libgan_d.so");
  TemporaryDirectory directory;
  EXPECT_EQ(stepNameIn(directory / "nowhere"), "");
  std::string plan = kPlan;
  plan.replace(plan.find("libstep"), 7, "libgan_d");
  write(directory / "plan.json", plan);
  EXPECT_EQ(stepNameIn(directory.path.string()), "gan_d");
  // The library of another name goes with its step.
  write(directory / "libgan_d.so", "old");
  publish(directory.path.string(), "one", kNames);
  EXPECT_FALSE(fs::exists(directory / "libgan_d.so"));
}
