//===- NcclFaultsTest.cpp - planted faults in calls of NCCL ---------------===//
//
// Each fault is made by two ranks, processes of their own, and must be named
// under each seed: with its kind, and with the words of both sides where ranks
// differ. What is right beside it must pass.
//
//===----------------------------------------------------------------------===//

#include "test/cuda/Faults.h"

#include <nccl.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace tmc;
using namespace tmc::test;

namespace {

constexpr int kRanks = 2;
constexpr int64_t kBytes = 64;

/// One rank's own: a communicator, two streams, and buffers of device memory.
struct Rank {
  int rank = 0, peer = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t first = nullptr, second = nullptr;
  char *from = nullptr, *to = nullptr; // written; kBytes, and for all ranks
  ncclUniqueId other = {};             // for a second communicator

  cudaEvent_t record(cudaStream_t stream) {
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, stream);
    return event;
  }
  void fill(void *p, cudaStream_t stream, size_t bytes = kBytes) {
    cudaMemsetAsync(p, rank + 1, bytes, stream);
  }
  ncclComm_t connect(const ncclUniqueId &id, int ranks = kRanks) {
    ncclComm_t made = nullptr;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclCommInitRankConfig(&made, ranks, id, rank, &config);
    return made;
  }
  void gather(size_t bytes = kBytes, ncclDataType_t type = ncclInt8) {
    ncclAllGather(from, to, bytes, type, comm, first);
  }
};
using Body = std::function<void(Rank &)>;

struct Ended {
  bool hasFailed = false, hangs = false;
  std::string text;
};

/// The body of one rank, in a process of its own.
[[noreturn]] void runRank(int rank, uint64_t seed, const ncclUniqueId &id,
                          const ncclUniqueId &other, int pipe,
                          const Body &body) {
  dup2(pipe, STDERR_FILENO);
  emulator::setSeed(seed);
  emulator::collectNoMore();
  Rank its;
  its.rank = rank;
  its.peer = 1 - rank;
  its.other = other;
  cudaStreamCreateWithFlags(&its.first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&its.second, cudaStreamNonBlocking);
  for (auto [p, bytes] :
       {std::pair(&its.from, kBytes), {&its.to, kRanks * kBytes}}) {
    cudaMalloc(reinterpret_cast<void **>(p), size_t(bytes));
    cudaMemsetAsync(*p, rank + 1, size_t(bytes), its.first);
  }
  cudaDeviceSynchronize();
  its.comm = its.connect(id);
  body(its);
  cudaDeviceSynchronize();
  emulator::endIfFaulty();
  _exit(0);
}

/// Runs both ranks until one has failed, or both have ended.
Ended runRanks(uint64_t seed, const Body &body) {
  ncclUniqueId id, other;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  EXPECT_EQ(ncclGetUniqueId(&other), ncclSuccess);
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  pid_t processes[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    processes[rank] = fork();
    if (processes[rank] == 0)
      runRank(rank, seed, id, other, ends[1], body);
  }
  close(ends[1]);
  Ended ended;
  int left = kRanks;
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(40);
  while (left > 0 && !ended.hasFailed && !ended.hangs) {
    int status = 0;
    const pid_t process = waitpid(-1, &status, WNOHANG);
    if (process > 0) {
      --left;
      ended.hasFailed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    } else {
      ended.hangs = std::chrono::steady_clock::now() > until;
      usleep(1000);
    }
  }
  for (const pid_t process : processes)
    if (left > 0)
      kill(process, SIGKILL);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  char piece[4096];
  for (ssize_t got; (got = read(ends[0], piece, sizeof piece)) > 0;)
    ended.text.append(piece, size_t(got));
  close(ends[0]);
  for (const ncclUniqueId &each : {id, other}) {
    const std::string command = std::string("rm -rf ") + each.internal;
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  return ended;
}

/// Under each seed a rank ends with a fault whose text has all of `words`.
void expectNamed(const std::vector<std::string> &words, const Body &body,
                 uint64_t seeds = kFaultSeeds) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Ended ended = runRanks(seed, body);
    EXPECT_TRUE(ended.hasFailed) << "seed " << seed << ": " << ended.text;
    EXPECT_FALSE(ended.hangs) << "seed " << seed;
    for (const std::string &word : words)
      EXPECT_NE(ended.text.find(word), std::string::npos)
          << "seed " << seed << ", no '" << word << "' in " << ended.text;
  }
}
void expectRight(const Body &body) {
  for (uint64_t seed = 0; seed < kFaultSeeds; ++seed) {
    const Ended ended = runRanks(seed, body);
    EXPECT_FALSE(ended.hasFailed || ended.hangs)
        << "seed " << seed << ": " << ended.text;
  }
}
constexpr uint64_t kFewSeeds = 3; // A deadlock takes seconds.

} // namespace

//===----------------------------------------------------------------------===//
// What is right
//===----------------------------------------------------------------------===//

