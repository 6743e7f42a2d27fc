//===- Movement.h - kernels that move elements ------------------*- C++ -*-===//
//
// Transpose, concat, pad, strided copy, gather and fill. They look at the size
// of an element, not at its type.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_MOVEMENT_H
#define TMC_RUNTIME_KERNELS_MOVEMENT_H

#include "runtime/kernels/Kernel.h"

#include <vector>

namespace tmc {

/// ins: x of `shape`. outs: y with y's dimension i = x's dimension perm[i].
class Transpose : public Kernel {
public:
  struct Params {
    DType type;
    std::vector<int64_t> shape, perm;
    int64_t scratchBytes = 0;

    TMC_FIELDS(type, shape, perm)
  };
  static constexpr bool takes(const Params &, Backend) { return true; }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(Transpose)
};

/// ins: piece i as [outer, inner[i]]. outs: [outer, sum of inner]. `outer` is
/// the product of the dimensions before the axis, inner[i] that of the axis and
/// those after it.
class Concat : public Kernel {
public:
  struct Params {
    DType type;
    int64_t outer;
    std::vector<int64_t> inner;
    int64_t scratchBytes = 0;

    TMC_FIELDS(type, outer, inner)
  };
  static constexpr bool takes(const Params &, Backend) { return true; }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  static int64_t cudaLaunches(const Params &params, Wanted) {
    return int64_t(params.inner.size());
  }
  TMC_KERNEL(Concat)
};

/// ins: x of `shape`. outs: y of `outShape`, zero except that element i along
/// dimension d of x stands at low[d] + i * step[d].
class Pad : public Kernel {
public:
  struct Params {
    DType type;
    std::vector<int64_t> shape, outShape, low, step;
    int64_t scratchBytes = 0;

    TMC_FIELDS(type, shape, outShape, low, step)
  };
  static constexpr bool takes(const Params &, Backend) { return true; }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(Pad)
};

/// ins: x. outs: y. y[outOffset + sum i_d outStrides[d]] =
/// x[inOffset + sum i_d inStrides[d]] for each index below `shape`, in
/// elements. Strides may be 0 or negative on the input's side. `accumulate`
/// adds (f32 only).
class Copy : public Kernel {
public:
  struct Params {
    DType type;
    std::vector<int64_t> shape, inStrides, outStrides;
    int64_t inOffset, outOffset;
    int64_t scratchBytes = 0;

    TMC_FIELDS(type, shape, inStrides, outStrides, inOffset, outOffset)
  };
  static constexpr bool takes(const Params &, Backend) { return true; }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(Copy)
};

/// ins: x [outer, axis, inner], index [count]. outs: y [outer, count, inner].
/// Negative indices count from the end; one outside [-axis, axis) becomes the
/// step's error and reads position 0.
class Gather : public Kernel {
public:
  struct Params {
    DType type;
    DType indexType; // I32, I64
    int64_t outer, axis, inner, count;
    int64_t scratchBytes = 0;

    TMC_FIELDS(type, indexType, outer, axis, inner, count)
  };
  static constexpr bool takes(const Params &, Backend) { return true; }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(Gather)
};

/// ins: index [count], dy [outer, count, inner]. outs: dx [outer, axis, inner];
/// `accumulate` adds to it, else it is zeroed first. Sums are in the order of
/// the indices.
class GatherGrad : public Kernel {
public:
  struct Params {
    DType type;
    DType indexType;
    int64_t outer, axis, inner, count;
    int64_t scratchBytes = 0;

    TMC_FIELDS(type, indexType, outer, axis, inner, count)
  };
  static constexpr bool takes(const Params &params, Backend) {
    return params.type == DType::F32;
  }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(GatherGrad)
};

/// outs: `bytes` bytes, set to zero.
class Fill : public Kernel {
public:
  struct Params {
    int64_t bytes;
    int64_t scratchBytes = 0;

    TMC_FIELDS(bytes)
  };
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  static int64_t cudaLaunches(const Params &, Wanted) { return 0; }
  TMC_KERNEL(Fill)
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_MOVEMENT_H
