//===- FaultsTest.cpp - planted faults of kernels -------------------------===//
//
// Kernels with one fault each. Every one is found under every seed that is
// tried, with its kind, its kernel, a block and a thread, and its source line;
// the kernels without a fault are accused under none.
//
// A line that must be named ends in `// FAULT name`; the test reads it from
// this file. The statement stands on that line whole: of one that goes over
// two, the compiler may name either. Where a race may be named at either of its
// two accesses, both are marked.
//
//===----------------------------------------------------------------------===//

#include "test/cuda/Faults.h"

using namespace tmc::emulator;
using namespace tmc::test;

namespace {

constexpr int kThreads = 64;

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

__global__ void withBarrier(float *x) {
  __shared__ float s[kThreads];
  const int i = int(threadIdx.x);
  s[i] = x[i];
  __syncthreads();
  x[i] = s[(i + 1) % kThreads];
}
__global__ void droppedBarrier(float *x) {
  __shared__ float s[kThreads];
  const int i = int(threadIdx.x);
  s[i] = float(i);              // FAULT droppedBarrier
  x[i] = s[(i + 1) % kThreads]; // FAULT droppedBarrier
}
__global__ void reusedTooEarly(float *x) {
  __shared__ float s[kThreads];
  const int i = int(threadIdx.x);
  for (int round = 0; round < 2; ++round) {
    s[i] = float(i + round); // FAULT reusedTooEarly
    __syncthreads();
    x[i] += s[(i + 1) % kThreads]; // FAULT reusedTooEarly
  }
}
__global__ void barrierLeftOutOfTheLoop(float *x) {
  __shared__ float s[kThreads];
  const int i = int(threadIdx.x);
  s[i] = x[i];
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2)
    if (i < step)
      s[i] += s[i + step]; // FAULT barrierLeftOutOfTheLoop
  __syncthreads();
  x[i] = s[0];
}
__global__ void secondWriter(float *x) {
  __shared__ float s;
  if (threadIdx.x % 32 == 0)
    s = 1; // FAULT secondWriter
  __syncthreads();
  x[threadIdx.x] = s;
}
__global__ void warpWithoutSync(float *x) {
  __shared__ float s[32];
  const int i = int(threadIdx.x);
  s[i] = float(i);  // FAULT warpWithoutSync
  x[i] = s[31 - i]; // FAULT warpWithoutSync
}
__global__ void warpWithSync(float *x) {
  __shared__ float s[32];
  const int i = int(threadIdx.x);
  s[i] = float(i);
  __syncwarp();
  x[i] = s[31 - i];
}
__global__ void syncOfHalfAWarp(float *x) {
  __shared__ float s[32];
  const int i = int(threadIdx.x);
  s[i] = float(i); // FAULT syncOfHalfAWarp
  __syncwarp(i < 16 ? 0x0000ffffu : 0xffff0000u);
  x[i] = s[31 - i]; // FAULT syncOfHalfAWarp
}
__global__ void shuffleAsBarrier(float *x) {
  __shared__ float s[32];
  const int i = int(threadIdx.x);
  s[i] = float(i); // FAULT shuffleAsBarrier
  const int other = __shfl_xor_sync(~0u, i, 1);
  x[i] = s[other]; // FAULT shuffleAsBarrier
}
__global__ void blocksAddUp(float *x) {
  if (threadIdx.x == 0)
    x[0] += 1; // FAULT blocksAddUp
}
__global__ void neighboursRow(float *x) {
  const int row = int(blockIdx.x), rows = int(gridDim.x);
  const int i = int(threadIdx.x);
  x[row * kThreads + i] = float(row);                 // FAULT neighboursRow
  const float y = x[(row + 1) % rows * kThreads + i]; // FAULT neighboursRow
  if (y == 42)
    x[row * kThreads + i] = y;
}
__global__ void stencilInPlace(float *x) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i > 0)
    x[i] = x[i] + x[i - 1]; // FAULT stencilInPlace
}
__global__ void globalWithoutBarrier(float *x) {
  const int i = int(threadIdx.x);
  x[i] = float(i);                        // FAULT globalWithoutBarrier
  const float y = x[(i + 32) % kThreads]; // FAULT globalWithoutBarrier
  __syncthreads();
  x[i] = y;
}
__global__ void plainBesideAtomic(int *x) {
  if (threadIdx.x == 0)
    x[0] = 1; // FAULT plainBesideAtomic
  else
    atomicCAS(x, 0, 1); // FAULT plainBesideAtomic
}
__global__ void atomicsOnly(int *x) { atomicCAS(x, 0, 1); }
__global__ void bytesOfAWord(unsigned char *x) {
  __shared__ unsigned char s[kThreads];
  const int i = int(threadIdx.x);
  s[i] = (unsigned char)i;
  __syncthreads();
  x[i] = s[(i + 1) % kThreads];
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

__global__ void haloBefore(const float *x, float *y) {
  const int i = int(threadIdx.x);
  y[i] = x[i] + x[i - 1]; // FAULT haloBefore
}
__global__ void writesBehind(float *x) {
  x[threadIdx.x + 1] = 0; // FAULT writesBehind
}
__global__ void noGuard(float *x) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  x[i] = 0; // FAULT noGuard
}
__global__ void dynamicTooShort(float *x) {
  TMC_DYNAMIC_SHARED(memory);
  float *s = reinterpret_cast<float *>(memory);
  const int i = int(threadIdx.x);
  s[i] = 1; // FAULT dynamicTooShort
  x[i] = float(i);
}
__global__ void indexTooLarge(float *x, int shift) {
  __shared__ float s[kThreads];
  const int i = int(threadIdx.x);
  s[i] = 1;
  x[i] = s[i + shift]; // FAULT indexTooLarge
}
__global__ void columnTooLarge(float *x, int shift) {
  __shared__ float s[4][16];
  const int i = int(threadIdx.x);
  s[i / 16][i % 16] = 1;
  __syncthreads();
  x[i] = s[i / 16][i % 16 + shift]; // FAULT columnTooLarge
}
__device__ __attribute__((noinline)) float readAt(const float *p, int i) {
  return p[i]; // FAULT behindAVariable
}
__global__ void behindAVariable(float *x) {
  __shared__ float s[kThreads];
  const int i = int(threadIdx.x);
  s[i] = 1;
  __syncthreads();
  x[i] = readAt(s, i + 1);
}
__global__ void readsIt(const float *x, float *y) {
  y[threadIdx.x] = x[threadIdx.x]; // FAULT readsIt
}

