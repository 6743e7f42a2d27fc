//===- StepFaultsTest.cpp - planted faults of a step's launches -----------===//
//
// A step of three launches in an arena without gaps, and what each of them may
// not touch though it exists (emulator/Steps.h):
//
//     |-- x --|-- w --|-- a --|-- b --|- scratch -|-- y --|     64 floats each
//
//     0  a = f(x)
//     1  b = f(a), with scratch; a and the scratch are dead after it
//     2  y = f(b); b is dead after it
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudaQueues.h"
#include "test/cuda/Faults.h"
#include "test/cuda/emulator/Steps.h"

#include <iterator>
#include <type_traits>

using namespace tmc::emulator;
using namespace tmc::test;

namespace {

constexpr int kCount = 64, kBytes = 4 * kCount;
enum Place { X, W, A, B, Scratch, Y, Places };

tmc::Region at(Place place) {
  return {place * kBytes, kBytes, tmc::DType::F32};
}
const tmc::TensorInfo tensors[] = {{.name = "x",
                                    .type = tmc::DType::F32,
                                    .rank = 1,
                                    .dims = {kCount},
                                    .offset = X * kBytes,
                                    .role = tmc::Role::Param},
                                   {.name = "w",
                                    .type = tmc::DType::F32,
                                    .rank = 1,
                                    .dims = {kCount},
                                    .offset = W * kBytes,
                                    .role = tmc::Role::Param},
                                   {.name = "y",
                                    .type = tmc::DType::F32,
                                    .rank = 1,
                                    .dims = {kCount},
                                    .offset = Y * kBytes,
                                    .role = tmc::Role::Output}};
const tmc::Region regions[] = {at(A), at(B), at(A), at(Scratch), at(Y), at(B)};
const tmc::LaunchInfo launches[] = {
    {"first", "", regions, 1, regions, 0},
    {"second", "", regions + 1, 1, regions + 2, 2},
    {"third", "", regions + 4, 1, regions + 5, 1}};

/// What a launch queues in place of what it should.
using Work = void (*)(float *arena, cudaStream_t stream);
struct Planted {
  int launch = -1;
  Work work = nullptr;
};

__global__ void copyOf(const float *from, float *to) {
  to[threadIdx.x] = from[threadIdx.x];
}
__global__ void throughScratch(const float *from, float *scratch, float *to) {
  scratch[threadIdx.x] = from[threadIdx.x];
  to[threadIdx.x] = scratch[threadIdx.x];
}
__global__ void readsTheNeighbour(const float *from, float *to) {
  to[threadIdx.x] = from[threadIdx.x + 1]; // FAULT readsTheNeighbour
}
__global__ void readsBefore(const float *from, float *to) {
  to[threadIdx.x] = from[int(threadIdx.x) - 1]; // FAULT readsBefore
}
__global__ void writesBehind(const float *from, float *to) {
  const int i = int(threadIdx.x);
  to[i] = from[i];
  if (i == kCount - 1)
    to[i + 1] = 0; // FAULT writesBehind
}
__global__ void writesItsOperand(float *from, float *to) {
  const float x = from[threadIdx.x];
  from[threadIdx.x] = 0; // FAULT writesItsOperand
  to[threadIdx.x] = x;
}
__global__ void readsElsewhere(const float *from, float *to) {
  to[threadIdx.x] = from[threadIdx.x]; // FAULT readsElsewhere
}
__global__ void readsItsResult(float *to) {
  to[threadIdx.x] += 1; // FAULT readsItsResult
}
__global__ void readsItsScratch(const float *scratch, float *to) {
  to[threadIdx.x] = scratch[threadIdx.x]; // FAULT readsItsScratch
}

template <typename... A>
void launchOne(void (*kernel)(A...), cudaStream_t stream,
               std::type_identity_t<A>... arguments) {
  TMC_LAUNCH(kernel, dim3(1), dim3(kCount), 0, stream, arguments...);
}

void runStep(tmc::Queues &q, void *kernels) {
  const auto stream = static_cast<cudaStream_t>(q.compute().native());
  const Planted &planted = *static_cast<const Planted *>(kernels);
  float *arena = reinterpret_cast<float *>(q.arena(tmc::SpaceKind::Device));
  auto place = [&](Place p) { return arena + p * kCount; };
  for (int i = 0; i < 3; ++i) {
    if (planted.launch == i)
      planted.work(arena, stream);
    else if (i == 0)
      launchOne(copyOf, stream, place(X), place(A));
    else if (i == 1)
      launchOne(throughScratch, stream, place(A), place(Scratch), place(B));
    else
      launchOne(copyOf, stream, place(B), place(Y));
    q.launched(i);
  }
}

void step(Planted planted) {
  Device<char> arena(Places * kBytes);
  tmc::StepProgram program{};
  program.arenaBytes.device() = Places * kBytes;
  program.tensors = tensors;
  program.tensorCount = std::size(tensors);
  program.launches = launches;
  program.launchCount = std::size(launches);
  program.run = runStep;
  tmc::Stream stream(nullptr);
  tmc::cuda::CudaQueues queues(stream);
  tmc::PerSpace<char *> arenas;
  arenas.device() = arena.written();
  queues.place(arenas);
  watch(&program)->run(queues, &planted);
  cudaDeviceSynchronize();
}

#define AT(PLACE) (arena + (PLACE)*kCount)

void expect(FaultKind kind, const std::string &name, int launch, Work work,
            bool onHost = false) {
  expectFault(
      kind, name,
      [=] {
        step({launch, work});
      },
      onHost, __FILE__);
}

} // namespace

