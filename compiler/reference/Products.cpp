// Products.cpp - matrix products and convolutions.

#include "compiler/reference/DoubleProduct.h"
#include "compiler/reference/Interpreter.h"
#include "compiler/reference/PackedScales.h"
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

/// The values of codes: each code times its scale, which is the one of the
/// tensor or of the code's block of 128. A double holds the product exactly.
static Tensor valuesOf(const Tensor &codes, const Tensor *scale) {
  Tensor values = codes;
  if (scale && scale->rank() == 1) {
    forEachIndex(codes.shape, [&](ArrayRef<int64_t> index, int64_t i) {
      values.floats[i] *= scale->floats[packedScaleAt(
          codes.shape, scale->size(), index[0], index[1])];
    });
    return values;
  }
  SmallVector<int64_t> strides;
  if (scale)
    strides = stridesOf(scale->shape);
  if (scale)
    forEachIndex(codes.shape, [&](ArrayRef<int64_t> index, int64_t i) {
      int64_t at = 0;
      for (auto [dim, stride] : llvm::enumerate(strides))
        at +=
            stride * (scale->shape[dim] == codes.shape[dim] ? index[dim]
                                                            : index[dim] / 128);
      values.floats[i] *= roundTo(Element::F32, scale->floats[at]);
    });
  return values;
}

