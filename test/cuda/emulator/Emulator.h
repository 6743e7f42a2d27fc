//===- Emulator.h - CUDA kernels on a machine without a GPU -----*- C++ -*-===//
//
// Lets g++ compile runtime/cuda/*.cu (this file is included before anything
// else, see LaunchText.h) and run the kernels as they stand, watched:
//
//     Schedule.h   blocks, warps and threads as fibers; barriers, votes and
//                  shuffles and their rules; orders drawn from a seed
//     Shadow.h     what exists, what was written, and races, by happens-before
//     Hooks.cpp    how each load and store gets there
//     Language.h   the words and functions of CUDA's language
//     TensorCore.h mma, ldmatrix and cp.async, behind runtime/cuda's header
//     Types.h      bf16, fp16 and fp8, rounded as a card does
//     Streams.h    work queued on streams runs late, in random legal orders
//     Graphs.h     work that is recorded and queued as a whole
//     Works.h      which work of two streams happens before which
//     Memory.h     device and pinned memory, between red zones
//     CublasLt.cpp, Cudnn*.cpp  stand-ins of the libraries
//     Steps.h      what a launch of an emitted step may touch
//     Report.h     a fault by kernel, block, thread and source line
//
// No toolkit is needed: `include` declares the part of CUDA's interfaces that
// the backend uses. It isn't a simulator: it says nothing about speed, about
// registers, or about how a card's libraries round. docs/cuda.md lists what is
// proven here and what only a card can tell.
//
// TMC_EMULATOR_SEED=N draws the orders: 0 first to last and at once, 1 last to
// first and as late as possible, others random.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_EMULATOR_H
#define TMC_TEST_CUDA_EMULATOR_EMULATOR_H

#ifdef __CUDACC__
#error "the emulator stands in for nvcc"
#endif

// Calls of the emulator are named by their line in the kernel's text.
#define TMC_EMULATOR_INLINE inline __attribute__((always_inline))

#include <cuda_runtime.h>

#include "test/cuda/emulator/Language.h"
#include "test/cuda/emulator/TensorCore.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace tmc::emulator {

/// Queues a launch. An error of its configuration is what cudaGetLastError
/// returns next.
void queueLaunch(const Launch &launch, cudaStream_t stream);

/// The bytes of those arguments that aren't structures: these have padding.
template <typename... T> std::string scalarsOf(const T &...arguments) {
  std::string bytes;
  auto add = [&](const auto &argument) {
    if constexpr (std::is_scalar_v<std::decay_t<decltype(argument)>>)
      bytes.append(reinterpret_cast<const char *>(&argument), sizeof argument);
  };
  (add(arguments), ...);
  return bytes;
}

template <typename F>
void launch(const void *kernel, dim3 grid, dim3 block, size_t sharedBytes,
            cudaStream_t stream, F body, std::string scalars) {
  auto kept = std::make_shared<F>(body);
  const void *arguments = kept.get();
  queueLaunch({kernel, grid, block, sharedBytes,
               [](const void *p) { (*static_cast<const F *>(p))(); }, arguments,
               sizeof(F), kept, std::move(scalars)},
              stream);
}

/// cudaMalloc refuses more than this.
void setMemoryLimit(size_t bytes);
/// cudaHostRegister refuses more than this in one piece.
void setPinnedLimit(size_t bytes);
/// Shared memory that a block may ask for, at most 99 KiB, as on sm_86; sm_75
/// gives 64 KiB. TMC_EMULATOR_SHARED_KIB says it first.
void setSharedLimit(size_t bytes);
/// The next call of a kind ("cudaMemcpyAsync", "launch") fails.
void failNext(const char *call);
/// The number of calls of a kind so far: those that can fail. A launch counts
/// as "launch".
int64_t callsOf(const char *call);

/// Memory for tests that device and host both use; it counts as written.
void *allocateManaged(size_t bytes);
void freeManaged(void *p);
/// See Shadow.h.
void allowHostMemory(bool allow);
/// Says that these bytes were never written.
void forget(const void *p, size_t bytes);

} // namespace tmc::emulator

// What runtime/cuda/LaunchText.h says for nvcc.
#define TMC_LAUNCH(kernel, grid, block, sharedBytes, stream, ...)              \
  tmc::emulator::launch(                                                       \
      reinterpret_cast<const void *>(kernel), grid, block,                     \
      size_t(sharedBytes), stream, [=] { kernel(__VA_ARGS__); },               \
      tmc::emulator::scalarsOf(__VA_ARGS__))
#define TMC_DYNAMIC_SHARED(name)                                               \
  unsigned char *name = tmc::emulator::dynamicShared()

#endif // TMC_TEST_CUDA_EMULATOR_EMULATOR_H
