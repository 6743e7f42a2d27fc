// AttentionLibrary.h - attention that cuDNN computes.
//
// On cuda, attention and its gradient have two implementations: the backend's
// own kernels, and graphs of cuDNN. An op with the attribute `nn.cudnn` is
// computed by the library there:
//
//     %o, %lse = nn.attention %q, %k, %v {causal, scale = 0.125, nn.cudnn}
//
// Other backends ignore it. -tmc-choose-attention sets it, on ops for which
// whyNotCudnn (runtime/kernels/CudnnAttention.h) has no reason against it.

#ifndef TMC_DIALECTS_NN_ATTENTIONLIBRARY_H
#define TMC_DIALECTS_NN_ATTENTIONLIBRARY_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace tmc::nn {

constexpr llvm::StringLiteral kByCudnn = "nn.cudnn";

inline bool isByCudnn(mlir::Operation *op) { return op->hasAttr(kByCudnn); }

inline void setByCudnn(mlir::Operation *op) {
  op->setAttr(kByCudnn, mlir::UnitAttr::get(op->getContext()));
}

/// The reason why cuDNN doesn't compute `op`, an attention or a gradient of
/// one, on a card of `capability` (90 for sm_90); empty if it does. `layouts`:
/// of all operands.
std::string whyNotByCudnn(mlir::Operation *op,
                          llvm::ArrayRef<mlir::MemRefType> layouts,
                          int capability);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_ATTENTIONLIBRARY_H
