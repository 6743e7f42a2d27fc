//===- OnHost.h - kernels that run on the host, on any backend --*- C++ -*-===//
//
// Updates of states in host memory run there, with the cpu backend's code, on
// both backends. An emitted step has such a kernel beside its other kernels,
// and gives it to the host's engine:
//
//     OnHost<AdamW> hostadamw_0{{.param = DType::F32, ...}};
//     q.beside(41, engine("host"), k.hostadamw_0, {host(0x0), ...}, {host(0x0),
//     ...},
//              host(0x9000));
//
// The results have the same bits as the backend's own kernel: both compile the
// same arithmetic (runtime/kernels/Adam.h), rounding included.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ONHOST_H
#define TMC_RUNTIME_KERNELS_ONHOST_H

#include "runtime/kernels/Adafactor.h"
#include "runtime/kernels/OnHostList.h"
#include "runtime/kernels/Optimizer.h"

#include <memory>

namespace tmc {

/// Defined for each class of OnHostList.h.
template <typename K>
std::unique_ptr<Kernel> makeOnHost(const typename K::Params &params);
#define TMC_DECLARE_ON_HOST(NAME)                                              \
  template <>                                                                  \
  std::unique_ptr<Kernel> makeOnHost<NAME>(const NAME::Params &params);
TMC_FOR_EACH_ON_HOST(TMC_DECLARE_ON_HOST)
#undef TMC_DECLARE_ON_HOST

template <typename K> class OnHost final : public Kernel {
public:
  using Params = typename K::Params;
  explicit OnHost(const Params &params) : kernel_(makeOnHost<K>(params)) {}

  /// Room for the partial sums of either backend: the host has the order of the
  /// card beside it.
  static int64_t scratchCap(const Params &params, Backend backend) {
    const int64_t own = K::scratchCap(params, Backend::Cpu),
                  card = K::scratchCap(params, backend);
    return own > card ? own : card;
  }
  Status prepare(Device &device) override { return kernel_->prepare(device); }
  /// `stream` is the host engine's.
  void run(Stream &stream, In ins, Out outs, void *scratch,
           bool accumulate = false) override {
    kernel_->run(stream, ins, outs, scratch, accumulate);
  }

private:
  std::unique_ptr<Kernel> kernel_;
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_ONHOST_H
