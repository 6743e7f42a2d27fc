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
constexpr int cellsIn(SpaceKind space) {
  return infoOf(space).hasAddresses ? 6 : 4;
}
constexpr int kFileCells = cellsIn(SpaceKind::File);

/// One step of a random program: work on one engine from cells to a cell.
struct Op {
  EngineKind engine;
  int from = 0, to = 0;
  uint64_t salt = 0;
};

/// What an op reads and writes, as numbers of cells of all spaces.
struct Touched {
  int reads, writes;
};
/// Cells are numbered from one space to the next.
constexpr int cellOf(SpaceKind space, int i) {
  for (const SpaceInfo &before : kSpaces)
    if (before.kind < space)
      i += cellsIn(before.kind);
  return i;
}
constexpr int kCells = cellOf(SpaceKind(kSpaceCount), 0);

Touched touched(const Op &op) {
  const EngineInfo &engine = infoOf(op.engine);
  return {cellOf(engine.reads, op.from), cellOf(engine.writes, op.to)};
}

std::vector<Op> randomOps(std::mt19937 &random, int count) {
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  std::vector<Op> ops;
  std::set<int> written; // cells of the file
  while (int(ops.size()) < count) {
    Op op{EngineKind(below(int(kEngineCount))), 0, 0, random()};
    if (op.engine == EngineKind::Network) // It has no queue of its own.
      continue;
    const EngineInfo &engine = infoOf(op.engine);
    op.from = below(cellsIn(engine.reads));
    op.to = below(cellsIn(engine.writes));
    if (engine.reads == SpaceKind::File && !written.count(op.from))
      continue;
    if (engine.writes == SpaceKind::File)
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
      if (!infoOf(op.engine).copies)
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

/// The distance of two cells of a space.
int64_t cellBytes(SpaceKind space) {
  return space == SpaceKind::File ? kFileBlockBytes : kCell;
}

/// As an emitter would: before each op its engine waits for the last op on each
/// other engine that touches what it touches.
void give(Queues &q, const Program &program, Mix &mixer) {
  const std::vector<Op> &ops = program.ops;
  auto device = [&](int c) { return q.arena(SpaceKind::Device) + c * kCell; };
  auto host = [&](int c) { return q.arena(SpaceKind::Host) + c * kCell; };
  const auto count = int(ops.size());
  for (int i = 0; i < count; ++i) {
    const Op &op = ops[size_t(i)];
    const Touched mine = touched(op);
    PerEngine<bool> waited;
    // All trips: what stands behind it in the list touched the cell as well.
    for (int back = 1; back <= count && i != program.without; ++back) {
      const int j = (i + count - back) % count;
      const Op &other = ops[size_t(j)];
      const Touched its = touched(other);
      if (other.engine == op.engine || waited[other.engine] ||
          !(its.writes == mine.reads || its.writes == mine.writes ||
            its.reads == mine.writes))
        continue;
      waited[other.engine] = true;
      q.wait(op.engine, j);
    }
    switch (op.engine) {
    case EngineKind::Compute:
      mix(reinterpret_cast<uint64_t *>(device(op.to)),
          reinterpret_cast<const uint64_t *>(device(op.from)), op.salt);
      q.launched(i);
      break;
    case EngineKind::Host:
      q.beside(i, engine("host"), mixer, {host(op.from)}, {host(op.to)},
               reinterpret_cast<void *>(op.salt));
      break;
    default:
      q.copy(i, op.engine, op.to * cellBytes(infoOf(op.engine).writes),
             op.from * cellBytes(infoOf(op.engine).reads), kCell);
      break;
    }
    q.record(op.engine, i);
  }
}

struct Machine {
  TemporaryDirectory directory;
  std::unique_ptr<SwapFile> file;
  std::unique_ptr<Device> device;

  explicit Machine(int events, int64_t depth = 8, double rate = 0) {
    EXPECT_TRUE(SwapFile::create(directory.path, kFileCells * kFileBlockBytes,
                                 {}, file));
    DeviceOptions options;
    options.threads = 1;
    options.hostThreads = 2;
    options.linkBytesPerSecond = rate;
    EXPECT_TRUE(createDevice(options, device));
    for (const SpaceInfo &space : kSpaces)
      if (space.hasAddresses) {
        EXPECT_TRUE(
            device->allocateArena(space.kind, cellsIn(space.kind) * kCell));
      }
    QueueNeeds needs;
    needs.engines = PerEngine<bool>::all(true);
    needs.engines[EngineKind::Compute] = false;
    needs.events = events;
    needs.depth = depth;
    needs.file = file.get();
    EXPECT_TRUE(device->startQueues(needs));
    Cells start = startCells();
    visit([&](SpaceKind space, int c, char *arena) {
      char *bytes = cell(start, space, c);
      if (arena)
        std::memcpy(arena + c * kCell, bytes, kCell);
      else
        EXPECT_TRUE(file->write(c * kFileBlockBytes, bytes, kCell));
    });
  }

  Cells cells() {
    Cells all = startCells();
    visit([&](SpaceKind space, int c, char *arena) {
      char *bytes = cell(all, space, c);
      if (arena)
        std::memcpy(bytes, arena + c * kCell, kCell);
      else
        EXPECT_TRUE(file->read(c * kFileBlockBytes, bytes, kCell));
    });
    return all;
  }

private:
  static char *cell(Cells &cells, SpaceKind space, int i) {
    return reinterpret_cast<char *>(cells[size_t(cellOf(space, i))].data());
  }
  /// Calls `f(space, cell, arena)` for each cell; the file has no arena.
  template <typename F> void visit(F f) {
    for (auto [space, arena] : device->arenas())
      for (int c = 0; c < cellsIn(space.kind); ++c)
        f(space.kind, c, arena);
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
  Program program{{{EngineKind::Compute, 1, 0, 7},
                   {EngineKind::DeviceToHost, 0, 0, 0},
                   {EngineKind::Compute, 2, 0, 9}}};
  for (int without : {-1, 2}) {
    program.without = without;
    Machine machine(3);
    Delay delay(EngineKind::DeviceToHost, 30);
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
  Hold hold(EngineKind::FileWrite);
  machine.device->observeWork(&hold);
  Queues &q = machine.device->queues();
  q.copy(0, EngineKind::FileWrite, 0, 0, kCell);
  q.record(EngineKind::FileWrite, 0);
  q.copy(1, EngineKind::DeviceToHost, kCell, 0, kCell);
  q.record(EngineKind::DeviceToHost, 0);
  q.wait(EngineKind::Compute, 0);
  EXPECT_EQ(std::memcmp(q.arena(SpaceKind::Host) + kCell,
                        q.arena(SpaceKind::Device), kCell),
            0);
  hold.letGo();
  q.record(EngineKind::FileWrite, 0);
  q.wait(EngineKind::Compute, 0);
  ASSERT_TRUE(machine.device->synchronize());
  std::vector<char> written(static_cast<size_t>(kCell));
  ASSERT_TRUE(machine.file->read(0, written.data(), kCell));
  EXPECT_EQ(std::memcmp(written.data(), q.arena(SpaceKind::Host), kCell), 0);
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
  std::vector<char> before(q.arena(SpaceKind::Device),
                           q.arena(SpaceKind::Device) + kCell);
  q.copy(0, EngineKind::FileRead, 0, 100 * kFileBlockBytes,
         kCell); // outside the file
  q.record(EngineKind::FileRead, 0);
  q.wait(EngineKind::HostToDevice, 0);
  q.copy(1, EngineKind::HostToDevice, 0, kCell, kCell);
  q.copy(2, EngineKind::FileRead, 0, 1, kCell);
  const Status s = machine.device->synchronize();
  EXPECT_EQ(s.code(), Code::Defect);
  EXPECT_NE(s.message().find("is outside"), std::string::npos) << s.message();
  EXPECT_EQ(std::memcmp(before.data(), q.arena(SpaceKind::Device), kCell), 0);
  // It is told once; then the engines work again.
  q.copy(1, EngineKind::HostToDevice, 0, kCell, kCell);
  EXPECT_TRUE(machine.device->synchronize());
  EXPECT_EQ(std::memcmp(q.arena(SpaceKind::Host) + kCell,
                        q.arena(SpaceKind::Device), kCell),
            0);
}

TEST(Queues, AnEngineThatTheTableDoesNotNameIsADefect) {
  std::unique_ptr<Device> device;
  ASSERT_TRUE(createDevice({.threads = 1}, device));
  ASSERT_TRUE(device->allocateArena(SpaceKind::Device, kCell));
  ASSERT_TRUE(device->allocateArena(SpaceKind::Host, kCell));
  ASSERT_TRUE(device->startQueues({}));
  Queues &q = device->queues();
  q.copy(0, EngineKind::DeviceToHost, 0, 0, kCell);
  const Status s = device->synchronize();
  EXPECT_EQ(s.code(), Code::Defect);
  EXPECT_NE(s.message().find("'d2h'"), std::string::npos) << s.message();
}
