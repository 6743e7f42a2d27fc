// Spectrum.h - discrete Fourier transforms, as products with their matrices.
//
// A complex number is two elements along the innermost dimension. A transform
// of n points costs n * n multiplications, is exact and has a gradient; n is
// some hundreds in trained models.

#ifndef TMC_FRONTENDS_COMMON_OPS_SPECTRUM_H
#define TMC_FRONTENDS_COMMON_OPS_SPECTRUM_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

struct Fourier {
  int64_t axis = 0;
  int64_t points = 1; ///< `x` is cut or padded with zeros to as many.
  /// From frequencies, divided by `points`.
  bool inverse = false;
  /// Only the points / 2 + 1 frequencies that real signals need: as results,
  /// or, if inverse, as operands.
  bool oneSided = false;
};

/// The transform of `x` [..., 1 or 2] along `axis`: [..., 2], or [..., 1] for
/// an inverse from one-sided frequencies.
mlir::FailureOr<Val> fourier(Site &s, const Val &x, const Fourier &how);

/// Transforms of pieces of a signal [B, L, 1 or 2], `step` apart. Each piece
/// has the length of `window` and is multiplied by it: [B, pieces, frequencies,
/// 2].
mlir::FailureOr<Val> shortFourier(Site &s, const Val &signal, const Val &window,
                                  int64_t points, int64_t step, bool oneSided);

/// Triangles over the frequencies of a transform, evenly spaced on the mel
/// scale: [points / 2 + 1, bands].
struct MelScale {
  int64_t bands = 1, points = 1;
  double rate = 1, low = 0, high = 0;
};
mlir::FailureOr<Val> melWeights(Site &s, const MelScale &mel, ElementType type);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_SPECTRUM_H