//===----------------------------------------------------------------------===//
// What was never written
//===----------------------------------------------------------------------===//

__global__ void assumedZero(float *x) {
  __shared__ float s[kThreads];
  const int i = int(threadIdx.x);
  s[i] += x[i]; // FAULT assumedZero
  x[i] = s[i];
}
__global__ void keptFromTheLastBlock(float *x) {
  __shared__ float s;
  if (blockIdx.x == 0 && threadIdx.x == 0)
    s = 7;
  __syncthreads();
  if (blockIdx.x == 1 && threadIdx.x == 0)
    x[0] = s; // FAULT keptFromTheLastBlock
}
__global__ void halfFilled(float *x) {
  TMC_DYNAMIC_SHARED(memory);
  float *s = reinterpret_cast<float *>(memory);
  const int i = int(threadIdx.x);
  if (i < kThreads / 2)
    s[i] = 1;
  __syncthreads();
  x[i] = s[i]; // FAULT halfFilled
}
__global__ void oneLaneMissing(float *x) {
  __shared__ float4 s;
  if (threadIdx.x < 3)
    (&s.x)[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0)
    *reinterpret_cast<float4 *>(x) = s; // FAULT oneLaneMissing
}

//===----------------------------------------------------------------------===//
// Alignment
//===----------------------------------------------------------------------===//

__global__ void vectorLoad(const float *x, float *y, int shift) {
  const float4 *from = reinterpret_cast<const float4 *>(x + shift);
  const float4 v = *from; // FAULT vectorLoad
  y[threadIdx.x] = v.x + v.w;
}
__global__ void vectorStore(float *x, int shift) {
  if (threadIdx.x == 0)
    *reinterpret_cast<float2 *>(x + shift) = float2{1, 2}; // FAULT vectorStore
}
__global__ void doubleInShared(float *x, int shift) {
  TMC_DYNAMIC_SHARED(memory);
  double *s = reinterpret_cast<double *>(memory + shift);
  if (threadIdx.x == 0)
    s[0] = 1; // FAULT doubleInShared
  x[threadIdx.x] = 0;
}

//===----------------------------------------------------------------------===//
// Barriers and warps
//===----------------------------------------------------------------------===//

