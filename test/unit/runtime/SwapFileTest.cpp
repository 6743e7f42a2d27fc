//===- SwapFileTest.cpp - a step's file, and what can befall it ----------===//

#include "runtime/step/SwapFile.h"

#include "test/unit/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tmc;
using namespace tmc::test;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kBytes = 4 << 20;

struct Aligned {
  explicit Aligned(int64_t size)
      : data(static_cast<char *>(std::aligned_alloc(
            size_t(kFileAlign),
            size_t((size + kFileAlign - 1) / kFileAlign * kFileAlign)))),
        bytes(size) {}
  ~Aligned() { std::free(data); }
  Aligned(const Aligned &) = delete;
  Aligned &operator=(const Aligned &) = delete;
  void draw(unsigned seed) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < bytes; ++i)
      data[i] = char(random());
  }
  bool operator==(const Aligned &other) const {
    return bytes == other.bytes &&
           !std::memcmp(data, other.data, size_t(bytes));
  }
  char *data;
  int64_t bytes;
};

/// Each way to the file.
struct Way {
  bool ring, direct, lane;
};
class Ways : public testing::TestWithParam<Way> {
protected:
  TemporaryDirectory directory;
  std::unique_ptr<SwapFile> file;
  FileLane lane_;
  FileLane *lane = nullptr;

  void open(TransferFaults *faults = nullptr) {
    SwapFileOptions options;
    options.useRing = GetParam().ring;
    options.useDirect = GetParam().direct;
    options.faults = faults;
    const Status s = SwapFile::create(directory.path, kBytes, options, file);
    ASSERT_TRUE(s) << s.message();
    if (!GetParam().lane)
      return;
    lane = &lane_;
    ASSERT_TRUE(file->prepare(lane_));
  }
};

/// One fault, at one transfer.
class Planted : public TransferFaults {
public:
  std::function<Verdict(bool, int64_t, int64_t)> plan;
  std::function<void(int64_t, char *, int64_t)> change;
  Verdict before(bool writes, int64_t offset, int64_t bytes) override {
    return plan ? plan(writes, offset, bytes) : Verdict{bytes};
  }
  void after(int64_t offset, char *data, int64_t bytes) override {
    if (change)
      change(offset, data, bytes);
  }
};

void expectWorld(const Status &status, const char *text) {
  EXPECT_EQ(status.code(), Code::World) << status.message();
  EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
}

} // namespace

