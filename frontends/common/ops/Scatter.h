// Scatter.h - writes elements and rows to places chosen by index.
//
// If the places are known at compile time, the result is a lookup of the final
// source of each element. Otherwise a table of sums (nn.embedding_grad) is
// built, and rows without updates keep the old data. If two replacing updates
// have one place, known places keep the last update, and other places the
// updates' sum (PyTorch and ONNX leave this undefined).

#ifndef TMC_FRONTENDS_COMMON_OPS_SCATTER_H
#define TMC_FRONTENDS_COMMON_OPS_SCATTER_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// The way in which updates join the old element at their place. The old
/// element counts as one more element of a mean; equal extremes share the
/// gradient.
enum class Joining { Replace, Add, Multiply, Mean, Max, Min };

/// `data`, with data[.. indices[..i..] ..] along `axis` joined by
/// updates[..i..]. Without `withOld`, places with updates drop their old
/// elements.
mlir::FailureOr<Val> scatterElements(Site &s, const Val &data,
                                     const Val &indices, const Val &updates,
                                     int64_t axis, Joining how,
                                     bool withOld = true);

/// `data`, with the slices that the rows of `indices` choose (as in
/// gatherSlices) joined by `updates`.
mlir::FailureOr<Val> scatterSlices(Site &s, const Val &data, const Val &indices,
                                   const Val &updates, Joining how);

/// `data`, with its entries along `axis` at `indices`, a vector, joined by
/// those of `updates`; without `withOld`, such entries drop their old elements.
mlir::FailureOr<Val> scatterEntries(Site &s, const Val &data,
                                    const Val &indices, const Val &updates,
                                    int64_t axis, Joining how,
                                    bool withOld = true);

/// `data` with `piece` in place of its slice along `axis` from `start` in steps
/// of `step`, which has the size of `piece`.
mlir::FailureOr<Val> replaceSlice(Site &s, const Val &data, const Val &piece,
                                  int64_t axis, int64_t start, int64_t step);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_SCATTER_H