__global__ void barrierOfSome(float *x) {
  if (threadIdx.x < 32)
    __syncthreads(); // FAULT barrierOfSome
  x[threadIdx.x] = 0;
}
__global__ void twoBarriers(float *x) {
  if (threadIdx.x < 32)
    __syncthreads(); // FAULT twoBarriers
  else
    __syncthreads(); // FAULT twoBarriers
  x[threadIdx.x] = 0;
}
__global__ void leftBeforeTheBarrier(float *x, int count) {
  if (int(threadIdx.x) >= count)
    return;
  __syncthreads(); // FAULT leftBeforeTheBarrier
  x[threadIdx.x] = 0;
}
__global__ void barrierAgainstWarp(float *x) {
  if (threadIdx.x < 16)
    __syncwarp(); // FAULT barrierAgainstWarp
  else
    __syncthreads();
  x[threadIdx.x] = 0;
}
__global__ void shortMask(float *x) {
  const int i = int(threadIdx.x);
  x[i] = __shfl_xor_sync(0x0000ffffu, x[i], 1); // FAULT shortMask
}
__global__ void laneOutsideTheMask(float *x) {
  const int i = int(threadIdx.x);
  if (i < 16)
    x[i] = __shfl_down_sync(0xffffu, x[i], 8); // FAULT laneOutsideTheMask
}
__global__ void laneThatLeft(float *x) {
  const int i = int(threadIdx.x);
  if (i >= 16)
    return;
  x[i] = __shfl_xor_sync(~0u, x[i], 16); // FAULT laneThatLeft
}
__global__ void shuffleOfSome(float *x) {
  const int i = int(threadIdx.x);
  if (i < 16)
    x[i] = __shfl_xor_sync(~0u, x[i], 1); // FAULT shuffleOfSome
  __syncthreads();
}
__global__ void twoMasks(int *x) {
  const unsigned mask = threadIdx.x < 8 ? ~0u : 0xffffff00u;
  x[threadIdx.x] = __any_sync(mask, 1); // FAULT twoMasks
  __syncthreads();
}
__global__ void segments(float *x) {
  const float a = __shfl_xor_sync(~0u, x[threadIdx.x], 4, 8);
  const float b = __shfl_up_sync(~0u, a, 1, 16);
  x[threadIdx.x] = __shfl_sync(~0u, b, 3) + __shfl_down_sync(~0u, b, 2);
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

__global__ void muchShared(float *x) {
  __shared__ float s[8 << 10];
  s[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x] = s[kThreads - 1 - threadIdx.x];
}

struct Floats : Device<float> {
  explicit Floats(int64_t count = kThreads) : Device(count) {}
};

} // namespace

#define RUN(kernel, grid, block, shared, ...)                                  \
  TMC_LAUNCH(kernel, dim3(grid), dim3(block), shared, nullptr, __VA_ARGS__)

TEST(Faults, Races) {
  Floats x, two(2 * kThreads);
  float *p = x.written(), *q = two.written();
  int *n = reinterpret_cast<int *>(p);
  expectFault(FaultKind::Race, "droppedBarrier",
              [=] { RUN(droppedBarrier, 1, kThreads, 0, p); });
  expectFault(FaultKind::Race, "reusedTooEarly",
              [=] { RUN(reusedTooEarly, 1, kThreads, 0, p); });
  expectFault(FaultKind::Race, "barrierLeftOutOfTheLoop",
              [=] { RUN(barrierLeftOutOfTheLoop, 1, kThreads, 0, p); });
  expectFault(FaultKind::Race, "secondWriter",
              [=] { RUN(secondWriter, 1, kThreads, 0, p); });
  expectFault(FaultKind::Race, "warpWithoutSync",
              [=] { RUN(warpWithoutSync, 1, 32, 0, p); });
  expectFault(FaultKind::Race, "syncOfHalfAWarp",
              [=] { RUN(syncOfHalfAWarp, 1, 32, 0, p); });
  expectFault(FaultKind::Race, "shuffleAsBarrier",
              [=] { RUN(shuffleAsBarrier, 1, 32, 0, p); });
  expectFault(FaultKind::Race, "blocksAddUp",
              [=] { RUN(blocksAddUp, 4, 32, 0, p); });
  expectFault(FaultKind::Race, "neighboursRow",
              [=] { RUN(neighboursRow, 2, kThreads, 0, q); });
  expectFault(FaultKind::Race, "stencilInPlace",
              [=] { RUN(stencilInPlace, 2, kThreads, 0, q); });
  expectFault(FaultKind::Race, "globalWithoutBarrier",
              [=] { RUN(globalWithoutBarrier, 1, kThreads, 0, p); });
  expectFault(FaultKind::Race, "plainBesideAtomic",
              [=] { RUN(plainBesideAtomic, 1, 32, 0, n); });
  expectClean([=] {
    RUN(withBarrier, 1, kThreads, 0, p);
    RUN(warpWithSync, 1, 32, 0, p);
    RUN(atomicsOnly, 2, 32, 0, n);
    RUN(bytesOfAWord, 1, kThreads, 0, reinterpret_cast<unsigned char *>(p));
    RUN(segments, 1, 32, 0, q);
  });
}

