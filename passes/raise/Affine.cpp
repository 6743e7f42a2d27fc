#include "passes/raise/Affine.h"

#include "passes/raise/ViewMap.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// Reads a constant as an affine number: a range that was folded at import.
static std::optional<Affine> affineConstant(Value value) {
  DenseElementsAttr attr;
  RankedTensorType type = tensorType(value);
  if (!matchPattern(value, m_Constant(&attr)) ||
      !attr.getElementType().isIntOrFloat() || type.getNumElements() == 0)
    return std::nullopt;
  bool isFloat = isa<FloatType>(attr.getElementType());
  auto at = [&](int64_t i) {
    return isFloat
               ? int64_t((*(attr.value_begin<APFloat>() + i)).convertToDouble())
               : (*(attr.value_begin<APInt>() + i)).getSExtValue();
  };
  Affine result{at(0), SmallVector<int64_t>(type.getRank(), 0)};
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    if (type.getDimSize(dim) > 1)
      result.steps[dim] = at(stride) - at(0);
    stride *= type.getDimSize(dim);
  }
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    int64_t expected = result.base, rest = i;
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      expected += result.steps[dim] * (rest % type.getDimSize(dim));
      rest /= type.getDimSize(dim);
    }
    if (at(i) != expected)
      return std::nullopt;
  }
  return result;
}

std::optional<Affine> tmc::affineOf(Value value, int depth) {
  RankedTensorType type = tensorType(value);
  Affine result{0, SmallVector<int64_t>(type.getRank(), 0)};
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return std::nullopt;
  if (auto iota = dyn_cast<IotaOp>(op)) {
    result.steps[iota.getDim()] = 1;
    return result;
  }
  if (isa<arith::ConstantOp>(op))
    return affineConstant(value);
  if (op->getNumOperands() == 0)
    return std::nullopt;
  auto x = affineOf(op->getOperand(0), depth - 1);
  if (!x)
    return std::nullopt;
  if (isa<arith::ExtSIOp, arith::TruncIOp, arith::SIToFPOp, arith::FPToSIOp,
          arith::ExtFOp, arith::TruncFOp>(op))
    return x;
  if (isa<ReshapeOp, TransposeOp, BroadcastOp>(op)) {
    ViewMap view = ViewMap::identity(op->getOperand(0));
    if (!apply(view, op))
      return std::nullopt;
    result.base = x->base;
    for (auto [from, step] : llvm::enumerate(x->steps)) {
      if (step == 0)
        continue;
      std::optional<unsigned> to;
      for (unsigned dim = 0; dim < view.getRank(); ++dim)
        if (view.isDimOfSource(dim, from))
          to = dim;
      if (!to)
        return std::nullopt;
      result.steps[*to] = step;
    }
    return result;
  }
  if (op->getNumOperands() != 2)
    return std::nullopt;
  auto y = affineOf(op->getOperand(1), depth - 1);
  if (!y)
    return std::nullopt;
  auto constant = [](const Affine &a) {
    return llvm::all_of(a.steps, [](int64_t step) { return step == 0; });
  };
  auto combine = [&](int64_t fx, int64_t fy) {
    result.base = fx * x->base + fy * y->base;
    for (auto [i, step] : llvm::enumerate(result.steps))
      step = fx * x->steps[i] + fy * y->steps[i];
    return result;
  };
  if (isa<arith::AddIOp, arith::AddFOp>(op))
    return combine(1, 1);
  if (isa<arith::SubIOp, arith::SubFOp>(op))
    return combine(1, -1);
  if (isa<arith::MulIOp, arith::MulFOp>(op)) {
    int64_t fx = x->base, fy = y->base;
    if (constant(*y)) {
      y->base = 0;
      return combine(fy, 0);
    }
    if (constant(*x)) {
      x->base = 0;
      return combine(0, fx);
    }
  }
  return std::nullopt;
}

std::optional<std::pair<int64_t, int64_t>> tmc::asAtMostZero(Operation *op,
                                                             bool keep) {
  enum { Lt, Le, Gt, Ge, None } kind = None;
  if (auto cmp = dyn_cast_or_null<arith::CmpIOp>(op)) {
    switch (cmp.getPredicate()) {
    case arith::CmpIPredicate::slt:
      kind = Lt;
      break;
    case arith::CmpIPredicate::sle:
      kind = Le;
      break;
    case arith::CmpIPredicate::sgt:
      kind = Gt;
      break;
    case arith::CmpIPredicate::sge:
      kind = Ge;
      break;
    default:
      break;
    }
  } else if (auto cmp = dyn_cast_or_null<arith::CmpFOp>(op)) {
    switch (cmp.getPredicate()) { // Integers: never unordered.
    case arith::CmpFPredicate::OLT:
    case arith::CmpFPredicate::ULT:
      kind = Lt;
      break;
    case arith::CmpFPredicate::OLE:
    case arith::CmpFPredicate::ULE:
      kind = Le;
      break;
    case arith::CmpFPredicate::OGT:
    case arith::CmpFPredicate::UGT:
      kind = Gt;
      break;
    case arith::CmpFPredicate::OGE:
    case arith::CmpFPredicate::UGE:
      kind = Ge;
      break;
    default:
      break;
    }
  }
  if (kind == None)
    return std::nullopt;
  bool less = kind == Lt || kind == Le, strict = kind == Lt || kind == Gt;
  if (!keep) {
    less = !less;
    strict = !strict;
  }
  return std::pair<int64_t, int64_t>(less ? 1 : -1, strict ? 1 : 0);
}
