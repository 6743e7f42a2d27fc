//===- ControlTest.cpp - ranks as threads, and strangers ------------------===//

#include "runtime/network/PipeSignal.h"
#include "runtime/network/World.h"

#include "gtest/gtest.h"

#include <cerrno>
#include <chrono>
#include <functional>
#include <future>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace tmc {
namespace {

/// A port that was free a moment ago.
int freePort() {
  int port = 0;
  Socket socket;
  EXPECT_TRUE(listenAt("127.0.0.1", port, socket));
  return port;
}

ControlSettings settingsOf(int rank, int ranks, int port) {
  ControlSettings settings;
  settings.assembly.place.rank = rank;
  settings.assembly.place.ranks = ranks;
  settings.assembly.place.host = "127.0.0.1";
  settings.assembly.place.port = port;
  settings.assembly.startSeconds = 20;
  settings.assembly.facts = {{"step", "1f"}, {"seed", "7"}};
  settings.onFault = [](const Status &) {};
  return settings;
}

/// Runs `run` as each rank, in threads. A rank that waits forever ends the
/// tests.
void asRanks(int ranks, const std::function<void(int rank)> &run) {
  constexpr unsigned kMostSeconds = 60;
  alarm(kMostSeconds);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back(run, rank);
  for (std::thread &each : threads)
    each.join();
  alarm(0);
}

/// Connects to a rank 0 that will listen, sends bytes, and returns the answer
/// up to the end of the connection.
std::string stranger(int port, const std::string &bytes, bool closes = false) {
  Socket socket;
  const Status done = connectTo({"127.0.0.1"}, port, 10, socket);
  EXPECT_TRUE(done) << done.message();
  EXPECT_TRUE(sendAll(socket, bytes, 5));
  if (closes)
    return "";
  std::string answer;
  const double end = monotonicSeconds() + 15;
  while (receiveSome(socket, answer) != Received::Closed &&
         monotonicSeconds() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return answer;
}

std::string helloOf(uint32_t rank, uint32_t ranks, uint64_t process = 5) {
  return greeting() + FrameWriter(FrameKind::Hello)
                          .number32(rank)
                          .number32(ranks)
                          .number64(process)
                          .text("h")
                          .number32(0)
                          .finish();
}

TEST(Control, RanksMeetAndShare) {
  const int port = freePort();
  asRanks(4, [&](int rank) {
    std::unique_ptr<Control> control;
    const Status started = Control::start(settingsOf(rank, 4, port), control);
    ASSERT_TRUE(started) << started.message();
    EXPECT_EQ(control->address(), "127.0.0.1");
    ASSERT_TRUE(control->put("of " + std::to_string(rank),
                             std::string(rank * 100000, 'x')));
    for (int from = 0; from < 4; ++from) {
      std::string bytes;
      ASSERT_TRUE(control->get("of " + std::to_string(from), bytes));
      EXPECT_EQ(bytes, std::string(from * 100000, 'x'));
    }
    for (int64_t round = 0; round < 50; ++round) {
      int64_t largest = -1;
      ASSERT_TRUE(control->meet("round " + std::to_string(round),
                                rank == round % 4 ? round : -round, largest));
      EXPECT_EQ(largest, round);
    }
    const Status done = control->finish();
    EXPECT_TRUE(done) << done.message();
  });
}

TEST(Control, ManyRanks) {
  const int port = freePort();
  asRanks(48, [&](int rank) {
    std::unique_ptr<Control> control;
    const Status started = Control::start(settingsOf(rank, 48, port), control);
    ASSERT_TRUE(started) << started.message();
    for (int64_t round = 0; round < 3; ++round) {
      int64_t largest = -1;
      ASSERT_TRUE(control->meet("round", rank, largest));
      EXPECT_EQ(largest, 47);
    }
    const Status done = control->finish();
    EXPECT_TRUE(done) << done.message();
  });
}

TEST(Control, ARankThatGoesBeforeAllHaveComeIsNamed) {
  const int port = freePort();
  asRanks(3, [&](int rank) {
    ControlSettings settings = settingsOf(rank, 3, port);
    settings.assembly.facts = {};
    std::promise<Status> fault;
    settings.onFault = [&](const Status &s) { fault.set_value(s); };
    if (rank == 1) {
      (void)stranger(port, helloOf(1, 3), /*closes=*/true);
      return;
    }
    if (rank == 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::unique_ptr<Control> control;
    const Status started = Control::start(settings, control);
    ASSERT_TRUE(started) << started.message();
    EXPECT_EQ(fault.get_future().get().message(),
              "rank 1 (host h, process 5) is gone before the first step");
  });
}

TEST(Control, OneRankNeedsNoOther) {
  std::unique_ptr<Control> control;
  ASSERT_TRUE(Control::start(settingsOf(0, 1, 0), control));
  int64_t largest = 0;
  EXPECT_TRUE(control->meet("save", 3, largest));
  EXPECT_EQ(largest, 3);
  EXPECT_TRUE(control->finish());
}

TEST(Control, AnotherFactIsNamedToAll) {
  const int port = freePort();
  asRanks(3, [&](int rank) {
    ControlSettings settings = settingsOf(rank, 3, port);
    if (rank == 2)
      settings.assembly.facts[1].second = "8";
    std::unique_ptr<Control> control;
    const Status started = Control::start(settings, control);
    EXPECT_EQ(started.code(), Code::Usage);
    EXPECT_EQ(started.message(), nameOf(2, {hostName(), getpid()}) +
                                     " has another seed than rank 0: '8' and "
                                     "'7'");
  });
}

TEST(Control, ARankThatDoesNotCome) {
  const int port = freePort();
  asRanks(2, [&](int rank) {
    ControlSettings settings = settingsOf(rank, 4, port);
    settings.assembly.startSeconds = 1;
    std::unique_ptr<Control> control;
    const Status started = Control::start(settings, control);
    EXPECT_EQ(started.code(), Code::World);
    EXPECT_EQ(started.message(), "rank 2, 3 of 4 didn't come to '127.0.0.1' "
                                 "port " +
                                     std::to_string(port) + " within 1 s");
  });
}

TEST(Control, RankZeroDoesNotListen) {
  ControlSettings settings = settingsOf(1, 2, freePort());
  settings.assembly.startSeconds = 0.3;
  std::unique_ptr<Control> control;
  const Status started = Control::start(settings, control);
  EXPECT_EQ(started.code(), Code::World);
  EXPECT_NE(started.message().find("can't connect to rank 0 at '127.0.0.1'"),
            std::string::npos)
      << started.message();
}

TEST(Control, ThePortIsTaken) {
  int port = 0;
  Socket socket;
  ASSERT_TRUE(listenAt("127.0.0.1", port, socket));
  std::unique_ptr<Control> control;
  const Status started = Control::start(settingsOf(0, 2, port), control);
  EXPECT_EQ(started.code(), Code::World);
  EXPECT_EQ(started.message(),
            "can't listen at port " + std::to_string(port) +
                ": Address already in use; TMC_ADDRESS=HOST:PORT names another "
                "one");
}

TEST(Control, StrangersAreSentAwayAndTheRanksStart) {
  const int port = freePort();
  std::string longHello = helloOf(1, 2);
  longHello[kGreetingBytes + 2] = 1; // 64 KiB and more
  std::string newer = helloOf(1, 2);
  newer[8] = 9;
  const std::vector<std::pair<std::string, std::string>> strangers = {
      {"GET / HTTP/1.1\r\n\r\n", "it doesn't speak tmc's protocol"},
      {newer, "it speaks version 9 of tmc's protocol"},
      {longHello, "it sends a message of 65"},
      {helloOf(2, 2), "its first message is malformed"},
      {helloOf(1, 3), "rank 1 (host h, process 5) is one of 3 ranks, and rank "
                      "0 one of 2"},
      {helloOf(0, 2), "rank 0 (host h, process 5) is a second rank 0"},
      {helloOf(1, 2, uint64_t(1) << 40), "its first message is malformed"},
      {greeting() + FrameWriter(FrameKind::Put).text("a").text("b").finish(),
       "its first message is malformed"},
  };
  std::thread host([&] {
    std::unique_ptr<Control> control;
    const Status started = Control::start(settingsOf(0, 2, port), control);
    ASSERT_TRUE(started) << started.message();
    EXPECT_TRUE(control->finish());
  });
  for (const auto &[bytes, why] : strangers) {
    const std::string answer = stranger(port, bytes);
    EXPECT_NE(answer.find("rank 0: " + why), std::string::npos)
        << "'" << why << "' isn't in '" << answer << "'";
  }
  (void)stranger(port, helloOf(1, 2).substr(0, 20), /*closes=*/true);
  std::unique_ptr<Control> control;
  const Status started = Control::start(settingsOf(1, 2, port), control);
  ASSERT_TRUE(started) << started.message();
  EXPECT_TRUE(control->finish());
  host.join();
}

TEST(Control, ASecondProcessOfARankIsSentAway) {
  const int port = freePort();
  asRanks(3, [&](int rank) {
    ControlSettings settings = settingsOf(rank, 3, port);
    if (rank == 2) // After the second rank 1 was sent away.
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::unique_ptr<Control> control, second;
    if (rank == 1) {
      std::future<Status> other = std::async(std::launch::async, [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        return Control::start(settings, second);
      });
      const Status first = Control::start(settings, control);
      EXPECT_TRUE(first) << first.message();
      const std::string name = nameOf(1, {hostName(), getpid()});
      EXPECT_EQ(other.get().message(),
                "rank 0: " + name + " comes after " + name);
    } else {
      const Status started = Control::start(settings, control);
      ASSERT_TRUE(started) << started.message();
    }
    EXPECT_TRUE(control->finish());
  });
}

TEST(Control, WhatListensThereIsNotRankZero) {
  int port = 0;
  Socket listening;
  ASSERT_TRUE(listenAt("127.0.0.1", port, listening));
  std::thread server([&] {
    Socket socket;
    for (int i = 0; i < 1000 && !socket.isOpen(); ++i) {
      socket = acceptFrom(listening);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(sendAll(socket, "220 mail ready\r\n", 5));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  std::unique_ptr<Control> control;
  const Status started = Control::start(settingsOf(1, 2, port), control);
  server.join();
  EXPECT_EQ(started.code(), Code::World);
  EXPECT_EQ(started.message(),
            "rank 0 isn't at '127.0.0.1' port " + std::to_string(port) +
                ": the listener there doesn't speak tmc's protocol");
}

/// Two ranks, of which the second one is a socket of the test's own.
struct Impostor {
  const int port = freePort();
  std::promise<Status> fault;
  std::unique_ptr<Control> control;
  Socket socket;

  Impostor() {
    ControlSettings settings = settingsOf(0, 2, port);
    settings.assembly.facts = {};
    settings.onFault = [this](const Status &s) { fault.set_value(s); };
    std::thread peer([this] {
      EXPECT_TRUE(connectTo({"127.0.0.1"}, port, 10, socket));
      EXPECT_TRUE(sendAll(socket, helloOf(1, 2), 5));
    });
    const Status started = Control::start(settings, control);
    peer.join();
    EXPECT_TRUE(started) << started.message();
  }
  /// The fault after the peer has sent these bytes.
  std::string faultAfter(const std::string &bytes) {
    EXPECT_TRUE(sendAll(socket, bytes, 5));
    std::future<Status> future = fault.get_future();
    if (future.wait_for(std::chrono::seconds(10)) != std::future_status::ready)
      return "none";
    const Status status = future.get();
    EXPECT_EQ(status.code(), Code::World);
    return status.message();
  }
};

TEST(Control, APeerThatSendsNonsenseEndsTheRun) {
  const std::string name = "rank 1 (host h, process 5) ";
  EXPECT_EQ(Impostor().faultAfter(std::string(16, '\xff')),
            name + "sends a message of 4294967295 bytes, at most 8388608");
  EXPECT_EQ(Impostor().faultAfter(FrameWriter(FrameKind::Beat).finish()),
            name + "sends a malformed message");
  EXPECT_EQ(Impostor().faultAfter(FrameWriter(FrameKind::Welcome).finish()),
            name + "sends a message that no rank may send");
  EXPECT_EQ(Impostor().faultAfter(
                FrameWriter(FrameKind::Meet).text("m").number64(1).finish() +
                FrameWriter(FrameKind::Meet).text("m").number64(1).finish()),
            name + "comes twice to the meeting 'm'");
  EXPECT_EQ(Impostor().faultAfter(
                FrameWriter(FrameKind::Failed).text("no space").finish()),
            name + "ended: no space");
}

TEST(Control, ARankThatFailsIsNamed) {
  const int port = freePort();
  asRanks(3, [&](int rank) {
    ControlSettings settings = settingsOf(rank, 3, port);
    std::promise<Status> fault;
    settings.onFault = [&](const Status &s) { fault.set_value(s); };
    std::unique_ptr<Control> control;
    ASSERT_TRUE(Control::start(settings, control));
    if (rank == 1)
      return control->fail({Code::BadInput, "a token is 99"});
    const std::string sentence =
        nameOf(1, {hostName(), getpid()}) + " ended: a token is 99";
    int64_t largest = 0;
    const Status met = control->meet("save", 0, largest);
    EXPECT_EQ(met.message(), sentence);
    EXPECT_EQ(control->explain({Code::World, "mpi: it failed"}).message(),
              sentence);
    EXPECT_EQ(fault.get_future().get().message(), sentence);
    std::string bytes;
    EXPECT_FALSE(control->get("x", bytes));
    EXPECT_FALSE(control->finish());
  });
}

TEST(Control, ARankThatGoesIsNamed) {
  for (const int goes : {0, 1}) {
    const int port = freePort();
    asRanks(3, [&](int rank) {
      ControlSettings settings = settingsOf(rank, 3, port);
      std::promise<Status> fault;
      settings.onFault = [&](const Status &s) { fault.set_value(s); };
      std::unique_ptr<Control> control;
      ASSERT_TRUE(Control::start(settings, control));
      int64_t largest = 0;
      ASSERT_TRUE(control->meet("a", 0, largest));
      const std::string whole = "the checkpoint of step 40 in 'run' is whole";
      if (rank == 0)
        for (const std::string &each : {std::string("another"), whole})
          control->saved(each);
      control->computes(41, 7);
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      if (rank == goes)
        return control.reset();
      EXPECT_EQ(fault.get_future().get().message(),
                nameOf(goes, {hostName(), getpid()}) + " is gone in step 41; " +
                    whole);
    });
  }
}

TEST(Control, AnErrorThatNobodyExplainsIsTold) {
  // explain() waits before it tells its own error: only one rank of two is
  // there to know.
  const int port = freePort();
  asRanks(2, [&](int rank) {
    ControlSettings settings = settingsOf(rank, 2, port);
    settings.explainSeconds = 0.2;
    std::promise<Status> fault;
    settings.onFault = [&](const Status &s) { fault.set_value(s); };
    std::unique_ptr<Control> control;
    ASSERT_TRUE(Control::start(settings, control));
    if (rank == 1) {
      EXPECT_EQ(control->explain({Code::World, "mpi: broken"}).message(),
                "mpi: broken");
      return;
    }
    EXPECT_EQ(fault.get_future().get().message(),
              nameOf(1, {hostName(), getpid()}) + " ended: mpi: broken");
  });
}

TEST(PipeSignal, AWriteToNobodyIsAnErrorAlone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  for (int time = 0; time < 2; ++time) {
    const WithoutPipeSignal shield;
    EXPECT_EQ(write(ends[1], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  sigset_t blocked, pending;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_FALSE(sigismember(&blocked, SIGPIPE));
  sigpending(&pending);
  EXPECT_FALSE(sigismember(&pending, SIGPIPE));
  close(ends[1]);
}

TEST(World, OneRankHasANetwork) {
  World world;
  Place place;
  ASSERT_TRUE(joinWorld({}, place, world));
  char from = 5, to = 0;
  EXPECT_TRUE(world.network->gather(kWorld, &to, &from, 1));
  EXPECT_EQ(to, 5);
  EXPECT_TRUE(world.network->exchange(kWorld, &to, &from, 1));
  EXPECT_TRUE(world.network->barrier(kWorld));
  EXPECT_EQ(world.network->send(kWorld, 0, &from, 1).code(), Code::Defect);
  int group = -1;
  EXPECT_TRUE(world.network->makeGroup({0}, group));
  EXPECT_EQ(group, kWorld);
  EXPECT_EQ(world.network->makeGroup({0, 1}, group).message(),
            "{0, 1} is no group of rank 0 of 1");
  EXPECT_TRUE(leaveWorld(world, Status::ok()));
}

TEST(World, NoAddress) {
  World world;
  Place place;
  place.ranks = 2;
  const Status done = joinWorld({}, place, world);
  EXPECT_EQ(done.code(), Code::Usage);
  EXPECT_EQ(done.message(), "no variable says where rank 0 is: set "
                            "TMC_ADDRESS=HOST:PORT for all ranks");
}

TEST(World, NoLibrary) {
  std::unique_ptr<Network> network;
  const Status done = openNetwork("mpi", "/nowhere", {}, network);
  EXPECT_EQ(done.code(), Code::World);
  EXPECT_EQ(
      done.message().rfind("can't open '/nowhere/libtmc-network-mpi.so'", 0),
      0u)
      << done.message();
}

} // namespace
} // namespace tmc