static LogicalResult matmul(MatmulOp op, OpCall &call) {
  const Tensor lhs = valuesOf(call.factor(op.getLhs(), op.getProductType()),
                              call.inOrNull(op.getLhsScale()));
  const Tensor rhs = valuesOf(call.factor(op.getRhs(), op.getProductType()),
                              call.inOrNull(op.getRhsScale()));
  const Tensor *bias = call.inOrNull(op.getBias());
  Tensor &out = call.out(0);
  int64_t rank = out.rank(), m = out.shape[rank - 2], n = out.shape[rank - 1];
  int64_t k = lhs.shape[op.getTransposeLhs() ? rank - 2 : rank - 1];
  int64_t batch = out.size() / std::max<int64_t>(1, m * n);
  if (const Tensor *acc = call.inOrNull(op.getAcc()))
    out.floats = acc->floats;

  for (int64_t b = 0; b < batch; ++b) {
    double *to = out.floats.data() + b * m * n;
    addProduct(to,
               MatrixView::of(lhs.floats.data() + b * m * k, m, k,
                              op.getTransposeLhs()),
               MatrixView::of(rhs.floats.data() + b * k * n, k, n,
                              op.getTransposeRhs()),
               m, k, n);
    for (int64_t i = 0; bias && i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        to[i * n + j] += bias->floats[j];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

namespace {

/// A convolution as products: per group and for some rows of output elements,
/// the elements under the window are the columns of a matrix. With F filters of
/// K = D * R * S weights each, and P output elements,
/// K = D * R * S weights each, and P output elements,
///
///     output [F, P] = filter [F, K] window [K, P]
///
/// and the gradients are the two other products of the same three.
class ConvProducts {
public:
  template <typename OpTy>
  ConvProducts(OpTy op, ArrayRef<int64_t> inputShape,
               ArrayRef<int64_t> filterShape, ArrayRef<int64_t> outputShape)
      : input(inputShape, op.getChannelsLast()),
        output(outputShape, op.getChannelsLast()),
        window(op.getStrides(), op.getPadding(), op.getDilations(),
               filterShape.drop_front(2)),
        groups(op.getGroups()), filters(filterShape[0] / groups),
        depth(filterShape[1]),
        weights(depth * filterShape[2] * filterShape[3]) {}

  /// Calls `body(group, first row)` for all pieces; rows count through all
  /// output images, one after the other.
  template <typename F> void forEachPiece(F &&body) {
    constexpr int64_t kElements = 4096; // Per piece: a few MB of columns.
    int64_t rows = output.batch * output.height;
    int64_t some = std::max<int64_t>(1, kElements / output.width);
    for (int64_t group = 0; group < groups; ++group)
      forEachBlock(rows, some, [&](int64_t begin, int64_t end) {
        firstRow = begin;
        lastRow = end;
        body(group);
      });
  }

  /// The number of output elements of the piece.
  int64_t elements() const { return (lastRow - firstRow) * output.width; }

  /// Calls `visit(k, p, i)` where output element `p` of the piece multiplies
  /// weight `k` of a filter with element `i` of the input.
  template <typename F> void forEachMeeting(int64_t group, F &&visit) const {
    int64_t stepC = input.at(0, 1, 0, 0), stepW = input.at(0, 0, 0, 1);
    for (int64_t row = firstRow; row < lastRow; ++row) {
      int64_t n = row / output.height, oh = row % output.height, k = 0;
      for (int64_t d = 0; d < depth; ++d)
        for (int64_t r = 0; r < window.size[0]; ++r)
          for (int64_t s = 0; s < window.size[1]; ++s, ++k) {
            int64_t h = oh * window.strides[0] - window.padding[0] +
                        r * window.dilations[0];
            if (h < 0 || h >= input.height)
              continue;
            int64_t at = input.at(n, 0, h, 0) + (group * depth + d) * stepC;
            int64_t w = s * window.dilations[1] - window.padding[1];
            int64_t p = (row - firstRow) * output.width;
            for (int64_t ow = 0; ow < output.width;
                 ++ow, ++p, w += window.strides[1])
              if (w >= 0 && w < input.width)
                visit(k, p, at + w * stepW);
          }
    }
  }

  /// Calls `visit(f, p, o)` for element `o` of the output, which belongs to
  /// filter `f` of the group and element `p` of the piece.
  template <typename F> void forEachOutput(int64_t group, F &&visit) const {
    int64_t stepC = output.at(0, 1, 0, 0), stepW = output.at(0, 0, 0, 1);
    for (int64_t f = 0; f < filters; ++f)
      for (int64_t row = firstRow; row < lastRow; ++row) {
        int64_t at = output.at(row / output.height, 0, row % output.height, 0) +
                     (group * filters + f) * stepC;
        int64_t p = (row - firstRow) * output.width;
        for (int64_t ow = 0; ow < output.width; ++ow)
          visit(f, p + ow, at + ow * stepW);
      }
  }

private:
  Image input, output;
  Window window;
  int64_t firstRow = 0, lastRow = 0;

public:
  int64_t groups, filters, depth;
  int64_t weights; ///< Per filter.
};

} // namespace

static LogicalResult conv(ConvOp op, OpCall &call) {
  const Tensor &input = call.in(op.getInput());
  const Tensor filter = call.factor(op.getFilter(), op.getProductType());
  Tensor &out = call.out(0);
  ConvProducts c(op, input.shape, filter.shape, out.shape);
  c.forEachPiece([&](int64_t group) {
    int64_t size = c.elements();
    std::vector<double> window(c.weights * size), result(c.filters * size);
    c.forEachMeeting(group, [&](int64_t k, int64_t p, int64_t i) {
      window[k * size + p] = input.floats[i];
    });
    addProduct(result.data(),
               MatrixView::of(&filter.floats[group * c.filters * c.weights],
                              c.filters, c.weights),
               MatrixView::of(window.data(), c.weights, size), c.filters,
               c.weights, size);
    c.forEachOutput(group, [&](int64_t f, int64_t p, int64_t o) {
      out.floats[o] = result[f * size + p];
    });
  });
  return success();
}

static LogicalResult convGradInput(ConvGradInputOp op, OpCall &call) {
  const Tensor &grad = call.in(op.getGrad());
  const Tensor filter = call.factor(op.getFilter(), op.getProductType());
  Tensor &out = call.out(0);
  ConvProducts c(op, out.shape, filter.shape, grad.shape);
  c.forEachPiece([&](int64_t group) {
    int64_t size = c.elements();
    std::vector<double> window(c.weights * size), g(c.filters * size);
    c.forEachOutput(group, [&](int64_t f, int64_t p, int64_t o) {
      g[f * size + p] = grad.floats[o];
    });
    addProduct(window.data(),
               MatrixView::of(&filter.floats[group * c.filters * c.weights],
                              c.weights, c.filters, /*isTransposed=*/true),
               MatrixView::of(g.data(), c.filters, size), c.weights, c.filters,
               size);
    c.forEachMeeting(group, [&](int64_t k, int64_t p, int64_t i) {
      out.floats[i] += window[k * size + p];
    });
  });
  return success();
}

static LogicalResult convGradFilter(ConvGradFilterOp op, OpCall &call) {
  const Tensor &input = call.in(op.getInput());
  const Tensor &grad = call.in(op.getGrad());
  Tensor &out = call.out(0);
  ConvProducts c(op, input.shape, out.shape, grad.shape);
  c.forEachPiece([&](int64_t group) {
    int64_t size = c.elements();
    std::vector<double> window(c.weights * size), g(c.filters * size);
    c.forEachMeeting(group, [&](int64_t k, int64_t p, int64_t i) {
      window[k * size + p] = input.floats[i];
    });
    c.forEachOutput(group, [&](int64_t f, int64_t p, int64_t o) {
      g[f * size + p] = grad.floats[o];
    });
    addProduct(&out.floats[group * c.filters * c.weights],
               MatrixView::of(g.data(), c.filters, size),
               MatrixView::of(window.data(), size, c.weights,
                              /*isTransposed=*/true),
               c.filters, size, c.weights);
  });
  return success();
}

void tmc::reference::addProducts(OpTable &table) {
  table.add<MatmulOp>(matmul);
  table.add<ConvOp>(conv);
  table.add<ConvGradInputOp>(convGradInput);
  table.add<ConvGradFilterOp>(convGradFilter);
}
