// Products.cpp - matrix products and convolutions.

#include "compiler/reference/Interpreter.h"
#include "compiler/reference/Window.h"
#include "dialects/nn/NN.h"

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

/// Calls `body(begin, end)` for [0, count) in pieces of at most `size`.
template <typename F>
static void forEachBlock(int64_t count, int64_t size, F &&body) {
  for (int64_t begin = 0; begin < count; begin += size)
    body(begin, std::min(count, begin + size));
}

/// The rows x cols matrix at `data`, or its transpose.
static std::vector<double> matrixOf(const double *data, int64_t rows,
                                    int64_t cols, bool transposed) {
  std::vector<double> result(data, data + rows * cols);
  if (!transposed)
    return result;
  constexpr int64_t kTile = 16;
  forEachBlock(rows, kTile, [&](int64_t i0, int64_t i1) {
    forEachBlock(cols, kTile, [&](int64_t j0, int64_t j1) {
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t j = j0; j < j1; ++j)
          result[i * cols + j] = data[j * rows + i];
    });
  });
  return result;
}

/// Adds to out[j], for j < count, the products of four numbers of a row of x
/// with four rows of y.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
addProducts4(double *__restrict out, int64_t count, const double *x,
             const double *__restrict y, int64_t stride) {
  const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
  const double *y1 = y + stride, *y2 = y1 + stride, *y3 = y2 + stride;
  for (int64_t j = 0; j < count; ++j)
    out[j] += (x0 * y[j] + x1 * y1[j]) + (x2 * y2[j] + x3 * y3[j]);
}

/// out += x y, for m x k, k x n and m x n. A step of a real model is minutes of
/// this: a block of y stays in the cache while rows of x go by.
static void addProduct(double *out, const double *x, const double *y, int64_t m,
                       int64_t k, int64_t n) {
  constexpr int64_t kDepth = 128, kWidth = 256;
  forEachBlock(n, kWidth, [&](int64_t j0, int64_t j1) {
    forEachBlock(k, kDepth, [&](int64_t p0, int64_t p1) {
      for (int64_t i = 0; i < m; ++i) {
        double *row = out + i * n + j0;
        int64_t p = p0;
        for (; p + 4 <= p1; p += 4)
          addProducts4(row, j1 - j0, x + i * k + p, y + p * n + j0, n);
        for (; p < p1; ++p)
          for (int64_t j = 0; j < j1 - j0; ++j)
            row[j] += x[i * k + p] * y[p * n + j0 + j];
      }
    });
  });
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
    double *to = &out.floats[b * m * n];
    addProduct(to, x.data(), y.data(), m, k, n);
    for (int64_t i = 0; bias && i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        to[i * n + j] += bias->floats[j];
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
