// Scales.h - the groups of codes that share a scale.
//
// The scales of a tensor of 8-bit codes are one scalar, or a tensor of the same
// rank. Along each of the two innermost dimensions each index has its own
// scales, or 128 indices share them:
//
//     codes [256, 512]   scale []          the whole tensor
//                        scale [256, 4]    128 of a row
//                        scale [2, 512]    128 of a column
//                        scale [2, 4]      squares of 128 x 128
//
// Or they are a vector: packed, in the order in which a card's products read
// them (runtime/kernels/Quantize.h). Blocks of packed scales go along rows of a
// matrix whose number of rows is a multiple of 8, so the length of the vector
// identifies the blocks:
//
//     codes [256, 512]   scale [1024]      128 of a row, 4 x 256
//                        scale [8]         squares of 128 x 128, 2 x 4

#ifndef TMC_DIALECTS_NN_SCALES_H
#define TMC_DIALECTS_NN_SCALES_H

#include "runtime/kernels/Quantize.h"

#include "mlir/IR/BuiltinTypes.h"

namespace tmc::nn {

/// The number of rows of codes with packed scales is a multiple of this.
constexpr int64_t kPackedRows = 8;

/// The block that shares a scale; none if `scale` doesn't have the shape of
/// scales of `codes`, packed ones included.
std::optional<ScaleBlock> scaleBlockOf(mlir::RankedTensorType codes,
                                       mlir::RankedTensorType scale);

/// The type of the scales of `codes` for such blocks.
mlir::RankedTensorType scaleTypeFor(mlir::RankedTensorType codes,
                                    ScaleBlock block);
/// The type of packed scales, for blocks that go along the rows of a matrix.
mlir::RankedTensorType packedScaleTypeFor(mlir::RankedTensorType codes,
                                          ScaleBlock block);
/// The cut of `scale` where `codes` are cut along `dim`, or whole
/// (OpCut::kWhole). None if pieces would share a scale, or if scales are
/// packed.
std::optional<int64_t> scaleCutBy(mlir::RankedTensorType codes,
                                  mlir::RankedTensorType scale, int64_t dim);
inline bool arePacked(mlir::RankedTensorType scale) {
  return scale.getRank() == 1;
}

/// `type` with its two innermost dimensions exchanged.
mlir::RankedTensorType turnedType(mlir::RankedTensorType type);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_SCALES_H
