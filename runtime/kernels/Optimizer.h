//===- Optimizer.h - updates of parameters ----------------------*- C++ -*-===//
//
// One rule per class, in PyTorch's order of operations. Parameters and states
// are updated in place. The gradient is first multiplied by `clipScale`, if
// given. An update can also return the sum of squares of its gradient before
// clipping, so the norm needs no extra pass. With clipping, SquareSum and
// GradNorm run first.
//
// Scalars: lr is f32; step is i64 and counts from 1; clipScale is f32. At step
// 0, or if clipScale is NaN (the gradients' norm isn't finite), an update
// doesn't change parameters and states, but still returns the sum of squares.
//
// Parameters, gradients and moments each have their own type, f32 or bf16;
// gradients also f16. The arithmetic is f32. Values kept in bf16 are rounded
// stochastically (runtime/kernels/Stochastic.h): rounding to nearest would lose
// most updates, which are smaller than half a unit in the last place.
//
// With an f32 parameter, an update may also write a copy of it in bf16 or f16,
// rounded to nearest like a cast of the new parameter. The products of the next
// step read the copy. At step 0 the copy doesn't change either.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_OPTIMIZER_H
#define TMC_RUNTIME_KERNELS_OPTIMIZER_H

#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Portable.h"

namespace tmc {

/// Elements of one part of an update, on cuda those of a block; a sum of
/// squares has one partial (f64) per part, added in order.
constexpr int64_t kUpdateTile = 1 << 16, kCudaUpdatePart = 1 << 12;
TMC_HD constexpr int64_t partsOfSquares(int64_t count, Backend backend) {
  const int64_t part = backend == Backend::Cuda ? kCudaUpdatePart : kUpdateTile;
  return (count + part - 1) / part;
}
inline int64_t squareSumScratchBytes(int64_t count, Backend backend) {
  return alignScratch(partsOfSquares(count, backend) * 8);
}

/// Kernels on cuda that add the partials: none if there is one part.
constexpr int64_t squareSumLaunches(int64_t count, bool isWanted) {
  return isWanted && count > kCudaUpdatePart ? 1 : 0;
}
/// The most square sums that one kernel of cuda adds.
constexpr int64_t kNormPiece = 256;

/// One update of a launch of several: the kernel object and what its run takes.
template <typename K> struct UpdateRun {
  K &update;
  In ins;
  Out outs;
  void *scratch;
};
/// The most updates of one launch on cuda. Their operands are arguments of the
/// kernel, which has at most 4 KiB of them on every card.
constexpr int64_t kMostJoinedUpdates = 40;

/// Declares a kernel class whose runs may be joined. `runJoined` queues the
/// same as a run of each, with the same bits, in a launch for each
/// kMostJoinedUpdates of them. All have the same types, scalar operands and
/// parameters but for count, weightDecay and stream; none reads what another
/// writes. Only cuda defines it.
#define TMC_UPDATE_KERNEL(NAME)                                                \
public:                                                                        \
  const Params &params() const { return params_; }                             \
  static void runJoined(Stream &stream,                                        \
                        std::initializer_list<UpdateRun<NAME>> runs);          \
  TMC_KERNEL(NAME)

/// Whether an update changes nothing; `clipScale` may be absent.
TMC_HD inline bool isSkipped(const int64_t *step, const float *clipScale) {
  return *step == 0 || (clipScale && *clipScale != *clipScale);
}

struct AdamParams {
  DType param, grad, moment; // AdamW8bit's moments are codes: F32
  DType copy = DType::F32;   // of an f32 param; F32: no copy
  int64_t count;
  double beta1, beta2, epsilon, weightDecay;
  int64_t stream; // of the random numbers that round
  int64_t scratchBytes = 0;

