//===- QueuesTest.cpp - engines beside each other -------------------------===//
//
// Random programs of copies, host work and waits give what the same list gives
// in sequence; a wait that is left out is seen. Runs under ThreadSanitizer, too
// (tmc-queues-tsan).
//
//===----------------------------------------------------------------------===//

#include "QueuesTesting.h"

#include "runtime/step/EngineThread.h"
#include "test/unit/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace tmc;
using namespace tmc::test;

namespace {

/// Cells of this size are what programs move.
constexpr int64_t kCell = 4096;
constexpr int64_t kWords = kCell / 8;
constexpr int kDeviceCells = 6, kHostCells = 6, kFileCells = 4;

/// One step of a random program: work on one engine from cells to a cell.
struct Op {
  Engine engine;
  int from = 0, to = 0;
  uint64_t salt = 0;
};

/// What an op reads and writes, as numbers of cells of all spaces.
struct Touched {
  int reads, writes;
};
int deviceCell(int i) { return i; }
int hostCell(int i) { return kDeviceCells + i; }
int fileCell(int i) { return kDeviceCells + kHostCells + i; }
constexpr int kCells = kDeviceCells + kHostCells + kFileCells;

Touched touched(const Op &op) {
  switch (op.engine) {
  case Engine::Compute:
    return {deviceCell(op.from), deviceCell(op.to)};
  case Engine::ToHost:
    return {deviceCell(op.from), hostCell(op.to)};
  case Engine::ToDevice:
    return {hostCell(op.from), deviceCell(op.to)};
  case Engine::FileRead:
    return {fileCell(op.from), hostCell(op.to)};
  case Engine::FileWrite:
    return {hostCell(op.from), fileCell(op.to)};
  case Engine::Host:
    return {hostCell(op.from), hostCell(op.to)};
  }
  return {};
}

std::vector<Op> randomOps(std::mt19937 &random, int count) {
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  std::vector<Op> ops;
  std::set<int> written; // cells of the file
  while (int(ops.size()) < count) {
    Op op{Engine(below(kEngineCount)), 0, 0, random()};
    const bool fromDevice =
        op.engine == Engine::Compute || op.engine == Engine::ToHost;
    const bool toDevice =
        op.engine == Engine::Compute || op.engine == Engine::ToDevice;
    op.from = op.engine == Engine::FileRead ? below(kFileCells)
              : fromDevice                  ? below(kDeviceCells)
                                            : below(kHostCells);
    op.to = op.engine == Engine::FileWrite ? below(kFileCells)
            : toDevice                     ? below(kDeviceCells)
                                           : below(kHostCells);
    if (op.engine == Engine::FileRead && !written.count(op.from))
      continue;
    if (op.engine == Engine::FileWrite)
      written.insert(op.to);
    ops.push_back(op);
  }
  return ops;
}

/// to = to * 3 + from + salt, word by word: the order of any two shows.
void mix(uint64_t *to, const uint64_t *from, uint64_t salt) {
  for (int64_t i = 0; i < kWords; ++i)
    to[i] = to[i] * 3 + from[i] + salt;
}

/// The same as a kernel on the host.
class Mix final : public Kernel {
public:
  Status prepare(Device &) override { return Status::ok(); }
  void run(Stream &, In ins, Out outs, void *scratch, bool) override {
    mix(static_cast<uint64_t *>(result(outs, 0)),
        static_cast<const uint64_t *>(operand(ins, 0)),
        reinterpret_cast<uint64_t>(scratch));
  }
};

using Cells = std::vector<std::vector<uint64_t>>;

Cells startCells() {
  Cells cells(kCells, std::vector<uint64_t>(size_t(kWords)));
  for (int c = 0; c < kCells; ++c)
    for (int64_t i = 0; i < kWords; ++i)
      cells[size_t(c)][size_t(i)] = uint64_t(c * 1000 + i);
  return cells;
}

Cells runInSequence(const std::vector<Op> &ops, int trips) {
  Cells cells = startCells();
  for (int trip = 0; trip < trips; ++trip)
    for (const Op &op : ops) {
      const Touched t = touched(op);
      uint64_t *to = cells[size_t(t.writes)].data();
      const uint64_t *from = cells[size_t(t.reads)].data();
      if (op.engine == Engine::Compute || op.engine == Engine::Host)
        mix(to, from, op.salt);
      else
        std::memcpy(to, from, kCell);
    }
  return cells;
}

struct Program {
  std::vector<Op> ops;
  int without = -1; // an op whose waits are left out
};

/// As an emitter would: before each op its engine waits for the last op on each
/// other engine that touches what it touches.
void give(Queues &q, const Program &program, Mix &mixer) {
  const std::vector<Op> &ops = program.ops;
  auto device = [&](int c) { return q.device() + c * kCell; };
  auto host = [&](int c) { return q.host() + c * kCell; };
  const auto count = int(ops.size());
  for (int i = 0; i < count; ++i) {
    const Op &op = ops[size_t(i)];
    const Touched mine = touched(op);
    bool waited[kEngineCount] = {};
    // All trips: what stands behind it in the list touched the cell as well.
    for (int back = 1; back <= count && i != program.without; ++back) {
      const int j = (i + count - back) % count;
      const Op &other = ops[size_t(j)];
      const Touched its = touched(other);
      if (other.engine == op.engine || waited[int(other.engine)] ||
          !(its.writes == mine.reads || its.writes == mine.writes ||
            its.reads == mine.writes))
        continue;
      waited[int(other.engine)] = true;
      q.wait(op.engine, j);
    }
    switch (op.engine) {
    case Engine::Compute:
      mix(reinterpret_cast<uint64_t *>(device(op.to)),
          reinterpret_cast<const uint64_t *>(device(op.from)), op.salt);
      q.launched(i);
      break;
    case Engine::ToHost:
      q.copy(i, op.engine, host(op.to), device(op.from), kCell);
      break;
    case Engine::ToDevice:
      q.copy(i, op.engine, device(op.to), host(op.from), kCell);
      break;
    case Engine::FileRead:
      q.readFile(i, host(op.to), op.from * kFileBlockBytes, kCell);
      break;
    case Engine::FileWrite:
      q.writeFile(i, op.to * kFileBlockBytes, host(op.from), kCell);
      break;
    case Engine::Host:
      q.onHost(i, mixer, {host(op.from)}, {host(op.to)},
               reinterpret_cast<void *>(op.salt));
      break;
    }
    q.record(op.engine, i);
  }
}

struct Machine {
  TemporaryDirectory directory;
  std::unique_ptr<FileArena> file;
  std::unique_ptr<Device> device;

