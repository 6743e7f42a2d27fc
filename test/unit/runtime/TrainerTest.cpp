//===- TrainerTest.cpp - the trainer as a user meets it -------------------===//
//
// Runs the trainer of the tiny program as a process of its own: exit codes,
// messages, logs, resuming, signals, limits.
//
//===----------------------------------------------------------------------===//

#include "TrainerTesting.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tmc::test;
namespace fs = std::filesystem;

TEST_F(Trainer, TrainsAndLogs) {
  const Result r = train({"--steps", "5", "--log", *this / "log", "--lr", "0.1",
                          "--lr-schedule", "linear:warmup=2"});
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(r.error, "");
  // 2000 tokens are 250 samples of 8.
  EXPECT_EQ(
      r.out.find("data: 250 samples in steps of 4: 63 steps an epoch, the "
                 "last with 2 of 4 samples, in order\nstep 1/5  loss "),
      0u)
      << r.out;
  EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n'), 6);
  EXPECT_NE(r.out.find("step 5/5  loss "), std::string::npos);
  EXPECT_EQ(field(*this / "log", "step"),
            (std::vector<std::string>{"1", "2", "3", "4", "5"}));
  EXPECT_EQ(field(*this / "log", "lr")[0], "0.05");
  EXPECT_EQ(field(*this / "log", "lr")[1], "0.1");
  EXPECT_EQ(field(*this / "log", "allocations")[4], "0");
  for (const char *name : {"loss", "grad_norm", "seconds", "tokens_per_second",
                           "arena_bytes", "high_water_bytes"})
    EXPECT_GT(std::stod(field(*this / "log", name)[2]), 0) << name;
}

// The first line of a resumed run counts what its own step touched.
TEST_F(Trainer, AResumedRunCountsItsMemory) {
  ASSERT_EQ(train({"--steps", "2", "--quiet", "--save", *this / "run", "--log",
                   *this / "first"})
                .code,
            0);
  ASSERT_EQ(train({"--steps", "1", "--quiet", "--resume", *this / "run",
                   "--log", *this / "second"})
                .code,
            0);
  EXPECT_EQ(field(*this / "second", "step"), std::vector<std::string>{"3"});
  EXPECT_EQ(field(*this / "second", "high_water_bytes")[0],
            field(*this / "first", "high_water_bytes")[1]);
}

TEST_F(Trainer, ProfilesItsLaunches) {
  Result r = train({"--steps", "3", "--quiet", "--profile"});
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(r.out.find("profile of 2 steps after the first: "), 0u) << r.out;
  for (const char *row : {"\nMatmul ", "\nAdamW ", "\nhead.grad "})
    EXPECT_NE(r.out.find(row), std::string::npos) << row << "\n" << r.out;

  const std::string file = *this / "profile.json";
  r = train({"--steps", "3", "--quiet", "--profile=" + file});
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(r.out, "");
  const std::string json = read(file);
  EXPECT_NE(json.find("\"steps\": 2"), std::string::npos) << json;
  EXPECT_NE(json.find("{\"name\": \"head\", \"location\": \"model.py:7\", "
                      "\"family\": \"Matmul\", \"kernel\": \"head\", "
                      "\"runs\": 2, \"seconds\": "),
            std::string::npos)
      << json;

  // One step is the first one, which doesn't count.
  r = train({"--steps", "1", "--quiet", "--profile"});
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(r.error, "no profile: it leaves out the first step\n");
  r = train({"--steps", "2", "--profile=" + *this / "none/p.json"});
  EXPECT_EQ(r.code, 74);
}

TEST_F(Trainer, ResumesWithoutATrace) {
  ASSERT_EQ(
      train({"--steps", "8", "--log", *this / "whole", "--save", *this / "a"})
          .code,
      0);
  ASSERT_EQ(
      train({"--steps", "3", "--log", *this / "parts", "--save", *this / "b"})
          .code,
      0);
  const Result r = train({"--steps", "5", "--log", *this / "parts", "--resume",
                          *this / "b", "--save", *this / "b"});
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(field(*this / "whole", "loss"), field(*this / "parts", "loss"));
  EXPECT_EQ(field(*this / "parts", "step").back(), "8");
  EXPECT_EQ(read(*this / "a/checkpoint.safetensors"),
            read(*this / "b/checkpoint.safetensors"));
}

