// Ranks.cpp - ops of the ranks of a mesh.

#include "dialects/nn/Ranks.h"

#include "dialects/nn/Builders.h"

#include "runtime/kernels/Ranks.h"
#include "runtime/kernels/ShardedEmbedding.h"

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

//===----------------------------------------------------------------------===//
// nn.embedding_pieces, nn.embedding_grad_shard
//===----------------------------------------------------------------------===//

/// Checks the operands that lookups and gradients have alike.
static LogicalResult checkTable(std::optional<Location> loc,
                                RankedTensorType table, RankedTensorType ids,
                                int64_t ranks) {
  if (!table || table.getRank() < 1)
    return emitOptionalError(loc, "needs a table");
  if (ranks < 1 || ids.getRank() < 1 || ids.getDimSize(0) != ranks)
    return emitOptionalError(loc, "takes indices ", ids, " of ", ranks,
                             " ranks");
  return success();
}

/// The elements of a row of the result of nn.embedding_pieces.
static int64_t pieceElements(RankedTensorType table, RankedTensorType ids) {
  const int64_t rows = ids.getNumElements() / ids.getDimSize(0);
  return shardElements(rows * llvm::product_of(table.getShape().drop_front()),
                       1);
}

template <typename K>
static KernelCall shardedKernel(RankedTensorType table, RankedTensorType ids,
                                nn::Axis axis, Backend backend) {
  const int64_t ranks = ids.getDimSize(0);
  return KernelCall::of<K>(
      table.getContext(),
      {.type = runtimeType(table),
       .indexType = runtimeType(ids),
       .vocabulary = table.getDimSize(0),
       .channels = llvm::product_of(table.getShape().drop_front()),
       .axis = runtimeAxis(axis),
       .ranks = ranks,
       .rows = ids.getNumElements() / ranks,
       .shard = shardElements(table.getNumElements(), ranks),
       .piece = pieceElements(table, ids)},
      backend);
}

LogicalResult
EmbeddingPiecesOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                    Adaptor op,
                                    SmallVectorImpl<Type> &results) {
  auto table = dyn_cast<RankedTensorType>(op.getTable());
  RankedTensorType ids = tensorType(op.getIds());
  const int64_t ranks = op.getRanks();
  if (failed(checkTable(loc, table, ids, ranks))) // C1, C3
    return failure();
  auto shard = RankedTensorType::get(
      {shardElements(table.getNumElements(), ranks)}, table.getElementType());
  if (op.getShard().getType() != shard) // C2
    return emitOptionalError(loc, "takes a shard ", op.getShard().getType(),
                             " of ", table, " where ", shard, " is due");
  results.push_back(table.clone({ranks, pieceElements(table, ids)}));
  return success();
}

int64_t EmbeddingPiecesOp::getFlops() { return 0; }
int64_t EmbeddingPiecesOp::getBytesMoved() {
  // A rank's shard has a rank's share of all rows.
  return sizeInBytes(getResult().getType()) * (getRanks() + 1) / getRanks() +
         sizeInBytes(getIds().getType());
}

OpCuts EmbeddingPiecesOp::getCuts() { return {*this, kNoBatch}; }

KernelCall EmbeddingPiecesOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  return shardedKernel<EmbeddingPieces>(cast<RankedTensorType>(getTable()),
                                        tensorType(getIds()), getAxis(),
                                        backend);
}

LogicalResult
EmbeddingGradShardOp::inferReturnTypes(MLIRContext *,
                                       std::optional<Location> loc, Adaptor op,
                                       SmallVectorImpl<Type> &results) {
  auto table = dyn_cast<RankedTensorType>(op.getTable());
  RankedTensorType ids = tensorType(op.getIds());
  const int64_t ranks = op.getRanks();
  if (failed(checkTable(loc, table, ids, ranks))) // C1, C3
    return failure();
  SmallVector<int64_t> shape(ids.getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  if (op.getGrad().getType() != table.clone(shape)) // C2
    return emitOptionalError(loc, "takes a gradient of type ",
                             op.getGrad().getType(), " where ",
                             table.clone(shape), " is due");
  auto shard = RankedTensorType::get(
      {shardElements(table.getNumElements(), ranks)}, table.getElementType());
  if (op.getAcc() && op.getAcc().getType() != shard) // C4
    return emitOptionalError(loc, "accumulates a result of type ", shard,
                             " onto ", op.getAcc().getType());
  results.push_back(shard);
  return success();
}

int64_t EmbeddingGradShardOp::getFlops() {
  return elements(getGrad()) / int64_t(getRanks());
}

int64_t EmbeddingGradShardOp::getBytesMoved() {
  const int64_t bytes =
      3 * sizeInBytes(getGrad().getType()) / int64_t(getRanks()) +
      sizeInBytes(getIds().getType());
  return getAcc() ? bytes : bytes + sizeInBytes(getResult().getType());
}

OpCuts EmbeddingGradShardOp::getCuts() { return {*this, kNoBatch}; }

int64_t EmbeddingGradShardOp::getAccumulator() { return getAcc() ? 2 : -1; }

KernelCall EmbeddingGradShardOp::getKernel(ArrayRef<MemRefType>,
                                           Backend backend) {
  KernelCall call = shardedKernel<EmbeddingGradShard>(
      cast<RankedTensorType>(getTable()), tensorType(getIds()), getAxis(),
      backend);
  call.ins = {0, 1}; // The accumulator is the result's own buffer.
  return call;
}