  explicit Machine(int events, int64_t depth = 8, double rate = 0) {
    EXPECT_TRUE(FileArena::create(directory.path, kFileCells * kFileBlockBytes,
                                  {}, file));
    DeviceOptions options;
    options.threads = 1;
    options.hostThreads = 2;
    options.linkBytesPerSecond = rate;
    EXPECT_TRUE(createDevice(options, device));
    EXPECT_TRUE(device->allocateArena(kDeviceCells * kCell));
    EXPECT_TRUE(device->allocateHostArena(kHostCells * kCell));
    QueueNeeds needs;
    for (int i = 1; i < kEngineCount; ++i)
      needs.engines[i] = true;
    needs.events = events;
    needs.depth = depth;
    needs.file = file.get();
    EXPECT_TRUE(device->startQueues(needs));
    const Cells start = startCells();
    for (int c = 0; c < kDeviceCells; ++c)
      std::memcpy(device->arena() + c * kCell,
                  start[size_t(deviceCell(c))].data(), kCell);
    for (int c = 0; c < kHostCells; ++c)
      std::memcpy(device->hostArena() + c * kCell,
                  start[size_t(hostCell(c))].data(), kCell);
    for (int c = 0; c < kFileCells; ++c)
      EXPECT_TRUE(file->write(c * kFileBlockBytes,
                              start[size_t(fileCell(c))].data(), kCell));
  }

  Cells cells() {
    Cells all = startCells();
    for (int c = 0; c < kDeviceCells; ++c)
      std::memcpy(all[size_t(deviceCell(c))].data(),
                  device->arena() + c * kCell, kCell);
    for (int c = 0; c < kHostCells; ++c)
      std::memcpy(all[size_t(hostCell(c))].data(),
                  device->hostArena() + c * kCell, kCell);
    for (int c = 0; c < kFileCells; ++c)
      EXPECT_TRUE(file->read(c * kFileBlockBytes,
                             all[size_t(fileCell(c))].data(), kCell));
    return all;
  }
};

} // namespace

TEST(Queues, RandomProgramsGiveWhatTheyGiveInSequence) {
  Mix mixer;
  for (unsigned seed = 0; seed < unsigned(scaled(40)); ++seed) {
    std::mt19937 random(seed);
    Program program{randomOps(random, 24)};
    const int trips = 3;
    Machine machine(int(program.ops.size()), 1 + int64_t(seed % 7));
    RandomDelays delays(seed);
    machine.device->observeWork(&delays);
    for (int trip = 0; trip < trips; ++trip)
      give(machine.device->queues(), program, mixer);
    const Status s = machine.device->synchronize();
    ASSERT_TRUE(s) << s.message();
    ASSERT_EQ(machine.cells(), runInSequence(program.ops, trips)) << seed;
  }
}

