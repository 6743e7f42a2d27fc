#include "passes/Pieces.h"

#include "passes/Splitter.h"

#include "dialects/interfaces/Fault.h"
#include "dialects/nn/Builders.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using train::TrainDialect;

Pieces::Pieces(ModuleOp module, func::FuncOp forward) : forward(forward) {
  if (auto attr =
          forward->getAttrOfType<IntegerAttr>(TrainDialect::kMicroBatches))
    count = attr.getInt();
  rest = module.lookupSymbol<func::FuncOp>("rest");
  prologue = module.lookupSymbol<func::FuncOp>("prologue");
}

unsigned Pieces::factCount() const {
  return prologue ? func::FuncOp(prologue).getNumResults() : 0;
}

RankedTensorType Pieces::wholeOf(Type equal, Type last) const {
  auto type = cast<RankedTensorType>(equal);
  SmallVector<int64_t> shape(type.getShape());
  shape[0] *= count;
  if (last)
    shape[0] += cast<RankedTensorType>(last).getDimSize(0);
  return type.clone(shape);
}

RankedTensorType Pieces::batchType(unsigned index) const {
  func::FuncOp last = rest;
  if (!isSplit() || !train::isCut(forward, index))
    return cast<RankedTensorType>(
        func::FuncOp(forward).getArgumentTypes()[index]);
  return wholeOf(func::FuncOp(forward).getArgumentTypes()[index],
                 last ? last.getArgumentTypes()[index] : Type());
}

void Pieces::eraseOthers() {
  for (func::FuncOp function : {rest, prologue})
    if (function)
      function.erase();
}

SmallVector<Value> Pieces::buildFacts(OpBuilder &b, ArrayRef<Value> args) {
  SmallVector<Value> facts;
  if (!prologue)
    return facts;
  IRMapping map;
  for (BlockArgument argument : prologue.getArguments())
    for (unsigned i = 0; i < forward.getNumArguments() - factCount(); ++i)
      if (train::argName(forward, i) ==
          train::argName(prologue, argument.getArgNumber()))
        map.map(argument, args[i]);
  for (Operation &op : prologue.front().without_terminator())
    b.clone(op, map);
  for (Value value : prologue.front().getTerminator()->getOperands())
    facts.push_back(map.lookupOrDefault(value));
  return facts;
}

LogicalResult Pieces::refuseOutput(StringRef name, const Twine &why) {
  InFlightDiagnostic diag =
      emitFault(forward.getLoc(), FailureKind::Unsupported)
      << "micro-batches can't keep the output '" << name << "': " << why;
  diag.attachNote(forward.getLoc())
      << "--micro-batches=1 computes the whole batch at once";
  return diag;
}

LogicalResult Pieces::listSums(const Request &request) {
  SmallVector<StringRef> missing(request.outputs.begin(),
                                 request.outputs.end());
  for (unsigned i = 0; i < forward.getNumResults(); ++i) {
    auto type = cast<RankedTensorType>(forward.getResultTypes()[i]);
    StringRef name = train::resultName(forward, i);
    if (i == request.loss) {
      sums.push_back({Sum::Loss, i, type});
      llvm::erase(missing, name);
    } else if (train::updatedArg(forward, i)) {
      sums.push_back({Sum::State, i, type});
    } else if (llvm::is_contained(missing, name)) {
      auto dim = forward.getResultAttrOfType<IntegerAttr>(i, kConcat);
      if (!dim)
        return refuseOutput(name, "it doesn't depend on the batch");
      if (dim.getInt() != 0)
        return refuseOutput(name, "its pieces lie along dimension " +
                                      Twine(dim.getInt()));
      if (!isa<FloatType>(type.getElementType()))
        return refuseOutput(name, "it has no floats");
      Type element = nn::accumulationType(type.getElementType());
      sums.push_back({Sum::Output, i,
                      wholeOf(type, rest ? rest.getResultTypes()[i] : Type())
                          .clone(element)});
      llvm::erase(missing, name);
    }
  }
  if (!missing.empty())
    return refuseOutput(missing[0], "it is one number of the whole batch");
  return success();
}

/// Rows [first, first + type's) of `batch`.
static Value rowsOf(OpBuilder &b, Value batch, int64_t first,
                    RankedTensorType type) {
  if (type == batch.getType())
    return batch;
  SmallVector<int64_t> offsets(type.getRank(), 0), steps(type.getRank(), 1);
  offsets[0] = first;
  return nn::SliceOp::create(b, batch.getLoc(), type, batch, offsets, steps);
}

