//===- TensorLaunch.h - which kernel of attention is run --------*- C++ -*-===//
//
// The shapes and kinds (TensorTile.h) of the kernels of TensorAttention.cu and
// TensorAttentionGrad.cu, as constants for the host.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_TENSORLAUNCH_H
#define TMC_RUNTIME_CUDA_TENSORLAUNCH_H

#include "runtime/cuda/TensorTile.h"

#include <initializer_list>
#include <type_traits>

namespace tmc::cuda {

/// Calls body with the shape of the forward kernel and that of the gradients.
/// The gradients walk longer heads in smaller tiles, to save registers.
template <typename F>
auto withTensorShapes(const AttentionParams &p, F &&body) {
  if (p.type == DType::F32) {
    // Tiles of four bytes an element: two or more blocks fit 227 KiB.
    if (p.headDim <= 64)
      return body(TF32Shape<64, 64>{}, TF32Shape<64, 32>{});
    return body(TF32Shape<128, 32>{}, TF32Shape<128, 16>{});
  }
  if (p.headDim <= 64)
    return body(TensorShape<64, 64>{}, TensorShape<64, 64>{});
  return body(TensorShape<128, 64>{}, TensorShape<128, 32>{});
}

template <Scores Kind>
using KindConstant = std::integral_constant<Scores, Kind>;

/// Calls body with the kind of the kernels for these operands, as a constant.
template <typename F>
void withKind(const AttentionParams &p, const AttentionExtras &extras,
              std::initializer_list<const void *> operands, F &&body) {
  const int64_t copied = 16 / sizeOf(p.type); // elements
  bool copies = p.headDim % copied == 0;
  for (const AttentionStrides &s : {p.q, p.k, p.v})
    copies &=
        s.batch % copied == 0 && s.time % copied == 0 && s.head % copied == 0;
  for (const void *operand : operands)
    copies &= reinterpret_cast<uintptr_t>(operand) % 16 == 0;
  if (p.softcap > 0)
    return body(KindConstant<Scores::Capped>{});
  // Plain scores are scaled after their maximum is known.
  if (p.bias || p.mask != MaskKind::None || extras.groups || isExact(p) ||
      !copies || !(p.scale > 0))
    return body(KindConstant<Scores::General>{});
  if (p.dropout > 0)
    return body(KindConstant<Scores::Dropped>{});
  return body(KindConstant<Scores::Plain>{});
}

/// Calls `body` with every kind, until one fails.
template <typename F> Status withEachKind(F &&body) {
  if (Status s = body(KindConstant<Scores::Plain>{}); !s)
    return s;
  if (Status s = body(KindConstant<Scores::Dropped>{}); !s)
    return s;
  if (Status s = body(KindConstant<Scores::General>{}); !s)
    return s;
  return body(KindConstant<Scores::Capped>{});
}

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_TENSORLAUNCH_H
