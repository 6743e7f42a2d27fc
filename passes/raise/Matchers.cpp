// Matchers.cpp - common functions of the matchers of -tmc-raise.

#include "passes/raise/Matchers.h"

#include "passes/raise/ViewMap.h"

#include "dialects/nn/Builders.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// Larger than the depth of any exporter's constants.
constexpr int maxConstantDepth = 8;

static std::optional<double> constantNumber(Value value, int depth) {
  if (auto number = splatValue(value))
    return number;
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0 || op->getNumOperands() == 0 ||
      op->getNumOperands() > 2)
    return std::nullopt;
  auto x = constantNumber(op->getOperand(0), depth - 1);
  if (!x)
    return std::nullopt;
  if (isa<ReshapeOp, TransposeOp, BroadcastOp, SliceOp, arith::ExtFOp,
          arith::TruncFOp, arith::SIToFPOp, arith::ExtSIOp, arith::TruncIOp>(
          op))
    return x;
  if (isa<arith::NegFOp>(op))
    return -*x;
  if (isa<math::SqrtOp>(op))
    return std::sqrt(*x);
  if (isa<math::RsqrtOp>(op))
    return 1 / std::sqrt(*x);
  if (op->getNumOperands() == 1)
    return std::nullopt;
  auto y = constantNumber(op->getOperand(1), depth - 1);
  if (!y)
    return std::nullopt;
  if (isa<arith::AddFOp>(op))
    return *x + *y;
  if (isa<arith::SubFOp>(op))
    return *x - *y;
  if (isa<arith::MulFOp>(op))
    return *x * *y;
  if (isa<arith::DivFOp>(op))
    return *x / *y;
  if (isa<math::PowFOp>(op))
    return std::pow(*x, *y);
  return std::nullopt;
}

std::optional<double> tmc::constantNumber(Value value) {
  return ::constantNumber(value, maxConstantDepth);
}

/// Larger constants are recognised by structure only.
constexpr int64_t maxEvaluated = int64_t(1) << 22;

/// `from` read along `strides`, one list of (size, stride) per dimension.
static std::vector<int64_t>
gathered(const std::vector<int64_t> &from,
         ArrayRef<SmallVector<std::pair<int64_t, int64_t>>> strides,
         int64_t offset) {
  std::vector<int64_t> at = {offset};
  for (ArrayRef<std::pair<int64_t, int64_t>> dim : strides)
    for (auto [size, stride] : dim) {
      std::vector<int64_t> finer;
      for (int64_t base : at)
        for (int64_t i = 0; i < size; ++i)
          finer.push_back(base + i * stride);
      at = std::move(finer);
    }
  for (int64_t &position : at)
    position = from[position];
  return at;
}

static std::optional<std::vector<int64_t>> integerConstants(Value value,
                                                            int depth) {
  Operation *op = value.getDefiningOp();
  RankedTensorType type = tensorType(value);
  if (!op || depth == 0 || !type.getElementType().isInteger() ||
      type.getNumElements() > maxEvaluated)
    return std::nullopt;
  std::vector<int64_t> result;
  if (DenseElementsAttr attr; matchPattern(value, m_Constant(&attr))) {
    for (const APInt &element : attr.getValues<APInt>())
      result.push_back(element.getSExtValue());
    return result;
  }
  if (auto iota = dyn_cast<IotaOp>(op)) {
    int64_t inner =
        llvm::product_of(type.getShape().drop_front(iota.getDim() + 1));
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      result.push_back(i / inner % type.getDimSize(iota.getDim()));
    return result;
  }
  if (op->getNumOperands() == 0)
    return std::nullopt;
  auto x = integerConstants(op->getOperand(0), depth - 1);
  if (!x)
    return std::nullopt;
  if (isa<arith::ExtSIOp, arith::TruncIOp>(op))
    return x;
  if (isa<ReshapeOp, TransposeOp, BroadcastOp>(op)) {
    ViewMap map = ViewMap::identity(op->getOperand(0));
    if (!apply(map, op))
      return std::nullopt;
    return gathered(*x, map.getStrides(), 0);
  }
  if (auto slice = dyn_cast<SliceOp>(op)) {
    SmallVector<SmallVector<std::pair<int64_t, int64_t>>> strides(
        type.getRank());
    int64_t stride = 1, offset = 0;
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      strides[dim] = {{type.getDimSize(dim), slice.getSteps()[dim] * stride}};
      offset += slice.getOffsets()[dim] * stride;
      stride *= tensorType(slice.getInput()).getDimSize(dim);
    }
    return gathered(*x, strides, offset);
  }
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  auto y = integerConstants(op->getOperand(1), depth - 1);
  if (!y)
    return std::nullopt;
  for (auto [a, b] : llvm::zip(*x, *y))
    a = isa<arith::AddIOp>(op) ? a + b : isa<arith::SubIOp>(op) ? a - b : a * b;
  return x;
}

