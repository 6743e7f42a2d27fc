// RankMessagesTest.cpp - sends, receives and pieces of single ranks, in lists
// made by hand: programs don't have them yet.

#include "compiler/analysis/RankCheck.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tmc;

namespace {

/// Lists of stages that send values to each other, made by hand.
struct Stages {
  RankWorld world;

  explicit Stages(int stages) {
    world.mesh.pipeline = stages;
    world.programs.resize(size_t(stages));
  }

  /// A message with its own buffer, record, wait and done.
  void add(int stage, RankCall::Kind kind, int peer, const std::string &name,
           int64_t bytes = 64) {
    RankProgram &program = world.programs[size_t(stage)];
    const auto number = int32_t(program.buffers.size());
    program.buffers.push_back({.name = name,
                               .begin = number * 4096,
                               .bytes = bytes,
                               .isKept = kind == RankCall::Kind::Send});
    RankEntry entry;
    entry.engine = EngineKind::Network;
    entry.name = name;
    RankBytes all{SpaceKind::Device, number * 4096, number * 4096 + bytes,
                  number};
    (kind == RankCall::Kind::Send ? entry.reads : entry.writes) = {all};
    RankCall call;
    call.kind = kind;
    call.axis = Axis::Pipeline;
    call.ranks = world.mesh.pipeline;
    call.bytes = bytes;
    call.peer = peer;
    entry.call = call;
    program.entries.push_back(entry);
    auto mark = [&](RankEntry::Kind kind, EngineKind engine) {
      RankEntry mark;
      mark.kind = kind;
      mark.engine = engine;
      mark.event = number;
      program.entries.push_back(mark);
    };
    mark(RankEntry::Kind::Record, EngineKind::Network);
    mark(RankEntry::Kind::Wait, EngineKind::Compute);
    mark(RankEntry::Kind::Done, EngineKind::Compute);
  }
  void send(int from, int to, const std::string &name, int64_t bytes = 64) {
    add(from, RankCall::Kind::Send, to, name, bytes);
  }
  void receive(int to, int from, const std::string &name, int64_t bytes = 64) {
    add(to, RankCall::Kind::Receive, from, name, bytes);
  }

