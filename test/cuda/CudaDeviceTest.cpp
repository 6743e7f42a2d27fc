//===- CudaDeviceTest.cpp - the cuda device, emulated ---------------------===//
//
// Transfers, errors and faults of the device; and that the emulator itself
// notices what it is there for.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"

#include "runtime/cuda/Gemm.h"
#include "runtime/cuda/Launch.h"
#include "runtime/kernels/Attention.h"
#include "runtime/kernels/Embedding.h"
#include "runtime/kernels/Optimizer.h"

#include <bit>
#include <cstring>

using namespace tmc;
using namespace tmc::test;

TEST(CudaDevice, TransfersLargerThanItsStaging) {
  auto device = makeDevice(1);
  const int64_t bytes = (21 << 20) + 13;
  ASSERT_TRUE(device->allocateArena(SpaceKind::Device, bytes));
  Buffer<char> from(bytes), to(bytes);
  for (int64_t i = 0; i < bytes; ++i)
    from[i] = char(i * 2654435761u >> 11);
  device->upload(device->arena(SpaceKind::Device), from, bytes);
  device->download(to, device->arena(SpaceKind::Device), bytes);
  EXPECT_TRUE(device->synchronize());
  EXPECT_TRUE(from.sameBits(to));
  device->poison(device->arena(SpaceKind::Device) + 5, 7);
  device->download(to, device->arena(SpaceKind::Device), 16);
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(to[i], i >= 5 && i < 12 ? char(-1) : from[i]) << i;
}

TEST(CudaDevice, ArenaThatDoesNotFit) {
  auto device = makeDevice(1);
  emulator::setMemoryLimit(1 << 20);
  const Status s = device->allocateArena(SpaceKind::Device, 3 << 20);
  emulator::setMemoryLimit(size_t(1) << 34);
  EXPECT_EQ(s.code(), Code::World);
  EXPECT_EQ(s.message(),
            "an arena of 3145728 bytes, and 0 bytes beside it for context and "
            "libraries, don't fit on the device: 1048576 of 1048576 bytes are "
            "free");
  // The failure was told once and isn't an error of what follows.
  EXPECT_TRUE(device->synchronize());
}

TEST(CudaDevice, ErrorsOfALaunchComeWithItsName) {
  auto device = makeDevice(1);
  SquareSum kernel({.type = DType::F32, .count = 4, .scratchBytes = 64});
  ASSERT_TRUE(kernel.prepare(*device));
  Floats x(4, 2.0f), scratch(16), sum(1);
  emulator::failNext("launch");
  kernel.run(device->compute(), {x}, {sum}, scratch);
  const Status s = device->synchronize();
  EXPECT_EQ(s.code(), Code::World);
  EXPECT_EQ(s.message(), "square_sum: an emulated failure");
}

/// A device whose plan reserves `bytes` beside the arena.
std::unique_ptr<Device> deviceWithReserve(int64_t bytes) {
  std::unique_ptr<Device> device;
  DeviceOptions options;
  options.reservedBytes = bytes;
  EXPECT_TRUE(createDevice(options, device));
  return device;
}

TEST(CudaDevice, TheReserveMustFitBesideTheArena) {
  emulator::setMemoryLimit(4 << 20);
  auto device = deviceWithReserve(2 << 20);
  const Status tight = device->allocateArena(SpaceKind::Device, 3 << 20);
  const Status fits = device->allocateArena(SpaceKind::Device, 2 << 20);
  emulator::setMemoryLimit(size_t(1) << 34);
  EXPECT_EQ(tight.code(), Code::World);
  EXPECT_EQ(tight.message(),
            "an arena of 3145728 bytes, and 2097152 bytes beside it for "
            "context and libraries, don't fit on the device: 4194304 of "
            "4194304 bytes are free");
  EXPECT_TRUE(fits) << fits.message();
}

TEST(CudaDevice, KernelsMayTakeTheReserveAndNoMore) {
  emulator::setMemoryLimit(8 << 20);
  auto device = deviceWithReserve(2 << 20);
  emulator::setMemoryLimit(6 << 20);
  const Status within = device->checkReserve();
  emulator::setMemoryLimit((6 << 20) - 1);
  const Status over = device->checkReserve();
  emulator::setMemoryLimit(size_t(1) << 34);
  EXPECT_TRUE(within) << within.message();
  EXPECT_EQ(over.code(), Code::OverBudget);
  EXPECT_EQ(over.message(),
            "preparing the kernels took 2097153 bytes of the device beside the "
            "arena (what other programs took meanwhile included); the plan "
            "reserved 2097152");
}

namespace {
/// A lookup of row 9 in a table of 4.
struct WrongLookup {
  Embedding kernel{{.type = DType::F32,
                    .indexType = DType::I64,
                    .vocabulary = 4,
                    .channels = 3,
                    .rows = 2,
                    .scratchBytes = 0}};
  Floats table{12, 1.0f}, out{6};
  Longs index{2, 9};

  void run(Device &device) {
    kernel.run(device.compute(), {table, index}, {out}, nullptr);
  }
};
} // namespace

TEST(CudaDevice, FaultsAreToldOnce) {
  auto device = makeDevice(1);
  WrongLookup lookup;
  ASSERT_TRUE(lookup.kernel.prepare(*device));
  lookup.run(*device);
  ASSERT_TRUE(device->synchronize());
  EXPECT_TRUE(device->compute().fault.set);
  EXPECT_EQ(device->compute().fault.limit, 4);
  device->compute().fault = {};
  ASSERT_TRUE(device->synchronize());
  EXPECT_FALSE(device->compute().fault.set);
}

