//===- CrossEntropy.h - the loss over a vocabulary --------------*- C++ -*-===//
//
//   loss = weight * sum over rows r with label[r] != ignoreIndex of
//          (lse[r] - logits[r, label[r]])
//   lse[r] = log sum_v exp logits[r, v]
//
// `weight` is usually one over the number of counted rows of the whole batch. A
// label outside [0, vocabulary) that isn't ignoreIndex becomes the step's error
// and counts as ignored.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_CROSSENTROPY_H
#define TMC_RUNTIME_KERNELS_CROSSENTROPY_H

#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Matmul.h"

namespace tmc {

struct CrossEntropyParams {
  DType type;      // of the logits
  DType labelType; // I32, I64
  int64_t rows, vocabulary;
  int64_t ignoreIndex; // e.g. -100
  int64_t columns = 0; // of a row of logits; 0: those of the vocabulary
  int64_t scratchBytes = 0;

  TMC_FIELD_GROUPS(TMC_GIVEN(type, labelType, rows, vocabulary, ignoreIndex),
                   TMC_OPTIONAL(columns))

  constexpr int64_t width() const { return columns ? columns : vocabulary; }
};

constexpr bool takesLogits(DType type) {
  return type == DType::F32 || isHalf(type);
}

/// A kernel that makes the loss. Its scratch has the losses of the rows, which
/// cuda's second launch adds in order.
class LossOfLogits : public Kernel {
public:
  using Params = CrossEntropyParams;
  static constexpr bool takes(const Params &params, Backend) {
    return takesLogits(params.type);
  }
  static int64_t scratchCap(const Params &params, Backend) {
    return alignScratch(params.rows * 4);
  }
  static int64_t cudaLaunches(const Params &, Wanted) { return 2; }
};

/// ins: logits [rows, width], labels [rows], weight f32 scalar. Columns from
/// the vocabulary on pad the rows, and aren't read.
/// outs: loss f32 scalar, lse f32 [rows]. `accumulate` adds to the loss.
class CrossEntropy : public LossOfLogits {
  TMC_KERNEL(CrossEntropy)
};

/// ins: logits, labels, lse, scale (f32 scalar: dloss * weight).
/// outs: dlogits [rows, width] (may be the logits' buffer) =
///       scale * (exp(logits - lse) - [v = label]), 0 in ignored rows and in
///       columns from the vocabulary on.
class CrossEntropyGrad : public Kernel {
public:
  using Params = CrossEntropyParams;
  static constexpr bool takes(const Params &params, Backend) {
    return takesLogits(params.type);
  }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(CrossEntropyGrad)
};

/// The two kernels above in one: a row of logits is read from memory once, and
/// again from a cache. The bits are theirs.
/// ins: logits, labels, weight, scale (dloss * weight).
/// outs: loss, dlogits [rows, width] (may be the logits' buffer).
class CrossEntropyWithGrad : public LossOfLogits {
  TMC_KERNEL(CrossEntropyWithGrad)
};

/// The loss of logits = x w^T (+ bias), computed `chunkRows` rows at a time, so
/// that at most chunkRows * vocabulary logits exist at once. On the cpu, if
/// chunkRows is a multiple of kExactChunkRows, the bits are those of a
/// computation with all logits at once. Logits, bias, sums and the gradients of
/// w and bias are f32. The logits' gradient is rounded to the type of x before
/// it is multiplied. If w is f32 and x isn't, w is rounded to the type of x
/// when it is read (cpu).
struct LinearCrossEntropyParams {
  DType type;      // of x and dx
  DType table;     // of w
  DType labelType; // I32, I64
  int64_t rows, channels, vocabulary;
  int64_t chunkRows; // the last chunk may be shorter
  int64_t ignoreIndex;
  bool bias;
  bool tf32;           // f32 factors, dlogits among them, are rounded to TF32
  int64_t columns = 0; // of a row of logits; 0: those of the vocabulary
  int64_t scratchBytes = 0;

  TMC_FIELD_GROUPS(TMC_GIVEN(type, table, labelType, rows, channels, vocabulary,
                             chunkRows, ignoreIndex, bias, tf32),
                   TMC_OPTIONAL(columns))

  /// The rows of w: those from the vocabulary on are zero.
  constexpr int64_t width() const { return columns ? columns : vocabulary; }

