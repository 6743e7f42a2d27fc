// Scales.h - which codes of a tensor share a scale.
//
// The scales of a tensor of 8-bit codes are one scalar, or a tensor of the same
// rank. Of the two innermost dimensions each index has scales of its own, or
// 128 of them share one:
//
//     codes [256, 512]   scale []          the whole tensor
//                        scale [256, 4]    128 of a row
//                        scale [2, 512]    128 of a column
//                        scale [2, 4]      squares of 128 x 128

#ifndef TMC_DIALECTS_NN_SCALES_H
#define TMC_DIALECTS_NN_SCALES_H

#include "runtime/kernels/Quantize.h"

#include "mlir/IR/BuiltinTypes.h"

namespace tmc::nn {

/// What shares a scale; nothing if `scale` isn't of the shape of scales of
/// `codes`.
std::optional<ScaleBlock> scaleBlockOf(mlir::RankedTensorType codes,
                                       mlir::RankedTensorType scale);

/// The type of the scales of `codes` for such blocks.
mlir::RankedTensorType scaleTypeFor(mlir::RankedTensorType codes,
                                    ScaleBlock block);

/// `type` with its two innermost dimensions exchanged.
mlir::RankedTensorType turnedType(mlir::RankedTensorType type);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_SCALES_H