LogicalResult Pieces::build(OpBuilder &b, const Request &request,
                            SmallVector<Value> &returned) {
  if (failed(listSums(request)))
    return failure();
  unsigned kept = forward.getNumArguments() - factCount();
  SmallVector<Value> inputs(request.args.take_front(kept));
  inputs.append(buildFacts(b, request.args));

  // Cut values: batch arguments, then the row numbers of each output.
  SmallVector<unsigned> cut;
  SmallVector<Value> wholes;
  SmallVector<Type> equal, last; // Types of their pieces.
  for (unsigned i = 0; i < kept; ++i)
    if (train::isCut(forward, i)) {
      cut.push_back(i);
      wholes.push_back(inputs[i]);
      equal.push_back(forward.getArgumentTypes()[i]);
      last.push_back(rest ? rest.getArgumentTypes()[i] : Type());
    }
  for (const Sum &sum : sums)
    if (sum.kind == Sum::Output) {
      auto rows = [&](Type type) -> Type {
        return RankedTensorType::get(
            {cast<RankedTensorType>(type).getDimSize(0)}, b.getI64Type());
      };
      equal.push_back(rows(forward.getResultTypes()[sum.result]));
      last.push_back(rest ? rows(rest.getResultTypes()[sum.result]) : Type());
      wholes.push_back(nn::IotaOp::create(
          b, request.loc, wholeOf(equal.back(), last.back()), 0));
    }

  SmallVector<Value> heads;
  for (auto [whole, type] : llvm::zip(wholes, equal))
    heads.push_back(rowsOf(b, whole, 0, wholeOf(type, Type())));
  SmallVector<Type> carried;
  for (const Sum &sum : sums)
    carried.push_back(sum.type);
  for (unsigned param : request.params) { // They add up in f32 at least.
    auto type = cast<RankedTensorType>(inputs[param].getType());
    carried.push_back(type.clone(nn::accumulationType(type.getElementType())));
  }
  auto loop = train::MicroBatchOp::create(b, request.loc, carried,
                                          b.getI64IntegerAttr(count), heads);
  Block &block = loop.getBody().emplaceBlock();
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  SmallVector<Value> pieces, totals;
  for (auto [whole, type] : llvm::zip(wholes, equal))
    pieces.push_back(block.addArgument(type, whole.getLoc()));
  for (Type type : carried)
    totals.push_back(block.addArgument(type, request.loc));
  for (auto [i, piece] : llvm::zip(cut, pieces))
    inputs[i] = piece;
  if (failed(addPiece(inner, forward, inputs,
                      ArrayRef(pieces).drop_front(cut.size()), totals, request,
                      [](unsigned, Value) {})))
    return failure();
  train::YieldOp::create(inner, request.loc, totals);
  totals.assign(loop.result_begin(), loop.result_end());

  if (rest) {
    pieces.clear();
    for (auto [whole, head, type] : llvm::zip(wholes, heads, last))
      pieces.push_back(rowsOf(b, whole, nn::tensorType(head).getDimSize(0),
                              cast<RankedTensorType>(type)));
    for (auto [i, piece] : llvm::zip(cut, pieces))
      inputs[i] = piece;
    if (failed(addPiece(b, rest, inputs,
                        ArrayRef(pieces).drop_front(cut.size()), totals,
                        request, request.onGradient)))
      return failure();
  } else {
    for (unsigned i = 0; i < request.params.size(); ++i)
      request.onGradient(i, totals[sums.size() + i]);
  }

  returned.resize(forward.getNumResults());
  for (auto [sum, total] : llvm::zip(sums, totals)) {
    returned[sum.result] = nn::convertTo(
        b, total.getLoc(), total,
        getElementTypeOrSelf(forward.getResultTypes()[sum.result]));
    if (sum.kind != Sum::State)
      continue;
    double decay = forward.getResultAttrOfType<FloatAttr>(sum.result, kDecay)
                       .getValueAsDouble();
    Value old = request.args[*train::updatedArg(forward, sum.result)];
    Value left = nn::scale(b, old.getLoc(), old,
                           std::pow(decay, double(count + bool(rest))));
    returned[sum.result] = nn::add(b, old.getLoc(), left, total);
  }
  return success();
}

LogicalResult Pieces::addPiece(OpBuilder &b, func::FuncOp function,
                               SmallVector<Value> inputs,
                               ArrayRef<Value> places,
                               SmallVector<Value> &totals,
                               const Request &request, OnGradient onGradient) {
  for (auto [sum, total] : llvm::zip(sums, totals))
    if (sum.kind == Sum::State)
      inputs[*train::updatedArg(forward, sum.result)] = total;
  SmallVector<Value> returned;
  if (failed(request.body(
          b, function, inputs, returned, [&](unsigned index, Value grad) {
            Value &total = totals[sums.size() + index];
            Value wide = nn::convertTo(b, grad.getLoc(), grad,
                                       getElementTypeOrSelf(total.getType()));
            total = nn::add(b, grad.getLoc(), total, wide);
            onGradient(index, total);
          })))
    return failure();
  for (auto [sum, total] : llvm::zip(sums, totals)) {
    Value value = returned[sum.result];
    Location loc = value.getLoc();
    if (sum.kind == Sum::State) {
      total = value;
      continue;
    }
    if (sum.kind == Sum::Output) {
      value = nn::convertTo(b, loc, value, sum.type.getElementType());
      value = nn::EmbeddingGradOp::create(b, loc, sum.type, places.front(),
                                          value, Value());
      places = places.drop_front();
    }
    total = nn::add(b, loc, total, value);
  }
  return success();
}