  TMC_FIELD_GROUPS(TMC_GIVEN(param, grad, moment), TMC_OPTIONAL(copy),
                   TMC_GIVEN(count, beta1, beta2, epsilon, weightDecay, stream))
};

/// True for a parameter of such a class that may differ between joined runs.
constexpr bool isOwnOfUpdate(std::string_view param) {
  return param == TMC_FIELD_NAME(AdamParams, count) ||
         param == TMC_FIELD_NAME(AdamParams, weightDecay) ||
         param == TMC_FIELD_NAME(AdamParams, stream);
}

/// The types of parameters and moments.
constexpr bool isUpdated(DType type) {
  return type == DType::F32 || type == DType::BF16;
}
/// The types of gradients.
constexpr bool isGradient(DType type) {
  return isUpdated(type) || type == DType::F16;
}

/// PyTorch's AdamW:
///   p *= 1 - lr weightDecay;  m += (g - m)(1 - beta1)
///   v = beta2 v + (1 - beta2) g g
///   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
/// Scalar factors are computed in double and rounded once.
///
/// ins: p, g, m, v [count], lr, step, clipScale (or absent).
/// outs: p, m, v (the same buffers as the ins), squareSum f32 scalar (or
/// absent), copy [count] (or absent).
class AdamW : public Kernel {
public:
  using Params = AdamParams;
  static constexpr bool takes(const Params &p, Backend) {
    return isUpdated(p.param) && isGradient(p.grad) && isUpdated(p.moment);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return squareSumScratchBytes(params.count, backend);
  }
  static int64_t cudaLaunches(const Params &params, Wanted wanted) {
    return 1 + squareSumLaunches(params.count, wanted[3]);
  }
  TMC_UPDATE_KERNEL(AdamW)
};

/// AdamW with moments in 8 bits (runtime/kernels/Adam.h): a code per element
/// and the largest absolute value of each block of 256. The update is AdamW's,
/// in f32 from the decoded moments, and the new moments are encoded to nearest.
/// If a gradient isn't finite, parameter and moments don't change, and the sum
/// of squares isn't finite either.
///
/// ins: p, g [count], codes of m (i8) [count], maxima of m (f32) [blocks],
/// codes and maxima of v, lr, step, clipScale (or absent). outs: p, codes and
/// maxima of m and of v (the same buffers), squareSum f32 scalar (or absent),
/// copy [count] where there is one.
class AdamW8bit : public Kernel {
public:
  using Params = AdamParams;
  static constexpr bool takes(const Params &p, Backend) {
    return isUpdated(p.param) && isGradient(p.grad);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return squareSumScratchBytes(params.count, backend);
  }
  static int64_t cudaLaunches(const Params &params, Wanted wanted) {
    return 1 + squareSumLaunches(params.count, wanted[5]);
  }
  TMC_UPDATE_KERNEL(AdamW8bit)
};

/// AdamW with moments in 4 bits (runtime/kernels/Adam4bit.h): a code per
/// element, two to a byte, and a scale for each block of 128; `count` is a
/// multiple of 128. Otherwise as AdamW8bit.
///
/// ins: p, g [count], codes of m (i8) [count / 2], scales of m (f32) [blocks],
/// codes and scales of v, lr, step, clipScale (or absent). outs: p, codes and
/// scales of m and of v (the same buffers), squareSum f32 scalar (or absent),
/// copy [count] where there is one.
class AdamW4bit : public Kernel {
public:
  using Params = AdamParams;
  static constexpr bool takes(const Params &p, Backend) {
    return isUpdated(p.param) && isGradient(p.grad);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return squareSumScratchBytes(params.count, backend);
  }
  static int64_t cudaLaunches(const Params &params, Wanted wanted) {
    return 1 + squareSumLaunches(params.count, wanted[5]);
  }
  TMC_UPDATE_KERNEL(AdamW4bit)
};

/// Lion: a parameter moves by the sign of a blend of moment and gradient.
///   c = beta1 m + (1 - beta1) g;  p *= 1 - lr weightDecay;  p -= lr sign(c)
///   m = beta2 m + (1 - beta2) g
/// The sign of 0 is 0, and so is a NaN's: then only the moment becomes NaN.
/// Source: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023,
/// program 1; the order is that of its authors' implementations.
///
/// ins: p, g, m [count], lr, step, clipScale (or absent). outs: p, m (the same
/// buffers as the ins), squareSum f32 scalar (or absent), copy [count] where
/// there is one.
class Lion : public Kernel {
public:
  struct Params {
    DType param, grad, moment;
    DType copy = DType::F32;
    int64_t count;
    double beta1, beta2, weightDecay;
    int64_t stream;
    int64_t scratchBytes = 0;

    TMC_FIELD_GROUPS(TMC_GIVEN(param, grad, moment), TMC_OPTIONAL(copy),
                     TMC_GIVEN(count, beta1, beta2, weightDecay, stream))
  };
  static constexpr bool takes(const Params &p, Backend) {
    return isUpdated(p.param) && isGradient(p.grad) && isUpdated(p.moment);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return squareSumScratchBytes(params.count, backend);
  }
  static int64_t cudaLaunches(const Params &params, Wanted wanted) {
    return 1 + squareSumLaunches(params.count, wanted[2]);
  }
  TMC_UPDATE_KERNEL(Lion)
};

/// PyTorch's SGD:
///   g += weightDecay p;  b = step == 1 ? g : momentum b + (1 - dampening) g
///   p -= lr (nesterov ? g + momentum b : b)
///
/// ins: p, g, b [count] (nullptr if momentum is 0), lr, step, clipScale.
/// outs: p, b (the same buffers), squareSum f32 scalar (or absent), copy
/// [count] where there is one.
class Sgd : public Kernel {
public:
  struct Params {
    DType param, grad, moment;
    DType copy = DType::F32;
    int64_t count;
    double momentum, dampening, weightDecay;
    bool nesterov;
    int64_t stream;
    int64_t scratchBytes = 0;