TEST(Nccl, CallsThatAreRight) {
  expectRight([](Rank &r) {
    for (int turn = 0; turn < 4; ++turn) {
      r.fill(r.from, r.second);
      cudaStreamWaitEvent(r.first, r.record(r.second), 0);
      r.gather();
      // In place, and a root.
      ncclAllGather(r.to + r.rank * kBytes, r.to, kBytes, ncclInt8, r.comm,
                    r.first);
      ncclGroupStart();
      ncclSend(r.from, kBytes, ncclInt8, r.peer, r.comm, r.first);
      ncclRecv(r.to, kBytes, ncclInt8, r.peer, r.comm, r.first);
      ncclGroupEnd();
      ncclBroadcast(r.from, r.to + kBytes, kBytes, ncclInt8, 1, r.comm,
                    r.first);
      cudaStreamWaitEvent(r.second, r.record(r.first), 0);
    }
    std::string got(kRanks * kBytes, '\0');
    cudaMemcpyAsync(got.data(), r.to, got.size(), cudaMemcpyDefault, r.second);
    cudaStreamSynchronize(r.second);
    if (got != std::string(kBytes, char(r.peer + 1)) + std::string(kBytes, 2))
      _exit(1);
    ncclCommDestroy(r.comm);
  });
}

TEST(Nccl, ARankThatIsGoneIsARemoteError) {
  expectRight([](Rank &r) {
    if (r.rank == 1)
      _exit(0);
    r.gather();
    ncclResult_t error = ncclSuccess;
    cudaEvent_t over = r.record(r.first);
    while (error == ncclSuccess && cudaEventQuery(over) != cudaSuccess)
      ncclCommGetAsyncError(r.comm, &error);
    if (error != ncclRemoteError)
      _exit(1);
    ncclCommAbort(r.comm); // The call ends, and the stream with it.
    cudaStreamSynchronize(r.first);
  });
}

//===----------------------------------------------------------------------===//
// Both sides differ
//===----------------------------------------------------------------------===//

TEST(NcclFaults, AnotherCount) {
  expectNamed({"ncclAllGather of 64 ncclInt8", "ncclAllGather of 63 ncclInt8"},
              [](Rank &r) { r.gather(size_t(kBytes - r.rank)); });
}

TEST(NcclFaults, AnotherType) {
  expectNamed({"ncclAllGather of 16 ncclInt8", "ncclAllGather of 16 "
                                               "ncclFloat32"},
              [](Rank &r) { r.gather(16, r.rank ? ncclFloat32 : ncclInt8); });
}

TEST(NcclFaults, AnotherOrder) {
  expectNamed({"is in collective call 0, nccl", "ncclAllGather of 64 ncclInt8",
               "ncclBroadcast of 64 ncclInt8 from root 0"},
              [](Rank &r) {
                auto broadcast = [&] {
                  ncclBroadcast(r.from, r.to, kBytes, ncclInt8, 0, r.comm,
                                r.first);
                };
                if (r.rank)
                  broadcast();
                r.gather();
                if (!r.rank)
                  broadcast();
              });
}

TEST(NcclFaults, AnotherRoot) {
  expectNamed({"from root 0", "from root 1"}, [](Rank &r) {
    ncclBroadcast(r.from, r.to, kBytes, ncclInt8, r.rank, r.comm, r.first);
  });
}

TEST(NcclFaults, AMessageOfAnotherLength) {
  expectNamed({"ncclRecv from rank 0, message 0 of 32 ncclInt8",
               "a message of 64 ncclInt8"},
              [](Rank &r) {
                if (r.rank == 0)
                  ncclSend(r.from, 64, ncclInt8, 1, r.comm, r.first);
                else
                  ncclRecv(r.to, 32, ncclInt8, 0, r.comm, r.first);
              });
}

TEST(NcclFaults, AMessageOfAnotherType) {
  expectNamed({"16 ncclBfloat16", "a message of 16 ncclInt32"}, [](Rank &r) {
    if (r.rank == 0)
      ncclSend(r.from, 16, ncclInt32, 1, r.comm, r.first);
    else
      ncclRecv(r.to, 16, ncclBfloat16, 0, r.comm, r.first);
  });
}

TEST(NcclFaults, MessagesInAnotherOrder) {
  expectNamed({"message 0 of 32 ncclInt8", "a message of 16 ncclInt8"},
              [](Rank &r) {
                for (const size_t bytes : {16, 32})
                  if (r.rank == 0)
                    ncclSend(r.from, bytes, ncclInt8, 1, r.comm, r.first);
                  else
                    ncclRecv(r.to, 48 - bytes, ncclInt8, 0, r.comm, r.first);
              });
}

//===----------------------------------------------------------------------===//
// Nobody goes on
//===----------------------------------------------------------------------===//

TEST(NcclFaults, BothSendFirst) {
  expectNamed(
      {"deadlock", "rank 0 in ncclSend to rank 1, message 0 of 64",
       "rank 1 in ncclSend to rank 0, message 0 of 64"},
      [](Rank &r) {
        ncclSend(r.from, kBytes, ncclInt8, r.peer, r.comm, r.first);
        ncclRecv(r.to, kBytes, ncclInt8, r.peer, r.comm, r.first);
      },
      kFewSeeds);
}

