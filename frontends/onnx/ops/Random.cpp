// Random.cpp - dropout.

#include "frontends/common/ops/Random.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static LogicalResult importDropout(Node &n) {
  const Val in = n.input(0);
  double p = 0.5;
  if (n.has(1)) {
    ASSIGN_OR_FAIL(Array ratio, n.array(1));
    if (ratio.size() != 1)
      return n.error("a ratio of shape " + str(ratio.dims()));
    p = shortest(ratio.floats()[0]);
  }
  bool training = false;
  if (n.has(2)) {
    ASSIGN_OR_FAIL(Dims flag, n.ints(2));
    training = flag.size() == 1 && flag[0];
  }
  ASSIGN_OR_FAIL(Dropout result, dropout(n, in, training ? p : 0));
  if (failed(n.set(result.y)))
    return failure();
  return n.isUsed(1) ? n.set(1, result.kept) : success();
}
static Register dropoutOp("Dropout", importDropout);
