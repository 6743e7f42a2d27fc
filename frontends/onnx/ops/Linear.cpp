// Linear.cpp - matrix products.

#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/Solve.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static LogicalResult importGemm(Node &n) {
  Gemm how;
  how.transposeA = n.intAttr("transA", 0);
  how.transposeW = n.intAttr("transB", 0);
  how.alpha = n.floatAttr("alpha", 1);
  how.beta = n.floatAttr("beta", 1);
  return n.set(gemm(n, n.input(0), n.input(1), n.input(2), how));
}
static Register gemmOp("Gemm", importGemm);

static LogicalResult importMatMul(Node &n) {
  return n.set(matmul(n, n.input(0), n.input(1)));
}
static Register matMul("MatMul", importMatMul);

static LogicalResult importDet(Node &n) {
  return n.set(determinant(n, n.input(0)));
}
static Register det("Det", importDet);
