#ifndef TMC_TEST_UNIT_RUNTIME_ADAM_H
#define TMC_TEST_UNIT_RUNTIME_ADAM_H

#include "runtime/kernels/Optimizer.h"

namespace tmc::test {

/// AdamW of `count` elements, all of it f32.
inline AdamParams adamParams(int64_t count) {
  return {.param = DType::F32,
          .grad = DType::F32,
          .moment = DType::F32,
          .count = count,
          .beta1 = 0.9,
          .beta2 = 0.95,
          .epsilon = 1e-8,
          .weightDecay = 0.1,
          .stream = 0,
          .scratchBytes = 0};
}

} // namespace tmc::test

#endif // TMC_TEST_UNIT_RUNTIME_ADAM_H
