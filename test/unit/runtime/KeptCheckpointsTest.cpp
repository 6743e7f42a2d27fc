//===- KeptCheckpointsTest.cpp - several checkpoints of one run -----------===//

#include "TrainerTesting.h"

#include <set>

using namespace tmc::test;
namespace fs = std::filesystem;

namespace {

class Kept : public Trainer {
protected:
  Result run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"--eval", "tokens=" + (*this / "tokens.bin"), "--eval",
                      "labels=" + (*this / "labels.bin"), "--lr", "0.01"});
    return train(arguments);
  }
  std::set<std::string> names(const char *folder) {
    std::set<std::string> found;
    for (const auto &entry : fs::directory_iterator(dir_ / folder))
      found.insert(entry.path().filename());
    return found;
  }
  std::string checkpoint(const std::string &folder) {
    return read(*this / (folder + "/checkpoint.safetensors").c_str());
  }
};

TEST_F(Kept, TheNewestAndTheBest) {
  const Result r =
      run({"--steps", "7", "--save", *this / "run", "--save-every", "2",
           "--keep", "2", "--eval-every", "3", "--log", *this / "log"});
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(names("run"),
            (std::set<std::string>{"best", "step-000006", "step-000007"}));
  // The same run without --keep ends in the same bytes.
  ASSERT_EQ(
      train({"--steps", "7", "--save", *this / "one", "--lr", "0.01"}).code, 0);
  EXPECT_EQ(checkpoint("one"), checkpoint("run/step-000007"));
  // The evaluation says which is the best one.
  const std::vector<std::string> losses = field(*this / "log", "eval_loss"),
                                 best = field(*this / "log", "is_best");
  ASSERT_EQ(losses.size(), 3u);
  double least = 1e9;
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_EQ(best[i] == "true", std::stod(losses[i]) < least);
    least = std::min(least, std::stod(losses[i]));
  }
  EXPECT_NE(checkpoint("run/best").find("\"eval_loss\":\""), std::string::npos);
}

TEST_F(Kept, ResumesFromTheNewest) {
  const std::vector<std::string> kept = {
      "--save", *this / "run", "--save-every", "2", "--keep", "3"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), kept.begin(), kept.end());
    return train(more);
  };
  ASSERT_EQ(with({"--steps", "5"}).code, 0);
  const Result r = with({"--steps", "4", "--resume", *this / "run"});
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_NE(r.out.find("resuming from '" + (*this / "run") + "/step-000005'\n"),
            std::string::npos)
      << r.out;
  EXPECT_EQ(names("run"), (std::set<std::string>{"step-000006", "step-000008",
                                                 "step-000009"}));
  ASSERT_EQ(train({"--steps", "9", "--save", *this / "one"}).code, 0);
  EXPECT_EQ(checkpoint("one"), checkpoint("run/step-000009"));
  // The newest that is complete counts.
  fs::create_directory(dir_ / "run/step-000010");
  const Result again = train({"--steps", "0", "--resume", *this / "run"});
  EXPECT_EQ(again.code, 0) << again.error;
  EXPECT_NE(again.out.find("/step-000009'"), std::string::npos) << again.out;
}

