//===- OnHost.cpp - host kernels are the backend's own kernels ------------===//

#include "runtime/kernels/OnHost.h"

namespace tmc {

#define TMC_ON_HOST(NAME)                                                      \
  template <>                                                                  \
  std::unique_ptr<Kernel> makeOnHost<NAME>(const NAME::Params &params) {       \
    return std::make_unique<NAME>(params);                                     \
  }
TMC_FOR_EACH_ON_HOST(TMC_ON_HOST)
#undef TMC_ON_HOST

} // namespace tmc
