// Pools.cpp - largest element and mean of sliding windows.

#include "compiler/reference/Interpreter.h"
#include "compiler/reference/Window.h"
#include "dialects/nn/NN.h"

#include <limits>

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

/// Calls `visit(n, c, oh, ow)` for each element of an output image.
template <typename F>
static void forEachElement(const Image &image, F &&visit) {
  for (int64_t n = 0; n < image.batch; ++n)
    for (int64_t c = 0; c < image.channels; ++c)
      for (int64_t h = 0; h < image.height; ++h)
        for (int64_t w = 0; w < image.width; ++w)
          visit(n, c, h, w);
}

template <typename OpTy> static Window windowOf(OpTy op) {
  return Window(op.getStrides(), op.getPadding(), op.getDilations(),
                op.getWindow());
}

/// Calls `visit(largest, output)` with the position of the first largest
/// element of each window, -1 if the window holds only padding.
template <typename OpTy, typename F>
static void forEachLargest(OpTy op, const Tensor &tensor,
                           ArrayRef<int64_t> outShape, F &&visit) {
  Image input(tensor.shape, op.getChannelsLast());
  Image output(outShape, op.getChannelsLast());
  Window window = windowOf(op);
  forEachElement(output, [&](int64_t n, int64_t c, int64_t oh, int64_t ow) {
    int64_t largest = -1;
    window.forEach(input, oh, ow, [&](int64_t h, int64_t w, int64_t, int64_t) {
      int64_t i = input.at(n, c, h, w);
      if (largest < 0 || tensor.floats[i] > tensor.floats[largest])
        largest = i;
    });
    visit(largest, output.at(n, c, oh, ow));
  });
}

/// Calls `visit(input, output, weight)` for each term of each mean.
template <typename OpTy, typename F>
static void forEachTerm(OpTy op, ArrayRef<int64_t> inShape,
                        ArrayRef<int64_t> outShape, F &&visit) {
  Image input(inShape, op.getChannelsLast());
  Image output(outShape, op.getChannelsLast());
  Window window = windowOf(op);
  forEachElement(output, [&](int64_t n, int64_t c, int64_t oh, int64_t ow) {
    int64_t count = 0;
    window.forEach(input, oh, ow,
                   [&](int64_t, int64_t, int64_t, int64_t) { ++count; });
    if (op.getCountPadding())
      count = window.size[0] * window.size[1];
    window.forEach(input, oh, ow, [&](int64_t h, int64_t w, int64_t, int64_t) {
      visit(input.at(n, c, h, w), output.at(n, c, oh, ow), 1.0 / count);
    });
  });
}

void tmc::reference::addPools(OpTable &table) {
  table.add<MaxPoolOp>([](MaxPoolOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    Tensor &out = call.out(0);
    forEachLargest(op, input, out.shape, [&](int64_t i, int64_t o) {
      out.floats[o] =
          i < 0 ? -std::numeric_limits<double>::infinity() : input.floats[i];
    });
    return success();
  });

  table.add<MaxPoolGradOp>([](MaxPoolGradOp op, OpCall &call) {
    const Tensor &grad = call.in(op.getGrad());
    forEachLargest(op, call.in(op.getInput()), grad.shape,
                   [&](int64_t i, int64_t o) {
                     if (i >= 0)
                       call.out(0).floats[i] += grad.floats[o];
                   });
    return success();
  });

  table.add<AvgPoolOp>([](AvgPoolOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    Tensor &out = call.out(0);
    forEachTerm(op, input.shape, out.shape,
                [&](int64_t i, int64_t o, double weight) {
                  out.floats[o] += input.floats[i] * weight;
                });
    return success();
  });

  table.add<AvgPoolGradOp>([](AvgPoolGradOp op, OpCall &call) {
    const Tensor &grad = call.in(op.getGrad());
    Tensor &out = call.out(0);
    forEachTerm(op, out.shape, grad.shape,
                [&](int64_t i, int64_t o, double weight) {
                  out.floats[i] += grad.floats[o] * weight;
                });
    return success();
  });
}