TEST_F(Kept, TheSameCommandBeginsAndGoesOn) {
  const std::vector<std::string> command = {"--resume-if-there",
                                            *this / "run",
                                            "--save",
                                            *this / "run",
                                            "--init",
                                            "random:3",
                                            "--seed",
                                            "5",
                                            "--shuffle",
                                            "9",
                                            "--lr-schedule",
                                            "cosine:total=9",
                                            "--save-every",
                                            "2",
                                            "--log",
                                            *this / "log"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), command.begin(), command.end());
    return train(more);
  };
  const Result first = with({"--steps", "9"});
  ASSERT_EQ(first.code, 0) << first.error;
  EXPECT_NE(first.out.find("no checkpoint in '" + (*this / "run") +
                           "': the run begins\n"),
            std::string::npos)
      << first.out;
  const std::string whole = checkpoint("run");
  // All steps are done.
  Result again = with({"--steps", "9"});
  ASSERT_EQ(again.code, 0) << again.error;
  EXPECT_NE(again.out.find("resuming from '" + (*this / "run") + "'\n"),
            std::string::npos)
      << again.out;
  EXPECT_EQ(again.out.find("step "), std::string::npos) << again.out;
  EXPECT_EQ(checkpoint("run"), whole);
  EXPECT_EQ(field(*this / "log", "step").size(), 9u);
  // An interrupted run ends at the same step, in the same bytes.
  fs::remove_all(dir_ / "run");
  std::vector<std::string> words = command;
  words.insert(words.end(), {"--steps", "9", "--data", *this / "tokens.bin"});
  const pid_t child = start(words);
  while (!fs::exists(dir_ / "run/checkpoint.safetensors"))
    usleep(100);
  kill(child, SIGKILL);
  finish(child);
  again = with({"--steps", "9"});
  ASSERT_EQ(again.code, 0) << again.error;
  EXPECT_EQ(checkpoint("run"), whole);
  // Of several the newest, and the bytes are the same.
  for (const char *steps : {"4", "9"})
    ASSERT_EQ(with({"--steps", steps, "--save", *this / "kept", "--keep", "2",
                    "--resume-if-there", *this / "kept"})
                  .code,
              0);
  EXPECT_EQ(names("kept"),
            (std::set<std::string>{"step-000008", "step-000009"}));
  EXPECT_EQ(checkpoint("kept/step-000009"), whole);
  // What is there counts, whole or not.
  std::ofstream(*this / "run/checkpoint.safetensors") << "damaged";
  EXPECT_EQ(with({"--steps", "9"}).code, 1);
  EXPECT_EQ(checkpoint("run"), "damaged");
  const Result file =
      with({"--steps", "9", "--resume-if-there", *this / "labels.bin"});
  EXPECT_EQ(file.code, 74);
  EXPECT_EQ(file.error.find("error: can't look for a checkpoint in '"), 0u)
      << file.error;
  EXPECT_EQ(with({"--steps", "9", "--resume", *this / "kept"}).code, 2);
}

TEST_F(Kept, AnotherRunsCheckpointsStay) {
  ASSERT_EQ(run({"--steps", "2", "--save", *this / "run", "--keep", "1"}).code,
            0);
  const std::string before = checkpoint("run/step-000002");
  const Result r =
      run({"--steps", "1", "--save", *this / "run", "--keep", "1"});
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(r.error.find("error: '" + (*this / "run") +
                         "' holds the checkpoints of a run, up to "
                         "'step-000002'; go on with --resume"),
            0u)
      << r.error;
  EXPECT_EQ(checkpoint("run/step-000002"), before);
  // Nor does one that resumes from elsewhere remove them.
  ASSERT_EQ(run({"--steps", "5", "--save", *this / "other"}).code, 0);
  auto resume = [&](const char *from) {
    return train({"--steps", "1", "--resume", *this / from, "--save",
                  *this / "run", "--keep", "1"});
  };
  EXPECT_EQ(resume("other").code, 2);
  EXPECT_EQ(checkpoint("run/step-000002"), before);
  fs::create_directory_symlink(dir_ / "run", dir_ / "link");
  for (const char *from : {"run/step-000002", "link"}) {
    const Result again = resume(from);
    EXPECT_EQ(again.code, 0) << again.error;
  }
}

