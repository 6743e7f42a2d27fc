// Products.cpp - matrix products and convolutions.

#include "compiler/reference/Interpreter.h"
#include "compiler/reference/Window.h"
#include "dialects/nn/NN.h"

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

/// The rows x cols matrix at `data`, or its transpose.
static std::vector<double> matrixOf(const double *data, int64_t rows,
                                    int64_t cols, bool transposed) {
  std::vector<double> result(data, data + rows * cols);
  if (transposed)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        result[i * cols + j] = data[j * rows + i];
  return result;
}

static LogicalResult matmul(MatmulOp op, OpCall &call) {
  const Tensor &lhs = call.in(op.getLhs()), &rhs = call.in(op.getRhs());
  const Tensor *bias = call.inOrNull(op.getBias());
  Tensor &out = call.out(0);
  int64_t rank = out.rank(), m = out.shape[rank - 2], n = out.shape[rank - 1];
  int64_t k = lhs.shape[op.getTransposeLhs() ? rank - 2 : rank - 1];
  int64_t batch = out.size() / std::max<int64_t>(1, m * n);
  if (const Tensor *acc = call.inOrNull(op.getAcc()))
    out.floats = acc->floats;

  for (int64_t b = 0; b < batch; ++b) {
    std::vector<double> x =
        matrixOf(&lhs.floats[b * m * k], m, k, op.getTransposeLhs());
    std::vector<double> y =
        matrixOf(&rhs.floats[b * k * n], k, n, op.getTransposeRhs());
    for (int64_t i = 0; i < m; ++i) {
      double *row = &out.floats[(b * m + i) * n];
      // This order lets the compiler use vectors: a step of a real model is
      // minutes of this loop.
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j)
          row[j] += x[i * k + p] * y[p * n + j];
      for (int64_t j = 0; bias && j < n; ++j)
        row[j] += bias->floats[j];
    }
  }
  return success();
}

/// Calls `visit(input, filter, output)` with the positions of each product that
/// a convolution adds: output += input * filter. Gradients are the same loop
/// with the roles exchanged.
template <typename OpTy>
static void
forEachProduct(OpTy op, ArrayRef<int64_t> inputShape,
               ArrayRef<int64_t> filterShape, ArrayRef<int64_t> outputShape,
               llvm::function_ref<void(int64_t, int64_t, int64_t)> visit) {
  Image input(inputShape, op.getChannelsLast());
  Image output(outputShape, op.getChannelsLast());
  Window window(op.getStrides(), op.getPadding(), op.getDilations(),
                filterShape.drop_front(2));
  int64_t filters = filterShape[0], depth = filterShape[1];
  int64_t filtersPerGroup = filters / op.getGroups();
  for (int64_t n = 0; n < output.batch; ++n)
    for (int64_t f = 0; f < filters; ++f)
      for (int64_t oh = 0; oh < output.height; ++oh)
        for (int64_t ow = 0; ow < output.width; ++ow)
          window.forEach(
              input, oh, ow, [&](int64_t h, int64_t w, int64_t r, int64_t s) {
                for (int64_t d = 0; d < depth; ++d)
                  visit(input.at(n, f / filtersPerGroup * depth + d, h, w),
                        linearIndex({f, d, r, s}, filterShape),
                        output.at(n, f, oh, ow));
              });
}

void tmc::reference::addProducts(OpTable &table) {
  table.add<MatmulOp>(matmul);

  table.add<ConvOp>([](ConvOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    const Tensor &filter = call.in(op.getFilter());
    Tensor &out = call.out(0);
    forEachProduct(op, input.shape, filter.shape, out.shape,
                   [&](int64_t i, int64_t f, int64_t o) {
                     out.floats[o] += input.floats[i] * filter.floats[f];
                   });
    return success();
  });

  table.add<ConvGradInputOp>([](ConvGradInputOp op, OpCall &call) {
    const Tensor &grad = call.in(op.getGrad());
    const Tensor &filter = call.in(op.getFilter());
    Tensor &out = call.out(0);
    forEachProduct(op, out.shape, filter.shape, grad.shape,
                   [&](int64_t i, int64_t f, int64_t o) {
                     out.floats[i] += grad.floats[o] * filter.floats[f];
                   });
    return success();
  });

  table.add<ConvGradFilterOp>([](ConvGradFilterOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    const Tensor &grad = call.in(op.getGrad());
    Tensor &out = call.out(0);
    forEachProduct(op, input.shape, out.shape, grad.shape,
                   [&](int64_t i, int64_t f, int64_t o) {
                     out.floats[f] += input.floats[i] * grad.floats[o];
                   });
    return success();
  });
}
