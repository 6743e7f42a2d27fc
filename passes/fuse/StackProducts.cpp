// StackProducts.cpp - short products of one sum become one product.

#include "passes/fuse/StackProducts.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tmc {

using namespace nn;

namespace {

/// Adding to a result in memory takes as long as about this many
/// multiplications for each of its elements.
constexpr int64_t kShortSum = 64;
/// Fewer products aren't joined.
constexpr size_t kFewestProducts = 4;

bool isConstant(Value value) {
  Operation *op = value.getDefiningOp();
  return op && op->hasTrait<OpTrait::ConstantLike>();
}

/// True for a^T b with a short sum, where a and b are smaller than the result.
bool isShort(MatmulOp op) {
  if (op->getNumOperands() != 2 || !op->hasOneUse() || !op.getTransposeLhs() ||
      op.getTransposeRhs() || isConstant(op.getLhs()) ||
      isConstant(op.getRhs()))
    return false;
  auto lhs = tensorType(op.getLhs()), rhs = tensorType(op.getRhs());
  if (lhs.getRank() != 2)
    return false;
  int64_t k = lhs.getDimSize(0), m = lhs.getDimSize(1), n = rhs.getDimSize(1);
  return k <= kShortSum && (m + n) * k <= m * n;
}

/// The terms of a sum, in order: operands of additions that only the sum reads.
SmallVector<Value> termsOf(arith::AddFOp sum) {
  SmallVector<Value> terms, open = {sum.getRhs(), sum.getLhs()};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    auto inner = value.getDefiningOp<arith::AddFOp>();
    if (!inner || !inner->hasOneUse() || inner->getBlock() != sum->getBlock()) {
      terms.push_back(value);
      continue;
    }
    open.push_back(inner.getRhs());
    open.push_back(inner.getLhs());
  }
  return terms;
}

/// True if `sum` isn't a term of a larger sum.
bool isWhole(arith::AddFOp sum) {
  return !sum->hasOneUse() || !isa<arith::AddFOp>(*sum->user_begin()) ||
         sum->user_begin()->getBlock() != sum->getBlock();
}

Value joined(OpBuilder &b, Location loc, ArrayRef<MatmulOp> products,
             llvm::function_ref<Value(MatmulOp)> factorOf) {
  return ConcatOp::create(b, loc, llvm::map_to_vector(products, factorOf), 0);
}

void stackProductsOf(arith::AddFOp sum) {
  // By the types of the factors.
  llvm::MapVector<std::pair<Type, Type>, SmallVector<MatmulOp>> groups;
  SmallVector<Value> terms = termsOf(sum);
  for (Value term : terms)
    if (auto op = term.getDefiningOp<MatmulOp>();
        op && op->getBlock() == sum->getBlock() && isShort(op))
      groups[{op.getLhs().getType(), op.getRhs().getType()}].push_back(op);
  OpBuilder b(sum);
  for (auto &[types, products] : groups) {
    if (products.size() < kFewestProducts)
      continue;
    MatmulOp first = products.front();
    bool isAlike = llvm::all_of(products, [&](MatmulOp op) {
      return op->getAttrDictionary() == first->getAttrDictionary();
    });
    if (!isAlike)
      continue;
    IRMapping map;
    map.map(first.getLhs(), joined(b, first.getLoc(), products,
                                   [](MatmulOp op) { return op.getLhs(); }));
    map.map(first.getRhs(), joined(b, first.getLoc(), products,
                                   [](MatmulOp op) { return op.getRhs(); }));
    Value whole = b.clone(*first, map)->getResult(0);
    llvm::erase_if(terms, [&](Value term) {
      return llvm::is_contained(products, term.getDefiningOp());
    });
    terms.insert(terms.begin(), whole);
    Value total = whole;
    for (Value term : ArrayRef(terms).drop_front())
      total = arith::AddFOp::create(b, sum.getLoc(), total, term);
    Operation *made = total.getDefiningOp();
    sum.replaceAllUsesWith(total);
    // The old additions, from the last one, then their products.
    SmallVector<Operation *> old = {sum};
    for (size_t i = 0; i < old.size(); ++i)
      for (Value operand : old[i]->getOperands())
        if (auto inner = operand.getDefiningOp<arith::AddFOp>();
            inner && inner->hasOneUse() && inner->getBlock() == b.getBlock() &&
            inner != made)
          old.push_back(inner);
    for (Operation *op : old)
      op->erase();
    for (MatmulOp op : products)
      op.erase();
    return;
  }
}

} // namespace

void stackProducts(Operation *root) {
  SmallVector<arith::AddFOp> sums;
  root->walk([&](arith::AddFOp op) {
    if (isWhole(op))
      sums.push_back(op);
  });
  for (arith::AddFOp sum : sums)
    stackProductsOf(sum);
}

} // namespace tmc
