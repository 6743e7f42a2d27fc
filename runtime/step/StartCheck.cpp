//===- StartCheck.cpp - can this processor run the step? ------------------===//

#include "runtime/step/Processor.h"
#include "runtime/step/Program.h"

namespace tmc {

const char *startFault() {
  static thread_local char text[512];
  const CompiledFor wanted = {tmc_step_compiled_for.target,
                              tmc_step_compiled_for.instructions |
                                  tmc_runtime_instructions};
  uint32_t available = instructionsOf(readCpuid());
  if ((wanted.instructions & available & kAmxTile) && !permitTiles())
    available &= ~(kAmxTile | kAmxBf16);
  return faultOf(wanted, available, text, sizeof text);
}

} // namespace tmc
