// Ranks.cpp - nn.sum_over, nn.spread, nn.exchange, nn.sum_pieces, nn.gather,
// nn.shard_of.

#include "dialects/nn/Ranks.h"

#include "dialects/nn/Builders.h"

#include "runtime/kernels/Ranks.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

static constexpr const char *kNoBatch =
    "the ranks exchange it once, for the whole batch";

static int64_t elements(Value value) {
  return tensorType(value).getNumElements();
}

int64_t nn::shardElements(int64_t elements, int64_t ranks) {
  return llvm::divideCeil(llvm::divideCeil(elements, ranks), kShardUnit) *
         kShardUnit;
}

bool nn::hasShards(Type tensor, int64_t ranks) {
  return cast<RankedTensorType>(tensor).getNumElements() >= ranks * kShardUnit;
}

/// A shard of `value` among `ranks`.
static RankedTensorType shardType(Value value, int64_t ranks) {
  return RankedTensorType::get({shardElements(elements(value), ranks)},
                               tensorType(value).getElementType());
}

//===----------------------------------------------------------------------===//
// nn.sum_over
//===----------------------------------------------------------------------===//

LogicalResult SumOverOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location> loc,
                                          Adaptor op,
                                          SmallVectorImpl<Type> &results) {
  if (int64_t(op.getRanks()) < 1) // C1
    return emitOptionalError(loc, "sums over ", int64_t(op.getRanks()),
                             " ranks");
  results.push_back(op.getInput().getType());
  return success();
}

int64_t SumOverOp::getFlops() { return elements(getInput()) * getRanks(); }

/// Every dimension of an op that takes and makes one value of one shape.
static OpCuts allCuts(Operation *op) {
  OpCuts cuts(op, kNoBatch);
  for (int64_t dim = 0; dim < tensorType(op->getResult(0)).getRank(); ++dim)
    cuts.add(dim, Rejoin::concat(dim));
  return cuts;
}

/// Ranks of dp have other samples each: no piece of them is another rank's.
OpCuts SumOverOp::getCuts() {
  return getAxis() == Axis::Tensor ? allCuts(*this) : OpCuts(*this, kNoBatch);
}

SmallVector<Value> SumOverOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                       ArrayRef<bool> wanted) {
  if (getAxis() == Axis::Tensor)
    return {grads[0]};
  return {SumOverOp::create(b, getLoc(), grads[0], getAxis(), getRanks())};
}

//===----------------------------------------------------------------------===//
// nn.spread
//===----------------------------------------------------------------------===//

LogicalResult SpreadOp::inferReturnTypes(MLIRContext *,
                                         std::optional<Location> loc,
                                         Adaptor op,
                                         SmallVectorImpl<Type> &results) {
  if (int64_t(op.getRanks()) < 1) // C1
    return emitOptionalError(loc, "spreads over ", int64_t(op.getRanks()),
                             " ranks");
  results.push_back(op.getInput().getType());
  return success();
}

int64_t SpreadOp::getFlops() { return 0; }

OpCuts SpreadOp::getCuts() { return allCuts(*this); }

SmallVector<Value> SpreadOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                      ArrayRef<bool> wanted) {
  return {SumOverOp::create(b, getLoc(), grads[0], getAxis(), getRanks())};
}

//===----------------------------------------------------------------------===//
// nn.exchange
//===----------------------------------------------------------------------===//

LogicalResult ExchangeOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location> loc,
                                           Adaptor op,
                                           SmallVectorImpl<Type> &results) {
  const int64_t ranks = op.getRanks();
  if (ranks < 1) // C1
    return emitOptionalError(loc, "exchanges ", ranks, " pieces");
  RankedTensorType shard = shardType(op.getInput(), ranks);
  results.push_back(shard.clone({ranks, shard.getDimSize(0)}));
  return success();
}

int64_t ExchangeOp::getFlops() { return 0; }
int64_t ExchangeOp::getBytesMoved() {
  return (getRanks() - 1) * sizeInBytes(getInput().getType()) / getRanks();
}

OpCuts ExchangeOp::getCuts() { return {*this, kNoBatch}; }

KernelCall ExchangeOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  const int64_t ranks = getRanks();
  return KernelCall::of<ExchangeRanks>(
      getContext(),
      {.axis = runtimeAxis(getAxis()),
       .ranks = ranks,
       .bytes = sizeInBytes(shardType(getInput(), ranks)),
       .total = sizeInBytes(getInput().getType())},
      backend);
}

//===----------------------------------------------------------------------===//
// nn.sum_pieces
//===----------------------------------------------------------------------===//

LogicalResult SumPiecesOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  RankedTensorType type = tensorType(op.getInput());
  if (type.getRank() < 1 || type.getDimSize(0) < 1) // C1
    return emitOptionalError(loc, "sums the rows of ", type);
  results.push_back(RankedTensorType::get(type.getShape().drop_front(),
                                          type.getElementType()));
  return success();
}

int64_t SumPiecesOp::getFlops() { return elements(getInput()); }

OpCuts SumPiecesOp::getCuts() {
  OpCuts cuts(*this, "it sums over the batch");
  for (int64_t dim = 1; dim < tensorType(getInput()).getRank(); ++dim)
    cuts.add(dim, Rejoin::concat(dim - 1));
  return cuts;
}

KernelCall SumPiecesOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  return KernelCall::of<SumPieces>(
      getContext(),
      {.type = runtimeType(getInput().getType()),
       .pieces = tensorType(getInput()).getDimSize(0),
       .count = elements(getResult())},
      backend);
}

//===----------------------------------------------------------------------===//
// nn.gather
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::verify() {
  RankedTensorType from = tensorType(getInput()), to = tensorType(getResult());
  const int64_t ranks = getRanks();
  if (ranks < 1 || from.getElementType() != to.getElementType() ||
      to.getNumElements() > ranks * from.getNumElements()) // C1
    return emitOpError("gathers ")
           << from << " of " << ranks << " ranks to " << to;
  return success();
}

int64_t GatherOp::getFlops() { return 0; }
int64_t GatherOp::getBytesMoved() {
  return (getRanks() - 1) * sizeInBytes(getInput().getType());
}

OpCuts GatherOp::getCuts() { return {*this, kNoBatch}; }

KernelCall GatherOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  const int64_t ranks = getRanks();
  return KernelCall::of<GatherRanks>(
      getContext(),
      {.axis = runtimeAxis(getAxis()),
       .ranks = ranks,
       .bytes = sizeInBytes(getInput().getType()),
       .total = sizeInBytes(getResult().getType())},
      backend);
}

//===----------------------------------------------------------------------===//
// nn.shard_of
//===----------------------------------------------------------------------===//

LogicalResult ShardOfOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location> loc,
                                          Adaptor op,
                                          SmallVectorImpl<Type> &results) {
  if (int64_t(op.getRanks()) < 1) // C1
    return emitOptionalError(loc, "takes a shard of ", int64_t(op.getRanks()));
  results.push_back(shardType(op.getInput(), op.getRanks()));
  return success();
}

int64_t ShardOfOp::getFlops() { return 0; }

OpCuts ShardOfOp::getCuts() { return {*this, kNoBatch}; }

KernelCall ShardOfOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  return KernelCall::of<ShardOf>(getContext(),
                                 {.axis = runtimeAxis(getAxis()),
                                  .ranks = int64_t(getRanks()),
                                  .bytes = sizeInBytes(getResult().getType()),
                                  .total = sizeInBytes(getInput().getType())},
                                 backend);
}
