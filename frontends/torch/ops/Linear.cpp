// Linear.cpp - matrix products.

#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/Einsum.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

static LogicalResult importLinear(Call &c) {
  return c.set(
      linear(c, c.tensor("input"), c.tensor("weight"), c.tensor("bias")));
}
static Register linearOp("linear", importLinear);

static LogicalResult importMatmul(Call &c) {
  return c.set(matmul(c, c.tensor("self"), c.tensor("other")));
}
static Register matmulOp("matmul", importMatmul);

/// The product of two matrices, or of two batches of them.
static LogicalResult importMm(Call &c) {
  return c.set(matmul(c, c.tensor("self"), c.tensor("mat2")));
}
static Register mm("mm", importMm);
static Register bmm("bmm", importMm);

static LogicalResult importMv(Call &c) {
  return c.set(matmul(c, c.tensor("self"), c.tensor("vec")));
}
static Register mv("mv", importMv);

static LogicalResult importDot(Call &c) {
  return c.set(matmul(c, c.tensor("self"), c.tensor("tensor")));
}
static Register dot("dot", importDot);

/// beta * self + alpha * mat1 * mat2.
static LogicalResult importAddmm(Call &c) {
  Gemm how;
  ASSIGN_OR_FAIL(how.alpha, c.number("alpha", 1));
  ASSIGN_OR_FAIL(how.beta, c.number("beta", 1));
  return c.set(
      gemm(c, c.tensor("mat1"), c.tensor("mat2"), c.tensor("self"), how));
}
static Register addmm("addmm", importAddmm);

static LogicalResult importEinsum(Call &c) {
  ASSIGN_OR_FAIL(std::string equation, c.text("equation", ""));
  ASSIGN_OR_FAIL(SmallVector<Val> operands, c.tensors("tensors"));
  return c.set(einsum(c, equation, operands));
}
static Register einsumOp("einsum", importEinsum);

/// Products of experts: rows are sorted by expert, and `offs` are the ends.
static LogicalResult importGrouped(Call &c) {
  Val x = c.tensor(c.has("self") ? "self" : "input");
  Val w = c.tensor(c.has("mat2") ? "mat2" : "weight");
  if (c.has("bias"))
    return c.unsupported("a bias of groups");
  return c.set(groupedProduct(c, x, w, c.tensor("offs")));
}
static Register groupedMm("_grouped_mm", importGrouped);
static Register groupedMmOp("grouped_mm", importGrouped);
/// The name that a library registers if PyTorch has no kernel for the device.
static Register groupedFallback("grouped_mm_fallback", importGrouped);
