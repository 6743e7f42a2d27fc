//===- CudaDevice.cpp - arena, transfers and stream of the cuda backend --===//
//
// One cudaMalloc is the arena. Uploads and downloads go through four pinned
// slots, so that the copy of one slot overlaps with filling the next. An upload
// returns when its last slot is queued on the compute stream, a download when
// its last byte has arrived.
//
//   host memory -> slot 0..3 (pinned) -> arena      in the stream's order
//
// The end of a step has one wait: a kernel puts the step's numbers beside the
// fault word, and one copy brings both to pinned memory.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/Pinned.h"
#include "runtime/cuda/RankTransfers.h"
#include "runtime/step/Program.h"

#include <algorithm>
#include <cstring>
#include <utility>

const uint32_t tmc_runtime_instructions = tmc::kInstructions;

namespace tmc {
namespace cuda {

namespace {
constexpr int kSlots = 4;
/// As large as the pieces in which values are loaded. All slots together take
/// half of the 8 MiB that loading may take beside maxima (FrozenValues.h).
constexpr int64_t kSlotBytes = 1 << 20;
static_assert(kSlots * kSlotBytes <= 4 << 20);
constexpr int64_t kStagingBytes = kSlots * kSlotBytes + sizeof(DeviceReport);
/// All bits set: a NaN in every float type, minus one in every integer type.
constexpr int kPoison = 0xff;

Status worldError(const std::string &what, cudaError_t error) {
  return {Code::World, what + ": " + cudaGetErrorString(error)};
}

/// The card and the versions that its speed depends on; "": unknown.
std::string describe(const cudaDeviceProp &card) {
  auto version = [](int number) {
    return std::to_string(number / 1000) + "." +
           std::to_string(number % 1000 / 10);
  };
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess)
    return "";
  return std::string(card.name) + ", driver of CUDA " + version(driver) +
         ", CUDA " + version(CUDART_VERSION);
}
/// The card of this rank, if there are several, becomes that of the calling
/// thread.
Status chooseCard(const Peers *peers, int &device) {
  int devices = 0;
  if (cudaError_t e = cudaGetDeviceCount(&devices); e != cudaSuccess) {
    // The same code means that there is no driver or that it is too old.
    if (e == cudaErrorInsufficientDriver)
      return {Code::World,
              "can't use a cuda device: there is no driver, or one that is "
              "older than CUDA " +
                  std::to_string(CUDART_VERSION / 1000) + "." +
                  std::to_string(CUDART_VERSION % 1000 / 10) +
                  ", which this step was built with"};
    return worldError("can't use a cuda device", e);
  }
  if (devices == 0)
    return {Code::World, "this machine has no cuda device"};
  if (peers)
    if (cudaError_t e = cudaSetDevice(cardOf(peers->local(), devices));
        e != cudaSuccess)
      return worldError("can't use a cuda device", e);
  if (cudaError_t e = cudaGetDevice(&device); e != cudaSuccess)
    return worldError("can't use a cuda device", e);
  return Status::ok();
}
} // namespace

struct Staging {
  char *slots = nullptr;
  cudaEvent_t done[kSlots] = {};
  int next = 0;

