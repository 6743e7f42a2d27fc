//===- Generated.h - a kernel from another file -----------------*- C++ -*-===//
//
// A step can be compiled in pieces: its tables in one, the bodies of its
// generated kernels in others. The piece with the tables sees only a function
// that makes the kernel:
//
//     Kernel *make_fused_7(const FusedParams &);
//     Generated fused_7_kernel{make_fused_7, {.scratchBytes = 0}};
//
// This header is small: parsing the code that runs a body (Fused.h) takes
// longer than parsing the tables.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_GENERATED_H
#define TMC_RUNTIME_KERNELS_GENERATED_H

#include "runtime/kernels/Kernel.h"

namespace tmc {

/// The largest number of random streams of a fused kernel.
constexpr int kMostStreams = 8;

/// Parameters of a fused kernel; its shape is part of its body's type. One body
/// serves several ops that draw from different streams.
struct FusedParams {
  int64_t streams[kMostStreams] = {};
  int64_t scratchBytes = 0;
};

class Generated final : public Kernel {
public:
  using Maker = Kernel *(*)(const FusedParams &);
  Generated(Maker make, const FusedParams &params) : kernel_(make(params)) {}

  Status prepare(Device &device) override { return kernel_->prepare(device); }
  void run(Stream &stream, In ins, Out outs, void *scratch,
           bool accumulate = false) override {
    kernel_->run(stream, ins, outs, scratch, accumulate);
  }

private:
  std::unique_ptr<Kernel> kernel_;
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_GENERATED_H