TEST_P(Ways, WhatIsWrittenIsRead) {
  open();
  // Less than a page, blocks and a rest, several requests at once.
  int64_t offset = 0;
  for (int64_t bytes :
       {1L, 4096L, 5000L, 65536L, 65536L + 4096, 200'001L, 1'700'000L}) {
    Aligned from(bytes), to(bytes);
    from.draw(unsigned(bytes));
    for (int turn = 0; turn < 2; ++turn) {
      Status s = file->write(offset, from.data, bytes, lane);
      ASSERT_TRUE(s) << s.message();
      s = file->read(offset, to.data, bytes, lane);
      ASSERT_TRUE(s) << s.message();
      ASSERT_TRUE(from == to) << bytes;
      from.draw(unsigned(bytes) + 7);
    }
    offset += fileBlocks(bytes) * kFileBlockBytes;
  }
}

TEST_P(Ways, ShortTransfersGoOn) {
  Planted faults;
  std::mt19937 random(3);
  faults.plan = [&](bool, int64_t, int64_t bytes) {
    return TransferFaults::Verdict{
        random() % 3 ? bytes : std::min<int64_t>(bytes, 6000)};
  };
  open(&faults);
  Aligned from(1'500'000), to(1'500'000);
  from.draw(1);
  Status s = file->write(0, from.data, from.bytes, lane);
  ASSERT_TRUE(s) << s.message();
  s = file->read(0, to.data, to.bytes, lane);
  ASSERT_TRUE(s) << s.message();
  EXPECT_TRUE(from == to);
}

TEST_P(Ways, ErrorsHaveNames) {
  Planted faults;
  open(&faults);
  Aligned data(1'000'000);
  data.draw(1);
  const int64_t bad = 8 * kFileBlockBytes;
  faults.plan = [&](bool writes, int64_t offset, int64_t bytes) {
    return TransferFaults::Verdict{
        bytes, writes && offset <= bad && bad < offset + bytes ? ENOSPC : 0};
  };
  expectWorld(file->write(0, data.data, data.bytes, lane),
              "No space left on device");
  faults.plan = nullptr;
  ASSERT_TRUE(file->write(0, data.data, data.bytes, lane));
  faults.plan = [&](bool writes, int64_t, int64_t bytes) {
    return TransferFaults::Verdict{bytes, writes ? 0 : EIO};
  };
  expectWorld(file->read(0, data.data, data.bytes, lane), "Input/output error");
  // It ends within.
  faults.plan = [&](bool, int64_t offset, int64_t bytes) {
    return TransferFaults::Verdict{
        std::max<int64_t>(0, std::min(bytes, 17 * 4096 - offset))};
  };
  expectWorld(file->read(0, data.data, data.bytes, lane), "was truncated");
  // Never more than a few bytes at a time.
  faults.plan = [&](bool, int64_t, int64_t bytes) {
    return TransferFaults::Verdict{std::min<int64_t>(bytes, 100)};
  };
  expectWorld(file->read(0, data.data, data.bytes, lane), "Input/output error");
}

TEST_P(Ways, AFlippedBitIsNamed) {
  Planted faults;
  open(&faults);
  Aligned from(300'000), to(300'000);
  from.draw(1);
  file->setStep(4);
  ASSERT_TRUE(file->write(0, from.data, from.bytes, lane));
  // Each of them, at places all over the transfer.
  for (int64_t place = 0; place < from.bytes; place += 4999) {
    faults.change = [&](int64_t offset, char *data, int64_t bytes) {
      if (offset <= place && place < offset + bytes)
        data[place - offset] ^= char(1 << place % 8);
    };
    expectWorld(file->read(0, to.data, to.bytes, lane),
                "are damaged: they aren't what step 4 wrote there");
  }
  faults.change = nullptr;
  EXPECT_TRUE(file->read(0, to.data, to.bytes, lane));
}

TEST_P(Ways, ALostWriteIsNamed) {
  Planted faults;
  open(&faults);
  Aligned data(300'000);
  data.draw(1);
  file->setStep(4);
  ASSERT_TRUE(file->write(0, data.data, data.bytes, lane));
  data.draw(2);
  file->setStep(5);
  faults.plan = [&](bool, int64_t offset, int64_t bytes) {
    return TransferFaults::Verdict{bytes, 0, offset == 0};
  };
  ASSERT_TRUE(file->write(0, data.data, data.bytes, lane));
  faults.plan = nullptr;
  expectWorld(file->read(0, data.data, data.bytes, lane),
              "are stale: they are of step 4, and what step 5 wrote");
}

/// Somebody shortens the file, which has no name, under the process.
TEST_P(Ways, AFileThatIsTruncatedIsNamed) {
  open();
  Aligned data(1'000'000);
  data.draw(1);
  ASSERT_TRUE(file->write(0, data.data, data.bytes, lane));
  bool found = false;
  for (const fs::directory_entry &entry :
       fs::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    const std::string target = fs::read_symlink(entry, none);
    if (target.compare(0, directory.path.string().size() + 1,
                       directory.path.string() + "/"))
      continue;
    found = true;
    ASSERT_EQ(truncate(entry.path().c_str(), 70'000), 0);
  }
  ASSERT_TRUE(found);
  expectWorld(file->read(0, data.data, data.bytes, lane), "was truncated");
}

INSTANTIATE_TEST_SUITE_P(
    SwapFile, Ways,
    testing::Values(Way{true, true, true}, Way{true, false, true},
                    Way{false, true, true}, Way{false, false, true},
                    Way{true, true, false}, Way{false, false, false}));

TEST(SwapFile, MemoryThatIsNotAlignedWillDoWithoutALane) {
  TemporaryDirectory directory;
  std::unique_ptr<SwapFile> file;
  ASSERT_TRUE(SwapFile::create(directory.path, kBytes, {}, file));
  Aligned from(2'500'000), to(2'500'000);
  from.draw(1);
  ASSERT_TRUE(file->write(0, from.data + 3, from.bytes - 3));
  ASSERT_TRUE(file->read(0, to.data + 3, to.bytes - 3));
  std::memcpy(to.data, from.data, 3);
  EXPECT_TRUE(from == to);
}

// Tensors that are rows of a larger one share blocks: each is written by
// itself, in any order and by several threads, and then all are read at once,
// by an engine, and each alone.
TEST(SwapFile, PartsOfABlockAreWrittenApart) {
  TemporaryDirectory directory;
  std::unique_ptr<SwapFile> file;
  ASSERT_TRUE(SwapFile::create(directory.path, kBytes, {}, file));
  constexpr int64_t kParts[] = {3072,    100, kFileBlockBytes,
                                200'001, 1,   3 * kFileBlockBytes - 7};
  const int64_t all = std::accumulate(std::begin(kParts), std::end(kParts), 0L);
  Aligned from(all), to(all);
  from.draw(1);
  FileLane lane;
  ASSERT_TRUE(file->prepare(lane));
  for (bool backwards : {false, true}) {
    std::vector<std::thread> threads;
    std::atomic<int> failed = 0;
    int64_t offset = backwards ? all : 0;
    for (size_t i = 0; i < std::size(kParts); ++i) {
      const int64_t bytes = kParts[backwards ? std::size(kParts) - 1 - i : i];
      offset -= backwards ? bytes : 0;
      auto write = [&, offset, bytes] {
        if (!file->writePart(offset, from.data + offset, bytes))
          ++failed;
      };
      if (backwards)
        threads.emplace_back(write);
      else
        write();
      offset += backwards ? 0 : bytes;
    }
    for (std::thread &thread : threads)
      thread.join();
    ASSERT_EQ(failed, 0);
    Status s = file->read(0, to.data, all, &lane);
    ASSERT_TRUE(s) << s.message();
    EXPECT_TRUE(from == to);
    offset = 0;
    for (int64_t bytes : kParts) {
      std::vector<char> own(size_t(bytes), 0);
      s = file->readPart(offset, own.data(), bytes);
      ASSERT_TRUE(s) << s.message();
      EXPECT_EQ(std::memcmp(own.data(), from.data + offset, size_t(bytes)), 0);
      offset += bytes;
    }
    from.draw(2);
    file->forget(0, all);
  }
  std::vector<char> own(100);
  EXPECT_EQ(file->readPart(3072, own.data(), 100).code(), Code::Defect);
  EXPECT_EQ(file->writePart(kBytes, own.data(), 100).code(), Code::Defect);
}

TEST(SwapFile, PlansThatAreWrongAreDefects) {
  TemporaryDirectory directory;
  std::unique_ptr<SwapFile> file;
  ASSERT_TRUE(SwapFile::create(directory.path, kBytes, {}, file));
  Aligned data(kBytes);
  FileLane lane;
  ASSERT_TRUE(file->prepare(lane));
  const auto defect = [](const Status &s, const char *text) {
    EXPECT_EQ(s.code(), Code::Defect);
    EXPECT_NE(s.message().find(text), std::string::npos) << s.message();
  };
  defect(file->write(0, data.data, kBytes + 1), "is outside");
  defect(file->write(-kFileBlockBytes, data.data, 1), "is outside");
  defect(file->write(4096, data.data, 4096), "doesn't begin at a block");
  defect(file->write(0, data.data + 1, 4096, &lane), "isn't aligned");
  defect(file->read(0, data.data, 4096), "nothing is");
  ASSERT_TRUE(file->write(0, data.data, 5000));
  defect(file->read(0, data.data, 4096), "where 5000 bytes are");
  file->forget(0, 5000);
  defect(file->read(0, data.data, 5000), "nothing is");
}

TEST(SwapFile, TheDirectoryIsOneStepsAlone) {
  TemporaryDirectory directory;
  std::unique_ptr<SwapFile> first, second;
  ASSERT_TRUE(SwapFile::create(directory.path, kBytes, {}, first));
  expectWorld(SwapFile::create(directory.path, kBytes, {}, second),
              "another step uses it");
  first.reset();
  EXPECT_TRUE(SwapFile::create(directory.path, kBytes, {}, second));
  expectWorld(SwapFile::create(directory / "none", kBytes, {}, first),
              "No such file or directory");
  std::ofstream(directory / "file") << "x";
  expectWorld(SwapFile::create(directory / "file", kBytes, {}, first),
              "Not a directory");
  expectWorld(
      SwapFile::create(directory.path / "none", int64_t(1) << 60, {}, first),
      "can't keep a swap file");
}

TEST(SwapFile, MoreThanThereIsRoomForIsSaidAtStart) {
  TemporaryDirectory directory;
  std::unique_ptr<SwapFile> file;
  const Status s = SwapFile::create(directory.path, int64_t(1) << 50, {}, file);
  EXPECT_EQ(s.code(), Code::World);
  EXPECT_NE(s.message().find("can't keep a swap file"), std::string::npos);
}

TEST(SwapFile, LeavesNothingBehindAndNothingIsVisible) {
  TemporaryDirectory directory;
  std::unique_ptr<SwapFile> file;
  std::ofstream(directory / "mine") << "x";
  ASSERT_TRUE(SwapFile::create(directory.path, kBytes, {}, file));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path), {}), 1);
  file.reset();
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path), {}), 1);
}

