//===- TrainerTesting.h - a trainer as a process of its own -----*- C++ -*-===//
#ifndef TMC_TEST_UNIT_RUNTIME_TRAINERTESTING_H
#define TMC_TEST_UNIT_RUNTIME_TRAINERTESTING_H

#include "test/unit/TemporaryDirectory.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace tmc::test {

struct Result {
  int code = -1; // or minus the signal
  std::string out, error;
};

class Trainer : public ::testing::Test {
protected:
  Trainer() {
    for (const char *name : {"tokens", "labels"}) {
      std::ofstream tokens(dir_ / (name + std::string(".bin")),
                           std::ios::binary);
      for (int i = 0; i < 2000; ++i)
        tokens.put(char(i * i % 97)).put(0);
    }
  }
  std::string operator/(const char *name) const { return dir_ / name; }
  std::string read(const std::string &path) const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Starts the trainer, from random numbers where `arguments` say nothing
  /// else; `fileLimit` is a bound on the size of files, 0: none.
  pid_t start(std::vector<std::string> arguments, rlim_t fileLimit = 0) {
    if (std::none_of(arguments.begin(), arguments.end(), [](const auto &word) {
          return word == "--init" || word == "--resume" ||
                 word == "--weights" || word == "--no-start";
        }))
      arguments.insert(arguments.end(), {"--init", "random:0"});
    std::erase(arguments, "--no-start");
    // Of labels from the tokens' own file the trainer warns.
    auto shared = std::find(arguments.begin(), arguments.end(),
                            std::string(*this / "tokens.bin"));
    if (shared != arguments.end()) {
      *shared = "tokens=" + *shared;
      arguments.insert(arguments.end(),
                       {"--data", "labels=" + (*this / "labels.bin")});
    }
    const pid_t child = fork();
    if (child)
      return child;
    for (auto [path, number] : {std::pair{"out", 1}, {"err", 2}}) {
      const int file =
          open((dir_ / path).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(file, number);
    }
    if (fileLimit) {
      const struct rlimit limit { fileLimit, fileLimit };
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    std::vector<char *> words = {const_cast<char *>(program_)};
    for (std::string &argument : arguments)
      words.push_back(argument.data());
    words.push_back(nullptr);
    execv(program_, words.data());
    _exit(99);
  }
  Result finish(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            read(dir_ / "out"), read(dir_ / "err")};
  }
  Result train(std::vector<std::string> arguments, rlim_t fileLimit = 0) {
    arguments.insert(arguments.end(), {"--data", *this / "tokens.bin"});
    return finish(start(arguments, fileLimit));
  }
  /// The values of one field of a log's steps and evaluations, as text.
  std::vector<std::string> field(const std::string &path, const char *name) {
    std::vector<std::string> values;
    std::stringstream lines(read(path));
    const std::string key = std::string("\"") + name + "\":";
    for (std::string line; std::getline(lines, line);) {
      if (line.find("{\"kind\":\"run\"") == 0 ||
          line.find("{\"kind\":\"save\"") == 0)
        continue;
      const size_t at = line.find(key);
      if (at != std::string::npos)
        values.push_back(line.substr(
            at + key.size(), line.find_first_of(",}", at) - at - key.size()));
    }
    return values;
  }

  TemporaryDirectory dir_;
  const char *program_ = TINY_TRAIN;
};

} // namespace tmc::test

#endif // TMC_TEST_UNIT_RUNTIME_TRAINERTESTING_H
