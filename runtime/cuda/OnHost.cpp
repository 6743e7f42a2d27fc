//===- OnHost.cpp - kernels on the host beside those of the device --------===//

#include "runtime/kernels/OnHost.h"

#include "runtime/cuda/HostUpdates.h"

namespace tmc {

#define TMC_ON_HOST(NAME)                                                      \
  template <>                                                                  \
  std::unique_ptr<Kernel> makeOnHost<NAME>(const NAME::Params &params) {       \
    return host::make##NAME(&params);                                          \
  }
TMC_ON_HOST(AdamW)
TMC_ON_HOST(AdamW8bit)
TMC_ON_HOST(Sgd)
TMC_ON_HOST(SquareSum)
TMC_ON_HOST(GradNorm)
TMC_ON_HOST(LossScale)
#undef TMC_ON_HOST

} // namespace tmc