  DeviceReport *report() const {
    return reinterpret_cast<DeviceReport *>(slots + kSlots * kSlotBytes);
  }
};

CudaDevice::CudaDevice(const DeviceOptions &options) : options_(options) {
  peers = options.peers;
}

CudaDevice::~CudaDevice() {
  // Nothing can be done about an error here.
  if (native_)
    (void)cudaStreamSynchronize(native_);
  timer.reset();
  graph_.drop();
  queues_.reset();
  transfers.reset();
  blas.reset();
  dnn.reset();
  if (staging_) {
    for (cudaEvent_t event : staging_->done)
      if (event)
        (void)cudaEventDestroy(event);
    (void)cudaFreeHost(staging_->slots);
  }
  (void)cudaFree(report_);
  (void)cudaFree(arenas_.device());
  for (auto [space, arena] : arenas_)
    if (mappedBytes_[space.kind])
      unmapPinned(arena, mappedBytes_[space.kind]);
  if (native_)
    (void)cudaStreamDestroy(native_);
}

Status CudaDevice::open() {
  int device = 0;
  if (Status s = chooseCard(peers, device); !s)
    return s;
  number_ = device;
  cudaDeviceProp card = {};
  if (cudaGetDeviceProperties(&card, device) == cudaSuccess)
    description_ = describe(card);
  algorithms = AlgorithmChoice(options_.algorithms, card.name);
  tuning = options_.tuning;
  if (tuning)
    tuning->device = card.name;
  int count = 0;
  if (cudaError_t e = cudaDeviceGetAttribute(
          &count, cudaDevAttrMultiProcessorCount, device);
      e != cudaSuccess)
    return worldError("can't ask the cuda device", e);
  multiprocessors_ = count;
  if (cudaError_t e = cudaDeviceGetAttribute(
          &count, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
      e != cudaSuccess)
    return worldError("can't ask the cuda device", e);
  sharedBytes_ = count;
  int minor = 0;
  for (auto [attribute, to] :
       {std::pair(cudaDevAttrComputeCapabilityMajor, &count),
        {cudaDevAttrComputeCapabilityMinor, &minor}})
    if (cudaError_t e = cudaDeviceGetAttribute(to, attribute, device);
        e != cudaSuccess)
      return worldError("can't ask the cuda device", e);
  computeCapability_ = 10 * count + minor;
  if (cudaError_t e =
          cudaStreamCreateWithFlags(&native_, cudaStreamNonBlocking);
      e != cudaSuccess)
    return worldError("can't create a stream", e);
  stream_ = std::make_unique<Stream>(native_);
  queues_ = std::make_unique<CudaQueues>(*stream_);
  transfers = std::make_unique<RankTransfers>(*queues_, peers);
  size_t free = 0, total = 0;
  if (cudaError_t e = cudaMemGetInfo(&free, &total); e != cudaSuccess)
    return worldError("can't ask the cuda device for its memory", e);
  freeBytes_ = int64_t(free);

  staging_ = std::make_unique<Staging>();
  if (cudaError_t e =
          cudaHostAlloc(reinterpret_cast<void **>(&staging_->slots),
                        size_t(kStagingBytes), cudaHostAllocDefault);
      e != cudaSuccess)
    return worldError("can't pin " + std::to_string(kStagingBytes) +
                          " bytes of host memory",
                      e);
  for (cudaEvent_t &event : staging_->done)
    if (cudaError_t e =
            cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        e != cudaSuccess)
      return worldError("can't create an event", e);

  if (cudaError_t e =
          cudaMalloc(reinterpret_cast<void **>(&report_), sizeof *report_);
      e != cudaSuccess)
    return worldError("can't allocate device memory", e);
  if (cudaError_t e = cudaMemsetAsync(report_, 0, sizeof *report_, native_);
      e != cudaSuccess)
    return worldError("can't write device memory", e);
  if (cudaError_t e = cudaStreamSynchronize(native_); e != cudaSuccess)
    return worldError("the cuda device failed", e);
  return Status::ok();
}

Status CudaDevice::allocateArena(SpaceKind space, int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX / 2)
    return {Code::BadInput, arenaText(space, bytes) + " can't exist"};
  graph_.drop(); // It has the addresses of before.
  if (onDevice(space))
    return allocateOnDevice(space, bytes);
  const Status mapped =
      mapPinned(space, bytes, arenas_[space], mappedBytes_[space]);
  if (mapped)
    arenaBytes_[space] = bytes;
  return mapped;
}

Status CudaDevice::allocateOnDevice(SpaceKind space, int64_t bytes) {
  size_t free = 0, total = 0;
  if (cudaError_t e = cudaMemGetInfo(&free, &total); e != cudaSuccess)
    return worldError("can't ask the cuda device for its memory", e);
  const std::string wanted = arenaText(space, bytes);
  const std::string there =
      std::to_string(free) + " of " + std::to_string(total) + " bytes are free";
  // The reserve also covers the context, which exists already. Its size is
  // unknown. If the used memory fits the reserve, all of it counts as context.
  // If not, other programs use the device, and no memory counts as context.
  const int64_t used = int64_t(total) - int64_t(free);
  const int64_t context = used <= options_.reservedBytes ? used : 0;
  if (int64_t(free) + context < bytes + options_.reservedBytes)
    return {Code::World, wanted + ", and " +
                             std::to_string(options_.reservedBytes) +
                             " bytes beside it for context and libraries, "
                             "don't fit on the device: " +
                             there};
  arenaBytes_.device() = bytes;
  const cudaError_t e = cudaMalloc(reinterpret_cast<void **>(&arenas_.device()),
                                   size_t(std::max<int64_t>(bytes, 1)));
  if (e == cudaSuccess)
    return Status::ok();
  (void)cudaGetLastError(); // already reported: later calls start clean
  arenas_.device() = nullptr;
  arenaBytes_.device() = 0;
  return worldError("can't allocate " + wanted + " (" + there + ")", e);
}

Status CudaDevice::checkReserve() {
  size_t free = 0, total = 0;
  if (cudaError_t e = cudaMemGetInfo(&free, &total); e != cudaSuccess)
    return worldError("can't ask the cuda device for its memory", e);
  const int64_t taken = freeBytes_ - int64_t(free) - arenaBytes_.device();
  if (taken <= options_.reservedBytes)
    return Status::ok();
  return {Code::OverBudget,
          "preparing the kernels took " + std::to_string(taken) +
              " bytes of the device beside the arena (what other programs took "
              "meanwhile included); the plan reserved " +
              std::to_string(options_.reservedBytes)};
}

void CudaDevice::fail(Code code, const std::string &message) {
  if (error_)
    (void)(error_ = {code, message});
}

void CudaDevice::upload(void *to, const void *from, int64_t bytes) {
  const char *source = static_cast<const char *>(from);
  char *target = static_cast<char *>(to);
  for (int64_t at = 0; at < bytes; at += kSlotBytes) {
    const int64_t piece = std::min(kSlotBytes, bytes - at);
    const int slot = staging_->next;
    staging_->next = (slot + 1) % kSlots;
    char *pinned = staging_->slots + slot * kSlotBytes;
    // The slot's last copy, in either direction, must be complete.
    check(cudaEventSynchronize(staging_->done[slot]), "upload");
    std::memcpy(pinned, source + at, size_t(piece));
    check(cudaMemcpyAsync(target + at, pinned, size_t(piece), cudaMemcpyDefault,
                          native_),
          "upload");
    check(cudaEventRecord(staging_->done[slot], native_), "upload");
  }
}

void CudaDevice::download(void *to, const void *from, int64_t bytes) {
  const char *source = static_cast<const char *>(from);
  char *target = static_cast<char *>(to);
  // One piece is transferred while the previous one is copied out.
  const int64_t pieces = (bytes + kSlotBytes - 1) / kSlotBytes;
  int slots[2] = {};
  for (int64_t i = 0; i <= pieces; ++i) {
    if (i < pieces) {
      const int slot = slots[i % 2] = staging_->next;
      staging_->next = (slot + 1) % kSlots;
      check(cudaEventSynchronize(staging_->done[slot]), "download");
      check(cudaMemcpyAsync(
                staging_->slots + slot * kSlotBytes, source + i * kSlotBytes,
                size_t(std::min(kSlotBytes, bytes - i * kSlotBytes)),
                cudaMemcpyDefault, native_),
            "download");
      check(cudaEventRecord(staging_->done[slot], native_), "download");
    }
    if (i > 0) {
      const int slot = slots[(i - 1) % 2];
      const int64_t at = (i - 1) * kSlotBytes;
      check(cudaEventSynchronize(staging_->done[slot]), "download");
      std::memcpy(target + at, staging_->slots + slot * kSlotBytes,
                  size_t(std::min(kSlotBytes, bytes - at)));
    }
  }
}

void CudaDevice::poison(void *device, int64_t bytes) {
  if (bytes > 0)
    check(cudaMemsetAsync(device, kPoison, size_t(bytes), native_), "poison");
}

Status CudaDevice::startQueues(const QueueNeeds &needs) {
  queues_->place(arenas_);
  if (Status s = transfers->start(); !s)
    return s;
  return queues_->start(needs, options_);
}

DeviceTimer *CudaDevice::timeLaunches() {
  if (!timer)
    timer = std::make_unique<EventTimer>(native_);
  return timer.get();
}

Status CudaDevice::synchronize(StepNumbers *numbers) {
  queues_->join();
  if (numbers)
    gatherNumbers(native_, *numbers, report_->numbers);
  DeviceReport &report = *staging_->report();
  check(cudaMemcpyAsync(&report, report_, sizeof report, cudaMemcpyDefault,
                        native_),
        "the end of a step");
  queues_->finish();
  check(cudaGetLastError(), "a launch");
  if (!error_)
    return error_;
  if (Status s = queues_->takeFault(); !s)
    return s;
  if (numbers)
    for (int i = 0; i < kStepNumbers; ++i)
      (*numbers)[size_t(i)].bits = report.numbers[i];
  if (const DeviceFault &fault = report.fault; fault.set) {
    if (!stream_->fault.set)
      stream_->fault = {true, fault.row, fault.value, fault.limit};
    check(cudaMemsetAsync(&report_->fault, 0, sizeof fault, native_),
          "a fault");
  }
  return Status::ok();
}

} // namespace cuda

Status createDevice(const DeviceOptions &options,
                    std::unique_ptr<Device> &device) {
  auto made = std::make_unique<cuda::CudaDevice>(options);
  if (Status s = made->open(); !s)
    return s;
  device = std::move(made);
  return Status::ok();
}

} // namespace tmc
