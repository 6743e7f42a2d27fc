//===- RankTransfersTest.cpp - calls of the network on cuda, emulated -----===//
//
// One rank of several, whose peers are made up: a call on the network's thread
// through pinned memory, or one that is queued on the network's stream.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"

#include "runtime/kernels/Ranks.h"
#include "test/cuda/Faults.h"

#include <atomic>
#include <cstring>

using namespace tmc;
using namespace tmc::test;

namespace {

/// Byte `i` of rank `r`'s value.
char byteOf(int64_t r, int64_t i) { return char(r * 101 + i * 7 + 1); }

/// Ranks that hold byteOf. What this rank sends is compared with it.
class MadeUp : public Peers {
public:
  MadeUp(int ranks, int own) : ranks_(ranks), own_(own) {}
  int size(Axis axis) const override { return axis == Axis::Data ? ranks_ : 1; }
  int place(Axis) const override { return own_; }

  Status gather(Axis, void *to, const void *from, int64_t bytes,
                int64_t total) override {
    check(from, own_ * bytes,
          std::clamp<int64_t>(total - own_ * bytes, 0, bytes));
    for (int64_t i = 0; i < total; ++i)
      static_cast<char *>(to)[i] = byteOf(i / bytes, i);
    return status;
  }
  Status exchange(Axis, void *to, const void *from, int64_t bytes,
                  int64_t total) override {
    check(from, 0, total);
    const int64_t some = std::clamp<int64_t>(total - own_ * bytes, 0, bytes);
    for (int64_t r = 0; r < ranks_; ++r)
      for (int64_t i = 0; i < some; ++i)
        static_cast<char *>(to)[r * bytes + i] = byteOf(r, own_ * bytes + i);
    return status;
  }
  Status share(Axis, int, void *, int64_t) override { return status; }

  /// Queued calls: the same, of a buffer that outlives them.
  bool queues() const override { return isQueueing; }
  Status queueGather(Axis axis, void *to, const void *, int64_t bytes,
                     int64_t total, void *stream) override {
    kept_.resize(size_t(total));
    std::vector<char> own(static_cast<size_t>(bytes));
    for (int64_t i = 0; i < bytes; ++i)
      own[size_t(i)] = byteOf(own_, own_ * bytes + i);
    if (Status s = gather(axis, kept_.data(), own.data(), bytes, total); !s)
      return s;
    return cudaMemcpyAsync(to, kept_.data(), size_t(total), cudaMemcpyDefault,
                           static_cast<cudaStream_t>(stream)) == cudaSuccess
               ? Status::ok()
               : Status(Code::World, "a copy");
  }
  void waits(int64_t entry) override {
    if (entry >= 0)
      waitsIn = entry;
  }
  void waited(double seconds) override { waitedSeconds += seconds; }
  Status queuedFault() override {
    asked = true;
    word = 1; // All queued calls end.
    return status;
  }

