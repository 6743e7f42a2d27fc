//===- LinearCrossEntropy.cpp - loss of a product, chunk by chunk, on cuda ===//
//
// The logits of a chunk of rows exist only in scratch. The gradient recomputes
// them, or continues with the logits of the loss. It turns them into their own
// gradient in place, and multiplies twice. If x and w are narrow, the logits
// are f32, and a row of the rounded gradient takes the first half of the
// logits' row. Byte by byte:
//
//   logits   [rows, V] f32     x0 x0 x0 x0 x1 x1 x1 x1 ...
//   dlogits  [rows, V] bf16    d0 d0 d1 d1 ...             2 V from row to row
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/CrossEntropy.h"

#include "runtime/cuda/CrossEntropyRows.h"
#include "runtime/cuda/Gemm.h"

#include <algorithm>

namespace tmc {

namespace cuda {
namespace {

/// One product for whole chunks and one for a shorter last chunk.
class ChunkedGemm {
public:
  /// `shape` gives all parameters except scratch for the product of a chunk
  /// with a given number of rows; see Gemm::prepare for `lhsStride`.
  template <typename Shape>
  Status prepare(const char *name, CudaDevice &device,
                 const LinearCrossEntropyParams &p, int64_t productBytes,
                 int64_t lhsStride, Shape &&shape) {
    whole_ = std::min(p.chunkRows, p.rows);
    const int64_t last = whole_ ? p.rows % whole_ : 0;
    for (int64_t rows : {whole_, last}) {
      if (rows == 0)
        continue;
      Matmul::Params m = shape(rows);
      m.batch = 1;
      m.scratchBytes = productBytes;
      Gemm &gemm = rows == whole_ ? full_ : rest_;
      if (Status s = gemm.prepare(name, device, m, lhsStride); !s)
        return s;
    }
    return Status::ok();
  }
  void run(const Queue &queue, int64_t rows, const void *lhs, const void *rhs,
           const void *bias, void *out, void *workspace, bool accumulate) {
    (rows == whole_ ? full_ : rest_)
        .run(queue, {lhs, rhs, bias}, out, workspace, accumulate);
  }

private:
  int64_t whole_ = 0;
  Gemm full_, rest_;
};

/// The pieces of the scratch region; see linearCrossEntropyScratchCap.
struct Pieces {
  float *logits, *losses;
  void *product;

  Pieces(const LinearCrossEntropyParams &p, void *base) {
    char *at = static_cast<char *>(base);
    logits = reinterpret_cast<float *>(at);
    at += alignScratch(std::min(p.chunkRows, p.rows) * p.width() * 4);
    losses = reinterpret_cast<float *>(at);
    product = at + alignScratch(p.rows * 4);
  }
  static int64_t bytesBeforeProduct(const LinearCrossEntropyParams &p) {
    return alignScratch(std::min(p.chunkRows, p.rows) * p.width() * 4) +
           alignScratch(p.rows * 4);
  }
};

/// The row stride of the logits' gradient, in elements.
int64_t gradientStride(const LinearCrossEntropyParams &p) {
  return p.width() * (4 / sizeOf(p.type));
}
StoredRows gradientOf(const LinearCrossEntropyParams &p, const Pieces &pieces) {
  return {pieces.logits, p.type, gradientStride(p)};
}

/// The products, and the work for each chunk of logits.
struct Products {
  CudaDevice *device = nullptr;
  ChunkedGemm logits, dx, dw;

  /// The requested gradients; null: not requested.
  struct Gradients {
    void *dx; // of the type of x
    float *dw, *dbias;
  };

  /// Bytes before row r0 of x and of dx.
  static int64_t bytesBefore(const LinearCrossEntropyParams &p, int64_t r0) {
    return r0 * p.channels * sizeOf(p.type);
  }

