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
  ReduceKind kind = op.getKind();
  auto combine = [kind](auto &into, auto value) {
    switch (kind) {
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
  // The position of an element's result doesn't depend on its index in a
  // reduced dimension.
  Walk target{0, SmallVector<int64_t>(input.rank(), 0)};
  SmallVector<int64_t> strides = stridesOf(out.shape);
  for (int64_t dim = 0, kept = 0; dim < input.rank(); ++dim)
    if (!llvm::is_contained(op.getDims(), dim))
      target.strides[dim] = strides[kept++];
  forEachPair(input.shape, target, Walk::over(input.shape),
              [&](int64_t t, int64_t i) {
                if (out.isFloat())
                  combine(out.floats[t], input.floats[i]);
                else
                  combine(out.ints[t], input.ints[i]);
              });
  return success();
}

/// The elements offset + i * step of `tensor`.
static Walk boxOf(const Tensor &tensor, ArrayRef<int64_t> offsets,
                  ArrayRef<int64_t> steps) {
  Walk walk = Walk::over(tensor.shape);
  for (auto [stride, offset, step] :
       llvm::zip_equal(walk.strides, offsets, steps)) {
    walk.start += offset * stride;
    stride *= step;
  }
  return walk;
}

void tmc::reference::addShapes(OpTable &table) {
  table.add<ReduceOp>(reduce);

  table.add<BroadcastOp>([](BroadcastOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    Tensor &out = call.out(0);
    Walk source{0, SmallVector<int64_t>(out.rank(), 0)};
    SmallVector<int64_t> strides = stridesOf(input.shape);
    for (auto [i, dim] : llvm::enumerate(op.getDims()))
      source.strides[dim] = strides[i];
    copyElements(out.shape, out, Walk::over(out.shape), input, source);
    return success();
  });

  table.add<TransposeOp>([](TransposeOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    Tensor &out = call.out(0);
    Walk source;
    SmallVector<int64_t> strides = stridesOf(input.shape);
    for (int64_t dim : op.getPerm())
      source.strides.push_back(strides[dim]);
    copyElements(out.shape, out, Walk::over(out.shape), input, source);
    return success();
  });

  table.add<ReshapeOp>([](ReshapeOp op, OpCall &call) {
    call.out(0).floats = call.in(op.getInput()).floats;
    call.out(0).ints = call.in(op.getInput()).ints;
    return success();
  });

  table.add<CopyOp>([](CopyOp op, OpCall &call) {
    call.out(0) = call.in(op.getInput());
    return success();
  });

  table.add<DetachOp>([](DetachOp op, OpCall &call) {
    call.out(0) = call.in(op.getInput());
    return success();
  });

  table.add<SliceOp>([](SliceOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    Tensor &out = call.out(0);
    Walk source = boxOf(input, op.getOffsets(), op.getSteps());
    copyElements(out.shape, out, Walk::over(out.shape), input, source);
    return success();
  });

  table.add<PadOp>([](PadOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    Tensor &out = call.out(0);
    Walk target = boxOf(out, op.getLow(), op.getSteps());
    copyElements(input.shape, out, target, input, Walk::over(input.shape));
    return success();
  });

  table.add<ConcatOp>([](ConcatOp op, OpCall &call) {
    Tensor &out = call.out(0);
    Walk target = Walk::over(out.shape);
    for (unsigned k = 0; k < call.getNumInputs(); ++k) {
      const Tensor &input = call.in(k);
      copyElements(input.shape, out, target, input, Walk::over(input.shape));
      target.start += input.shape[op.getDim()] * target.strides[op.getDim()];
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