  Status status;
  bool isQueueing = false;
  std::atomic<bool> asked = false;
  std::atomic<int64_t> waitsIn = -1;
  double waitedSeconds = 0;
  std::atomic<uint64_t> word = 0;
  std::atomic<int64_t> wrong = 0, calls = 0;

private:
  void check(const void *from, int64_t first, int64_t bytes) {
    ++calls;
    for (int64_t i = 0; i < bytes; ++i)
      wrong += static_cast<const char *>(from)[i] != byteOf(own_, first + i);
  }
  const int ranks_, own_;
  std::vector<char> kept_;
};

constexpr int64_t kArena = 1 << 18;

struct Machine {
  explicit Machine(MadeUp &peers) {
    DeviceOptions options;
    options.peers = &peers;
    EXPECT_TRUE(createDevice(options, device));
    EXPECT_TRUE(device->allocateArena(SpaceKind::Device, kArena));
  }
  void start(Kernel &kernel) {
    EXPECT_TRUE(kernel.prepare(*device));
    QueueNeeds needs;
    needs.engines[EngineKind::Network] = true;
    needs.events = 4;
    needs.depth = 4;
    const Status s = device->startQueues(needs);
    EXPECT_TRUE(s) << s.message();
  }
  char *at(int64_t byte) { return device->arena(SpaceKind::Device) + byte; }
  void upload(int64_t to, int64_t rank, int64_t first, int64_t bytes) {
    std::vector<char> own(static_cast<size_t>(bytes));
    for (int64_t i = 0; i < bytes; ++i)
      own[size_t(i)] = byteOf(rank, first + i);
    device->upload(at(to), own.data(), bytes);
  }
  /// One call, behind compute and before it.
  void call(Kernel &kernel, int64_t from, int64_t to, bool waits = true,
            bool isWaitedFor = true, int64_t launch = 0) {
    Queues &q = device->queues();
    q.record(EngineKind::Compute, 0);
    if (waits)
      q.wait(EngineKind::Network, 0);
    q.beside(launch, EngineKind::Network, kernel, {at(from)}, {at(to)},
             nullptr);
    q.record(EngineKind::Network, 1);
    if (isWaitedFor)
      q.wait(EngineKind::Compute, 1);
    q.done(1);
  }
  std::vector<char> download(int64_t from, int64_t bytes) {
    std::vector<char> got(static_cast<size_t>(bytes));
    device->download(got.data(), at(from), bytes);
    EXPECT_TRUE(device->synchronize());
    return got;
  }
  std::unique_ptr<tmc::Device> device;
};

const RankPiecesParams kCases[] = {
    {Axis::Data, 2, 1, 2},        {Axis::Data, 2, 1, 1},
    {Axis::Data, 3, 16, 33},      {Axis::Data, 4, 4096, 4 * 4096},
    {Axis::Data, 8, 1024, 7200},  {Axis::Data, 2, 16384, 30000},
    {Axis::Data, 4, 16384, 40000}};

} // namespace

TEST(RankTransfers, ExchangePadsWhatCame) {
  for (const RankPiecesParams &p : kCases)
    for (int own : {0, int(p.ranks) - 1}) {
      MadeUp peers(int(p.ranks), own);
      ExchangeRanks exchange(p);
      Machine m(peers);
      m.start(exchange);
      for (int turn = 0; turn < 3; ++turn) {
        m.upload(0, own, 0, p.total);
        m.call(exchange, 0, kArena / 2);
        const std::vector<char> got = m.download(kArena / 2, p.ranks * p.bytes);
        for (int64_t i = 0; i < p.ranks * p.bytes; ++i) {
          const int64_t at = own * p.bytes + i % p.bytes;
          ASSERT_EQ(got[size_t(i)], at < p.total ? byteOf(i / p.bytes, at) : 0)
              << i << " of " << p.bytes << ", " << p.total;
        }
      }
      EXPECT_EQ(peers.wrong, 0);
      EXPECT_EQ(peers.calls, 3);
    }
}

TEST(RankTransfers, GatherLeavesPaddingBehind) {
  for (const bool queues : {false, true})
    for (const RankPiecesParams &p : kCases) {
      const int own = 1;
      MadeUp peers(int(p.ranks), own);
      peers.isQueueing = queues;
      GatherRanks gather(p);
      Machine m(peers);
      m.start(gather);
      m.upload(0, own, own * p.bytes, p.bytes);
      m.device->poison(m.at(kArena / 2), p.total + 16);
      m.call(gather, 0, kArena / 2);
      const std::vector<char> got = m.download(kArena / 2, p.total + 16);
      for (int64_t i = 0; i < p.total + 16; ++i)
        ASSERT_EQ(got[size_t(i)],
                  i < p.total ? byteOf(i / p.bytes, i) : char(0xff))
            << i << " of " << p.bytes << ", " << p.total;
      EXPECT_EQ(peers.wrong, 0);
    }
}

