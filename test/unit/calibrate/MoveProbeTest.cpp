// MoveProbeTest.cpp - how much the probe of transfers moves, and its text.

#include "driver/calibrate/MoveProbe.h"

#include <gtest/gtest.h>

#include <string>

using namespace tmc;

namespace {
constexpr int64_t kMiB = 1 << 20, kGiB = 1 << 30;
} // namespace

TEST(MoveWork, FitsMemoryAndRoom) {
  EXPECT_EQ(workThatFits(-1, -1, "d")->largeBytes, 16 * kMiB);
  EXPECT_EQ(workThatFits(64 * kGiB, 64 * kGiB, "d")->largeBytes, 16 * kMiB);
  // 52 pieces of 4 MiB and 77 MiB are 285 MiB, a quarter of 1,140.
  EXPECT_EQ(workThatFits(1141 * kMiB, -1, "d")->largeBytes, 4 * kMiB);
  EXPECT_EQ(workThatFits(1130 * kMiB, -1, "d")->largeBytes, 2 * kMiB);
  // 16 pieces, half of the room.
  EXPECT_EQ(workThatFits(-1, 512 * kMiB, "d")->largeBytes, 16 * kMiB);
  EXPECT_EQ(workThatFits(-1, 511 * kMiB, "d")->largeBytes, 8 * kMiB);
  // The least takes all, if need be.
  EXPECT_EQ(workThatFits(-1, 16 * kMiB, "d")->largeBytes, kMiB);
}

TEST(MoveWork, SaysWhatThereIsTooLittleOf) {
  auto room = workThatFits(-1, 15 * kMiB, "scratch");
  ASSERT_FALSE(room);
  EXPECT_EQ(room.failure().exitCode(), 74);
  EXPECT_EQ(room.failure().message,
            "'scratch' has 15.0 MiB free; a file's rates are measured with "
            "16.0 MiB");
  ASSERT_EQ(room.failure().notes.size(), 1u);
  EXPECT_EQ(room.failure().notes[0], "--nvme=DIR measures a file elsewhere");
  auto memory = workThatFits(100 * kMiB, -1, "scratch");
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.failure().message,
            "the machine has 100.0 MiB of memory free; transfers are measured "
            "with 129.0 MiB");
}

/// Places don't overlap, and the last of each space is inside of it.
TEST(MoveWork, PlacesFollowEachOther) {
  MoveWork work;
  work.largeBytes = kMiB;
  const int64_t all = MoveWork::kBuffers * kMiB;
  auto at = [&](const char *name, SpaceKind space) {
    return work.piecesAt(findEngine(name)->kind, space);
  };
  const PerSpace<int64_t> bytes = work.arenaBytes();
  const SpaceKind device = SpaceKind::Device, host = SpaceKind::Host,
                  file = SpaceKind::File;
  EXPECT_EQ(at("h2d", device) - at("d2h", device), all);
  EXPECT_EQ(work.factors() - at("h2d", device), all);
  EXPECT_EQ(bytes[device] - work.scratch(), MoveWork::kScratchBytes);
  EXPECT_EQ(at("h2d", host) - at("d2h", host), all);
  EXPECT_EQ(at("file-read", host) - at("h2d", host), all);
  EXPECT_EQ(at("file-write", host) - at("file-read", host), all);
  EXPECT_EQ(work.update() - at("file-write", host), all);
  EXPECT_EQ(work.hostScratch() - work.update(), 4 * kMiB);
  EXPECT_EQ(at("file-read", file), 0);
  EXPECT_EQ(bytes[file] - at("file-write", file), all);
  // A file's transfers need aligned addresses and offsets.
  EXPECT_EQ(at("file-read", host) % infoOf(host).alignment, 0);
  EXPECT_EQ(at("file-write", host) % infoOf(host).alignment, 0);
  EXPECT_EQ(at("file-write", file) % infoOf(file).alignment, 0);
}

/// Each engine has about a second to do.
TEST(MoveWork, BalancesByRates) {
  const EngineRates rates = {
      {engine("d2h"), {0, 5e9}},        {engine("h2d"), {0, 10e9}},
      {engine("file-write"), {0, 1e9}}, {engine("file-read"), {1e-3, 1e9}},
      {engine("host"), {0, 10e9}},      {engine("compute"), {0, 1e9}}};
  MoveWork work = balancedWork(MoveWork(), rates);
  EXPECT_EQ(work.largeBytes, 16 * kMiB);
  // Three large ones and a small one are 12.6 MB each.
  EXPECT_EQ(work.pieces[engine("d2h")], 397);
  EXPECT_EQ(work.pieces[engine("h2d")], 794);
  EXPECT_EQ(work.pieces[engine("file-write")], 79);
  EXPECT_EQ(work.pieces[engine("file-read")], 74);
  EXPECT_EQ(work.pieces[engine("host")], 85);
  EXPECT_EQ(work.pieces[engine("compute")], 79);
}

/// A link that would fill its queue makes all of it shorter.
TEST(MoveWork, QueuesHoldAllPieces) {
  MoveWork work = balancedWork(MoveWork(), {{engine("d2h"), {0, 100e9}},
                                            {engine("file-write"), {0, 1e9}}});
  EXPECT_EQ(work.pieces[engine("d2h")], 1000);
  EXPECT_EQ(work.pieces[engine("file-write")], 12);
}

/// The fewest pieces take at most a second of a slow disk.
TEST(MoveWork, SlowDisksGetSmallPieces) {
  const EngineRates rates = {{engine("d2h"), {0, 5e9}},
                             {engine("file-write"), {0, 50e6}}};
  MoveWork work = balancedWork(MoveWork(), rates);
  EXPECT_EQ(work.largeBytes, 4 * kMiB);
  EXPECT_EQ(work.pieces[engine("file-write")], 12);
}

/// Every engine has work, on either backend, and no name is left open.
TEST(MoveProbe, GivesEachEngineWork) {
  for (const char *name : {"cpu", "cuda:t4", "cuda:h200"}) {
    const std::string text =
        moveProbeText(*findTarget(name), firstWork(MoveWork()));
    for (const char *call :
         {", engine(\"d2h\"), ", ", engine(\"h2d\"), ",
          ", engine(\"file-read\"), ", ", engine(\"file-write\"), ",
          "q.beside(", "k.product.run("})
      EXPECT_NE(text.find(call), std::string::npos) << call;
    EXPECT_NE(text.find(findTarget(name)->compiledFor()), std::string::npos);
    EXPECT_EQ(text.find('$'), std::string::npos);
  }
}