  void makeLogits(Queue &queue, const LinearCrossEntropyParams &p,
                  const void *x, const void *w, const void *bias, int64_t r0,
                  int64_t rows, const Pieces &pieces) {
    logits.run(queue, rows, static_cast<const char *>(x) + bytesBefore(p, r0),
               w, bias, pieces.logits, pieces.product, false);
  }

  /// Multiplies by a chunk's gradient of logits, which is in scratch.
  void addGradients(Queue &queue, const LinearCrossEntropyParams &p,
                    const void *x, const void *w, int64_t r0, int64_t rows,
                    const Pieces &pieces, const Gradients &to,
                    bool accumulate) {
    const int64_t before = bytesBefore(p, r0);
    const StoredRows gradient = gradientOf(p, pieces);
    if (to.dbias)
      addRows(queue, gradient, rows, p.width(), to.dbias, accumulate || r0 > 0);
    if (to.dx)
      dx.run(queue, rows, gradient.data, w, nullptr,
             static_cast<char *>(to.dx) + before, pieces.product, false);
    if (to.dw)
      dw.run(queue, rows, gradient.data, static_cast<const char *>(x) + before,
             nullptr, to.dw, pieces.product, accumulate || r0 > 0);
  }

  Status prepare(const char *name, Device &on,
                 const LinearCrossEntropyParams &p, bool gradients) {
    device = &deviceOf(on);
    if (Status s =
            requireScratch(name, linearCrossEntropyScratchCap(p, Backend::Cuda),
                           p.scratchBytes);
        !s)
      return s;
    const int64_t left = p.scratchBytes - Pieces::bytesBeforeProduct(p);
    const int64_t v = p.width(), c = p.channels;
    auto shape = [&](DType out, int64_t m, int64_t n, int64_t k,
                     bool transposeLhs, bool transposeRhs) {
      Matmul::Params q{};
      q.lhs = q.rhs = p.type;
      q.tf32 = p.tf32;
      q.out = out;
      q.m = m;
      q.n = n;
      q.k = k;
      q.transposeLhs = transposeLhs;
      q.transposeRhs = transposeRhs;
      return q;
    };
    // logits = x w^T (+ bias)
    auto logitsShape = [&](int64_t rows) {
      Matmul::Params q = shape(DType::F32, rows, v, c, false, true);
      q.bias = p.bias;
      return q;
    };
    if (Status s = logits.prepare(name, *device, p, left, 0, logitsShape);
        !s || !gradients)
      return s;
    // dx = dlogits w
    auto dxShape = [&](int64_t rows) {
      return shape(p.type, rows, c, v, false, false);
    };
    if (Status s =
            dx.prepare(name, *device, p, left, gradientStride(p), dxShape);
        !s)
      return s;
    // dw += dlogits^T x
    auto dwShape = [&](int64_t rows) {
      return shape(DType::F32, v, c, rows, true, false);
    };
    return dw.prepare(name, *device, p, left, gradientStride(p), dwShape);
  }
};

} // namespace
} // namespace cuda

struct LinearCrossEntropy::State : cuda::Products {};
LinearCrossEntropy::LinearCrossEntropy(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
LinearCrossEntropy::~LinearCrossEntropy() = default;

Status LinearCrossEntropy::prepare(Device &device) {
  return state_->prepare("linear_cross_entropy", device, params_, false);
}

void LinearCrossEntropy::run(Stream &stream, In ins, Out outs, void *scratch,
                             bool accumulate) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "linear_cross_entropy");
  const cuda::Pieces pieces(p, scratch);
  const void *x = operand(ins, 0);
  for (int64_t r0 = 0; r0 < p.rows; r0 += p.chunkRows) {
    const int64_t rows = std::min(p.chunkRows, p.rows - r0);
    state_->makeLogits(queue, p, x, operand(ins, 1),
                       p.bias ? operand(ins, 4) : nullptr, r0, rows, pieces);
    cuda::rowLosses(queue,
                    {operand(ins, 2), p.labelType, p.vocabulary, p.ignoreIndex,
                     r0, p.width()},
                    {pieces.logits, DType::F32}, rows,
                    static_cast<float *>(result(outs, 1)), pieces.losses);
  }
  cuda::weightedLoss(queue, pieces.losses, p.rows,
                     static_cast<const float *>(operand(ins, 3)),
                     static_cast<float *>(result(outs, 0)), accumulate);
}

