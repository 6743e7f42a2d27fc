// Rotary.cpp - rotation of pairs of columns.

#include "compiler/reference/Interpreter.h"
#include "dialects/nn/NN.h"

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

void tmc::reference::addRotary(OpTable &table) {
  table.add<RotaryEmbeddingOp>([](RotaryEmbeddingOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    const Tensor &cos = call.in(op.getCos()), &sin = call.in(op.getSin());
    Tensor &out = call.out(0);
    int64_t rotated = cos.shape.back(), half = rotated / 2;
    forEachIndex(out.shape, [&](ArrayRef<int64_t> index, int64_t position) {
      int64_t column = index.back();
      bool isTurned =
          !op.getHeads() || index[index.size() - 2] < int64_t(op.getHeads());
      if (column >= rotated || !isTurned) {
        out.floats[position] = input.floats[position];
        return;
      }
      bool isFirst = op.getInterleaved() ? column % 2 == 0 : column < half;
      int64_t toOther = op.getInterleaved() ? 1 : half;
      int64_t other = isFirst ? column + toOther : column - toOther;
      SmallVector<int64_t> angle(index);
      for (auto [at, size] : llvm::zip(angle, cos.shape))
        if (size == 1)
          at = 0;
      double cosine = cos.floats[linearIndex(angle, cos.shape)];
      if (op.getTransposed())
        angle.back() = other;
      double sine = sin.floats[linearIndex(angle, sin.shape)];
      double sign = isFirst == op.getTransposed() ? 1 : -1;
      out.floats[position] =
          input.floats[position] * cosine +
          sign * input.floats[position + other - column] * sine;
    });
    return success();
  });
}
