// Products.cpp - products of vectors, matrices and tensors, composed of matrix
// products.

#include "frontends/Checked.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// `v` times `factor`.
static FailureOr<Val> times(Call &c, const Val &v, double factor) {
  if (factor == 1)
    return v;
  return multiply(c, {v, Val(Array::splat(v.type, {}, factor))});
}

/// beta * self + alpha * y.
static LogicalResult setAdded(Call &c, const Val &y) {
  ASSIGN_OR_FAIL(double alpha, c.number("alpha", 1));
  ASSIGN_OR_FAIL(double beta, c.number("beta", 1));
  c.ignore({"self"}); // With beta 0 it isn't read.
  ASSIGN_OR_FAIL(Val product, times(c, y, alpha));
  if (beta == 0)
    return c.set(product);
  ASSIGN_OR_FAIL(Val self, times(c, c.tensor("self"), beta));
  return c.set(add(c, {self, product}));
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// Each element of `x` times each element of `y`.
static FailureOr<Val> outer(Call &c, const Val &x, const Val &y) {
  ASSIGN_OR_FAIL(Val column, unsqueeze(c, x, {1}));
  ASSIGN_OR_FAIL(Val row, unsqueeze(c, y, {0}));
  return multiply(c, {column, row});
}
static LogicalResult importOuter(Call &c) {
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"self", "vec2"}));
  return c.set(outer(c, both.values[0], both.values[1]));
}
static Register outerOp("outer", importOuter);
static Register ger("ger", importOuter);

static LogicalResult importAddr(Call &c) {
  ASSIGN_OR_FAIL(Val y, outer(c, c.tensor("vec1"), c.tensor("vec2")));
  return setAdded(c, y);
}
static Register addr("addr", importAddr);

static LogicalResult importVdot(Call &c) {
  return c.set(matmul(c, c.tensor("self"), c.tensor("other")));
}
static Register vdot("vdot", importVdot);

/// The cross product of three elements along a dimension.
static LogicalResult cross(Call &c, std::optional<int64_t> otherwise) {
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"self", "other"}));
  ASSIGN_OR_FAIL(Dims dims, commonShape(c, both.values));
  // The default is the first dimension of size 3.
  if (!otherwise && !c.has("dim"))
    otherwise = llvm::find(dims, 3) - dims.begin();
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", otherwise, dims.size()));
  if (dims.empty() || dims[dim] != 3)
    return c.error("a cross product of shape " + str(dims));
  SmallVector<Val> parts[2];
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_FAIL(Val x, expand(c, both.values[i], dims));
    ASSIGN_OR_FAIL(parts[i], cut(c, x, dim, {1, 1, 1}));
  }
  SmallVector<Val> results;
  for (int i = 0; i < 3; ++i) {
    int next = (i + 1) % 3, last = (i + 2) % 3;
    ASSIGN_OR_FAIL(Val plus, multiply(c, {parts[0][next], parts[1][last]}));
    ASSIGN_OR_FAIL(Val minus, multiply(c, {parts[0][last], parts[1][next]}));
    ASSIGN_OR_FAIL(Val y, subtract(c, {plus, minus}));
    results.push_back(y);
  }
  return c.set(concat(c, results, dim));
}
static LogicalResult importCross(Call &c) { return cross(c, std::nullopt); }
static Register crossOp("cross", importCross);
static LogicalResult importLinalgCross(Call &c) { return cross(c, -1); }
static Register linalgCross("linalg_cross", importLinalgCross);

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

static LogicalResult importAddmv(Call &c) {
  ASSIGN_OR_FAIL(Val y, matmul(c, c.tensor("mat"), c.tensor("vec")));
  return setAdded(c, y);
}
static Register addmv("addmv", importAddmv);

static LogicalResult importBaddbmm(Call &c) {
  ASSIGN_OR_FAIL(Val y, matmul(c, c.tensor("batch1"), c.tensor("batch2")));
  return setAdded(c, y);
}
static Register baddbmm("baddbmm", importBaddbmm);

/// Sums the products of a batch.
static LogicalResult importAddbmm(Call &c) {
  ASSIGN_OR_FAIL(Val y, matmul(c, c.tensor("batch1"), c.tensor("batch2")));
  ASSIGN_OR_FAIL(y, reduceSum(c, y, Dims{0}, false));
  return setAdded(c, y);
}
static Register addbmm("addbmm", importAddbmm);

/// Multiplies from the left, without a search for the cheapest order.
static LogicalResult chained(Call &c, const char *name) {
  ASSIGN_OR_FAIL(SmallVector<Val> list, c.tensors(name));
  if (list.empty())
    return c.error("multiplies nothing");
  Val y = list[0];
  for (const Val &next : ArrayRef<Val>(list).drop_front()) {
    ASSIGN_OR_FAIL(y, matmul(c, y, next));
  }
  return c.set(y);
}
static LogicalResult importChain(Call &c) { return chained(c, "matrices"); }
static Register chainMatmul("chain_matmul", importChain);
static LogicalResult importMultiDot(Call &c) { return chained(c, "tensors"); }
static Register multiDot("linalg_multi_dot", importMultiDot);