struct LinearCrossEntropyGrad::State : cuda::Products {};
LinearCrossEntropyGrad::LinearCrossEntropyGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
LinearCrossEntropyGrad::~LinearCrossEntropyGrad() = default;

Status LinearCrossEntropyGrad::prepare(Device &device) {
  return state_->prepare("linear_cross_entropy_grad", device, params_, true);
}

void LinearCrossEntropyGrad::run(Stream &stream, In ins, Out outs,
                                 void *scratch, bool accumulate) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "linear_cross_entropy_grad");
  const cuda::Pieces pieces(p, scratch);
  const void *x = operand(ins, 0);
  const void *w = operand(ins, 1);
  const cuda::Products::Gradients to{
      result(outs, 0), static_cast<float *>(result(outs, 1)),
      p.bias ? static_cast<float *>(result(outs, 2)) : nullptr};
  for (int64_t r0 = 0; r0 < p.rows; r0 += p.chunkRows) {
    const int64_t rows = std::min(p.chunkRows, p.rows - r0);
    state_->makeLogits(queue, p, x, w, p.bias ? operand(ins, 5) : nullptr, r0,
                       rows, pieces);
    cuda::rowGradients(queue,
                       {operand(ins, 2), p.labelType, p.vocabulary,
                        p.ignoreIndex, r0, p.width()},
                       {pieces.logits, DType::F32}, rows,
                       static_cast<const float *>(operand(ins, 3)),
                       static_cast<const float *>(operand(ins, 4)),
                       cuda::gradientOf(p, pieces));
    state_->addGradients(queue, p, x, w, r0, rows, pieces, to, accumulate);
  }
}

struct LinearCrossEntropyWithGrad::State : cuda::Products {};
LinearCrossEntropyWithGrad::LinearCrossEntropyWithGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
LinearCrossEntropyWithGrad::~LinearCrossEntropyWithGrad() = default;

Status LinearCrossEntropyWithGrad::prepare(Device &device) {
  return state_->prepare("linear_cross_entropy_with_grad", device, params_,
                         true);
}

void LinearCrossEntropyWithGrad::run(Stream &stream, In ins, Out outs,
                                     void *scratch, bool accumulate) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "linear_cross_entropy_with_grad");
  const cuda::Pieces pieces(p, scratch);
  const void *x = operand(ins, 0);
  const void *w = operand(ins, 1);
  const cuda::Products::Gradients to{
      result(outs, 1), static_cast<float *>(result(outs, 2)),
      p.bias ? static_cast<float *>(result(outs, 3)) : nullptr};
  for (int64_t r0 = 0; r0 < p.rows; r0 += p.chunkRows) {
    const int64_t rows = std::min(p.chunkRows, p.rows - r0);
    const cuda::LabelRule rule{operand(ins, 2), p.labelType, p.vocabulary,
                               p.ignoreIndex,   r0,          p.width()};
    const cuda::StoredIn logits{pieces.logits, DType::F32};
    state_->makeLogits(queue, p, x, w, p.bias ? operand(ins, 5) : nullptr, r0,
                       rows, pieces);
    cuda::rowLossesAndGradients(queue, rule, logits, rows, pieces.losses,
                                static_cast<const float *>(operand(ins, 4)),
                                cuda::gradientOf(p, pieces));
    state_->addGradients(queue, p, x, w, r0, rows, pieces, to, accumulate);
  }
  cuda::weightedLoss(queue, pieces.losses, p.rows,
                     static_cast<const float *>(operand(ins, 3)),
                     static_cast<float *>(result(outs, 0)), false);
}

} // namespace tmc