  RankCall &call(int stage, size_t number) {
    for (RankEntry &entry : world.programs[size_t(stage)].entries)
      if (entry.call && number-- == 0)
        return *entry.call;
    ADD_FAILURE() << "no such call";
    return *world.programs[0].entries[0].call;
  }
  RankFault verdict() const {
    std::optional<RankFault> fault = checkRanks(world);
    RankFault right;
    right.message = "right";
    return fault.value_or(right);
  }
};

/// Two micro-batches through three stages and back.
Stages pipeline() {
  Stages s(3);
  for (const char *m : {"0", "1"})
    for (int stage = 0; stage < 2; ++stage) {
      s.send(stage, stage + 1, "x" + std::to_string(stage) + m);
      s.receive(stage + 1, stage, "x" + std::to_string(stage) + m);
    }
  for (const char *m : {"0", "1"})
    for (int stage = 2; stage > 0; --stage) {
      s.send(stage, stage - 1, "g" + std::to_string(stage) + m);
      s.receive(stage - 1, stage, "g" + std::to_string(stage) + m);
    }
  return s;
}

TEST(RankMessages, OfAPipelineAreRight) {
  Stages s = pipeline();
  EXPECT_EQ(s.verdict().message, "right");
  s.world.mesh.data = 8; // Eight pipelines.
  s.world.mesh.tensor = 4;
  EXPECT_EQ(s.verdict().message, "right");
}

TEST(RankMessages, ThatDifferAreNamed) {
  Stages s = pipeline();
  s.call(1, 0).bytes = 32;
  EXPECT_EQ(s.verdict().message,
            "rank 1's call 1, a receive of 'x00' over pp, has pieces of 32 "
            "bytes, where rank 0's have 64");
  s = pipeline();
  s.call(1, 0).type = "f16";
  EXPECT_EQ(s.verdict().kind, RankFaultKind::Type);
  s = pipeline();
  s.world.mesh.data = 2; // The ranks of stage 1 are 2 and 3.
  s.call(1, 0).bytes = 32;
  EXPECT_EQ(s.verdict().message,
            "rank 2's call 1, a receive of 'x00' over pp, has pieces of 32 "
            "bytes, where rank 0's have 64");
}

TEST(RankMessages, ToAWrongPeerAreNamed) {
  Stages s = pipeline();
  s.call(0, 0).peer = 2;
  EXPECT_EQ(s.verdict().kind, RankFaultKind::Peer);
  EXPECT_EQ(s.verdict().message,
            "rank 1's call 1, a receive of 'x00' over pp, goes from rank 0, "
            "where rank 0's call 1, a send of 'x00' over pp, goes to rank 2");
  for (int peer : {-1, 0, 3}) {
    s = pipeline();
    s.call(0, 0).peer = peer;
    EXPECT_EQ(s.verdict().message,
              "rank 0's call 1, a send of 'x00' over pp, names place " +
                  std::to_string(peer) +
                  ", which isn't another rank of its group");
  }
  s = pipeline();
  s.call(2, 0).peer = 0;
  EXPECT_EQ(s.verdict().kind, RankFaultKind::Peer);
}

/// The entries of a call: itself, its record, its wait and its done.
constexpr size_t kEntries = 4;

TEST(RankMessages, PlantedFaultsAreNamed) {
  int64_t planted = 0;
  auto expect = [&](const Stages &s, RankFaultKind kind, const char *what) {
    ++planted;
    const RankFault fault = s.verdict();
    EXPECT_STREQ(nameOf(fault.kind), nameOf(kind))
        << what << ": " << fault.message;
    EXPECT_NE(fault.message, "right") << what;
  };
  const Stages right = pipeline();
  for (int stage : {0, 1, 2})
    for (size_t c = 0; c < right.world.programs[size_t(stage)].buffers.size();
         ++c) {
      auto plant = [&](RankFaultKind kind, const char *what, auto mutate) {
        Stages s = pipeline();
        std::vector<RankEntry> &list = s.world.programs[size_t(stage)].entries;
        mutate(s.call(stage, c), list, list.begin() + long(c * kEntries));
        expect(s, kind, what);
      };
      plant(RankFaultKind::Bytes, "other bytes",
            [](RankCall &call, auto &, auto) { call.bytes *= 2; });
      plant(RankFaultKind::Type, "another type",
            [](RankCall &call, auto &, auto) { call.type = "bf16"; });
      plant(RankFaultKind::Group, "another group",
            [](RankCall &call, auto &, auto) { call.ranks = 2; });
      plant(RankFaultKind::Peer, "no peer",
            [&](RankCall &call, auto &, auto) { call.peer = stage; });
      plant(RankFaultKind::Peer, "a wrong peer",
            [&](RankCall &call, auto &, auto) {
              call.peer = 3 - stage - call.peer;
            });
      plant(RankFaultKind::Unmatched, "a missing call",
            [](RankCall &, auto &list, auto at) {
              list.erase(at, at + kEntries);
            });
      plant(RankFaultKind::Unmatched, "an extra call",
            [](RankCall &, auto &list, auto at) { list.insert(at, *at); });
      plant(RankFaultKind::Wait, "a dropped wait",
            [](RankCall &, auto &list, auto at) { list.erase(at + 2); });
      plant(RankFaultKind::Wait, "a dropped done",
            [](RankCall &, auto &list, auto at) { list.erase(at + 3); });
      plant(RankFaultKind::Piece, "bytes beyond its buffer",
            [](RankCall &, auto &, auto at) {
              for (std::vector<RankBytes> *all : {&at->reads, &at->writes})
                for (RankBytes &bytes : *all)
                  bytes.begin += 32, bytes.end += 32;
            });
    }
  std::printf("  %d faults planted\n", int(planted));
  EXPECT_GE(planted, 100);
}

TEST(RankMessages, WithoutPartnersAreNamed) {
  Stages s(2);
  s.send(0, 1, "x");
  s.receive(1, 0, "x");
  s.send(0, 1, "y");
  EXPECT_EQ(s.verdict().message,
            "rank 0's call 2, a send of 'y' over pp, has no partner: it goes "
            "to rank 1, which doesn't receive it");
  s.receive(1, 0, "y");
  EXPECT_EQ(s.verdict().message, "right");
  s.receive(1, 0, "z");
  EXPECT_EQ(s.verdict().message,
            "rank 1's call 3, a receive of 'z' over pp, has no partner: it "
            "goes from rank 0, which doesn't send it");
}

TEST(RankMessages, InAnotherOrderAreNamed) {
  Stages s(2);
  s.send(0, 1, "x");
  s.send(0, 1, "y");
  s.receive(1, 0, "y");
  s.receive(1, 0, "x");
  EXPECT_EQ(s.verdict().message,
            "rank 1's call 1, a receive of 'y' over pp, stands where rank 0 "
            "makes a send of 'x' over pp: the two ranks have another order");
}

TEST(RankMessages, ThatWaitForEachOtherAreNamed) {
  Stages s(2); // Both send first.
  s.send(0, 1, "x");
  s.receive(0, 1, "g");
  s.send(1, 0, "g");
  s.receive(1, 0, "x");
  EXPECT_EQ(s.verdict().message,
            "rank 0's call 1, a send of 'x' over pp, waits for rank 1's call "
            "1, a send of 'g' over pp, which waits for rank 0");
  Stages t(3); // Each receives first, in a ring.
  for (int stage : {0, 1, 2}) {
    t.receive(stage, (stage + 2) % 3, "x" + std::to_string((stage + 2) % 3));
    t.send(stage, (stage + 1) % 3, "x" + std::to_string(stage));
  }
  EXPECT_EQ(t.verdict().kind, RankFaultKind::Cycle);
}

/// One forward and one backward part in turn (1F1B): the last stage must
/// receive its next input before it sends a gradient.
TEST(RankMessages, OfAPipelineInTurnNeedAnOrder) {
  for (bool receivesFirst : {false, true}) {
    Stages s(2);
    s.send(0, 1, "x0");
    for (const char *m : {"1", "2"}) {
      s.send(0, 1, "x" + std::string(m));
      s.receive(0, 1, "g" + std::to_string(m[0] - '1'));
    }
    s.receive(0, 1, "g2");
    s.receive(1, 0, "x0");
    for (int m : {0, 1, 2}) {
      const std::string sent = "g" + std::to_string(m);
      const std::string next = "x" + std::to_string(m + 1);
      if (receivesFirst && m < 2)
        s.receive(1, 0, next);
      s.send(1, 0, sent);
      if (!receivesFirst && m < 2)
        s.receive(1, 0, next);
    }
    EXPECT_EQ(s.verdict().message,
              receivesFirst
                  ? "right"
                  : "rank 0's call 2, a send of 'x1' over pp, waits for rank "
                    "1's call 2, a send of 'g0' over pp, which waits for rank "
                    "0");
  }
}

TEST(RankMessages, AreWaitedFor) {
  Stages s(2);
  s.send(0, 1, "x");
  s.receive(1, 0, "x");
  RankEntry read;
  read.name = "f";
  read.reads = s.world.programs[1].entries[0].writes;
  std::vector<RankEntry> &list = s.world.programs[1].entries;
  list.push_back(read);
  EXPECT_EQ(s.verdict().message, "right");
  std::rotate(list.begin() + 2, list.begin() + 4, list.end());
  EXPECT_EQ(s.verdict().message,
            "each rank of stage 1 reads 'x' on compute while a receive of 'x' "
            "over pp may still write it");
}

TEST(RankMessages, PiecesBeginAtTheirPlaces) {
  RankWorld world;
  world.mesh.data = 4;
  for (int rank = 0; rank < 4; ++rank) {
    RankProgram program;
    program.buffers = {
        {.name = "w", .begin = 0, .bytes = 65536, .isKept = true},
        {.name = "s", .begin = 65536, .bytes = 16384}};
    RankEntry cut;
    cut.name = "w";
    cut.reads = {{SpaceKind::Device, 0, 65536, 0}};
    cut.writes = {{SpaceKind::Device, 65536, 81920, 1}};
    RankCall call;
    call.kind = RankCall::Kind::Cut;
    call.ranks = 4;
    call.bytes = 16384;
    call.total = 65536;
    call.offset = 16384 * rank;
    cut.call = call;
    program.entries = {cut};
    program.buffers[0].isKept = false;
    RankEntry made;
    made.name = "w";
    made.writes = cut.reads;
    program.entries.insert(program.entries.begin(), made);
    world.programs.push_back(program);
    world.programOf.push_back(rank);
  }
  EXPECT_FALSE(checkRanks(world));
  world.programs[2].entries[1].call->offset = 16384;
  std::optional<RankFault> fault = checkRanks(world);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->message,
            "rank 2 begins its piece in a cut of 'w' over dp at byte 16384 of "
            "the whole, where its place begins at 32768");
}

} // namespace