TEST(Faults, Bounds) {
  Floats x, y;
  float *p = x.written(), *q = y.written();
  expectFault(FaultKind::OutOfBounds, "haloBefore",
              [=] { RUN(haloBefore, 1, kThreads, 0, p, q); });
  expectFault(FaultKind::OutOfBounds, "writesBehind",
              [=] { RUN(writesBehind, 1, kThreads, 0, p); });
  expectFault(FaultKind::OutOfBounds, "noGuard",
              [=] { RUN(noGuard, 2, 48, 0, p); });
  expectFault(FaultKind::OutOfBounds, "dynamicTooShort",
              [=] { RUN(dynamicTooShort, 1, kThreads, 4 * kThreads - 4, p); });
  expectFault(FaultKind::OutOfBounds, "indexTooLarge",
              [=] { RUN(indexTooLarge, 1, kThreads, 0, p, kThreads); });
  expectFault(FaultKind::OutOfBounds, "columnTooLarge",
              [=] { RUN(columnTooLarge, 1, kThreads, 0, p, 8); });
  expectFault(FaultKind::OutOfBounds, "behindAVariable",
              [=] { RUN(behindAVariable, 1, kThreads, 0, p); });
  expectFault(FaultKind::OutOfBounds, "readsIt", [=] {
    Floats gone;
    const float *r = gone.written();
    gone.free();
    RUN(readsIt, 1, kThreads, 0, r, q);
  });
  expectFault(FaultKind::OutOfBounds, "readsIt", [=] {
    allowHostMemory(false);
    float *copy = new float[kThreads]();
    RUN(readsIt, 1, kThreads, 0, copy, q);
    cudaDeviceSynchronize();
    allowHostMemory(true);
    delete[] copy;
  });
}

TEST(Faults, Unwritten) {
  Floats x, y;
  float *p = x.written(), *q = y.written();
  expectFault(FaultKind::Uninitialised, "assumedZero",
              [=] { RUN(assumedZero, 1, kThreads, 0, p); });
  expectFault(FaultKind::Uninitialised, "keptFromTheLastBlock",
              [=] { RUN(keptFromTheLastBlock, 2, kThreads, 0, p); });
  expectFault(FaultKind::Uninitialised, "halfFilled",
              [=] { RUN(halfFilled, 1, kThreads, 4 * kThreads, p); });
  expectFault(FaultKind::Uninitialised, "oneLaneMissing",
              [=] { RUN(oneLaneMissing, 1, kThreads, 0, p); });
  expectFault(FaultKind::Uninitialised, "readsIt", [=] {
    Floats fresh;
    const float *r = fresh.get();
    RUN(readsIt, 1, kThreads, 0, r, q);
    cudaDeviceSynchronize();
  });
}

