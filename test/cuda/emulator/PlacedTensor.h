//===- PlacedTensor.h - a tensor of a graph of cuDNN ------------*- C++ -*-===//
//
// The stand-ins of cuDNN's graphs read each tensor by the sizes and strides
// that the library is given, so that a wrong one is seen in the results or
// reported. Operands outside of their buffers or never written, which the
// library wouldn't notice, are reported, and so are addresses that aren't
// multiples of 16 bytes, with which the library gives wrong numbers.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_PLACEDTENSOR_H
#define TMC_TEST_CUDA_EMULATOR_PLACEDTENSOR_H

#include "runtime/cuda/CudnnGraph.h"

#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Shadow.h"

#include "runtime/kernels/Storage.h"

#include <cstring>
#include <string>

namespace tmc::emulator {

/// A tensor at an address. One of its dimensions is contiguous.
struct Placed {
  const char *graph, *name;
  void *at;
  cuda::GraphTensor tensor;
  DType type;

  int64_t place(int64_t i, int64_t j, int64_t k, int64_t l) const {
    const auto &s = tensor.strides;
    return i * s[0] + j * s[1] + k * s[2] + l * s[3];
  }
  double get(int64_t i, int64_t j, int64_t k, int64_t l = 0) const {
    const int64_t from = place(i, j, k, l);
    switch (type) {
    case DType::BF16:
      return widen(static_cast<const bf16 *>(at)[from]);
    case DType::F16:
      return widen(static_cast<const f16 *>(at)[from]);
    default:
      return static_cast<const float *>(at)[from];
    }
  }
  void put(int64_t i, int64_t j, int64_t k, int64_t l, double value) const {
    const int64_t to = place(i, j, k, l);
    switch (type) {
    case DType::BF16:
      static_cast<bf16 *>(at)[to] = narrow<bf16>(float(value));
      break;
    case DType::F16:
      static_cast<f16 *>(at)[to] = narrow<f16>(float(value));
      break;
    default:
      static_cast<float *>(at)[to] = float(value);
    }
  }

  /// Calls body(i, j, k, l) for each element.
  template <typename F> void each(F body) const {
    const auto &n = tensor.sizes;
    for (int64_t i = 0; i < n[0]; ++i)
      for (int64_t j = 0; j < n[1]; ++j)
        for (int64_t k = 0; k < n[2]; ++k)
          for (int64_t l = 0; l < n[3]; ++l)
            body(i, j, k, l);
  }

  /// True if all of its rows may be touched.
  bool touch(Touch kind) const {
    const std::string what = std::string(graph) + ", " + name + ",";
    if (reinterpret_cast<uintptr_t>(at) % 16) {
      report(FaultKind::Library, 0, what + " isn't at a multiple of 16 bytes");
      return false;
    }
    Placed starts = *this; // of rows
    int64_t row = 1;
    for (size_t dim = 0; dim < 4 && row == 1; ++dim)
      if (tensor.strides[dim] == 1)
        std::swap(row, starts.tensor.sizes[dim]);
    bool good = true;
    starts.each([&](int64_t i, int64_t j, int64_t k, int64_t l) {
      good = good && touchAll(static_cast<char *>(at) +
                                  place(i, j, k, l) * sizeOf(type),
                              size_t(row * sizeOf(type)), kind, what.c_str());
    });
    return good;
  }
};

/// True if a graph may write its workspace, which then holds nothing.
inline bool spoilWorkspace(const char *graph, void *workspace, int64_t bytes) {
  const std::string what = std::string(graph) + ", its workspace,";
  if (bytes == 0)
    return true;
  if (!touchAll(workspace, size_t(bytes), Touch::Write, what.c_str()))
    return false;
  std::memset(workspace, 0xff, size_t(bytes));
  setWritten(reinterpret_cast<uintptr_t>(workspace), size_t(bytes), false);
  return true;
}

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_PLACEDTENSOR_H