TEST_F(Trainer, StartsFromTheWeightsBesideIt) {
  ASSERT_EQ(
      train({"--steps", "3", "--save", *this / "c", "--init", "random:9"}).code,
      0);
  fs::copy(TINY_TRAIN, dir_ / "train");
  const std::string tokens = *this / "tokens.bin";
  auto loss = [&](std::string more) {
    const std::string command = (*this / "train") + " --steps 1 --quiet" +
                                " --data " + tokens + " --log " +
                                (*this / "log") + more;
    EXPECT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(field(*this / "log", "loss").size(), 1u); // a new log each time
    return field(*this / "log", "loss")[0];
  };
  const std::string plain = loss(" --init random:0");
  fs::copy(dir_ / "c/checkpoint.safetensors", dir_ / "weights.safetensors");
  EXPECT_NE(plain, loss(""));
  EXPECT_EQ(plain, loss(" --init random:0"));
  EXPECT_EQ(loss(""), loss(" --weights " + (*this / "weights.safetensors")));
}

TEST_F(Trainer, OnlyCardsHaveAlgorithms) {
  const Result r = train({"--tune-algorithms", *this / "a.json"});
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(r.error, "error: --tune-algorithms is for steps on cuda\n");
  EXPECT_FALSE(fs::exists(dir_ / "a.json"));
  EXPECT_EQ(train({"--tune-algorithms="}).code, 2);
}

TEST_F(Trainer, ExitCodes) {
  EXPECT_EQ(train({"--steps", "1", "--stepz", "2"}).code, 2);
  EXPECT_EQ(train({"--help"}).code, 0);
  EXPECT_EQ(train({"--steps", "1", "--network-bandwidth", "0"})
                .error.find("error: --network-bandwidth takes a size such as"),
            0u);
  EXPECT_EQ(train({"--steps", "1", "--weights", *this / "none"}).code, 1);
  EXPECT_EQ(train({"--steps", "1", "--resume", *this / "none"}).code, 1);
  // No values beside the program, and nothing says where they come from.
  Result nothing = train({"--steps", "1", "--no-start"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.error.find("--init random:SEED"), std::string::npos);
  // A place for checkpoints that can't be is refused before the first step.
  for (const char *place : {"nowhere/c", "tokens.bin", "tokens.bin/c"}) {
    const Result r = train({"--steps", "3", "--save", *this / place});
    EXPECT_EQ(r.code, 74) << place;
    EXPECT_EQ(r.error.find("error: can't save in '"), 0u) << r.error;
    EXPECT_EQ(r.out, "");
  }
  Result r = finish(start({"--steps", "1", "--data", *this / "none"}));
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.error.find("error: can't open '"), 0u) << r.error;
  EXPECT_EQ(r.out, "");
  std::ofstream(*this / "wild.bin", std::ios::binary) << std::string(800, '\1');
  r = finish(start({"--steps", "1", "--data", "tokens=" + (*this / "wild.bin"),
                    "--data", "labels=" + (*this / "labels.bin")}));
  EXPECT_EQ(r.code, 1); // token 257 of 100
  EXPECT_NE(r.error.find("is 257, outside [0, 100)"), std::string::npos);
  EXPECT_EQ(std::count(r.error.begin(), r.error.end(), '\n'), 1);
}

TEST_F(Trainer, AFullDiskLosesNothing) {
  ASSERT_EQ(train({"--steps", "2", "--save", *this / "c"}).code, 0);
  const std::string before = read(*this / "c/checkpoint.safetensors");
  const Result r = train(
      {"--steps", "1", "--resume", *this / "c", "--save", *this / "c"}, 20000);
  EXPECT_EQ(r.code, 74) << r.error;
  EXPECT_EQ(std::count(r.error.begin(), r.error.end(), '\n'), 1);
  EXPECT_EQ(read(*this / "c/checkpoint.safetensors"), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(*this / "c"), {}), 1);
}

