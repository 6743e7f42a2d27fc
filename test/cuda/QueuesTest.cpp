//===- QueuesTest.cpp - the engines of the cuda backend, emulated ---------===//
//
// Copies on their streams, transfers and updates on threads, under the
// emulator's orders: what is asked for comes, and a wait that is left out is a
// race or another result.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"

#include "runtime/kernels/OnHost.h"
#include "runtime/step/SwapFile.h"
#include "test/cuda/Faults.h"
#include "test/unit/TemporaryDirectory.h"

#include <chrono>
#include <cstring>
#include <thread>

using namespace tmc;
using namespace tmc::test;

namespace {

constexpr int64_t kCell = 4096, kCells = 4;

struct Machine {
  TemporaryDirectory directory;
  std::unique_ptr<SwapFile> file;
  std::unique_ptr<tmc::Device> device = makeDevice(1);

  Machine() {
    EXPECT_TRUE(
        SwapFile::create(directory.path, kCells * kFileBlockBytes, {}, file));
    EXPECT_TRUE(device->allocateArena(SpaceKind::Device, kCells * kCell));
    EXPECT_TRUE(device->allocateArena(SpaceKind::Host, kCells * kCell));
    QueueNeeds needs;
    needs.engines = PerEngine<bool>::all(true);
    needs.engines[EngineKind::Compute] = false;
    needs.events = 8;
    needs.depth = 4;
    needs.file = file.get();
    const Status s = device->startQueues(needs);
    EXPECT_TRUE(s) << s.message();
  }
  Queues &queues() { return device->queues(); }
  char *at(int cell) { return device->arena(SpaceKind::Device) + cell * kCell; }
};

/// Device, host, file and back, `trips` times; each trip moves the cell on.
void roundTrips(Machine &m, int trips) {
  Queues &q = m.queues();
  for (int trip = 0; trip < trips; ++trip) {
    q.record(EngineKind::Compute, 0);
    q.wait(EngineKind::DeviceToHost, 0);
    q.wait(EngineKind::DeviceToHost, 3); // host cell 0 was read
    q.copy(0, EngineKind::DeviceToHost, 0, 0, kCell);
    q.record(EngineKind::DeviceToHost, 1);
    q.wait(EngineKind::FileWrite, 1);
    q.copy(1, EngineKind::FileWrite, 0, 0, kCell);
    q.record(EngineKind::FileWrite, 3);
    q.wait(EngineKind::FileRead, 3);
    q.wait(EngineKind::FileRead, 5); // host cell 1 was read
    q.copy(2, EngineKind::FileRead, kCell, 0, kCell);
    q.record(EngineKind::FileRead, 4);
    q.wait(EngineKind::HostToDevice, 4);
    q.wait(EngineKind::HostToDevice, 0);
    q.copy(3, EngineKind::HostToDevice, kCell, kCell, kCell);
    q.record(EngineKind::HostToDevice, 5);
    q.wait(EngineKind::Compute, 5);
    q.done(3);
  }
}

} // namespace

TEST(CudaQueues, RoundTripsThroughAllSpaces) {
  Machine m;
  std::vector<char> given(static_cast<size_t>(kCell)), got(given);
  for (int turn = 0; turn < 5; ++turn) {
    for (size_t i = 0; i < given.size(); ++i)
      given[i] = char(i * 7 + size_t(turn));
    m.device->upload(m.at(0), given.data(), kCell);
    roundTrips(m, 3);
    const Status s = m.device->synchronize();
    ASSERT_TRUE(s) << s.message();
    m.device->download(got.data(), m.at(1), kCell);
    ASSERT_TRUE(m.device->synchronize());
    ASSERT_EQ(got, given);
  }
}

TEST(CudaQueues, WithoutWaitsOfTheDriverTheCallerWaits) {
  Machine m;
  std::vector<char> given(static_cast<size_t>(kCell), 5), got(given);
  m.device->upload(m.at(0), given.data(), kCell);
  emulator::failNext("cuStreamWaitValue64");
  roundTrips(m, 3);
  const Status s = m.device->synchronize();
  ASSERT_TRUE(s) << s.message();
  m.device->download(got.data(), m.at(1), kCell);
  ASSERT_TRUE(m.device->synchronize());
  EXPECT_EQ(got, given);
}