    TMC_FIELD_GROUPS(TMC_GIVEN(param, grad, moment), TMC_OPTIONAL(copy),
                     TMC_GIVEN(count, momentum, dampening, weightDecay,
                               nesterov, stream))
  };
  static constexpr bool takes(const Params &p, Backend) {
    return isUpdated(p.param) && isGradient(p.grad) && isUpdated(p.moment);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return squareSumScratchBytes(params.count, backend);
  }
  static int64_t cudaLaunches(const Params &params, Wanted wanted) {
    return 1 + squareSumLaunches(params.count, wanted[2]);
  }
  TMC_UPDATE_KERNEL(Sgd)
};

/// ins: g [count]. outs: the sum of squares, f32 scalar.
class SquareSum : public Kernel {
public:
  struct Params {
    DType type;
    int64_t count;
    int64_t scratchBytes = 0;

    TMC_FIELDS(type, count)
  };
  static constexpr bool takes(const Params &params, Backend) {
    return isGradient(params.type);
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return squareSumScratchBytes(params.count, backend);
  }
  static int64_t cudaLaunches(const Params &params, Wanted) {
    return 1 + squareSumLaunches(params.count, true);
  }
  TMC_KERNEL(SquareSum)
};

/// norm = sqrt(sum of the square sums, in order, in f64) / scale;
/// clipScale = min(1, maxNorm / (norm + 1e-6)) / scale; 1 / scale if maxNorm is
/// 0; NaN if the norm isn't finite, so that no update changes anything. The
/// scale is 1 if none is given.
///
/// ins: `count` f32 scalars, one per parameter, in a fixed order, then scale
/// f32 scalar where isScaled. outs: norm f32 scalar, clipScale f32 scalar (or
/// absent). On cuda the addresses of the ins must be the same on each run.
class GradNorm : public Kernel {
public:
  struct Params {
    int64_t count;
    double maxNorm;
    bool isScaled;
    int64_t scratchBytes = 0;

    TMC_FIELDS(count, maxNorm, isScaled)
  };
  static constexpr bool takes(const Params &, Backend) { return true; }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return backend == Backend::Cuda ? alignScratch(params.count * 8) : 0;
  }
  static int64_t cudaLaunches(const Params &params, Wanted) {
    return params.count > 0 ? (params.count + kNormPiece - 1) / kNormPiece : 1;
  }
  TMC_KERNEL(GradNorm)
};

/// The factor that clips.
TMC_HD inline float clipScaleOf(double norm, double maxNorm, double scale) {
  if (norm - norm != 0)
    return float(norm - norm); // NaN for a NaN and for an infinity.
  const double ratio = maxNorm / (norm + 1e-6);
  return float((maxNorm > 0 && ratio < 1.0 ? ratio : 1.0) / scale);
}

/// The work of PyTorch's GradScaler between two steps. If the norm is finite:
/// count increases, step is its new value, and after `interval` such steps in a
/// row scale *= growth, unless that overflows. Else: step = 0, count doesn't
/// change, scale *= backoff. If interval is 0, the scale doesn't change.
///
/// ins: norm, scale f32, clean i64 (finite steps since the scale moved), count
/// i64. outs: scale, clean, count (the same buffers as the ins), step i64.
class LossScale : public Kernel {
public:
  struct Params {
    double growth, backoff;
    int64_t interval;
    int64_t scratchBytes = 0;

    TMC_FIELDS(growth, backoff, interval)
  };
  static constexpr bool takes(const Params &, Backend) { return true; }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(LossScale)
};

/// One step of the loss scale, the same code on both backends; returns step.
TMC_HD inline int64_t moveLossScale(const LossScale::Params &q, float norm,
                                    float &scale, int64_t &clean,
                                    int64_t &count) {
  const bool isFinite = norm - norm == 0;
  const bool moves = q.interval > 0 && (!isFinite || clean + 1 >= q.interval);
  if (moves) {
    const float moved =
        float(double(scale) * (isFinite ? q.growth : q.backoff));
    if (moved - moved == 0)
      scale = moved;
  }
  clean = isFinite && !moves ? clean + 1 : 0;
  count += isFinite;
  return isFinite ? count : 0;
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_OPTIMIZER_H
