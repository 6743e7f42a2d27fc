//===- OffloadTrainerTest.cpp - the trainer of a step with a file ---------===//
//
// What a user meets: the first lines, refusals, kills at any moment.
//
//===----------------------------------------------------------------------===//

#include "QueuesTesting.h"
#include "TrainerTesting.h"

#include <csignal>
#include <filesystem>
#include <random>
#include <sys/file.h>

using namespace tmc::test;
namespace fs = std::filesystem;

namespace {

class OffloadTrainer : public Trainer {
protected:
  OffloadTrainer() {
    program_ = TINY_OFFLOAD_TRAIN;
    fs::create_directory(*this / "swap");
  }
  std::vector<std::string> words(std::vector<std::string> more) {
    more.insert(more.end(),
                {"--nvme", *this / "swap", "--data", *this / "tokens.bin"});
    return more;
  }
  std::string checkpoint(const char *directory) {
    return read(*this / directory + "/checkpoint.safetensors");
  }
};

} // namespace

TEST_F(OffloadTrainer, SaysWhereAndHowItsFileIs) {
  const Result r = train({"--steps", "2", "--nvme", *this / "swap", "--log",
                          *this / "log", "--trace", *this / "trace.json",
                          "--link-bandwidth", "1GB", "--host-threads", "1"});
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_NE(r.out.find("swap file in '" + *this / "swap" + "': 128.0 KiB, "),
            std::string::npos)
      << r.out;
  EXPECT_EQ(field(*this / "log", "host_arena_bytes")[0], "61440");
  EXPECT_EQ(field(*this / "log", "file_arena_bytes")[0], "131072");
  EXPECT_EQ(field(*this / "log", "allocations")[1], "0");
  EXPECT_NE(read(*this / "trace.json").find("\"predicted\""),
            std::string::npos);
  EXPECT_TRUE(fs::is_empty(*this / "swap"));
}

TEST_F(OffloadTrainer, RefusesADirectoryThatItCannotHave) {
  EXPECT_EQ(train({"--steps", "1"}).code, 2);
  Result r = train({"--steps", "1", "--nvme", *this / "none"});
  EXPECT_EQ(r.code, 74);
  EXPECT_NE(r.error.find("No such file"), std::string::npos) << r.error;
  // Another one is at work there.
  const int other = open((*this / "swap").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(other, LOCK_EX | LOCK_NB), 0);
  r = train({"--steps", "1", "--nvme", *this / "swap"});
  close(other);
  EXPECT_EQ(r.code, 74);
  EXPECT_NE(r.error.find("another step uses it"), std::string::npos) << r.error;
  // The limit is on the file's size, and met at start.
  r = train({"--steps", "1", "--nvme", *this / "swap"}, 100'000);
  EXPECT_EQ(r.code, 74);
  EXPECT_NE(r.error.find("can't keep a swap file"), std::string::npos)
      << r.error;
}

TEST_F(OffloadTrainer, KilledAtAnyMomentItResumesToEqualBits) {
  constexpr int kSteps = 12;
  Result r = finish(start(
      words({"--steps", std::to_string(kSteps), "--save", *this / "whole"})));
  ASSERT_EQ(r.code, 0) << r.error;
  std::mt19937 random(5);
  int kills = 0, runs = 0;
  for (int turn = 0; turn < scaled(10); ++turn) {
    fs::remove_all(*this / "parts");
    for (bool finished = false; !finished && ++runs < 2000;) {
      int done = 0;
      const fs::path file = *this / "parts" + "/checkpoint.safetensors";
      if (fs::exists(file)) {
        const std::string text = read(file);
        const size_t at = text.find("\"step\":\"");
        ASSERT_NE(at, std::string::npos);
        done = std::atoi(text.c_str() + at + 8);
      }
      std::vector<std::string> arguments =
          words({"--steps", std::to_string(kSteps - done), "--save-every", "1",
                 "--save", *this / "parts"});
      if (done)
        arguments.insert(arguments.end(), {"--resume", *this / "parts"});
      const pid_t child = start(arguments);
      usleep(random() % 60'000);
      kill(child, SIGKILL);
      r = finish(child);
      finished = r.code == 0;
      kills += r.code == -SIGKILL;
      ASSERT_TRUE(finished || r.code == -SIGKILL) << r.code << " " << r.error;
      ASSERT_TRUE(fs::is_empty(*this / "swap"));
      if (done == kSteps)
        break;
    }
    EXPECT_EQ(checkpoint("parts"), checkpoint("whole"));
  }
  EXPECT_GT(kills, 0);
}
