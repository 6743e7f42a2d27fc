// Ranks.cpp - nn.sum_over, nn.exchange, nn.sum_pieces, nn.gather, nn.shard_of.

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

BatchSplit SumOverOp::getSplit(ArrayRef<int64_t> batchDims) {
  if (batchDims[0] >= 0)
    return BatchSplit::refuse(kNoBatch);
  return {{Rejoin::whole()}, ""};
}

SmallVector<Value> SumOverOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
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

BatchSplit ExchangeOp::getSplit(ArrayRef<int64_t> batchDims) {
  if (batchDims[0] >= 0)
    return BatchSplit::refuse(kNoBatch);
  return {{Rejoin::whole()}, ""};
}

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

BatchSplit SumPiecesOp::getSplit(ArrayRef<int64_t> batchDims) {
  if (batchDims[0] == 0)
    return BatchSplit::refuse("it sums over the batch");
  if (batchDims[0] < 0)
    return {{Rejoin::whole()}, ""};
  return {{Rejoin::concat(batchDims[0] - 1)}, ""};
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

BatchSplit GatherOp::getSplit(ArrayRef<int64_t> batchDims) {
  if (batchDims[0] >= 0)
    return BatchSplit::refuse(kNoBatch);
  return {{Rejoin::whole()}, ""};
}

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

BatchSplit ShardOfOp::getSplit(ArrayRef<int64_t> batchDims) {
  if (batchDims[0] >= 0)
    return BatchSplit::refuse(kNoBatch);
  return {{Rejoin::whole()}, ""};
}

KernelCall ShardOfOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  return KernelCall::of<ShardOf>(getContext(),
                                 {.axis = runtimeAxis(getAxis()),
                                  .ranks = int64_t(getRanks()),
                                  .bytes = sizeInBytes(getResult().getType()),
                                  .total = sizeInBytes(getInput().getType())},
                                 backend);
}
