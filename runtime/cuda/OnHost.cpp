//===- OnHost.cpp - host kernels beside the device's kernels --------------===//

#include "runtime/kernels/OnHost.h"

#include "runtime/cuda/HostUpdates.h"

namespace tmc {

#define TMC_ON_HOST(NAME)                                                      \
  template <>                                                                  \
  std::unique_ptr<Kernel> makeOnHost<NAME>(const NAME::Params &params) {       \
    return host::make##NAME(&params);                                          \
  }
TMC_FOR_EACH_ON_HOST(TMC_ON_HOST)
#undef TMC_ON_HOST

} // namespace tmc
