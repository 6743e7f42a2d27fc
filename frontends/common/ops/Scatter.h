// Scatter.h - elements and rows written to places chosen by index.
//
// Places that are known when the model is compiled become a lookup of what ends
// up where; others a table of sums (nn.embedding_grad), whose rows were not
// written keep what was there. Where two updates that replace have one place,
// known places keep the last, and others are the updates' sum (PyTorch and ONNX
// leave it open).

#ifndef TMC_FRONTENDS_COMMON_OPS_SCATTER_H
#define TMC_FRONTENDS_COMMON_OPS_SCATTER_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// How updates join what is at their place. What is there counts as one more
/// element of a mean; of equal extremes, each gets a share of the gradient.
enum class Joining { Replace, Add, Multiply, Mean, Max, Min };

/// `data` with data[.. indices[..i..] ..] along `axis` joined by
/// updates[..i..]. Without `withOld`, places that are written forget what was
/// there.
mlir::FailureOr<Val> scatterElements(Site &s, const Val &data,
                                     const Val &indices, const Val &updates,
                                     int64_t axis, Joining how,
                                     bool withOld = true);

/// `data` with the slices that the rows of `indices` choose, as in
/// gatherSlices, joined by `updates`.
mlir::FailureOr<Val> scatterSlices(Site &s, const Val &data, const Val &indices,
                                   const Val &updates, Joining how);

/// `data` with its entries along `axis` that `indices`, a vector, name joined
/// by those of `updates`; without `withOld`, they forget what was there.
mlir::FailureOr<Val> scatterEntries(Site &s, const Val &data,
                                    const Val &indices, const Val &updates,
                                    int64_t axis, Joining how,
                                    bool withOld = true);

/// `data` with `piece` in place of its slice of as many elements along `axis`,
/// from `start` in steps of `step`.
mlir::FailureOr<Val> replaceSlice(Site &s, const Val &data, const Val &piece,
                                  int64_t axis, int64_t start, int64_t step);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_SCATTER_H