  /// The type to which f32 factors are rounded; F32: not rounded.
  DType readAs() const { return tf32 ? DType::TF32 : type; }
  /// Rows of the longest chunk.
  int64_t chunk() const { return chunkRows < rows ? chunkRows : rows; }
  int64_t chunks() const { return (rows + chunkRows - 1) / chunkRows; }
};

constexpr bool takesLinear(const LinearCrossEntropyParams &p, Backend backend) {
  if (backend == Backend::Cuda)
    return takesLogits(p.type) && p.table == p.type;
  return takesLogits(p.type) && !p.columns &&
         (p.table == p.type || p.table == DType::F32);
}
/// Products of a run that aren't aligned: the logits, and where `gradients` are
/// made, the products by the logits' gradient.
inline int64_t unalignedLinear(const LinearCrossEntropyParams &p,
                               bool gradients) {
  if (!wantsAlignedRows(p.type, p.tf32))
    return 0;
  const bool areChannels = isAlignedRow(p.channels, p.type);
  const bool isLogits = areChannels && isAlignedRow(p.width(), DType::F32);
  const bool isGradient = areChannels && isAlignedRow(p.width(), p.type);
  return p.chunks() * (!isLogits + (gradients ? 2 * !isGradient : 0));
}

int64_t linearCrossEntropyScratchCap(const LinearCrossEntropyParams &params,
                                     Backend backend);

/// ins: x [rows, channels], w [width, channels], labels, weight, bias [width]
/// if
///      bias.
/// outs: loss, lse [rows]. `accumulate` adds to the loss.
class LinearCrossEntropy : public Kernel {
public:
  using Params = LinearCrossEntropyParams;
  static constexpr bool takes(const Params &params, Backend backend) {
    return takesLinear(params, backend);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return linearCrossEntropyScratchCap(params, backend);
  }
  static int64_t cudaLaunches(const Params &params, Wanted) {
    return 2 * params.chunks() + 1;
  }
  static int64_t unalignedProducts(const Params &params) {
    return unalignedLinear(params, false);
  }
  TMC_KERNEL(LinearCrossEntropy)
};

/// ins: x, w, labels, lse, scale (dloss * weight), bias if bias.
/// outs: dx [rows, channels], dw [width, channels], dbias [width] if bias,
/// summed row after row (on the cpu in the tiles of a fused kernel).
/// `accumulate` adds to dw and dbias; dx is overwritten. A null result isn't
/// computed.
class LinearCrossEntropyGrad : public Kernel {
public:
  using Params = LinearCrossEntropyParams;
  static constexpr bool takes(const Params &params, Backend backend) {
    return takesLinear(params, backend);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return linearCrossEntropyScratchCap(params, backend);
  }
  static int64_t cudaLaunches(const Params &params, Wanted wanted) {
    return params.chunks() *
           (2 + wanted[0] + wanted[1] + (params.bias && wanted[2]));
  }
  static int64_t unalignedProducts(const Params &params) {
    return unalignedLinear(params, true);
  }
  TMC_KERNEL(LinearCrossEntropyGrad)
};

/// The two kernels above in one; the logits of each chunk are computed once.
/// ins: x, w, labels, weight, scale (dloss * weight), bias if bias.
/// outs: loss, dx, dw, dbias if bias. `accumulate` adds to dw and dbias. A null
/// gradient isn't computed.
class LinearCrossEntropyWithGrad : public Kernel {
public:
  using Params = LinearCrossEntropyParams;
  static constexpr bool takes(const Params &params, Backend backend) {
    return takesLinear(params, backend);
  }
  /// The cpu's log-sum-exps, an internal value, are in scratch too.
  static int64_t scratchCap(const Params &params, Backend backend) {
    return linearCrossEntropyScratchCap(params, backend) +
           (backend == Backend::Cpu ? alignScratch(params.rows * 4) : 0);
  }
  static int64_t cudaLaunches(const Params &params, Wanted wanted) {
    return params.chunks() *
               (2 + wanted[1] + wanted[2] + (params.bias && wanted[3])) +
           1;
  }
  static int64_t unalignedProducts(const Params &params) {
    return unalignedLinear(params, true);
  }
  TMC_KERNEL(LinearCrossEntropyWithGrad)
};

} // namespace tmc

namespace tmc {

/// Chunks of this many rows, or of a multiple, have the same boundaries as the
/// partial sums over rows in the cpu's product.
constexpr int64_t kExactChunkRows = kGemmDepth;

/// The cpu's sums of the rows of a bias's gradient.
inline int64_t biasScratch(const LinearCrossEntropyParams &params,
                           Backend backend) {
  return params.bias && backend == Backend::Cpu
             ? alignScratch(params.vocabulary * 4)
             : 0;
}

/// Rows of logits that exist at once. On the cpu a 16-bit gradient is stored
/// apart from the logits, and only the gradient must be complete for a chunk's
/// product: 64 rows of logits are multiplied as fast.
inline int64_t logitsRows(const LinearCrossEntropyParams &params,
                          Backend backend) {
  constexpr int64_t kFew = 64;
  const bool isApart = backend == Backend::Cpu && params.type != DType::F32;
  return isApart && params.chunk() > kFew ? kFew : params.chunk();
}

/// The gradient of a chunk's logits, if it doesn't overwrite them.
inline int64_t gradientScratch(const LinearCrossEntropyParams &params,
                               Backend backend) {
  return backend == Backend::Cpu && params.type != DType::F32
             ? alignScratch(params.chunk() * params.vocabulary *
                            sizeOf(params.type))
             : 0;
}

/// Logits, their gradient if it is apart, the rows' losses, a bias's sums, and
/// the largest scratch of the products that give logits, dx and dw.
inline int64_t
linearCrossEntropyScratchCap(const LinearCrossEntropyParams &params,
                             Backend backend) {
  const int64_t chunk = params.chunk();
  const int64_t logits = logitsRows(params, backend);
  const int64_t columns = params.width(), channels = params.channels;
  int64_t product = 0;
  const int64_t shapes[3][3] = {{logits, columns, channels},
                                {chunk, channels, columns},
                                {columns, channels, chunk}};
  for (auto &shape : shapes) {
    Matmul::Params p{};
    p.lhs = p.rhs = params.type;
    p.out = &shape == &shapes[1] ? params.type : DType::F32;
    p.batch = 1;
    p.m = shape[0];
    p.n = shape[1];
    p.k = shape[2];
    const int64_t cap = Matmul::scratchCap(p, backend);
    product = product > cap ? product : cap;
  }
  return alignScratch(logits * columns * 4) + gradientScratch(params, backend) +
         alignScratch(params.rows * 4) + biasScratch(params, backend) + product;
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_CROSSENTROPY_H