/// What is remembered of large buffers is remembered by blocks.
TEST(Faults, LargeBuffers) {
  const int64_t count = 1 << 20, far = 300000;
  Floats y;
  float *q = y.written();
  expectFault(FaultKind::Uninitialised, "readsIt", [=] {
    Floats large(count);
    const float *r = large.get() + far;
    RUN(readsIt, 1, kThreads, 0, r, q);
    cudaDeviceSynchronize();
  });
  expectFault(FaultKind::Uninitialised, "readsIt", [=] {
    Floats large(count);
    const float *r = large.written() + far;
    forget(r + 10, 4);
    RUN(readsIt, 1, kThreads, 0, r, q);
    cudaDeviceSynchronize();
  });
  expectFault(FaultKind::OutOfBounds, "readsIt", [=] {
    Floats large(count);
    const float *r = large.written() + count - kThreads + 1;
    RUN(readsIt, 1, kThreads, 0, r, q);
    cudaDeviceSynchronize();
  });
  expectFault(FaultKind::OutOfBounds, "readsIt", [=] {
    Floats large(count);
    const float *r = large.written() + far;
    large.free();
    RUN(readsIt, 1, kThreads, 0, r, q);
    cudaDeviceSynchronize();
  });
  expectFault(
      FaultKind::Uninitialised, "a copy of what one launch left out",
      [=] {
        Floats large(count), copy(count);
        float *r = large.written();
        forget(r + far, 4);
        cudaMemcpyAsync(copy.get(), r, count * 4, cudaMemcpyDeviceToDevice,
                        nullptr);
        cudaDeviceSynchronize();
      },
      true);
  expectClean([=] {
    Floats large(count);
    const float *r = large.written() + far, *end = r - far + count - kThreads;
    RUN(readsIt, 1, kThreads, 0, r, q);
    RUN(readsIt, 1, kThreads, 0, end, q);
    cudaDeviceSynchronize();
  });
}

TEST(Faults, Alignment) {
  Floats x, y;
  float *p = x.written(), *q = y.written();
  expectFault(FaultKind::Misaligned, "vectorLoad",
              [=] { RUN(vectorLoad, 1, 32, 0, p, q, 1); });
  expectFault(FaultKind::Misaligned, "vectorStore",
              [=] { RUN(vectorStore, 1, 32, 0, p, 1); });
  expectFault(FaultKind::Misaligned, "doubleInShared",
              [=] { RUN(doubleInShared, 1, 32, 64, p, 4); });
  expectClean([=] {
    RUN(vectorLoad, 1, 32, 0, p, q, 4);
    RUN(vectorStore, 1, 32, 0, p, 2);
    RUN(doubleInShared, 1, 32, 64, p, 8);
  });
}

TEST(Faults, Barriers) {
  Floats x;
  float *p = x.written();
  expectFault(FaultKind::Barrier, "barrierOfSome",
              [=] { RUN(barrierOfSome, 1, kThreads, 0, p); });
  expectFault(FaultKind::Barrier, "twoBarriers",
              [=] { RUN(twoBarriers, 1, kThreads, 0, p); });
  expectFault(FaultKind::Barrier, "leftBeforeTheBarrier",
              [=] { RUN(leftBeforeTheBarrier, 1, kThreads, 0, p, 50); });
  expectFault(FaultKind::Warp, "barrierAgainstWarp",
              [=] { RUN(barrierAgainstWarp, 1, 32, 0, p); });
  expectClean([=] { RUN(leftBeforeTheBarrier, 1, kThreads, 0, p, 64); });
}

TEST(Faults, Warps) {
  Floats x;
  float *p = x.written();
  int *n = reinterpret_cast<int *>(p);
  expectFault(FaultKind::Warp, "shortMask",
              [=] { RUN(shortMask, 1, 32, 0, p); });
  expectFault(FaultKind::Warp, "laneOutsideTheMask",
              [=] { RUN(laneOutsideTheMask, 1, 32, 0, p); });
  expectFault(FaultKind::Warp, "laneThatLeft",
              [=] { RUN(laneThatLeft, 1, 32, 0, p); });
  expectFault(FaultKind::Warp, "shuffleOfSome",
              [=] { RUN(shuffleOfSome, 1, 32, 0, p); });
  expectFault(FaultKind::Warp, "twoMasks", [=] { RUN(twoMasks, 1, 32, 0, n); });
}

TEST(Faults, Limits) {
  Floats x;
  float *p = x.written();
  expectFault(FaultKind::SharedLimit, "muchShared",
              [=] { RUN(muchShared, 1, kThreads, 20 << 10, p); });
  expectClean([=] { RUN(muchShared, 1, kThreads, 16 << 10, p); });
  const struct {
    dim3 grid, block;
    size_t shared;
  } refused[] = {
      {dim3(1), dim3(1025), 0},        {dim3(1, 65536), dim3(32), 0},
      {dim3(1, 1, 65536), dim3(1), 0}, {dim3(1), dim3(1, 1, 65), 0},
      {dim3(0), dim3(32), 0},          {dim3(1), dim3(32), 50 << 10}};
  for (const auto &l : refused) {
    TMC_LAUNCH(noGuard, l.grid, l.block, l.shared, nullptr, p);
    EXPECT_NE(cudaGetLastError(), cudaSuccess);
  }
}