TEST(Queues, AWaitThatIsLeftOutIsSeen) {
  // d2h reads cell 0 late; compute overwrites it meanwhile.
  Mix mixer;
  Program program{{{Engine::Compute, 1, 0, 7},
                   {Engine::ToHost, 0, 0, 0},
                   {Engine::Compute, 2, 0, 9}}};
  for (int without : {-1, 2}) {
    program.without = without;
    Machine machine(3);
    Delay delay(Engine::ToHost, 30);
    machine.device->observeWork(&delay);
    give(machine.device->queues(), program, mixer);
    ASSERT_TRUE(machine.device->synchronize());
    EXPECT_EQ(machine.cells() == runInSequence(program.ops, 1), without < 0);
  }
}

TEST(Queues, AnEventIsItsLatestRecordWhateverTheTiming) {
  // The event is recorded on write, which is held, then on d2h: who waits for
  // the second doesn't wait for the first.
  Machine machine(1);
  Hold hold(Engine::FileWrite);
  machine.device->observeWork(&hold);
  Queues &q = machine.device->queues();
  q.writeFile(0, 0, q.host(), kCell);
  q.record(Engine::FileWrite, 0);
  q.copy(1, Engine::ToHost, q.host() + kCell, q.device(), kCell);
  q.record(Engine::ToHost, 0);
  q.wait(Engine::Compute, 0);
  EXPECT_EQ(std::memcmp(q.host() + kCell, q.device(), kCell), 0);
  hold.letGo();
  q.record(Engine::FileWrite, 0);
  q.wait(Engine::Compute, 0);
  ASSERT_TRUE(machine.device->synchronize());
  std::vector<char> written(static_cast<size_t>(kCell));
  ASSERT_TRUE(machine.file->read(0, written.data(), kCell));
  EXPECT_EQ(std::memcmp(written.data(), q.host(), kCell), 0);
}

TEST(Queues, CopiesWithARateTakeTheirTimeAsleep) {
  const int64_t bytes = 8 << 20;
  std::vector<char> from(size_t(bytes), 1), to(static_cast<size_t>(bytes));
  timespec cpu0, cpu1;
  const double begin = secondsNow();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu0);
  copyAtRate(to.data(), from.data(), bytes, 100e6);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu1);
  const double seconds = secondsNow() - begin;
  EXPECT_GE(seconds, double(bytes) / 100e6);
  EXPECT_LT(double(cpu1.tv_sec - cpu0.tv_sec) +
                double(cpu1.tv_nsec - cpu0.tv_nsec) * 1e-9,
            0.5 * seconds);
  EXPECT_EQ(from, to);
}

TEST(Queues, TheFirstErrorWinsAndTheRestIsSkipped) {
  Mix mixer;
  Machine machine(2);
  Queues &q = machine.device->queues();
  std::vector<char> before(q.device(), q.device() + kCell);
  q.readFile(0, q.host(), 100 * kFileBlockBytes, kCell); // outside the file
  q.record(Engine::FileRead, 0);
  q.wait(Engine::ToDevice, 0);
  q.copy(1, Engine::ToDevice, q.device(), q.host() + kCell, kCell);
  q.readFile(2, q.host(), 1, kCell);
  const Status s = machine.device->synchronize();
  EXPECT_EQ(s.code(), Code::Defect);
  EXPECT_NE(s.message().find("is outside"), std::string::npos) << s.message();
  EXPECT_EQ(std::memcmp(before.data(), q.device(), kCell), 0);
  // It is told once; then the engines work again.
  q.copy(1, Engine::ToDevice, q.device(), q.host() + kCell, kCell);
  EXPECT_TRUE(machine.device->synchronize());
  EXPECT_EQ(std::memcmp(q.host() + kCell, q.device(), kCell), 0);
}

TEST(Queues, AnEngineThatTheTableDoesNotNameIsADefect) {
  std::unique_ptr<Device> device;
  ASSERT_TRUE(createDevice({.threads = 1}, device));
  ASSERT_TRUE(device->allocateArena(kCell));
  ASSERT_TRUE(device->allocateHostArena(kCell));
  ASSERT_TRUE(device->startQueues({}));
  Queues &q = device->queues();
  q.copy(0, Engine::ToHost, q.host(), q.device(), kCell);
  const Status s = device->synchronize();
  EXPECT_EQ(s.code(), Code::Defect);
  EXPECT_NE(s.message().find("'d2h'"), std::string::npos) << s.message();
}