TEST(StepFaults, NoneWithoutAPlantedOne) {
  expectClean([] {
    step({});
    step({});
  });
}

TEST(StepFaults, Neighbours) {
  const FaultKind kind = FaultKind::OutOfBounds;
  // w is there, and nothing of this launch's.
  expect(kind, "readsTheNeighbour", 0, [](float *arena, cudaStream_t stream) {
    launchOne(readsTheNeighbour, stream, AT(X), AT(A));
  });
  expect(kind, "readsBefore", 1, [](float *arena, cudaStream_t stream) {
    launchOne(readsBefore, stream, AT(A), AT(B));
  });
  // Into what doesn't exist yet, and into what does.
  expect(kind, "writesBehind", 0, [](float *arena, cudaStream_t stream) {
    launchOne(writesBehind, stream, AT(X), AT(A));
  });
  expect(kind, "writesBehind", 1, [](float *arena, cudaStream_t stream) {
    launchOne(writesBehind, stream, AT(A), AT(B));
  });
  expect(kind, "writesItsOperand", 0, [](float *arena, cudaStream_t stream) {
    launchOne(writesItsOperand, stream, AT(X), AT(A));
  });
  expect(
      kind, "a fill of a weight", 0,
      [](float *arena, cudaStream_t stream) {
        cudaMemsetAsync(AT(A), 0, kBytes, stream);
        cudaMemsetAsync(AT(W), 0, kBytes, stream);
      },
      true);
}

TEST(StepFaults, WhatIsDeadOrStillToCome) {
  expect(FaultKind::OutOfBounds, "readsElsewhere", 2,
         [](float *arena, cudaStream_t stream) { // a: dead
           launchOne(readsElsewhere, stream, AT(A), AT(Y));
         });
  expect(FaultKind::OutOfBounds, "readsElsewhere", 0,
         [](float *arena, cudaStream_t stream) { // b: still to come
           launchOne(readsElsewhere, stream, AT(B), AT(A));
         });
  expect(
      FaultKind::OutOfBounds, "a copy of what is dead", 2,
      [](float *arena, cudaStream_t stream) {
        cudaMemcpyAsync(AT(Y), AT(A), kBytes, cudaMemcpyDeviceToDevice, stream);
      },
      true);
}

TEST(StepFaults, WhatNobodyWrote) {
  expect(FaultKind::Uninitialised, "readsItsResult", 0,
         [](float *arena, cudaStream_t stream) {
           launchOne(readsItsResult, stream, AT(A));
         });
  expect(FaultKind::Uninitialised, "readsItsScratch", 1,
         [](float *arena, cudaStream_t stream) {
           launchOne(readsItsScratch, stream, AT(Scratch), AT(B));
         });
}