TEST_F(Kept, FilesOfOthersStay) {
  ASSERT_EQ(run({"--steps", "1", "--save", *this / "run", "--keep", "1"}).code,
            0);
  std::ofstream(dir_ / "run/step-000001/notes.txt") << "mine";
  // Not ours by their names, or no folders.
  fs::create_directory(dir_ / "run/step-1");
  fs::create_directory(dir_ / "run/step-00000x");
  std::ofstream(dir_ / "run/step-000000") << "a file";
  fs::create_directory(dir_ / "elsewhere");
  std::ofstream(dir_ / "elsewhere/checkpoint.safetensors") << "kept";
  fs::create_directory_symlink(dir_ / "elsewhere", dir_ / "run/step-000002");
  ASSERT_EQ(run({"--steps", "4", "--resume", *this / "run", "--save",
                 *this / "run", "--keep", "1"})
                .code,
            0);
  EXPECT_EQ(names("run"),
            (std::set<std::string>{"best", "step-000000", "step-000001",
                                   "step-000002", "step-000005", "step-00000x",
                                   "step-1"}));
  EXPECT_EQ(names("run/step-000001"), (std::set<std::string>{"notes.txt"}));
  EXPECT_EQ(read(*this / "elsewhere/checkpoint.safetensors"), "kept");
}

TEST_F(Kept, TheBestLossIsKnownAfterResuming) {
  ASSERT_EQ(run({"--steps", "6", "--save", *this / "run", "--keep", "1",
                 "--log", *this / "log"})
                .code,
            0);
  const std::string best = checkpoint("run/best");
  // Steps at a rate that spoils the model aren't better.
  const Result r =
      train({"--steps", "3", "--resume", *this / "run", "--save", *this / "run",
             "--keep", "1", "--lr", "100", "--eval",
             "tokens=" + (*this / "tokens.bin"), "--eval",
             "labels=" + (*this / "labels.bin"), "--log", *this / "log"});
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(field(*this / "log", "is_best"),
            (std::vector<std::string>{"true", "false"}));
  EXPECT_EQ(checkpoint("run/best"), best);
}

TEST_F(Kept, AUnitOfOneLetterIsSaid) {
  const Result r =
      train({"--steps", "1", "--quiet", "--link-bandwidth", "12G"});
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.error, "note: 12G is read as 12GiB\n");
}

TEST_F(Kept, Usage) {
  EXPECT_EQ(train({"--steps", "1", "--keep", "1"})
                .error.find("error: --keep needs --save"),
            0u);
  EXPECT_EQ(train({"--steps", "1", "--keep", "0", "--save", *this / "a"}).code,
            2);
}

TEST_F(Kept, FlagsFromAFile) {
  std::ofstream(*this / "run.toml")
      << "[compile]\nmodel = 'x.onnx'\n[train]\nsteps = 3\nquiet = true\n"
         "save = '"
      << (*this / "run") << "'\nkeep = 2\nlog = '" << (*this / "log") << "'\n";
  Result r = train({"--config", *this / "run.toml"});
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(names("run"), (std::set<std::string>{"step-000003"}));
  // The command line wins.
  r = train({"--config=" + (*this / "run.toml"), "--steps", "1", "--save",
             *this / "other"});
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(names("other"), (std::set<std::string>{"step-000001"}));
  EXPECT_EQ(field(*this / "log", "step").size(), 1u);
  struct {
    const char *line, *fault;
    int code;
  } const kCases[] = {
      {"stepz = 3", "unknown flag '--stepz'; did you mean '--steps'?", 2},
      {"steps = true", "steps takes a value, not true or false", 2},
      {"quiet = 1", "quiet is true or false", 2},
      {"steps = [1, 2]", "steps takes one value, not an array", 2},
      {"config = 'x'", "a file of flags can't name another one", 2},
      {"steps = ", "line 2: a value is", 1},
      {"[other]", "has a table [other]; there are [compile] and [train]", 1}};
  for (const auto &[line, fault, code] : kCases) {
    std::ofstream(*this / "bad.toml") << "[train]\n" << line << "\n";
    r = train({"--config", *this / "bad.toml", "--epochs", "1"});
    EXPECT_EQ(r.code, code) << line;
    EXPECT_NE(r.error.find(fault), std::string::npos) << r.error;
  }
  EXPECT_EQ(train({"--config", *this / "none.toml"}).code, 1);
}

} // namespace