std::optional<std::vector<int64_t>> tmc::integerConstants(Value value) {
  return ::integerConstants(value, maxConstantDepth);
}

Value tmc::skipCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

Value tmc::skipFactor(Value value, double &factor) {
  while (true) {
    Value next;
    for (auto [x, c] : bothWays<arith::MulFOp>(value))
      if (auto number = constantNumber(c); number && !next) {
        factor *= *number;
        next = x;
      }
    if (auto div = value.getDefiningOp<arith::DivFOp>())
      if (auto number = constantNumber(div.getRhs()); number && *number != 0) {
        factor /= *number;
        next = div.getLhs();
      }
    if (!next)
      return value;
    value = next;
  }
}

bool tmc::isNear(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

Value tmc::rowNumbers(Value value, double &factor) {
  double found = 1;
  ViewMap map = ViewMap::of(value, &found);
  unsigned rank = map.getRank();
  if (rank == 0 || !map.isConstantAlong(rank - 1) || map.needsTranspose())
    return {};
  for (unsigned dim = 0; dim + 1 < rank; ++dim)
    if (map.getDim(dim) > 1 && map.isConstantAlong(dim))
      return {};
  map.dropDim(rank - 1);
  if (map.hasRepeats())
    return {};
  factor *= found;
  return map.getSource();
}

Value tmc::meanIn(Value value) {
  double factor = 1;
  if (Value rows = rowNumbers(value, factor))
    value = rows;
  ViewMap map = ViewMap::of(value, &factor);
  auto sum = map.getSource().getDefiningOp<ReduceOp>();
  if (!isReshape(map) || !sum || sum.getKind() != ReduceKind::Sum)
    return {};
  auto type = tensorType(sum.getInput());
  int64_t last = type.getRank() - 1;
  if (sum.getDims() != ArrayRef<int64_t>{last} ||
      !isNear(factor * type.getDimSize(last), 1))
    return {};
  return sum.getInput();
}

static bool isSame(Value a, Value b, int depth) {
  if (a == b)
    return true;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (depth == 0 || !x || !y || x->getName() != y->getName() ||
      x->getNumResults() != 1 || x->getNumRegions() != 0 || !isPure(x) ||
      x->getAttrDictionary() != y->getAttrDictionary() ||
      a.getType() != b.getType() || x->getNumOperands() != y->getNumOperands())
    return false;
  return llvm::all_of(
      llvm::zip(x->getOperands(), y->getOperands()), [&](auto pair) {
        return isSame(std::get<0>(pair), std::get<1>(pair), depth - 1);
      });
}

bool tmc::isSame(Value a, Value b) { return ::isSame(a, b, 6); }

bool tmc::isRowVector(Value value) {
  ViewMap map = ViewMap::of(value);
  unsigned rank = map.getRank();
  if (rank == 0 || map.needsTranspose() || map.getInnerRepeats(rank - 1) != 1)
    return false;
  for (unsigned dim = 0; dim + 1 < rank; ++dim)
    if (!map.isConstantAlong(dim))
      return false;
  return tensorType(map.getSource()).getNumElements() == map.getDim(rank - 1);
}

Value tmc::rowVector(OpBuilder &b, Value value) {
  ViewMap map = ViewMap::of(value);
  return nn::reshapeTo(b, value.getLoc(), map.getSource(),
                       {map.getDim(map.getRank() - 1)});
}

bool tmc::dependsOnParameter(Value value) {
  SmallVector<Value> work = {value};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value at = work.pop_back_val();
    auto type = dyn_cast<ShapedType>(at.getType());
    if (!type || !isa<FloatType>(type.getElementType()) ||
        !seen.insert(at).second)
      continue;
    if (auto arg = dyn_cast<BlockArgument>(at)) {
      auto function =
          dyn_cast<FunctionOpInterface>(arg.getOwner()->getParentOp());
      if (function &&
          train::roleOf(function, arg.getArgNumber()) == train::Role::Param &&
          !function.getArgAttr(arg.getArgNumber(),
                               train::TrainDialect::kFrozen))
        return true;
    } else {
      llvm::append_range(work, at.getDefiningOp()->getOperands());
    }
  }
  return false;
}

bool tmc::isPointwise(Operation *op) {
  if (!op || !OpTrait::hasElementwiseMappableTraits(op) ||
      op->getNumResults() != 1 || op->getNumOperands() == 0)
    return false;
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return result && llvm::all_of(op->getOperands(), [&](Value operand) {
           auto type = dyn_cast<RankedTensorType>(operand.getType());
           return type && type.getShape() == result.getShape();
         });
}

Value tmc::clonePointwise(OpBuilder &b, Operation *op, ValueRange operands) {
  auto type =
      RankedTensorType::get(tensorType(operands[0]).getShape(),
                            tensorType(op->getResult(0)).getElementType());
  OperationState state(op->getLoc(), op->getName(), operands, {type},
                       op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return b.create(state)->getResult(0);
}
