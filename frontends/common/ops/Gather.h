// Gather.h - elements chosen by index.

#ifndef TMC_FRONTENDS_COMMON_OPS_GATHER_H
#define TMC_FRONTENDS_COMMON_OPS_GATHER_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// The entries of `data` along `axis` that `indices`, of any shape, name: these
/// dimensions stand where `axis` stood. With axis 0, a lookup in a table; the
/// rows that `padding` names get no gradient from it.
mlir::FailureOr<Val> gather(Site &s, const Val &data, const Val &indices,
                            int64_t axis,
                            std::optional<int64_t> padding = std::nullopt);

/// result[..i..] = data[.. indices[..i..] ..] along one axis.
mlir::FailureOr<Val> gatherElements(Site &s, const Val &data,
                                    const Val &indices, int64_t axis);

/// Rows of `indices` choose slices of `data`, whose first dimensions they
/// count.
mlir::FailureOr<Val> gatherSlices(Site &s, const Val &data, const Val &indices);

/// The places, in `data` whose first dimensions were made one, of the slices
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
