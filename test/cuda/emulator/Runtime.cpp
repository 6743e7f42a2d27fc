//===- Runtime.cpp - device, memory and errors of the CUDA runtime --------===//

#include "test/cuda/emulator/Runtime.h"

#include "test/cuda/emulator/Counts.h"
#include "test/cuda/emulator/Emulator.h"
#include "test/cuda/emulator/Graphs.h"
#include "test/cuda/emulator/Memory.h"
#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Shadow.h"
#include "test/cuda/emulator/Streams.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <unistd.h>

namespace tmc::emulator {

namespace {
/// What every card has at least, of what can be asked for.
constexpr int kMultiprocessors = 4;
size_t memoryLimit = size_t(1) << 34;
std::string failing;
/// The number of calls by their name, a literal.
std::map<std::string_view, int64_t> calls;
cudaError_t lastError = cudaSuccess;
} // namespace

bool shouldFail(const char *call) {
  ++calls[call];
  if (failing != call)
    return false;
  failing.clear();
  return true;
}
void failNext(const char *call) { failing = call; }
int64_t callsOf(const char *call) {
  const auto found = calls.find(call);
  return found == calls.end() ? 0 : found->second;
}
void setMemoryLimit(size_t bytes) { memoryLimit = bytes; }

void queueLaunch(const Launch &launch, cudaStream_t stream) {
  const cudaError_t error =
      shouldFail("launch") ? cudaErrorLaunchFailure : checkLaunch(launch);
  if (error != cudaSuccess) {
    lastError = error; // until it is asked for
    return;
  }
  ++counts().kernels;
  WorkKey key =
      keyOf(launch.kernel, launch.grid, launch.block, launch.sharedBytes);
  key.bytes += launch.scalars;
  key.kernel = launch.kernel;
  queueWork(stream, "a launch", std::move(key),
            [launch] { runLaunch(launch); });
}

Counts &counts() {
  static Counts all;
  return all;
}

void *allocateManaged(size_t bytes) {
  return allocate(bytes, MemoryKind::Managed);
}
void freeManaged(void *p) {
  runAll(); // as freeing device memory does
  release(p);
}
void forget(const void *p, size_t bytes) {
  setWritten(reinterpret_cast<uintptr_t>(p), bytes, false);
}

namespace {
cudaError_t take(void **to, size_t bytes, MemoryKind kind) {
  if (breaksCapture())
    return lastError = cudaErrorStreamCaptureUnsupported;
  *to = allocate(bytes, kind);
  return *to ? cudaSuccess : lastError = cudaErrorMemoryAllocation;
}
cudaError_t giveBack(void *p, const char *call) {
  if (!p)
    return cudaSuccess;
  if (breaksCapture())
    return lastError = cudaErrorStreamCaptureUnsupported;
  runAll(); // freeing waits for the device
  if (release(p))
    return cudaSuccess;
  report(FaultKind::Resource, 0,
         std::string(call) + " of what isn't allocated");
  return cudaErrorInvalidValue;
}
} // namespace

} // namespace tmc::emulator

using namespace tmc::emulator;

extern "C" {

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
  case cudaDevAttrMultiProcessorCount:
    *value = kMultiprocessors;
    return cudaSuccess;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = int(sharedLimit());
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMajor:
    *value = 8;
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMinor:
    *value = 6;
    return cudaSuccess;
  case cudaDevAttrL2CacheSize:
    *value = 2 << 20;
    return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
  *properties = {"emulator"};
  return cudaSuccess;
}
/// Each process has a card of its own, unless TMC_EMULATOR_CARD names one.
cudaError_t cudaDeviceGetPCIBusId(char *name, int length, int) {
  const char *card = std::getenv("TMC_EMULATOR_CARD");
  const std::string own = card ? card : std::to_string(getpid());
  std::snprintf(name, size_t(length), "%s", own.c_str());
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  *free = *total = memoryLimit;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void **to, size_t bytes) {
  if (bytes > memoryLimit)
    return lastError = cudaErrorMemoryAllocation;
  return take(to, bytes, MemoryKind::Device);
}
cudaError_t cudaFree(void *p) { return giveBack(p, "cudaFree"); }
cudaError_t cudaHostAlloc(void **to, size_t bytes, unsigned) {
  return take(to, bytes, MemoryKind::Pinned);
}
cudaError_t cudaFreeHost(void *p) { return giveBack(p, "cudaFreeHost"); }
cudaError_t cudaGetLastError() {
  const cudaError_t error = lastError;
  lastError = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return lastError; }
const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory"
                                            : "an emulated failure";
}
const char *cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "cudaErrorEmulated";
}
cudaError_t cudaFuncGetName(const char **name, const void *kernel) {
  *name = symbolName(reinterpret_cast<uintptr_t>(kernel));
  return *name ? cudaSuccess : lastError = cudaErrorInvalidValue;
}
cudaError_t cudaFuncSetAttribute(const void *kernel,
                                 cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
    return cudaSuccess;
  return allowDynamicShared(kernel, value) ? cudaSuccess
                                           : lastError = cudaErrorInvalidValue;
}
}

int64_t tmc_emulator_kernels() { return tmc::emulator::counts().kernels; }
int64_t tmc_emulator_unaligned_products() {
  return tmc::emulator::counts().unalignedProducts;
}
int64_t tmc_emulator_products_by_way(int way) {
  return tmc::emulator::counts().productsByWay[way];
}
