// Ranks.cpp - nn.sum_over, nn.exchange, nn.sum_pieces, nn.gather.

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

/// The bytes of one of `ranks` pieces of `value`.
static int64_t pieceBytes(Value value, int64_t ranks) {
  return sizeInBytes(value.getType()) / ranks;
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
  RankedTensorType type = tensorType(op.getInput());
  const int64_t ranks = op.getRanks();
  if (ranks < 1 || type.getNumElements() % ranks) // C1
    return emitOptionalError(loc, "exchanges ", ranks, " pieces of ", type);
  results.push_back(RankedTensorType::get(
      {ranks, type.getNumElements() / ranks}, type.getElementType()));
  return success();
}

int64_t ExchangeOp::getFlops() { return 0; }
int64_t ExchangeOp::getBytesMoved() {
  return (getRanks() - 1) * pieceBytes(getInput(), getRanks());
}

BatchSplit ExchangeOp::getSplit(ArrayRef<int64_t> batchDims) {
  if (batchDims[0] >= 0)
    return BatchSplit::refuse(kNoBatch);
  return {{Rejoin::whole()}, ""};
}

KernelCall ExchangeOp::getKernel(ArrayRef<MemRefType>, Backend backend) {
  const int64_t ranks = getRanks();
  return KernelCall::of<ExchangeRanks>(getContext(),
                                       {.axis = runtimeAxis(getAxis()),
                                        .ranks = ranks,
                                        .bytes = pieceBytes(getInput(), ranks)},
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
      to.getNumElements() != ranks * from.getNumElements()) // C1
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
       .bytes = sizeInBytes(getInput().getType())},
      backend);
}