TEST(CudaDevice, TheEndOfAStepIsOneCopyAndOneWait) {
  auto device = makeDevice(1);
  ASSERT_TRUE(device->allocateArena(SpaceKind::Device, 4096));
  ASSERT_TRUE(device->allocateArena(SpaceKind::Host, 4096));
  QueueNeeds needs;
  needs.engines[EngineKind::DeviceToHost] = true;
  needs.events = 1;
  ASSERT_TRUE(device->startQueues(needs));
  char *arena = device->arena(SpaceKind::Device);
  WrongLookup lookup;
  ASSERT_TRUE(lookup.kernel.prepare(*device));
  auto calls = [](const char *call) { return emulator::callsOf(call); };
  for (int step = 1; step < 4; ++step) {
    const float loss = 0.5f * float(step);
    const double norm = 0.25 * step;
    const int64_t count = int64_t(step) << 40;
    device->upload(arena, &loss, sizeof loss);
    device->upload(arena + 64, &norm, sizeof norm);
    device->upload(arena + 128, &count, sizeof count);
    StepNumbers numbers;
    numbers[0] = {arena, 4};
    numbers[1] = {arena + 64, 8};
    numbers[4] = {arena + 128, 8};
    if (step == 2)
      lookup.run(*device);
    Queues &queues = device->queues();
    queues.record(EngineKind::Compute, 0);
    queues.wait(EngineKind::DeviceToHost, 0);
    queues.copy(0, EngineKind::DeviceToHost, 0, 128, sizeof count);
    const int64_t waits = calls("cudaStreamSynchronize"),
                  copies = calls("cudaMemcpyAsync"),
                  others = calls("cudaEventSynchronize");
    ASSERT_TRUE(device->synchronize(&numbers));
    EXPECT_EQ(calls("cudaStreamSynchronize") - waits, 1);
    EXPECT_EQ(calls("cudaMemcpyAsync") - copies, 1);
    EXPECT_EQ(calls("cudaEventSynchronize") - others, 0);
    EXPECT_EQ(std::bit_cast<float>(uint32_t(numbers[0].bits)), loss);
    EXPECT_EQ(std::bit_cast<double>(numbers[1].bits), norm);
    EXPECT_EQ(int64_t(numbers[4].bits), count);
    // The copy to the host is over, too.
    EXPECT_EQ(std::memcmp(device->arena(SpaceKind::Host), &count, sizeof count),
              0);
    EXPECT_EQ(device->compute().fault.set, step == 2);
    device->compute().fault = {};
  }
}

/// What sm_75 has no room for is refused before a step, with a way out.
TEST(CudaDevice, AttentionOfWideHeadsNeedsMoreSharedMemory) {
  emulator::setSharedLimit(64 << 10);
  auto device = makeDevice(1);
  emulator::setSharedLimit(99 << 10);
  for (int64_t channels : {64, 128, 256}) {
    AttentionParams p{};
    p.type = DType::F32;
    p.batch = p.heads = p.kvHeads = 1;
    p.queries = p.keys = 4;
    p.headDim = channels;
    p.scratchBytes = 1 << 20;
    Attention forward(p);
    EXPECT_TRUE(forward.prepare(*device));
    AttentionGrad kernel(p);
    const Status s = kernel.prepare(*device);
    if (channels < 256) {
      EXPECT_TRUE(s) << s.message();
    } else {
      EXPECT_EQ(s.message(),
                "attention_grad of heads of 256 channels on cuda needs 67840 "
                "bytes of shared memory for a block; this device has 65536: "
                "take one of compute capability 8.0 or newer");
    }
  }
}

TEST(CudaGemm, ViewsThatAreAlignedToTheirElementOnly) {
  auto device = makeDevice(1);
  cuda::CudaDevice &cuda = cuda::deviceOf(*device);
  Matmul::Params p{.lhs = DType::F32,
                   .rhs = DType::F32,
                   .out = DType::F32,
                   .batch = 2,
                   .m = 3,
                   .n = 5,
                   .k = 4,
                   .transposeLhs = false,
                   .transposeRhs = true,
                   .bias = true,
                   .tf32 = false,
                   .scratchBytes = 1 << 20};
  cuda::Gemm gemm;
  ASSERT_TRUE(gemm.prepare("matmul", cuda, p));
  Floats a = randomFloats(25, 1), b = randomFloats(41, 2);
  Floats bias = randomFloats(5, 3), c(30, 1.0f), scratch((1 << 18) + 16);
  cuda::Queue queue(cuda, device->compute(), "matmul");
  // The workspace isn't aligned either: the stand-in refuses it as it is.
  gemm.run(queue, {a + 1, b + 1, bias}, c, scratch + 16, true);
  ASSERT_TRUE(device->synchronize());
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 5; ++j) {
        double sum = 1 + bias[j];
        for (int64_t l = 0; l < 4; ++l)
          sum += double(a[1 + n * 12 + i * 4 + l]) * b[1 + n * 20 + j * 4 + l];
        EXPECT_NEAR(c[n * 15 + i * 5 + j], sum, 1e-5);
      }
}

TEST(CudaGemm, SaysWhatTheLibraryWants) {
  auto device = makeDevice(1);
  Matmul::Params p{.lhs = DType::F32,
                   .rhs = DType::F32,
                   .out = DType::F32,
                   .batch = 1,
                   .m = 3,
                   .n = 5,
                   .k = 4,
                   .transposeLhs = false,
                   .transposeRhs = false,
                   .bias = false,
                   .tf32 = false,
                   .scratchBytes = 1000};
  cuda::Gemm gemm;
  const Status s = gemm.prepare("matmul", cuda::deviceOf(*device), p);
  EXPECT_EQ(s.code(), Code::OverBudget);
  EXPECT_EQ(s.message(), "matmul on cuda wants 65792 bytes of scratch; 1000 "
                         "were planned");
}
