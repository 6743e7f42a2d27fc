//===- Testing.h - what the runtime's tests share ---------------*- C++ -*-===//
//
// Random data, devices of one and of two threads, and comparison.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_UNIT_RUNTIME_TESTING_H
#define TMC_TEST_UNIT_RUNTIME_TESTING_H

#include "runtime/kernels/Kernel.h"
#include "runtime/step/Device.h"

#include "gtest/gtest.h"

#ifdef TMC_TEST_ON_CARD
#include <cuda_runtime_api.h>
#endif

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

// test/cuda compiles these tests a second time, against the cuda backend.
#ifndef TMC_TEST_BACKEND
#define TMC_TEST_BACKEND Cpu
#endif

namespace tmc::test {

constexpr Backend kBackend = Backend::TMC_TEST_BACKEND;
/// A card's own libraries and units, not the emulator's stand-ins of them: how
/// they round is theirs (CardMain.cpp says what was seen).
#ifdef TMC_TEST_ON_CARD
constexpr bool kOnCard = true;
#else
constexpr bool kOnCard = false;
#endif

/// A buffer aligned as the arena's are.
template <typename T> class Buffer {
public:
  explicit Buffer(int64_t count, T value = T())
      : count_(count),
        data_(static_cast<T *>(allocate(size_t(count) * sizeof(T)))) {
    for (int64_t i = 0; i < count; ++i)
      data_[i] = value;
  }
  Buffer(const Buffer &other) : Buffer(other.count_) {
    std::memcpy(data_, other.data_, size_t(count_) * sizeof(T));
  }
  Buffer &operator=(const Buffer &) = delete;
  ~Buffer() { deallocate(data_); }
  T *get() const { return data_; }
  operator T *() const { return data_; }
  int64_t size() const { return count_; }
  bool sameBits(const Buffer &other) const {
    return count_ == other.count_ &&
           !std::memcmp(data_, other.data_, size_t(count_) * sizeof(T));
  }

#ifdef TMC_CUDA_EMULATED
  // Memory that kernels may touch, between red zones.
  static void *allocate(size_t bytes) {
    return emulator::allocateManaged(bytes);
  }
  static void deallocate(void *p) { emulator::freeManaged(p); }
#elif defined(TMC_TEST_ON_CARD)
  // Memory that host and card both see; a page lies where it was touched last.
  static void *allocate(size_t bytes) {
    void *p = nullptr;
    const cudaError_t e = cudaMallocManaged(&p, bytes ? bytes : 1);
    if (e != cudaSuccess) {
      std::fprintf(stderr, "can't allocate %zu bytes: %s\n", bytes,
                   cudaGetErrorString(e));
      std::abort();
    }
    return p;
  }
  static void deallocate(void *p) { (void)cudaFree(p); }
#else
  static void *allocate(size_t bytes) {
    return std::aligned_alloc(64, (bytes + 64) / 64 * 64);
  }
  static void deallocate(void *p) { std::free(p); }
#endif

private:
  int64_t count_;
  T *data_;
};
/// A std::vector that lies where a Buffer does: kernels may read it.
template <typename T> struct BufferAllocator {
  using value_type = T;
  BufferAllocator() = default;
  template <typename U> BufferAllocator(const BufferAllocator<U> &) {}
  T *allocate(size_t count) {
    return static_cast<T *>(Buffer<T>::allocate(count * sizeof(T)));
  }
  void deallocate(T *p, size_t) { Buffer<T>::deallocate(p); }
  bool operator==(const BufferAllocator &) const { return true; }
};
template <typename T> using Vector = std::vector<T, BufferAllocator<T>>;

using Floats = Buffer<float>;
using Longs = Buffer<int64_t>;

inline Floats randomFloats(int64_t count, unsigned seed, float scale = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, scale);
  Floats buffer(count);
  for (int64_t i = 0; i < count; ++i)
    buffer[i] = normal(engine);
  return buffer;
}

inline Longs randomLongs(int64_t count, int64_t limit, unsigned seed) {
  std::mt19937 engine(seed);
  Longs buffer(count);
  for (int64_t i = 0; i < count; ++i)
    buffer[i] = int64_t(engine() % uint64_t(limit));
  return buffer;
}

inline std::unique_ptr<Device> makeDevice(int threads) {
  std::unique_ptr<Device> device;
  DeviceOptions options;
  options.threads = threads;
  EXPECT_TRUE(createDevice(options, device));
  return device;
}

/// The float at a place of the device's arena, which the host may not read.
inline float floatAt(Device &device, int64_t offset) {
  float value = 0;
  device.download(&value, device.arena(SpaceKind::Device) + offset,
                  sizeof value);
  EXPECT_TRUE(device.synchronize());
  return value;
}

/// Windows of `kernel` elements that fit in a row of `in`, padded on both
/// sides.
inline int64_t outSize(int64_t in, int64_t low, int64_t high, int64_t kernel,
                       int64_t dilation, int64_t stride) {
  return (in + low + high - (kernel - 1) * dilation - 1) / stride + 1;
}

/// Prepares and runs a kernel with garbage scratch of exactly the planned
/// bytes, and checks that it writes nothing behind them.
template <typename K>
void runOn(std::unique_ptr<Device> device, typename K::Params params, In ins,
           Out outs, bool accumulate = false) {
  params.scratchBytes = K::scratchCap(params, kBackend);
  K kernel(params);
  Status prepared = kernel.prepare(*device);
  ASSERT_TRUE(prepared) << prepared.message();
#ifdef TMC_CUDA_EMULATED
  // Scratch as the runtime gives it: unwritten, between red zones.
  void *scratch = emulator::allocateManaged(size_t(params.scratchBytes));
  emulator::forget(scratch, size_t(params.scratchBytes));
  kernel.run(device->compute(), ins, outs, scratch, accumulate);
  EXPECT_TRUE(device->synchronize());
  emulator::freeManaged(scratch);
#else
  const int64_t fence = 256;
  Buffer<unsigned char> scratch(params.scratchBytes + fence, 0xff);
  kernel.run(device->compute(), ins, outs, scratch.get(), accumulate);
  EXPECT_TRUE(device->synchronize());
  for (int64_t i = 0; i < fence; ++i)
    ASSERT_EQ(scratch[params.scratchBytes + i], 0xff)
        << "byte " << i << " behind the scratch was written";
#endif
}
template <typename K>
void runKernel(int threads, const typename K::Params &params, In ins, Out outs,
               bool accumulate = false) {
  runOn<K>(makeDevice(threads), params, ins, outs, accumulate);
}

/// |got - want| <= tolerance * (1 + |want|) for each element; names the worst.
template <typename Want>
void expectClose(const float *got, const Want &want, double tolerance,
                 const char *what) {
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(got[i] - want[i]) / (1 + std::abs(want[i]));
    if (!(error <= worst)) {
      worst = error;
      where = i;
      if (std::isnan(error)) // Nothing is worse, and no comparison says so.
        break;
    }
  }
  EXPECT_LE(worst, tolerance) << what << " element " << where << ": got "
                              << got[where] << ", want " << want[where];
}

} // namespace tmc::test

#endif // TMC_TEST_UNIT_RUNTIME_TESTING_H
