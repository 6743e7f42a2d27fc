// Shapes.cpp - ops that move elements, and reductions.

#include "compiler/reference/Interpreter.h"
#include "dialects/nn/NN.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

static LogicalResult reduce(ReduceOp op, OpCall &call) {
  const Tensor &input = call.in(op.getInput());
  Tensor &out = call.out(0);
  if (op.getKind() != ReduceKind::Sum) {
    bool isMax = op.getKind() == ReduceKind::Max;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::fill(out.floats.begin(), out.floats.end(),
              isMax ? -infinity : infinity);
    std::fill(out.ints.begin(), out.ints.end(),
              isMax ? std::numeric_limits<int64_t>::min()
                    : std::numeric_limits<int64_t>::max());
  }
  auto combine = [&](auto &into, auto value) {
    switch (op.getKind()) {
    case ReduceKind::Sum:
      into += value;
      break;
    case ReduceKind::Max: // A NaN wins, as it would in a sum.
      into = value != value ? value : std::max(into, value);
      break;
    case ReduceKind::Min:
      into = value != value ? value : std::min(into, value);
      break;
    }
  };
  forEachIndex(input.shape, [&](ArrayRef<int64_t> index, int64_t position) {
    SmallVector<int64_t> kept;
    for (auto [dim, i] : llvm::enumerate(index))
      if (!llvm::is_contained(op.getDims(), int64_t(dim)))
        kept.push_back(i);
    int64_t target = linearIndex(kept, out.shape);
    if (out.isFloat())
      combine(out.floats[target], input.floats[position]);
    else
      combine(out.ints[target], input.ints[position]);
  });
  return success();
}

void tmc::reference::addShapes(OpTable &table) {
  table.add<ReduceOp>(reduce);

  table.add<BroadcastOp>([](BroadcastOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    Tensor &out = call.out(0);
    forEachIndex(out.shape, [&](ArrayRef<int64_t> index, int64_t position) {
      SmallVector<int64_t> source;
      for (int64_t dim : op.getDims())
        source.push_back(index[dim]);
      out.set(position, input, linearIndex(source, input.shape));
    });
    return success();
  });

  table.add<TransposeOp>([](TransposeOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    Tensor &out = call.out(0);
    forEachIndex(out.shape, [&](ArrayRef<int64_t> index, int64_t position) {
      SmallVector<int64_t> source(index.size());
      for (auto [i, dim] : llvm::enumerate(op.getPerm()))
        source[dim] = index[i];
      out.set(position, input, linearIndex(source, input.shape));
    });
    return success();
  });

  table.add<ReshapeOp>([](ReshapeOp op, OpCall &call) {
    for (int64_t i = 0; i < call.out(0).size(); ++i)
      call.out(0).set(i, call.in(op.getInput()), i);
    return success();
  });

  table.add<CopyOp>([](CopyOp op, OpCall &call) {
    call.out(0) = call.in(op.getInput());
    return success();
  });

  table.add<SliceOp>([](SliceOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    Tensor &out = call.out(0);
    forEachIndex(out.shape, [&](ArrayRef<int64_t> index, int64_t position) {
      SmallVector<int64_t> source;
      for (auto [i, offset, step] :
           llvm::zip_equal(index, op.getOffsets(), op.getSteps()))
        source.push_back(offset + i * step);
      out.set(position, input, linearIndex(source, input.shape));
    });
    return success();
  });

  table.add<PadOp>([](PadOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    Tensor &out = call.out(0);
    forEachIndex(input.shape, [&](ArrayRef<int64_t> index, int64_t position) {
      SmallVector<int64_t> target;
      for (auto [i, low, step] :
           llvm::zip_equal(index, op.getLow(), op.getSteps()))
        target.push_back(low + i * step);
      out.set(linearIndex(target, out.shape), input, position);
    });
    return success();
  });

  table.add<ConcatOp>([](ConcatOp op, OpCall &call) {
    Tensor &out = call.out(0);
    int64_t before = 0;
    for (unsigned k = 0; k < call.getNumInputs(); ++k) {
      const Tensor &input = call.in(k);
      forEachIndex(input.shape, [&](ArrayRef<int64_t> index, int64_t position) {
        SmallVector<int64_t> target(index);
        target[op.getDim()] += before;
        out.set(linearIndex(target, out.shape), input, position);
      });
      before += input.shape[op.getDim()];
    }
    return success();
  });

  table.add<IotaOp>([](IotaOp op, OpCall &call) {
    Tensor &out = call.out(0);
    forEachIndex(out.shape, [&](ArrayRef<int64_t> index, int64_t position) {
      if (out.isFloat())
        out.floats[position] = index[op.getDim()];
      else
        out.ints[position] = index[op.getDim()];
    });
    return success();
  });
}