TEST(CudaQueues, AnEngineThatIsAheadOrdersAsWell) {
  const uint64_t seed = emulator::seed();
  emulator::setSeed(0); // What is queued runs at once.
  Machine m;
  std::vector<char> given(static_cast<size_t>(kCell), 5);
  m.device->upload(m.at(0), given.data(), kCell);
  Queues &q = m.queues();
  q.record(EngineKind::Compute, 0);
  q.wait(EngineKind::DeviceToHost, 0);
  q.copy(0, EngineKind::DeviceToHost, 0, 0, kCell);
  q.record(EngineKind::DeviceToHost, 1);
  q.wait(EngineKind::FileWrite, 1);
  q.copy(1, EngineKind::FileWrite, 0, 0, kCell);
  q.record(EngineKind::FileWrite, 2);
  // Most often the write is over then.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  q.wait(EngineKind::Compute, 2);
  // Behind the write, and so behind the copy: no race.
  m.device->upload(m.at(0), given.data(), kCell);
  const Status s = m.device->synchronize();
  EXPECT_TRUE(s) << s.message();
  emulator::setSeed(seed);
}

TEST(CudaQueues, ErrorsComeWithTheirNames) {
  Machine m;
  std::vector<char> given(static_cast<size_t>(kCell), 5);
  m.device->upload(m.at(0), given.data(), kCell);
  ASSERT_TRUE(m.device->synchronize());
  emulator::failNext("cudaMemcpyAsync");
  m.queues().copy(0, EngineKind::DeviceToHost, 0, 0, kCell);
  Status s = m.device->synchronize();
  EXPECT_EQ(s.message(), "a copy between device and host: an emulated failure");
  m.queues().copy(1, EngineKind::FileRead, 0, 9 * kFileBlockBytes, kCell);
  s = m.device->synchronize();
  EXPECT_EQ(s.code(), Code::Defect);
  EXPECT_NE(s.message().find("is outside"), std::string::npos) << s.message();
  emulator::failNext("cudaHostRegister");
  auto other = makeDevice(1);
  s = other->allocateArena(SpaceKind::Host, 5000);
  EXPECT_EQ(s.code(), Code::World);
  EXPECT_NE(s.message().find("can't pin a host arena of 5000 bytes"),
            std::string::npos)
      << s.message();
}

TEST(CudaQueues, AnArenaThatCannotBePinnedSaysHowMuchCan) {
  emulator::setPinnedLimit(7 << 20);
  auto device = makeDevice(1);
  const Status s = device->allocateArena(SpaceKind::Host, 16 << 20);
  emulator::setPinnedLimit(SIZE_MAX);
  EXPECT_EQ(s.code(), Code::World);
  EXPECT_NE(s.message().find("7 MiB can be pinned now"), std::string::npos)
      << s.message();
  EXPECT_NE(s.message().find("tmc plans for that by --host-budget 7MiB"),
            std::string::npos)
      << s.message();
  const Status after = device->allocateArena(SpaceKind::Host, 16 << 20);
  EXPECT_TRUE(after) << after.message();
}

TEST(CudaQueuesDeathTest, ACopyThatDoesNotWaitIsARace) {
  expectFault(
      emulator::FaultKind::Race, "a copy",
      [] {
        Machine m;
        std::vector<char> given(static_cast<size_t>(kCell), 5);
        m.device->upload(m.at(0), given.data(), kCell);
        ASSERT_TRUE(m.device->synchronize());
        Queues &q = m.queues();
        q.copy(0, EngineKind::DeviceToHost, 0, 0, kCell);
        q.copy(1, EngineKind::HostToDevice, kCell, 0, kCell);
        (void)m.device->synchronize().isOk();
      },
      true, __FILE__);
}