TEST(RankTransfers, TheCallerWaitsWhereTheDriverCannot) {
  const RankPiecesParams p = kCases[4];
  MadeUp peers(int(p.ranks), 0);
  ExchangeRanks exchange(p);
  Machine m(peers);
  m.start(exchange);
  emulator::failNext("cuStreamWaitValue64");
  for (int turn = 0; turn < 3; ++turn) {
    m.upload(0, 0, 0, p.total);
    m.call(exchange, 0, kArena / 2);
  }
  EXPECT_TRUE(m.device->synchronize());
  EXPECT_EQ(peers.wrong, 0);
  EXPECT_EQ(peers.calls, 3);
}

TEST(RankTransfers, AFaultOfTheNetworkIsTheSteps) {
  const RankPiecesParams p = kCases[3];
  MadeUp peers(int(p.ranks), 0);
  peers.status = {Code::World, "rank 2 is gone"};
  ExchangeRanks exchange(p);
  Machine m(peers);
  m.start(exchange);
  m.upload(0, 0, 0, p.total);
  m.call(exchange, 0, kArena / 2);
  m.call(exchange, 0, kArena / 2);
  const Status s = m.device->synchronize();
  EXPECT_EQ(s.code(), Code::World);
  EXPECT_EQ(s.message(), "rank 2 is gone");
  EXPECT_EQ(peers.calls, 1);
}

// The network's stream waits for a word that only the error's answer sets.
TEST(RankTransfers, AnErrorOfAQueuedCallEndsTheStep) {
  const RankPiecesParams p = kCases[3];
  MadeUp peers(int(p.ranks), 0);
  peers.isQueueing = true;
  GatherRanks gather(p);
  Machine m(peers);
  m.start(gather);
  peers.status = {Code::World, "nccl: a queued call: remote process exited"};

  struct Stuck final : Kernel {
    explicit Stuck(std::atomic<uint64_t> &word) : word(word) {}
    Status prepare(tmc::Device &) override { return Status::ok(); }
    void run(Stream &stream, In, Out, void *, bool) override {
      void *found = nullptr;
      cudaDriverEntryPointQueryResult result;
      EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuStreamWaitValue64", &found,
                                                 12000, cudaEnableDefault,
                                                 &result),
                cudaSuccess);
      using Wait =
          int (*)(cudaStream_t, unsigned long long, uint64_t, unsigned);
      EXPECT_EQ(reinterpret_cast<Wait>(found)(
                    static_cast<cudaStream_t>(stream.native()),
                    reinterpret_cast<unsigned long long>(&word), 1, 0),
                0);
    }
    std::atomic<uint64_t> &word;
  } stuck(peers.word);
  m.call(stuck, 0, kArena / 2, true, true, 7);
  const Status s = m.device->synchronize();
  EXPECT_TRUE(peers.asked);
  EXPECT_EQ(peers.waitsIn, 7);
  EXPECT_GE(peers.waitedSeconds, 0.01); // Until the first question.
  EXPECT_EQ(s.message(), "nccl: a queued call: remote process exited");
}

TEST(RankTransfers, AWaitThatIsLeftOutIsARace) {
  const RankPiecesParams p = kCases[3];
  for (const bool first : {true, false})
    expectFault(
        emulator::FaultKind::Race, "a call",
        [&] {
          MadeUp peers(int(p.ranks), 0);
          ExchangeRanks exchange(p);
          Machine m(peers);
          m.start(exchange);
          m.upload(0, 0, 0, p.total);
          m.device->poison(m.at(kArena / 2), p.total);
          (void)m.device->synchronize().isOk();
          m.upload(0, 0, 0, p.total);
          m.call(exchange, 0, kArena / 2, !first, first);
          m.device->poison(m.at(kArena / 2), p.total);
          (void)m.device->synchronize().isOk();
        },
        /*onHost=*/true);
}
