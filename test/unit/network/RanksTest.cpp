//===- RanksTest.cpp - worlds of processes, by MPI and by Gloo ------------===//
//
// Runs tmc-network-rank (Rank.cpp) under mpirun, and by itself with the
// variables of torchrun. Times are limited and never compared.
//
//===----------------------------------------------------------------------===//

#include "runtime/network/Socket.h"
#include "test/unit/TemporaryDirectory.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace tmc {
namespace {

using Environment = std::map<std::string, std::string>;

/// The limit of silence, in seconds: a rank of a busy machine says something
/// within this time.
constexpr const char *kLimit = "4";
/// No test lasts longer.
constexpr int kMostSeconds = 120;

struct Result {
  int code = -1; // or minus the signal
  std::string text;
};

std::string readAll(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int count(const std::string &text, const std::string &part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++found;
  return found;
}

/// Processes with their output in files.
class Processes {
public:
  ~Processes() {
    for (const pid_t each : running_) {
      (void)kill(each, SIGCONT);
      (void)kill(each, SIGKILL);
      (void)waitpid(each, nullptr, 0);
    }
  }

  void start(std::vector<std::string> words, const Environment &environment) {
    const std::string file =
        directory_ / ("out." + std::to_string(files_.size()));
    files_.push_back(file);
    const pid_t child = fork();
    if (child) {
      running_.push_back(child);
      all_.push_back(child);
      return;
    }
    for (const int number : {1, 2})
      dup2(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), number);
    alarm(kMostSeconds); // exec keeps it
    for (const auto &[name, value] : environment)
      setenv(name.c_str(), value.c_str(), 1);
    std::vector<char *> arguments;
    for (std::string &word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(99);
  }

  /// Waits until the file of a process holds `part`, `times` times.
  bool waitFor(size_t process, const std::string &part, int times = 1) {
    for (int i = 0; i < kMostSeconds * 50; ++i) {
      if (count(readAll(files_[process]), part) >= times)
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  Result finish(size_t process) {
    int status = 0;
    waitpid(all_[process], &status, 0);
    std::erase(running_, all_[process]);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            readAll(files_[process])};
  }

  pid_t operator[](size_t process) const { return all_[process]; }
  std::string text(size_t process) const { return readAll(files_[process]); }
  size_t size() const { return all_.size(); }

private:
  test::TemporaryDirectory directory_;
  std::vector<std::string> files_;
  std::vector<pid_t> running_, all_;
};

int freePort() {
  int port = 0;
  Socket socket;
  EXPECT_TRUE(listenAt("127.0.0.1", port, socket));
  return port;
}

/// Starts all ranks as torchrun would.
void startGloo(Processes &ranks, int count, const std::string &scenario,
               const std::string &seconds = "60") {
  const int port = freePort();
  for (int rank = 0; rank < count; ++rank)
    ranks.start({NETWORK_RANK, scenario, "gloo", NETWORK_FOLDER, seconds},
                {{"RANK", std::to_string(rank)},
                 {"WORLD_SIZE", std::to_string(count)},
                 {"LOCAL_RANK", std::to_string(rank)},
                 {"LOCAL_WORLD_SIZE", std::to_string(count)},
                 {"MASTER_ADDR", "127.0.0.1"},
                 {"MASTER_PORT", std::to_string(port - 1)}});
}

void startMpi(Processes &ranks, int count, const std::string &scenario,
              const std::string &seconds = "60") {
  ranks.start({"mpirun", "-n", std::to_string(count), NETWORK_RANK, scenario,
               "mpi", NETWORK_FOLDER, seconds},
              {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
               {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
               {"OMPI_MCA_rmaps_base_oversubscribe", "1"}});
}

/// "rank 0 of 2: HASH" of each rank, sorted.
std::vector<std::string> hashesIn(const std::string &text) {
  const std::regex line("rank [0-9]+ of [0-9]+: [0-9a-f]{16}");
  std::vector<std::string> lines(
      std::sregex_token_iterator(text.begin(), text.end(), line), {});
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> hashesOfMpi(int count,
                                     const char *scenario = "calls") {
  Processes ranks;
  startMpi(ranks, count, scenario);
  const Result result = ranks.finish(0);
  EXPECT_EQ(result.code, 0) << result.text;
  return hashesIn(result.text);
}

std::vector<std::string> hashesOfGloo(int count,
                                      const char *scenario = "calls") {
  Processes ranks;
  startGloo(ranks, count, scenario);
  std::string text;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const Result result = ranks.finish(rank);
    EXPECT_EQ(result.code, 0) << result.text;
    text += result.text;
  }
  return hashesIn(text);
}

/// The process of a rank, by its own words.
pid_t processOf(const std::string &text, int rank) {
  const std::string start = "rank " + std::to_string(rank) + " is process ";
  const size_t at = text.find(start);
  return at == std::string::npos
             ? 0
             : pid_t(std::stoi(text.substr(at + start.size())));
}

/// The others end with code 74 and a sentence about rank `victim`.
void expectEnds(Processes &ranks, int victim, const std::string &sentence) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (int(rank) == victim)
      continue;
    const Result result = ranks.finish(rank);
    EXPECT_EQ(result.code, 74) << "rank " << rank << ": " << result.text;
    EXPECT_TRUE(std::regex_search(result.text, std::regex(sentence)))
        << "rank " << rank << " says '" << result.text << "' and not '"
        << sentence << "'";
    EXPECT_EQ(count(result.text, "error: "), 1) << result.text;
  }
}

std::string subject(int rank, pid_t process) {
  return "error: rank " + std::to_string(rank) + " \\(host " + hostName() +
         ", process " + std::to_string(process) + "\\) ";
}

#ifdef HAS_Mpi
constexpr bool kHasMpi = true;
#else
constexpr bool kHasMpi = false;
#endif
#ifdef HAS_Gloo
constexpr bool kHasGloo = true;
#else
constexpr bool kHasGloo = false;
#endif

struct Mpi : ::testing::Test {
  void SetUp() override {
    if (!kHasMpi || std::system("command -v mpirun >/dev/null"))
      GTEST_SKIP() << "no MPI (libopenmpi-dev and openmpi-bin)";
  }
};
struct Gloo : ::testing::Test {
  void SetUp() override {
    if (!kHasGloo)
      GTEST_SKIP() << "no Gloo (libgloo-dev)";
  }
};
struct MpiAndGloo : Mpi {
  void SetUp() override {
    Mpi::SetUp();
    if (!IsSkipped() && !kHasGloo)
      GTEST_SKIP() << "no Gloo (libgloo-dev)";
  }
};

TEST_F(MpiAndGloo, TwoRanksGetTheSameBytesInPartsAndWhole) {
  const std::vector<std::string> hashes = hashesOfMpi(2);
  ASSERT_EQ(hashes.size(), 2u);
  EXPECT_EQ(hashes, hashesOfGloo(2));
  EXPECT_EQ(hashes, hashesOfMpi(2, "parts"));
  EXPECT_EQ(hashes, hashesOfGloo(2, "parts"));
}

TEST_F(MpiAndGloo, FourRanksGetTheSameBytes) {
  const std::vector<std::string> hashes = hashesOfMpi(4);
  ASSERT_EQ(hashes.size(), 4u);
  EXPECT_EQ(hashes, hashesOfGloo(4));
}

TEST_F(Mpi, OneRankUnderMpirunAndWithoutIt) {
  const std::vector<std::string> hashes = hashesOfMpi(1);
  ASSERT_EQ(hashes.size(), 1u);
  for (const char *library : {"mpi", ""}) {
    Processes ranks;
    ranks.start({NETWORK_RANK, "calls", library, NETWORK_FOLDER}, {});
    const Result result = ranks.finish(0);
    EXPECT_EQ(result.code, 0) << result.text;
    EXPECT_EQ(hashesIn(result.text), hashes);
  }
}

TEST_F(Mpi, ARankThatIsKilledIsNamed) {
  Processes ranks;
  startMpi(ranks, 3, "steps");
  ASSERT_TRUE(ranks.waitFor(0, "is process", 3)) << ranks.text(0);
  const pid_t victim = processOf(ranks.text(0), 1);
  ASSERT_GT(victim, 1);
  kill(victim, SIGKILL);
  const Result result = ranks.finish(0);
  EXPECT_NE(result.code, 0);
  const std::string sentence = "error: rank 1 (host " + hostName() +
                               ", process " + std::to_string(victim) +
                               ") is gone in step ";
  EXPECT_EQ(count(result.text, sentence), 2) << result.text;
}

TEST_F(Mpi, ARankThatStandsStillIsNamed) {
  Processes ranks;
  startMpi(ranks, 3, "stands", kLimit);
  const Result result = ranks.finish(0);
  EXPECT_EQ(result.code, 74) << result.text;
  EXPECT_TRUE(std::regex_search(
      result.text,
      std::regex("error: rank 2 .* has stood still for [0-9]+ s in step 3, at "
                 "'h.7.mlp.w'; rank 0 waits in 'h.8.attn.w gather'")))
      << result.text;
}

TEST_F(Mpi, AnotherSeedIsNamedBeforeTheFirstStep) {
  Processes ranks;
  startMpi(ranks, 2, "differs");
  const Result result = ranks.finish(0);
  EXPECT_EQ(result.code, 2) << result.text;
  EXPECT_GE(count(result.text, " has another seed than rank 0: '1' and '0'"), 1)
      << result.text;
  EXPECT_EQ(count(result.text, "is process"), 0);
}

TEST_F(Gloo, ARankThatIsKilledIsNamed) {
  for (const int victim : {0, 2}) {
    Processes ranks;
    startGloo(ranks, 4, "steps");
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      ASSERT_TRUE(ranks.waitFor(rank, "is process")) << ranks.text(rank);
    const pid_t process = ranks[size_t(victim)];
    kill(process, SIGKILL);
    expectEnds(ranks, victim,
               subject(victim, process) + "is gone in step [1-9]");
  }
}

TEST_F(Gloo, ARankThatIsStoppedIsNamed) {
  for (const int victim : {0, 2}) {
    Processes ranks;
    startGloo(ranks, 3, "steps", kLimit);
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      ASSERT_TRUE(ranks.waitFor(rank, "is process")) << ranks.text(rank);
    const pid_t process = ranks[size_t(victim)];
    kill(process, SIGSTOP);
    expectEnds(ranks, victim,
               subject(victim, process) +
                   "has been silent for [0-9]+ s in step [1-9][0-9]*, at "
                   "'h\\.");
    kill(process, SIGCONT);
    const Result result = ranks.finish(size_t(victim));
    EXPECT_EQ(result.code, 74) << result.text;
  }
}

TEST_F(Gloo, ARankThatStandsStillIsNamed) {
  Processes ranks;
  startGloo(ranks, 3, "stands", kLimit);
  expectEnds(ranks, -1,
             subject(2, ranks[2]) +
                 "has stood still for [0-9]+ s in step 3, at 'h.7.mlp.w'; rank "
                 "0 waits in 'h.8.attn.w gather'");
}

TEST_F(Gloo, ACycleOfWaitsIsNamed) {
  Processes ranks;
  startGloo(ranks, 2, "waits", kLimit);
  expectEnds(ranks, -1,
             "error: all ranks wait for each other: rank 0 in step 1 in "
             "'h.8.attn.w gather', rank 1 in step 1 in 'h.8.attn.w gather'");
}

TEST_F(Gloo, ARankThatFailsOrLeavesIsNamed) {
  Processes fails;
  startGloo(fails, 3, "fails");
  expectEnds(fails, 2, subject(2, fails[2]) + "ended: the data ends");
  const Result failed = fails.finish(2);
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE(failed.text.find("error: the data ends\n"), std::string::npos)
      << failed.text;
  Processes leaves;
  startGloo(leaves, 3, "leaves");
  expectEnds(leaves, 2, subject(2, leaves[2]) + "is gone in step 3");
  EXPECT_EQ(leaves.finish(2).code, 9);
}

TEST_F(Gloo, VariablesThatContradict) {
  Processes ranks;
  ranks.start({NETWORK_RANK, "calls", "gloo", NETWORK_FOLDER},
              {{"RANK", "1"},
               {"WORLD_SIZE", "2"},
               {"OMPI_COMM_WORLD_RANK", "0"},
               {"OMPI_COMM_WORLD_SIZE", "2"}});
  const Result result = ranks.finish(0);
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.text,
            "error: RANK='1' contradicts OMPI_COMM_WORLD_RANK='0'\n");
}

} // namespace
} // namespace tmc
