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
//
// Or they are a vector: packed, in the order in which a card's products read
// them (runtime/kernels/Quantize.h). Blocks of packed scales go along rows, of
// a matrix whose rows are a multiple of 8, so that the length tells what shares
// a scale:
//
//     codes [256, 512]   scale [1024]      128 of a row, 4 x 256
//                        scale [8]         squares of 128 x 128, 2 x 4

#ifndef TMC_DIALECTS_NN_SCALES_H
#define TMC_DIALECTS_NN_SCALES_H

#include "runtime/kernels/Quantize.h"

#include "mlir/IR/BuiltinTypes.h"

namespace tmc::nn {

/// Rows of codes whose scales are packed are a multiple of it.
constexpr int64_t kPackedRows = 8;

/// What shares a scale; nothing if `scale` isn't of the shape of scales of
/// `codes`, packed ones included.
std::optional<ScaleBlock> scaleBlockOf(mlir::RankedTensorType codes,
                                       mlir::RankedTensorType scale);

/// The type of the scales of `codes` for such blocks.
mlir::RankedTensorType scaleTypeFor(mlir::RankedTensorType codes,
                                    ScaleBlock block);
/// The type of packed ones, of blocks that go along the rows of a matrix.
mlir::RankedTensorType packedScaleTypeFor(mlir::RankedTensorType codes,
                                          ScaleBlock block);
inline bool arePacked(mlir::RankedTensorType scale) {
  return scale.getRank() == 1;
}

/// `type` with its two innermost dimensions exchanged.
mlir::RankedTensorType turnedType(mlir::RankedTensorType type);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_SCALES_H
