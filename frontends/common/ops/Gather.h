// Gather.h - elements chosen by index.

#ifndef TMC_FRONTENDS_COMMON_OPS_GATHER_H
#define TMC_FRONTENDS_COMMON_OPS_GATHER_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// `indices` as an SSA value of i32 or i64, the types in which ops read
/// indices and labels. Narrower integers are widened to i64.
mlir::FailureOr<mlir::Value> materialiseIndices(Site &s, const Val &indices);

/// The entries of `data` along `axis` at `indices`, which may have any shape:
/// the dimensions of `indices` replace `axis`. With axis 0, a lookup in a
/// table; rows with the index `padding` get no gradient.
mlir::FailureOr<Val> gather(Site &s, const Val &data, const Val &indices,
                            int64_t axis,
                            std::optional<int64_t> padding = std::nullopt);

/// result[..i..] = data[.. indices[..i..] ..] along one axis.
mlir::FailureOr<Val> gatherElements(Site &s, const Val &data,
                                    const Val &indices, int64_t axis);

/// Each row of `indices` is an index into the first dimensions of `data`, and
/// chooses a slice.
mlir::FailureOr<Val> gatherSlices(Site &s, const Val &data, const Val &indices);

/// The linear positions, over the first dimensions of `data`, of the slices
/// that the rows of `indices` choose: of the shape of `indices` without its
/// last dimension.
mlir::FailureOr<Val> slicePlaces(Site &s, llvm::ArrayRef<int64_t> data,
                                 const Val &indices);

/// `on` where the index along a new dimension `axis` of size `depth` is `ids`,
/// `off` elsewhere; negative ids count from the end.
mlir::FailureOr<Val> oneHot(Site &s, const Val &ids, int64_t depth,
                            int64_t axis, ElementType type, double on,
                            double off);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_GATHER_H