TEST(NcclFaults, BothReceiveFirst) {
  expectNamed(
      {"deadlock", "rank 0 in ncclRecv from rank 1",
       "rank 1 in ncclRecv from rank 0"},
      [](Rank &r) {
        ncclRecv(r.to, kBytes, ncclInt8, r.peer, r.comm, r.first);
        ncclSend(r.from, kBytes, ncclInt8, r.peer, r.comm, r.first);
      },
      kFewSeeds);
}

TEST(NcclFaults, AGatherWhereTheOtherReceives) {
  expectNamed(
      {"deadlock", "rank 0 in collective call 0, ncclAllGather of 64",
       "rank 1 in ncclRecv from rank 0"},
      [](Rank &r) {
        if (r.rank == 0)
          r.gather();
        else
          ncclRecv(r.to, kBytes, ncclInt8, 0, r.comm, r.first);
      },
      kFewSeeds);
}

TEST(NcclFaults, ACallThatOneRankLeavesOut) {
  expectNamed(
      {"deadlock", "rank 0 in collective call 1, ncclAllGather",
       "rank 1 in ncclRecv from rank 0"},
      [](Rank &r) {
        r.gather();
        if (r.rank == 0)
          r.gather();
        if (r.rank == 0)
          ncclSend(r.from, kBytes, ncclInt8, 1, r.comm, r.first);
        else
          ncclRecv(r.to, kBytes, ncclInt8, 0, r.comm, r.first);
      },
      kFewSeeds);
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

TEST(NcclFaults, ACallBeforeItsBytes) {
  expectNamed({"race"}, [](Rank &r) {
    r.fill(r.from, r.second);
    r.gather();
  });
}

TEST(NcclFaults, AReaderThatDoesNotWait) {
  expectNamed({"race"}, [](Rank &r) {
    std::string got(kBytes, '\0');
    r.gather();
    char *copy = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&copy), kBytes);
    cudaMemcpyAsync(copy, r.to, kBytes, cudaMemcpyDefault, r.second);
  });
}

TEST(NcclFaults, BytesThatChangeMeanwhile) {
  expectNamed({"race"}, [](Rank &r) {
    r.gather();
    r.fill(r.from, r.second);
  });
}

TEST(NcclFaults, TwoCallsIntoOneBuffer) {
  expectNamed({"race"}, [](Rank &r) {
    ncclComm_t other = r.connect(r.other);
    r.gather();
    ncclAllGather(r.from, r.to, kBytes, ncclInt8, other, r.second);
  });
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

TEST(NcclFaults, ABufferThatIsTooSmall) {
  expectNamed({"out of bounds"}, [](Rank &r) { r.gather(size_t(kBytes + 1)); });
}

TEST(NcclFaults, BytesThatNobodyWrote) {
  expectNamed({"uninitialised"}, [](Rank &r) {
    char *fresh = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&fresh), kBytes);
    ncclAllGather(fresh, r.to, kBytes, ncclInt8, r.comm, r.first);
  });
}

TEST(NcclFaults, MemoryOfTheHost) {
  expectNamed({"ncclAllGather: a buffer isn't in device memory"}, [](Rank &r) {
    char own[kBytes] = {};
    ncclAllGather(own, r.to, kBytes, ncclInt8, r.comm, r.first);
  });
}

TEST(NcclFaults, InPlaceAtAnotherPlace) {
  expectNamed({"the buffers overlap"}, [](Rank &r) {
    ncclAllGather(r.to + r.peer * kBytes, r.to, kBytes, ncclInt8, r.comm,
                  r.first);
  });
}

TEST(NcclFaults, ARankThatDoesNotExist) {
  expectNamed({"ncclSend: there is no rank 2 of 2"}, [](Rank &r) {
    ncclSend(r.from, kBytes, ncclInt8, 2, r.comm, r.first);
  });
}

TEST(NcclFaults, AStreamThatIsGone) {
  expectNamed({"ncclAllGather: the stream doesn't exist"}, [](Rank &r) {
    cudaStreamDestroy(r.first);
    r.gather();
  });
}

TEST(NcclFaults, ACommunicatorThatIsGone) {
  expectNamed({"ncclAllGather: the communicator doesn't exist"}, [](Rank &r) {
    ncclCommDestroy(r.comm);
    r.gather();
  });
}

TEST(NcclFaults, ACommunicatorThatIsAtWork) {
  expectNamed({"ncclCommDestroy: 1 calls haven't ended"}, [](Rank &r) {
    if (r.rank == 1)
      usleep(1000000);
    r.gather();
    if (r.rank == 0)
      ncclCommDestroy(r.comm);
  });
}

TEST(NcclFaults, AnotherNumberOfRanks) {
  expectNamed({"rank 0 is one of 2, and rank 1 one of 3"},
              [](Rank &r) { r.connect(r.other, kRanks + r.rank); });
}

TEST(NcclFaults, OneRankTwice) {
  expectNamed({"another process is rank 0"}, [](Rank &r) {
    r.rank = 0;
    r.connect(r.other);
  });
}

TEST(NcclFaults, AGroupThatHasNotBegun) {
  expectNamed({"ncclGroupEnd: no group has begun"},
              [](Rank &) { ncclGroupEnd(); });
}
