#include "frontends/common/ops/Linear.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// A weight is often stored transposed: skips a transpose of the two innermost
/// dimensions and flips `transposed`.
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

Value tmc::frontend::product(Site &s, Value lhs, Value rhs, bool transposeLhs,
                             bool transposeRhs, Value bias) {
  lhs = throughTranspose(lhs, transposeLhs);
  rhs = throughTranspose(rhs, transposeRhs);
  return nn::MatmulOp::create(s.b, s.loc, lhs, rhs, bias, Value(), transposeLhs,
                              transposeRhs);
}

static bool isFloatTensor(const Val &v) {
  return (v.isTensor() || v.isConst()) && isFloat(v.type);
}

FailureOr<Val> tmc::frontend::gemm(Site &s, const Val &a, const Val &w,
                                   const Val &c, const Gemm &how) {
  auto [transA, transB, alpha, beta] = how;
  if (!isFloatTensor(a) || !isFloatTensor(w))
    return s.unsupported("elements of type " + nameOf(a.type));
  if (a.rank() != 2 || w.rank() != 2 ||
      a.dims[transA ? 0 : 1] != w.dims[transB ? 1 : 0])
    return s.error("shapes " + str(a.dims) + " and " + str(w.dims) +
                   " can't be multiplied");
  if (a.type != w.type || (!c.isAbsent() && c.type != a.type))
    return s.error("the operands' elements differ in type");
  ASSIGN_OR_FAIL(Value lhs, s.materialise(a));
  ASSIGN_OR_FAIL(Value rhs, s.materialise(w));
  Dims dims{a.dims[transA ? 1 : 0], w.dims[transB ? 0 : 1]};
  bool hasBias = !c.isAbsent() && beta != 0;
  if (hasBias && broadcastShape(c.dims, dims) != dims)
    return s.error("a bias of shape " + str(c.dims) + " can't be added to " +
                   str(dims));
  // A row is the product's own bias; any other shape is added.
  auto columns = checkedNumElements(c.dims);
  bool isRow = hasBias && alpha == 1 && beta == 1 && columns == dims[1] &&
               c.rank() > 0 && c.dims.back() == dims[1];
  Value bias;
  if (isRow) {
    ASSIGN_OR_FAIL(bias, s.materialise(c));
    bias = s.reshape(bias, {dims[1]});
  }
  Value y = product(s, lhs, rhs, transA, transB, bias);
  if (alpha != 1)
    y = nn::scale(s.b, s.loc, y, alpha);
  if (hasBias && !isRow) {
    ASSIGN_OR_FAIL(Value wide, s.broadcast(c, dims));
    y = nn::add(s.b, s.loc, y,
                beta == 1 ? wide : nn::scale(s.b, s.loc, wide, beta));
  }
  return Val(y);
}

FailureOr<Val> tmc::frontend::matmul(Site &s, const Val &a, const Val &w) {
  if (!isFloatTensor(a) || !isFloatTensor(w))
    return s.unsupported("elements of type " + nameOf(a.type));
  if (a.type != w.type)
    return s.error("multiplies elements of type " + nameOf(a.type) + " and " +
                   nameOf(w.type));
  // A vector is a row on the left, a column on the right.
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
    return s.error("shapes " + str(a.dims) + " and " + str(w.dims) +
                   " can't be multiplied");
  Dims result = *batch;
  if (a.rank() > 1)
    result.push_back(l[l.size() - 2]);
  if (w.rank() > 1)
    result.push_back(r.back());
  ASSIGN_OR_FAIL(Value lhs, s.materialise(a));
  ASSIGN_OR_FAIL(Value rhs, s.materialise(w));
  lhs = s.reshape(lhs, l);
  rhs = s.reshape(rhs, r);

  // Rows in any number of dimensions times one matrix are one product.
  if (r.size() == 2 && l.size() > 2) {
    auto rows = checkedNumElements(ArrayRef<int64_t>(l).drop_back());
    if (!rows)
      return s.error("the number of elements is too large");
    lhs = s.reshape(lhs, {*rows, l.back()});
    Value y = product(s, lhs, rhs);
    return Val(s.reshape(y, result));
  }
  Dims wideLhs = *batch, wideRhs = *batch;
  wideLhs.append(l.end() - 2, l.end());
  wideRhs.append(r.end() - 2, r.end());
  ASSIGN_OR_FAIL(lhs, s.broadcast(Val(lhs), wideLhs));
  ASSIGN_OR_FAIL(rhs, s.broadcast(Val(rhs), wideRhs));
  return Val(s.reshape(product(s, lhs, rhs), result));
}

FailureOr<Val> tmc::frontend::linear(Site &s, const Val &x, const Val &w,
                                     const Val &bias) {
  if (x.rank() < 1 || w.rank() != 2 || x.dims.back() != w.dims[1])
    return s.error("a weight of shape " + str(w.dims) +
                   " doesn't fit an input of shape " + str(x.dims));
  auto rows = checkedNumElements(ArrayRef<int64_t>(x.dims).drop_back());
  if (!rows)
    return s.error("the number of elements is too large");
  ASSIGN_OR_FAIL(Value value, s.materialise(x));
  Gemm how;
  how.transposeW = true;
  ASSIGN_OR_FAIL(
      Val y, gemm(s, Val(s.reshape(value, {*rows, w.dims[1]})), w, bias, how));
  Dims dims(x.dims);
  dims.back() = w.dims[0];
  return Val(s.reshape(y.value, dims));
}

FailureOr<Val> tmc::frontend::groupedProduct(Site &s, const Val &x,
                                             const Val &w, const Val &ends) {
  if (x.rank() != 2 || w.rank() != 3 || w.dims[1] != x.dims[1] ||
      ends.dims != Dims{w.dims[0]} || isFloat(ends.type))
    return s.unsupported("groups of shape " + str(x.dims) + " and " +
                         str(w.dims));
  int64_t groups = w.dims[0], rows = x.dims[0];
  ASSIGN_OR_FAIL(Val wide, expand(s, x, {groups, rows, x.dims[1]}));
  ASSIGN_OR_FAIL(Val all, matmul(s, wide, w));
  // Row m belongs to group g if ends[g - 1] <= m < ends[g].
  ASSIGN_OR_FAIL(Val end, castTo(s, ends, ElementType::I64));
  ASSIGN_OR_FAIL(end, reshaped(s, end, {groups, 1}));
  Val row(iota({1, rows}, 1));
  ASSIGN_OR_FAIL(Val isBefore, less(s, {row, end}));
  Val none(Array::splatInt(ElementType::Bool, {1, rows}, 0));
  ASSIGN_OR_FAIL(Val isEarlier, strided(s, isBefore, 0, 0, 1,
                                        std::max<int64_t>(groups - 1, 0)));
  ASSIGN_OR_FAIL(isEarlier, concat(s, {none, isEarlier}, 0));
  ASSIGN_OR_FAIL(Val isHere, exclusiveOr(s, {isBefore, isEarlier}));
  ASSIGN_OR_FAIL(isHere, reshaped(s, isHere, {groups, rows, 1}));
  ASSIGN_OR_FAIL(Val kept,
                 where(s, isHere, all, Val(Array::splat(x.type, {}, 0))));
  return reduceSum(s, kept, {0}, false);
}