static LogicalResult importMatrixPower(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t n, c.integer("n", std::nullopt));
  if (n < 0 || n > 64)
    return c.unsupported("the power " + Twine(n) + " of a matrix");
  if (n == 0) {
    if (self.rank() < 2)
      return c.error("the power of shape " + str(self.dims));
    int64_t size = self.dims.back();
    ASSIGN_OR_FAIL(Val one, diagonal(c, size, size, 0, self.type));
    return c.set(expand(c, one, self.dims));
  }
  // The highest bit of n stands for self; each further bit squares the result.
  Val y = self;
  for (int64_t bit = llvm::bit_floor(uint64_t(n)) / 2; bit; bit /= 2) {
    ASSIGN_OR_FAIL(y, matmul(c, y, y));
    if (n & bit) {
      ASSIGN_OR_FAIL(y, matmul(c, y, self));
    }
  }
  return c.set(y);
}
static Register matrixPower("linalg_matrix_power", importMatrixPower);
static Register matrixPowerOp("matrix_power", importMatrixPower);

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// `x` as a matrix: the dimensions `rows` by the dimensions `columns`.
static FailureOr<Val> asMatrix(Call &c, const Val &x, ArrayRef<int64_t> rows,
                               ArrayRef<int64_t> columns) {
  Dims perm(rows), sizes;
  perm.append(columns.begin(), columns.end());
  for (ArrayRef<int64_t> side : {rows, columns}) {
    Dims dims;
    for (int64_t dim : side)
      dims.push_back(x.dims[dim]);
    auto count = checkedNumElements(dims);
    if (!count)
      return c.error("the number of elements is too large");
    sizes.push_back(*count);
  }
  ASSIGN_OR_FAIL(Val y, transpose(c, x, perm));
  return reshaped(c, y, sizes);
}

/// The sum over dimensions `left` of x, paired with `right` of y.
static LogicalResult contracted(Call &c, const Val &x, const Val &y,
                                ArrayRef<int64_t> left,
                                ArrayRef<int64_t> right) {
  if (left.size() != right.size())
    return c.error("sums " + str(left) + " with " + str(right));
  Dims freeLeft, freeRight, dims;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (!llvm::is_contained(left, d)) {
      freeLeft.push_back(d);
      dims.push_back(x.dims[d]);
    }
  for (int64_t d = 0; d < y.rank(); ++d)
    if (!llvm::is_contained(right, d)) {
      freeRight.push_back(d);
      dims.push_back(y.dims[d]);
    }
  ASSIGN_OR_FAIL(Val a, asMatrix(c, x, freeLeft, left));
  ASSIGN_OR_FAIL(Val b, asMatrix(c, y, right, freeRight));
  ASSIGN_OR_FAIL(Val product, matmul(c, a, b));
  return c.set(reshaped(c, product, dims));
}

static LogicalResult importTensordot(Call &c) {
  const Val x = c.tensor("self"), y = c.tensor("other");
  ASSIGN_OR_FAIL(Dims left, c.integers("dims_self", std::nullopt));
  ASSIGN_OR_FAIL(Dims right, c.integers("dims_other", std::nullopt));
  for (int64_t &dim : left) {
    ASSIGN_OR_FAIL(dim, c.axis(dim, x.rank()));
  }
  for (int64_t &dim : right) {
    ASSIGN_OR_FAIL(dim, c.axis(dim, y.rank()));
  }
  return contracted(c, x, y, left, right);
}
static Register tensordot("tensordot", importTensordot);

/// Contracts the last dimension of both; with a scalar, a product.
static LogicalResult importInner(Call &c) {
  const Val x = c.tensor("self"), y = c.tensor("other");
  if (x.dims.empty() || y.dims.empty())
    return c.set(multiply(c, {x, y}));
  return contracted(c, x, y, Dims{x.rank() - 1}, Dims{y.rank() - 1});
}
static Register inner("inner", importInner);

/// Each element of self times the whole other tensor.
static LogicalResult importKron(Call &c) {
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"self", "other"}));
  int64_t rank = std::max(both.values[0].rank(), both.values[1].rank());
  Dims dims;
  for (auto [i, v] : llvm::enumerate(both.values)) {
    Dims own(rank - v.rank(), 1), apart;
    own.append(v.dims.begin(), v.dims.end());
    if (i == 0)
      dims = own;
    for (int64_t d = 0; d < rank; ++d) {
      apart.push_back(i == 0 ? own[d] : 1);
      apart.push_back(i == 0 ? 1 : own[d]);
      if (i == 1) {
        auto size = checkedMul(dims[d], own[d]);
        if (!size)
          return c.error("the number of elements is too large");
        dims[d] = *size;
      }
    }
    ASSIGN_OR_FAIL(v, reshaped(c, v, apart));
  }
  ASSIGN_OR_FAIL(Val y, multiply(c, both.values));
  return c.set(reshaped(c, y, dims));
}
static Register kron("kron", importKron);

/// x1 W x2 for each matrix of `weight` [O, I, J], plus a bias.
static LogicalResult importBilinear(Call &c) {
  const Val x = c.tensor("input1"), y = c.tensor("input2");
  const Val w = c.tensor("weight");
  if (w.rank() != 3 || x.dims.empty() || y.dims.empty() ||
      x.dims.back() != w.dims[1] || y.dims.back() != w.dims[2])
    return c.error("shapes " + str(x.dims) + ", " + str(w.dims) + " and " +
                   str(y.dims) + " don't fit together");
  ASSIGN_OR_FAIL(Val wide, asMatrix(c, w, {1}, {0, 2}));
  ASSIGN_OR_FAIL(Val rows, matmul(c, x, wide));
  Dims apart(ArrayRef<int64_t>(x.dims).drop_back());
  apart.append({w.dims[0], w.dims[2]});
  ASSIGN_OR_FAIL(rows, reshaped(c, rows, apart));
  ASSIGN_OR_FAIL(Val other, unsqueeze(c, y, {y.rank() - 1}));
  ASSIGN_OR_FAIL(Val products, multiply(c, {rows, other}));
  ASSIGN_OR_FAIL(Val sum,
                 reduceSum(c, products, Dims{products.rank() - 1}, false));
  return c.has("bias") ? c.set(add(c, {sum, c.tensor("bias")})) : c.set(sum);
}
static Register bilinear("bilinear", importBilinear);