/// A process that is killed leaves nothing, and the directory free.
TEST(SwapFile, AKilledProcessLeavesNothing) {
  TemporaryDirectory directory;
  std::mt19937 random(7);
  for (int turn = 0; turn < 20; ++turn) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::unique_ptr<SwapFile> file;
      std::vector<char> data(size_t(1) << 20, char(turn));
      if (!SwapFile::create(directory.path, kBytes, {}, file))
        _exit(1);
      while (true)
        if (!file->write(0, data.data(), int64_t(data.size())))
          _exit(2);
    }
    usleep(random() % 5000);
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    ASSERT_EQ(std::distance(fs::directory_iterator(directory.path), {}), 0);
  }
  std::unique_ptr<SwapFile> file;
  EXPECT_TRUE(SwapFile::create(directory.path, kBytes, {}, file));
}

TEST(SwapFile, EveryBitCountsInAChecksum) {
  std::mt19937 random(1);
  for (int64_t bytes : {1, 7, 8, 63, 64, 65, 200, 4096}) {
    std::vector<unsigned char> data(static_cast<size_t>(bytes));
    for (unsigned char &byte : data)
      byte = static_cast<unsigned char>(random());
    const uint64_t sum = checksumOf(data.data(), bytes);
    for (int64_t bit = 0; bit < bytes * 8; ++bit) {
      data[size_t(bit / 8)] ^= static_cast<unsigned char>(1 << bit % 8);
      EXPECT_NE(checksumOf(data.data(), bytes), sum) << bit;
      data[size_t(bit / 8)] ^= static_cast<unsigned char>(1 << bit % 8);
    }
    EXPECT_EQ(checksumOf(data.data(), bytes), sum);
    if (bytes > 1) {
      EXPECT_NE(checksumOf(data.data(), bytes - 1), sum);
    }
  }
}
