//===- OnHost.cpp - kernels on the host are the backend's own -------------===//

#include "runtime/kernels/OnHost.h"

namespace tmc {

#define TMC_ON_HOST(NAME)                                                      \
  template <>                                                                  \
  std::unique_ptr<Kernel> makeOnHost<NAME>(const NAME::Params &params) {       \
    return std::make_unique<NAME>(params);                                     \
  }
TMC_ON_HOST(AdamW)
TMC_ON_HOST(AdamW8bit)
TMC_ON_HOST(Sgd)
TMC_ON_HOST(SquareSum)
TMC_ON_HOST(GradNorm)
TMC_ON_HOST(LossScale)
#undef TMC_ON_HOST

} // namespace tmc
