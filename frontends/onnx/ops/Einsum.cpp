// Einsum.cpp - Einstein's summation.

#include "frontends/common/ops/Einsum.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static LogicalResult importEinsum(Node &n) {
  return n.set(einsum(n, n.stringAttr("equation", ""), n.inputs()));
}
static Register einsumOp("Einsum", importEinsum);
