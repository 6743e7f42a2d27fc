// MaskShape.h - describes a table of visible keys by a few numbers.
//
//   band 0:   . causal       band -1..0:   window of two, and causal
//   x             x             prefix of two      groups 0 0 0 3 3
//   x x           x x           x x                x x x
//   x x x         . x x         x x                x x x
//   x x x x       . . x x       x x x              x x x
//                               x x x x            . . . x x
//
// Query t of T has position p = t + S - T among S keys, as in nn.attention.

#ifndef TMC_PASSES_RAISE_MASKSHAPE_H
#define TMC_PASSES_RAISE_MASKSHAPE_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tmc {

/// Key s is visible if s - p is in [low, high]; kNone: no bound on that side.
struct Band {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max() / 4;
  int64_t low = -kNone, high = kNone;

  bool hasLow() const { return low > -kNone; }
  bool hasHigh() const { return high < kNone; }
};

struct MaskShape {
  enum Kind {
    Other,
    Banded,  ///< `band`; without bounds: everything is seen.
    Prefixed ///< Keys up to p, and those below `prefix`.
  };
  Kind kind = Other;
  Band band;
  int64_t prefix = 0;
  /// If not empty: only keys of p's group are visible, in addition to the
  /// above.
  std::vector<int64_t> groups;
};

/// The shape of a mask whose elements are `sees(t, s)`.
MaskShape shapeOfMask(int64_t queries, int64_t keys,
                      llvm::function_ref<bool(int64_t, int64_t)> sees);

/// `band` without bounds that hide none of the `keys` from the `queries`.
Band withoutIdleBounds(Band band, int64_t queries, int64_t keys);

} // namespace tmc

#endif // TMC_PASSES_RAISE_MASKSHAPE_H
