// Affine.h - integers that are affine in the index: positions.

#ifndef TMC_PASSES_RAISE_AFFINE_H
#define TMC_PASSES_RAISE_AFFINE_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <utility>

namespace tmc {

/// An integer equal to `base` plus `steps[i]` for each step along dimension i.
struct Affine {
  int64_t base = 0;
  llvm::SmallVector<int64_t> steps;
};

/// `value` as an affine number: a range, computed or folded, and sums,
/// differences and multiples of ranges.
std::optional<Affine> affineOf(mlir::Value value, int depth = 12);

/// The sign and slack for which the comparison `op` means sign * (lhs - rhs) +
/// slack <= 0; the outcome is negated unless `keep`.
std::optional<std::pair<int64_t, int64_t>> asAtMostZero(mlir::Operation *op,
                                                        bool keep);

} // namespace tmc

#endif // TMC_PASSES_RAISE_AFFINE_H