TEST_F(Trainer, CtrlCSavesAndLeaves) {
  const pid_t child = start({"--steps", "100000000", "--save", *this / "c",
                             "--data", *this / "tokens.bin"});
  while (read(*this / "out").find("step 3/") == std::string::npos)
    usleep(1000);
  kill(child, SIGINT);
  const Result r = finish(child);
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(r.error.find("interrupted after step "), 0u);
  const Result more = train({"--steps", "1", "--resume", *this / "c"});
  EXPECT_EQ(more.code, 0) << more.error;
  const std::string step = r.error.substr(23, r.error.find(';') - 23);
  EXPECT_NE(more.out.find("step " + std::to_string(std::stoll(step) + 1)),
            std::string::npos)
      << more.out << step;
}

TEST_F(Trainer, AKillLeavesAWholeCheckpoint) {
  ASSERT_EQ(train({"--steps", "1", "--save", *this / "c"}).code, 0);
  for (int round = 0; round < 10; ++round) {
    const pid_t child =
        start({"--steps", "100000000", "--save", *this / "c", "--save-every",
               "1", "--quiet", "--data", *this / "tokens.bin"});
    usleep(useconds_t(5000 + 3000 * round));
    kill(child, SIGKILL);
    EXPECT_EQ(finish(child).code, -SIGKILL);
    const Result r = train({"--steps", "1", "--resume", *this / "c"});
    ASSERT_EQ(r.code, 0) << r.error;
  }
  // The next run that saves tidies up what the killed ones left.
  std::ofstream(dir_ / "c/.checkpoint.safetensors.tmp.99999999") << "half";
  ASSERT_EQ(train({"--steps", "1", "--save", *this / "c"}).code, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(*this / "c"), {}), 1);
}

TEST_F(Trainer, SaysThatNothingMovedAndGoesOn) {
  // Weights of which the first step's gradients are no numbers.
  ASSERT_EQ(train({"--steps", "2", "--save", *this / "c"}).code, 0);
  setenv("TMC_TINY_CLIPS", "1", 1);
  const std::string weights = *this / "c/checkpoint.safetensors";
  std::string bytes = read(weights);
  const size_t body = bytes.size() - 6 * 6400;
  const float most = 3e38f;
  for (size_t i = 0; i < 3200; ++i)
    std::memcpy(bytes.data() + body + i * 4, &most, 4);
  // No checkpoint, whose bytes would be told from those that were written.
  bytes.replace(bytes.find("tmc-checkpoint-2"), 16, "some-others-file");
  std::ofstream(*this / "huge.safetensors", std::ios::binary) << bytes;
  const Result r = train({"--steps", "3", "--weights",
                          *this / "huge.safetensors", "--log", *this / "log"});
  unsetenv("TMC_TINY_CLIPS");
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(r.error.find("warning: step 1: the norm of the gradients isn't "
                         "finite; nothing moved\nwarning: step 2: "),
            0u)
      << r.error;
  EXPECT_NE(r.out.find("not finite, nothing moved"), std::string::npos);
  EXPECT_EQ(field(*this / "log", "skipped_steps").back(), "3");
}

TEST_F(Trainer, KeepsTheLastGoodCheckpoint) {
  ASSERT_EQ(train({"--steps", "2", "--save", *this / "c"}).code, 0);
  const std::string before = read(*this / "c/checkpoint.safetensors");
  const Result r = train({"--steps", "9", "--resume", *this / "c", "--save",
                          *this / "c", "--lr", "1e30"});
  EXPECT_EQ(r.code, 1) << r.error;
  EXPECT_NE(r.error.find(": the loss isn't finite\n"), std::string::npos)
      << r.error;
  EXPECT_NE(r.error.find("aren't finite after step 11; '"), std::string::npos)
      << r.error;
  EXPECT_EQ(read(*this / "c/checkpoint.safetensors"), before);
}

TEST_F(Trainer, ACutDataFileIsOneMessage) {
  const pid_t child =
      start({"--steps", "100000000", "--data", *this / "tokens.bin"});
  while (read(*this / "out").find("step 3/") == std::string::npos)
    usleep(1000);
  fs::resize_file(*this / "tokens.bin", 2);
  const Result r = finish(child);
  EXPECT_EQ(r.code, 74);
  EXPECT_EQ(r.error, "error: '" + (*this / "tokens.bin") +
                         "' was cut while it was read: it had 4000 bytes, and "
                         "has 2\n");
}
