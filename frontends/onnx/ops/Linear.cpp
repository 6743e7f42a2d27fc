// Linear.cpp - matrix products.

#include "frontends/Checked.h"
#include "frontends/onnx/ops/Pointwise.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// A weight is often stored transposed: reads through a transpose of the two
/// innermost dimensions, and says so.
static Value throughTranspose(Value v, bool &transposed) {
  auto op = v.getDefiningOp<nn::TransposeOp>();
  if (!op)
    return v;
  ArrayRef<int64_t> perm = op.getPerm();
  int64_t rank = perm.size();
  for (int64_t i = 0; i < rank - 2; ++i)
    if (perm[i] != i)
      return v;
  if (rank < 2 || perm[rank - 2] != rank - 1)
    return v;
  transposed = !transposed;
  return op.getInput();
}

static Value product(Node &n, Value lhs, Value rhs, bool transposeLhs = false,
                     bool transposeRhs = false, Value bias = {}) {
  lhs = throughTranspose(lhs, transposeLhs);
  rhs = throughTranspose(rhs, transposeRhs);
  return nn::MatmulOp::create(n.b, n.loc, lhs, rhs, bias, Value(), transposeLhs,
                              transposeRhs);
}

static bool isFloatTensor(const Val &v) {
  return (v.isTensor() || v.isConst()) && isFloat(v.type);
}

static LogicalResult importGemm(Node &n) {
  const Val a = n.input(0), w = n.input(1), c = n.input(2);
  bool transA = n.intAttr("transA", 0), transB = n.intAttr("transB", 0);
  double alpha = n.floatAttr("alpha", 1), beta = n.floatAttr("beta", 1);
  if (!isFloatTensor(a) || !isFloatTensor(w))
    return n.unsupported("elements of type " + nameOf(a.type));
  if (a.rank() != 2 || w.rank() != 2 ||
      a.dims[transA ? 0 : 1] != w.dims[transB ? 1 : 0])
    return n.error("shapes " + str(a.dims) + " and " + str(w.dims) +
                   " can't be multiplied");
  if (a.type != w.type || (n.has(2) && c.type != a.type))
    return n.error("the operands' elements differ in type");
  ASSIGN_OR_FAIL(Value lhs, n.value(0));
  ASSIGN_OR_FAIL(Value rhs, n.value(1));
  Dims dims{a.dims[transA ? 1 : 0], w.dims[transB ? 0 : 1]};
  bool hasBias = n.has(2) && beta != 0;
  if (hasBias && broadcastShape(c.dims, dims) != dims)
    return n.error("a bias of shape " + str(c.dims) + " can't be added to " +
                   str(dims));
  // A row is the product's own bias; anything else is added.
  auto columns = checkedNumElements(c.dims);
  bool isRow = hasBias && alpha == 1 && beta == 1 && columns == dims[1] &&
               c.rank() > 0 && c.dims.back() == dims[1];
  Value bias;
  if (isRow) {
    ASSIGN_OR_FAIL(bias, n.value(2));
    bias = n.reshape(bias, {dims[1]});
  }
  Value y = product(n, lhs, rhs, transA, transB, bias);
  if (alpha != 1)
    y = nn::scale(n.b, n.loc, y, alpha);
  if (hasBias && !isRow) {
    ASSIGN_OR_FAIL(Value wide, n.broadcast(c, dims));
    y = nn::add(n.b, n.loc, y,
                beta == 1 ? wide : nn::scale(n.b, n.loc, wide, beta));
  }
  return n.set(y);
}
static Register gemm("Gemm", importGemm);

static LogicalResult importMatMul(Node &n) {
  const Val a = n.input(0), w = n.input(1);
  if (!isFloatTensor(a) || !isFloatTensor(w))
    return n.unsupported("elements of type " + nameOf(a.type));
  if (a.type != w.type)
    return n.error("multiplies elements of type " + nameOf(a.type) + " and " +
                   nameOf(w.type));
  // Vectors are a row on the left and a column on the right.
  Dims l = a.dims, r = w.dims;
  if (l.size() == 1)
    l.insert(l.begin(), 1);
  if (r.size() == 1)
    r.push_back(1);
  bool valid = l.size() >= 2 && r.size() >= 2 && l.back() == r[r.size() - 2];
  std::optional<Dims> batch;
  if (valid)
    batch = broadcastShape(ArrayRef<int64_t>(l).drop_back(2),
                           ArrayRef<int64_t>(r).drop_back(2));
  if (!batch)
    return n.error("shapes " + str(a.dims) + " and " + str(w.dims) +
                   " can't be multiplied");
  Dims result = *batch;
  if (a.rank() > 1)
    result.push_back(l[l.size() - 2]);
  if (w.rank() > 1)
    result.push_back(r.back());
  ASSIGN_OR_FAIL(Value lhs, n.value(0));
  ASSIGN_OR_FAIL(Value rhs, n.value(1));
  lhs = n.reshape(lhs, l);
  rhs = n.reshape(rhs, r);

  // Rows of any number of dimensions times one matrix are one product.
  if (r.size() == 2 && l.size() > 2) {
    auto rows = checkedNumElements(ArrayRef<int64_t>(l).drop_back());
    if (!rows)
      return n.error("the number of elements is too large");
    lhs = n.reshape(lhs, {*rows, l.back()});
    Value y = product(n, lhs, rhs);
    return n.set(n.reshape(y, result));
  }
  Dims wideLhs = *batch, wideRhs = *batch;
  wideLhs.append(l.end() - 2, l.end());
  wideRhs.append(r.end() - 2, r.end());
  ASSIGN_OR_FAIL(lhs, n.broadcast(Val(lhs), wideLhs));
  ASSIGN_OR_FAIL(rhs, n.broadcast(Val(rhs), wideRhs));
  return n.set(n.reshape(product(n, lhs, rhs), result));
}
static Register matMul("MatMul", importMatMul);
